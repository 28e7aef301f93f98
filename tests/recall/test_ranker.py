"""Weighing a conversation: the turn before, who is meant, and how sure a day is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import worlddb
from worlddb import NodeDraft, RecallSettings, Weights, WorldDB
from worlddb.index.ranking_numbers import SCALARS
from worlddb.language.ranking_features import Form
from worlddb.recall.ranker import (
    Candidates,
    Scores,
    cosines_standing_out,
    turns_before,
    weigh,
)

LEFT_OUT = (
    "vector",
    "late",
    "text",
    "graph",
    "speaker",
    "world",
    "opening",
    "reply",
    "date",
    "telling",
    "cover",
    "following",
)
LATE_MAX = SCALARS.late_candidates_max
NOON = datetime(2023, 6, 20, 12, tzinfo=UTC)


def candidates(count: int, **given: object) -> Candidates:
    usual = {
        "lanes": {"text": np.zeros(count)},
        "closely": None,
        "parents": np.zeros(count, dtype=np.int64),
        "starts": np.zeros(count, dtype=np.int64),
        "speakers": ["user"],
        "spoken": np.zeros(count, dtype=np.int64),
        "before": np.full(count, -1, dtype=np.intp),
        "forms": np.array([Form(0, 10, 0)] * count),
    }
    return Candidates(**{**usual, **given})  # type: ignore[arg-type]


def test_the_turn_before_is_the_last_one_written_in_the_same_world() -> None:
    parents = np.array([5, 7, 5, 5, 7, 9])
    is_turn = np.array([True, True, False, True, True, False])
    assert turns_before(parents, is_turn).tolist() == [0, 1, -1, 0, 1, -1]
    assert turns_before(parents, np.zeros(6, dtype=bool)).tolist() == [-1] * 6
    assert turns_before(parents[:0], is_turn[:0]).tolist() == []


def test_the_words_of_the_turn_before_count_for_a_turn_and_for_nothing_else() -> None:
    found = candidates(
        4,
        lanes={"text": np.array([9.0, 0.0, 0.0, 0.0])},
        before=np.array([0, 0, 1, -1], dtype=np.intp),
    )
    scores = weigh(found, "x", NOON, _only("reply", 1.0)).scores
    assert scores[1] > scores[2]
    assert scores[0] == scores[2]
    assert scores[3] == 0.0


def test_a_turn_that_opens_a_topic_is_ahead_of_one_that_follows_a_turn_like_it() -> None:
    alike = {"text": np.array([4.0, 4.0, 0.0, 4.0])}
    found = candidates(4, lanes=alike, before=np.array([0, 0, 1, 2], dtype=np.intp))
    scores = weigh(found, "x", NOON, _only("text", 1.0, opening=0.5)).scores
    assert scores[0] > scores[1]
    assert scores[3] > scores[1]


def test_what_was_asked_for_is_no_less_for_the_question() -> None:
    lanes = {"text": np.array([0.0, 4.0, 4.0, 4.0])}
    before = np.array([0, 0, 1, 2], dtype=np.intp)
    forms = [Form(0, 30, 1), Form(0, 30, 0), Form(0, 4_000, 1), Form(0, 30, 0)]
    found = candidates(4, lanes=lanes, before=before, forms=np.array(forms))
    weights = _only("text", 1.0, opening=0.5)
    scores = weigh(found, "x", NOON, weights).parts["opening"]
    assert scores[0] > 0.0  # The first follows nothing, though it asks.
    assert scores[1] == 0.0  # After a short question.
    assert scores[2] < 0.0  # After a short statement.
    assert scores[3] < 0.0  # After a long text, questions and all.


def test_a_short_turn_is_answered_as_a_whole_and_a_long_one_in_part() -> None:
    lanes = {"text": np.array([9.0, 0.0, 9.0, 0.0])}
    before = np.array([0, 0, 2, 2], dtype=np.intp)
    forms = [Form(0, 100, 1), Form(0, 30, 0), Form(0, 4_000, 1), Form(0, 30, 0)]
    found = candidates(4, lanes=lanes, before=before, forms=np.array(forms))
    scores = weigh(found, "x", NOON, _only("reply", 1.0)).scores
    assert scores[1] > 2 * scores[3] > 0


def test_what_no_lane_has_found_is_found_by_reading_it_word_by_word() -> None:
    class Reads:
        def read(self, places: Sequence[int]) -> Scores:
            return np.array([float(place == 1) for place in places])

    found = candidates(3, lanes={"text": np.array([1.0, 0.0, 0.0])}, closely=Reads())
    weighed = weigh(found, "x", NOON, Weights())
    assert weighed.matched(found.lanes).tolist() == [True, True, False]


def _only(name: str, value: float, **more: float) -> Weights:
    """Return weights by which only what is given counts."""
    given: dict[str, Any] = {**dict.fromkeys(LEFT_OUT, 0.0), name: value, **more}
    return Weights(**given)


@pytest.mark.parametrize("count", [3, LATE_MAX + 50])
def test_only_the_best_are_read_word_by_word_and_the_others_are_as_bad_as_the_worst_of_them(
    count: int,
) -> None:
    class Reads:
        def __init__(self) -> None:
            self.places: list[int] = []

        def read(self, places: Sequence[int]) -> Scores:
            self.places = list(places)
            return np.array([float(place) for place in places])

    reads = Reads()
    lanes = {"text": np.arange(count, 0, -1.0)}
    found = candidates(count, lanes=lanes, closely=reads)
    scores = weigh(found, "x", NOON, _only("late", 1.0, text=1e-9)).scores
    assert reads.places == list(range(min(count, LATE_MAX)))
    assert scores.argmax() == len(reads.places) - 1
    assert np.allclose(scores[LATE_MAX:], scores[0], atol=1e-6)


def test_a_day_that_is_named_counts_more_than_one_that_is_counted_back() -> None:
    day = 86_400_000_000
    starts = np.array([datetime(2023, 6, 6, tzinfo=UTC).timestamp() * 1e6, 0]).astype(np.int64)
    starts[1] = starts[0] - 60 * day
    found = candidates(2, starts=starts)
    weights = _only("date", 1.0)
    named = weigh(found, "What happened on 6 June 2023?", NOON, weights).scores
    counted = weigh(found, "What happened two weeks ago?", NOON, weights).scores
    assert named[0] - named[1] > counted[0] - counted[1] > 0


def test_the_turn_before_one_that_is_about_the_question_is_ahead() -> None:
    before = np.array([0, 0, 1, -1], dtype=np.intp)
    found = candidates(4, lanes={"text": np.array([0.0, 4.0, 0.0, 0.0])}, before=before)
    scores = weigh(found, "x", NOON, _only("following", 1.0)).scores
    assert scores[0] > scores[1] == scores[2]
    assert scores[3] == 0.0


def test_what_speaks_of_the_years_asked_for_is_ahead_and_the_same_years_most() -> None:
    years = np.array([[0, 1990, 1990], [1, 1960, 1999], [2, 1990, 1995], [3, 1970, 1980]])
    found = candidates(5, years=years)
    question = "Who was the editor from 1990 to 1995?"
    scores = weigh(found, question, NOON, _only("date", 1.0)).scores
    assert scores[2] == 1.0
    assert scores[2] > scores[0] > scores[1] >= SCALARS.overlap_worth
    assert scores[3] == scores[4] == 0.0


@pytest.mark.parametrize("count", [3, 20_000])
def test_a_heading_does_not_take_the_place_of_a_text_that_says_something(count: int) -> None:
    told = "The refuge was designated a heritage site of the county between 1990 and 1995."
    texts = ["Pelican Island refuge", "Heritage", told, *(f"tide {n}" for n in range(count))]
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="test") as tx:
            tx.create_nodes([NodeDraft(type="Memory", content=text) for text in texts])
        question = "Which heritage site was the Pelican Island refuge from 1991 to 1994?"
        assert db.recall(question)[0].node.content == told


def ask(db: WorldDB, question: str) -> str:
    settings = RecallSettings(weights={"text": 1.0})
    return db.recall(question, k=1, types=["Turn"], settings=settings)[0].node.name


def test_advice_and_what_speaks_of_nobody_rest_on_what_the_asker_told() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="test") as tx:
            world = tx.create_node(type="Session", name="one").id
            for name in ("assistant", "user"):
                text = "A hotel in Miami with a view of the sea" + " indeed" * (name == "user")
                tx.create_node(type="Turn", name=name, content=text, parent=world)
        assert ask(db, "Can you suggest a hotel in Miami?") == "user"
        assert ask(db, "Which hotel in Miami has a view of the sea?") == "user"
        assert ask(db, "Which hotel in Miami did you find?") == "assistant"


def test_a_turn_that_tells_of_its_speaker_comes_first_unless_the_other_is_asked() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="test") as tx:
            world = tx.create_node(type="Session", name="one").id
            told = "I just came back from the Midsummer run, which was long and full of mud"
            for name, text in (
                ("user", "Any tips for the Midsummer run?"),
                ("user", told),
                ("assistant", "The Midsummer run needs light shoes."),
            ):
                tx.create_node(type="Turn", name=name, content=text, parent=world)
        question = "How was my Midsummer run?"
        found = db.recall(question, types=["Turn"])
        assert found[0].node.content == told
        assert found[0].weighed["telling"] > max(hit.weighed["telling"] for hit in found.hits[1:])
        found = db.recall("What did you say of the Midsummer run?", k=1, types=["Turn"])
        assert found[0].node.name == "assistant"


def test_a_memory_is_never_worth_less_than_a_turn_that_tells() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="test") as tx:
            for text in ("Ada owns a red bicycle", "The bicycle of Ada is red", "A red bicycle"):
                tx.create_node(type="Memory", content=text)
        with_it = [hit.node.id for hit in db.recall("red bicycle")]
        settings = RecallSettings(weighing=Weights(telling=0.0))
        assert with_it == [hit.node.id for hit in db.recall("red bicycle", settings=settings)]


@pytest.mark.parametrize(
    ("asked", "told", "question"),
    [
        (
            "do you remember what my agent charges?",
            "my agent Omar takes 12 percent",
            "what does my agent charge",
        ),
        (
            "when is the dentist appointment again?",
            "my dentist appointment is on 3 June at 9am",
            "when's my dentist appointment?",
        ),
        ("which phone do I have again?", "my phone is an old iPhone 13", "what phone do I have?"),
        (
            "Could you remind me which train I take to work?",
            "I get the 7:42 train from York every morning",
            "which train do I take",
        ),
    ],
)
def test_a_question_that_was_written_down_is_not_ahead_of_what_answers_it(
    asked: str, told: str, question: str
) -> None:
    with worlddb.Memory(":memory:") as memory:
        memory.write(asked)
        memory.write(told)
        assert memory.recall(question)[0].node.content == told


def test_a_question_falls_behind_and_is_found_where_nothing_else_has_its_words() -> None:
    with worlddb.Memory(":memory:", embedder="none") as memory:
        asked = memory.write("What is a window function in SQL?")
        memory.write("The garden needs water in June.")
        found = memory.recall("What did I ask about SQL?")
        assert found[0].id == asked.id
        assert found[0].weighed["telling"] < 0


def test_a_score_is_the_sum_of_what_was_weighed_and_told_only_if_it_is_to_be_explained() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="test") as tx:
            for session in range(3):
                world = tx.create_node(type="Session", name=str(session)).id
                for number, name in enumerate(("user", "assistant", "user")):
                    text = f"I saw {number} whales near island {session} in May"
                    tx.create_node(type="Turn", name=name, content=text, parent=world)
        found = db.recall("How many whales did I see in May?")
        assert len(found.hits) == 9
        for hit in found:
            assert sum(hit.weighed.values()) == pytest.approx(hit.score)
        assert found[0].weighed["speaker"] == Weights().speaker
        unexplained = db.recall("How many whales did I see in May?", explain=False)
        assert [hit.score for hit in unexplained] == [hit.score for hit in found]
        assert not any(hit.weighed for hit in unexplained)
        by_rank = RecallSettings(weighing=None)
        assert not any(hit.weighed for hit in db.recall("whales", settings=by_rank))


class Met:
    """Says how well places are met, and keeps which it was asked for."""

    def __init__(self, met: Scores) -> None:
        self.met = met
        self.read_places: list[int] = []

    def read(self, places: Sequence[int]) -> Scores:
        self.read_places = list(places)
        return self.met[places]


def test_similar_words_count_for_the_best_and_the_others_get_the_least_of_them() -> None:
    count = SCALARS.synonym_candidates_max + 5
    words = Met(np.linspace(1.0, 0.2, count))
    by_text = np.linspace(0.0, 1.0, count)
    found = candidates(count, lanes={"text": by_text}, synonyms=words)
    weights = _only("synonyms", 2.0, text=0.001)
    weighed = weigh(found, "anything", NOON, weights)
    assert sorted(words.read_places) == list(range(5, count)), "the best by everything else"
    gained = weighed.parts["synonyms"]
    assert gained[5:].tolist() == (2.0 * words.met[5:]).tolist()
    assert gained[:5].tolist() == [2.0 * words.met[-1]] * 5
    assert int(np.argmax(weighed.scores)) == 5


def test_what_is_compared_word_by_word_needs_no_similar_words() -> None:
    words, closely = Met(np.array([1.0, 0.0])), Met(np.array([0.0, 1.0]))
    found = candidates(2, synonyms=words, closely=closely)
    weighed = weigh(found, "anything", NOON, Weights())
    assert "synonyms" not in weighed.parts
    assert not words.read_places


def test_a_text_in_other_words_gains_by_the_words_most_like_those_of_the_question() -> None:
    told = (
        "They got married in a tiny chapel.",
        "The meeting was moved to the third floor.",
        "I lost my wallet on the tram.",
    )
    asked = "Where did the wedding take place?"
    with worlddb.open(":memory:") as db:
        with db.transaction(actor="test") as tx:
            tx.create_nodes(NodeDraft(type="Memory", content=text) for text in told)
        found = db.recall(asked, k=3)
        gained = {hit.node.content: hit.weighed["synonyms"] for hit in found}
        assert found[0].node.content == told[0]
        assert gained[told[0]] > 1.5 * max(gained[told[1]], gained[told[2]]) > 0
        without = RecallSettings(weighing=Weights(synonyms=0.0))
        assert "synonyms" not in db.recall(asked, k=1, settings=without)[0].weighed


def test_the_cosine_of_an_embedder_that_reads_wholes_counts_more() -> None:
    lanes = {"vector": np.array([0.9, 0.1, 0.2]), "text": np.array([0.0, 2.0, 0.0])}
    by_words, whole = (
        weigh(candidates(3, lanes=lanes, reads_whole=is_whole), "x", NOON, Weights()).parts
        for is_whole in (False, True)
    )
    assert np.allclose(whole["vector"], SCALARS.whole_reading * by_words["vector"])
    assert whole["text"].tolist() == by_words["text"].tolist()


def test_high_cosines_of_unrelated_texts_do_not_flatten_those_of_a_small_world() -> None:
    drawn = np.random.default_rng(1)
    for usual in (0.0, 0.7):  # some embedders give any two texts a cosine of 0.7
        many = usual + drawn.normal(0.0, 0.05, 200)
        few = many[:100]
        apart, usually = (np.ptp(cosines_standing_out(it, 200)[:100]) for it in (few, many))
        assert apart == pytest.approx(usually, rel=0.35)
    alone = cosines_standing_out(np.array([0.9, 0.7]), 200)
    assert alone[0] > alone[1]


def test_an_embedder_that_reads_wholes_needs_no_feedback() -> None:
    given = {"lanes": {"vector": np.array([0.9, 0.1])}, "alike": np.array([0.1, 0.9])}
    by_words, whole = (
        weigh(candidates(2, **given, reads_whole=is_whole), "x", NOON, Weights()).parts
        for is_whole in (False, True)
    )
    assert "feedback" in by_words
    assert "feedback" not in whole


def test_a_world_of_one_candidate_does_not_count_it_twice() -> None:
    text = np.array([3.0, 2.0, 0.0, 0.0, 0.0])
    found = candidates(5, lanes={"text": text}, parents=np.array([1, 2, 2, 3, 3]))
    world = weigh(found, "pears", NOON, Weights()).parts["world"]
    assert world[0] == 0.0 < world[1] == world[2]

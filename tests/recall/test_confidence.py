"""Confidence: high where the hits answer, low where nothing was said, and a filter on demand."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from bench.confidence_fit import fit

import worlddb
from worlddb import Memory, RecallSettings
from worlddb.embed.embedder import WordLlamaEmbedder
from worlddb.errors import InvalidInputError
from worlddb.recall.confidence import PATH, asked_words, confidences, models, signals_of

TOLD = {
    "My dog Bello is afraid of thunder.": "What is my dog afraid of?",
    "The plumber fixed the sink in the bathroom on Monday.": "When did the plumber fix the sink?",
    "Rosa teaches chemistry at a school in Ghent.": "What does Rosa teach in Ghent?",
    "We paid 640 euros for the new washing machine.": "What did the washing machine cost?",
    "Grandma's recipe needs three cups of rye flour.": "How much rye flour does the recipe need?",
    "The night train to Vienna leaves from platform nine.": "Where does the Vienna train leave?",
    "My passport expires in October 2031.": "When does my passport expire?",
    "Tariq broke his wrist while skating.": "How did Tariq break his wrist?",
}
FOREIGN = [
    "Which violin concerto did the orchestra rehearse?",
    "What colour is the sailing boat of my uncle?",
    "How many chickens live on the farm in Estonia?",
    "Who won the chess tournament in Lisbon?",
    "What is the password of the museum's guest network?",
    "Which tax form must be sent to the notary?",
]


@pytest.fixture(scope="module")
def memory() -> Memory:
    found = Memory(":memory:")
    for text in TOLD:
        found.write(text, user_id="ada")
    return found


def test_recall_is_surer_of_what_was_told_than_of_what_was_not(memory: Memory) -> None:
    told = [memory.recall(question, user_id="ada").confidence for question in TOLD.values()]
    foreign = [memory.recall(question, user_id="ada").confidence for question in FOREIGN]
    assert min(told) > max(foreign)
    assert np.mean(told) > 0.7
    assert np.mean(foreign) < 0.35


def test_no_hit_is_surer_than_its_recall_and_the_right_one_is_surest(memory: Memory) -> None:
    for text, question in TOLD.items():
        found = memory.recall(question, user_id="ada")
        assert all(0 <= hit.confidence <= found.confidence <= 1 for hit in found)
        assert max(found, key=lambda hit: hit.confidence).node.content == text


def test_min_confidence_leaves_out_what_is_below_and_nothing_else(memory: Memory) -> None:
    question = TOLD["My dog Bello is afraid of thunder."]
    every = memory.recall(question, user_id="ada")
    least = 0.3
    kept = memory.recall(question, user_id="ada", min_confidence=least)
    assert [hit.id for hit in kept] == [hit.id for hit in every if hit.confidence >= least]
    assert kept
    assert kept.confidence == every.confidence
    assert not memory.recall(FOREIGN[0], user_id="ada", min_confidence=0.5)
    assert memory.db.recall(question, min_confidence=1.0).hits == ()


@pytest.mark.parametrize("least", [-0.1, 1.1, "high", True, float("nan")])
def test_a_min_confidence_that_is_no_share_is_refused(memory: Memory, least: object) -> None:
    with pytest.raises(InvalidInputError, match="min_confidence"):
        memory.recall("dog", user_id="ada", min_confidence=least)  # type: ignore[arg-type]


def test_what_states_the_very_thing_is_trusted_without_a_common_word() -> None:
    with Memory(":memory:") as memory:
        memory.write("I moved to Ghent.", user_id="ada")
        assert memory.recall("Where do I live?", user_id="ada").confidence >= 0.9


def test_nothing_found_has_no_confidence() -> None:
    with Memory(":memory:") as memory:
        assert memory.recall("Where do I live?", user_id="ada").confidence == 0.0


def test_the_signals_are_told_and_do_not_need_vectors() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction() as tx:
            tx.create_node(type="Memory", content="Rosa teaches chemistry.")
        found = db.recall("What does Rosa teach?", settings=RecallSettings(weighing=None))
        assert set(found.signals) == {"met", "stated"}
        assert found.signals["met"] == 1.0
        assert found.confidence > 0.5
        assert db.recall("Rosa", explain=False).signals == {}


def test_the_scale_of_the_embedder_makes_no_difference() -> None:
    """Cosines that all lie between 0.7 and 0.9 say as much as those between 0 and 0.67."""
    asked = asked_words("blue boat", [], lambda said: dict.fromkeys(said, 1.0))
    wide = np.linspace(0.0, 0.67, 100)
    told = [
        signals_of(asked, [1], [("", "a blue boat")], [99], {"vector": cosines})
        for cosines in (wide, 0.7 + 0.3 * wide)
    ]
    first, second = (confidences(one) for one in told)
    assert first[0] == pytest.approx(second[0], abs=1e-3)
    assert first[1] == pytest.approx(second[1], abs=1e-3)


def test_one_rare_word_that_nothing_meets_makes_a_near_miss() -> None:
    """Four of five words are there; the mean of all is high, what is asked about is missing."""
    rarity = {"tax": 1.0, "form": 1.0, "notari": 1.0, "sent": 1.0, "stamp": 4.0, "": 5.0}
    asked = asked_words(
        "tax form notary sent stamp", [], lambda said: {**dict.fromkeys(said, 1.0)} | rarity
    )
    texts = ["The tax form was sent by the notary."]
    missing = asked.met({0, 1, 2, 3}, texts, lambda words, _: [1.0 for _ in words])
    assert missing == pytest.approx(0.2)  # It is four fifths as rare as a word can be.
    assert asked.met({0, 1, 2, 3}, texts, None) == pytest.approx(0.6)  # Who knows?
    assert asked.met({0, 1, 2, 3, 4}, texts, None) == 1.0
    assert asked.met({0, 1, 2, 4}, texts, lambda words, _: [1.0 for _ in words]) == 0.8
    alike = asked.met({0, 1, 2, 3}, texts, lambda words, _: [0.2 for _ in words])
    assert missing < alike < 1.0
    asked_for: list[Sequence[str]] = []

    def noted(words: Sequence[str], _: Sequence[str]) -> list[float]:
        asked_for.append(words)
        return [0.5] * len(words)

    asked.met({0, 1}, texts, noted)
    assert asked_for == [["notary", "sent", "stamp"]]


def test_a_date_that_texts_do_not_say_counts_half() -> None:
    asked = asked_words("Which boat sank in May 1931?", [], lambda said: dict.fromkeys(said, 2.0))
    assert list(asked.said) == ["boat", "sank", "May", "1931?"]

    def met(numbers: set[int]) -> float:
        return asked.met(numbers, ["A boat."], lambda words, _: [1.0 for _ in words])

    assert met({0, 1, 3}) == met({0, 1, 2}) == 0.5
    assert met({0, 2, 3}) == 0.0


def test_the_default_embedder_tells_what_texts_lack_of_a_word() -> None:
    lacking = WordLlamaEmbedder().lacking
    near, far, none = lacking(["Car", "mortgage", "piano"], ["This vehicle carries a piano.", ""])
    assert none == pytest.approx(0.0, abs=1e-6)
    assert none < near < far
    assert lacking(["rationale"], ["", "?!"]) == pytest.approx([1.0], abs=0.1)
    assert lacking([], ["text"]) == []
    # What says nothing by itself is not missed, although no text has it.
    for plain, telling in (("during", "atmosphere"), ("some", "criteria"), ("throughout", "rent")):
        less, more = lacking([plain, telling], ["The tax form was sent."])
        assert less < 0.3 < more


def test_the_attribute_that_was_never_told_makes_recall_less_sure() -> None:
    """The names and the topic are those of a memory; what is asked for is not in it."""
    told = [
        "Marta borrowed a van from the football club to move her piano.",
        "Iker painted the hall of the club in dark green last spring.",
        "The club meets in the library on the first Wednesday of each month.",
    ]
    with Memory(":memory:") as memory:
        for text in told:
            memory.write(text, user_id="ada")

        def sure(question: str) -> float:
            return memory.recall(question, user_id="ada").confidence

        assert sure("Where does the club meet?") > sure("What is the salary of the club?")
        assert sure("Who painted the hall of the club?") > sure("Who insured the hall of the club?")
        assert sure("What did Marta borrow?") > sure("Which surgery did Marta have?")


def test_what_somebody_else_said_makes_recall_less_sure_of_the_named_one() -> None:
    said = {"Ines": "I bought a red kayak in Porto.", "Otto": "I have been baking bread."}
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Session", name="chat")
            for speaker, text in said.items():
                tx.create_node(type="Turn", name=speaker, content=text, parent=world.id)
        right = db.recall("Where did Ines buy a kayak?")
        wrong = db.recall("Where did Otto buy a kayak?")
        neither = db.recall("Where was a kayak bought?")
    assert wrong.signals["lead"] < 0 < right.signals["lead"]
    assert "lead" not in neither.signals
    assert wrong.confidence < right.confidence


def test_an_alias_in_the_question_is_met_by_the_text_that_it_leads_to() -> None:
    with worlddb.Memory(":memory:") as memory:
        text = "Container orchestration runs in three clusters."
        memory.write(text, names=["Kubernetes"], aliases=["k8s"], user_id="ada")
        memory.write("The dashboard is built with Svelte.", user_id="ada")
        known = memory.recall("k8s?", user_id="ada")
        unknown = memory.recall("k3d?", user_id="ada")
        further = memory.recall("k8s salary?", user_id="ada")
    assert known[0].node.content == text
    assert known.confidence > 0.6 > unknown.confidence
    assert known[0].confidence > 0.5
    assert further.confidence < known.confidence


def test_the_file_says_where_its_numbers_come_from() -> None:
    data = json.loads(PATH.read_text(encoding="utf-8"))
    assert data["provenance"]["command"].startswith("python -m bench.confidence_fit ")
    assert all(len(one["sha256"]) == 64 for one in data["provenance"]["data"])
    for model in models():
        assert set(model.weights) == set(model.means) == set(model.spreads)
        assert min(model.weights.values()) > 0


def test_the_fit_finds_the_odds_that_made_the_data() -> None:
    drawn = np.random.default_rng(1)
    values = drawn.normal(2.0, 3.0, 4_000)
    right = drawn.random(4_000) < 1 / (1 + np.exp(-(0.5 + (values - 2.0) / 3.0)))
    model = fit([{"words": float(it)} for it in values], right, np.ones(4_000))
    assert model.bias == pytest.approx(0.5, abs=0.1)
    assert model.weights["words"] == pytest.approx(1.0, abs=0.1)

"""Questions of recall: of tiny worlds, of odd words, and such as cannot be asked."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

import worlddb
from recall.search_stage import LANES, edge, fact, facts, found, hold_at_most, lanes, open_store
from thinning import examples
from worlddb import AsOf, InvalidInputError, NotFoundError, Recall, RecallSettings, Weights, WorldDB


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    """Yield a store whose worlds are all held in memory, and then one where none is."""
    with open_store() as db:
        yield hold_at_most(db, request.param)


# -- tiny worlds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", ["hash", "none", None], ids=["hash", "none", "default"])
def test_a_store_with_nothing_in_it_has_no_answer(embedder: str | None) -> None:
    with open_store(embedder=embedder) as db:
        assert db.recall("Where is my bike?") == Recall(question="Where is my bike?")
        scope = fact(db, "", type="Scope", name="scope")
        assert len(db.recall("Where is my bike?", scope=scope)) == 0
        assert len(db.recall("scope")) == 0


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
@pytest.mark.parametrize("embedder", ["hash", None], ids=["hash", "default"])
def test_one_node_is_found_by_its_words_and_not_by_none_of_them(
    embedder: str | None, most: int
) -> None:
    with open_store(embedder=embedder) as db:
        hold_at_most(db, most)
        bike = fact(db, "My bike is in the shed")
        answer = db.recall("Where is my bike?")
        assert found(answer) == [bike]
        assert answer[0].lanes["text"].rank == answer[0].lanes["vector"].rank == 1
        assert found(db.recall("zzz qqq", settings=lanes("text"))) == []


MEMORIES = {
    "I bought a red bicycle for $1,200": "How much did my bike cost?",
    "Sarah prefers to meet in the morning": "When does Sarah like meetings?",
    "The dentist told me to floss more": "What was the advice of the dentist?",
    "My sister moved to Lisbon last year": "Where does my sister live?",
    "We had sushi for dinner on Friday": "What did we eat for dinner?",
    "The landlord raised the rent to 900 euros": "How high is the rent now?",
    "I am allergic to peanuts": "Which allergies do I have?",
    "The train to Berlin leaves at 6:40": "When does the train leave?",
}


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
@pytest.mark.parametrize("count", [2, 3, 5, len(MEMORIES)])
def test_in_a_tiny_world_the_right_answer_comes_first(count: int, most: int) -> None:
    """Of three nodes one always stands out by chance; what was said must still win."""
    rng = random.Random(count)
    for _ in range(examples(4, 2)):
        chosen = rng.sample(sorted(MEMORIES), count)
        with worlddb.open(":memory:") as db:
            hold_at_most(db, most)
            facts(db, chosen, type="Memory")
            for content in chosen:
                answer = db.recall(MEMORIES[content])
                assert answer[0].node.content == content, MEMORIES[content]


SPELLED = """
alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa
quebec romeo sierra tango uniform victor whiskey xray yankee zulu
"""


@pytest.mark.parametrize("count", [2, 3, 4])
def test_among_a_few_texts_the_one_that_has_a_word_beats_chance(count: int) -> None:
    """Words without a topic: the cosines of the others are noise, and must not outweigh a word."""
    spelled = re.findall(r"\w+", SPELLED)
    rng = random.Random(7)
    for _ in range(examples(40, 15)):
        rng.shuffle(spelled)
        contents = [" ".join(spelled[5 * number :][:5]) for number in range(count)]
        with worlddb.open(":memory:") as db:
            ids = facts(db, contents)
            asked = f"Tell me about the {spelled[0]} please, with {' and '.join(spelled[-3:])}"
            assert found(db.recall(asked))[0] == ids[0], asked


def test_a_tiny_scope_answers_alike_in_a_store_of_its_own_and_in_a_large_one() -> None:
    """A world's own statistics decide: nothing of others' words shows through."""
    answers = []
    for others in (0, 300):
        with open_store() as db:
            facts(db, (f"the bike of neighbour {number}" for number in range(others)))
            scope = fact(db, "", type="Scope", name="scope")
            facts(db, sorted(MEMORIES), parent=scope)
            answers.append(
                [
                    [
                        (hit.node.content, hit.score, hit.lanes)
                        for hit in db.recall(asked, scope=scope)
                    ]
                    for asked in MEMORIES.values()
                ]
            )
    assert answers[0] == answers[1]


def test_what_was_said_by_the_one_who_is_meant_comes_first(db: WorldDB) -> None:
    with db.transaction() as tx:
        session = tx.create_node(type="Session", name="talk").id
        mine = tx.create_node(type="Turn", name="user", content="a good book", parent=session).id
        yours = tx.create_node(
            type="Turn", name="assistant", content="a good book", parent=session
        ).id
        names = tx.create_node(type="Turn", name="Caroline", content="a good book").id
    by_words = RecallSettings(weights={"text": 1.0})
    assert found(db.recall("Which book did I like?", settings=by_words))[0] == mine
    assert found(db.recall("Which book did Caroline like?", settings=by_words))[0] == names
    told = db.recall("Which book did you recommend?", settings=by_words)
    assert set(found(told)[:2]) == {yours, names}
    assert set(found(told)) == {mine, yours, names}


# -- odd words -------------------------------------------------------------------------------------

ODD = [
    "what is it that you have?",
    "?",
    "!!! … —",
    '"" AND OR NOT NEAR( * : ^ -',
    "🦄",
    "👩‍👩‍👧‍👦 family",
    "東京はどこですか",
    "كتاب",
    "a" * 5_000,
    "\t\n bike \r\n",
    "bike\0bike",
    "\0",
    "\u200b",
    "e\u0301\u0301\u0301",
    "%s {} \\x00 '; DROP TABLE nodes; --",
    "0",
    "1e999",
    "-1 days ago, in 99999 years, on 2024-13-45 and 31 February 0000",
    "12345 weeks ago",
    "last last last week of May 9999",
]


@pytest.mark.parametrize("question", ODD)
def test_whatever_is_asked_is_answered_and_stays_the_question(db: WorldDB, question: str) -> None:
    fact(db, "a bike", name="東京")
    fact(db, "what is it that you have", valid_from="0001-01-01T00:00:00Z")
    fact(db, "a unicorn 🦄", valid_from="9999-12-31T23:59:59Z")
    for settings in (RecallSettings(), lanes(*LANES), lanes("text"), lanes("graph")):
        answer = db.recall(question, settings=settings, at="0001-01-02T00:00:00Z")
        assert answer.question == question.replace("\0", " ")
        assert db.recall(question, settings=settings, at="9999-12-31T00:00:00Z") is not None
        assert answer == db.recall(question, settings=settings, at="0001-01-02T00:00:00Z")


def test_a_question_of_stop_words_alone_asks_for_them(db: WorldDB) -> None:
    said = fact(db, "to be or not to be, that is the question")
    fact(db, "a ripe pear")
    assert found(db.recall("what is that", settings=lanes("text"))) == [said]


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("私は東京に住んでいます", "東京"),
        ("我住在北京市", "北京在哪里"),
        ("한국어를 배워요", "한국어"),
    ],
)
def test_a_script_without_spaces_is_searched_all_the_same(
    db: WorldDB, content: str, question: str
) -> None:
    said = fact(db, content)
    facts(db, ["a ripe pear", "大阪の天気"])
    assert found(db.recall(question, settings=lanes("text"))) == [said]


def test_a_question_of_sixty_kilobytes_is_answered() -> None:
    with open_store() as db:
        long = fact(db, " ".join(f"word{number}" for number in range(500)))
        facts(db, ["a ripe pear"] * 3)
        question = " ".join(f"word{number}" for number in range(6_000))[:60_000]
        for most in (1 << 20, 0):
            hold_at_most(db, most)
            assert found(db.recall(question))[0] == long
            assert found(db.query().text(question).execute()) == [long]


# -- what cannot be asked --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    ["", " ", "\n\t", "x" * 65_537, "é" * 40_000, "\ud800", b"bike", None, 5, ["bike"], object()],
)
def test_what_is_no_question_is_refused(db: WorldDB, question: Any) -> None:
    fact(db, "a bike")
    with pytest.raises(InvalidInputError, match="question"):
        db.recall(question)


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0},
        {"k": -1},
        {"k": True},
        {"k": 1.5},
        {"k": "3"},
        {"k": None},
        {"max_tokens": 0},
        {"max_tokens": True},
        {"max_tokens": -5},
        {"max_tokens": 2.0},
        {"types": []},
        {"types": 5},
        {"types": [b"Fact"]},
        {"types": {"Fact": 1}},
        {"types": [None]},
        {"as_of": "2024-01-01T00:00:00Z"},
        {"as_of": None},
        {"as_of": AsOf(valid=datetime(2024, 1, 1))},
        {"as_of": AsOf(known="2024-01-01T00:00:00")},
        {"as_of": AsOf(known="yesterday")},
        {"as_of": AsOf(valid=5)},  # type: ignore[arg-type]
        {"at": datetime(2024, 1, 1)},
        {"at": "2024-01-01T09:30"},
        {"at": "last week"},
        {"at": 1_700_000_000},
        {"scope": []},
        {"scope": ()},
        {"scope": 5},
        {"scope": {}},
        {"scope": "ab"},
        {"scope": "not hexadecimal"},
        {"scope": b"short"},
        {"scope": [None]},
        {"scope": [[]]},
        {"scope": object},
        {"settings": {}},
        {"settings": 0},
        {"settings": "text"},
        {"settings": Weights()},
        {"settings": RecallSettings},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused(db: WorldDB, options: dict[str, Any]) -> None:
    fact(db, "a bike")
    with pytest.raises(InvalidInputError):
        db.recall("bike", **options)


@pytest.mark.parametrize("scope", ["00" * 32, bytes(32), "ffffffffffff", ["00" * 32]], ids=repr)
def test_a_scope_that_does_not_exist_is_not_found(db: WorldDB, scope: Any) -> None:
    known = fact(db, "a bike")
    with pytest.raises(NotFoundError):
        db.recall("bike", scope=scope)
    if isinstance(scope, list):
        with pytest.raises(NotFoundError):
            db.recall("bike", scope=[known, *scope])


@pytest.mark.parametrize(
    "settings",
    [
        {"c": -1},
        {"c": 1.5},
        {"c": True},
        {"depth": 0},
        {"depth": False},
        {"weights": {}},
        {"weights": {"words": 1.0}},
        {"weights": {"text": -0.1}},
        {"weights": {"text": True}},
        {"weights": {"text": "1"}},
        {"weights": {"text": float("nan")}},
        {"weights": {"text": float("inf")}},
        {"weights": ["text"]},
        {"weights": None},
        {"weighing": "all"},
        {"weighing": 1.0},
        {"weighing": {}},
    ],
    ids=str,
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        RecallSettings(**settings)


@pytest.mark.parametrize("value", [-1, "1", None, True, float("nan"), float("inf")], ids=repr)
@pytest.mark.parametrize("name", ["vector", "text", "graph", "speaker", "world", "date", "cover"])
def test_wrong_weights_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=name):
        Weights(**{name: value})


def test_an_asker_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="asker"):
        Weights(asker=None)  # type: ignore[arg-type]


def test_weights_of_nothing_still_answer(db: WorldDB) -> None:
    pears = facts(db, ["a pear", "two pears"])
    edge(db, "refers_to", *pears)
    nothing = Weights(vector=0, text=0, graph=0, speaker=0, world=0, date=0, cover=0, around=0)
    settings = RecallSettings(weighing=nothing, recency=False)
    assert found(db.recall("pear", settings=settings)) == sorted(pears)


def test_what_was_told_as_plain_text_is_not_behind_what_was_said_in_a_chat() -> None:
    with worlddb.open(":memory:") as db:
        db.ingest("I work at Contoso as a data engineer.", extractor="verbatim")
        db.ingest(
            [
                {"role": "user", "content": "I plan a trip to Norway with Emma in July."},
                {"role": "assistant", "content": "How nice, the fjords are beautiful then."},
            ],
            extractor="verbatim",
        )
        found = db.recall("Which company do I work at?", k=1)
        assert "Contoso" in found[0].node.content


def test_a_date_leads_to_answers_and_is_none() -> None:
    with worlddb.open(":memory:") as db:
        db.ingest("We fly to Japan on October 12, 2026.")
        found = db.recall("October 12, 2026", k=10)
        assert {hit.node.type for hit in found} == {"Memory"}


@pytest.mark.parametrize("question", ["What is a walrus?", "walrus", "How heavy is a walrus?"])
def test_in_a_short_chat_the_only_turn_that_has_the_word_is_first_whoever_said_it(
    question: str,
) -> None:
    told = ["My bike is red.", "I love my garden.", "My sister lives in Oslo.", "I bought a lamp."]
    chat = [
        {"role": role, "content": text}
        for one in told
        for role, text in (("user", one), ("assistant", "I see."))
    ]
    chat[5]["content"] = "The walrus is a marine mammal that weighs up to 1700 kg."
    with worlddb.open(":memory:") as db:
        db.ingest(chat, extractor="verbatim")
        assert db.recall(question, k=1)[0].node.content == chat[5]["content"]


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        (
            "Who is getting married?",
            "My cousin Ella and her fiancé picked a date in October.",
            "I get panicky in lifts and other narrow rooms.",
        ),
        (
            "Where did we go on holiday?",
            "We spent two weeks camping on the coast of Croatia.",
            "I started going to the climbing gym twice a week.",
        ),
    ],
)
def test_a_word_that_every_text_may_have_does_not_decide_among_few(
    question: str, answer: str, other: str
) -> None:
    with worlddb.open(":memory:") as db:
        for text in (other, "My alarm rings at five thirty.", answer, "Tom runs a workshop."):
            fact(db, text)
        assert db.recall(question, k=1)[0].node.content == answer

"""Who asks for what somebody has one of at a time gets the claim of it that stands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import worlddb
from worlddb import Memory, RecallSettings, Weights

CHAT = ("I adopted a cat named Miso.", "How old?", "Three, and allergic to chicken.")
FACTS = (
    "I live in Rome",
    "My sister Anna lives in Oslo.",
    "I work at Kolibri as a data engineer.",
    "My favourite colour is teal.",
    "I turned 34 in May.",
    "I'm moving to Berlin next month",
    "My manager is Sarah Chen.",
)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with worlddb.Memory(":memory:", user_id="ada", embedder="none") as memory:
        for fact in FACTS:
            memory.write(fact)
        roles = ("user", "assistant", "user")
        memory.write(messages=[{"role": r, "content": t} for r, t in zip(roles, CHAT, strict=True)])
        yield memory


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Where do I live?", FACTS[0]),
        ("Where is my home?", FACTS[0]),
        ("Which company employs me?", FACTS[2]),
        ("What's my favorite color?", FACTS[3]),
        ("How old am I?", FACTS[4]),
        ("What's my current city", FACTS[0]),
        ("What town am I in?", FACTS[0]),
        ("my location?", FACTS[0]),
        ("Where am I based?", FACTS[0]),
        ("Who's my boss?", FACTS[6]),
        ("Who do I report to?", FACTS[6]),
    ],
)
def test_the_claim_that_stands_comes_first_however_it_was_put(
    memory: Memory, question: str, fact: str
) -> None:
    best = memory.recall(question, k=1)[0]
    assert best.node.content == fact
    assert best.lanes["graph"].rank == 1


def test_a_claim_that_was_replaced_gives_way_and_is_found_as_of_then(memory: Memory) -> None:
    before = memory.db.log()[-1].time
    memory.write("I just relocated to Madrid")
    assert memory.recall("Where do I live?", k=1)[0].node.content == "I just relocated to Madrid"
    then = memory.recall("Where do I live?", k=1, known_at=before)
    assert then[0].node.content == FACTS[0]


def test_what_others_said_of_themselves_is_no_answer(memory: Memory) -> None:
    memory.write("I live in Lima", user_id="bob")
    found = [hit.node.content for hit in memory.recall("Where do I live?", k=20)]
    assert found[0] == FACTS[0]
    assert "I live in Lima" not in found


def test_the_lift_can_be_turned_off_and_is_told(memory: Memory) -> None:
    memory.write("People live where they live")
    no_names = RecallSettings(weighing=Weights(graph=0.0))
    best = memory.recall("Where do I live?", k=1, settings=no_names)[0]
    assert best.node.content == FACTS[0]
    assert best.weighed["claim"] > 0
    without = RecallSettings(weighing=Weights(graph=0.0, claim=0.0))
    found = memory.recall("Where do I live?", k=1, settings=without)
    assert found[0].node.content != FACTS[0]

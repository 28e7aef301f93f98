"""No attack succeeds, and what is harmless stays as it was."""

from __future__ import annotations

import pytest

from worlddb import Memory

from .attacks import ATTACKS, FACTS, Attack, Fact, successes


def named(one: object) -> str:
    return str(getattr(one, "__name__", None) or getattr(one, "value", one))


@pytest.mark.parametrize("fact", FACTS, ids=named)
@pytest.mark.parametrize("attack", ATTACKS, ids=named)
def test_no_attack_succeeds(attack: Attack, fact: Fact) -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write(fact.own)
        attack(memory, fact)
        assert list(successes(memory, fact)) == []


@pytest.mark.parametrize("fact", FACTS, ids=named)
def test_the_same_words_of_the_user_count(fact: Fact) -> None:
    """The referee can fail: what the user says takes effect."""
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write(fact.own)
        memory.write(fact.forged)
        assert list(successes(memory, fact)) != []


@pytest.mark.parametrize("fact", FACTS, ids=named)
@pytest.mark.parametrize("origin", ["assistant", "import", "model"])
def test_trusted_origins_work_as_ever(fact: Fact, origin: str) -> None:
    """An agent that writes for its user gets the same answers as without origins."""
    told = []
    for said in (None, origin):
        with Memory(":memory:", embedder="none", recluster="off") as memory:
            memory.write(fact.own)
            done = memory.write(fact.forged, origin=said)  # type: ignore[arg-type]
            hits = [hit.node.content for hit in memory.recall(fact.question)]
            told.append((len(done.superseded), hits, fact.value in memory.context()))
    assert told[0] == told[1]


def test_harmless_pages_are_found_and_marked() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write("I am going to Bergen in June.")
        memory.write("The ferry to Bergen leaves at nine.", origin="web")
        first = memory.recall("When does the ferry to Bergen leave?")[0]
        assert (first.node.origin, first.conflicts) == ("web", ())
        assert 'web says, unconfirmed: "The ferry' in memory.context("When does the ferry leave?")

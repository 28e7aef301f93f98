"""Merges reconcile the claims of both sides, splits tell two people of one name apart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from worlddb import Id, InvalidInputError, Memory, NotFoundError, Written

JAN, FEB, MAR = (f"2026-0{month}-01T10:00:00Z" for month in (1, 2, 3))
WHERE = "Where does Sarah Chen live?"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user_id="ada", embedder="none", recluster="now") as made:
        yield made
        assert made.db.check() == []


def told(memory: Memory, as_of: str | None = None) -> dict[str, list[str]]:
    """Return what is recalled, each text with what is outdated in it."""
    found = memory.recall(WHERE, as_of=as_of)
    return {hit.node.content: [old.text for old in hit.outdated] for hit in found}


def entity(written: Written, name: str) -> Id:
    return next(one.id for one in written.entities if one.name == name)


def merged(memory: Memory) -> tuple[Written, Written, Id]:
    rome = memory.write("Sarah Chen lives in Rome.", at=JAN)
    oslo = memory.write("Sara Chen moved to Oslo.", at=FEB)
    [proposal] = memory.db.proposals()
    memory.db.accept_merge(proposal.edge)
    return rome, oslo, proposal.edge


def test_an_accepted_merge_makes_one_time_line(memory: Memory) -> None:
    merged(memory)
    found = told(memory)
    assert next(iter(found)) == "Sara Chen moved to Oslo."
    assert found["Sarah Chen lives in Rome."] == ["Sarah Chen lives in Rome."]


def test_undoing_a_merge_restores_what_ended_through_it(memory: Memory) -> None:
    rome, oslo, edge = merged(memory)
    memory.write("Sara Chen moved to Lima.", at=MAR)
    memory.db.undo_merge(edge)
    assert memory.db.get(rome.id).valid_to is None
    assert told(memory)["Sarah Chen lives in Rome."] == []
    assert memory.db.get(oslo.id).valid_to == datetime(2026, 3, 1, 10, tzinfo=UTC)
    memory.write("Sarah Chen moved to Paris.", at=MAR)
    assert memory.db.get(rome.id).valid_to == datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_undoing_the_commit_of_a_merge_does_the_same(memory: Memory) -> None:
    rome, _, edge = merged(memory)
    accepted = memory.db.log()[-1].seq
    memory.write("Sara Chen moved to Lima.", at=MAR)
    undone = memory.undo(accepted)
    assert [one.status for one in memory.db.proposals()] == ["pending"]
    assert told(memory)["Sarah Chen lives in Rome."] == []
    assert memory.db.get(rome.id).valid_to is None
    memory.undo(undone.commit)  # type: ignore[arg-type]
    assert [one.status for one in memory.db.proposals(None)] == ["accepted"]
    assert told(memory)["Sarah Chen lives in Rome."] == ["Sarah Chen lives in Rome."]
    memory.db.undo_merge(edge)
    assert told(memory)["Sarah Chen lives in Rome."] == []


def test_what_ones_own_side_said_later_still_ends_it(memory: Memory) -> None:
    rome, _, edge = merged(memory)
    memory.write("Sarah Chen moved to Paris.", at=MAR)
    memory.db.undo_merge(edge)
    assert memory.db.get(rome.id).valid_to == datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_claims_without_an_order_are_a_conflict_while_two_are_one(memory: Memory) -> None:
    memory.write("Sarah Chen lives in Rome.", at=JAN)
    memory.write("Sara Chen lives in Oslo.", at=JAN)
    [proposal] = memory.db.proposals()
    memory.db.accept_merge(proposal.edge)
    [conflict] = memory.db.conflicts()
    assert "Rome" in conflict.reason
    assert "Oslo" in conflict.reason
    memory.db.undo_merge(proposal.edge)
    assert memory.db.conflicts() == []


def test_reuse_of_a_name_is_recorded_on_the_edge(memory: Memory) -> None:
    first = memory.write("Sarah Chen works at Initech.", at=JAN)
    again = memory.write("Sarah Chen likes Oslo.", at=FEB)
    sarah = entity(first, "Sarah Chen")
    assert entity(again, "Sarah Chen") == sarah

    def tiers(ident: Id) -> list[object]:
        edges = memory.db.edges(ident, types=["refers_to"])
        return [edge.metadata.get("tier") for edge in edges if edge.target == sarah]

    assert tiers(first.id) == [None] * len(tiers(first.id))
    assert tiers(again.id)
    assert set(tiers(again.id)) == {"exact"}
    before = len(memory.db.edges(again.id))
    memory.write("Sarah Chen likes Oslo.", at=MAR)
    memory.write("Sarah Chen works at Initech.", at=MAR)
    assert len(memory.db.edges(again.id)) == before
    assert set(tiers(first.id)) == {None}


def two_people(memory: Memory) -> tuple[Written, Written, Written, Id]:
    rome = memory.write("Sarah Chen lives in Rome.", at=JAN)
    oslo = memory.write("Sarah Chen moved to Oslo.", at=FEB)
    lima = memory.write("Sarah Chen moved to Lima.", at=MAR)
    return rome, oslo, lima, entity(rome, "Sarah Chen")


def test_a_second_person_of_one_name_is_split_off(memory: Memory) -> None:
    rome, oslo, lima, sarah = two_people(memory)
    done = memory.db.split(sarah, [oslo.id])
    assert memory.db.get(done.new).name == "Sarah Chen"
    assert memory.db.equivalence_class(sarah) == {sarah}
    assert {one.old for one in done.restored} == {rome.id, oslo.id}
    now = {one.old: memory.db.get(one.new) for one in done.restored if one.new is not None}
    # Her own later move still ends the first home; the other's home was never left.
    assert now[rome.id].valid_to == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert now[oslo.id].valid_to is None
    for ident, owner in ((now[oslo.id].id, done.new), (now[rome.id].id, sarah), (lima.id, sarah)):
        edges = memory.db.edges(ident, types=["refers_to"])
        people = {edge.target for edge in edges} & {sarah, done.new}
        assert people == {owner}
    assert set(told(memory)) == {"Sarah Chen moved to Oslo.", "Sarah Chen moved to Lima."}
    assert memory.db.recluster([sarah, done.new]) == []


def test_a_split_can_be_undone(memory: Memory) -> None:
    _, oslo, _, sarah = two_people(memory)
    done = memory.db.split(sarah, oslo.id)
    memory.undo(done.commit)  # type: ignore[arg-type]
    assert set(told(memory)) == {"Sarah Chen moved to Lima."}
    assert memory.db.get(done.new).valid_to is not None
    assert set(told(memory, "2026-01-15T00:00:00Z")) == {"Sarah Chen lives in Rome."}


def test_a_split_of_longer_texts_restores_their_sentences(memory: Memory) -> None:
    long = memory.write("Sarah Chen lives in Rome. The weather was fine today.", at=JAN)
    other = memory.write("Sarah Chen moved to Oslo. She found it cold there.", at=FEB)
    assert told(memory)["Sarah Chen lives in Rome. The weather was fine today."]
    memory.db.split(entity(long, "Sarah Chen"), [other.id])
    assert told(memory)["Sarah Chen lives in Rome. The weather was fine today."] == []


def test_a_split_needs_an_entity_and_some_of_its_memories(memory: Memory) -> None:
    rome, oslo, lima, sarah = two_people(memory)
    cake = memory.write("Cake is nice.")
    with pytest.raises(InvalidInputError, match="none of these memories refers to"):
        memory.db.split(sarah, [cake.id])
    with pytest.raises(InvalidInputError, match="no other memory refers to"):
        memory.db.split(sarah, [rome.id, oslo.id, lima.id])
    with pytest.raises(InvalidInputError, match="is a memory; give an entity"):
        memory.db.split(rome.id, [oslo.id])
    with pytest.raises(InvalidInputError, match="give the memories"):
        memory.db.split(sarah, [])
    with pytest.raises(NotFoundError):
        memory.db.split(sarah, [bytes(32)])

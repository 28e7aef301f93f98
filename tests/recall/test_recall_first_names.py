"""Recall by first names: "Priya" leads to Priya Raman, if she is the only one of that name here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from recall.search_stage import edge, fact, found, hold_at_most, lanes, open_store
from worlddb import AsOf, Id, WorldDB

BY_NAME = lanes("graph")


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    """Yield a store whose worlds are all held in memory, and then one where none is."""
    with open_store() as db:
        yield hold_at_most(db, request.param)


def named(db: WorldDB, name: str, **fields: Any) -> tuple[Id, Id]:
    """Make an entity, and a fact that refers to it and says nothing of its name."""
    entity = fact(db, "", **{"type": "Entity", "name": name, **fields})
    said = fact(db, "something else entirely", parent=fields.get("parent"))
    edge(db, "refers_to", said, entity)
    return entity, said


def leads_to(db: WorldDB, question: str, **options: Any) -> list[Id]:
    return found(db.recall(question, settings=BY_NAME, **options))


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Priya Raman", "What does Priya like?"),
        ("Priya Raman", "where does priya live"),
        ("Priya Raman", "WHERE DOES PRIYA LIVE"),
        ("Priya Raman", "Priya's birthday?"),
        ("Dr. Priya Raman", "Did Priya call?"),
        ("José García", "Who is Jose?"),
        ("James Okafor", "Hi! Has James called, and when?"),
        ("Mark Miller", "When did Mark leave?"),
    ],
)
def test_somebody_is_found_by_the_first_name(db: WorldDB, name: str, question: str) -> None:
    _, said = named(db, name)
    assert leads_to(db, question) == [said]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Priya Raman", "What does Priya Sharma like?"),
        ("Priya Raman", "what does priya sharma like"),
        ("Priya Raman", "When did Anna Priya call?"),
        ("Priya Raman", "Did Raman call?"),
        ("Mark Miller", "Mark the day: when is it?"),
        ("Will Smith", "Will it rain?"),
        ("Will Smith", "when will it rain"),
        ("Jordan River", "Where is Jordan?"),
        ("Priya Holdings Ltd.", "Did Priya call?"),
        ("The House of Priya", "Did Priya call?"),
    ],
)
def test_nobody_else_is_found_by_it(db: WorldDB, name: str, question: str) -> None:
    named(db, name)
    assert leads_to(db, question) == []


@pytest.mark.parametrize("type_", ["Topic", "Event", "Scope"])
def test_only_somebody_has_a_first_name(db: WorldDB, type_: str) -> None:
    named(db, "Priya Raman", type=type_)
    assert leads_to(db, "Did Priya call?") == []


def test_of_two_with_one_first_name_none_is_found(db: WorldDB) -> None:
    named(db, "Priya Raman")
    _, said = named(db, "Priya Shah")
    assert leads_to(db, "Did Priya call?") == []
    assert leads_to(db, "Did Priya Shah call?") == [said]


def test_two_that_were_accepted_as_one_are_one(db: WorldDB) -> None:
    one, first = named(db, "Priya Raman")
    other, second = named(db, "Priya Raman-Shah")
    same = edge(db, "same_as", one, other)
    assert leads_to(db, "Did Priya call?") == []
    db.accept_merge(same)
    assert set(leads_to(db, "Did Priya call?")) == {first, second}


def test_who_is_in_another_world_does_not_count(db: WorldDB) -> None:
    one, other = (fact(db, "", type="Scope", name=name) for name in ("anna", "ben"))
    _, said = named(db, "Priya Raman", parent=one)
    named(db, "Priya Shah", parent=other)
    assert leads_to(db, "Did Priya call?", scope=one) == [said]
    assert leads_to(db, "Did Priya call?") == []


def test_who_is_no_more_does_not_count(db: WorldDB) -> None:
    _, said = named(db, "Priya Raman")
    shah, _ = named(db, "Priya Shah")
    assert leads_to(db, "Did Priya call?") == []
    before = db.log(limit=1, newest_first=True)[0].time
    with db.transaction() as tx:
        tx.retire(shah)
    assert leads_to(db, "Did Priya call?") == [said]
    assert leads_to(db, "Did Priya call?", as_of=AsOf(known=before)) == []


def test_one_who_is_called_so_comes_first(db: WorldDB) -> None:
    named(db, "Priya Raman")
    _, said = named(db, "Priya")
    assert leads_to(db, "Did Priya call?") == [said]

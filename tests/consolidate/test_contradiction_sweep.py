"""Contradictions: more than one target where an edge type allows one, and what is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consolidate.stage import open_store
from worlddb import Edge, Id, Query, WorldDB, WriteContext


class Quiet:
    """An edge type that does nothing."""

    pierces = False

    def __init__(self, type_: str) -> None:
        self.type = type_

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        pass

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        pass

    def on_query_rewrite(self, query: Query) -> Query:
        return query


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        db.ontology().register(Quiet("lives_in"), functional=True)
        db.ontology().register(Quiet("visited"))
        yield db


def people(db: WorldDB, *names: str, parent: Id | None = None) -> list[Id]:
    with db.transaction() as tx:
        return [tx.create_node(type="Entity", name=name, parent=parent).id for name in names]


def say(db: WorldDB, type_: str, source: Id, target: Id, **times: str) -> Edge:
    with db.transaction() as tx:
        return tx.write_edge(type_, source, target, **times)  # type: ignore[arg-type]


def test_two_homes_contradict_each_other(db: WorldDB) -> None:
    ada, paris, rome = people(db, "Ada", "Paris", "Rome")
    say(db, "lives_in", ada, paris)
    assert db.consolidate().contradictions == ()
    say(db, "lives_in", ada, rome)
    planned = db.consolidate(dry_run=True)
    assert db.conflicts() == []
    (told,) = db.consolidate().contradictions
    assert [(it.left, it.right) for it in planned.contradictions] == [(rome, paris)]
    assert (told.type, told.source, told.left, told.right) == ("lives_in", ada, rome, paris)
    (conflict,) = db.conflicts()
    assert (conflict.edge, conflict.left, conflict.right) == (told.edge, rome, paris)
    assert "lives_in of Ada" in conflict.reason
    assert [it.valid_to for it in map(db.get, (ada, paris, rome))] == [None] * 3
    assert db.consolidate().commits == ()
    assert db.check() == []


def test_every_pair_of_three_is_flagged_in_bounded_runs(db: WorldDB) -> None:
    ada, *homes = people(db, "Ada", "Paris", "Rome", "Oslo")
    for home in homes:
        say(db, "lives_in", ada, home)
    report = db.consolidate(edges_max=2)
    assert (len(report.contradictions), report.edges_left) == (2, True)
    assert len(db.consolidate(edges_max=2).contradictions) == 1
    assert {frozenset((it.left, it.right)) for it in db.conflicts()} == {
        frozenset(pair)
        for pair in ((homes[0], homes[1]), (homes[0], homes[2]), (homes[1], homes[2]))
    }


def test_a_type_that_allows_many_has_no_contradictions(db: WorldDB) -> None:
    ada, paris, rome = people(db, "Ada", "Paris", "Rome")
    say(db, "visited", ada, paris)
    say(db, "visited", ada, rome)
    assert db.consolidate().contradictions == ()


def test_one_after_the_other_is_no_contradiction(db: WorldDB) -> None:
    ada, paris, rome = people(db, "Ada", "Paris", "Rome")
    year = "{}-01-01T00:00:00+00:00".format
    say(db, "lives_in", ada, paris, valid_from=year(2027), valid_to=year(2028))
    say(db, "lives_in", ada, rome, valid_from=year(2028))
    assert db.consolidate().contradictions == ()


def test_the_same_home_twice_or_under_two_accepted_names_is_no_contradiction(db: WorldDB) -> None:
    ada, york, new_york = people(db, "Ada", "NYC", "New York")
    say(db, "lives_in", ada, york)
    say(db, "lives_in", ada, york, valid_from="2025-01-01T00:00:00+00:00")
    same = say(db, "same_as", york, new_york)
    say(db, "lives_in", ada, new_york)
    db.accept_merge(same.id)
    assert db.consolidate().contradictions == ()
    db.undo_merge(same.id)
    assert len(db.consolidate().contradictions) == 1


def test_what_was_settled_is_not_raised_again(db: WorldDB) -> None:
    ada, paris, rome = people(db, "Ada", "Paris", "Rome")
    say(db, "lives_in", ada, paris)
    say(db, "lives_in", ada, rome)
    db.consolidate()
    with db.transaction() as tx:
        tx.delete_edge(db.conflicts()[0].edge)
    assert db.consolidate().contradictions == ()
    assert db.conflicts() == []


def test_what_somebody_recorded_already_is_not_recorded_twice(db: WorldDB) -> None:
    ada, paris, rome = people(db, "Ada", "Paris", "Rome")
    say(db, "lives_in", ada, paris)
    say(db, "lives_in", ada, rome)
    say(db, "contradicts", paris, rome)
    assert db.consolidate().contradictions == ()


@pytest.mark.parametrize("what", ["target", "edge"])
def test_what_has_ended_contradicts_nothing(db: WorldDB, what: str) -> None:
    ada, paris, rome = people(db, "Ada", "Paris", "Rome")
    edge = say(db, "lives_in", ada, paris)
    say(db, "lives_in", ada, rome)
    with db.transaction() as tx:
        if what == "target":
            tx.retire(paris)
        else:
            tx.delete_edge(edge.id)
    assert db.consolidate().contradictions == ()


def test_a_registration_counts_where_it_was_made_and_inner_ones_win(db: WorldDB) -> None:
    (strict,) = people(db, "strict world")
    (loose,) = people(db, "loose world", parent=strict)
    db.ontology(strict).register(Quiet("visited"), functional=True)
    db.ontology(loose).register(Quiet("visited"), functional=False)
    paris, rome = people(db, "Paris", "Rome")
    for home in (None, strict, loose):
        (ada,) = people(db, f"Ada in {home}", parent=home)
        say(db, "visited", ada, paris)
        say(db, "visited", ada, rome)
    (told,) = db.consolidate().contradictions
    assert db.get(told.source).parent == strict


def test_the_values_of_nodes_accepted_as_one_are_compared(db: WorldDB) -> None:
    quinn, quin, rome, oslo = people(db, "Quinn", "Quin", "Rome", "Oslo")
    say(db, "lives_in", quinn, rome)
    say(db, "lives_in", quin, oslo)
    proposal = say(db, "same_as", quinn, quin)
    assert db.consolidate(only="conflicts").contradictions == ()
    db.accept_merge(proposal.id)
    (told,) = db.consolidate(only="conflicts").contradictions
    assert {told.left, told.right} == {rome, oslo}

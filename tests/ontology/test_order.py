"""causes and precedes: acyclic, in time, and read in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from ontology.handler_stage import fact, facts, names, open_store, refused, write
from worlddb import EdgeDraft, WorldDB


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


@pytest.fixture(params=["causes", "precedes"])
def type_(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_effect_may_begin_with_its_cause_or_after_it(db: WorldDB, type_: str) -> None:
    with db.transaction() as tx:
        one, two, three = fact(tx, "a", 1), fact(tx, "b", 1), fact(tx, "c", 2)
        tx.write_edge(type_, one, two)
        tx.write_edge(type_, two, three)
    assert len(db.edges(two, "both")) == 2


def test_an_effect_before_its_cause_is_refused(db: WorldDB, type_: str) -> None:
    early, late = facts(db, "ab")
    with refused(db, f"{type_}: the target begins before the source"):
        write(db, type_, late, early)


def test_valid_time_decides_and_not_the_time_of_writing(db: WorldDB, type_: str) -> None:
    with db.transaction() as tx:
        late = tx.create_node(type="Event", name="late", valid_from="2030-01-01T00:00:00Z").id
        early = tx.create_node(type="Event", name="early", valid_from="2020-01-01T00:00:00Z").id
    write(db, type_, early, late)
    with refused(db):
        write(db, type_, late, early)


def test_circles_are_refused(db: WorldDB, type_: str) -> None:
    with db.transaction() as tx:
        a, b, c = (fact(tx, name, 1) for name in "abc")
    with refused(db, f"{type_}: this edge would close a circle"):
        write(db, type_, a, a)
    write(db, type_, a, b)
    write(db, type_, b, c)
    for source, target in ((b, a), (c, a), (c, b)):
        with refused(db, "circle"):
            write(db, type_, source, target)
    with refused(db), db.transaction() as tx:
        drafts = [EdgeDraft(source=s, target=t, metadata={"n": 1}) for s, t in ((a, b), (c, a))]
        tx.write_edges(type_, drafts)


def test_the_two_orders_do_not_mix(db: WorldDB) -> None:
    with db.transaction() as tx:
        a, b = fact(tx, "a", 1), fact(tx, "b", 1)
        tx.write_edge("causes", a, b)
        tx.write_edge("precedes", b, a)
    assert db.check() == []


def test_a_long_chain_is_checked_without_recursion(db: WorldDB, type_: str) -> None:
    with db.transaction() as tx:
        chain = [fact(tx, f"n{number}", 1) for number in range(1_500)]
        for source, target in pairwise(chain):
            tx.write_edge(type_, source, target)
    with refused(db, "circle"):
        write(db, type_, chain[-1], chain[0])


def test_a_traversal_along_the_order_answers_in_the_order_of_time(db: WorldDB, type_: str) -> None:
    letters = "jbhdcfaige"
    nodes = facts(db, letters)  # Each a day after the one before.
    with db.transaction() as tx:
        for source, target in pairwise(nodes):
            tx.write_edge(type_, source, target)
            tx.write_edge("refers_to", source, target)
    query = db.query().seeds(nodes[0])
    assert names(query.traverse(type_, hops=20).execute()) == list(letters[1:])
    assert names(query.traverse(["refers_to", type_], hops=20).execute()) == list(letters[1:])
    assert names(query.traverse(type_, hops=20).limit(3).execute()) == list(letters[1:4])
    back = db.query().seeds(nodes[-1]).traverse(type_, "in", hops=20).execute()
    assert names(back) == list(letters[:-1])
    others = query.traverse("refers_to", hops=20).execute()
    assert [node.id for node in others] == sorted(nodes[1:])


def test_equal_times_are_ordered_by_id(db: WorldDB, type_: str) -> None:
    with db.transaction() as tx:
        start = fact(tx, "start", 1)
        ends = [fact(tx, f"n{number}", 2) for number in range(12)]
        tx.write_edges(type_, [EdgeDraft(source=start, target=end) for end in ends])
    found = db.query().seeds(start).traverse(type_).execute()
    assert [node.id for node in found] == sorted(ends)


def test_the_order_stays_when_an_edge_goes(db: WorldDB, type_: str) -> None:
    a, b, c = facts(db, "abc")
    edge = write(db, type_, a, b)
    write(db, type_, b, c)
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
    assert names(db.query().seeds(a).traverse(type_, hops=5).execute()) == []
    then = db.log()[-2].time
    found = db.query().seeds(a).as_of(known=then).traverse(type_, hops=5).execute()
    assert names(found) == ["b", "c"]

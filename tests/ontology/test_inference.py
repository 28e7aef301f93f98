"""implies and derived_from; and what every type that can be a premise does when a premise goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ontology.handler_stage import day, delete, fact, facts, names, open_store, refused, write
from worlddb import AsOf, Edge, EdgeDraft, Id, WorldDB

PREMISES = ("implies", "derived_from", "instance_of", "subtype_of", "causes", "precedes")


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def inferred(db: WorldDB, type_: str, source: Id, target: Id, premises: Sequence[Edge]) -> Edge:
    metadata = {"inferred": True, "premises": [str(premise.id) for premise in premises]}
    return write(db, type_, source, target, metadata=metadata)


def alive(db: WorldDB, *edges: Edge) -> list[bool]:
    return [db.get_edge(edge.id).known_to is None for edge in edges]


# -- on_insert -------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["implies", "derived_from"])
def test_circular_reasoning_is_refused(db: WorldDB, type_: str) -> None:
    a, b, c = facts(db, "abc")
    with refused(db, f"{type_}: this edge would close a circle"):
        write(db, type_, a, a)
    write(db, type_, a, b)
    write(db, type_, b, c)
    for source, target in ((b, a), (c, a), (c, b)):
        with refused(db, "circle"):
            write(db, type_, source, target)


def test_an_implication_is_kept_and_changes_no_node(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    before = db.get(a), db.get(b)
    write(db, "implies", b, a)  # In any order of time.
    assert (db.get(a), db.get(b)) == before
    assert [edge.type for edge in db.edges(b)] == ["implies"]
    assert names(db.query().seeds(b).traverse("implies").execute()) == ["a"]


def test_a_derivation_can_be_followed_to_where_it_comes_from(db: WorldDB) -> None:
    detail, deeper = facts(db, "ab")
    with db.transaction() as tx:
        top = tx.create_node(type="Summary", name="top", created_at=day(9)).id
        tx.write_edge("derived_from", top, detail)
        tx.write_edge("derived_from", detail, deeper)
    found = db.query().seeds(top).traverse("derived_from", hops=9).execute()
    assert set(names(found)) == {"a", "b"}


def test_what_is_derived_comes_from_where_its_details_come_from(db: WorldDB) -> None:
    with db.transaction() as tx:
        first = tx.create_node(type="Fact", name="first", source=["a diary", "a letter"]).id
        second = tx.create_node(type="Fact", name="second", source="a letter").id
        third = tx.create_node(type="Fact", name="third").id
        one, many = (
            tx.create_node(type="Summary", name=name, source=source).id
            for name, source in (("one", "me"), ("many", "a program"))
        )
    write(db, "derived_from", one, first)
    write(db, "derived_from", one, second)
    assert db.get(one).provenance == ("me", "a diary", "a letter")
    before = db.log()[-1].time
    with db.transaction() as tx:
        drafts = [EdgeDraft(source=many, target=it) for it in (second, third, first)]
        tx.write_edges("derived_from", drafts)
    assert db.get(many).provenance == ("a program", "a letter", "a diary")
    assert db.get(many, as_of=AsOf(known=before)).provenance == ("a program",)
    assert db.get(first).provenance == ("a diary", "a letter")
    write(db, "derived_from", one, many)
    assert db.get(one).provenance == ("me", "a diary", "a letter")
    assert db.check() == []
    with open_store() as copy:
        copy.replay(db.export())
        assert copy.get(many) == db.get(many)


# -- on_delete: what rests on a premise falls with it ----------------------------------------------


@pytest.mark.parametrize("type_", PREMISES)
@pytest.mark.parametrize("which", [0, 1])
def test_an_inferred_edge_falls_with_either_premise(db: WorldDB, type_: str, which: int) -> None:
    a, b, c = facts(db, "abc")
    premises = write(db, type_, a, b), write(db, type_, b, c)
    rest = inferred(db, type_, a, c, premises)
    before = db.log()[-1].time
    delete(db, premises[which])
    assert alive(db, premises[1 - which], rest) == [True, False]
    assert db.get_edge(rest.id).known_to == db.log()[-1].time
    assert rest.id in {edge.id for edge in db.edges(a, as_of=AsOf(known=before))}
    assert db.check() == []


@pytest.mark.parametrize("type_", PREMISES)
def test_an_edge_that_was_not_inferred_stays(db: WorldDB, type_: str) -> None:
    a, b, c = facts(db, "abc")
    one, two = write(db, type_, a, b), write(db, type_, b, c)
    said = write(db, type_, a, c, metadata={"premises": [str(one.id)]})
    other = inferred(db, type_, a, c, [two])
    delete(db, one)
    assert alive(db, two, said, other) == [True, True, True]


def test_what_rests_on_something_inferred_falls_too(db: WorldDB) -> None:
    a, b, c, d, e = facts(db, "abcde")
    ab, bc = write(db, "causes", a, b), write(db, "causes", b, c)
    cd, de = write(db, "causes", c, d), write(db, "causes", d, e)
    ac = inferred(db, "causes", a, c, [ab, bc])
    ad = inferred(db, "causes", a, d, [ac, cd])
    ae = inferred(db, "causes", a, e, [ad, de])
    ce = inferred(db, "causes", c, e, [cd, de])
    delete(db, ab)
    assert alive(db, bc, cd, de, ce) == [True] * 4
    assert alive(db, ac, ad, ae) == [False] * 3
    assert db.check() == []


def test_an_inference_from_a_long_chain_falls_with_a_link_in_its_middle(db: WorldDB) -> None:
    """It shares no end with that link, and rests on it all the same."""
    a, b, c, d = facts(db, "abcd")
    chain = [write(db, "causes", one, two) for one, two in ((a, b), (b, c), (c, d))]
    rest = inferred(db, "causes", a, d, chain)
    delete(db, chain[1])
    assert alive(db, rest) == [False]


def test_an_inference_that_names_a_premise_and_what_follows_from_it_falls_once(
    db: WorldDB,
) -> None:
    a, b, c, d = facts(db, "abcd")
    ab, bc, cd = (write(db, "causes", one, two) for one, two in ((a, b), (b, c), (c, d)))
    ac = inferred(db, "causes", a, c, [ab, bc])
    ad = inferred(db, "causes", a, d, [ab, bc, ac, cd])
    delete(db, ab)
    assert alive(db, ac, ad) == [False, False]
    assert db.check() == []


def test_an_inference_of_another_type_falls_with_its_premise(db: WorldDB) -> None:
    """Rex is a dog, dogs are animals, so Rex is an animal: that rests on both."""
    rex, dog, animal = facts(db, "rda")
    is_dog, are_animals = write(db, "instance_of", rex, dog), write(db, "subtype_of", dog, animal)
    is_animal = inferred(db, "instance_of", rex, animal, [is_dog, are_animals])
    delete(db, are_animals)
    assert alive(db, is_dog, is_animal) == [True, False]


@pytest.mark.parametrize("premises", [None, 5, True, {"a": 1}, [None], [5, ["x"]], "text"])
def test_strange_premises_do_not_stand_in_the_way_of_deleting(db: WorldDB, premises: Any) -> None:
    a, b, c = facts(db, "abc")
    one = write(db, "causes", a, b)
    odd = write(db, "causes", a, c, metadata={"inferred": True, "premises": premises})
    delete(db, one)
    assert alive(db, one, odd) == [False, True]
    assert db.check() == []


# -- on_query_rewrite: summaries stand for details -------------------------------------------------


def test_a_summary_stands_for_its_details_when_preferred(db: WorldDB) -> None:
    a, b, other = facts(db, "abx")
    with db.transaction() as tx:
        summary = tx.create_node(type="Summary", name="sum", created_at=day(9)).id
        for detail in (a, b):
            tx.write_edge("derived_from", summary, detail)
    assert set(names(db.query().execute())) == {"a", "b", "x", "sum"}
    preferred = db.query().prefer_summaries()
    assert set(names(preferred.execute())) == {"x", "sum"}
    found = preferred.seeds([a, other]).execute()
    assert set(names(found)) == {"x", "sum"}
    assert {edge.target for edge in found.edges} == {a}
    assert set(names(preferred.text("a b").execute())) == {"sum"}
    assert set(names(preferred.prefer_summaries(False).seeds([a]).execute())) == {"a"}


def test_only_a_summary_stands_for_what_it_was_derived_from(db: WorldDB) -> None:
    detail, fact_of_it = facts(db, "ab")
    write(db, "derived_from", fact_of_it, detail)
    assert set(names(db.query().prefer_summaries().execute())) == {"a", "b"}


def test_a_summary_of_summaries_stands_for_all_of_them(db: WorldDB) -> None:
    (detail,) = facts(db, "a")
    with db.transaction() as tx:
        low = tx.create_node(type="Summary", name="low", created_at=day(9)).id
        high = tx.create_node(type="Summary", name="high", created_at=day(10)).id
        tx.write_edge("derived_from", low, detail)
        tx.write_edge("derived_from", high, low)
    assert names(db.query().prefer_summaries().execute()) == ["high"]


def test_a_summary_that_has_ended_or_lies_outside_stands_for_nothing(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = fact(tx, "world")
        detail = fact(tx, "detail", parent=world)
        outside = tx.create_node(type="Summary", name="outside", created_at=day(9)).id
        ended = tx.create_node(
            type="Summary", name="ended", created_at=day(9), valid_to=day(10), parent=world
        ).id
        tx.write_edge("derived_from", outside, detail)
        tx.write_edge("derived_from", ended, detail)
    query = db.query().in_world(world).prefer_summaries()
    assert names(query.execute()) == ["detail"]
    assert query.execute().edges == ()


def test_a_summary_stands_for_details_only_while_its_edge_holds(db: WorldDB) -> None:
    (detail,) = facts(db, "a")
    with db.transaction() as tx:
        summary = tx.create_node(type="Summary", name="sum", created_at=day(9)).id
        edge = tx.write_edge("derived_from", summary, detail)
    then = db.log()[-1].time
    delete(db, edge)
    assert set(names(db.query().prefer_summaries().execute())) == {"a", "sum"}
    before = db.query().prefer_summaries().as_of(known=then).execute()
    assert names(before) == ["sum"]

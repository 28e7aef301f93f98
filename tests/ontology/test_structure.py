"""contains and refers_to: what is inside a world, and the one way out of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import worlddb
from ontology.handler_stage import (
    SECOND,
    Clock,
    Quiet,
    day,
    delete,
    fact,
    facts,
    names,
    open_store,
    refused,
    write,
)
from worlddb import AsOf, EdgeDraft, Id, WorldDB


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def inside(db: WorldDB, world: Id) -> set[str]:
    return set(names(db.query().in_world(world).execute()))


# -- contains: on_insert ---------------------------------------------------------------------------


def test_contains_gives_a_node_of_the_root_world_its_parent(db: WorldDB) -> None:
    world, node = facts(db, "wx")
    write(db, "contains", world, node)
    assert db.get(node).parent == world
    assert names(db.children(world)) == ["x"]
    assert names(db.children()) == ["w"]
    assert db.check() == []


def test_a_second_contains_is_a_membership_and_moves_nothing(db: WorldDB) -> None:
    first, second, node = facts(db, "abx")
    write(db, "contains", first, node)
    write(db, "contains", second, node)
    assert db.get(node).parent == first
    assert db.children(second) == []
    assert inside(db, first) == inside(db, second) == {"x"}


def test_contains_by_the_root_world_leaves_a_node_where_it_is(db: WorldDB) -> None:
    (node,) = facts(db, "x")
    edge = write(db, "contains", db.root_id, node)
    assert db.get(node).parent == db.root_id
    delete(db, edge)
    assert db.get(node).parent == db.root_id
    assert db.check() == []


def test_a_world_cannot_contain_itself(db: WorldDB) -> None:
    outer, middle, inner, other = facts(db, "abcd")
    write(db, "contains", outer, middle)
    write(db, "contains", middle, inner)
    write(db, "contains", inner, other)
    for source, target in ((outer, outer), (inner, inner), (middle, outer), (inner, outer)):
        with refused(db, "contains: a world cannot contain itself"):
            write(db, "contains", source, target)


def test_a_circle_through_memberships_is_refused(db: WorldDB) -> None:
    one, two, three = facts(db, "abc")
    with db.transaction() as tx:
        kept = fact(tx, "kept", parent=one)
        held = fact(tx, "held", parent=two)
        tx.write_edge("contains", two, kept)  # Membership.
        tx.write_edge("contains", three, held)
    for source, target in ((kept, two), (held, three), (kept, one)):
        with refused(db, "cannot contain itself"):
            write(db, "contains", source, target)


def test_nothing_contains_the_root_world(db: WorldDB) -> None:
    (node,) = facts(db, "x")
    with refused(db, "cannot contain itself"):
        write(db, "contains", node, db.root_id)


def test_a_circle_within_one_batch_is_refused(db: WorldDB) -> None:
    one, two, three = facts(db, "abc")
    drafts = [EdgeDraft(source=s, target=t) for s, t in ((one, two), (two, three), (three, one))]
    with refused(db, "cannot contain itself"), db.transaction() as tx:
        tx.write_edges("contains", drafts)


def test_a_deleted_membership_closes_no_circle(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = write(db, "contains", one, two)
    delete(db, edge)
    write(db, "contains", two, one)
    assert db.get(one).parent == two
    assert db.check() == []


def test_a_world_moves_with_everything_in_it(db: WorldDB) -> None:
    (world,) = facts(db, "w")
    with db.transaction() as tx:
        box = fact(tx, "box")
        item = fact(tx, "item", parent=box)
        tx.write_edge("refers_to", item, box)
        tx.write_edge("implies", box, item)
    before = db.get(box).state
    write(db, "contains", world, box)
    assert db.get(box).state == before
    assert inside(db, world) == {"box", "item"}
    assert db.check() == []


# -- contains: on_delete ---------------------------------------------------------------------------


def test_deleting_the_edge_a_node_lives_by_moves_it_back_to_the_root(db: WorldDB) -> None:
    world, node = facts(db, "wx")
    before = db.root_state
    edge = write(db, "contains", world, node)
    then = db.log()[-1].time
    delete(db, edge)
    assert db.get(node).parent == db.root_id
    assert db.root_state == before
    assert db.get(world).state == world
    assert db.get(node, as_of=AsOf(known=then)).parent == world
    assert names(db.children(world, as_of=AsOf(known=then))) == ["x"]
    assert db.check() == []


def test_deleting_a_membership_ends_it_and_moves_nothing(db: WorldDB) -> None:
    first, second, node = facts(db, "abx")
    write(db, "contains", first, node)
    edge = write(db, "contains", second, node)
    then = db.log()[-1].time
    delete(db, edge)
    assert db.get(node).parent == first
    assert inside(db, first) == {"x"}
    assert inside(db, second) == set()
    assert set(names(db.query().in_world(second).as_of(known=then).execute())) == {"x"}


def test_a_node_born_in_a_world_stays_there_when_a_membership_of_it_ends(db: WorldDB) -> None:
    """It never lived there through the edge, so the edge's end does not move it."""
    (world,) = facts(db, "w")
    with db.transaction() as tx:
        node = fact(tx, "born here", parent=world)
    edge = write(db, "contains", world, node)
    delete(db, edge)
    assert db.get(node).parent == world


def test_a_node_stays_while_another_edge_says_that_it_lives_there(db: WorldDB) -> None:
    world, node = facts(db, "wx")
    first = write(db, "contains", world, node)
    again = write(db, "contains", world, node, metadata={"said": "again"})
    delete(db, again)
    assert db.get(node).parent == world
    delete(db, first)
    assert db.get(node).parent == db.root_id


def test_a_node_can_be_put_into_a_world_again_and_again(db: WorldDB) -> None:
    world, node = facts(db, "wx")
    empty, states = db.root_state, set()
    for _ in range(3):
        edge = write(db, "contains", world, node)
        states.add(db.root_state)
        delete(db, edge)
        assert db.root_state == empty
    assert len(states) == 3  # Each time it is a new edge, of a further generation.
    assert db.check() == []


# -- contains: on_query_rewrite --------------------------------------------------------------------


def test_in_world_widens_to_members_and_to_what_is_inside_them(db: WorldDB) -> None:
    (world,) = facts(db, "w")
    with db.transaction() as tx:
        home = fact(tx, "home")
        box = fact(tx, "box", parent=home)
        fact(tx, "item", parent=box)
        inner = fact(tx, "inner", parent=world)
        tx.write_edge("contains", inner, box)
    assert inside(db, world) == {"inner", "box", "item"}
    assert inside(db, inner) == {"box", "item"}
    assert inside(db, home) == {"box", "item"}
    assert inside(db, box) == {"item"}


def test_a_world_is_not_inside_itself(db: WorldDB) -> None:
    (world,) = facts(db, "w")
    with db.transaction() as tx:
        fact(tx, "x", parent=world)
    assert inside(db, world) == {"x"}
    assert inside(db, db.root_id) == {"w", "x"}


def test_a_membership_holds_in_its_own_time(db: WorldDB) -> None:
    world, node = facts(db, "wx")
    home, *_ = facts(db, "h")
    write(db, "contains", home, node)
    write(db, "contains", world, node, valid_from=day(10), valid_to=day(20))
    assert inside(db, world) == set()
    for at, seen in ((9, set()), (10, {"x"}), (19, {"x"}), (20, set())):
        found = db.query().in_world(world).as_of(valid=day(at)).execute()
        assert set(names(found)) == seen, at


def test_membership_counts_for_seeds_and_text_too(db: WorldDB) -> None:
    world, node, other = facts(db, "wxy")
    home, *_ = facts(db, "h")
    write(db, "contains", home, node)
    write(db, "contains", world, node)
    assert names(db.query().in_world(world).seeds([node, other]).execute()) == ["x"]
    assert names(db.query().in_world(world).text("x y").execute()) == ["x"]


# -- refers_to -------------------------------------------------------------------------------------


def test_refers_to_may_cross_worlds_and_changes_neither_end(db: WorldDB) -> None:
    with db.transaction() as tx:
        here, there = fact(tx, "here"), fact(tx, "there")
        one, two = fact(tx, "one", parent=here), fact(tx, "two", parent=there)
    before = db.get(two)
    edge = write(db, "refers_to", one, two)
    assert db.get(two) == before
    assert db.get(there).state != there
    assert db.get(here).state != here
    delete(db, edge)
    assert db.get(two) == before
    assert db.edges(one) == []
    assert db.get_edge(edge.id).known_to == db.log()[-1].time


def test_a_node_may_refer_to_itself_and_in_circles(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    for source, target in ((one, one), (one, two), (two, one)):
        write(db, "refers_to", source, target)
    assert names(db.query().seeds(one).traverse("refers_to", hops=5).execute()) == sorted(
        ["a", "b"], key=lambda name: {"a": one, "b": two}[name]
    )
    assert db.check() == []


def test_only_refers_to_leaves_the_world(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = fact(tx, "world")
        start = fact(tx, "start", parent=world)
        near = fact(tx, "near", at=2, parent=world)
        far, beyond = fact(tx, "far", at=3), fact(tx, "beyond", at=4)
        for type_ in ("refers_to", "implies", "causes", "precedes", "derived_from"):
            tx.write_edge(type_, start, near)
            tx.write_edge(type_, start, far)
            tx.write_edge(type_, far, beyond)
    query = db.query().in_world(world).seeds(start)
    for type_ in ("implies", "causes", "precedes", "derived_from"):
        found = query.traverse(type_, hops=3).execute()
        assert names(found) == ["near"], type_
        assert {(edge.source, edge.target) for edge in found.edges} == {(start, near)}
    found = query.traverse("refers_to", hops=3).execute()
    assert set(names(found)) == {"near", "far", "beyond"}
    back = db.query().in_world(world).seeds(near).traverse("refers_to", "in").execute()
    assert names(back) == ["start"]


def test_after_leaving_only_refers_to_goes_on(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = fact(tx, "world")
        start = fact(tx, "start", parent=world)
        far, beyond = fact(tx, "far", at=2), fact(tx, "beyond", at=3)
        tx.write_edge("refers_to", start, far)
        tx.write_edge("implies", far, beyond)
    query = db.query().in_world(world).seeds(start)
    assert names(query.traverse(["refers_to", "implies"], hops=4).execute()) == ["far"]
    assert names(query.traverse("refers_to").traverse("implies").execute()) == []
    # Without a world there is nothing to leave.
    free = db.query().seeds(start).traverse(["refers_to", "implies"], hops=4).execute()
    assert set(names(free)) == {"far", "beyond"}


@pytest.mark.parametrize(("begins", "ends"), [(2020, 2021), (2040, None)])
def test_a_contains_of_another_time_is_a_membership_and_no_home(
    begins: int, ends: int | None
) -> None:
    db = open_store()
    with db.transaction() as tx:
        early = "2019-01-01T00:00:00Z"
        world = tx.create_node(type="Topic", name="W", created_at=early).id
        node = tx.create_node(type="Fact", name="n", content="walrus", created_at=early).id
        until = None if ends is None else f"{ends}-01-01T00:00:00Z"
        edge = tx.write_edge(
            "contains", world, node, valid_from=f"{begins}-01-01T00:00:00Z", valid_to=until
        )
    assert db.get(node).parent == db.root_id
    assert db.query().in_world(world).execute().ids == set()
    assert not db.recall("walrus", scope=world).hits
    then = db.query().in_world(world).as_of(valid=f"{begins}-06-01T00:00:00Z").execute()
    assert then.ids == {node}
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
    assert db.check() == []


def test_a_held_world_sees_a_membership_begin() -> None:
    clock = Clock()
    with worlddb.open(":memory:", clock=clock, embedder="none") as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Topic", name="W").id
            node = tx.create_node(type="Fact", name="n", content="walrus").id
            soon = datetime.fromtimestamp(clock.now / 1e6 + 3_600, UTC)
            tx.write_edge("contains", world, node, valid_from=soon)
        assert not db.recall("walrus", scope=world).hits
        clock.now += 2 * 3_600 * SECOND
        assert [hit.node.id for hit in db.recall("walrus", scope=world)] == [node]


def test_a_node_leaves_its_home_when_a_handler_ends_the_contains() -> None:
    with open_store() as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Topic", name="W", created_at=day(1)).id
            node = fact(tx, "n")
            home = tx.write_edge("contains", world, node)
        assert db.get(node).parent == world
        leaves = Quiet("leaves", lambda ctx, edge: ctx.close_validity(home.id, at=edge.valid_from))
        db.ontology().register(leaves)
        write(db, "leaves", node, world, valid_from=day(9))
        assert db.get(node).parent == db.root_id
        assert db.query().in_world(world).execute().ids == set()
        assert db.query().in_world(world).as_of(valid=day(5)).execute().ids == {node}
        assert db.check() == []

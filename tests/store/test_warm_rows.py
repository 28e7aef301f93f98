"""What a writer remembers of nodes from one commit to the next holds only while it is so."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb.model.inputs import ScopeName


@pytest.fixture
def two(path: Path) -> Any:
    """Yield two stores on one file, and a node that the first has read for its next commits."""
    with worlddb.open(path) as one, worlddb.open(path) as other:
        with one.transaction() as tx:
            node = tx.create_node(type="Fact", name="Ada", content="likes tea", aliases=["A."])
        look(one, node.id)
        yield one, other, node.id


def look(db: worlddb.WorldDB, ident: worlddb.Id) -> tuple[Any, list[str]]:
    """Return the body and the aliases of a node as a transaction of this store sees them."""
    with db.transaction() as tx:
        tx.create_node(type="Turn")
        row = tx.reader.node_row(ident)
        assert row is not None
        (body,) = tx.reader.bodies([row])
        aliases = [alias for _, alias in tx.reader.aliases([row])]
        tx.reader.lookups.attributes([row])
    return body, aliases


def test_a_node_that_another_writer_changed_is_read_again(two: Any) -> None:
    one, other, ident = two
    with other.transaction() as tx:
        tx.retire(ident)
        tx.add_aliases(ident, ["Countess"])
    body, aliases = look(one, ident)
    assert body.valid_to is not None
    assert aliases == ["A.", "Countess"]


def test_a_node_that_this_writer_changed_is_read_again(two: Any) -> None:
    one, _, ident = two
    with one.transaction() as tx:
        tx.add_aliases(ident, ["Countess"])
        tx.retire(ident)
    body, aliases = look(one, ident)
    assert body.valid_to is not None
    assert aliases == ["A.", "Countess"]
    with one.transaction() as tx:
        tx.erase([ident])
    body, aliases = look(one, ident)
    assert (body.name, body.content) == ("", "")
    assert "A." not in aliases


def test_what_a_failed_transaction_read_is_forgotten(two: Any) -> None:
    one, _, ident = two
    with suppress(ZeroDivisionError), one.transaction() as tx:
        tx.retire(ident)
        assert next(tx.reader.bodies([tx.reader.node_row(ident)])).valid_to is not None
        raise ZeroDivisionError
    assert look(one, ident)[0].valid_to is None


def test_an_id_that_no_node_had_is_found_once_there_is_one(two: Any) -> None:
    one, _, _ = two
    scope = ScopeName("user", "ada").id(0)
    with one.transaction() as tx:
        tx.create_node(type="Turn")
        assert tx.reader.node_row(scope) is None
    with worlddb.Memory(one) as memory:
        memory.write("I like tea.", user_id="ada")
    with one.transaction() as tx:
        tx.create_node(type="Turn")
        assert tx.reader.node_row(scope) is not None
    assert one.check() == []


def test_a_moved_node_and_a_new_state_are_seen_by_the_next_commit(two: Any) -> None:
    one, _, ident = two
    with one.transaction() as tx:
        world = tx.create_node(type="Topic", name="people")
        tx.create_node(type="Turn", parent=world.id)
    with one.transaction() as tx:
        tx.write_edge("contains", world.id, ident)
        tx.create_node(type="Turn", parent=world.id)
    with one.transaction() as tx:
        tx.create_node(type="Turn", parent=world.id)
        tx.write_edge("refers_to", ident, world.id)
    assert look(one, ident)[0].parent is not None
    assert one.get(ident).parent == world.id
    assert one.check() == []


@pytest.mark.parametrize("how", ["a member", "a node inside a memory", "a node that moved in"])
def test_a_name_that_came_from_elsewhere_is_found_at_once(path: Path, how: str) -> None:
    with worlddb.Memory(path, recluster="off") as memory:
        first = memory.write("Nora Quist likes tea.", user_id="ada")
        memory.write("Nora Quist likes figs.", user_id="ada")  # By now the world is known as plain.
        theirs = memory.write("Nora Quist likes tea.", user_id="bob")
        ours, foreign = (memory.db.get(one.id).parent for one in (first, theirs))
        with memory.db.transaction() as tx:
            place = {"a member": foreign, "a node inside a memory": first.id}.get(how)
            named = tx.create_node(type="Entity", name="Omar Velt", parent=place)
            if place is not first.id:
                assert ours is not None
                tx.write_edge("contains", ours, named.id)
        for text in ("Omar Velt likes tea.", "Omar Velt likes figs."):
            (entity,) = memory.write(text, user_id="ada").entities
            assert entity.id == named.id or memory.proposals(user_id="ada"), how


def test_names_of_other_worlds_are_not_read_for_a_plain_world(path: Path) -> None:
    with worlddb.Memory(path, recluster="off") as memory:
        for user in ("ada", "bob", "eve"):
            memory.write("Nora Quist likes tea.", user_id=user)
        world = memory.db.get(memory.write("Nora Quist likes figs.", user_id="ada").id).parent
        assert world is not None
        with memory.db.transaction() as tx:
            row = tx.reader.node_row(world)
            assert row is not None
            assert tx.reader.is_plain(row)
            inner = tx.create_node(type="Topic", parent=world)
            assert tx.reader.is_plain(row)
            tx.create_node(type="Topic", parent=inner.id)
            assert not tx.reader.is_plain(row)
        with memory.db.transaction() as tx:
            assert not tx.reader.is_plain(row)

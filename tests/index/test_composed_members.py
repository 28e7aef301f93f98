"""Composed worlds: members count, what was born ended does not, and old stores compose again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import worlddb
from index.exact_texts import ExactEmbedder
from index.recomposed import assert_composed, model_row, stored_worlds
from worlddb import Id, WorldDB


def row_of(db: WorldDB, ident: Id) -> int:
    with db.engine.store.read() as reader:
        row = reader.node_row(ident)
        assert row is not None
        return row


def counted(db: WorldDB, ident: Id) -> int:
    """Return how many nodes count in a world."""
    db.reindex()
    world = stored_worlds(db).get(row_of(db, ident))
    return 0 if world is None else world.children


@pytest.fixture
def db() -> WorldDB:
    return worlddb.open(":memory:", embedder=ExactEmbedder())


def test_a_member_counts_in_every_world_it_is_in_until_it_leaves(db: WorldDB) -> None:
    with db.transaction() as tx:
        home, scope = (tx.create_node(type="Scope", name=name).id for name in ("home", "scope"))
        memory = tx.create_node(type="Memory", content="a memory", parent=home).id
        around = tx.create_node(type="Topic", name="around").id
        tx.write_edge("contains", around, scope)
    assert (counted(db, home), counted(db, scope), counted(db, around)) == (1, 0, 1)
    before = stored_worlds(db)[row_of(db, around)].vector
    with db.transaction() as tx:
        edge = tx.write_edge("contains", scope, memory)
    assert (counted(db, home), counted(db, scope)) == (1, 1)
    after = stored_worlds(db)[row_of(db, around)].vector
    assert not np.array_equal(before, after)  # A change goes up through memberships, too.
    assert_composed(db)
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
    assert (counted(db, home), counted(db, scope)) == (1, 0)
    assert_composed(db)
    assert db.check() == []


def test_a_member_of_a_newer_world_counts_there_once(db: WorldDB) -> None:
    with db.transaction() as tx:
        home = tx.create_node(type="Scope", name="home").id
        memory = tx.create_node(type="Memory", content="a memory", parent=home).id
    assert counted(db, home) == 1
    with db.transaction() as tx:
        newer = tx.create_node(type="Scope", name="newer").id
        tx.write_edge("contains", newer, memory)
    assert (counted(db, home), counted(db, newer)) == (1, 1)
    assert_composed(db)
    assert db.check() == []


def test_what_was_born_ended_and_a_membership_of_another_time_do_not_count(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="W", created_at="2019-01-01T00:00:00Z").id
        past = {"created_at": "2019-01-01T00:00:00Z"}
        tx.create_node(
            type="Fact", content="over", parent=world, valid_to="2020-01-01T00:00:00Z", **past
        )
        tx.create_node(type="Fact", content="ends", parent=world, valid_to="2999-01-01T00:00:00Z")
        guest = tx.create_node(type="Fact", content="guest", **past).id
        tx.write_edge(
            "contains",
            world,
            guest,
            valid_from="2019-01-01T00:00:00Z",
            valid_to="2020-01-01T00:00:00Z",
        )
    assert counted(db, world) == 1
    assert_composed(db)
    assert db.check() == []


def test_a_store_that_was_composed_otherwise_composes_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Topic", name="W").id
            for number in range(3):
                tx.create_node(type="Fact", content=f"fact {number}", parent=world)
        assert counted(db, world) == 3
        number = model_row(db).number
        with db.engine.store.derive() as session:
            session.derived.start_pools(number, "attention")  # As version 1 recorded it.
            session.derived.set_composed(number, session.head().nodes, session.head().seq)
        assert model_row(db).pooling == "attention"
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        assert db.check() == []
        assert db.recall("fact").hits
        assert model_row(db).pooling != "attention"
        assert_composed(db)

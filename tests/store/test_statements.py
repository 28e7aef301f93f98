"""How many statements a call costs: one for many keys or rows, none for what is known already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import worlddb
from worlddb import NodeDraft, WorldDB
from worlddb.model.address import ROOT_ID
from worlddb.store.interface import Reader


@pytest.fixture(params=["file", "memory"])
def db(request: pytest.FixtureRequest, tmp_path: object) -> Iterator[WorldDB]:
    """Return a store with fifty nodes and their edges."""
    path = ":memory:" if request.param == "memory" else f"{tmp_path}/store.db"
    with worlddb.open(path, durability="normal") as opened:
        with opened.transaction() as tx:
            ids = tx.create_nodes(NodeDraft(type="Fact", name=f"n {i}") for i in range(50))
            for ident in ids[1:]:
                tx.write_edge("refers_to", ids[0], ident)
        yield opened


Ask = Callable[[Reader], object]

COSTS: dict[str, tuple[int, Ask]] = {
    "the head, twice": (1, lambda r: (r.head(), r.head())),
    "the commit of a time": (2, lambda r: r.commit_at(r.head().time)),
    "nodes with their notes": (2, lambda r: r.nodes(range(2, 52))),
    "bodies": (1, lambda r: list(r.bodies(range(2, 52)))),
    "edges of many nodes": (1, lambda r: r.edges_at(range(2, 52), "out")),
    "nodes of many keys": (1, lambda r: r.lookups.find(range(100), 5)),
    "counts of many keys": (1, lambda r: r.lookups.counts(range(100))),
    "how far lookups are, twice": (1, lambda r: (r.lookups.is_begun(1), r.lookups.reached())),
    "a row by its id, twice": (1, lambda r: (r.node_row(ROOT_ID), r.node_row(ROOT_ID))),
    "nothing": (
        0,
        lambda r: (
            *(r.nodes([]), list(r.bodies([])), r.aliases([]), r.parents([]), r.edges_at([], "in")),
            *(r.edges([]), r.closed_by([]), r.proposals(rows=[]), r.conflicts([])),
            *(r.lookups.find([], 5), r.lookups.counts([]), r.lookups.attributes([])),
        ),
    ),
}


@pytest.mark.parametrize("what", COSTS)
def test_a_call_costs_few_statements(db: WorldDB, what: str) -> None:
    most, ask = COSTS[what]
    with db.engine.store.read() as reader:
        before = db.engine.store.statements
        ask(reader)
        assert db.engine.store.statements - before <= most


def test_a_write_of_one_node_is_ten_statements(db: WorldDB) -> None:
    """Begin, head, known ids, world, node, text, waiting sets, journal, commit: and no more."""
    with db.transaction() as tx:
        tx.create_node(type="Fact", name="first")
    before = db.engine.store.statements
    with db.transaction() as tx:
        tx.create_node(type="Fact", name="second")
    assert db.engine.store.statements - before <= 10


def test_a_write_finds_its_statements_prepared(tmp_path: Path) -> None:
    """A batch of rows does not push the statements of the next write out of the cache."""
    opened: list[apsw.Connection] = []
    apsw.connection_hooks.append(opened.append)
    try:
        with worlddb.Memory(tmp_path / "store.db", recluster="off") as memory:
            text = "Anna Berg met Carla Dorn and Emil Falk. Gerd Hahn met Ida Jung and Karl Lenz."
            for number in range(5):
                memory.write(text, user_id=f"user {number}")
            before = [one.cache_stats()["misses"] for one in opened]
            memory.write(text, user_id="another")
            after = [one.cache_stats()["misses"] for one in opened]
    finally:
        apsw.connection_hooks.remove(opened.append)
    assert sum(after) - sum(before) <= 3

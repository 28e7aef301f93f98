"""What every test of a handler needs: a store with its own clock, and a handler that is quiet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

import worlddb
from worlddb import (
    Edge,
    EdgeHandler,
    Id,
    Node,
    Query,
    RejectedError,
    Subgraph,
    Transaction,
    WorldDB,
    WriteContext,
)

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
SECOND = 1_000_000


class Clock:
    """A clock that is a second later each time it is read."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += SECOND
        return self.now


class Chance:
    """Random bytes that are the same in every store."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, size: int) -> bytes:
        self.drawn += 1
        return blake3(self.drawn.to_bytes(8, "big")).digest(length=size)


def open_store(path: str | Path = ":memory:", handlers: Iterable[EdgeHandler] = ()) -> WorldDB:
    """Open a store that knows neither wall clock nor chance."""
    return worlddb.open(
        path,
        clock=Clock(),
        random_bytes=Chance(),
        handlers=handlers,
        durability="normal",
        busy_timeout_s=0.5,
    )


def day(number: int) -> str:
    """Return a day of January 2025, a year before the clock begins."""
    return f"2025-01-{number:02d}T00:00:00+00:00"


def fact(tx: Transaction, name: str, at: int = 1, parent: Id | None = None) -> Id:
    """Create a fact that is valid from a day of January 2025 on."""
    return tx.create_node(type="Fact", name=name, created_at=day(at), parent=parent).id


def facts(db: WorldDB, names: str, parent: Id | None = None) -> list[Id]:
    """Create a fact for each letter, each a day later than the one before, in one commit."""
    with db.transaction() as tx:
        return [fact(tx, name, at, parent) for at, name in enumerate(names, 1)]


def names(found: Iterable[Node] | Subgraph) -> list[str]:
    """Return the names of nodes, in order."""
    return [node.name for node in found]


def write(db: WorldDB, type_: str, source: Id, target: Id, **options: Any) -> Edge:
    """Write one edge in a transaction of its own."""
    with db.transaction() as tx:
        return tx.write_edge(type_, source, target, **options)


def delete(db: WorldDB, edge: Edge) -> Edge:
    """Delete one edge in a transaction of its own."""
    with db.transaction() as tx:
        return tx.delete_edge(edge.id)


@contextmanager
def refused(db: WorldDB, match: str | None = None) -> Iterator[None]:
    """Expect a refusal that leaves no trace: not in the journal, not in the state, not on disk."""
    before = db.root_state, db.log(), list(db.export())
    with pytest.raises(RejectedError, match=match):
        yield
    assert (db.root_state, db.log(), list(db.export())) == before
    assert db.check() == []


class Quiet:
    """A handler that does nothing; a test overrides what it is about."""

    pierces = False

    def __init__(
        self,
        type_: str,
        on_insert: Callable[[WriteContext, Edge], object] = lambda ctx, edge: None,
        on_delete: Callable[[WriteContext, Edge], object] = lambda ctx, edge: None,
        *,
        pierces: bool = False,
        version: str = "1",
    ) -> None:
        self.type = type_
        self.pierces = pierces
        self.version = version
        self._on_insert = on_insert
        self._on_delete = on_delete

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Do what the test says."""
        self._on_insert(ctx, edge)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Do what the test says."""
        self._on_delete(ctx, edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """Read as it stands."""
        return query

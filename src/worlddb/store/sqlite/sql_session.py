"""SqlSession: one connection in one transaction, as the tables see it.

It runs and counts statements, remembers what cannot change during a snapshot, and knows whether a
bulk load has put indexes off.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, Protocol

import apsw

from worlddb.store.rows import Head, LookupsReached

IN = "IN (SELECT value FROM carray(?))"
"""The condition for a list of rows, bound as one value: `(among(rows),)`."""
FOREVER = 1 << 62
"""A commit number above all others."""


def among(rows: list[int]) -> Any:
    """Return rows as the array that `IN` reads; 0 is no row."""
    return apsw.carray(array("q", rows or (0,)))


class StatementCount:
    """The number of statements that all sessions of a store have run."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0


class DeferredIndexes(Protocol):
    """A bulk load that has put indexes off."""

    names: set[str]

    def build(self) -> None:
        """Build them."""


class SqlSession:
    """One connection, from the beginning of a transaction to its end."""

    __slots__ = (
        "_count",
        "_run",
        "_run_many",
        "con",
        "deferred",
        "head",
        "node_rows",
        "reached",
        "seq",
        "time",
    )

    def __init__(
        self, con: apsw.Connection, count: StatementCount, seq: int = 0, time: int = 0
    ) -> None:
        self.con = con
        # Of the commit that an open write transaction becomes.
        self.seq = seq
        self.time = time
        self.deferred: DeferredIndexes | None = None
        self._count = count
        self._run = con.execute
        self._run_many = con.executemany
        self.forget()

    def forget(self) -> None:
        """Drop what was remembered of a snapshot, before the next one."""
        self.head: Head | None = None
        self.reached: LookupsReached | None = None
        self.node_rows: dict[bytes, int] = {}

    def execute(self, sql: str, values: Any = None) -> apsw.Cursor:
        """Run one statement."""
        self._count.total += 1
        return self._run(sql, values)

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """Run one statement for many rows; it counts once."""
        self._count.total += 1
        self._run_many(sql, rows)

    def one(self, sql: str, values: tuple[Any, ...]) -> int | None:
        """Return the first column of the first row, an integer, or None."""
        self._count.total += 1
        found: int | None = self._run(sql, values).get
        return found

    def rows(self, sql: str, values: tuple[Any, ...]) -> list[int]:
        """Return the only column of all rows, integers."""
        self._count.total += 1
        return [row for (row,) in self._run(sql, values)]

    def need_index(self, *names: str) -> None:
        """Build indexes that a bulk load has put off, if one of these is among them."""
        if self.deferred is not None and not self.deferred.names.isdisjoint(names):
            self.deferred.build()

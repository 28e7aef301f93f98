"""SqlSession: one connection in one transaction, as the tables see it.

It runs and counts statements, remembers what cannot change during a snapshot, and knows whether a
bulk load has put indexes off.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, Protocol

import apsw

from worlddb.errors import CorruptionError
from worlddb.store.rows import CommitRow, Head, LookupsReached

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


# JournalTable: the commits, and the former values of fields that commits changed.
#
# Tables hold the present. The past is the present with `history` laid over it: the first change after
# the asked commit says what the field was then.


# Commits are numbered without gaps and their times increase, so halving finds one by its time; an
# index by time would cost every commit a page.
_COMMIT_AT = """
    WITH RECURSIVE search (low, high) AS (
        SELECT -1, ?1
        UNION ALL
        SELECT iif(c.time <= ?2, c.seq, low), iif(c.time <= ?2, high, (low + high + 1) / 2 - 1)
        FROM search LEFT JOIN commits c ON c.seq = (low + high + 1) / 2 WHERE low < high
    )
    SELECT low FROM search WHERE low = high
"""

Past = dict[tuple[str, int], Any]
"""Former values by (field, row)."""


class JournalTable:
    """Commits and history, as one session sees them."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def head(self) -> Head:
        """Return the last commit; a snapshot has one, so it is read once."""
        session = self._session
        if session.head is None:
            found = session.execute(
                "SELECT seq, time, hash, root_state, nodes, edges, notes FROM commits "
                "ORDER BY seq DESC LIMIT 1"
            ).fetchone()
            if found is None:
                raise CorruptionError("the journal is empty; restore a backup")
            session.head = Head(*found)
        return session.head

    def commit_at(self, time: int) -> int | None:
        """Return the last commit at or before `time`, None before the first."""
        found = self._session.one(_COMMIT_AT, (self.head().seq, time))
        return None if found is None or found < 0 else found

    def commits(self, after: int, limit: int | None, newest_first: bool) -> list[CommitRow]:
        """Return commits above number `after`."""
        order = "DESC" if newest_first else "ASC"
        found = self._session.execute(
            f"SELECT * FROM commits WHERE seq > ? ORDER BY seq {order} LIMIT ?",
            (after, -1 if limit is None else limit),
        )
        return [CommitRow(*row) for row in found]

    def root_state(self, known: int | None) -> bytes:
        """Return the root's state: every commit has it, and no other table does."""
        if known is None:
            return self.head().root_state
        sql = "SELECT root_state FROM commits WHERE seq = ?"
        state: bytes = self._session.execute(sql, (known,)).get
        return state

    def past(self, fields: tuple[str, ...], rows: list[int], known: int | None) -> Past:
        """Return what fields said at commit `known`, where they have changed since."""
        if known is None:
            return {}
        marks = ", ".join("?" * len(fields))
        found = self._session.execute(
            f"SELECT field, row, was, min(seq) FROM history WHERE field IN ({marks}) "
            f"AND row {IN} AND seq > ? GROUP BY field, row",
            [*fields, among(rows), known],
        )
        return {(field, row): was for field, row, was, _ in found}

    def change(self, kind: str, column: str, row: int, value: Any) -> None:
        """Change a field, and keep what it said before this commit.

        Of several changes in one commit, the first counts. `kind` is node, edge or proposal.
        """
        key = "edge" if kind == "proposal" else "row"
        self._session.execute(
            f"INSERT OR IGNORE INTO history SELECT '{kind}.{column}', {key}, ?, {column} "
            f"FROM {kind}s WHERE {key} = ?",
            (self._session.seq, row),
        )
        self._session.execute(f"UPDATE {kind}s SET {column} = ? WHERE {key} = ?", (value, row))

    def set_valid_to(self, kind: str, row: int, valid_to: int) -> None:
        """Close the validity of a node or an edge (`kind`)."""
        self.change(kind, "valid_to", row, valid_to)

    def insert_commit(self, row: CommitRow) -> None:
        """Write a commit."""
        self._session.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

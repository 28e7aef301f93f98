"""JournalTable: the commits, and the former values of fields that commits changed.

Tables hold the present. The past is the present with `history` laid over it: the first change after
the asked commit says what the field was then.
"""

from __future__ import annotations

from typing import Any

from worlddb.errors import CorruptionError
from worlddb.store.rows import CommitRow, Head
from worlddb.store.sqlite.sql_session import IN, SqlSession, among

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

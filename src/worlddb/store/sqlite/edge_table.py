"""EdgeTable and HandledTables: edges, and what their handlers recorded about them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from worlddb.model.address import short_key, trusted_id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Direction, Edge
from worlddb.store.rows import ConflictRow, EdgeRow, NewEdge, ProposalRow, RegistrationRow
from worlddb.store.sqlite.journal_table import JournalTable, Past
from worlddb.store.sqlite.sql_session import FOREVER, IN, SqlSession, among

# CROSS JOIN keeps SQLite from turning the join around: start at the edges, always.
_COLUMNS = """
    SELECT e.row, e.id, e.type, e.source, e.target, e.world, s.id, t.id, e.valid_from, e.valid_to,
           e.metadata, b.time, e.gone, g.time
    FROM edges e CROSS JOIN nodes s ON s.row = e.source CROSS JOIN nodes t ON t.row = e.target
    LEFT JOIN commits b ON b.seq = e.born LEFT JOIN commits g ON g.seq = e.gone
"""


class EdgeTable:
    """Edges, as one session sees them."""

    def __init__(self, session: SqlSession, journal: JournalTable) -> None:
        self._session = session
        self._journal = journal

    def edge_row(self, ident: bytes) -> int | None:
        """Return the row of an edge by its whole id."""
        self._session.need_index("edges_key")
        sql = "SELECT row FROM edges WHERE key = ? AND id = ?"
        return self._session.one(sql, (short_key(ident), ident))

    def edges_at(
        self,
        rows: Iterable[int],
        direction: Direction,
        types: Iterable[str] | None = None,
        known: int | None = None,
    ) -> list[EdgeRow]:
        """Return the edges that leave, enter or touch `rows`, as of commit `known`."""
        wanted = list(rows)
        if direction == "both":
            chosen = None if types is None else list(types)
            out = self.edges_at(wanted, "out", chosen, known)
            seen = {item.row for item in out}
            into = self.edges_at(wanted, "in", chosen, known)
            both = out + [item for item in into if item.row not in seen]
            return sorted(both, key=lambda item: item.row)
        self._session.need_index("edges_source", "edges_target")
        if not wanted:
            return []
        end = "source" if direction == "out" else "target"
        return self._edges(*_of_types(f"e.{end} {IN}", [among(wanted)], types), known)

    def edges(self, rows: Iterable[int], known: int | None = None) -> list[EdgeRow]:
        """Return edges by row, deleted ones too."""
        wanted = list(rows)
        if not wanted:
            return []
        return self._edges(f"e.row {IN}", [among(wanted)], known, deleted=True)

    def edges_between(
        self, first: int, last: int, known: int | None = None, types: Iterable[str] | None = None
    ) -> list[EdgeRow]:
        """Return the edges of a range of rows as of commit `known`, deleted ones too."""
        where, values = "e.row BETWEEN ? AND ?", [first, last]
        return self._edges(*_of_types(where, values, types), known, deleted=True)

    def _edges(
        self, where: str, values: list[Any], known: int | None, deleted: bool = False
    ) -> list[EdgeRow]:
        if known is not None:
            where += " AND e.born <= ?"
            values.append(known)
        if not deleted:
            where += " AND (e.gone IS NULL OR e.gone > ?)"
            values.append(FOREVER if known is None else known)
        found = self._session.execute(f"{_COLUMNS} WHERE {where} ORDER BY e.row", values)
        edges: list[Any] = found.fetchall()
        past: Past = {}
        if edges and known is not None:
            past = self._journal.past(("edge.valid_to",), [row for row, *_ in edges], known)
        return [self._value(edge, past, known) for edge in edges]

    def _value(self, columns: Any, past: Past, known: int | None) -> EdgeRow:
        # The columns of `_COLUMNS`, unpacked once: this is the innermost loop of every traversal.
        (
            row,
            ident,
            type_,
            source,
            target,
            world,
            source_id,
            target_id,
            valid_from,
            valid_to,
            metadata,
            born_time,
            gone,
            gone_time,
        ) = columns
        if past:
            valid_to = past.get(("edge.valid_to", row), valid_to)
        is_gone = gone is not None and (known is None or gone <= known)
        # The open transaction's own commit has no row yet, so no time in the join.
        now = self._session.time
        edge = Edge(
            id=trusted_id(ident),
            type=type_,
            source=trusted_id(source_id),
            target=trusted_id(target_id),
            valid_from=from_micros(valid_from),
            valid_to=None if valid_to is None else from_micros(valid_to),
            known_from=from_micros(now if born_time is None else born_time),
            known_to=from_micros(now if gone_time is None else gone_time) if is_gone else None,
            metadata={} if metadata == "{}" else json.loads(metadata),
        )
        return EdgeRow(row, source, target, world, edge)

    # -- writes ------------------------------------------------------------------------------------

    def insert_edges(self, rows: Iterable[NewEdge]) -> None:
        """Insert all columns but `gone`."""
        self._session.executemany(
            "INSERT INTO edges (row, key, id, type, source, target, world, valid_from, valid_to, "
            "metadata, generation, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def delete_edge(self, row: int) -> None:
        """Close an edge on the known axis."""
        self._session.execute("UPDATE edges SET gone = ? WHERE row = ?", (self._session.seq, row))

    def insert_premises(self, rows: Iterable[tuple[int, int]]) -> None:
        """Record (premise, inferred edge) pairs."""
        self._session.executemany("INSERT OR IGNORE INTO premises VALUES (?, ?)", rows)

    def resting_on(self, edge: int) -> list[int]:
        """Return the rows of the inferred edges that rest on an edge."""
        sql = "SELECT edge FROM premises WHERE premise = ? ORDER BY edge"
        return self._session.rows(sql, (edge,))


def _of_types(where: str, values: list[Any], types: Iterable[str] | None) -> tuple[str, list[Any]]:
    """Return a condition on edges that holds for some types alone; None: for all of them."""
    if types is None:
        return where, values
    chosen = list(types)
    return f"{where} AND e.type IN ({', '.join('?' * len(chosen))})", [*values, *chosen]


class HandledTables:
    """Proposals, conflicts and custom edge types, as one session sees them."""

    def __init__(self, session: SqlSession, journal: JournalTable) -> None:
        self._session = session
        self._journal = journal

    def proposals(
        self, status: str | None = None, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ProposalRow]:
        """Return proposals by status and by the nodes they concern, as of commit `known`."""
        sql = "SELECT edge, low, high, status, tier, score, evidence FROM proposals WHERE born <= ?"
        values: list[Any] = [FOREVER if known is None else known]
        if rows is not None:
            chosen = list(rows)
            if not chosen:
                return []
            sql += f" AND (low {IN} OR high {IN})"
            values += (among(chosen), among(chosen))
        if status is not None and known is None:
            sql += " AND status = ?"
            values.append(status)
        ordered = self._session.execute(sql + " ORDER BY edge", values)
        found = [ProposalRow(*row) for row in ordered]
        past = self._journal.past(("proposal.status",), [row.edge for row in found], known)
        then = [
            row._replace(status=past.get(("proposal.status", row.edge), row.status))
            for row in found
        ]
        return [row for row in then if status is None or row.status == status]

    def has_proposals(self) -> bool:
        """Return whether any merge was ever proposed; most stores can skip looking further."""
        return self._session.one("SELECT 1 FROM proposals LIMIT 1", ()) is not None

    def conflicts(
        self, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ConflictRow]:
        """Return the conflicts recorded up to commit `known`, open ones with `gone` None."""
        sql = "SELECT edge, low, high, reason, gone FROM conflicts WHERE born <= ?"
        values: list[Any] = [FOREVER if known is None else known]
        if rows is not None:
            chosen = list(rows)
            if not chosen:
                return []
            sql += f" AND (low {IN} OR high {IN})"
            values += (among(chosen), among(chosen))
        ordered = self._session.execute(sql + " ORDER BY edge", values)
        found = [ConflictRow(*row) for row in ordered]
        if known is not None:
            found = [
                row._replace(gone=None) if row.gone is not None and row.gone > known else row
                for row in found
            ]
        return found

    def registrations(self) -> list[RegistrationRow]:
        """Return the custom edge types the store remembers."""
        found = self._session.execute(
            "SELECT n.id, r.type, r.version, r.functional FROM registrations r "
            "JOIN nodes n ON n.row = r.world ORDER BY r.world, r.type"
        )
        return [
            RegistrationRow(world, type_, version, bool(flag))
            for world, type_, version, flag in found
        ]

    # -- writes ------------------------------------------------------------------------------------

    def put_proposal(self, row: ProposalRow) -> None:
        """Add a proposal."""
        self._session.execute(
            "INSERT INTO proposals VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, self._session.seq)
        )

    def set_status(self, edge: int, status: str) -> None:
        """Decide, withdraw or reopen a proposal."""
        self._journal.change("proposal", "status", edge, status)

    def put_conflict(self, row: ConflictRow) -> None:
        """Add a conflict."""
        self._session.execute(
            "INSERT INTO conflicts (edge, low, high, reason, born) VALUES (?, ?, ?, ?, ?)",
            (row.edge, row.low, row.high, row.reason, self._session.seq),
        )

    def settle_conflict(self, edge: int) -> None:
        """Record that a conflict is over."""
        self._session.execute(
            "UPDATE conflicts SET gone = ? WHERE edge = ?", (self._session.seq, edge)
        )

    def put_registration(self, world: int, type_: str, version: str, functional: bool) -> None:
        """Remember a custom edge type of a world."""
        self._session.execute(
            "INSERT OR REPLACE INTO registrations VALUES (?, ?, ?, ?, ?)",
            (world, type_, version, int(functional), self._session.seq),
        )

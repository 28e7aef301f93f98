"""Staged: what handlers left for somebody to decide, and how the past is laid over the present."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import apsw

from worlddb.store.protocol import ConflictRow, ProposalRow

IN = "IN (SELECT value FROM carray(?))"
FOREVER = 1 << 62


def among(rows: list[int]) -> Any:
    """Return rows as the array that `IN (SELECT value FROM carray(?))` reads; 0 is no row."""
    return apsw.carray(array("q", rows or (0,)))


class Staged:
    """The part of a reader that knows proposals, conflicts and registrations."""

    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def _past(
        self, fields: tuple[str, ...], rows: list[int], known: int | None
    ) -> dict[tuple[str, int], Any]:
        """Return what each field said at commit `known`, where it has changed since."""
        if known is None:
            return {}
        marks = ", ".join("?" * len(fields))
        sql = (
            f"SELECT field, row, was, min(seq) FROM history WHERE field IN ({marks}) "
            f"AND row {IN} AND seq > ? GROUP BY field, row"
        )
        found = self.con.execute(sql, [*fields, among(rows), known])
        return {(field, row): was for field, row, was, _ in found}

    def proposals(
        self, status: str | None = None, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ProposalRow]:
        """Return proposals by status and by the nodes they concern, as of commit `known`."""
        sql = "SELECT edge, low, high, status, tier, score, evidence FROM proposals WHERE born <= ?"
        values: list[Any] = [FOREVER if known is None else known]
        if rows is not None:
            chosen = list(rows)
            sql += f" AND (low {IN} OR high {IN})"
            values += (among(chosen), among(chosen))
        if status is not None and known is None:
            sql += " AND status = ?"
            values.append(status)
        found = [ProposalRow(*row) for row in self.con.execute(sql + " ORDER BY edge", values)]
        past = self._past(("proposal.status",), [row.edge for row in found], known)
        then = [
            row._replace(status=past.get(("proposal.status", row.edge), row.status))
            for row in found
        ]
        return [row for row in then if status is None or row.status == status]

    def has_proposals(self) -> bool:
        """Return whether any merge was ever proposed; most stores can skip looking further."""
        return self.con.execute("SELECT 1 FROM proposals LIMIT 1").get is not None

    def conflicts(
        self, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ConflictRow]:
        """Return the conflicts open at commit `known`, or with `rows` None all ever recorded."""
        sql = "SELECT edge, low, high, reason, gone FROM conflicts WHERE "
        values: list[Any] = []
        if known is None:
            sql += "1"
        else:
            sql += "born <= ?"
            values.append(known)
        if rows is not None:
            chosen = list(rows)
            sql += f" AND (low {IN} OR high {IN})"
            values += (among(chosen), among(chosen))
        found = [ConflictRow(*row) for row in self.con.execute(sql + " ORDER BY edge", values)]
        if known is not None:
            found = [
                row._replace(gone=None) if row.gone is not None and row.gone > known else row
                for row in found
            ]
        return found

    def registrations(self) -> list[tuple[bytes, str, str, bool]]:
        """Return the custom edge types the store remembers: world, type, version, functional."""
        found = self.con.execute(
            "SELECT n.id, r.type, r.version, r.functional FROM registrations r "
            "JOIN nodes n ON n.row = r.world ORDER BY r.world, r.type"
        )
        return [(world, type_, version, bool(flag)) for world, type_, version, flag in found]

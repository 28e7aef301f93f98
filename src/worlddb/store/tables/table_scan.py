"""TableScan: whole tables by row, exactly as stored, for `check` and `export`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from worlddb.store.rows import (
    ConflictScan,
    EdgeScan,
    HistoryRow,
    NodeScan,
    NoteRow,
    PageRow,
    PremiseRow,
    ProposalScan,
    RegistrationScan,
)
from worlddb.store.tables.sql_session import SqlSession


class TableScan:
    """Reads every row of a table once."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def _rows(
        self, table: str, fields: Sequence[str], first: int, last: int | None
    ) -> Iterator[tuple[Any, ...]]:
        listed = f"SELECT {', '.join(fields)} FROM {table}"
        if last is None:
            return self._session.stream(f"{listed} ORDER BY row")
        return self._session.stream(
            f"{listed} WHERE row BETWEEN ? AND ? ORDER BY row", (first, last)
        )

    def nodes(self, first: int = 0, last: int | None = None) -> Iterator[NodeScan]:
        """Yield the nodes from row `first` to `last`; all of them if `last` is None."""
        return map(NodeScan._make, self._rows("nodes", NodeScan._fields, first, last))

    def edges(self, first: int = 0, last: int | None = None) -> Iterator[EdgeScan]:
        """Yield the edges from row `first` to `last`; all of them if `last` is None."""
        return map(EdgeScan._make, self._rows("edges", EdgeScan._fields, first, last))

    def notes(self, first: int = 0, last: int | None = None) -> Iterator[NoteRow]:
        """Yield the notes from row `first` to `last`; all of them if `last` is None."""
        return map(NoteRow._make, self._rows("notes", NoteRow._fields, first, last))

    def history(self) -> Iterator[HistoryRow]:
        """Yield all former values, by field, row and commit."""
        sql = f"SELECT {', '.join(HistoryRow._fields)} FROM history ORDER BY field, row, seq"
        return (
            HistoryRow(field, row, seq, self._session.current(was))
            for field, row, seq, was in self._session.stream(sql)
        )

    def pages(self) -> Iterator[PageRow]:
        """Yield all stored pages of sets, by world, kind and path."""
        sql = "SELECT world, kind, path, fork, body FROM pages ORDER BY world, kind, path"
        return map(PageRow._make, self._session.stream(sql))

    def proposals(self) -> Iterator[ProposalScan]:
        """Yield all proposals, by edge."""
        sql = f"SELECT {', '.join(ProposalScan._fields)} FROM proposals ORDER BY edge"
        return map(ProposalScan._make, self._session.stream(sql))

    def conflicts(self) -> Iterator[ConflictScan]:
        """Yield all conflicts, by edge."""
        sql = f"SELECT {', '.join(ConflictScan._fields)} FROM conflicts ORDER BY edge"
        return map(ConflictScan._make, self._session.stream(sql))

    def registrations(self) -> Iterator[RegistrationScan]:
        """Yield all custom edge types, by world and type."""
        sql = (
            f"SELECT {', '.join(RegistrationScan._fields)} FROM registrations ORDER BY world, type"
        )
        return map(RegistrationScan._make, self._session.stream(sql))

    def premises(self) -> Iterator[PremiseRow]:
        """Yield all premises of inferred edges, by premise and edge."""
        sql = f"SELECT {', '.join(PremiseRow._fields)} FROM premises ORDER BY premise, edge"
        return map(PremiseRow._make, self._session.stream(sql))

    def lookups(self) -> Iterator[tuple[int, int]]:
        """Yield the (key, node) pairs of the name index."""
        return ((key, node) for key, node in self._session.stream("SELECT key, node FROM lookups"))

    def lookup_worlds(self) -> list[tuple[int, int]]:
        """Return the number of names that were counted in each world."""
        found = self._session.execute("SELECT world, names FROM lookups_worlds")
        return [(world, names) for world, names in found]

    def recalls(self) -> list[tuple[int, int, int]]:
        """Return how often and when last nodes were recalled, by node."""
        if not self._session.need_table("recalls"):
            return []
        found = self._session.execute("SELECT node, count, last FROM recalls ORDER BY node")
        return [(node, count, last) for node, count, last in found]

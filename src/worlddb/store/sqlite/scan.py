"""Scan: whole tables in row order, and what SQLite's own structures should look like."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import apsw

from worlddb.store.protocol import EdgeScan, NodeScan
from worlddb.store.sqlite.schema import TEXTS, expected_objects

_VOCABULARY = "CREATE VIRTUAL TABLE temp.{} USING fts5vocab ({}, texts, row)"


class SqliteScan:
    """Reads every row of a table once."""

    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def _rows(self, table: str, first: int, last: int | None) -> Iterator[tuple[Any, ...]]:
        end = (1 << 62) if last is None else last
        sql = f"SELECT * FROM {table} WHERE row BETWEEN ? AND ? ORDER BY row"
        return iter(self.con.execute(sql, (first, end)))

    def nodes(self, first: int = 0, last: int | None = None) -> Iterator[NodeScan]:
        """Yield nodes of a range of rows."""
        return map(NodeScan._make, self._rows("nodes", first, last))

    def edges(self, first: int = 0, last: int | None = None) -> Iterator[EdgeScan]:
        """Yield edges of a range of rows."""
        return map(EdgeScan._make, self._rows("edges", first, last))

    def notes(
        self, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[int, int, str, str, int]]:
        """Yield (row, node, kind, text, born)."""
        return self._rows("notes", first, last)

    def history(self) -> Iterator[tuple[str, int, int, Any]]:
        """Yield (field, row, seq, was) in that order."""
        return iter(self.con.execute("SELECT * FROM history ORDER BY field, row, seq"))

    def pages(self) -> Iterator[tuple[int, int, str, int, bytes]]:
        """Yield (world, kind, path, fork, body), world by world."""
        sql = "SELECT world, kind, path, fork, body FROM pages ORDER BY world, kind, path"
        return iter(self.con.execute(sql))

    def proposals(self) -> Iterator[tuple[Any, ...]]:
        """Yield proposals as they stand."""
        return iter(self.con.execute("SELECT * FROM proposals ORDER BY edge"))

    def conflicts(self) -> Iterator[tuple[Any, ...]]:
        """Yield conflicts as they stand."""
        return iter(self.con.execute("SELECT * FROM conflicts ORDER BY edge"))

    def registrations(self) -> Iterator[tuple[int, str, str, int, int]]:
        """Yield (world, type, version, functional, born)."""
        return iter(self.con.execute("SELECT * FROM registrations ORDER BY world, type"))

    def premises(self) -> Iterator[tuple[int, int]]:
        """Yield (premise, inferred edge)."""
        return iter(self.con.execute("SELECT * FROM premises ORDER BY premise, edge"))

    def missing_objects(self) -> list[str]:
        """Return the indexes and guards that should be there and are not."""
        found = {name for (name,) in self.con.execute("SELECT name FROM sqlite_schema")}
        return sorted(expected_objects() - found)

    def text_problems(self) -> list[str]:
        """Index every node's text again beside the store and compare the two vocabularies."""
        fresh = apsw.Connection(":memory:")
        try:
            fresh.execute(TEXTS)
            fresh.execute("BEGIN")
            fresh.executemany(
                "INSERT INTO texts (rowid, name, content) VALUES (?, ?, ?)",
                self.con.execute("SELECT row, name, content FROM nodes ORDER BY row"),
            )
            fresh.execute("COMMIT")
            return _compare(_vocabulary(self.con), _vocabulary(fresh))
        finally:
            fresh.close()


def _vocabulary(con: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    con.execute("DROP TABLE IF EXISTS temp.vocabulary")
    con.execute(_VOCABULARY.format("vocabulary", "main"))
    return iter(con.execute("SELECT term, doc, cnt FROM temp.vocabulary ORDER BY term"))


def _compare(stored: Iterator[Any], fresh: Iterator[Any]) -> list[str]:
    for one, other in zip_longest(stored, fresh):
        if one != other:
            term = (one or other)[0]
            return [f"the text index says {one} of the word {term!r}, the nodes say {other}"]
    return []

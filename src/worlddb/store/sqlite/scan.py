"""Scan: whole tables in row order, and what SQLite's own structures should look like."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import apsw

from worlddb.language.words import indexed
from worlddb.store.protocol import EdgeScan, NodeScan
from worlddb.store.sqlite.schema import TEXTS, USUAL_HASH_BYTES, USUAL_MERGE, create


class SqliteScan:
    """Reads every row of a table once."""

    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def _rows(self, table: str, first: int, last: int | None) -> Iterator[tuple[Any, ...]]:
        if last is None:
            return iter(self.con.execute(f"SELECT * FROM {table} ORDER BY row"))
        sql = f"SELECT * FROM {table} WHERE row BETWEEN ? AND ? ORDER BY row"
        return iter(self.con.execute(sql, (first, last)))

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

    def schema_problems(self) -> list[str]:
        """Return where tables, indexes and guards differ from those of a new store."""
        fresh = apsw.Connection(":memory:")
        try:
            create(fresh)
            # Counts of recalls are in a file only once there are some.
            sql = (
                "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' "
                "AND name != 'recalls'"
            )
            expected, found = dict(fresh.execute(sql)), dict(self.con.execute(sql))
        finally:
            fresh.close()
        return [
            f"{name} is not as it was made"
            for name in sorted(expected.keys() | found.keys())
            if expected.get(name, 0) != found.get(name, 0)
        ]

    def text_problems(self) -> list[str]:
        """Index every node's text again beside the store and compare the two, word by word."""
        fresh = apsw.Connection(":memory:")
        try:
            fresh.execute(TEXTS)
            fresh.execute("BEGIN")
            fresh.executemany(
                "INSERT INTO texts (rowid, name, content) VALUES (?, ?, ?)",
                (
                    (row, indexed(str(name)), indexed(str(content)))
                    for row, name, content in self.con.execute(
                        "SELECT row, name, content FROM nodes ORDER BY row"
                    )
                ),
            )
            fresh.execute("COMMIT")
            return (
                _compare("words", _words(self.con), _words(fresh))
                or _compare("lengths", _lengths(self.con), _lengths(fresh))
                or _compare("settings", _settings(self.con), _settings(fresh))
            )
        finally:
            fresh.close()


def _words(con: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield (term, row, column, offset) of every word in the index."""
    con.execute("DROP TABLE IF EXISTS temp.words")
    con.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, texts, instance)")
    return iter(con.execute('SELECT term, doc, col, "offset" FROM temp.words'))


def _lengths(con: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield what ranking uses: the words per node, and (row 0) the totals of the index."""
    yield from con.execute("SELECT 0, block FROM texts_data WHERE id = 1")
    yield from con.execute("SELECT id, sz FROM texts_docsize ORDER BY id")


def _settings(con: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield the index's own settings; the two that a load changes go back to these defaults."""
    usual = {"hashsize": USUAL_HASH_BYTES, "automerge": USUAL_MERGE}
    for key, value in con.execute("SELECT k, v FROM texts_config ORDER BY k"):
        if usual.get(str(key)) != value:
            yield key, value


def _compare(what: str, stored: Iterator[Any], fresh: Iterator[Any]) -> list[str]:
    for one, other in zip_longest(stored, fresh):
        if one != other:
            return [f"{what}: the index says {one}, the nodes say {other}"]
    return []

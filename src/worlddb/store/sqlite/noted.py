"""Noted: aliases, sources and metadata of nodes; they are added, never taken away."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from worlddb.store.sqlite.staged import FOREVER, IN, Staged, among


class Noted(Staged):
    """The part of a reader that knows notes."""

    def _notes(self, rows: list[int], known: int | None) -> dict[int, dict[str, list[str]]]:
        sql = f"SELECT node, kind, text, born FROM notes WHERE node {IN} ORDER BY row"
        found: dict[int, dict[str, list[str]]] = {}
        for node, kind, text, born in self.con.execute(sql, (among(rows),)):
            if not text:
                continue  # It was erased.
            if known is None or born <= known:
                found.setdefault(node, {}).setdefault(kind, []).append(text)
        return found

    def aliases(self, rows: Iterable[int], known: int | None = None) -> list[tuple[int, str]]:
        """Return (node, alias) of nodes as of commit `known`."""
        sql = f"SELECT node, text FROM notes WHERE node {IN} AND kind = 'alias' AND born <= ?"
        values = (among(list(rows)), FOREVER if known is None else known)
        return list(self.con.execute(sql, values))

    def rows_aliased(self, name: str) -> list[int]:
        """Return the rows of the nodes that have this alias, whatever its case."""
        sql = "SELECT node FROM notes WHERE kind = 'alias' AND text = ? COLLATE NOCASE"
        return [row for (row,) in self.con.execute(sql, (name,))]

    def aliases_after(self, note: int) -> list[tuple[int, str]]:
        """Return (node, alias) of the notes written after one."""
        sql = "SELECT node, text FROM notes WHERE row > ? AND kind = 'alias'"
        return list(self.con.execute(sql, (note,)))


def merged(texts: Iterable[str]) -> dict[str, Any]:
    """Return metadata as one mapping; what was written later wins."""
    return {key: value for text in texts for key, value in json.loads(text).items()}

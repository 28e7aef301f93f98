"""TextErasure: removes the texts of nodes, and leaves their ids, validity and edges.

What is derived from a text goes with it: its words, its keys, its vectors and all sums of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from worlddb.model.address import ERASED
from worlddb.store.rows import ErasedEdge
from worlddb.store.tables.node_table import FILE_AGAIN
from worlddb.store.tables.sql_session import IN, SqlSession

KEPT = ("inferred", "premises")
"""What edges keep of their metadata: ids alone, and inference needs them."""


class TextErasure:
    """Erases inside a write transaction; it returns the commits that can't be hashed again."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def erase_nodes(self, rows: list[int]) -> set[int]:
        """Remove names, contents, creation times, blinds, content keys and notes.

        Return the commits of those notes, whose blinds are removed, too.
        """
        if self._session.warm is not None:
            self._session.warm.clear()
        self._session.texts().erase(rows)  # A store may need the texts to find their words.
        self._session.execute(
            "UPDATE nodes SET name = '', content = '', created_at = ?, blind = zeroblob(0), "
            f"content_key = NULL WHERE row {IN}",
            (ERASED, self._session.among(rows)),
        )
        sql = f"SELECT DISTINCT born FROM notes WHERE node {IN} AND text NOT IN ('', '{{}}')"
        commits = set(self._session.rows(sql, (self._session.among(rows),)))
        self._session.execute(
            "UPDATE notes SET text = CASE kind WHEN 'metadata' THEN '{}' ELSE '' END "
            f"WHERE node {IN}",
            (self._session.among(rows),),
        )
        self._unblind(commits)
        return commits

    def _unblind(self, commits: Iterable[int]) -> None:
        """Destroy the blinds of commits of which something was erased.

        With its blind, the hash of a commit would tell a right guess from a wrong one.
        """
        sql = f"UPDATE commits SET blind = zeroblob(0) WHERE seq {IN}"
        self._session.execute(sql, (self._session.among(list(commits)),))

    def erase_edges(self, rows: list[int]) -> list[ErasedEdge]:
        """Remove the metadata texts of edges at nodes; return the edges with metadata, by row.

        None of them can be hashed again: with its end, an edge loses the blind of that end.
        """
        found: list[Any] = self._session.execute(
            f"SELECT row, id, metadata FROM edges WHERE (source {IN} OR target {IN}) "
            "AND metadata != '{}' ORDER BY row",
            (self._session.among(rows), self._session.among(rows)),
        ).fetchall()
        changed = []
        for row, ident, metadata in found:
            less = _without_texts(metadata)
            if less != metadata:
                self._session.execute("UPDATE edges SET metadata = ? WHERE row = ?", (less, row))
            changed.append(ErasedEdge(row, ident))
        return changed

    def erase_staged(self, rows: list[int]) -> set[int]:
        """Remove evidence and reasons at nodes, also in the journal; return those commits."""
        commits: dict[int, set[str]] = {}
        for table, column, blank in (("proposals", "evidence", "{}"), ("conflicts", "reason", "")):
            where = f"(low {IN} OR high {IN}) AND {column} != ?"
            sql = f"SELECT s.born, e.id FROM {table} s JOIN edges e ON e.row = s.edge WHERE {where}"
            for born, ident in self._session.execute(
                sql, (self._session.among(rows), self._session.among(rows), blank)
            ):
                commits.setdefault(born, set()).add(ident.hex())
            values = (blank, self._session.among(rows), self._session.among(rows), blank)
            self._session.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", values)
        for seq, edges in commits.items():
            sql = "SELECT changes FROM commits WHERE seq = ?"
            blanked = _blanked(self._session.execute(sql, (seq,)).get, edges)
            self._session.execute("UPDATE commits SET changes = ? WHERE seq = ?", (blanked, seq))
        self._unblind(commits)
        return set(commits)

    def erase_derived(self, rows: list[int]) -> None:
        """Remove vectors and keys of nodes; pools are composed again by the next search."""
        self._session.execute(
            f"UPDATE vectors SET vector = zeroblob(length(vector)) WHERE node {IN}",
            (self._session.among(rows),),
        )
        self._session.execute(f"DELETE FROM tokens WHERE node {IN}", (self._session.among(rows),))
        self._session.execute("DELETE FROM pools")
        self._session.execute("UPDATE models SET composed = 1, seq = -1")
        self._session.execute(f"DELETE FROM lookups WHERE node {IN}", (self._session.among(rows),))
        self._session.executemany(FILE_AGAIN, [(row,) for row in rows])
        self._session.reached = None


def _without_texts(metadata: str) -> str:
    data = json.loads(metadata)
    kept = {key: data[key] for key in KEPT if key in data}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def _blanked(changes: str, edges: set[str]) -> str:
    """Return a commit's changes without what they say of some edges' evidence and reasons."""
    rows = json.loads(changes)
    for kind, ident, detail in rows:
        if ident in edges and kind == "propose":
            detail["evidence"] = "{}"
        elif ident in edges and kind == "flag":
            detail["reason"] = ""
    return json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

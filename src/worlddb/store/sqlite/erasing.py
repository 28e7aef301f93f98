"""Erasing: the SQL that takes texts out of the file and leaves addresses, validity and edges.

What is derived from a text goes with it: its words, its keys, its vectors and all sums of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw

from worlddb.model.address import ERASED
from worlddb.store.sqlite.lookups import LEFT_LOOKUPS
from worlddb.store.sqlite.staged import IN, among

KEPT = ("inferred", "premises")
"""What edges keep of their metadata: ids alone, and inference needs them."""


class Erasing:
    """The part of a writer that erases; it tells which commits can't be hashed again."""

    con: apsw.Connection

    def is_erased(self, row: int) -> bool:
        """Return whether a node was erased."""
        sql = "SELECT 1 FROM nodes WHERE row = ? AND created_at = ?"
        return self.con.execute(sql, (row, ERASED)).get is not None

    def born(self, row: int) -> int:
        """Return the commit that wrote a node."""
        seq: int = self.con.execute("SELECT born FROM nodes WHERE row = ?", (row,)).get
        return seq

    def erase_nodes(self, rows: list[int]) -> set[int]:
        """Take names, contents, times of creation and notes out of nodes."""
        self.con.execute(
            f"UPDATE nodes SET name = '', content = '', created_at = ? WHERE row {IN}",
            (ERASED, among(rows)),
        )
        self.con.executemany(
            "UPDATE texts SET name = '', content = '' WHERE rowid = ?", [(row,) for row in rows]
        )
        sql = f"SELECT DISTINCT born FROM notes WHERE node {IN} AND text NOT IN ('', '{{}}')"
        commits = {born for (born,) in self.con.execute(sql, (among(rows),))}
        self.con.execute(
            "UPDATE notes SET text = CASE kind WHEN 'metadata' THEN '{}' ELSE '' END "
            f"WHERE node {IN}",
            (among(rows),),
        )
        return commits

    def erase_edges(self, rows: list[int]) -> list[tuple[int, bytes]]:
        """Take the metadata out of edges at nodes; return (row, id) of those that had some."""
        found: list[Any] = self.con.execute(
            f"SELECT row, id, metadata FROM edges WHERE (source {IN} OR target {IN}) "
            "AND metadata != '{}' ORDER BY row",
            (among(rows), among(rows)),
        ).fetchall()
        changed = []
        for row, ident, metadata in found:
            less = _without_texts(metadata)
            if less != metadata:
                self.con.execute("UPDATE edges SET metadata = ? WHERE row = ?", (less, row))
                changed.append((row, ident))
        return changed

    def erase_staged(self, rows: list[int]) -> set[int]:
        """Take evidence and reasons out of proposals and conflicts at nodes, and their commits."""
        commits: dict[int, set[str]] = {}
        for table, column, blank in (("proposals", "evidence", "{}"), ("conflicts", "reason", "")):
            where = f"(low {IN} OR high {IN}) AND {column} != ?"
            values: tuple[Any, ...] = (among(rows), among(rows), blank)
            sql = f"SELECT born, e.id FROM {table} s JOIN edges e ON e.row = s.edge WHERE {where}"
            sql = sql.replace("born", "s.born", 1)
            for born, ident in self.con.execute(sql, values):
                commits.setdefault(born, set()).add(ident.hex())
            values = (blank, among(rows), among(rows), blank)
            self.con.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", values)
        for seq, edges in commits.items():
            text: str = self.con.execute("SELECT changes FROM commits WHERE seq = ?", (seq,)).get
            blanked = _blanked(text, edges)
            self.con.execute("UPDATE commits SET changes = ? WHERE seq = ?", (blanked, seq))
        return set(commits)

    def erase_derived(self, rows: list[int]) -> None:
        """Take vectors and keys away; sums of vectors are made again when somebody searches."""
        self.con.execute(
            f"UPDATE vectors SET vector = zeroblob(length(vector)) WHERE node {IN}", (among(rows),)
        )
        self.con.execute(f"DELETE FROM tokens WHERE node {IN}", (among(rows),))
        self.con.execute("DELETE FROM pools")
        self.con.execute("UPDATE models SET composed = 1, seq = -1")
        self.con.execute(f"DELETE FROM lookups WHERE node {IN}", (among(rows),))
        self.con.executemany(LEFT_LOOKUPS, [(row,) for row in rows])


def _without_texts(metadata: str) -> str:
    data = json.loads(metadata)
    kept = {key: data[key] for key in KEPT if key in data}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def _blanked(changes: str, edges: Iterable[str]) -> str:
    """Return a commit's changes without what they say of some edges' evidence and reasons."""
    chosen = set(edges)
    rows = json.loads(changes)
    for kind, ident, detail in rows:
        if ident in chosen and kind == "propose":
            detail["evidence"] = "{}"
        elif ident in chosen and kind == "flag":
            detail["reason"] = ""
    return json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

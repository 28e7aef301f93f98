"""Lookups: the SQL of the index that finds nodes by keys of names, attributes and contents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from worlddb.model.drafts import ATTRIBUTE, from_metadata
from worlddb.store.sqlite.staged import IN, among

COUNTED_MAX = 1_000
LEFT_LOOKUPS = (
    "INSERT OR IGNORE INTO lookups_moved SELECT ?1 WHERE EXISTS (SELECT 1 FROM lookups_reached)"
)
"""What is moved or erased is to be filed again, once anything is: also what somebody is filing."""
HAS_ATTRIBUTES = f"kind = 'metadata' AND instr(text, '\"{ATTRIBUTE}')"

Attributes = list[tuple[int, dict[str, str]]]


class Lookups:
    """Keys are numbers; several nodes may have the same one, also by chance."""

    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def reached(self) -> tuple[int, int]:
        """Return the last node and the last note that are in the index."""
        found = self.con.execute("SELECT node, note FROM lookups_reached").fetchone()
        return (1, 0) if found is None else (int(found[0]), int(found[1]))

    def is_begun(self) -> bool:
        """Return whether anything was ever filed."""
        return self.con.execute("SELECT 1 FROM lookups_reached").get is not None

    def set_reached(self, node: int, note: int) -> None:
        """Record how far the index has come; nothing is left that was moved."""
        self.con.execute("INSERT OR REPLACE INTO lookups_reached VALUES (0, ?, ?)", (node, note))
        self.con.execute("DELETE FROM lookups_moved")

    def moved(self) -> list[int]:
        """Return the nodes that were moved to another world since they came into the index."""
        return [row for (row,) in self.con.execute("SELECT node FROM lookups_moved")]

    def names(self, world: int) -> int:
        """Return how many nodes with a name have come into a world."""
        sql = "SELECT names FROM lookups_worlds WHERE world = ?"
        found: int | None = self.con.execute(sql, (world,)).get
        return found or 0

    def add_names(self, names: Mapping[int, int]) -> None:
        """Count the names that have come into worlds."""
        self.con.executemany(
            "INSERT INTO lookups_worlds VALUES (?, ?) "
            "ON CONFLICT DO UPDATE SET names = names + excluded.names",
            names.items(),
        )

    def put(self, rows: Iterable[tuple[int, int]]) -> None:
        """Add (key, node); what is there already stays."""
        self.con.executemany("INSERT OR IGNORE INTO lookups VALUES (?, ?)", rows)

    def find(self, keys: Sequence[int], most: int) -> dict[int, list[int]]:
        """Return up to `most` nodes of each key, the newest first."""
        sql = "SELECT node FROM lookups WHERE key = ? ORDER BY node DESC LIMIT ?"
        return {key: [row for (row,) in self.con.execute(sql, (key, most))] for key in keys}

    def count(self, key: int) -> int:
        """Return how many nodes have a key, counted up to `COUNTED_MAX`."""
        sql = "SELECT count(*) FROM (SELECT 1 FROM lookups WHERE key = ? LIMIT ?)"
        found: int = self.con.execute(sql, (key, COUNTED_MAX)).get
        return found

    def attributes(self, nodes: Sequence[int]) -> Attributes:
        """Return (node, attributes) of nodes each time they were told, the latest last."""
        where = f"WHERE node {IN} AND {HAS_ATTRIBUTES} ORDER BY row"
        return self._attributes(where, (among(list(nodes)),))

    def attributes_after(self, note: int) -> Attributes:
        """Return (node, attributes) of the notes written after one."""
        return self._attributes(f"WHERE row > ? AND {HAS_ATTRIBUTES}", (note,))

    def _attributes(self, where: str, values: tuple[Any, ...]) -> Attributes:
        found = self.con.execute(f"SELECT node, text FROM notes {where}", values)
        return [(node, from_metadata(json.loads(text))) for node, text in found]

"""Placed: what lies directly inside worlds, the latest first, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge
from itertools import islice

import apsw

from worlddb.store.sqlite.staged import IN, among

# One world at a time: only then does SQLite read a page from the end of the index, and no more.
_CHILDREN = "SELECT row FROM nodes WHERE parent = ? AND row < ? ORDER BY row DESC LIMIT ?"
_MEMBERS = """
    SELECT DISTINCT target FROM edges
    WHERE source = ? AND type = 'contains' AND gone IS NULL AND target < ?
      AND (valid_to IS NULL OR valid_to > ?)
    ORDER BY target DESC LIMIT ?
"""
_TYPED = """
    SELECT row FROM nodes
    WHERE parent = ? AND row > ? AND type = ? AND name >= ? AND name < ? ORDER BY row LIMIT ?
"""
_ENDED = f"SELECT row FROM nodes WHERE row {IN} AND valid_to <= ?"
_HOLDERS = f"""
    SELECT parent FROM nodes WHERE row {IN} AND parent IS NOT NULL
    UNION SELECT source FROM edges WHERE target {IN} AND type = 'contains' AND gone IS NULL
"""
_AFTER_ALL = "\U0010ffff"


class Placed:
    """Pages of worlds, as of now."""

    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def latest(self, worlds: Iterable[int], before: int, now: int, most: int) -> list[int]:
        """Return the rows below `before` of the children and members of worlds, latest first."""
        pages = []
        for world in worlds:
            children = self.con.execute(_CHILDREN, (world, before, most))
            members = self.con.execute(_MEMBERS, (world, before, now, most))
            pages += [[row for (row,) in found] for found in (children, members)]
        both = merge(*pages, reverse=True)
        return list(islice(dict.fromkeys(both), most))

    def holders(self, rows: Iterable[int]) -> set[int]:
        """Return the worlds that any of some rows live in, or are or will be members of."""
        given = list(rows)
        return {row for (row,) in self.con.execute(_HOLDERS, (among(given), among(given)))}

    def ended(self, rows: Iterable[int], at: int) -> set[int]:
        """Return those rows whose validity is over at `at`."""
        found = self.con.execute(_ENDED, (among(list(rows)), at))
        return {row for (row,) in found}

    def typed(self, world: int, type_: str, start: str, after: int, most: int) -> list[int]:
        """Return a world's children above row `after` of a type, with names that begin so."""
        values = (world, after, type_, start, start + _AFTER_ALL, most)
        return [row for (row,) in self.con.execute(_TYPED, values)]

"""Neighbourhoods: what lies within two hops of nodes, for many of them on one snapshot.

What was written together is mostly about the same few names, and a name that many texts mention has
many edges. So each node's edges are read once, however many neighbourhoods it is in.
"""

from __future__ import annotations

from collections.abc import Iterable

from worlddb.read.resolving import HOPS, NEIGHBOURS_MAX
from worlddb.store.protocol import ROOT_ROW, Reader


class Neighbourhoods:
    """The neighbourhoods of one snapshot, as of commit `known`."""

    def __init__(self, reader: Reader, known: int | None) -> None:
        self._reader = reader
        self._known = known
        self._ends: dict[int, tuple[int, ...]] = {}

    def of(self, rows: set[int]) -> list[int]:
        """Return the rows within two hops, nearest first, no more than are looked at."""
        seen = dict.fromkeys(sorted(rows))
        frontier = set(rows)
        for _ in range(HOPS):
            self._read(frontier)
            ends = {end for row in frontier for end in self._ends[row]}
            frontier = ends - seen.keys()
            seen.update(dict.fromkeys(sorted(frontier)))
            if len(seen) > NEIGHBOURS_MAX:
                break
        return list(seen)[:NEIGHBOURS_MAX]

    def _read(self, rows: Iterable[int]) -> None:
        """Read the other ends of the edges of rows that were not read before."""
        fresh = {row: set[int]() for row in rows if row not in self._ends}
        for item in self._reader.edges_at(fresh, "both", None, self._known) if fresh else ():
            # Being in one scope says nothing about who is who, and the root refers to what waits.
            if item.edge.type != "contains":
                for row, end in ((item.source, item.target), (item.target, item.source)):
                    if row in fresh and end != ROOT_ROW:
                        fresh[row].add(end)
        for row, ends in fresh.items():
            # As many as can be looked at: no more of them than are seen already are of no use.
            self._ends[row] = tuple(sorted(ends)[: 2 * NEIGHBOURS_MAX])

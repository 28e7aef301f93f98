"""Slots: where the vector of each row lies, in one growing block of memory.

A row that is put again or removed leaves its slot empty (its entry in `rows` is GONE); a slot is
never given to another row, so that a slot's number is good as a label in the graph.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from worlddb.index.arrays import Floats, Ints

GONE = -1
CAPACITY_MIN = 64


class Slots:
    """The vectors of rows: `vectors[slot]` belongs to `rows[slot]`; `used` slots are in use."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.used = 0
        self.live = 0
        self._vectors: Floats = np.empty((0, dim), np.float32)
        self._rows: Ints = np.empty(0, np.int64)
        # Slot + 1 of each row, 0 for none: fresh pages of zeros cost nothing until they are used.
        self._places: npt.NDArray[np.int32] = np.zeros(0, np.int32)

    @property
    def vectors(self) -> Floats:
        """The vectors of all slots, also of those whose row is gone."""
        return self._vectors[: self.used]

    @property
    def rows(self) -> Ints:
        """The row of each slot, or GONE."""
        return self._rows[: self.used]

    def find(self, rows: Ints) -> Ints:
        """Return the slot of each row, or GONE."""
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self._places)):
            inside = (rows >= 0) & (rows < len(self._places))
            found = np.full(len(rows), GONE, np.int64)
            found[inside] = self._places[rows[inside]] - np.int64(1)
            return found
        return self._places[rows] - np.int64(1)

    def append(self, rows: Ints, vectors: Floats) -> None:
        """Give new slots, in this order, to rows that have none."""
        if not len(rows):
            return
        end = self.used + len(rows)
        self._reserve(end, int(rows.max()))
        self._vectors[self.used : end] = vectors
        self._rows[self.used : end] = rows
        self._places[rows] = np.arange(self.used + 1, end + 1)
        self.used = end
        self.live += len(rows)

    def empty(self, slots: Ints) -> None:
        """Part these slots from their rows; the vectors stay until `wipe`."""
        self._places[self._rows[slots]] = 0
        self._rows[slots] = GONE
        self.live -= len(slots)

    def wipe(self, slots: Ints) -> None:
        """Overwrite the vectors of slots whose rows are gone."""
        self._vectors[slots] = 0

    def packed(self) -> Slots:
        """Return the same rows in the same order without the empty slots."""
        kept = np.flatnonzero(self.rows != GONE)
        other = Slots(self.dim)
        other.append(self._rows[kept], self._vectors[kept])
        return other

    def _reserve(self, slots: int, row_max: int) -> None:
        if slots > len(self._rows):
            size = max(CAPACITY_MIN, slots, len(self._rows) + len(self._rows) // 2)
            vectors, rows = np.empty((size, self.dim), np.float32), np.empty(size, np.int64)
            vectors[: self.used], rows[: self.used] = self.vectors, self.rows
            self._vectors, self._rows = vectors, rows
        if row_max >= len(self._places):
            places = np.zeros(max(CAPACITY_MIN, row_max + 1, 2 * len(self._places)), np.int32)
            places[: len(self._places)] = self._places
            self._places = places

    def restore(self, rows: Ints, vectors: Floats) -> None:
        """Take over slots as they were saved, empty ones among them."""
        self._rows, self._vectors, self.used = rows, vectors, len(rows)
        taken = np.flatnonzero(rows != GONE)
        self.live = len(taken)
        self._places = np.zeros(int(rows.max(initial=0)) + 1, np.int32)
        self._places[rows[taken]] = taken + 1

"""Where the vector of each row is kept in memory, and who may use it at a time.

`checked_put` checks rows and vectors and scales the vectors to length 1. `VectorSlots` keeps them
in one growing block. A row that is put again or removed leaves its slot empty (its entry in `rows`
is GONE). A slot is never given to another row, so a slot number is a stable label in the graph.
`ReadWriteLock` lets many readers or one writer work on them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from worlddb.errors import InvalidInputError

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

ROWS_MAX = 2**31 - 2  # a slot + 1 fits an int32
UNIT_CLOSE = 1e-6  # rounding error of a float32 vector of length 1
GONE = -1
CAPACITY_MIN = 64  # first allocation: fewer would grow again at once


def checked_rows(given: Ints, name: str) -> Ints:
    """Return rows after a check of their type.

    Raises:
        InvalidInputError: not a one-dimensional array of int64.
    """
    if not isinstance(given, np.ndarray) or given.dtype != np.int64 or given.ndim != 1:
        raise InvalidInputError(f"give {name} as a one-dimensional array of int64")
    return given


def checked_put(rows: Ints, vectors: Floats, dim: int) -> tuple[Ints, Floats, Ints]:
    """Return rows and their unit vectors, and separately the rows whose vector is zero.

    If a row is given more than once, its last vector counts.

    Raises:
        InvalidInputError: arrays of another type or shape, or a vector that is not finite.
    """
    checked_rows(rows, "rows")
    if not isinstance(vectors, np.ndarray) or vectors.shape != (len(rows), dim):
        raise InvalidInputError(f"give the vectors as an array of {len(rows)} x {dim} float32")
    if len(rows) and (rows.min() < 0 or rows.max() > ROWS_MAX):
        raise InvalidInputError(f"rows are numbers from 0 to {ROWS_MAX:,}")
    _, last = np.unique(rows[::-1], return_index=True)
    if len(last) < len(rows):
        kept = np.sort(len(rows) - 1 - last)
        rows, vectors = rows[kept], vectors[kept]
    known, filled = units(vectors)
    if filled.all():
        return rows, known, rows[:0]
    return rows[filled], known[filled], rows[~filled]


def units(vectors: Floats) -> tuple[Floats, Bools]:
    """Return the vectors at length 1, and which of them are not zero.

    Vectors of length 1 keep their bits. The result is a copy.

    Raises:
        InvalidInputError: not float32, or not finite.
    """
    if vectors.dtype != np.float32:
        raise InvalidInputError(f"vectors are of type {vectors.dtype}; give float32")
    # Squares of float32 may overflow float32, but not float64.
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise InvalidInputError("a vector is not finite; leave out NaN and infinity")
    filled = lengths > 0
    found = vectors + np.float32(0)  # A copy, and -0.0 becomes 0.0: equal vectors have equal bits.
    long = np.flatnonzero(filled & (np.abs(lengths - 1) > UNIT_CLOSE))
    if len(long):
        found[long] = vectors[long] / lengths[long, None] + 0.0
    return found, filled


def unit(vector: Floats) -> Floats | None:
    """Return one vector at length 1, or None for a zero vector.

    Raises:
        InvalidInputError: not float32, or not finite.
    """
    if vector.dtype == np.float32:
        wide = vector.astype(np.float64)
        if abs(float(np.dot(wide, wide)) - 1) < UNIT_CLOSE:
            return vector
    found, filled = units(vector[None])
    return found[0] if filled[0] else None


def among(allowed: Ints, rows: Ints) -> Bools:
    """Return which rows are in `allowed`, which is ascending."""
    where = np.searchsorted(allowed, rows)
    found: Bools = allowed[np.minimum(where, len(allowed) - 1)] == rows
    return found


class VectorSlots:
    """The vectors of rows: `vectors[slot]` belongs to `rows[slot]`; `used` slots are in use."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.used = 0
        self.live = 0
        self._vectors: Floats = np.empty((0, dim), np.float32)
        self._rows: Ints = np.empty(0, np.int64)
        # Slot + 1 of each row, 0 for none: fresh zero pages cost no memory until they are used.
        self._places: npt.NDArray[np.int32] = np.zeros(0, np.int32)

    @property
    def vectors(self) -> Floats:
        """The vectors of all slots, including those whose row is gone."""
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
        """Give new slots, in this order, to rows without one."""
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
        """Mark slots as gone; their vectors stay until `wipe`."""
        self._places[self._rows[slots]] = 0
        self._rows[slots] = GONE
        self.live -= len(slots)

    def wipe(self, slots: Ints) -> None:
        """Overwrite the vectors of slots that are gone."""
        self._vectors[slots] = 0

    def packed(self) -> VectorSlots:
        """Return the same rows in the same order, without the slots that are gone."""
        kept = np.flatnonzero(self.rows != GONE)
        other = VectorSlots(self.dim)
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
        """Take over saved slots, including those that are gone."""
        self._rows, self._vectors, self.used = rows, vectors, len(rows)
        taken = np.flatnonzero(rows != GONE)
        self.live = len(taken)
        self._places = np.zeros(int(rows.max(initial=0)) + 1, np.int32)
        self._places[rows[taken]] = taken + 1


class ReadWriteLock:
    """A lock for many readers or one writer, without starvation; not reentrant.

    A reader that comes while a writer waits or works lets that one writer pass and goes next, even
    if more writers queue. A writer waits for the readers that came before it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0
        self._turn = 0
        self._waiting = 0  # Readers that wait for the present turn to end.
        self._due = 0  # Readers of the last turn that have not come in yet.

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Share the lock for the length of the block."""
        with self._changed:
            if self._writing or self._writers_waiting:
                self._wait_as_reader()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers and self._writers_waiting:
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone for the length of the block."""
        with self._changed:
            self._writers_waiting += 1
            try:
                while self._writing or self._readers or self._due:
                    self._changed.wait()
            except BaseException:
                # Interrupted while waiting: the readers behind this writer must not wait for it.
                self._writers_waiting -= 1
                self._end_turn()
                raise
            self._writers_waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._end_turn()

    def _wait_as_reader(self) -> None:
        turn = self._turn
        self._waiting += 1
        try:
            while self._turn == turn or self._writing:
                self._changed.wait()
        finally:
            if self._turn == turn:
                self._waiting -= 1
            else:
                self._due -= 1
                self._changed.notify_all()

    def _end_turn(self) -> None:
        self._turn += 1
        self._due += self._waiting
        self._waiting = 0
        self._changed.notify_all()

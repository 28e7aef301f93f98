"""Vector graph: a graph of approximate nearest neighbours (HNSW), and the slots of its vectors.

`VectorSlots` keeps the vectors in one growing block. A row that is put again or removed leaves its
slot empty (its entry in `rows` is GONE). A slot is never given to another row, so a slot number is
a stable label in the graph. `checked_put` checks rows and vectors and scales the vectors to length
1. `ReadWriteLock` admits many readers or one writer.

There are two graphs, the *parts*; the bits of a vector decide its part. Each part is built by one
thread, in the order of the slots. So two cores build at full speed, and the same vectors always
give the same graphs; one graph built by two threads would differ from run to run. A search asks
both parts.

Equal vectors share one entry, because a graph breaks up when many entries have no distance between
them. The first slot is the entry; the others are its twins.
"""

from __future__ import annotations

import io
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

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
    """Return rows after a check of their type."""
    if not isinstance(given, np.ndarray) or given.dtype != np.int64 or given.ndim != 1:
        raise InvalidInputError(f"give {name} as a one-dimensional array of int64")
    return given


def checked_put(rows: Ints, vectors: Floats, dim: int) -> tuple[Ints, Floats, Ints]:
    """Return rows and their unit vectors, and separately the rows whose vector is zero.

    If a row is given more than once, its last vector counts.
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
        # Slot + 1 of each row, 0 for none: fresh zero pages use no memory until they are written.
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

    A reader that arrives while a writer waits or works lets that one writer pass and goes next,
    even if more writers queue. A writer waits for the readers that arrived before it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0
        self._turn = 0
        self._waiting = 0  # Readers that wait for the present turn to end.
        self._due = 0  # Readers of the last turn that have not entered yet.

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


M = 16  # links per entry, the usual choice: more links cost memory for little recall
EF_CONSTRUCTION = 200  # depth of the search while building, the usual choice for this M
# Least depth of a search in each part. With text vectors, two parts at 48 find as much as one graph
# at 64, with synthetic vectors more. Long vectors need more for equal recall.
EF_SHORT = 48
EF_LONG = 96  # twice as deep
LONG_DIM = 64  # vectors from this length on are long
PARTS = 2  # one per core of a small machine; each further part slows every search
SEED = 1  # any fixed number: equal vectors must give equal graphs
BUILD_CHUNK = 8_192  # vectors copied for the graph library at a time: bounds the memory
THREADS_FROM = 64  # fewer insertions are faster without starting threads
SPREAD = 0.05  # how far from a live neighbour the entry of a removed vector is put
SCRUB_NEAR = 8  # neighbours looked at for a live one; nearly always the first is


class _Part(Protocol):
    """The part of `voyager.Index` that is used here."""

    num_elements: int
    max_elements: int
    num_dimensions: int

    def query(
        self, vectors: Floats, k: int, num_threads: int, query_ef: int
    ) -> tuple[npt.NDArray[np.uint64], Floats]: ...
    def add_item(self, vector: Floats, id: int) -> int: ...
    def add_items(self, vectors: Floats, ids: Sequence[int], num_threads: int) -> list[int]: ...
    def resize(self, new_size: int) -> None: ...
    def as_bytes(self) -> bytes: ...
    def __contains__(self, id: int) -> bool: ...


class Graph:
    """Entries that can be searched and added; the caller filters out slots that are gone."""

    def __init__(self, dim: int) -> None:
        import voyager

        self._recall_error: type[Exception] = voyager.RecallError
        self._parts: list[_Part] = [
            voyager.Index(
                voyager.Space.InnerProduct,
                num_dimensions=dim,
                M=M,
                ef_construction=EF_CONSTRUCTION,
                random_seed=SEED,
            )
            for _ in range(PARTS)
        ]
        self._twins: dict[int, array[int]] = {}
        self.depth = EF_SHORT if dim < LONG_DIM else EF_LONG

    def __len__(self) -> int:
        return sum(part.num_elements for part in self._parts)

    def build(self, slots: Ints, vectors: Floats, threads: int) -> None:
        """Fill an empty graph: `vectors[i]` is the vector of `slots[i]`."""
        entries, twins, leads = _distinct(vectors)
        for slot, lead in zip(slots[twins].tolist(), slots[leads].tolist(), strict=True):
            self._twins.setdefault(lead, array("q")).append(slot)
        owners = _part_of(vectors)[entries]

        def fill(number: int) -> None:
            part, mine = self._parts[number], entries[owners == number]
            _reserve(part, len(mine))
            for i in range(0, len(mine), BUILD_CHUNK):
                chunk = mine[i : i + BUILD_CHUNK]
                part.add_items(vectors[chunk], slots[chunk].tolist(), num_threads=1)

        _for_each_part(fill, threads)

    def insert(self, slots: Ints, vectors: Floats) -> None:
        """Add slots to a graph in use; `vectors` are those of all slots."""
        owners = _part_of(vectors[slots])

        def add(number: int) -> None:
            part, mine = self._parts[number], slots[owners == number].tolist()
            _reserve(part, len(mine))
            for slot in mine:
                vector = vectors[slot]
                if part.num_elements:
                    near = int(part.query(vector, 1, 1, EF_SHORT)[0][0])
                    if np.array_equal(vectors[near], vector):
                        self._twins.setdefault(near, array("q")).append(slot)
                        continue
                part.add_item(vector, slot)

        _for_each_part(add, PARTS if len(slots) >= THREADS_FROM else 1)

    def search(self, query: Floats, count: int) -> tuple[Ints, float] | None:
        """Return the slots of about `count` nearest entries of each part, and a floor.

        No entry left out is nearer than the floor. Returns None if a part cannot reach all of its
        entries; then only an exact scan helps.
        """
        near: list[npt.NDArray[np.uint64]] = []
        floor = -np.inf
        depth = max(self.depth, 2 * count)
        for part in self._parts:
            if not (size := part.num_elements):
                continue
            try:
                labels, distances = part.query(query, min(count, size), 1, depth)
            except self._recall_error:
                return None
            near.append(labels)
            if count < size:
                floor = max(floor, 1.0 - float(distances[-1]))
        found = np.concatenate(near).astype(np.int64) if near else np.empty(0, np.int64)
        return self._with_twins(found), floor

    def _with_twins(self, slots: Ints) -> Ints:
        if not self._twins:
            return slots
        twins = self._twins
        more = [np.frombuffer(twins[slot], np.int64) for slot in slots.tolist() if slot in twins]
        return np.concatenate([slots, *more]) if more else slots

    def scrub(self, slots: Ints, vectors: Floats, live: Bools) -> Ints:
        """Overwrite the vectors of slots that are gone; return the slots that are unused now.

        The entry stays, because other entries are reached through it. It moves beside a live
        neighbour, not onto it, because equal entries break up the graph. An entry with a live twin
        stays in place.
        """
        owners = _part_of(vectors[slots])
        unused: list[int] = []

        def scrub(number: int) -> None:
            part = self._parts[number]
            for slot in slots[owners == number].tolist():
                if slot in part:
                    twins = np.frombuffer(self._twins.get(slot, array("q")), np.int64)
                    if live[twins].any():
                        continue
                    part.add_item(_stone(part, slot, vectors, live), slot)
                    self._twins.pop(slot, None)
                unused.append(slot)

        _for_each_part(scrub, PARTS if len(slots) >= THREADS_FROM else 1)
        return np.array(unused, np.int64)

    def dump(self) -> tuple[Ints, list[bytes]]:
        """Return the twins as (entry, twin) pairs, and the bytes of each part."""
        pairs = [(lead, twin) for lead, twins in self._twins.items() for twin in twins]
        parts = [part.as_bytes() if part.num_elements else b"" for part in self._parts]
        return np.array(pairs, np.int64).reshape(-1, 2), parts

    @classmethod
    def restore(cls, dim: int, pairs: Ints, parts: Sequence[bytes]) -> Graph:
        """Return the graph that `dump` returned."""
        import voyager

        graph = cls(dim)
        for number, part in enumerate(parts):
            if part:
                graph._parts[number] = voyager.Index.load(io.BytesIO(part))
            if graph._parts[number].num_dimensions != dim:
                raise ValueError(f"a graph of vectors that have not {dim} numbers")
        for lead, twin in pairs.tolist():
            graph._twins.setdefault(lead, array("q")).append(twin)
        return graph


def _stone(part: _Part, slot: int, vectors: Floats, live: Bools) -> Floats:
    """Return the new vector for the entry of a removed row: near a live neighbour, or anywhere."""
    near = part.query(vectors[slot], min(SCRUB_NEAR, part.num_elements), 1, EF_SHORT)[0]
    stone: Floats = np.random.default_rng(slot).standard_normal(vectors.shape[1:], np.float32)
    stone /= np.linalg.norm(stone)
    for other in near.astype(np.int64).tolist():
        if live[other]:
            stone = vectors[other] + np.float32(SPREAD) * stone
            break
    stone /= np.linalg.norm(stone)
    return stone


def _reserve(part: _Part, more: int) -> None:
    """Reserve room ahead; otherwise a part copies itself for each new entry."""
    needed = part.num_elements + more
    if needed > part.max_elements:
        part.resize(max(needed, part.max_elements + part.max_elements // 2))


def _bit_sums(vectors: Floats) -> npt.NDArray[np.uint32]:
    sums: npt.NDArray[np.uint32] = np.add.reduce(vectors.view(np.uint32), axis=1, dtype=np.uint32)
    return sums


def _part_of(vectors: Floats) -> npt.NDArray[np.uint32]:
    """Return the part of each vector; equal vectors are in one part."""
    mixed: npt.NDArray[np.uint32] = _bit_sums(vectors) * np.uint32(2_654_435_769)
    part: npt.NDArray[np.uint32] = (mixed >> np.uint32(16)) % np.uint32(PARTS)
    return part


def _distinct(vectors: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the positions of first occurrences, of repetitions, and of the firsts they repeat."""
    folded = np.bitwise_xor.reduce(vectors.view(np.uint32), axis=1)
    keys = (_bit_sums(vectors).astype(np.uint64) << np.uint64(32)) | folded
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    leads = first[group]
    repeated = np.flatnonzero(leads != np.arange(len(vectors)))
    # Different vectors may share a key; each of them is an entry.
    equal = (vectors[repeated] == vectors[leads[repeated]]).all(axis=1)
    twins = repeated[equal]
    entry = np.ones(len(vectors), np.bool_)
    entry[twins] = False
    return np.flatnonzero(entry), twins, leads[twins]


def _for_each_part(work: Callable[[int], None], threads: int) -> None:
    if threads < 2:
        for number in range(PARTS):
            work(number)
        return
    with ThreadPoolExecutor(min(threads, PARTS)) as pool:
        list(pool.map(work, range(PARTS)))

"""Exact: cosines of one question with many unit vectors, and the best of them.

Everything here runs on one thread. The matrix product of numpy would hand even small products to
all cores, and on a busy machine the slowest core decides: milliseconds instead of microseconds.
Both kernels used here also add up each vector alone, in the same order wherever it lies, so equal
vectors have equal cosines and ties are real ties.
"""

from __future__ import annotations

import math
import os
import threading

import numpy as np

from worlddb.errors import InvalidInputError
from worlddb.index import hnsw as saved
from worlddb.index.hnsw import LONG_DIM, Graph
from worlddb.index.vector_slots import (
    GONE,
    Floats,
    Ints,
    Slots,
    Turns,
    among,
    checked_put,
    checked_rows,
    unit,
)

NOT_A_COSINE = np.float32(-2)
SHORT_DIM = 32  # Below it, a call per vector (vecdot) costs more than its sum.
BLOCK = 64
BLOCKS_PER_K = 4
GATHER_CHUNK = 4_096  # Vectors that are copied together, so that they stay in the cache.


def cosines(vectors: Floats, query: Floats) -> Floats:
    """Return the cosine of each unit vector with a unit query, at most 1."""
    found: Floats
    if vectors.shape[1] < SHORT_DIM:
        found = np.einsum("ij,j->i", vectors, query)
    else:
        found = np.vecdot(vectors, query)
    np.minimum(found, np.float32(1), out=found)
    return found


def best(scores: Floats, k: int) -> Ints:
    """Return the positions of the k highest scores and of all that equal the last of them.

    A few more may be among them; none that belongs there is missing.
    """
    count = len(scores)
    if count <= k:
        return np.arange(count)
    blocks = count // BLOCK
    if blocks > BLOCKS_PER_K * k:
        # The k-th highest of the blocks' maxima is a score that at least k scores reach.
        heads = scores[: blocks * BLOCK].reshape(blocks, BLOCK).max(axis=1)
        bound = np.partition(heads, blocks - k)[blocks - k]
    else:
        bound = np.partition(scores, count - k)[count - k]
    return np.flatnonzero(scores >= bound)


def ranked(rows: Ints, scores: Floats, k: int) -> list[tuple[int, float]]:
    """Return the k best as (row, score), highest score first, ties by row."""
    order = np.lexsort((rows, -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def scan(slots: Slots, query: Floats, k: int, allowed: Ints | None) -> list[tuple[int, float]]:
    """Return the k best of all rows, or of the allowed ones, after looking at each of them.

    Raises:
        InvalidInputError: `allowed` is not ascending.
    """
    if allowed is None:
        scores, rows = cosines(slots.vectors, query), slots.rows
        if slots.live < slots.used:
            scores[rows == GONE] = NOT_A_COSINE
    else:
        if (allowed[1:] <= allowed[:-1]).any():
            raise InvalidInputError("give the allowed rows in ascending order, each once")
        where = slots.find(allowed)
        seen = where != GONE
        where, rows = where[seen], allowed[seen]
        if 2 * len(where) > slots.used:
            scores = cosines(slots.vectors, query)[where]
        else:
            scores = np.empty(len(where), np.float32)
            for i in range(0, len(where), GATHER_CHUNK):
                chunk = slice(i, i + GATHER_CHUNK)
                scores[chunk] = cosines(slots.vectors[where[chunk]], query)
    top = best(scores, k)
    top = top[scores[top] > NOT_A_COSINE]
    return ranked(rows[top], scores[top], k)


# Nearest: which rows' vectors point most nearly where a question points.
#
# put ──▶ tail ──(tail too long)──▶ graph
# └───────── search ────────┘
#
# New and changed vectors go to the tail, where search looks at each of them, so a change counts at
# once. While there are few vectors everything is tail, and answers are exact. Above that, the oldest
# of the tail move on into a graph, a few with every put, and answers from there are approximate.
#
# N1  A row that was removed, or the old vector of one that was put again, is never returned.
# N2  A search returns k rows if k are there to be seen, and only rows that may be seen.
# N3  The same calls in the same order give the same answers.
# N4  A saved file holds nothing of rows that were removed.
#
# Not here: where vectors come from, which rows may be seen, when to save.


DIM_MAX = 65_536
# Near where both take equally long: 8,000 at 16 dimensions; at 256, 17,000 with text vectors and
# 29,000 with synthetic ones (bench.vectors). An exact answer is worth a little more time.
EXACT_BELOW_SHORT = 12_000
EXACT_BELOW_LONG = 18_000
TAIL_MAX = 1_024
MOVED_PER_PUT = 4  # Slots that move into the graph for each row put, until the tail is short.
MOVE_CHUNK = 64  # Slots that move while searches wait.
DEEPER = 4
WASTE_MIN = 1_024
SCRUB_SHARE = 0.1  # Of all rows: above it, building again costs less than scrubbing.
ROUNDING = 1e-6


class Nearest:
    """An index of unit vectors by row, for one writer and many readers."""

    def __init__(self, dim: int, *, exact_below: int | None = None) -> None:
        """Make an empty index.

        Args:
            dim: the length of every vector.
            exact_below: up to so many vectors are searched one by one, without a graph; None for
                as many as take no longer than the graph does.

        Raises:
            InvalidInputError: a dimension or number that cannot be.
        """
        if not 1 <= dim <= DIM_MAX:
            raise InvalidInputError(f"dim is {dim}; give 1 to {DIM_MAX:,}")
        if exact_below is None:
            exact_below = EXACT_BELOW_SHORT if dim < LONG_DIM else EXACT_BELOW_LONG
        if exact_below < 0:
            raise InvalidInputError(f"exact_below is {exact_below}; give 0 or more")
        self.dim = dim
        self._exact_below = exact_below
        self._tail_max = min(TAIL_MAX, exact_below)
        self._slots = Slots(dim)
        self._graph: Graph | None = None
        self._moved = 0  # Slots before this one are in the graph, or gone.
        self._blank: set[int] = set()  # Rows whose vector is zero: they point nowhere.
        self._turns = Turns()
        self._writer = threading.RLock()

    def __len__(self) -> int:
        return self._slots.live + len(self._blank)

    def put(self, rows: Ints, vectors: Floats) -> None:
        """Insert rows, or replace the vectors of those that are there; the last one given counts.

        Vectors are kept at length 1. Zero vectors are kept and never found.

        Raises:
            InvalidInputError: arrays of another type or shape, or a vector that is not finite.
        """
        given, known, blank = checked_put(rows, vectors, self.dim)
        with self._writer:
            with self._turns.writing():
                self._drop(blank)
                self._blank.update(blank.tolist())
                self._place(given, known)
            self._settle(len(given))

    def remove(self, rows: Ints) -> None:
        """Forget rows; unknown ones are ignored.

        Raises:
            InvalidInputError: not an array of int64.
        """
        given = checked_rows(rows, "rows")
        with self._writer:
            with self._turns.writing():
                self._blank.difference_update(given.tolist())
                self._drop(np.unique(given))
            self._settle(len(given))

    def build(self, rows: Ints, vectors: Floats, threads: int | None = None) -> None:
        """Hold these rows instead of all that is held now; searches go on until the swap.

        Raises:
            InvalidInputError: as `put`.
        """
        given, known, blank = checked_put(rows, vectors, self.dim)
        with self._writer:
            slots = Slots(self.dim)
            slots.append(given, known)
            self._swap(slots, set(blank.tolist()), threads)

    def rebuild(self, threads: int | None = None) -> None:
        """Build anew from the rows held now, without what removed and replaced rows left behind."""
        with self._writer:
            self._swap(self._slots.packed(), self._blank, threads)

    def search(self, query: Floats, k: int, allowed: Ints | None = None) -> list[tuple[int, float]]:
        """Return up to k rows and their cosines with the query, best first, ties by row.

        Args:
            query: a vector; a zero vector finds nothing.
            k: how many.
            allowed: the rows that may be seen, ascending, each once; None for all.

        Raises:
            InvalidInputError: k below 1, or arrays of another type or shape.
        """
        if k < 1:
            raise InvalidInputError(f"k is {k}; give 1 or more")
        if not isinstance(query, np.ndarray) or query.shape != (self.dim,):
            raise InvalidInputError(f"give the query as an array of {self.dim} float32")
        if allowed is not None:
            allowed = checked_rows(allowed, "allowed")
        wanted = unit(query)
        if wanted is None:
            return []
        with self._turns.reading():
            found = self._approximate(wanted, k, allowed)
            return scan(self._slots, wanted, k, allowed) if found is None else found

    def save(self, path: str, stamp: bytes) -> None:
        """Write the index to a file, in place of the one that is there.

        Raises:
            InvalidInputError: the stamp is too long.
            StorageError: the disk refused; the old file is as it was.
        """
        with self._writer:
            self._scrub()
            with self._turns.reading():
                slots, graph = self._slots, self._graph
                pairs, parts = graph.dump() if graph else (np.empty((0, 2), np.int64), [b"", b""])
                blank = np.array(sorted(self._blank), np.int64)
                arrays = (slots.rows, slots.vectors, blank, pairs)
                views = [each.reshape(-1).view(np.uint8).data for each in arrays]
                views += [memoryview(part) for part in parts]
                saved.write(path, self.dim, self._moved, stamp, views)

    @classmethod
    def load(
        cls,
        path: str,
        stamp: bytes | None,
        *,
        dim: int | None = None,
        exact_below: int | None = None,
    ) -> Nearest | None:
        """Return the index saved at `path`, or None unless it is whole and the one asked for.

        Args:
            path: the file.
            stamp: what it must have been saved with; None for anything.
            dim: what its vectors' length must be; None for anything.
            exact_below: as for a new index.
        """
        found = saved.read(path, stamp, dim)
        if found is None:
            return None
        head, (rows, vectors, blank, pairs, *parts) = found
        index = cls(head.dim, exact_below=exact_below)
        try:
            if any(len(part) for part in parts):
                shape = np.frombuffer(pairs, np.int64).reshape(-1, 2)
                index._graph = Graph.restore(head.dim, shape, [bytes(part) for part in parts])
        except (RuntimeError, ValueError):
            return None  # Whole, but written for another version of the graph library.
        index._slots.restore(
            np.frombuffer(rows, np.int64),
            np.frombuffer(vectors, np.float32).reshape(-1, head.dim),
        )
        index._moved = head.mark if index._graph is not None else 0
        index._blank = set(np.frombuffer(blank, np.int64).tolist())
        return index

    # How rows come, move and go. The caller holds the writer's lock.

    def _place(self, rows: Ints, vectors: Floats) -> None:
        if self._blank:
            self._blank.difference_update(rows.tolist())
        slots = self._slots.find(rows)
        in_tail = slots >= self._moved
        in_graph = (slots != GONE) & ~in_tail
        self._slots.vectors[slots[in_tail]] = vectors[in_tail]
        self._slots.empty(slots[in_graph])
        self._slots.append(rows[~in_tail], vectors[~in_tail])

    def _drop(self, rows: Ints) -> None:
        slots = self._slots.find(rows)
        slots = slots[slots != GONE]
        self._slots.empty(slots)
        self._slots.wipe(slots[slots >= self._moved])

    def _settle(self, changed: int) -> None:
        """Keep the tail short and the waste below what is live."""
        slots = self._slots
        if slots.used - slots.live > max(WASTE_MIN, slots.live):
            return self.rebuild()
        if self._graph is None and slots.live <= self._exact_below:
            return None
        moving = min(slots.used - self._moved - self._tail_max, MOVED_PER_PUT * changed)
        if self._graph is None:
            if moving >= slots.live // 2:
                return self.rebuild()
            self._graph = Graph(self.dim)
        end = self._moved + max(0, moving)
        while self._moved < end:
            stop = min(end, self._moved + MOVE_CHUNK)
            with self._turns.writing():
                chunk = np.arange(self._moved, stop)
                self._graph.insert(chunk[slots.rows[chunk] != GONE], slots.vectors)
                self._moved = stop
        return None

    def _swap(self, slots: Slots, blank: set[int], threads: int | None) -> None:
        graph = None
        if slots.live > self._exact_below:
            graph = Graph(self.dim)
            graph.build(np.arange(slots.used), slots.vectors, threads or os.cpu_count() or 1)
        with self._turns.writing():
            self._slots, self._graph, self._blank = slots, graph, blank
            self._moved = slots.used if graph is not None else 0

    def _scrub(self) -> None:
        slots, graph = self._slots, self._graph
        left = np.flatnonzero(slots.rows[: self._moved] == GONE)
        left = left[slots.vectors[left].any(axis=1)]
        if graph is None or not len(left):
            return
        if len(left) > SCRUB_SHARE * slots.live:
            self.rebuild()
            return
        for i in range(0, len(left), MOVE_CHUNK):
            with self._turns.writing():
                live = slots.rows != GONE
                slots.wipe(graph.scrub(left[i : i + MOVE_CHUNK], slots.vectors, live))

    def _approximate(
        self, query: Floats, k: int, allowed: Ints | None
    ) -> list[tuple[int, float]] | None:
        """Ask graph and tail for more and more, until nothing left out could belong to the k.

        None when looking at each row that may be seen takes less time. That time grows with the
        rows, the graph's with its depth, and `exact_below` rows take as long as the least depth.
        """
        slots, graph = self._slots, self._graph
        seen = slots.live if allowed is None else min(len(allowed), slots.live)
        if graph is None or not seen:
            return None
        count = math.ceil(k * (len(graph) + slots.used - self._moved) / seen)
        tail: Floats | None = None
        while seen > self._exact_below * max(1, 2 * count / graph.depth):
            answer = graph.search(query, count)
            if answer is None:
                return None
            near, floor = answer
            if self._moved < slots.used:
                if tail is None:
                    tail = cosines(slots.vectors[self._moved :], query)
                    tail[slots.rows[self._moved :] == GONE] = NOT_A_COSINE
                late = best(tail, count)
                if len(late) < len(tail):
                    floor = max(floor, float(tail[late].min()))
                near = np.concatenate((near, late + self._moved))
            rows = slots.rows[near]
            kept = rows != GONE if allowed is None else among(allowed, rows)
            found = ranked(rows[kept], cosines(slots.vectors[near[kept]], query), k)
            if floor == -math.inf or (len(found) == k and found[-1][1] >= floor - ROUNDING):
                return found
            count *= DEEPER
        return None

"""The nearest-neighbour index: the rows whose vectors have the highest cosine with a query.

    put ──▶ tail ──(tail too long)──▶ graph
             └───────── search ────────┘

New and changed vectors go to the tail, which every search scans, so a change counts at once. Up to
`exact_below` vectors everything is in the tail and answers are exact. Beyond that, the oldest slots
of the tail move into a graph, a few with every put, and answers from the graph are approximate.

N1  A removed row, or the old vector of a replaced row, is never returned.
N2  A search returns k rows if k rows are allowed, and only allowed rows.
N3  The same calls in the same order give the same answers.
N4  A saved file holds nothing of removed rows.

Cosines are computed on one thread. The matrix product of numpy would use all cores even for small
products, and on a busy machine the slowest core decides. Both kernels used here add up each vector
separately and in the same order, so equal vectors have equal cosines and ties are real ties.

A saved index is one file, read completely or not at all; beside an encrypted store it is sealed:

    magic · format · dim · slots in the graph · length of the stamp and of each section (fixed size)
    stamp · digest of everything before it
    sections, one after the other
    digest of all sections

The index is derived, so the file is not forced to disk. After a power cut it may be short; lengths
and digests show that, and the index is built again. A new file replaces the old one by renaming.

Not here: where vectors come from, which rows are allowed, when to save.
"""

from __future__ import annotations

import math
import os
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from blake3 import blake3

from worlddb.errors import InvalidInputError, StorageError, StoreKeyError
from worlddb.index.vector_graph import (
    GONE,
    LONG_DIM,
    Floats,
    Graph,
    Ints,
    ReadWriteLock,
    VectorSlots,
    among,
    checked_put,
    checked_rows,
    unit,
)
from worlddb.store.interface import Seal

BLOCK_BYTES = 1 << 20  # of a sealed file: large enough that nonce and tag do not count
_BLOCK = struct.Struct("<I")
NOT_A_COSINE = np.float32(-2)
SHORT_DIM = 32  # below this length, a call per vector (vecdot) costs more than its sum
BLOCK = 64  # scores per block; at first only the maximum of each block is ranked
BLOCKS_PER_K = 4  # with fewer blocks, their maxima bound the k-th score too loosely to save time
GATHER_CHUNK = 4_096  # vectors copied together, so that they stay in the cache

DIM_MAX = 65_536  # far above any embedder; the limit catches wrong arguments
# Near the point where both ways take equally long: 8,000 at 16 dimensions; at 256 dimensions 17,000
# with text vectors, 29,000 with synthetic ones (bench.vectors). Exactness is worth a little time.
EXACT_BELOW_SHORT = 12_000
EXACT_BELOW_LONG = 18_000  # the same for long vectors
TAIL_MAX = 1_024  # the scan of the tail stays short beside a search of the graph
MOVED_PER_PUT = 4  # slots that move into the graph for each row put, until the tail is short
MOVE_CHUNK = 64  # slots that move while searches wait
COUNT_GROWTH = 4  # factor by which a search that found too few allowed rows looks deeper
WASTE_MIN = 1_024  # fewer slots without a row are not worth a rebuild
SCRUB_SHARE = 0.1  # share of all rows above which a rebuild costs less than scrubbing
ROUNDING = 1e-6  # cosines from the graph and from here may differ by this much

MAGIC = b"WDBNEAR\n"
FORMAT = 1  # version of the file layout
SECTIONS = 6  # rows, vectors, rows of zero vectors, twins, and the two parts of the graph
STAMP_MAX = 1_024  # bytes; bounds what a damaged header can make us read
DIGEST = 32  # bytes of a blake3 digest

_FIXED = struct.Struct(f"<8sIIQI{SECTIONS}Q")


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
    """Return the positions of at least the k highest scores and all ties with the k-th.

    A few lower scores may be among them.
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


def ranked_rows(rows: Ints, scores: Floats, k: int) -> list[tuple[int, float]]:
    """Return the k best as (row, score), highest score first, ties by row."""
    order = np.lexsort((rows, -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def scan(
    slots: VectorSlots, query: Floats, k: int, allowed: Ints | None
) -> list[tuple[int, float]]:
    """Return the k best of all rows, or of the allowed rows, by an exact scan."""
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
    return ranked_rows(rows[top], scores[top], k)


class Nearest:
    """An index of unit vectors by row, for one writer and many readers."""

    def __init__(self, dim: int, *, exact_below: int | None = None) -> None:
        """Make an empty index.

        Args:
            dim: the length of every vector.
            exact_below: up to this many vectors are scanned without a graph; None for a number
                at which both ways take about equally long.
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
        self._slots = VectorSlots(dim)
        self._graph: Graph | None = None
        self._moved = 0  # Slots before this one are in the graph, or gone.
        self._blank: set[int] = set()  # Rows whose vector is zero: they have no cosine.
        self._lock = ReadWriteLock()
        self._writer = threading.RLock()

    def __len__(self) -> int:
        return self._slots.live + len(self._blank)

    def put(self, rows: Ints, vectors: Floats) -> None:
        """Insert rows or replace their vectors; if a row is given twice, the last vector counts.

        Vectors are scaled to length 1. A row with a zero vector is kept and never found.

        Raises:
            InvalidInputError: arrays of another type or shape, or a vector that is not finite.
        """
        given, known, blank = checked_put(rows, vectors, self.dim)
        with self._writer:
            with self._lock.writing():
                self._drop(blank)
                self._blank.update(blank.tolist())
                self._place(given, known)
            self._settle(len(given))

    def remove(self, rows: Ints) -> None:
        """Remove rows; unknown rows are ignored.

        Raises:
            InvalidInputError: not an array of int64.
        """
        given = checked_rows(rows, "rows")
        with self._writer:
            with self._lock.writing():
                self._blank.difference_update(given.tolist())
                self._drop(np.unique(given))
            self._settle(len(given))

    def build(self, rows: Ints, vectors: Floats, threads: int | None = None) -> None:
        """Replace the whole content by these rows; searches go on until the swap.

        Raises:
            InvalidInputError: as `put`.
        """
        given, known, blank = checked_put(rows, vectors, self.dim)
        with self._writer:
            slots = VectorSlots(self.dim)
            slots.append(given, known)
            self._swap(slots, set(blank.tolist()), threads)

    def rebuild(self, threads: int | None = None) -> None:
        """Build again from the live rows, without the slots of removed and replaced rows."""
        with self._writer:
            self._swap(self._slots.packed(), self._blank, threads)

    def search(self, query: Floats, k: int, allowed: Ints | None = None) -> list[tuple[int, float]]:
        """Return up to k rows and their cosines with the query, best first, ties by row.

        Args:
            query: a vector; a zero vector finds nothing.
            k: the number of rows.
            allowed: the rows that may be returned, ascending, each once; None for all.
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
        with self._lock.reading():
            found = self._approximate(wanted, k, allowed)
            return scan(self._slots, wanted, k, allowed) if found is None else found

    def save(
        self, path: str, stamp: bytes, like: str | None = None, seal: Seal | None = None
    ) -> None:
        """Write the index to a file, which replaces the one that is there.

        Vectors reveal much of the texts, so only the owner may read the file, or whoever may read
        the file `like`; with a `seal`, only a holder of its key.

        Raises:
            InvalidInputError: the stamp is too long.
            StorageError: the file cannot be written; the old file is unchanged.
        """
        with self._writer:
            self._scrub()
            with self._lock.reading():
                slots, graph = self._slots, self._graph
                pairs, parts = graph.dump() if graph else (np.empty((0, 2), np.int64), [b"", b""])
                blank = np.array(sorted(self._blank), np.int64)
                arrays = (slots.rows, slots.vectors, blank, pairs)
                views = [each.reshape(-1).view(np.uint8).data for each in arrays]
                views += [memoryview(part) for part in parts]
                header = IndexFileHeader(
                    self.dim, self._moved, stamp, tuple(view.nbytes for view in views)
                )
                _write_file(path, header, views, like, seal)

    @classmethod
    def load(
        cls,
        path: str,
        stamp: bytes | None,
        *,
        dim: int | None = None,
        exact_below: int | None = None,
        seal: Seal | None = None,
    ) -> Nearest | None:
        """Return the index saved at `path`; None if the file is damaged or not the expected one.

        Args:
            path: the file.
            stamp: the expected stamp; None for any.
            dim: the expected length of the vectors; None for any.
            exact_below: as for a new index.
            seal: the seal that the file was written with.
        """
        found = _read_file(path, stamp, dim, seal)
        if found is None:
            return None
        header, (rows, vectors, blank, pairs, *parts) = found
        index = cls(header.dim, exact_below=exact_below)
        try:
            if any(len(part) for part in parts):
                shape = np.frombuffer(pairs, np.int64).reshape(-1, 2)
                index._graph = Graph.restore(header.dim, shape, [bytes(part) for part in parts])
        except (RuntimeError, ValueError):
            return None  # Undamaged, but written by another version of the graph library.
        index._slots.restore(
            np.frombuffer(rows, np.int64),
            np.frombuffer(vectors, np.float32).reshape(-1, header.dim),
        )
        index._moved = header.moved if index._graph is not None else 0
        index._blank = set(np.frombuffer(blank, np.int64).tolist())
        return index

    # -- changes; the caller holds the writer's lock -----------------------------------------------

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
        """Keep the tail short, and the slots that are gone fewer than the live ones."""
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
            with self._lock.writing():
                chunk = np.arange(self._moved, stop)
                self._graph.insert(chunk[slots.rows[chunk] != GONE], slots.vectors)
                self._moved = stop
        return None

    def _swap(self, slots: VectorSlots, blank: set[int], threads: int | None) -> None:
        graph = None
        if slots.live > self._exact_below:
            graph = Graph(self.dim)
            graph.build(np.arange(slots.used), slots.vectors, threads or os.cpu_count() or 1)
        with self._lock.writing():
            self._slots, self._graph, self._blank = slots, graph, blank
            self._moved = slots.used if graph is not None else 0

    def _scrub(self) -> None:
        """Overwrite the vectors of removed rows in the graph (N4)."""
        slots, graph = self._slots, self._graph
        left = np.flatnonzero(slots.rows[: self._moved] == GONE)
        left = left[slots.vectors[left].any(axis=1)]
        if graph is None or not len(left):
            return
        if len(left) > SCRUB_SHARE * slots.live:
            self.rebuild()
            return
        for i in range(0, len(left), MOVE_CHUNK):
            with self._lock.writing():
                live = slots.rows != GONE
                slots.wipe(graph.scrub(left[i : i + MOVE_CHUNK], slots.vectors, live))

    def _approximate(
        self, query: Floats, k: int, allowed: Ints | None
    ) -> list[tuple[int, float]] | None:
        """Search graph and tail ever deeper, until no row left out can belong to the k best.

        Returns None if an exact scan takes less time. The time of a scan grows with the rows, that
        of the graph with its depth; a search at the least depth takes as long as a scan of
        `exact_below` rows.
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
            found = ranked_rows(rows[kept], cosines(slots.vectors[near[kept]], query), k)
            if floor == -math.inf or (len(found) == k and found[-1][1] >= floor - ROUNDING):
                return found
            count *= COUNT_GROWTH
        return None


# -- the saved file --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexFileHeader:
    """The header of a saved index; slots before `moved` are in the graph."""

    dim: int
    moved: int
    stamp: bytes
    lengths: tuple[int, ...]

    def pack(self) -> bytes:
        """Return the bytes of the header."""
        fixed = _FIXED.pack(MAGIC, FORMAT, self.dim, self.moved, len(self.stamp), *self.lengths)
        return fixed + self.stamp + blake3(fixed + self.stamp).digest()


class SealedStream:
    """A file in sealed blocks, written from its beginning, or read from there."""

    def __init__(self, file: BinaryIO, seal: Seal) -> None:
        self._file = file
        self._seal = seal
        self._waiting = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        """Add data; full blocks are written."""
        for start in range(0, len(data), BLOCK_BYTES):
            self._waiting += data[start : start + BLOCK_BYTES]
            if len(self._waiting) >= BLOCK_BYTES:
                self._flush(BLOCK_BYTES)

    def finish(self) -> None:
        """Write what is left."""
        self._flush(len(self._waiting))

    def _flush(self, size: int) -> None:
        block = self._seal.close(bytes(self._waiting[:size]))
        self._file.write(_BLOCK.pack(len(block)) + block)
        del self._waiting[:size]

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, or all that are left; an unreadable block ends the file."""
        while size < 0 or len(self._waiting) < size:
            length = self._file.read(_BLOCK.size)
            if len(length) < _BLOCK.size:
                break
            try:
                self._waiting += self._seal.open(self._file.read(*_BLOCK.unpack(length)))
            except StoreKeyError:
                break
        found = bytes(self._waiting if size < 0 else self._waiting[:size])
        del self._waiting[: len(found)]
        return found

    def readinto(self, view: memoryview) -> int:
        """Fill a view with the next bytes; return how many there were."""
        done = 0
        while part := self.read(min(BLOCK_BYTES, len(view) - done)):
            view[done : done + len(part)] = part
            done += len(part)
        return done


def _write_file(
    path: str,
    header: IndexFileHeader,
    sections: Sequence[memoryview],
    like: str | None,
    seal: Seal | None,
) -> None:
    if len(header.stamp) > STAMP_MAX:
        raise InvalidInputError(
            f"the stamp has {len(header.stamp)} bytes; give at most {STAMP_MAX}"
        )
    draft = f"{path}.{os.getpid()}.part"
    try:
        mode = 0o600 if like is None else os.stat(like).st_mode & 0o666
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(handle, "wb") as file:
            out = file if seal is None else SealedStream(file, seal)
            out.write(header.pack())
            digest = blake3()
            for section in sections:
                digest.update(section)
                out.write(section)
            out.write(digest.digest())
            if isinstance(out, SealedStream):
                out.finish()
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            os.remove(draft)
        raise StorageError(f"cannot save the vector index at {path!r}: {error}") from error


def saved_stamp(path: str, seal: Seal | None = None) -> bytes | None:
    """Return the stamp of a saved index; None if there is no readable file."""
    try:
        with open(path, "rb") as file:
            header = _read_header(file if seal is None else SealedStream(file, seal))
    except OSError:
        return None
    return None if header is None else header.stamp


def _read_file(
    path: str, stamp: bytes | None, dim: int | None, seal: Seal | None
) -> tuple[IndexFileHeader, list[memoryview]] | None:
    """Return the header and the sections of a file after checking all of them; see `load`."""
    try:
        with open(path, "rb") as found:
            file = found if seal is None else SealedStream(found, seal)
            header = _read_header(file)
            if header is None or (stamp is not None and header.stamp != stamp):
                return None
            if dim is not None and header.dim != dim:
                return None
            whole = sum(header.lengths) + DIGEST
            if seal is None and os.fstat(found.fileno()).st_size != found.tell() + whole:
                return None
            digest, sections = blake3(), []
            for length in header.lengths:
                section = memoryview(bytearray(length))
                if length and file.readinto(section) != length:
                    return None
                digest.update(section)
                sections.append(section)
            return (header, sections) if file.read() == digest.digest() else None
    except OSError:
        return None


def _read_header(file: BinaryIO | SealedStream) -> IndexFileHeader | None:
    fixed = file.read(_FIXED.size)
    if len(fixed) != _FIXED.size:
        return None
    magic, version, dim, moved, stamp_length, *lengths = _FIXED.unpack(fixed)
    if magic != MAGIC or version != FORMAT or stamp_length > STAMP_MAX:
        return None
    stamp = file.read(stamp_length)
    if file.read(DIGEST) != blake3(fixed + stamp).digest():
        return None
    return IndexFileHeader(dim, moved, stamp, tuple(lengths))

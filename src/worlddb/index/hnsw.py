"""Saved: one file with a vector index in it, whole or not at all.

    magic · format · dim · counts · length of the stamp and of each section   (fixed size)
    stamp · digest of everything before it
    sections, one after the other
    digest of all sections

The index is derived state, so the file is not forced to disk: after a power cut it may be short,
which the lengths and digests show, and the index is built again. A new file takes the place of the
old one by renaming.
"""

from __future__ import annotations

import io
import os
import struct
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from worlddb.errors import InvalidInputError, StorageError
from worlddb.index.vector_slots import Bools, Floats, Ints

MAGIC = b"WDBNEAR\n"
FORMAT = 1
SECTIONS = 6
STAMP_MAX = 1_024
DIGEST = 32

_FIXED = struct.Struct(f"<8sIIQI{SECTIONS}Q")


@dataclass(frozen=True, slots=True)
class Head:
    """What a saved file says about itself."""

    dim: int
    mark: int
    stamp: bytes
    lengths: tuple[int, ...]

    def pack(self) -> bytes:
        """Return the head as it is written."""
        fixed = _FIXED.pack(MAGIC, FORMAT, self.dim, self.mark, len(self.stamp), *self.lengths)
        return fixed + self.stamp + blake3(fixed + self.stamp).digest()


def write(path: str, dim: int, mark: int, stamp: bytes, sections: Sequence[memoryview]) -> None:
    """Write the file in place of the one that is there.

    Raises:
        InvalidInputError: the stamp is too long.
        StorageError: the disk refused; the old file is as it was.
    """
    if len(stamp) > STAMP_MAX:
        raise InvalidInputError(f"a stamp of {len(stamp)} bytes; at most {STAMP_MAX} are kept")
    head = Head(dim, mark, stamp, tuple(section.nbytes for section in sections))
    draft = f"{path}.{os.getpid()}.part"
    try:
        with open(draft, "wb") as file:
            file.write(head.pack())
            digest = blake3()
            for section in sections:
                digest.update(section)
                file.write(section)
            file.write(digest.digest())
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            os.remove(draft)
        raise StorageError(f"cannot save the vector index at {path!r}: {error}") from error


def saved_stamp(path: str) -> bytes | None:
    """Return the stamp a file was saved with, or None when there is no such file to load."""
    try:
        with open(path, "rb") as file:
            head = _read_head(file)
    except OSError:
        return None
    return None if head is None else head.stamp


def read(path: str, stamp: bytes | None, dim: int | None) -> tuple[Head, list[memoryview]] | None:
    """Return the head and the sections of a file, or None unless it is whole and the one asked for.

    Every section is checked before any of them is returned.
    """
    try:
        with open(path, "rb") as file:
            head = _read_head(file)
            if head is None or (stamp is not None and head.stamp != stamp):
                return None
            if dim is not None and head.dim != dim:
                return None
            whole = file.tell() + sum(head.lengths) + DIGEST
            if os.fstat(file.fileno()).st_size != whole:
                return None
            digest, sections = blake3(), []
            for length in head.lengths:
                section = memoryview(bytearray(length))
                if length and file.readinto(section) != length:
                    return None
                digest.update(section)
                sections.append(section)
            return (head, sections) if file.read() == digest.digest() else None
    except OSError:
        return None


def _read_head(file: BinaryIO) -> Head | None:
    fixed = file.read(_FIXED.size)
    if len(fixed) != _FIXED.size:
        return None
    magic, version, dim, mark, stamp_length, *lengths = _FIXED.unpack(fixed)
    if magic != MAGIC or version != FORMAT or stamp_length > STAMP_MAX:
        return None
    stamp = file.read(stamp_length)
    if file.read(DIGEST) != blake3(fixed + stamp).digest():
        return None
    return Head(dim, mark, stamp, tuple(lengths))


# Graph: approximate neighbours among many vectors (HNSW), labelled by slot.
#
# Two graphs, and a vector's own bits say which one it belongs to. Each is built by one thread in the
# order of the slots, so two cores build at full speed and the same vectors give the same graphs every
# time; one graph built by two threads would differ from run to run. A search asks both.
#
# Equal vectors share one entry: a graph breaks up when many entries have no distance between them.
# The slot that came first is the entry; the others are its twins.


M = 16
EF_CONSTRUCTION = 200
# The least depth of a search in each part. Two of 48 find what one of 64 finds in a single graph of
# everything on text vectors, and more on synthetic ones. Long vectors need more for equal recall.
EF_SHORT = 48
EF_LONG = 96
LONG_DIM = 64
PARTS = 2
SEED = 1
BUILD_CHUNK = 8_192
THREADS_FROM = 64  # Fewer insertions than this are done before two threads have started.
SPREAD = 0.05
SCRUB_NEAR = 8


class _Part(Protocol):
    """What is used of `voyager.Index`."""

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
    """Entries that can be searched and added to; what is gone is for the caller to leave out."""

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

        No entry that was left out is nearer than the floor. None when a part cannot reach as many
        entries as it holds: then only looking at each of them helps.
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
        """Take the vectors of slots that are gone out of the graph; return those now unused.

        The entry stays as a stepping stone, but stands where a live neighbour is, a little aside,
        since equal entries would cut the graph. An entry with a live twin is the twin's now.
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
        """Return the twins as (entry, twin) pairs, and each part's bytes, none for an empty one."""
        pairs = [(lead, twin) for lead, twins in self._twins.items() for twin in twins]
        parts = [part.as_bytes() if part.num_elements else b"" for part in self._parts]
        return np.array(pairs, np.int64).reshape(-1, 2), parts

    @classmethod
    def restore(cls, dim: int, pairs: Ints, parts: Sequence[bytes]) -> Graph:
        """Return the graph that `dump` described.

        Raises:
            ValueError: the parts are not of this kind.
        """
        import voyager

        graph = cls(dim)
        for number, part in enumerate(parts):
            if part:
                graph._parts[number] = voyager.Index.load(io.BytesIO(part))
            if graph._parts[number].num_dimensions != dim:
                raise ValueError("a graph of another shape")
        for lead, twin in pairs.tolist():
            graph._twins.setdefault(lead, array("q")).append(twin)
        return graph


def _stone(part: _Part, slot: int, vectors: Floats, live: Bools) -> Floats:
    """Return where the entry of a slot that is gone may stand."""
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
    """Make room ahead; left alone, a part grows by one entry at a time and copies itself."""
    needed = part.num_elements + more
    if needed > part.max_elements:
        part.resize(max(needed, part.max_elements + part.max_elements // 2))


def _bit_sums(vectors: Floats) -> npt.NDArray[np.uint32]:
    sums: npt.NDArray[np.uint32] = np.add.reduce(vectors.view(np.uint32), axis=1, dtype=np.uint32)
    return sums


def _part_of(vectors: Floats) -> npt.NDArray[np.uint32]:
    """Return which part each vector belongs to; equal vectors belong together."""
    mixed: npt.NDArray[np.uint32] = _bit_sums(vectors) * np.uint32(2_654_435_769)
    part: npt.NDArray[np.uint32] = (mixed >> np.uint32(16)) % np.uint32(PARTS)
    return part


def _distinct(vectors: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the positions of first occurrences, of repetitions, and of what those repeat."""
    folded = np.bitwise_xor.reduce(vectors.view(np.uint32), axis=1)
    keys = (_bit_sums(vectors).astype(np.uint64) << np.uint64(32)) | folded
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    leads = first[group]
    repeated = np.flatnonzero(leads != np.arange(len(vectors)))
    # Different vectors may share a key; they are entries of their own.
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

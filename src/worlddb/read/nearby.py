"""Nearby: the nearest-neighbour index of a whole store, kept up with its vectors.

Built at the first search of a large world, saved beside the store when it closes, and taken up
again if the journal still holds the commit it was saved at. The file is derived: deleting it costs
time, nothing else.
"""

from __future__ import annotations

import struct
import threading
from contextlib import suppress

import numpy as np
from blake3 import blake3

from worlddb.errors import StorageError
from worlddb.index.composed import STORED
from worlddb.index.nearest import Nearest
from worlddb.index.saved import saved_stamp
from worlddb.index.vectors import Vectors
from worlddb.store.protocol import ModelRow, Reader, Store

SUFFIX = "-vectors"

_PLACE = struct.Struct("<qq32s")


class Nearby:
    """The index of one open store."""

    def __init__(self, store: Store) -> None:
        self._path = None if store.path == ":memory:" else f"{store.path}{SUFFIX}"
        self._lock = threading.Lock()
        self._index: Nearest | None = None
        self._model: ModelRow | None = None
        self._composed_at = -1
        self._unsaved_to = 1
        self._stamp = b""
        self._saved = b""

    def index(self, reader: Reader, vectors: Vectors) -> Nearest:
        """Return the index with all vectors that the reader's snapshot has."""
        model = vectors.model(reader)
        with self._lock:
            if self._index is None or self._model is None or not _is_same(self._model, model):
                self._load(reader, vectors)
            elif model is not None and _place(model) < _place(self._model):
                # Everything is composed anew, because something was erased: vectors are gone.
                self._load(reader, vectors)
            assert self._index is not None
            before = self._model
            if model is not None and (before is None or _place(model) > _place(before)):
                self._follow(reader, model, before)
            self._put_unsaved(reader, vectors)
            return self._index

    def _load(self, reader: Reader, vectors: Vectors) -> None:
        """Take up the saved index if its commit is in this journal; else begin an empty one."""
        self._index, self._model, self._composed_at = Nearest(vectors.dim), None, -1
        self._unsaved_to, self._stamp = 1, b""
        stamp = saved_stamp(self._path) if self._path else None
        model = vectors.model(reader)
        if self._path is None or stamp is None or model is None or len(stamp) <= _PLACE.size:
            return
        embedded, seq, hash_ = _PLACE.unpack_from(stamp)
        commits = reader.commits(seq - 1, 1, False)
        known = bool(commits) and commits[0].seq == seq and commits[0].hash == hash_
        if stamp[_PLACE.size :] != _name(model) or not known:
            return
        found = Nearest.load(self._path, stamp, dim=model.dim)
        if found is not None and embedded <= model.embedded and seq <= model.seq:
            self._index, self._saved, self._composed_at = found, stamp, seq
            self._model = model._replace(embedded=embedded, seq=seq)

    def _follow(self, reader: Reader, model: ModelRow, before: ModelRow | None) -> None:
        """Put what has been embedded or composed since."""
        assert self._index is not None
        rows: list[int] = []
        bodies: list[bytes] = []
        first = before.embedded + 1 if before is not None else 0
        for row, body in reader.derived.vectors_after(model.number, first, self._composed_at):
            rows.append(row)
            bodies.append(body)
        if rows:
            matrix = np.frombuffer(b"".join(bodies), dtype=STORED).reshape(len(rows), -1)
            keys, values = np.array(rows, dtype=np.int64), matrix.astype(np.float32)
            if before is None:
                self._index.build(keys, values)
            else:
                self._index.put(keys, values)
        self._model = model
        if model.embedded >= reader.head().nodes:
            # Before, more of the same commit may come, and its worlds are composed once more.
            self._composed_at = model.seq
        if self._composed_at >= 0:
            commit = reader.commits(self._composed_at - 1, 1, False)[0]
            place = _PLACE.pack(model.embedded, commit.seq, commit.hash)
            self._stamp = place + _name(model)

    def _put_unsaved(self, reader: Reader, vectors: Vectors) -> None:
        """Put what is embedded but could not be kept, in a store that only may be read."""
        assert self._index is not None
        last = self._unsaved_to if self._model is None else self._model.embedded
        rows = np.arange(max(last, self._unsaved_to) + 1, reader.head().nodes + 1)
        if not len(rows):
            return
        matrix = vectors.load(reader, rows.tolist())
        there = matrix.any(axis=1)
        if there.any():
            self._index.put(rows[there], matrix[there])
            self._unsaved_to = int(rows[there][-1])

    def forget(self) -> None:
        """Drop the index; the next search builds another."""
        with self._lock:
            self._index, self._stamp = None, b""

    def close(self) -> None:
        """Save the index if it has changed; without a place to write it is simply gone."""
        with self._lock:
            if self._path is None or self._index is None or self._stamp in (b"", self._saved):
                return
            with suppress(StorageError):
                self._index.save(self._path, self._stamp)
                self._saved = self._stamp


def _place(model: ModelRow) -> tuple[int, int]:
    """Return how far a model has come."""
    return model.seq, model.embedded


def _name(model: ModelRow) -> bytes:
    """Return a digest of who made the vectors, and how worlds are composed of them."""
    return blake3(f"{model.pooling} {model.id}".encode()).digest()


def _is_same(before: ModelRow, model: ModelRow | None) -> bool:
    return model is not None and _name(before) == _name(model)

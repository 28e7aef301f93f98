"""Nearby: the nearest-neighbour index of a whole store, kept up with its vectors.

Built at the first search of a large world, saved beside the store when it closes, and taken up
again if the journal still holds the commit it was saved at. The file is derived: deleting it costs
time, nothing else.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from worlddb.errors import StorageError
from worlddb.index.composed_worlds import STORED
from worlddb.index.held_world import K1, B
from worlddb.index.nearest import Nearest, saved_stamp
from worlddb.index.vectors import Vectors
from worlddb.language.words import words
from worlddb.store.protocol import ModelRow, Reader, Store

SUFFIX = "-vectors"

_PLACE = struct.Struct("<qq32s")


class NearestIndex:
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


# Wide: search through the indexes of the whole store, for worlds too large to be held in memory.
#
# Words: FTS5 finds candidates by the rarer words of the question, which are few; common words only
# help to order them. A question of common words alone is answered from the newest nodes that have
# them. Vectors: the nearest-neighbour graph. What cannot be seen from the asked world is left out,
# and the search goes deeper until enough is left.


CANDIDATES_MAX = 1_200
"""How many nodes are ranked by the database for one question, about."""
WEIGHED_TIMES, WEIGHED_MIN = 3, 30
"""How many candidates, for each node asked for and at least, common words may still reorder."""
DEEPER = 4
COUNTS_MAX = 100_000
REMEMBERED_FROM = 200
"""Words in fewer nodes are counted anew each time."""
GROWTH = 1.1

LED_TO_MAX = 1_000

Keep = Callable[[Sequence[int]], set[int]]
Found = list[tuple[int, float]]


class StoreSearch:
    """Search over all nodes of one open store."""

    def __init__(self, store: Store) -> None:
        self._lock = threading.Lock()
        self._nearby = NearestIndex(store)
        self._counts: dict[str, int] = {}
        self._counted_at = 0

    def forget(self) -> None:
        """Drop the index of vectors, and do not save it."""
        self._nearby.forget()

    # -- words -------------------------------------------------------------------------------------

    def text(self, reader: Reader, asked: Sequence[str], keep: Keep, most: int) -> Found:
        """Return (row, score) of the best nodes that `keep` lets through."""
        counts = self.counts_of(reader, asked)
        there = sorted((word for word in asked if counts[word]), key=lambda word: counts[word])
        rare: list[str] = []
        for word in there:
            if sum(counts[other] for other in (*rare, word)) > CANDIDATES_MAX:
                break
            rare.append(word)
        common = there[len(rare) :]
        deep = max(WEIGHED_TIMES * most, WEIGHED_MIN) if common else most
        found: Found = []
        if rare:
            found = _until_enough(lambda deep: reader.texts.match(rare, deep), keep, most, deep)
        if not common:
            return _tied_by_id(reader, found)[:most]
        if not found:
            found = _until_enough(lambda deep: _newest(reader, common, deep), keep, most, deep)
        return self._weighed(reader, sorted(row for row, _ in found), there, counts)[:most]

    def strict(
        self, reader: Reader, said: Sequence[str], phrase: bool, keep: Keep, most: int
    ) -> Found:
        """Return (row, score) of the best nodes that have all the words, or have the phrase."""
        if not said:
            return []
        found = _until_enough(
            lambda deep: reader.texts.match_all(said, phrase, deep), keep, most, most
        )
        return _tied_by_id(reader, found)[:most]

    def counts_of(self, reader: Reader, asked: Sequence[str]) -> dict[str, int]:
        """Return in how many nodes each word occurs; a little out of date is good enough."""
        nodes = reader.head().nodes
        with self._lock:
            if nodes > self._counted_at * GROWTH or len(self._counts) > COUNTS_MAX:
                self._counts, self._counted_at = {}, nodes
            found = {word: self._counts[word] for word in asked if word in self._counts}
            missing = [word for word in asked if word not in found]
            found.update(reader.texts.counts(missing, nodes))
            # Rare words are counted each time: the next node may be the first that has them.
            self._counts.update(item for item in found.items() if item[1] >= REMEMBERED_FROM)
            return found

    def _weighed(
        self, reader: Reader, rows: list[int], asked: list[str], counts: dict[str, int]
    ) -> Found:
        """Return rows with their BM25 for every word of the question, best first, ties by id."""
        total, average = reader.head().nodes, reader.texts.average_length() or 1.0
        rarity = {
            word: float(np.log1p((total - counts[word] + 0.5) / (counts[word] + 0.5)))
            for word in asked
        }
        scored = []
        for body in reader.bodies(rows):
            said = words(f"{body.name} {body.content}")
            norm = K1 * (1 - B + B * len(said) / average)
            times = Counter(said)
            score = sum(
                rarity[word] * times[word] * (K1 + 1) / (times[word] + norm)
                for word in asked
                if word in times
            )
            scored.append((-score, body.id, body.row))
        return [(row, -score) for score, _, row in sorted(scored)]

    # -- vectors -----------------------------------------------------------------------------------

    def nearest(
        self,
        reader: Reader,
        vectors: Vectors,
        vector: NDArray[np.float32],
        keep: Keep,
        most: int,
    ) -> Found:
        """Return (row, cosine) of the nearest nodes that `keep` lets through."""
        index = self._nearby.index(reader, vectors)
        # One more: the root may be among them, and is in nobody's view.
        found = _until_enough(lambda deep: index.search(vector, deep), keep, most, most + 1)
        return _tied_by_id(reader, found)[:most]

    def close(self) -> None:
        """Save what was built, for the next time the store is opened."""
        self._nearby.close()


def _until_enough(look: Callable[[int], Found], keep: Keep, most: int, deep: int) -> Found:
    """Look deeper until enough of what is found may be kept, or there is no more."""
    kept: set[int] = set()
    judged: set[int] = set()
    while True:
        found = look(deep)
        # Most of it was found by the look before: who may be seen is asked of the rest alone.
        fresh = [row for row, _ in found if row not in judged]
        kept |= keep(fresh)
        judged.update(fresh)
        chosen = [item for item in found if item[0] in kept]
        if len(chosen) >= most or len(found) < deep:
            return chosen
        deep *= DEEPER


def _tied_by_id(reader: Reader, found: Found) -> Found:
    """Return rows best first, ties by id."""
    ids = {body.row: body.id for body in reader.bodies([row for row, _ in found])}
    return sorted(found, key=lambda item: (-item[1], ids[item[0]]))


def _newest(reader: Reader, there: Sequence[str], most: int) -> Found:
    """Return the newest nodes with the two rarest words, then with the rarest alone, unscored."""
    rows = reader.texts.latest(there[:2], most)
    if len(rows) < most and len(there) > 1:
        rows += reader.texts.latest(there[:1], most)
    return [(row, 0.0) for row in dict.fromkeys(rows)]

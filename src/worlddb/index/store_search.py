"""Search through the indexes of the whole store, for worlds too large to be held in memory.

Words: the full-text index finds candidates by the rarer words of the question; common words only
affect their ranking. A question of common words alone is answered from the newest nodes that
contain them. Vectors: the nearest-neighbour index. Nodes outside the view are left out, and the
search goes deeper until enough nodes are left.

A search inside a world must not depend on the rest of the store. So the words are counted inside
the view, the newest nodes of each word are the candidates, and every vector inside is compared.
Nodes outside change neither which nodes are found nor their scores, only the time.

The nearest-neighbour index is built by the first search of a large world, and saved beside the
store when it closes. It is loaded again if the journal still has the commit at which it was saved.
The file is derived: deleting it only costs time.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import NamedTuple

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from worlddb.errors import StorageError
from worlddb.index.bm25 import Bm25, inverse_frequency
from worlddb.index.composed_worlds import STORED
from worlddb.index.held_world import HeldWorld
from worlddb.index.nearest import Nearest, best, ranked_rows, saved_stamp
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.vectors import MISSING_MAX, Vectors
from worlddb.language.text_tokens import MARKS, node_words
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, ModelRow
from worlddb.view.visibility import Moment, View, is_answer

CANDIDATES_MAX = 1_200
"""Nodes, about, that the database ranks for one question; more would take too long."""
WEIGHED_TIMES, WEIGHED_MIN = 3, 30
"""Candidates per wanted node, and at least, that common words may still reorder."""
INSIDE_MAX = 200
"""Newest nodes per word that are ranked inside a world; six words make CANDIDATES_MAX."""
INSIDE_NODES = 1 << 12
"""Nodes of a world that are counted at most: nearly every world that is not held has more."""
INSIDE_WORDS = 20.0  # assumed words per node: a memory is a sentence or two
DEPTH_GROWTH = 4  # factor by which a search that kept too few nodes looks deeper
COUNTS_MAX = 100_000  # words whose counts are remembered: some megabytes
REMEMBERED_FROM = 200  # a rarer word is counted each time: one more node changes its weight
GROWTH = 1.1  # counts are read again when the store has grown by a tenth
SAMPLED_NODES = 2_048
"""Nodes per sample. If one in six is an answer, 340 are left: the standard error is about 4 %."""
SAMPLE_MIN = 50  # answers; fewer say nothing about the rest
SAMPLES_KEPT = 8  # a few megabytes; one for each set of requested types

SUFFIX = "-vectors"
Keep = Callable[[Sequence[int]], set[int]]
"""Returns those of the given rows that the caller may see."""
Found = list[tuple[int, float]]
"""(row, score) pairs."""
Rows = NDArray[np.int64]
LargeWorlds = Callable[
    [Reader, Sequence[int], Moment, bool], AbstractContextManager[HeldWorld | None]
]
"""Holds the rows and vectors of worlds of any size; see `Search.large`."""

_PLACE = struct.Struct("<qq32s")


class NodeSample(NamedTuple):
    """A sample of the nodes that could be answers, and the estimated number of such nodes."""

    rows: list[int]
    text: Bm25
    matrix: NDArray[np.float32] | None
    total: int


class NearestIndex:
    """The nearest-neighbour index of one open store, updated as vectors are added."""

    def __init__(self, store: Store) -> None:
        self._path = store.side_file(SUFFIX)
        self._like = store.path
        self._seal = store.side_seal() if self._path else None
        self._lock = threading.Lock()
        self._index: Nearest | None = None
        self._model: ModelRow | None = None
        self._composed_at = -1
        self._unsaved_to = 1
        self._stamp = b""
        self._saved = b""

    def index(self, reader: Reader, vectors: Vectors) -> Nearest:
        """Return the index with all vectors of the reader's snapshot."""
        model = vectors.model(reader)
        with self._lock:
            held = self._model
            if self._index is None or held is None or model is None or _name(held) != _name(model):
                self._load(reader, vectors)
            elif _place(model) < _place(held):
                # After an erasure its vector is gone, and all worlds are composed again.
                self._load(reader, vectors)
            assert self._index is not None
            before = self._model
            if model is not None and (before is None or _place(model) > _place(before)):
                self._follow(reader, model, before)
            self._put_unsaved(reader, vectors)
            return self._index

    def _load(self, reader: Reader, vectors: Vectors) -> None:
        """Load the saved index if its commit is in the journal; otherwise start an empty one."""
        self._index, self._model, self._composed_at = Nearest(vectors.dim), None, -1
        self._unsaved_to, self._stamp = 1, b""
        stamp = saved_stamp(self._path, self._seal) if self._path else None
        model = vectors.model(reader)
        if self._path is None or stamp is None or model is None or len(stamp) <= _PLACE.size:
            return
        embedded, seq, hash_ = _PLACE.unpack_from(stamp)
        commits = reader.commits(seq - 1, 1, False)
        known = bool(commits) and commits[0].seq == seq and commits[0].hash == hash_
        if stamp[_PLACE.size :] != _name(model) or not known:
            return
        found = Nearest.load(self._path, stamp, dim=model.dim, seal=self._seal)
        if found is not None and embedded <= model.embedded and seq <= model.seq:
            self._index, self._saved, self._composed_at = found, stamp, seq
            self._model = model._replace(embedded=embedded, seq=seq)

    def _follow(self, reader: Reader, model: ModelRow, before: ModelRow | None) -> None:
        """Add the vectors that were embedded or composed since the last call."""
        assert self._index is not None
        first = before.embedded + 1 if before is not None else 0
        found = list(reader.derived.vectors_after(model.number, first, self._composed_at))
        if found:
            matrix = np.frombuffer(b"".join(body for _, body in found), dtype=STORED)
            keys = np.array([row for row, _ in found], dtype=np.int64)
            values = matrix.reshape(len(found), -1).astype(np.float32)
            if before is None:
                self._index.build(keys, values)
            else:
                self._index.put(keys, values)
        self._model = model
        if model.embedded >= reader.head().nodes:
            # More nodes of the same commit may follow and change its worlds again.
            self._composed_at = model.seq
        if self._composed_at >= 0:
            commit = reader.commits(self._composed_at - 1, 1, False)[0]
            place = _PLACE.pack(model.embedded, commit.seq, commit.hash)
            self._stamp = place + _name(model)

    def _put_unsaved(self, reader: Reader, vectors: Vectors) -> None:
        """Add vectors that are not stored: the store is read-only, or a thread will store them."""
        assert self._index is not None
        last = self._unsaved_to if self._model is None else self._model.embedded
        newest = reader.head().nodes
        # A search must not load a million waiting vectors; the older ones come with the thread.
        early = newest - MISSING_MAX if vectors.is_followed else 0
        rows = np.arange(max(last, self._unsaved_to, early) + 1, newest + 1)
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
        """Save the index if it has changed; if the file cannot be written, it is not saved."""
        with self._lock:
            if self._path is None or self._index is None or self._stamp in (b"", self._saved):
                return
            with suppress(StorageError):
                self._index.save(self._path, self._stamp, like=self._like, seal=self._seal)
                self._saved = self._stamp


def _place(model: ModelRow) -> tuple[int, int]:
    """Return the commit and the node that a model's vectors have reached."""
    return model.seq, model.embedded


def _name(model: ModelRow) -> bytes:
    """Return a digest of the embedder's name and the pooling of worlds."""
    return blake3(f"{model.pooling} {model.id}".encode()).digest()


class WordCounts(NamedTuple):
    """Word frequencies: nodes per word, number of nodes, and words per node on average.

    If the words were counted inside a view, `rows` are all candidates and `found` those of each
    word.
    """

    counts: Mapping[str, int]
    total: int
    average: float
    rows: list[int] | None
    found: Mapping[str, list[int]] = {}


def best_of(scored: Mapping[int, float], most: int) -> dict[int, float]:
    """Return the best rows with a score above 0; ties in the order of writing."""
    order = sorted((row for row in scored if scored[row] > 0), key=lambda row: (-scored[row], row))
    return {row: scored[row] for row in order[:most]}


class AskedInside(NamedTuple):
    """What a thread has computed for a view: nodes by word, rows inside, and the smallest group."""

    view: View
    found: dict[str, list[int]]
    rows: Rows
    group: Sequence[int]


class StoreSearch:
    """Search over all nodes of one open store."""

    def __init__(self, store: Store, large: LargeWorlds) -> None:
        self._lock = threading.Lock()
        self._large = large
        self._nearby = NearestIndex(store)
        self._counts: dict[str, int] = {}
        self._counted_at = 0
        self._languages: set[str] = set()
        self._samples: dict[tuple[object, ...], NodeSample | None] = {}
        self._told: dict[tuple[tuple[int, ...], ...], tuple[int, frozenset[str]]] = {}
        self._last = threading.local()

    def forget(self) -> None:
        """Drop the nearest-neighbour index without saving it, and all samples."""
        self._nearby.forget()
        with self._lock:
            self._samples.clear()
            self._told.clear()

    # -- all nodes ---------------------------------------------------------------------------------

    def sample(self, view: View, vectors: Vectors | None) -> NodeSample | None:
        """Return a sample of the nodes in a view that could be answers; None if there are few.

        The sample shows which scores are usual, so validity does not matter: it takes every n-th
        node, with n a power of two.
        """
        reader, types = view.reader, view.types
        inside = None if is_whole(view) else self.rows_inside(view)
        nodes = reader.head().nodes if inside is None else len(inside)
        last = 1 << (max(nodes, 1).bit_length() - 1)
        worlds = tuple(tuple(group) for group in (view.worlds, *view.within))
        key = worlds, view.members, types, last, vectors is None
        with self._lock:
            if key in self._samples:
                return self._samples[key]
        chosen: Sequence[int] = range(ROOT_ROW + 1, last + 1, max(1, last // SAMPLED_NODES))
        if inside is not None:
            chosen = inside[: last : max(1, last // SAMPLED_NODES)].tolist()
        text, rows = Bm25(), []
        for body in reader.bodies(chosen):
            if is_answer(body, names=types is not None) and (types is None or body.type in types):
                rows.append(body.row)
                text.add(node_words(body.name, body.content))
        found = None
        if len(rows) >= SAMPLE_MIN:
            matrix = None if vectors is None else vectors.load(reader, rows)
            found = NodeSample(rows, text, matrix, round(nodes * len(rows) / len(chosen)))
        with self._lock:
            while len(self._samples) >= SAMPLES_KEPT:
                self._samples.pop(next(iter(self._samples)))
            self._samples[key] = found
        return found

    # -- words -------------------------------------------------------------------------------------

    def words_of(self, view: View, asked: Sequence[str]) -> WordCounts:
        """Return how common words are: in the whole store, or inside a smaller view."""
        reader = view.reader
        if is_whole(view):
            average = reader.texts.average_length() or 1.0
            return WordCounts(self.counts_of(reader, asked), reader.head().nodes, average, None)
        found = self._inside(view, asked)
        counts = {word: len(rows) for word, rows in found.items()}
        rows = {row for some in found.values() for row in some}
        common = [word for word in sorted(counts, key=counts.__getitem__) if counts[word]][:2]
        if len(common) > 1 and counts[common[0]] == INSIDE_MAX:
            rows.update(_newest_inside(view, common))
        total = max(min(len(self.rows_inside(view)), INSIDE_NODES), *counts.values(), 1)
        return WordCounts(counts, total, INSIDE_WORDS, sorted(rows), found)

    def _inside(self, view: View, asked: Sequence[str]) -> dict[str, list[int]]:
        """Return the newest nodes of each word inside a view; kept, as a recall asks repeatedly."""
        found = self._asked(view).found
        for word in asked:
            if word not in found:
                found[word] = _newest_inside(view, [word])
        return {word: found[word] for word in asked}

    def _asked(self, view: View) -> AskedInside:
        """Return what this thread has computed for a view; a recall asks repeatedly."""
        last: AskedInside | None = getattr(self._last, "asked", None)
        if last is None or last.view is not view:
            last = self._last.asked = AskedInside(view, {}, *self._rows_of_groups(view))
        return last

    def rows_inside(self, view: View) -> Rows:
        """Return the rows inside a view that is smaller than the store, with rows of the past."""
        return self._asked(view).rows

    def _rows_of_groups(self, view: View) -> tuple[Rows, Sequence[int]]:
        """Return the rows inside every group of worlds of a view, and the smallest group."""
        found: list[tuple[Rows, Sequence[int]]] = []
        for group in (view.worlds, *view.within):
            if tuple(group) == (ROOT_ROW,):
                continue
            with self._large(view.reader, group, view.moment, view.members) as world:
                assert world is not None, "a large world has no limit"
                found.append((np.array(world.rows, dtype=np.int64), group))
        rows, smallest = min(found, key=lambda one: len(one[0]))
        for others, _ in found:
            rows = rows if others is rows else rows[np.isin(rows, others, assume_unique=True)]
        return rows, smallest

    def text(self, view: View, asked: Mapping[str, float], most: int) -> Found:
        """Return (row, score) of the best visible nodes by weighted words."""
        reader, keep, counted = view.reader, view.keep, self.words_of(view, list(asked))
        counts = counted.counts
        there = sorted((word for word in asked if counts[word]), key=lambda word: counts[word])
        rare: list[str] = []
        for word in there:
            if sum(counts[other] for other in (*rare, word)) > CANDIDATES_MAX:
                break
            rare.append(word)
        common = there[len(rare) :]
        deep = max(WEIGHED_TIMES * most, WEIGHED_MIN)
        if counted.rows is not None:
            rows = _with_the_rarest(counted, asked, deep)
            return self._weighed(reader, rows, asked, counted)[:most]
        found: Found = []
        if rare:
            found = _until_enough(lambda deep: reader.texts.match(rare, deep), keep, most, deep)
        if not found and common:
            found = _until_enough(
                lambda deep: _newest(reader, common, deep), keep, most, deep, with_ties=False
            )
        return self._weighed(reader, sorted(row for row, _ in found), asked, counted)[:most]

    def scored(
        self, view: View, rows: Sequence[int], asked: Mapping[str, float]
    ) -> dict[int, float]:
        """Return the BM25 score of some nodes for weighted words."""
        if not rows:
            return {}
        counted = self.words_of(view, list(asked))
        return dict(self._weighed(view.reader, sorted(rows), asked, counted))

    def every(self, view: View, asked: Sequence[str], most: int) -> Found | None:
        """Return (row, score) of all visible nodes with any of the words, best first.

        Returns None if there are more than `most` such nodes.
        """
        reader, keep = view.reader, view.keep
        if not is_whole(view):
            counted = self.words_of(view, asked)
            is_cut = any(count == INSIDE_MAX for count in counted.counts.values())
            return None if is_cut else self.text(view, dict.fromkeys(asked, 1.0), most)
        counts = self.counts_of(reader, asked)
        there = [word for word in asked if counts[word]]
        if not there or sum(counts[word] for word in there) > most:
            return None if there else []
        found = reader.texts.match(there, reader.head().nodes)
        kept = keep([row for row, _ in found])
        return _tied_by_id(reader, [(row, score) for row, score in found if row in kept])

    def strict(self, view: View, said: Sequence[str], phrase: bool, most: int) -> Found:
        """Return (row, score) of the best nodes with all the words, or with the phrase."""
        reader, keep = view.reader, view.keep
        if not said:
            return []
        if not is_whole(view):
            every = reader.texts.match_all(said, phrase, reader.head().nodes)
            rows = sorted(keep([row for row, _ in every]))
            once = dict.fromkeys(said, 1.0)
            return self._weighed(reader, rows, once, self.words_of(view, said))[:most]
        found = _until_enough(
            lambda deep: reader.texts.match_all(said, phrase, deep), keep, most, most
        )
        return _tied_by_id(reader, found)[:most]

    def languages(self, view: View) -> set[str]:
        """Return the languages of texts but English; inside a view, of the newest texts."""
        reader = view.reader
        if not is_whole(view):
            return self._languages_inside(view)
        unseen = [mark for mark, code in MARKS.items() if code not in self._languages]
        counts = reader.texts.counts(unseen, 1)
        self._languages |= {MARKS[mark] for mark in unseen if counts[mark]}
        return self._languages

    def _languages_inside(self, view: View) -> set[str]:
        """Return the languages of the nodes inside a view; cached."""
        worlds = tuple(tuple(group) for group in (view.worlds, *view.within))
        reader, rows = view.reader, self.rows_inside(view)
        with self._lock:
            before, told = self._told.get(worlds, (0, frozenset[str]()))
        unseen = {mark: code for mark, code in MARKS.items() if code not in told}
        there = reader.texts.counts(list(unseen), 1)
        for mark, code in unseen.items():
            if there[mark] and _has_word(reader, mark, rows[rows > before]):
                told |= {code}
        with self._lock:
            while len(self._told) >= SAMPLES_KEPT:
                self._told.pop(next(iter(self._told)))
            self._told[worlds] = int(rows[-1]) if len(rows) else 0, told
        return set(told)

    def counts_of(self, reader: Reader, asked: Sequence[str]) -> dict[str, int]:
        """Return how many nodes contain each word; cached counts may be slightly out of date."""
        nodes = reader.head().nodes
        with self._lock:
            if nodes > self._counted_at * GROWTH or len(self._counts) > COUNTS_MAX:
                self._counts, self._counted_at = {}, nodes
            found = {word: self._counts[word] for word in asked if word in self._counts}
            missing = [word for word in asked if word not in found]
            found.update(reader.texts.counts(missing, nodes))
            common = {word: count for word, count in found.items() if count >= REMEMBERED_FROM}
            self._counts.update(common)
            return found

    def rarity_of(self, view: View, said: Sequence[str]) -> dict[str, float]:
        """Return the rarity of each word: 0 if no node has it, for "" the highest possible."""
        counts, total, *_ = self.words_of(view, [word for word in said if word])
        found = {
            word: inverse_frequency(count, total) if count else 0.0
            for word, count in counts.items()
        }
        return {**found, "": inverse_frequency(0, total)}

    def _weighed(
        self, reader: Reader, rows: Sequence[int], asked: Mapping[str, float], counted: WordCounts
    ) -> Found:
        """Return rows with their BM25 over all words of the question, best first, ties by id."""
        counts, total, average, *_ = counted
        rarity = {
            word: weight * inverse_frequency(counts[word], total)
            for word, weight in asked.items()
            if counts.get(word)
        }
        k1, b = SCALARS.bm25_k1, SCALARS.bm25_b
        scored = []
        for body in reader.bodies(rows):
            said = node_words(body.name, body.content)
            norm = k1 * (1 - b + b * len(said) / average)
            times = Counter(said)
            score = sum(
                rarity[word] * times[word] * (k1 + 1) / (times[word] + norm)
                for word in rarity
                if word in times
            )
            scored.append((-score, body.id, body.row))
        return [(row, -score) for score, _, row in sorted(scored)]

    # -- vectors -----------------------------------------------------------------------------------

    def nearest(
        self, view: View, vectors: Vectors, vector: NDArray[np.float32], most: int
    ) -> Found:
        """Return (row, cosine) of the nearest visible nodes; approximate for the whole store."""
        reader, look = view.reader, self._looking_inside(view, vectors, vector)
        if look is None:
            look = partial(self._nearby.index(reader, vectors).search, vector)
        # One more, because the root may be among them and is never visible.
        return _tied_by_id(reader, _until_enough(look, view.keep, most, most + 1))[:most]

    def _looking_inside(
        self, view: View, vectors: Vectors, vector: NDArray[np.float32]
    ) -> Callable[[int], Found] | None:
        """Return a search among all vectors inside a view; None for the whole store."""
        if is_whole(view):
            return None
        _, _, rows, group = self._asked(view)
        with self._large(view.reader, group, view.moment, view.members) as world:
            assert world is not None, "a large world has no limit"
            matrix = world.vectors(view.reader, vectors)
            held, near = np.array(world.rows, dtype=np.int64), np.vecdot(matrix, vector)
            blank = np.flatnonzero(near == 0)
            marks = np.zeros(max(rows.max(initial=0), held.max(initial=0)) + 1, dtype=np.bool_)
            marks[rows] = True  # A mask by row: faster than two sets of a million.
            kept = marks[held]
            kept[blank[~matrix[blank].any(axis=1)]] = False  # no vector, never near
        rows, near = held[kept], near[kept]

        def look(deep: int) -> Found:
            top = best(near, deep)
            return ranked_rows(rows[top], near[top], deep)

        return look

    def close(self) -> None:
        """Save the nearest-neighbour index for the next time the store is opened."""
        self._nearby.close()


def is_whole(view: View) -> bool:
    """Return whether a view covers the whole store."""
    return all(tuple(group) == (ROOT_ROW,) for group in (view.worlds, *view.within))


def _has_word(reader: Reader, word: str, rows: Rows) -> bool:
    """Return whether any of the rows has a word; `rows` must be ascending."""
    deep, seen = DEPTH_GROWTH * INSIDE_MAX, 0
    while len(rows):
        found = reader.texts.latest([word], deep)
        if np.isin(found[seen:], rows).any():
            return True
        if len(found) < deep or found[-1] < rows[0]:
            return False
        deep, seen = deep * DEPTH_GROWTH, len(found)
    return False


def _with_the_rarest(counted: WordCounts, asked: Mapping[str, float], most: int) -> list[int]:
    """Return the nodes that match most of the question, by the rarity of the words alone."""
    rows = counted.rows or []
    if len(rows) <= most:
        return rows
    score = dict.fromkeys(rows, 0.0)
    for word, weight in asked.items():
        gain = weight * inverse_frequency(counted.counts[word], counted.total)
        for row in counted.found.get(word, ()):
            score[row] += gain
    return sorted(sorted(rows, key=lambda row: (-score[row], -row))[:most])


def _newest_inside(view: View, said: Sequence[str]) -> list[int]:
    """Return the newest visible nodes that have all of some words, up to a limit."""
    texts = view.reader.texts
    found = _until_enough(
        lambda deep: [(row, 0.0) for row in texts.latest(said, deep)],
        view.keep,
        INSIDE_MAX,
        DEPTH_GROWTH * INSIDE_MAX,
        with_ties=False,
    )
    return [row for row, _ in found[:INSIDE_MAX]]


def _until_enough(
    look: Callable[[int], Sequence[tuple[int, float]]],
    keep: Keep,
    most: int,
    deep: int,
    *,
    with_ties: bool = True,
) -> Found:
    """Search deeper until `most` of the found rows are visible, or there are no more.

    With `with_ties`, all nodes with the same score as the last one are found, too, so that ids
    decide between them and not the depth.
    """
    kept: set[int] = set()
    judged: set[int] = set()
    while True:
        found = look(deep)
        # Rows of the last search are not checked again.
        fresh = [row for row, _ in found if row not in judged]
        kept |= keep(fresh)
        judged.update(fresh)
        chosen = [(row, score) for row, score in found if row in kept]
        if len(found) < deep:
            return chosen
        if len(chosen) >= most and not (with_ties and chosen[most - 1][1] <= found[-1][1]):
            return chosen
        deep *= DEPTH_GROWTH


def _tied_by_id(reader: Reader, found: Found) -> Found:
    """Return rows best first, ties by id."""
    ids = {body.row: body.id for body in reader.bodies([row for row, _ in found])}
    ranked = sorted((-score, ids[row], row) for row, score in found)
    return [(row, -score) for score, _, row in ranked]


def _newest(reader: Reader, there: Sequence[str], most: int) -> Found:
    """Return the newest nodes with the two rarest words, then with the rarest, all scored 0."""
    rows = reader.texts.latest(there[:2], most)
    if len(rows) < most and len(there) > 1:
        rows += reader.texts.latest(there[:1], most)
    return [(row, 0.0) for row in dict.fromkeys(rows)]

"""Wide: search through the indexes of the whole store, for worlds too large to be held in memory.

Words: FTS5 finds candidates by the rarer words of the question, which are few; common words only
help to order them. A question of common words alone is answered from the newest nodes that have
them. Vectors: the nearest-neighbour graph. What cannot be seen from the asked world is left out,
and the search goes deeper until enough is left.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from worlddb.index.bm25 import K1, B
from worlddb.index.vectors import Vectors
from worlddb.language.words import words
from worlddb.read.nearby import Nearby
from worlddb.store.protocol import Reader, Store

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


class Wide:
    """Search over all nodes of one open store."""

    def __init__(self, store: Store) -> None:
        self._lock = threading.Lock()
        self._nearby = Nearby(store)
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

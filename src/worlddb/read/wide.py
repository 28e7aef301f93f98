"""Wide: search through the indexes of the whole store, for worlds too large to be held in memory.

Words: FTS5 finds candidates by the rarer words of the question, which are few; common words only
help to order them. A question of common words alone is answered from the newest nodes that have
them. Vectors: the nearest-neighbour graph. What cannot be seen from the asked world is left out,
and the search goes deeper until enough is left.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from worlddb.index.bm25 import K1, B
from worlddb.index.vectors import Vectors
from worlddb.language.words import folded, indexed, words
from worlddb.read.identity import accepted_class
from worlddb.read.lanes import NAME_WORDS_MAX, REFERENCES, said_words
from worlddb.read.nearby import Nearby
from worlddb.store.protocol import Reader, Store

if TYPE_CHECKING:
    from worlddb.read.find import View

CANDIDATES_MAX = 1_200
"""How many nodes are ranked by the database for one question, about."""
WEIGHED_TIMES, WEIGHED_MIN = 3, 30
"""How many candidates, for each node asked for and at least, common words may still reorder."""
DEEPER = 4
COUNTS_MAX = 100_000
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

    # -- words -------------------------------------------------------------------------------------

    def text(self, reader: Reader, asked: Sequence[str], keep: Keep, most: int) -> Found:
        """Return (row, score) of the best nodes that `keep` lets through."""
        counts = self._rarities(reader, asked)
        there = sorted((word for word in asked if counts[word]), key=lambda word: counts[word])
        if not there:
            return []
        rare: list[str] = []
        for word in there:
            if rare and sum(counts[other] for other in (*rare, word)) > CANDIDATES_MAX:
                break
            rare.append(word)
        deep = most if len(rare) == len(there) else max(WEIGHED_TIMES * most, WEIGHED_MIN)
        while True:
            found: Found = []
            if counts[rare[0]] > CANDIDATES_MAX:
                rows = _newest(reader, there, deep)
            else:
                found = reader.texts.match(rare, deep)
                rows = [row for row, _ in found]
            kept = keep(rows)
            if len(kept) >= most or len(rows) < deep:
                break
            deep *= DEEPER
        if found and len(rare) == len(there):
            return _tied_by_id(reader, [item for item in found if item[0] in kept])[:most]
        return self._weighed(reader, sorted(kept), there, counts)[:most]

    def strict(
        self, reader: Reader, said: Sequence[str], phrase: bool, keep: Keep, most: int
    ) -> Found:
        """Return (row, score) of the best nodes that have all the words, or have the phrase."""
        deep = most
        while said:
            found = reader.texts.match_all(said, phrase, deep)
            kept = keep([row for row, _ in found])
            if len(kept) >= most or len(found) < deep:
                return _tied_by_id(reader, [item for item in found if item[0] in kept])[:most]
            deep *= DEEPER
        return []

    def _rarities(self, reader: Reader, asked: Sequence[str]) -> dict[str, int]:
        """Return in how many nodes each word occurs; a little out of date is good enough."""
        nodes = reader.head().nodes
        with self._lock:
            if nodes > self._counted_at * GROWTH or len(self._counts) > COUNTS_MAX:
                self._counts, self._counted_at = {}, nodes
            missing = [word for word in asked if word not in self._counts]
            if missing:
                self._counts.update(reader.texts.counts(missing, nodes))
            return {word: self._counts[word] for word in asked}

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
        deep = most + 1  # The root may be among them, and is in nobody's view.
        while True:
            found = index.search(vector, deep)
            kept = keep([row for row, _ in found])
            if len(kept) >= most or len(found) < deep:
                return [(row, score) for row, score in found if row in kept][:most]
            deep *= DEEPER

    def close(self) -> None:
        """Save what was built, for the next time the store is opened."""
        self._nearby.close()

    # -- names -------------------------------------------------------------------------------------

    def graph(self, view: View, question: str, classes: bool, most: int) -> Found:
        """Return (row, score) of what has to do with the names that the question says."""
        reader, moment = view.reader, view.moment
        scores: dict[int, float] = {}
        for named in self._named(reader, question):
            rows = accepted_class(reader, named, moment) if classes else set(named)
            rows = view.keep_world(rows)
            edges = reader.edges_at(rows, "in", REFERENCES, moment.known)
            found = {item.source for item in edges if moment.holds(item.edge)}
            for row in rows:
                found.update(reader.children(row, moment.known, limit=LED_TO_MAX))
            found = view.keep(sorted(found - rows)[-LED_TO_MAX:])
            for row in found:
                scores[row] = scores.get(row, 0.0) + 1.0 / np.log2(1 + len(found))
        ids = {body.row: body.id for body in reader.bodies(scores)}
        return sorted(scores.items(), key=lambda item: (-item[1], ids[item[0]]))[:most]

    def _named(self, reader: Reader, question: str) -> Iterator[list[int]]:
        """Yield the rows of each name that the question says; the longest names only."""
        said = said_words(question)
        at = 0
        while at < len(said):
            for size in range(min(NAME_WORDS_MAX, len(said) - at), 0, -1):
                rows = self._rows_named(reader, " ".join(said[at : at + size]))
                if rows:
                    yield rows
                    at += size - 1
                    break
            at += 1

    def _rows_named(self, reader: Reader, name: str) -> list[int]:
        tokens = indexed(name)
        counts = self._rarities(reader, tokens.split())
        rows = reader.rows_aliased(name)
        if counts and 0 < min(counts.values()) <= CANDIDATES_MAX:
            key = folded(name)
            bodies = reader.bodies(reader.texts.named(tokens))
            rows += [body.row for body in bodies if folded(body.name) == key]
        return sorted(set(rows))


def _tied_by_id(reader: Reader, found: Found) -> Found:
    """Return rows best first, ties by id."""
    ids = {body.row: body.id for body in reader.bodies([row for row, _ in found])}
    return sorted(found, key=lambda item: (-item[1], ids[item[0]]))


def _newest(reader: Reader, there: Sequence[str], most: int) -> list[int]:
    """Return the newest nodes with the two rarest words, then with the rarest alone."""
    both = reader.texts.latest(there[:2], most)
    if len(both) >= most or len(there) == 1:
        return both
    alone = reader.texts.latest(there[:1], most)
    return list(dict.fromkeys([*both, *alone]))

"""BM25 over documents in memory, and the share of a question's words that a document has."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from worlddb.index.ranking_numbers import SCALARS

COUNT_BITS = 16  # of a posting hold the count, the others the number of the document
COUNT_MAX = (1 << COUNT_BITS) - 1


def inverse_frequency(count: int, total: int) -> float:
    """Return the inverse document frequency of a word that `count` of `total` documents have."""
    return math.log1p((total - count + 0.5) / (count + 0.5))


class Bm25:
    """BM25 over numbered documents. A posting is a document and a count, packed in one integer."""

    def __init__(self) -> None:
        self._postings: dict[str, array[int]] = {}
        self._lengths = array("I")
        self._total = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, words: Sequence[str]) -> None:
        """Add the next document."""
        number = len(self._lengths) << COUNT_BITS
        postings = self._postings
        for word, count in Counter(words).items():
            found = postings.get(word)
            if found is None:
                found = postings[word] = array("Q")
            found.append(number | min(count, COUNT_MAX))
        self._lengths.append(len(words))
        self._total += len(words)

    def count(self, word: str) -> int:
        """Return how many documents have a word."""
        return len(self._postings.get(word, ()))

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word; 0 if no document has it."""
        return inverse_frequency(self.count(word), len(self)) if self.count(word) else 0.0

    def places_of(self, word: str) -> NDArray[np.intp]:
        """Return the documents that contain a word."""
        packed = np.frombuffer(self._postings.get(word, array("Q")), dtype=np.uint64)
        return (packed >> np.uint64(COUNT_BITS)).astype(np.intp)

    def has_all(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Return which documents contain all the words."""
        wanted = set(words)
        counts = np.zeros(len(self), dtype=np.int64)
        for word in wanted:
            counts[self.places_of(word)] += 1
        return counts == len(wanted) if wanted else np.zeros(len(self), dtype=np.bool_)

    @property
    def rarity_max(self) -> float:
        """The highest possible rarity."""
        return inverse_frequency(0, len(self))

    def scores(
        self, words: Mapping[str, float], rarity: Callable[[str], float] | None = None
    ) -> NDArray[np.float64]:
        """Return the score of every document for weighted words; rare by these, or by `rarity`."""
        k1, b = SCALARS.bm25_k1, SCALARS.bm25_b
        scores = np.zeros(len(self))
        if not self._total:
            return scores
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)
        norms = k1 * (1 - b + b * lengths / (self._total / len(self)))
        for word, weight in words.items():
            postings = self._postings.get(word)
            if postings is not None:
                packed = np.frombuffer(postings, dtype=np.uint64)
                places = (packed >> np.uint64(COUNT_BITS)).astype(np.intp)
                counts = (packed & np.uint64(COUNT_MAX)).astype(np.float64)
                gain = weight * (rarity or self.rarity)(word) * (k1 + 1)
                scores[places] += gain * counts / (counts + norms[places])
        return scores

    def coverage(self, words: Mapping[str, float]) -> NDArray[np.float64]:
        """Return which share of weighted words each document has, counted by their rarity."""
        top = self.rarity_max
        worth = {word: weight * (self.rarity(word) or top) for word, weight in words.items()}
        total = sum(worth.values())
        shares = np.zeros(len(self))
        for word, amount in worth.items() if total else ():
            shares[self.places_of(word)] += amount / total
        return shares

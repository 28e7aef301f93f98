"""BM25 over the nodes of one world, in memory.

A world's own statistics decide what is rare, so a scope of a thousand memories ranks the same in a
store of its own and in a store of a million, and nothing of other users' words shows through.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
COUNT_BITS = 16
COUNT_MAX = (1 << COUNT_BITS) - 1


class Bm25:
    """Postings of numbered documents: each word's documents and counts, packed in one integer."""

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

    def rarity(self, word: str) -> float:
        """Return how much finding a word says: 0 if no document has it."""
        count = len(self._postings.get(word, ()))
        return float(np.log1p((len(self) - count + 0.5) / (count + 0.5))) if count else 0.0

    def has_all(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Return which documents have every one of some words."""
        wanted = set(words)
        counts = np.zeros(len(self), dtype=np.int64)
        for word in wanted:
            packed = np.frombuffer(self._postings.get(word, array("Q")), dtype=np.uint64)
            counts[(packed >> np.uint64(COUNT_BITS)).astype(np.intp)] += 1
        return counts == len(wanted) if wanted else np.zeros(len(self), dtype=np.bool_)

    @property
    def rarity_max(self) -> float:
        """What the rarest possible word says."""
        return float(np.log1p((len(self) + 0.5) / 0.5))

    def scores(self, words: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the score of every document for weighted words."""
        scores = np.zeros(len(self))
        if not self._total:
            return scores
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)
        norms = K1 * (1 - B + B * lengths / (self._total / len(self)))
        for word, weight in words.items():
            postings = self._postings.get(word)
            if postings is not None:
                packed = np.frombuffer(postings, dtype=np.uint64)
                places = (packed >> np.uint64(COUNT_BITS)).astype(np.intp)
                counts = (packed & np.uint64(COUNT_MAX)).astype(np.float64)
                gain = weight * self.rarity(word) * (K1 + 1)
                scores[places] += gain * counts / (counts + norms[places])
        return scores

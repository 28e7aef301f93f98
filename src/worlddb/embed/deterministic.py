"""An embedder without a model: words and character trigrams, hashed into a few numbers.

It knows no meaning, only shared letters, but it is the same on every machine and in every version:
for tests, for examples, and for stores that must not depend on any model. Each word, and each
trigram in it, adds or takes one at a place that its blake3 hash names (signed feature hashing).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from blake3 import blake3

from worlddb.embed.protocol import BATCH_SIZE, Vectors, unit
from worlddb.model.inputs import check_whole

DIM = 64
DIM_MAX = 4_096
WORD_WEIGHT = 2
"""A whole word says more than a piece of one."""
WORD_CHARS_MAX = 64
WORDS_KEPT_MAX = 50_000
_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Deterministic vectors from spelling alone; queries and documents are treated alike."""

    def __init__(self, dim: int = DIM) -> None:
        self._dim = check_whole(dim, "dim", 1, DIM_MAX)
        self.batch_size = BATCH_SIZE
        self._known: dict[str, Vectors] = {}

    @property
    def model_id(self) -> str:
        """`hash-64` and so on."""
        return f"hash-{self._dim}"

    @property
    def dim(self) -> int:
        """As it was given."""
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        sums = np.zeros((len(texts), self._dim), dtype=np.float32)
        for place, text in enumerate(texts):
            if words := _words(text):
                # Whole numbers: the sum is exact, whatever the order.
                sums[place] = np.sum([self._of_word(word) for word in words], axis=0)
        return unit(sums)

    def _of_word(self, word: str) -> Vectors:
        vector = self._known.get(word)
        if vector is None:
            vector = np.zeros(self._dim, dtype=np.float32)
            self._add(vector, word, WORD_WEIGHT)
            # The marks tell a word's ends from its middle, and from the word itself.
            marked = f"<{word}>"
            for at in range(len(marked) - 2):
                self._add(vector, "3" + marked[at : at + 3], 1)
            if len(self._known) >= WORDS_KEPT_MAX:
                self._known.clear()
            self._known[word] = vector
        return vector

    def _add(self, vector: Vectors, feature: str, weight: int) -> None:
        number = int.from_bytes(blake3(feature.encode()).digest(8), "little")
        vector[(number >> 1) % self._dim] += weight if number & 1 else -weight


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    # A text of signs alone has no words in this sense, but is still a text.
    found = _WORD.findall(folded) or folded.split()
    return [word[:WORD_CHARS_MAX] for word in found]

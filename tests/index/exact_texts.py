"""An embedder that can be foretold: a text's vector follows from the text alone, and it counts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from worlddb import ProviderError

DIM = 8


def exact(text: str, dim: int = DIM, model_id: str = "exact") -> NDArray[np.float32]:
    """Return the vector of a text: random, but always the same."""
    seed = int.from_bytes(blake3(f"{model_id} {text}".encode()).digest(8), "little")
    vector = np.random.default_rng(seed).standard_normal(dim)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class ExactEmbedder:
    """Maps each text to `exact(text)`; can be told to fail after so many texts."""

    def __init__(
        self, model_id: str = "exact", *, dim: int = DIM, fails_after: int | None = None
    ) -> None:
        self.model_id = model_id
        self.dim = dim
        self.batch_size = 4
        self.fails_after = fails_after
        self.documents: Counter[str] = Counter()
        self.queries: Counter[str] = Counter()
        self._lock = threading.Lock()

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._lock:
            self.queries.update(texts)
        return self._vectors(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._lock:
            if self.fails_after is not None and self.documents.total() >= self.fails_after:
                raise ProviderError(f"{self.model_id}: out of order")
            self.documents.update(texts)
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([exact(text, self.dim, self.model_id) for text in texts])

"""Tokens: the vectors of single words, kept beside the vector of their text.

Only some embedders have them: those with `read_question` and `read_texts`. A text's token vectors
are one blob, row after row; they are never composed, and read only for the best of a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.protocol import Embedder
from worlddb.errors import ProviderError, WorldDBError
from worlddb.index.composed import damaged

DIM = 128
STORED = np.dtype("<i1")

Tokens: TypeAlias = NDArray[np.int8]
Scores: TypeAlias = NDArray[np.float64]


def has_tokens(embedder: Embedder) -> bool:
    """Return whether an embedder has vectors of single words."""
    return getattr(embedder, "read_texts", None) is not None


def tokens_of(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Return the token vectors of texts as the store keeps them; nothing if there are none.

    Raises:
        ProviderError: the embedder failed.
    """
    read: Any = getattr(embedder, "read_texts", None)
    if read is None or not texts:
        return []
    try:
        return [_checked(embedder, tokens).tobytes() for tokens in read(list(texts))]
    except WorldDBError:
        raise
    except Exception as error:
        raise ProviderError(f"{embedder.model_id}: failed to read texts: {error}") from error


def asked_tokens(embedder: Embedder, question: str) -> Tokens | None:
    """Return the token vectors of a question; None if the embedder has none.

    Raises:
        ProviderError: the embedder failed.
    """
    read: Any = getattr(embedder, "read_question", None)
    return None if read is None else _checked(embedder, read(question))


def _checked(embedder: Embedder, tokens: Tokens) -> Tokens:
    if tokens.dtype != STORED or tokens.ndim != 2 or tokens.shape[1] != DIM:
        raise ProviderError(
            f"{embedder.model_id}: token vectors must be rows of {DIM} int8, "
            f"not {tokens.dtype} {tokens.shape}"
        )
    return tokens


def loaded_tokens(row: int, body: bytes) -> Tokens:
    """Return the token vectors of a node.

    Raises:
        CorruptionError: they cannot be such.
    """
    if len(body) % DIM:
        raise damaged(row)
    return np.frombuffer(body, dtype=STORED).reshape(-1, DIM)


def read_closely(asked: Tokens, texts: Sequence[Tokens]) -> Scores:
    """Return how well each text answers: how near it comes to each word of the question, summed.

    A word of the question counts by how far its best text is above the mean: a word that all or
    none of the texts have decides nothing. All products are of whole numbers and exact.
    """
    if not texts or not len(asked):
        return np.zeros(len(texts))
    # One row of zeros each: a text of no words is near to nothing, and yet has a place.
    rows = [np.concatenate((np.zeros((1, DIM), dtype=STORED), text)) for text in texts]
    starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
    flat = np.concatenate(rows).astype(np.float32)
    near = np.maximum.reduceat(asked.astype(np.float32) @ flat.T, starts, axis=1)
    above = near.astype(np.float64) - near.mean(axis=1, dtype=np.float64)[:, None]
    # Summed word by word, not as a product: that would round a text by where it stands.
    score: Scores = (above * above.max(axis=1)[:, None]).sum(axis=0)
    return score

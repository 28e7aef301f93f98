"""Kept vectors: a framework's own embeddings beside a text, and ranking by them.

A framework that brings its embeddings has them kept in the metadata of the text, so a text is
embedded once. All texts are compared with the question: exact, and fast for some ten thousand.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np

BYTES_MAX = 40_000  # The metadata of a node hold 65,536 bytes; longer vectors are made anew.
Vectors = Sequence[Sequence[float]]


def packed(vectors: Vectors) -> list[str]:
    """Return vectors as texts for metadata; none if they are too long to be kept."""
    made = [
        base64.b64encode(np.asarray(one, dtype=np.float32).tobytes()).decode() for one in vectors
    ]
    return made if sum(map(len, made)) <= BYTES_MAX else []


def unpacked(texts: Sequence[str]) -> Vectors:
    """Return the vectors that `packed` kept."""
    return [np.frombuffer(base64.b64decode(text), dtype=np.float32).tolist() for text in texts]


def ranked(asked: Sequence[float], held: Mapping[bytes, Vectors]) -> list[tuple[bytes, float]]:
    """Return keys by the cosine of their nearest vector, best first; without vectors, none."""
    scored = [
        (key, max(_cosine(asked, one) for one in vectors))
        for key, vectors in held.items()
        if len(vectors)
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    one, other = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if size else 0.0

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


EXACT = "f8:"
"""What the text of a vector begins with that is kept to the last digit."""


def packed(vectors: Vectors, *, exact: bool = False) -> list[str]:
    """Return vectors as texts for metadata; none if they are too long to be kept."""
    kind, mark = (np.float64, EXACT) if exact else (np.float32, "")
    arrays = (np.asarray(one, dtype=kind).tobytes() for one in vectors)
    made = [mark + base64.b64encode(data).decode() for data in arrays]
    return made if sum(map(len, made)) <= BYTES_MAX else []


def unpacked(texts: Sequence[str]) -> Vectors:
    """Return the vectors that `packed` kept."""
    found = []
    for text in texts:
        kind = np.float64 if text.startswith(EXACT) else np.float32
        data = base64.b64decode(text.removeprefix(EXACT))
        found.append(np.frombuffer(data, dtype=kind).tolist())
    return found


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

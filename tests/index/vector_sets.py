"""Vectors for tests, and the plain way to find the nearest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from worlddb.index.nearest import cosines

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def clustered(count: int, dim: int, seed: int, centres: int = 50) -> Floats:
    """Return unit vectors around a few centres that do not depend on the seed."""
    rng = np.random.default_rng(seed)
    middle = np.random.default_rng(99).standard_normal((centres, dim))
    vectors = middle[rng.integers(0, centres, count)] + 0.5 * rng.standard_normal((count, dim))
    units: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return units


def numbers(*rows: int) -> Ints:
    return np.array(rows, np.int64)


def brute(held: dict[int, Floats], query: Floats, k: int) -> list[tuple[int, float]]:
    """Return the k best of the unit vectors held, by looking at each of them."""
    rows = [row for row, vector in held.items() if vector.any()]
    if not rows:
        return []
    scores = cosines(np.stack([held[row] for row in rows]), query).tolist()
    ordered = sorted((-score, row) for row, score in zip(rows, scores, strict=True))
    return [(row, -score) for score, row in ordered[:k]]

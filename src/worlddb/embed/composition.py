"""Composition: one vector for a world and its interior, from sums that are cheap to update.

A world has a *content* vector, which never changes, and an *effective* vector, which search uses.
The effective vector is composed from the content and the effective vectors of the children:

    mean        norm(content + Σ child)
    attention   norm(content + Σ aᵢ·childᵢ / Σ aᵢ),   aᵢ = exp(content · childᵢ / √dim)

Both need two running sums per world, Σ aᵢ and Σ aᵢ·childᵢ, so the change of a child costs the same
in a world of ten and of a million. The anchor is always the content vector: with the composed one,
each update would pull a world further towards its own last value.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Pooling = Literal["attention", "mean"]
Vector = NDArray[np.float32]
Sum = NDArray[np.float64]

LENGTH_MIN = 1e-9  # A shorter sum is the rounding error of vectors that cancel out.


class Pool(NamedTuple):
    """The running sums of a world's counted children."""

    children: int
    weight: float
    total: Sum


def empty_pool(dim: int) -> Pool:
    """Return the pool of a world without children."""
    return Pool(0, 0.0, np.zeros(dim))


def attention(anchor: Vector, vectors: Vector, pooling: Pooling) -> Sum:
    """Return the weight of each child."""
    if pooling == "mean":
        return np.ones(len(vectors))
    logits = vectors.astype(np.float64) @ anchor.astype(np.float64)
    return np.asarray(np.exp(logits / np.sqrt(len(anchor))), dtype=np.float64)


def changed(pool: Pool, anchor: Vector, removed: Vector, added: Vector, pooling: Pooling) -> Pool:
    """Return the pool after children were removed and added; a changed child is both.

    Sums have double precision and an emptied pool starts from zero, so that a child that was added
    and removed again leaves no trace that a search could see.
    """
    children = pool.children - len(removed) + len(added)
    if children <= 0:
        return empty_pool(len(anchor))
    out, into = attention(anchor, removed, pooling), attention(anchor, added, pooling)
    return Pool(
        children,
        pool.weight - float(out.sum()) + float(into.sum()),
        pool.total - out @ removed.astype(np.float64) + into @ added.astype(np.float64),
    )


def effective(anchor: Vector, pool: Pool, pooling: Pooling) -> Vector:
    """Return the vector that search uses: unit length, or zero if there is no content."""
    if not pool.children:
        return anchor
    inside = pool.total / pool.weight if pooling == "attention" else pool.total
    composed = anchor.astype(np.float64) + inside
    length = float(np.linalg.norm(composed))
    scaled = composed / length if length > LENGTH_MIN else np.zeros_like(composed)
    return scaled.astype(np.float32)

"""Exact: cosines of one question with many unit vectors, and the best of them.

Everything here runs on one thread. The matrix product of numpy would hand even small products to
all cores, and on a busy machine the slowest core decides: milliseconds instead of microseconds.
Both kernels used here also add up each vector alone, in the same order wherever it lies, so equal
vectors have equal cosines and ties are real ties.
"""

from __future__ import annotations

import numpy as np

from worlddb.errors import InvalidInputError
from worlddb.index.arrays import Floats, Ints
from worlddb.index.slots import GONE, Slots

NOT_A_COSINE = np.float32(-2)
SHORT_DIM = 32  # Below it, a call per vector (vecdot) costs more than its sum.
BLOCK = 64
BLOCKS_PER_K = 4
GATHER_CHUNK = 4_096  # Vectors that are copied together, so that they stay in the cache.


def cosines(vectors: Floats, query: Floats) -> Floats:
    """Return the cosine of each unit vector with a unit query, at most 1."""
    found: Floats
    if vectors.shape[1] < SHORT_DIM:
        found = np.einsum("ij,j->i", vectors, query)
    else:
        found = np.vecdot(vectors, query)
    np.minimum(found, np.float32(1), out=found)
    return found


def best(scores: Floats, k: int) -> Ints:
    """Return the positions of the k highest scores and of all that equal the last of them.

    A few more may be among them; none that belongs there is missing.
    """
    count = len(scores)
    if count <= k:
        return np.arange(count)
    blocks = count // BLOCK
    if blocks > BLOCKS_PER_K * k:
        # The k-th highest of the blocks' maxima is a score that at least k scores reach.
        heads = scores[: blocks * BLOCK].reshape(blocks, BLOCK).max(axis=1)
        bound = np.partition(heads, blocks - k)[blocks - k]
    else:
        bound = np.partition(scores, count - k)[count - k]
    return np.flatnonzero(scores >= bound)


def ranked(rows: Ints, scores: Floats, k: int) -> list[tuple[int, float]]:
    """Return the k best as (row, score), highest score first, ties by row."""
    order = np.lexsort((rows, -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def scan(slots: Slots, query: Floats, k: int, allowed: Ints | None) -> list[tuple[int, float]]:
    """Return the k best of all rows, or of the allowed ones, after looking at each of them.

    Raises:
        InvalidInputError: `allowed` is not ascending.
    """
    if allowed is None:
        scores, rows = cosines(slots.vectors, query), slots.rows
        if slots.live < slots.used:
            scores[rows == GONE] = NOT_A_COSINE
    else:
        if (allowed[1:] <= allowed[:-1]).any():
            raise InvalidInputError("give the allowed rows in ascending order, each once")
        where = slots.find(allowed)
        seen = where != GONE
        where, rows = where[seen], allowed[seen]
        if 2 * len(where) > slots.used:
            scores = cosines(slots.vectors, query)[where]
        else:
            scores = np.empty(len(where), np.float32)
            for i in range(0, len(where), GATHER_CHUNK):
                chunk = slice(i, i + GATHER_CHUNK)
                scores[chunk] = cosines(slots.vectors[where[chunk]], query)
    top = best(scores, k)
    top = top[scores[top] > NOT_A_COSINE]
    return ranked(rows[top], scores[top], k)

"""Arrays: rows and vectors as they come in, checked; vectors made to length 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from worlddb.errors import InvalidInputError

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

ROWS_MAX = 2**31 - 2
UNIT_CLOSE = 1e-6


def checked_rows(given: Ints, name: str) -> Ints:
    """Return rows that are what their type says.

    Raises:
        InvalidInputError: not a one-dimensional array of int64.
    """
    if not isinstance(given, np.ndarray) or given.dtype != np.int64 or given.ndim != 1:
        raise InvalidInputError(f"give {name} as a one-dimensional array of int64")
    return given


def checked_put(rows: Ints, vectors: Floats, dim: int) -> tuple[Ints, Floats, Ints]:
    """Return rows and their unit vectors, and apart the rows whose vector is zero.

    Of a row given more than once, the last vector counts.

    Raises:
        InvalidInputError: arrays of another type or shape, or a vector that is not finite.
    """
    checked_rows(rows, "rows")
    if not isinstance(vectors, np.ndarray) or vectors.shape != (len(rows), dim):
        raise InvalidInputError(f"give the vectors as an array of {len(rows)} x {dim} float32")
    if len(rows) and (rows.min() < 0 or rows.max() > ROWS_MAX):
        raise InvalidInputError(f"rows are numbers from 0 to {ROWS_MAX:,}")
    _, last = np.unique(rows[::-1], return_index=True)
    if len(last) < len(rows):
        kept = np.sort(len(rows) - 1 - last)
        rows, vectors = rows[kept], vectors[kept]
    known, filled = units(vectors)
    if filled.all():
        return rows, known, rows[:0]
    return rows[filled], known[filled], rows[~filled]


def units(vectors: Floats) -> tuple[Floats, Bools]:
    """Return the vectors at length 1, and which of them are not zero.

    Vectors that have that length already keep their bits. The result is the caller's own.

    Raises:
        InvalidInputError: not float32, or not finite.
    """
    if vectors.dtype != np.float32:
        raise InvalidInputError(f"vectors are of type {vectors.dtype}; give float32")
    # Squares of float32 can leave its range, not that of float64.
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise InvalidInputError("a vector is not finite; leave out NaN and infinity")
    filled = lengths > 0
    found = vectors + np.float32(0)  # A copy, and -0.0 becomes 0.0: equal vectors have equal bits.
    long = np.flatnonzero(filled & (np.abs(lengths - 1) > UNIT_CLOSE))
    if len(long):
        found[long] = vectors[long] / lengths[long, None] + 0.0
    return found, filled


def unit(vector: Floats) -> Floats | None:
    """Return one vector at length 1, or None for a zero vector.

    Raises:
        InvalidInputError: not float32, or not finite.
    """
    if vector.dtype == np.float32:
        wide = vector.astype(np.float64)
        if abs(float(np.dot(wide, wide)) - 1) < UNIT_CLOSE:
            return vector
    found, filled = units(vector[None])
    return found[0] if filled[0] else None


def among(allowed: Ints, rows: Ints) -> Bools:
    """Return which rows are in `allowed`, which is ascending; never true for one that is not."""
    where = np.searchsorted(allowed, rows)
    found: Bools = allowed[np.minimum(where, len(allowed) - 1)] == rows
    return found

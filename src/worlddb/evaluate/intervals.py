"""Intervals: how far a mean over some questions may be from that over all there could be.

Shares of right answers get Wilson's interval, other means a bootstrap over the questions with a
fixed seed; both at 95 %. They speak of the choice of questions alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

Z = 1.959964
RESAMPLES = 2_000
AT_ONCE = 100
SEED = 7


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over n questions and where it may lie."""

    value: float
    low: float
    high: float
    n: int


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of some figures with its interval.

    Raises:
        ValueError: there are none.
    """
    if not values:
        raise ValueError("no values")
    if set(values) <= {0.0, 1.0}:
        low, high = wilson(int(sum(values)), len(values))
    else:
        low, high = bootstrap(values)
    return Mean(sum(values) / len(values), low, high, len(values))


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return the interval of a share."""
    share = right / n
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    # At the ends, rounding would leave the range of a share.
    return (0.0 if right == 0 else middle - half), (1.0 if right == n else middle + half)


def bootstrap(values: Sequence[float], *, seed: int = SEED) -> tuple[float, float]:
    """Return the interval of a mean, from samples of the values with replacement."""
    held = np.asarray(values, dtype=np.float64)
    dice = np.random.default_rng(seed)
    means = [
        held[dice.integers(0, len(held), (AT_ONCE, len(held)))].mean(axis=1)
        for _ in range(RESAMPLES // AT_ONCE)
    ]
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return float(low), float(high)

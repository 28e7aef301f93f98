"""Retaining: how well each candidate of a recall is kept, where the question wants it weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from worlddb.model.instant import to_micros
from worlddb.model.retention import retention
from worlddb.read.moment import Moment
from worlddb.read.weigh import Candidates, Weights
from worlddb.store.protocol import Reader

ROWS_AT_ONCE = 1_000


def with_retention(
    found: Candidates, reader: Reader, rows: Sequence[int], moment: Moment, weights: Weights | None
) -> Candidates:
    """Return the candidates with how well each is kept; as they are if that has no weight."""
    if weights is None or not weights.retention:
        return found
    now = to_micros(moment.now, "now")
    kept: dict[int, float] = {}
    for start in range(0, len(rows), ROWS_AT_ONCE):
        for item in reader.sweep.recalls(rows[start : start + ROWS_AT_ONCE]):
            kept[item.row] = retention(
                item.created_at, item.last, item.recalls, item.links, now, weights.fading
            )
    return replace(found, retained=np.array([kept[row] for row in rows]))

"""Confidence figures: does a recall know when it does not know?

auroc(right, wrong)     the chance that one of `right` is above one of `wrong`; 0.5 is a guess
reliability(pairs)      by tenths of the confidence: what was said, and how often it was right
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

TENTHS = 10  # the bands of a figure: narrower ones hold too few questions
CONFIDENCE_DEFINITIONS = {
    "auroc_abstention": "{:.3f}: the chance that recall is surer of a question that has an answer "
    "than of one whose answer was never said; 0.5 is a guess",
    "auroc_found": "{:.3f}: the same, of questions whose gold is among the first ten hits and all "
    "others",
    "off": "{:.3f}: how far the confidence is from the share of answers found, on average",
}


def confidence_figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how well the confidence of recalls tells what they have found; empty without any.

    An answer is found if gold is among the first ten hits.
    """
    sure = [record for record in records if "confidence" in record]
    if not sure:
        return {}
    told = [(record["confidence"], record["is_found"]) for record in sure]
    tenths = reliability(told)
    return {
        "auroc_abstention": auroc(
            [record["confidence"] for record in sure if record["has_answer"]],
            [record["confidence"] for record in sure if not record["has_answer"]],
        ),
        "auroc_found": auroc([it for it, ok in told if ok], [it for it, ok in told if not ok]),
        "off": sum(abs(said - right) * count for said, right, count in tenths) / len(told),
        "tenths": tenths,
    }


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """Return how often a value of `right` is above one of `wrong`, ties counting half."""
    if not len(right) or not len(wrong):
        return None
    one, other = np.asarray(right, dtype=float)[:, None], np.asarray(wrong, dtype=float)[None]
    return round(float((one > other).mean() + 0.5 * (one == other).mean()), 4)


def reliability(told: Sequence[tuple[float, bool]]) -> list[tuple[float, float, int]]:
    """Return (mean confidence, share that was right, how many) of each tenth that has any."""
    found = []
    for tenth in range(TENTHS):
        inside = [it for it in told if min(int(it[0] * TENTHS), TENTHS - 1) == tenth]
        if inside:
            said, right = np.mean([it[0] for it in inside]), np.mean([it[1] for it in inside])
            found.append((round(float(said), 3), round(float(right), 3), len(inside)))
    return found

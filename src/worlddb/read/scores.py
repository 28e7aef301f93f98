"""Scores: how well each place of a held world answers a question, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from worlddb.language.question import weights_of
from worlddb.language.words import asked
from worlddb.read.interior import Interior

Scores = NDArray[np.float64]


def text_scores(interior: Interior, question: str) -> Scores:
    """Return how well each place answers by its words."""
    return interior.text.scores(weights_of(asked(question)))


class Held:
    """The vectors of some places of a matrix; the matrix itself is never copied."""

    def __init__(self, matrix: NDArray[np.float32], places: NDArray[np.intp]) -> None:
        self._matrix = matrix
        self._places = places

    def of(self, vector: NDArray[np.float32]) -> Scores:
        """Return how close each place is in meaning.

        Row by row: a product of the whole matrix rounds a row by where it stands, and equal texts
        would not be equally close.
        """
        near: Scores = np.vecdot(self._matrix, vector)[self._places].astype(np.float64)
        return near

    def mean(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean of some places' vectors."""
        mean: NDArray[np.float32] = self._matrix[self._places[places]].mean(axis=0)
        return mean


def ranked(scores: Scores, ids: Sequence[bytes], depth: int) -> list[int]:
    """Return the best places with any score; ties by id."""
    candidates = np.flatnonzero(scores > 0)
    if len(candidates) > depth:
        # Everything that ties with the last one stays in, for the ids to decide.
        least = np.partition(scores[candidates], len(candidates) - depth)[-depth]
        candidates = candidates[scores[candidates] >= least]
    order = sorted(candidates.tolist(), key=lambda place: (-scores[place], ids[place]))
    return order[:depth]

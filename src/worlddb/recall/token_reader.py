"""Token reader: how well candidates answer, word by word, by the token vectors that are stored."""

from __future__ import annotations

from collections.abc import Sequence

from worlddb.index.held_world import Scores
from worlddb.index.vectors import Tokens, Vectors, late_interaction_scores
from worlddb.store.interface import Reader


class TokenReader:
    """Scores candidates word by word, by the token vectors that the store keeps of them."""

    def __init__(
        self, asked: Tokens, reader: Reader, vectors: Vectors, rows: Sequence[int]
    ) -> None:
        self._asked = asked
        self._reader = reader
        self._vectors = vectors
        self._rows = rows

    def read(self, places: Sequence[int]) -> Scores:
        """Return how well the candidates at some positions answer."""
        rows = [self._rows[at] for at in places]
        return late_interaction_scores(self._asked, self._vectors.load_tokens(self._reader, rows))

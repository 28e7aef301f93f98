"""Meaning: which named nodes of a world are near one of them, by the vectors that are there.

Nobody waits for a model here who did not ask for one: a store that was never searched has no
vectors and stays without, and where many nodes wait for theirs, the next search makes them. A world
too large to be held in memory is not looked through, for the index of a large store takes minutes
to build.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from worlddb.embed.compose import Vector
from worlddb.errors import WorldDBError
from worlddb.index.composed import STORED
from worlddb.index.vectors import EMBED_BATCH, Vectors
from worlddb.read.scores import Held, ranked
from worlddb.read.search import Search
from worlddb.read.view import View
from worlddb.store.protocol import BodyRow, Reader, Store

BEHIND_MAX = EMBED_BATCH
"""How many nodes may still be without a vector for them to be embedded on the way."""
NEAR_MAX = 8


class Meaning:
    """The vectors of one store's names."""

    def __init__(self, search: Search, vectors: Vectors) -> None:
        self._search = search
        self._vectors = vectors

    @classmethod
    def at_hand(cls, search: Search, store: Store) -> Meaning | None:
        """Return the vectors of a store, brought up to date; None if that is not done soon.

        An embedder that fails is none: meaning only ever adds a proposal.
        """
        if not search.has_vectors:
            return None
        try:
            with store.read() as reader:
                model = next((row for row in reader.derived.models() if row.active), None)
                if model is None or reader.head().nodes - model.embedded > BEHIND_MAX:
                    return None
            vectors = search.vectors()
            vectors.catch_up()
        except WorldDBError:
            return None
        return cls(search, vectors)

    def of(self, reader: Reader, bodies: Iterable[BodyRow]) -> dict[int, Vector]:
        """Return the vectors of names: of nodes that are a name and nothing else.

        What is said about a thing is near what is said about another of its kind.
        """
        rows = [body.row for body in bodies if not body.content]
        model = self._vectors.model(reader)
        if model is None or not rows:
            return {}
        found = reader.derived.vectors(model.number, rows)
        return {row: np.frombuffer(body, STORED).astype(np.float32) for row, body in found}

    def near(self, view: View, vector: Vector, types: set[str], least: float) -> list[int]:
        """Return the rows of the nodes in view that are nearest a vector, and near enough."""
        reader = view.reader
        with self._search.interior(reader, view.worlds, view.moment, view.members) as interior:
            if interior is None:
                return []
            matrix = interior.vectors(reader, self._vectors)
            cosines = Held(matrix, np.arange(len(matrix))).of(vector)
            seen = interior.seen(view.moment, ended=view.ended, types=types) & (cosines >= least)
            places = ranked(np.where(seen, cosines, 0.0), interior.ids, NEAR_MAX)
            return [interior.rows[place] for place in places]

"""Large worlds: the rows and vectors of worlds that are too large to be held.

A held world has the words, names and times of its nodes. Of a larger world only the rows are held
and, after the first question by meaning, the vectors; both follow the journal. So every vector
inside is compared, and nodes outside change neither which nodes are found nor how they rank. A
nearest-neighbour graph that several scopes share would change both, because a search in it is
guided by all vectors.

The rows include nodes of the past; the view decides which of them a caller sees at a moment.
"""

from __future__ import annotations

from worlddb.index.held_world import HeldWorld
from worlddb.model.records import Change
from worlddb.store.interface import Reader
from worlddb.store.rows import Head
from worlddb.view.visibility import Moment


class LargeWorld(HeldWorld):
    """The rows of some worlds, and their vectors; nothing else of their nodes."""

    def _new_rows(
        self, reader: Reader, before: Head, head: Head, changes: list[Change], moment: Moment
    ) -> list[int] | None:
        """Return the new nodes inside; None if older nodes moved in. Nodes that left stay."""
        moved = [reader.node_row(change.id) or 0 for change in changes if change.kind == "place"]
        for parent in reader.parents(moved).values() if moved else ():
            if parent in self.place or parent in self.worlds:
                return None
        return super()._new_rows(reader, before, head, [], moment)

    def _add(self, reader: Reader, rows: list[int], moment: Moment) -> None:
        self.place.update(zip(rows, range(len(self.rows), len(self.rows) + len(rows)), strict=True))
        self.rows.extend(rows)

    def _end_or_move(self, reader: Reader, change: Change) -> None:
        """Do nothing: validity is read from the store."""

    def _name(self, name: str, place: int) -> None:
        """Do nothing: names are read from the store."""

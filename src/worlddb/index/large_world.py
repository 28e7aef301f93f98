"""Large worlds: what is or was inside worlds too large to be held, and how near its vectors are.

A held world has the words, names and times of its nodes. Of a larger one only the rows are kept,
and the vectors after the first question by meaning; both follow the journal. So every vector inside
is compared, and the size of a world is its own: whatever lies outside changes neither which nodes
are found nor how they rank. A graph of neighbours that several scopes share would change both:
where it leads depends on everything in it.

The rows are those of any time. Which of them a caller sees at a moment, the view says.
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
        """Return the new nodes inside; None if older nodes have moved in. Who left stays a row."""
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

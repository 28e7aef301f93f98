"""Trust levels: how far nodes and edges are trusted, by the settings of the scope around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worlddb.model.address import Id
from worlddb.model.origin import FULL, NOTE, SETTINGS, level_of
from worlddb.model.records import Edge, Node
from worlddb.store.interface import Reader


class TrustLevels:
    """Answers for one snapshot or transaction; settings are read once for each world.

    The settings of an inner world are laid over those of the worlds around it.
    """

    def __init__(self, reader: Reader, known: int | None = None) -> None:
        self._reader = reader
        self._known = known
        self._settings: dict[Id | None, Mapping[str, Any]] = {None: {}}

    def of(self, node: Node) -> int:
        """Return how far a node is trusted."""
        return level_of(node.origins, self.settings(node.parent)) if node.origins else FULL

    def of_edge(self, edge: Edge, world: Id | None) -> int:
        """Return how far an edge is trusted that somebody stated between two names of a world."""
        origin = edge.metadata.get(NOTE)
        return level_of((str(origin),), self.settings(world)) if origin else FULL

    def settings(self, world: Id | None) -> Mapping[str, Any]:
        """Return the settings that hold in a world."""
        if world not in self._settings:
            row = self._reader.node_row(world) if world is not None else None
            node = None if row is None else self._reader.nodes([row], self._known).get(row)
            found: Mapping[str, Any] = {}
            if node is not None:
                own = node.metadata.get(SETTINGS)
                found = {**self.settings(node.parent), **(own if isinstance(own, Mapping) else {})}
            self._settings[world] = found
        return self._settings[world]

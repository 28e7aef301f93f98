"""Node filters: query steps that test one node at a time, and the trust level of nodes and edges.

    filter_type   type names, with their subtypes and instances as the ontology says
    filter_time   valid at some time of a span
    where         a condition on metadata, type, source or time (`model.conditions`)
    TrustLevels   the trust of nodes and edges, by the settings of the scope around them

The steps are the same for queries and for recall.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from worlddb.errors import ProviderError
from worlddb.model.address import Id
from worlddb.model.conditions import matches
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.records import Edge, Node, Op, Query
from worlddb.model.text_safety import FULL, NOTE, SETTINGS, trust_level
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import Moment, inside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


INSTANCES, SUBTYPES = "instance_of", "subtype_of"


class RowJudge(Protocol):
    """A filter over the rows of one snapshot; `index.field_index` makes it."""

    def mask(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the rows that pass the filter."""

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return the rows that pass the filter."""

    def few(self, most: int, among: NDArray[np.int64] | None = None) -> list[int] | None:
        """Return all rows that pass the filter, or those in `among` that do.

        Returns None if there may be more than `most`.
        """


class WidenedTypes(NamedTuple):
    """Type names with their subtypes, and the rows of the instances of these types.

    An instance keeps a type name of its own, so it is listed by row.
    """

    names: frozenset[str]
    rows: frozenset[int]
    with_instances: bool
    include_ended: bool

    def instances(self, reader: Reader, moment: Moment, among: set[int] | None = None) -> set[int]:
        """Return the instances of these types; with `among`, only those of some rows."""
        if not self.rows or not self.with_instances:
            return set()
        if among is None:
            found = reader.edges_at(sorted(self.rows), "in", (INSTANCES,), moment.known)
        else:
            found = reader.edges_at(sorted(among), "out", (INSTANCES,), moment.known)
        return {
            item.source
            for item in found
            if item.target in self.rows and moment.shows(item.edge, self.include_ended)
        }


def widened_types(
    reader: Reader, query: Query, moment: Moment, worlds: Sequence[int], names: Iterable[str]
) -> WidenedTypes:
    """Return types with their subtypes, as the edges inside and around some worlds say."""
    wanted = frozenset(names)
    ended = query.include_superseded
    if not query.type_edges:
        return WidenedTypes(wanted, frozenset(), False, ended)

    def seen(rows: Iterable[int]) -> set[int]:
        return _types_seen(reader, query, moment, worlds, set(rows))

    found = seen(reader.rows_named(wanted))
    frontier = set(found)
    while frontier and SUBTYPES in query.type_edges:
        edges = reader.edges_at(frontier, "in", (SUBTYPES,), moment.known)
        frontier = seen({it.source for it in edges if moment.shows(it.edge, ended)}) - found
        found |= frontier
    known = {node.name for node in reader.nodes(found, moment.known).values()}
    with_instances = INSTANCES in query.type_edges
    return WidenedTypes(wanted | known, frozenset(found), with_instances, ended)


def _types_seen(
    reader: Reader, query: Query, moment: Moment, worlds: Sequence[int], rows: set[int]
) -> set[int]:
    """Return the type nodes that apply here: inside one of the worlds, or in a world around it."""
    if not rows:
        return rows
    around = {ROOT_ROW}
    kept: set[int] = set()
    for world in worlds:
        kept |= inside(reader, world, rows, moment, query.widens_to_members)
        row: int | None = world
        while row is not None and row not in around:
            around.add(row)
            row = reader.parents([row], moment.known).get(row)
    homes = reader.parents(rows, moment.known)
    return kept | {row for row, home in homes.items() if home in around}


def overlaps(node: Node, start: datetime | None, end: datetime | None) -> bool:
    """Return whether a node is valid at some time in `[start, end)`."""
    if node.valid_to is not None and (
        node.valid_to <= node.valid_from or (start is not None and node.valid_to <= start)
    ):
        return False
    return end is None or node.valid_from < end


def filtered(
    reader: Reader,
    query: Query,
    moment: Moment,
    worlds: Sequence[int],
    nodes: Mapping[int, Node],
    op: Op,
) -> set[int]:
    """Return the rows of the nodes that pass a filter step."""
    if op.kind == "filter_type":
        types = widened_types(reader, query, moment, worlds, op.types)
        kept = {row for row, node in nodes.items() if node.type in types.names}
        return kept | types.instances(reader, moment, nodes.keys() - kept)
    if op.kind == "filter_time":
        start = None if op.start is None else from_micros(to_micros(op.start, "start"))
        end = None if op.end is None else from_micros(to_micros(op.end, "end"))
        return {row for row, node in nodes.items() if overlaps(node, start, end)}
    if op.kind == "where":
        wanted = op.where
        return {row for row, node in nodes.items() if wanted is None or matches(node, wanted)}
    raise ProviderError(f"{op.kind}: a rewrite may add filter_type, filter_time and where here")


class TrustLevels:
    """The trust of nodes and edges in one snapshot; reads the settings of each world once.

    A setting of an inner world overrides that of the worlds around it.
    """

    def __init__(self, reader: Reader, known: int | None = None) -> None:
        self._reader = reader
        self._known = known
        self._settings: dict[Id | None, Mapping[str, Any]] = {None: {}}

    def of(self, node: Node) -> int:
        """Return the trust level of a node."""
        return trust_level(node.origins, self.settings(node.parent)) if node.origins else FULL

    def of_edge(self, edge: Edge, world: Id | None) -> int:
        """Return the trust level of an edge that was written between two names of a world."""
        origin = edge.metadata.get(NOTE)
        return trust_level((str(origin),), self.settings(world)) if origin else FULL

    def settings(self, world: Id | None) -> Mapping[str, Any]:
        """Return the trust settings that apply in a world."""
        if world not in self._settings:
            row = self._reader.node_row(world) if world is not None else None
            node = None if row is None else self._reader.nodes([row], self._known).get(row)
            found: Mapping[str, Any] = {}
            if node is not None:
                own = node.metadata.get(SETTINGS)
                found = {**self.settings(node.parent), **(own if isinstance(own, Mapping) else {})}
            self._settings[world] = found
        return self._settings[world]

"""Node filters: the steps of a query that look at one node at a time, for queries and for recall.

filter_type   type names → their subtypes and instances, where the ontology says so
filter_time   valid at some time of a span
where         metadata: equal, one of several, or among a list
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.records import Node, Op, Query
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import Moment, inside

INSTANCES, SUBTYPES = "instance_of", "subtype_of"
Where = tuple[tuple[str, Any], ...]
WHERE_KEYS_MAX = 100
"""More conditions than anybody writes by hand; each costs a comparison per node."""


class WidenedTypes(NamedTuple):
    """The names of some types with their subtypes, and the rows of the nodes that stand for them.

    Instances of the types may have any type of their own.
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
    """Return the type nodes that hold here: inside one of the worlds, or in a world around it."""
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


def check_where(where: Mapping[str, Any]) -> Where:
    """Return conditions on metadata as they are compared.

    Raises:
        InvalidInputError: no mapping from keys to JSON values, or an empty one.
    """
    if not isinstance(where, Mapping) or not 0 < len(where) <= WHERE_KEYS_MAX:
        raise InvalidInputError(
            f"where: give 1 to {WHERE_KEYS_MAX} metadata keys with their values, not {where!r:.100}"
        )
    for key, value in where.items():
        if not isinstance(key, str) or not _is_plain(value):
            raise InvalidInputError(
                f"where: {key!r:.40} needs text, a number, true, false, null or a list of these"
            )
    return tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in where.items())


def _is_plain(value: Any, deep: bool = True) -> bool:
    if deep and isinstance(value, list | tuple):
        return all(_is_plain(one, deep=False) for one in value)
    return value is None or isinstance(value, str | bool | int | float)


def metadata_matches(metadata: Mapping[str, Any], where: Where) -> bool:
    """Return whether metadata has every given value; None means that the key is not there.

    A list in the metadata has each of its values; a list of wanted values means any of them.
    """
    for key, wanted in where:
        there = metadata.get(key)
        values = there if isinstance(there, list | tuple) else (there,)
        choices = wanted if isinstance(wanted, tuple) else (wanted,)
        if not any(_same(one, choice) for one in values for choice in choices):
            return False
    return True


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


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
    """Return the rows of those nodes that a filter keeps.

    Raises:
        ProviderError: it is no filter: a handler's rewrite of a recall may add filters alone.
    """
    if op.kind == "filter_type":
        types = widened_types(reader, query, moment, worlds, op.types)
        kept = {row for row, node in nodes.items() if node.type in types.names}
        return kept | types.instances(reader, moment, nodes.keys() - kept)
    if op.kind == "filter_time":
        start = None if op.start is None else from_micros(to_micros(op.start, "start"))
        end = None if op.end is None else from_micros(to_micros(op.end, "end"))
        return {row for row, node in nodes.items() if overlaps(node, start, end)}
    if op.kind == "where":
        return {row for row, node in nodes.items() if metadata_matches(node.metadata, op.where)}
    raise ProviderError(f"{op.kind}: a rewrite may add filter_type, filter_time and where here")

"""Ids as people give them: an Id, 32 bytes, 64 hex digits, or a unique prefix of at least 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.model.address import ID_BYTES, Id, parse_prefix
from worlddb.model.inputs import check_direction, check_words
from worlddb.model.records import Direction, Edge, Node
from worlddb.store.interface import Reader
from worlddb.view.visibility import Moment

AMBIGUOUS_SHOWN = 3


def whole_id(reader: Reader, given: bytes | str, table: str) -> Id:
    """Return the id that `given` stands for among nodes or edges (`table`).

    A whole id is returned as it is, whether or not anything has it.

    Raises:
        InvalidInputError: not an id, too short, or the start of several.
        NotFoundError: no id begins with this prefix.
    """
    if isinstance(given, bytes):
        return given if isinstance(given, Id) else Id(given)
    if not isinstance(given, str):
        raise InvalidInputError(f"{given!r} is not an id; give an Id or hex text")
    prefix = parse_prefix(given)
    if len(prefix) == 2 * ID_BYTES:
        return Id(prefix)
    found = reader.ids_like(table, prefix, AMBIGUOUS_SHOWN)
    if not found:
        what = table.removesuffix("s")
        raise NotFoundError(f"no {what} has an id that begins with {given!r}")
    if len(found) > 1:
        some = ", ".join(ident.short for ident in found)
        raise InvalidInputError(f"{given!r} is the start of several ids ({some}, …); give more")
    return found[0]


# Lookup: one node or edge by id or prefix, a world's children, the edges at a node.


CHUNK = 1_000


def find(reader: Reader, given: bytes | str, table: str) -> int:
    """Return the row of a node or an edge (`table`) from an id or a unique prefix.

    Raises:
        InvalidInputError: not an id, too short, or the start of several.
        NotFoundError: nothing has it.
    """
    ident = whole_id(reader, given, table)
    row = reader.node_row(ident) if table == "nodes" else reader.edge_row(ident)
    if row is None:
        raise NotFoundError(f"no {table.removesuffix('s')} has the id {ident}")
    return row


def find_node(reader: Reader, given: bytes | str, moment: Moment) -> tuple[int, Node]:
    """Return a node and its row as of a moment; what has ended is found, unless a valid time says.

    Raises:
        InvalidInputError: not an id.
        NotFoundError: no such node, or not at that moment.
    """
    row = find(reader, given, "nodes")
    node = reader.nodes([row], moment.known).get(row)
    if node is None:
        raise NotFoundError(
            f"node {whole_id(reader, given, 'nodes').short} was not known at that time"
        )
    if moment.valid is not None and not moment.holds(node):
        raise NotFoundError(f"node {node.id.short} was not valid at {moment.valid.isoformat()}")
    return row, node


def children(
    reader: Reader, given: bytes | str, moment: Moment, include_superseded: bool
) -> Iterator[Node]:
    """Yield a world's children in the order they were written."""
    row, _ = find_node(reader, given, moment._replace(valid=None))
    rows = reader.children(row, moment.known)
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        nodes = reader.nodes(chunk, moment.known)
        for child in chunk:
            if moment.shows(nodes[child], include_superseded):
                yield nodes[child]


def edges(
    reader: Reader,
    given: bytes | str,
    moment: Moment,
    *,
    direction: Direction,
    types: Iterable[str] | None,
    include_superseded: bool,
) -> list[Edge]:
    """Return the edges at a node, in the order they were written."""
    check_direction(direction)
    row, _ = find_node(reader, given, moment._replace(valid=None))
    chosen = None if types is None else check_words(types, "types")
    found = reader.edges_at([row], direction, chosen, moment.known)
    return [item.edge for item in found if moment.shows(item.edge, include_superseded)]

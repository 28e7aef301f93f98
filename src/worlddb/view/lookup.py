"""Lookup: single nodes and edges as of a moment, and who was accepted as the same.

Ids are given as an `Id`, 32 bytes, 64 hex digits, or a unique prefix of at least 4 digits. Rows are
the store's own numbers of nodes and edges.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.model.address import ID_BYTES, Id, parse_prefix
from worlddb.model.inputs import check_direction, check_words
from worlddb.model.records import (
    Conflict,
    Direction,
    Edge,
    Identity,
    Node,
    Proposal,
    ProposalStatus,
)
from worlddb.store.interface import Reader
from worlddb.store.rows import ConflictRow, ProposalRow
from worlddb.view.visibility import Moment

Worlds = bytes | str | Sequence[bytes | str]
"""One world or several, by id or prefix."""
AMBIGUOUS_SHOWN = 3
"""How many ids an error names for an ambiguous prefix: enough to see which digits are missing."""
CHILDREN_AT_ONCE = 1_000
"""How many children are read at once: a large world is listed without holding all of it."""


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


def find_worlds(reader: Reader, scope: Worlds) -> list[int]:
    """Return the rows of one or several worlds from their ids or prefixes.

    Raises:
        InvalidInputError: not an id, or no world at all.
        NotFoundError: there is no such world.
    """
    if not isinstance(scope, Iterable) or isinstance(scope, Mapping):
        raise InvalidInputError(f"scope: give the id of a world, or several, not {scope!r:.100}")
    given = [scope] if isinstance(scope, bytes | str) else list(scope)
    if not given:
        raise InvalidInputError("scope: give a world or several, or leave it out")
    return sorted({find(reader, one, "nodes") for one in given})


def find_node(reader: Reader, given: bytes | str, moment: Moment) -> tuple[int, Node]:
    """Return the row of a node, and the node as of a moment.

    A node that has ended is found, unless the moment names a valid time.

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
    reader: Reader, given: bytes | str, moment: Moment, include_ended: bool
) -> Iterator[Node]:
    """Yield a world's children in the order they were written."""
    row, _ = find_node(reader, given, moment._replace(valid=None))
    rows = reader.children(row, moment.known)
    for start in range(0, len(rows), CHILDREN_AT_ONCE):
        some = rows[start : start + CHILDREN_AT_ONCE]
        nodes = reader.nodes(some, moment.known)
        for child in some:
            if moment.shows(nodes[child], include_ended):
                yield nodes[child]


def edges(
    reader: Reader,
    given: bytes | str,
    moment: Moment,
    *,
    direction: Direction,
    types: Iterable[str] | None,
    include_ended: bool,
) -> list[Edge]:
    """Return the edges at a node, in the order they were written."""
    check_direction(direction)
    row, _ = find_node(reader, given, moment._replace(valid=None))
    chosen = None if types is None else check_words(types, "types")
    found = reader.edges_at([row], direction, chosen, moment.known)
    return [item.edge for item in found if moment.shows(item.edge, include_ended)]


def accepted_class(reader: Reader, rows: Iterable[int], moment: Moment) -> set[int]:
    """Return `rows` and everything that was accepted as the same as one of them, transitively."""
    seen = set(rows)
    frontier = set(seen)
    while frontier:
        found = reader.proposals("accepted", frontier, moment.known)
        frontier = {row for item in found for row in (item.low, item.high)} - seen
        seen |= frontier
    return seen


def proposals(reader: Reader, status: ProposalStatus | None, moment: Moment) -> list[Proposal]:
    """Return merge proposals in the order they were staged.

    Raises:
        InvalidInputError: no such status.
    """
    if status is not None and status not in get_args(ProposalStatus):
        statuses = ", ".join(get_args(ProposalStatus))
        raise InvalidInputError(f"status {status!r}: use one of {statuses}, or None for all")
    rows = reader.proposals(status, None, moment.known)
    staged = _edges_of(reader, rows)
    return [
        proposal_value(row, edge.id, edge.source, edge.target)
        for row in rows
        for edge in (staged[row.edge],)
    ]


def proposal_value(row: ProposalRow, edge: Id, left: Id, right: Id) -> Proposal:
    """Return a stored proposal as the public value; `edge` is the edge that staged it."""
    return Proposal(
        edge=edge,
        left=left,
        right=right,
        status=row.status,
        tier=row.tier,
        score=row.score,
        evidence=json.loads(row.evidence),
    )


def conflicts(reader: Reader, moment: Moment) -> list[Conflict]:
    """Return every conflict known at the moment, settled ones too."""
    return conflict_values(reader, reader.conflicts(None, moment.known))


def conflict_values(reader: Reader, rows: list[ConflictRow]) -> list[Conflict]:
    """Return stored conflicts as public values."""
    flagged = _edges_of(reader, rows)
    return [
        Conflict(
            edge=edge.id,
            left=edge.source,
            right=edge.target,
            reason=row.reason,
            settled=row.gone is not None,
        )
        for row in rows
        for edge in (flagged[row.edge],)
    ]


def _edges_of(reader: Reader, rows: Iterable[ProposalRow | ConflictRow]) -> dict[int, Edge]:
    """Return the edges of proposals or conflicts, by their rows."""
    return {item.row: item.edge for item in reader.edges(row.edge for row in rows)}


def export_identity(reader: Reader, row: int, moment: Moment) -> Identity:
    """Return the accepted class of a node with the union of its members' names and sources."""
    rows = accepted_class(reader, {row}, moment)
    nodes = [node for _, node in sorted(reader.nodes(rows, moment.known).items())]
    ids = {node.id for node in nodes}
    names = [name for node in nodes for name in (node.name, *node.aliases) if name]
    sources = [source for node in nodes for source in node.provenance]
    merges = proposals(reader, "accepted", moment)
    return Identity(
        ids=tuple(node.id for node in nodes),
        nodes=tuple(nodes),
        names=tuple(dict.fromkeys(names)),
        provenance=tuple(dict.fromkeys(sources)),
        merges=tuple(merge for merge in merges if merge.left in ids),
    )

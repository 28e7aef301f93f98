"""Identity as readers see it: accepted classes, proposals, conflicts, all as of a moment."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import get_args

from worlddb.errors import InvalidInputError
from worlddb.model.records import Conflict, Identity, Proposal, ProposalStatus
from worlddb.store.interface import Reader
from worlddb.store.rows import ConflictRow, EdgeRow
from worlddb.view.visibility import Moment


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
    """Return proposals in the order they were staged."""
    if status is not None and status not in get_args(ProposalStatus):
        known = ", ".join(get_args(ProposalStatus))
        raise InvalidInputError(f"status {status!r}: use one of {known}, or None for all")
    rows = reader.proposals(status, None, moment.known)
    edges = _edges(reader, (row.edge for row in rows))
    return [
        Proposal(
            edge=edges[row.edge].edge.id,
            left=edges[row.edge].edge.source,
            right=edges[row.edge].edge.target,
            status=row.status,
            tier=row.tier,
            score=row.score,
            evidence=json.loads(row.evidence),
        )
        for row in rows
    ]


def conflicts(reader: Reader, moment: Moment) -> list[Conflict]:
    """Return every conflict known at the moment, settled ones too."""
    return conflict_values(reader, reader.conflicts(None, moment.known))


def conflict_values(reader: Reader, rows: list[ConflictRow]) -> list[Conflict]:
    """Return rows as values."""
    edges = _edges(reader, (row.edge for row in rows))
    return [
        Conflict(
            edge=edges[row.edge].edge.id,
            left=edges[row.edge].edge.source,
            right=edges[row.edge].edge.target,
            reason=row.reason,
            settled=row.gone is not None,
        )
        for row in rows
    ]


def _edges(reader: Reader, rows: Iterable[int]) -> dict[int, EdgeRow]:
    return {item.row: item for item in reader.edges(rows)}


def export(reader: Reader, row: int, moment: Moment) -> Identity:
    """Return the accepted class of a node with the union of its members' names and sources."""
    rows = accepted_class(reader, {row}, moment)
    nodes = [node for _, node in sorted(reader.nodes(rows, moment.known).items())]
    ids = {node.id for node in nodes}
    names = [name for node in nodes for name in (node.name, *node.aliases) if name]
    sources = [source for node in nodes for source in node.provenance]
    return Identity(
        ids=tuple(node.id for node in nodes),
        nodes=tuple(nodes),
        names=tuple(dict.fromkeys(names)),
        provenance=tuple(dict.fromkeys(sources)),
        merges=tuple(
            merge for merge in proposals(reader, "accepted", moment) if {merge.left} <= ids
        ),
    )

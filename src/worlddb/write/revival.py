"""Revival: restores ended nodes as successors with the same text and time.

    rows ──plan_revivals(reader)──▶ Revival, … ──revive(tx)──▶ {old id: successor's id}

Validity only tightens, so an ended node is never reopened. Its successor has the same type, name,
content, beginning, notes and edges, and supersedes the old node from the old node's own beginning.
So every valid time shows one of the two, and known time keeps both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from worlddb.errors import ConflictError, NotFoundError
from worlddb.model.address import Id
from worlddb.model.inputs import SCOPE, Plain, to_micros
from worlddb.model.records import Edge, Node, NodeDraft, ProposalStatus
from worlddb.store.interface import Reader
from worlddb.store.rows import EdgeRow
from worlddb.write.node_rows import RESTORES
from worlddb.write.transaction import Transaction

STANDS_FOR = "stands_for"
"""Metadata key by which a fact names the longer text that its sentence is quoted from."""
MICROSECOND = timedelta(microseconds=1)
"""Microseconds between the creation times of two generations of a scope."""
GENERATIONS_MAX = 1_000  # generations of one scope; more mean an endless loop


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCopy:
    """An edge to write again; `status` is that of its merge proposal."""

    edge: Edge
    valid_to: datetime | None
    status: ProposalStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(Plain):
    """An ended node and the successor in its place; None in a dry run."""

    old: Id
    new: Id | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revival:
    """A node to restore, the end of its successor, and its edges."""

    node: Node
    until: datetime | None
    edges: tuple[EdgeCopy, ...]


def present_form(reader: Reader, row: int) -> int:
    """Return the row of the last successor of a node, which stands for it now."""
    while True:
        found = reader.edges_at([row], "in", ("supersedes",))
        newer = [item.source for item in found if item.edge.metadata.get(RESTORES) is True]
        if not newer:
            return row
        row = max(newer)


def plan_revivals(
    reader: Reader,
    ends: Mapping[int, datetime | None],
    *,
    edges_gone: Collection[int] = (),
    nodes_gone: Collection[int] = (),
) -> list[Revival]:
    """Return the revivals of nodes; `ends` maps the row of each to the end of its successor.

    Edges in `edges_gone`, and edges to nodes in `nodes_gone`, are not written again.
    """
    nodes = reader.nodes(ends)
    edges: dict[int, list[EdgeRow]] = {row: [] for row in ends}
    for item in reader.edges_at(sorted(ends), "both"):
        is_gone = item.row in edges_gone or not {item.source, item.target}.isdisjoint(nodes_gone)
        if not is_gone and item.edge.metadata.get(RESTORES) is not True:
            # An edge between two restored nodes is written once.
            edges[item.source if item.source in ends else item.target].append(item)
    return [
        Revival(
            node=nodes[row],
            until=until,
            edges=tuple(copies(reader, [*edges[row], *_quoted(reader, nodes[row], edges[row])])),
        )
        for row, until in sorted(ends.items())
    ]


def restored(reader: Reader, rows: Iterable[int], edges: Iterable[EdgeRow]) -> list[Revival]:
    """Return the revivals of nodes that were ended only by supersessions that do not count."""
    nodes = reader.nodes(rows)
    ends = {
        row: born_until(reader, row, node)
        for row, node in nodes.items()
        if ended_by_supersession(reader, row, node)
    }
    return plan_revivals(reader, ends, edges_gone={item.row for item in edges})


def ended_by_supersession(reader: Reader, row: int, node: Node) -> bool:
    """Return whether a supersession ended a node, and not a caller who retired it."""
    return any(edge.valid_from == node.valid_to for edge in _supersessions(reader, row))


def born_until(reader: Reader, row: int, node: Node) -> datetime | None:
    """Return the end of validity that a node was written with.

    A statement that was written late may end in its own commit; that is not how it was written.
    """
    born = reader.commit_at(to_micros(node.known_from, "known_from"))
    until = reader.nodes([row], born)[row].valid_to
    at_once = (it for it in _supersessions(reader, row) if it.known_from == node.known_from)
    return None if until in {edge.valid_from for edge in at_once} else until


def _supersessions(reader: Reader, row: int) -> list[Edge]:
    return [item.edge for item in reader.edges_at([row], "in", ("supersedes",))]


def _quoted(reader: Reader, node: Node, edges: Iterable[EdgeRow]) -> list[EdgeRow]:
    """Return the claims of facts that quote a sentence of a node."""
    facts = [item.source for item in edges if item.edge.type == "derived_from"]
    found = reader.edges_at(facts, "out", ("refers_to",)) if facts else []
    return [item for item in found if item.edge.metadata.get(STANDS_FOR) == str(node.id)]


def copies(
    reader: Reader, edges: Iterable[EdgeRow], known: int | None = None
) -> Iterator[EdgeCopy]:
    """Yield edges to write again, as of commit `known`."""
    for item in edges:
        status = None
        if item.edge.type == "same_as":
            found = reader.proposals(rows=[item.source], known=known)
            status = next((one.status for one in found if one.edge == item.row), None)
        yield EdgeCopy(edge=item.edge, valid_to=item.edge.valid_to, status=status)


def revive(
    tx: Transaction, revivals: Iterable[Revival], reason: Mapping[str, Any]
) -> tuple[dict[Id, Id], list[Id]]:
    """Write successors with their edges; return them by old id, and the edges.

    `reason` becomes metadata of the edge from a successor to its old node.
    """
    done: dict[Id, Id] = {}
    pending = list(revivals)
    while pending:
        # A world is written before the nodes inside it.
        waiting = {one.node.id for one in pending}
        batch = [one for one in pending if one.node.parent not in waiting] or pending
        for one in batch:
            done[one.node.id] = _successor(tx, one, done)
        pending = [one for one in pending if one.node.id not in done]
    written: list[Id] = []
    for one in revivals:
        node, successor = one.node, done[one.node.id]
        written += write_copies(tx, one.edges, done)
        if successor != node.id:
            said = {**reason, RESTORES: True}
            tx.write_edge(
                "supersedes", successor, node.id, valid_from=node.valid_from, metadata=said
            )
    return done, written


def write_copies(tx: Transaction, edges: Iterable[EdgeCopy], done: Mapping[Id, Id]) -> list[Id]:
    """Write edges again between the successors of their ends; return the new ones."""
    written: list[Id] = []
    for copy in edges:
        edge = copy.edge
        source, target = done.get(edge.source, edge.source), done.get(edge.target, edge.target)
        metadata = dict(edge.metadata)
        stands_for = metadata.get(STANDS_FOR)
        if isinstance(stands_for, str):
            with suppress(ValueError, TypeError):
                metadata[STANDS_FOR] = str(done.get(Id(stands_for), stands_for))
        made = tx.write_edge(
            edge.type,
            source,
            target,
            valid_from=edge.valid_from,
            valid_to=copy.valid_to,
            metadata=metadata or None,
        )
        written.append(made.id)
        if copy.status in ("accepted", "rejected"):
            # The pair may have been proposed and decided again; that decision stays.
            with suppress(ConflictError, NotFoundError):
                tx.decide_merge(made.id, copy.status)
    return written


def take_back(tx: Transaction, edges: Iterable[EdgeRow], facts: Iterable[Node]) -> list[Id]:
    """Delete edges, and retire nodes from their own beginning; return the deleted edges."""
    deleted: list[Id] = []
    for item in edges:
        with suppress(NotFoundError):  # The handler of another edge has deleted it.
            tx.delete_edge(item.edge.id)
            deleted.append(item.edge.id)
    for node in facts:
        tx.retire(node.id, at=node.valid_from)
    return deleted


def transfer(
    tx: Transaction, edges: Iterable[tuple[Id, EdgeRow]], done: Mapping[Id, Id]
) -> list[Id]:
    """Write edges to the successors of some nodes, instead of to the nodes; return the new ones."""
    return [
        tx.write_edge(
            item.edge.type,
            done.get(item.edge.source, item.edge.source),
            done[ident],
            valid_from=item.edge.valid_from,
            metadata=item.edge.metadata or None,
        ).id
        for ident, item in edges
    ]


def _successor(tx: Transaction, revival: Revival, done: Mapping[Id, Id]) -> Id:
    """Create the successor of a node; a scope that was started again is its own successor."""
    node = revival.node
    parent = None if node.parent is None else done.get(node.parent, node.parent)
    draft = NodeDraft(
        type=node.type,
        name=node.name,
        content=node.content,
        parent=parent,
        created_at=node.created_at,
        valid_from=node.valid_from,
        valid_to=revival.until,
        origins=node.origins,
    )
    if node.type == SCOPE:
        made = _live_scope(tx, draft, node.created_at)
        if not tx.is_new(made):
            return made
    else:
        (made,) = tx.create_nodes([draft], reuse=False)
    if node.aliases:
        tx.add_aliases(made, node.aliases)
    if node.provenance:
        tx.add_source(made, node.provenance)
    if node.metadata:
        tx.add_metadata(made, node.metadata)
    return made


def _live_scope(tx: Transaction, draft: NodeDraft, created_at: datetime) -> Id:
    """Return the live scope with a name; if there is none, create its next generation."""
    for _ in range(GENERATIONS_MAX):
        with suppress(ConflictError):  # It was erased.
            made = tx.create_node(
                type=SCOPE,
                name=draft.name,
                parent=draft.parent,
                created_at=created_at,
                valid_from=draft.valid_from,
                valid_to=draft.valid_to,
            )
            if tx.is_new(made.id) or made.valid_to is None:
                return made.id
        created_at += MICROSECOND
    raise ConflictError(f"scope {draft.name} was ended {GENERATIONS_MAX} times; look at its edges")

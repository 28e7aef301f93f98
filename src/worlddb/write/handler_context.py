"""Handler context: what an edge type's handler may read and do in the open transaction.

Merges are decided here, too: a handler stages a proposal, and `decide_merge` changes its status.
That is the only way to merge two nodes, or to undo a merge. No data is moved or rewritten: a
decision is a status with a history, and readers follow it.

A less trusted text may not end or change a more trusted one. The caller of a transaction has an
origin, and so has each node. `TrustGuard` compares the nodes with the caller; a transaction of the
user has no guard. The user's nodes may still rest on less trusted ones, so handlers always ask
`outranks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, RejectedError
from worlddb.model.address import Id
from worlddb.model.inputs import (
    Instant,
    check_direction,
    check_notes,
    encode_metadata,
    encode_text,
    premises_of,
)
from worlddb.model.records import (
    Direction,
    Edge,
    EdgeDraft,
    Node,
    NodeDraft,
    Proposal,
    ProposalStatus,
)
from worlddb.model.text_safety import FULL, NOTE, Origin, least_trusted, trust_level
from worlddb.ontology.edge_types import is_home
from worlddb.store.interface import Reader, Writer
from worlddb.store.rows import ROOT_ROW, ConflictRow, EdgeRow, ProposalRow
from worlddb.view.node_filters import TrustLevels
from worlddb.view.visibility import proposal_value
from worlddb.write.commit import Ledger
from worlddb.write.node_rows import create_node, refuse_erased

if TYPE_CHECKING:
    from worlddb.write.commit import Ledger
    from worlddb.write.reconcile import Reconciler

MEMBERSHIP = "contains"
NEXT_STATUSES: dict[ProposalStatus, tuple[ProposalStatus, ...]] = {
    "pending": ("accepted", "rejected"),
    "accepted": ("pending",),
    "rejected": (),
    "withdrawn": (),
}
"""The statuses that may follow each status. Undoing an accepted merge makes it pending."""
WAYS_OUT = {
    "accepted": "undo it first with undo_merge",
    "pending": "accept or reject it",
    "rejected": "write a new same_as edge with new evidence",
    "withdrawn": "write a new same_as edge",
}


class HandlerContext:
    """`ontology.edge_types.WriteContext` over the open transaction; see its docstrings.

    `edge` is the edge whose handler runs; None if the handler runs on a batch.
    """

    def __init__(self, ledger: Ledger, reconciler: Reconciler, edge: Edge | None) -> None:
        self._ledger = ledger
        self._reconciler = reconciler
        self._edge = edge

    @property
    def _writer(self) -> Writer:
        return self._ledger.writer

    def _row(self, node_id: Id) -> int:
        return self._ledger.place(node_id).row

    def _ends(self, edge: Edge) -> tuple[int, int]:
        """Return the rows of an edge's two ends, the lower one first."""
        left, right = self._row(edge.source), self._row(edge.target)
        return min(left, right), max(left, right)

    @property
    def now(self) -> datetime:
        return self._ledger.now

    # -- reading -----------------------------------------------------------------------------------

    def get(self, node_id: Id) -> Node:
        row = self._row(node_id)
        return self._writer.nodes([row])[row]

    def get_edge(self, edge_id: Id) -> Edge:
        return self._reconciler.find_edge(edge_id).edge

    def edges(
        self, node_id: Id, direction: Direction = "out", types: Iterable[str] | None = None
    ) -> list[Edge]:
        check_direction(direction)
        row = self._row(node_id)
        return [item.edge for item in self._writer.edges_at([row], direction, types)]

    def reaches(self, start: Id, goal: Id, types: Iterable[str]) -> bool:
        """Return whether `goal` can be reached from `start` along edges of `types`.

        Walks from both ends in turn, so a chain is cheap to write in either order; from the goal
        first, because nothing leads to a new node.
        """
        chosen, covers = list(types), self._writer.sweep.covers
        ahead, behind = {self._row(start)}, {self._row(goal)}
        seen_ahead, seen_behind = set(ahead), set(behind)
        while ahead and behind:
            if len(seen_ahead) < len(seen_behind):
                found = covers(ahead, chosen)
                ahead = {item.target for item in found} - seen_ahead
                seen_ahead |= ahead
                met = ahead & seen_behind
            else:
                found = covers(behind, chosen, "in")
                behind = {item.source for item in found} - seen_behind
                seen_behind |= behind
                met = behind & seen_ahead
            if met:
                return True
        return False

    def has_circle(self, starts: Iterable[Id], types: Iterable[str]) -> bool:
        chosen = list(types)
        frontier = {self._row(start) for start in starts}
        seen = set(frontier)
        below: dict[int, list[int]] = {}
        into: dict[int, int] = {}
        while frontier:
            for item in self._writer.edges_at(frontier, "out", chosen):
                below.setdefault(item.source, []).append(item.target)
                into[item.target] = into.get(item.target, 0) + 1
            frontier = {row for row in into if row not in seen}
            seen |= frontier
        free = [row for row in seen if not into.get(row)]
        while free:
            row = free.pop()
            seen.discard(row)
            for target in below.get(row, ()):
                into[target] -= 1
                if not into[target]:
                    free.append(target)
        return bool(seen)

    def encloses(self, world: Id, node_id: Id) -> bool:
        wanted = self._row(world)
        seen: set[int] = set()
        frontier = {self._row(node_id)}
        while frontier:
            if wanted in frontier:
                return True
            seen |= frontier
            above = {row for row in self._writer.parents(frontier).values() if row is not None}
            above |= {item.source for item in self._writer.edges_at(frontier, "in", ("contains",))}
            frontier = above - seen
        return False

    def is_placed(self, node_id: Id) -> bool:
        return self._ledger.place(node_id).world != ROOT_ROW

    def has_moved(self, node_id: Id) -> bool:
        return self.is_placed(node_id) and self._writer.was_moved(self._row(node_id))

    def resting_on(self, edge_id: Id) -> list[Edge]:
        rows = self._writer.resting_on(self._reconciler.find_edge(edge_id).row)
        return [item.edge for item in self._writer.edges(rows) if item.edge.known_to is None]

    # -- writing -----------------------------------------------------------------------------------

    def close_validity(self, target: Id, at: Instant) -> None:
        self._ledger.close_validity(target, at, by=self._edge)
        if target in self._ledger.places:
            return  # It was a node.
        edge = self.get_edge(target)
        if edge.type == MEMBERSHIP and edge.valid_to is not None and self.has_moved(edge.target):
            # A parent has no time, so the node was a member of that world while the edge was valid.
            holders = self.edges(edge.target, "in", (MEMBERSHIP,))
            if self.get(edge.target).parent == edge.source and not any(
                it.source == edge.source and is_home(it, self.now) for it in holders
            ):
                self.place(edge.target, None)

    def close_world(self, target: Id, at: Instant) -> None:
        self._ledger.close_world(target, at, by=self._edge)

    def create_node(self, **fields: Any) -> Node:
        return create_node(self._ledger, NodeDraft(**fields))

    def add_source(self, node_id: Id, source: str | Sequence[str]) -> None:
        """Add sources to a node.

        Raises:
            InvalidInputError, NotFoundError: a bad source, or no such node.
        """
        texts = check_notes(source, "source", self._ledger.limits)
        row = self._row(node_id)
        if texts:
            refuse_erased(self._ledger, node_id, row)
        self._ledger.add_notes(node_id, row, "source", texts, fresh=False)

    def add_origins(self, node_id: Id, origins: Sequence[str]) -> None:
        """Add origins to a node.

        Raises:
            RejectedError: the node is more trusted than the caller.
        """
        if self._ledger.guard is not None:
            self._ledger.guard.check(node_id)
        self._ledger.add_notes(node_id, self._row(node_id), NOTE, tuple(origins), fresh=False)

    def outranks(self, target: Id, source: Id) -> bool:
        return outranks(self._ledger, target, source)

    def edge_outranks(self, old: Edge, new: Edge) -> bool:
        return edge_outranks(self._ledger, old, new)

    def write_edge(
        self,
        type: str,
        source: Id,
        target: Id,
        *,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Edge:
        draft = EdgeDraft(
            source=source,
            target=target,
            valid_from=valid_from,
            valid_to=valid_to,
            metadata=metadata,
        )
        return self._reconciler.write(type, draft)

    def delete_edge(self, edge_id: Id) -> None:
        self._reconciler.delete(edge_id)

    def place(self, node_id: Id, world: Id | None) -> None:
        row = ROOT_ROW if world is None else self._row(world)
        place = self._ledger.place(node_id)
        if place.row == ROOT_ROW:
            raise InvalidInputError("the root world cannot be placed in another world")
        if place.world == row:
            return
        if world is not None and self.encloses(node_id, world):
            raise InvalidInputError("a world cannot be placed inside itself")
        self._ledger.move(node_id, row)
        self._ledger.change("place", node_id, world=str(Id(self._writer.world(row).id)))

    def stage_merge(
        self,
        edge: Edge,
        *,
        tier: str = "given",
        score: float = 1.0,
        evidence: Mapping[str, Any] | None = None,
    ) -> Proposal:
        """Stage a merge proposal; return the pair's pending or accepted one if there is one.

        An edge stages one proposal. A rejected pair is not proposed again on the same evidence; new
        evidence comes with a new edge.

        Raises:
            InvalidInputError: the tier is not text, or the score not a finite number.
        """
        limits = self._ledger.limits
        text = encode_metadata(evidence, limits)
        encode_text(tier, "tier", limits.note_bytes_max)
        if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
            raise InvalidInputError(f"score: give a finite number, not {score!r}")
        edge_row = self._reconciler.row_of(edge)
        low, high = self._ends(edge)
        for row in reversed(self._writer.proposals(rows=[low])):
            if (row.low, row.high) != (low, high):
                continue
            if row.status == "withdrawn" and row.edge != edge_row:
                continue
            same = row.edge == edge_row or (row.tier, row.evidence) == (tier, text)
            if row.status != "rejected" or same:
                staged_by = self._writer.edges([row.edge])[0].edge.id
                return proposal_value(row, staged_by, edge.source, edge.target)
        row = ProposalRow(edge_row, low, high, "pending", tier, float(score), text)
        self._writer.put_proposal(row)
        self._ledger.change("propose", edge.id, tier=tier, score=score, evidence=text)
        return proposal_value(row, edge.id, edge.source, edge.target)

    def drop_merge(self, edge: Edge) -> bool:
        """Withdraw the proposal that this edge staged, if it is pending or accepted."""
        edge_row = self._reconciler.find_edge(edge.id).row
        for row in self._writer.proposals(rows=self._ends(edge)):
            if row.edge == edge_row and row.status in ("pending", "accepted"):
                self._writer.set_status(edge_row, "withdrawn")
                self._ledger.change("decide", edge.id, status="withdrawn")
                return True
        return False

    def flag_conflict(self, edge: Edge, reason: str = "") -> None:
        """Record that the two ends of `edge` cannot both be right; once per edge.

        Raises:
            InvalidInputError: the reason is not text.
        """
        encode_text(reason, "reason", self._ledger.limits.note_bytes_max)
        edge_row, found = self._conflict(edge)
        if found is None:
            self._writer.put_conflict(ConflictRow(edge_row, *self._ends(edge), reason, None))
            self._ledger.change("flag", edge.id, reason=reason)

    def settle_conflict(self, edge: Edge) -> None:
        """Record that the conflict of `edge` is settled; does nothing if there is none."""
        edge_row, found = self._conflict(edge)
        if found is not None and found.gone is None:
            self._writer.settle_conflict(edge_row)
            self._ledger.change("settle", edge.id)

    def _conflict(self, edge: Edge) -> tuple[int, ConflictRow | None]:
        """Return the row of an edge, and the conflict that it recorded."""
        edge_row = self._reconciler.row_of(edge)
        if edge_row > self._ledger.head.edges and not self._is_flagged(edge):
            return edge_row, None  # It was written by this transaction.
        near = self._writer.conflicts(rows=[self._row(edge.source)])
        return edge_row, next((row for row in near if row.edge == edge_row), None)

    def _is_flagged(self, edge: Edge) -> bool:
        """Return whether this transaction has recorded a conflict of an edge."""
        return any(it.kind == "flag" and it.id == edge.id for it in self._ledger.changes)

    def refuse(self, reason: str) -> NoReturn:
        raise RejectedError(reason, edge_type=self._edge.type if self._edge else None)


def decide_merge(
    ledger: Ledger,
    reconciler: Reconciler,
    edge_id: bytes | str,
    status: ProposalStatus,
    reopens: bool = False,
) -> Proposal:
    """Give the proposal of a `same_as` edge a new status.

    The same decision again changes nothing. With `reopens`, a rejected proposal may become pending.

    Raises:
        NotFoundError: neither the edge nor its pair of nodes has a proposal.
        ConflictError: it was decided differently before; the message says what to do.
        InvalidInputError: no such status.
    """
    if not isinstance(status, str) or status not in NEXT_STATUSES:
        raise InvalidInputError(f"status {status!r}: use one of {', '.join(NEXT_STATUSES)}")
    found = reconciler.find_edge(edge_id)
    row = proposal_of(ledger.writer, found)
    if row is None:
        raise NotFoundError(
            f"edge {found.edge.id.short} has no merge proposal; db.proposals() lists them"
        )
    if status == "pending" and row.status == "pending":
        raise ConflictError("this merge was not accepted; there is nothing to undo")
    staged_by = ledger.writer.edges([row.edge])[0].edge.id
    if row.status != status:
        if ledger.guard is not None:
            ledger.guard.check(found.edge.source)
            ledger.guard.check(found.edge.target)
        is_reopened = reopens and (row.status, status) == ("rejected", "pending")
        if status not in NEXT_STATUSES[row.status] and not is_reopened:
            raise ConflictError(f"this merge is {row.status} already; {WAYS_OUT[row.status]}")
        ledger.writer.set_status(row.edge, status)
        ledger.change("decide", staged_by, status=status)
    decided = row._replace(status=status)
    return proposal_value(decided, staged_by, found.edge.source, found.edge.target)


def proposal_of(reader: Reader, found: EdgeRow) -> ProposalRow | None:
    """Return the proposal that an edge staged; for a `same_as`, else the newest of its pair."""
    pair = (min(found.source, found.target), max(found.source, found.target))
    rows = [row for row in reader.proposals(rows=[found.source]) if (row.low, row.high) == pair]
    for row in rows:
        if row.edge == found.row:
            return row
    # An edge of another type between the two nodes is not about their identity.
    return rows[-1] if rows and found.edge.type == "same_as" else None


class TrustGuard:
    """Limits one transaction to what the origin of its caller allows."""

    def __init__(self, ledger: Ledger, origin: Origin) -> None:
        self.origin = origin
        self._ledger = ledger
        self._levels = TrustLevels(ledger.writer)

    def level(self, world: Id | None) -> int:
        """Return the trust level of the caller in a world."""
        return trust_level((self.origin,), self._levels.settings(world))

    def allows(self, ident: bytes | str) -> bool:
        """Return whether the caller may end or change a node."""
        row = self._ledger.place(ident).row
        if row > self._ledger.head.nodes:
            return True  # A node of this transaction.
        node = self._ledger.writer.nodes([row])[row]
        return self._levels.of(node) <= self.level(node.parent)

    def check(self, ident: bytes | str) -> None:
        """Refuse to end or change a node that is more trusted than the caller.

        Raises:
            RejectedError: the node is more trusted.
        """
        if not self.allows(ident):
            raise RejectedError(
                f"{self._ledger.resolve(ident).short} is more trusted than what comes from "
                f"{self.origin!r}, which may not end or change it; write a memory instead"
            )


def outranks(ledger: Ledger, target: Id, source: Id) -> bool:
    """Return whether node `target` is more trusted than `source`, which would end it.

    A new summary may replace the one before it in the same world.
    """
    pair = target, source, ledger.note_row
    if ledger.equals == pair:
        return False
    old, new = _nodes(ledger, target, source)
    if old.origins == new.origins and ledger.guard is None:
        ledger.equals = pair
        return False
    if old.type == new.type == "Summary" and old.parent == new.parent:
        return False
    levels = TrustLevels(ledger.writer)
    # The settings of the old node's scope apply to both nodes.
    own = trust_level(new.origins, levels.settings(old.parent))
    if ledger.guard is not None:
        own = min(own, ledger.guard.level(old.parent))
    return levels.of(old) > own


def yields(ledger: Ledger, ident: Id, origins: Sequence[str]) -> bool:
    """Return whether a node is at most as trusted as `origins`; a name needs full trust."""
    (node,), levels = _nodes(ledger, ident), TrustLevels(ledger.writer)
    own = trust_level(origins, levels.settings(node.parent))
    return own >= (levels.of(node) if node.content else FULL)


def edge_outranks(ledger: Ledger, old: Edge, new: Edge) -> bool:
    """Return whether edge `old` is more trusted than `new`, which would end it."""
    (source,), levels = _nodes(ledger, old.source), TrustLevels(ledger.writer)
    world = source.parent
    own = levels.of_edge(new, world)
    if ledger.guard is not None:
        own = min(own, ledger.guard.level(world))
    return own < FULL and levels.of_edge(old, world) > own


def with_origin(ledger: Ledger, draft: EdgeDraft) -> EdgeDraft:
    """Return an edge that is at most as trusted as its premises and as the caller.

    An edge from a node of this transaction needs no origin, because its source has one.
    """
    encode_metadata(draft.metadata, ledger.limits)
    said, writer = dict(draft.metadata or {}), ledger.writer
    origins = [str(said[NOTE])] if NOTE in said else []
    for premise in premises_of(encode_metadata(said, ledger.limits)):
        row = writer.edge_row(premise)
        found = {} if row is None else writer.edges([row])[0].edge.metadata
        origins += [str(found[NOTE])] if NOTE in found else []
    if ledger.guard is not None and ledger.place(draft.source).row <= ledger.head.nodes:
        origins.append(ledger.guard.origin)
    return replace(draft, metadata={**said, NOTE: least_trusted(origins)}) if origins else draft


def _nodes(ledger: Ledger, *ids: Id) -> list[Node]:
    """Return some nodes, read together."""
    ledger.place_all([ident for ident in ids if ident not in ledger.places])
    rows = [ledger.place(ident).row for ident in ids]
    nodes = ledger.writer.nodes(rows)
    return [nodes[row] for row in rows]

"""Context: the transaction as a handler sees it, and all that a handler may do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from worlddb.errors import InvalidInputError, NotFoundError, RejectedError
from worlddb.model.address import Id
from worlddb.model.inputs import (
    Instant,
    check_direction,
    check_notes,
    encode_metadata,
    encode_text,
    to_micros,
)
from worlddb.model.records import Direction, Edge, EdgeDraft, Node, NodeDraft, Proposal
from worlddb.store.interface import Writer
from worlddb.store.rows import ROOT_ROW, ConflictRow, ProposalRow
from worlddb.write.commit import Ledger
from worlddb.write.node_rows import create_nodes, refuse_erased

if TYPE_CHECKING:
    from worlddb.write.reconcile import Reconciler


class Context:
    """What `ontology.protocol.WriteContext` promises, over the open transaction."""

    def __init__(self, ledger: Ledger, reconciler: Reconciler, edge: Edge | None) -> None:
        self._ledger = ledger
        self._reconciler = reconciler
        self._edge = edge

    @property
    def _writer(self) -> Writer:
        return self._ledger.writer

    @property
    def now(self) -> datetime:
        """The commit's time."""
        return self._ledger.now

    # -- reading -----------------------------------------------------------------------------------

    def get(self, node_id: Id) -> Node:
        """Return a node."""
        row = self._ledger.place(node_id)[0]
        return self._writer.nodes([row])[row]

    def get_edge(self, edge_id: Id) -> Edge:
        """Return an edge, deleted or not."""
        return self._reconciler.find_edge(edge_id).edge

    def edges(
        self, node_id: Id, direction: Direction = "out", types: Iterable[str] | None = None
    ) -> list[Edge]:
        """Return the edges at a node that are not deleted."""
        check_direction(direction)
        row = self._ledger.place(node_id)[0]
        return [item.edge for item in self._writer.edges_at([row], direction, types)]

    def reaches(self, start: Id, goal: Id, types: Iterable[str]) -> bool:
        """Return whether `goal` can be reached from `start` along edges of `types`.

        Walks from both ends in turn: a chain is cheap to write in either order.
        """
        chosen = list(types)
        ahead, behind = {self._ledger.place(start)[0]}, {self._ledger.place(goal)[0]}
        seen_ahead, seen_behind = set(ahead), set(behind)
        while ahead and behind:
            if len(seen_ahead) <= len(seen_behind):
                found = self._writer.edges_at(ahead, "out", chosen)
                ahead = {item.target for item in found} - seen_ahead
                seen_ahead |= ahead
                met = ahead & seen_behind
            else:
                found = self._writer.edges_at(behind, "in", chosen)
                behind = {item.source for item in found} - seen_behind
                seen_behind |= behind
                met = behind & seen_ahead
            if met:
                return True
        return False

    def has_circle(self, starts: Iterable[Id], types: Iterable[str]) -> bool:
        """Return whether edges of `types` run in a circle anywhere downstream of `starts`."""
        chosen = list(types)
        frontier = {self._ledger.place(start)[0] for start in starts}
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
        """Return whether `world` is `node_id` or holds it, as parent or by membership."""
        wanted = self._ledger.place(world)[0]
        seen: set[int] = set()
        frontier = {self._ledger.place(node_id)[0]}
        while frontier:
            if wanted in frontier:
                return True
            seen |= frontier
            above = {row for row in self._writer.parents(frontier).values() if row is not None}
            above |= {item.source for item in self._writer.edges_at(frontier, "in", ("contains",))}
            frontier = above - seen
        return False

    def is_placed(self, node_id: Id) -> bool:
        """Return whether a node lives in another world than the root."""
        return self._ledger.place(node_id)[1] != ROOT_ROW

    def has_moved(self, node_id: Id) -> bool:
        """Return whether a node was born in the root world and lives elsewhere now."""
        return self.is_placed(node_id) and self._writer.was_moved(self._ledger.place(node_id)[0])

    def resting_on(self, edge_id: Id) -> list[Edge]:
        """Return the inferred edges, not deleted, that name an edge among their premises."""
        rows = self._writer.resting_on(self._reconciler.find_edge(edge_id).row)
        return [item.edge for item in self._writer.edges(rows) if item.edge.known_to is None]

    # -- writing -----------------------------------------------------------------------------------

    def close_validity(self, target: Id, at: Instant) -> None:
        """End a node's or an edge's validity at `at`, if that is earlier than it ends now."""
        close_validity(self._ledger, target, at, by=self._edge)

    def create_node(
        self,
        *,
        type: str,
        name: str = "",
        content: str = "",
        parent: Id | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        created_at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        aliases: Sequence[str] = (),
    ) -> Node:
        """Create a node in the same transaction."""
        draft = NodeDraft(
            type=type,
            name=name,
            content=content,
            parent=parent,
            valid_from=valid_from,
            valid_to=valid_to,
            created_at=created_at,
            source=source,
            aliases=aliases,
        )
        return self.get(create_nodes(self._ledger, [draft])[0])

    def add_source(self, node_id: Id, source: str | Sequence[str]) -> None:
        """Record further places a node comes from.

        Raises:
            InvalidInputError, NotFoundError: a bad source, or no such node.
        """
        texts = check_notes(source, "source", self._ledger.limits)
        row = self._ledger.place(node_id)[0]
        if texts:
            refuse_erased(self._ledger, node_id, row)
        self._ledger.add_notes(node_id, row, "source", texts, fresh=False)

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
        """Write a further edge, through its own handler."""
        draft = EdgeDraft(
            source=source,
            target=target,
            valid_from=valid_from,
            valid_to=valid_to,
            metadata=metadata,
        )
        return self._reconciler.write(type, draft)

    def delete_edge(self, edge_id: Id) -> None:
        """Close an edge on the known axis, through its own handler."""
        self._reconciler.delete(edge_id)

    def place(self, node_id: Id, world: Id | None) -> None:
        """Move a node into `world`, or back to the root world."""
        row = ROOT_ROW if world is None else self._ledger.place(world)[0]
        if self._ledger.place(node_id)[0] == ROOT_ROW:
            raise InvalidInputError("the root world cannot be placed in another world")
        if self._ledger.place(node_id)[1] == row:
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
        """Stage a merge proposal; an open or accepted one of the same pair stands for it.

        An edge stages one proposal, and a pair that was rejected is not proposed again on the same
        evidence: new evidence comes with a new edge.

        Raises:
            InvalidInputError: the tier is no text, or the score no finite number.
        """
        limits = self._ledger.limits
        text = encode_metadata(evidence, limits)
        encode_text(tier, "tier", limits.note_bytes_max)
        if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
            raise InvalidInputError(f"score: give a finite number, not {score!r}")
        number = self._reconciler.find_edge(edge.id).row
        left, right = self._ledger.place(edge.source)[0], self._ledger.place(edge.target)[0]
        low, high = min(left, right), max(left, right)
        for row in reversed(self._writer.proposals(rows=[low])):
            if (row.low, row.high) != (low, high):
                continue
            if row.status == "withdrawn" and row.edge != number:
                continue
            same = row.edge == number or (row.tier, row.evidence) == (tier, text)
            if row.status != "rejected" or same:
                return self._proposal(row, edge)
        row = ProposalRow(number, low, high, "pending", tier, float(score), text)
        self._writer.put_proposal(row)
        self._ledger.change("propose", edge.id, tier=tier, score=score, evidence=text)
        return self._proposal(row, edge)

    def _proposal(self, row: ProposalRow, edge: Edge) -> Proposal:
        return Proposal(
            edge=self._writer.edges([row.edge])[0].edge.id,
            left=edge.source,
            right=edge.target,
            status=row.status,
            tier=row.tier,
            score=row.score,
            evidence=json.loads(row.evidence),
        )

    def drop_merge(self, edge: Edge) -> None:
        """Withdraw the proposal that this edge staged, whether pending or accepted."""
        number = self._reconciler.find_edge(edge.id).row
        low, high = self._ledger.place(edge.source)[0], self._ledger.place(edge.target)[0]
        for row in self._writer.proposals(rows=[low, high]):
            if row.edge == number and row.status in ("pending", "accepted"):
                self._writer.set_status(number, "withdrawn")
                self._ledger.change("decide", edge.id, status="withdrawn")

    def flag_conflict(self, edge: Edge, reason: str = "") -> None:
        """Record that the two ends of `edge` cannot both be right; once per edge.

        Raises:
            InvalidInputError: the reason is no text.
        """
        encode_text(reason, "reason", self._ledger.limits.note_bytes_max)
        if self._conflict(edge) is not None:
            return
        number = self._reconciler.find_edge(edge.id).row
        left, right = self._ledger.place(edge.source)[0], self._ledger.place(edge.target)[0]
        low, high = min(left, right), max(left, right)
        self._writer.put_conflict(ConflictRow(number, low, high, reason, None))
        self._ledger.change("flag", edge.id, reason=reason)

    def settle_conflict(self, edge: Edge) -> None:
        """Record that the conflict of `edge` is settled; does nothing if there is none."""
        found = self._conflict(edge)
        if found is not None and found.gone is None:
            self._writer.settle_conflict(found.edge)
            self._ledger.change("settle", edge.id)

    def _conflict(self, edge: Edge) -> ConflictRow | None:
        """Return the conflict that an edge was flagged with."""
        number = self._reconciler.find_edge(edge.id).row
        near = self._writer.conflicts(rows=[self._ledger.place(edge.source)[0]])
        return next((row for row in near if row.edge == number), None)

    def refuse(self, reason: str) -> NoReturn:
        """Give up the whole transaction."""
        raise RejectedError(reason, edge_type=self._edge.type if self._edge else None)


def close_validity(ledger: Ledger, target: bytes, at: Instant, by: Edge | None) -> None:
    """Tighten `valid_to` of a node or an edge; a later or equal end changes nothing.

    Raises:
        NotFoundError: nothing has that id.
        InvalidInputError: `at` is no aware time.
    """
    moment = to_micros(at, "valid_to")
    writer = ledger.writer
    try:
        kind, row = "node", ledger.place(target)[0]
        ends = writer.nodes([row])[row].valid_to
    except NotFoundError:
        number = writer.edge_row(target)
        if number is None:
            raise NotFoundError(f"no node or edge has the id {Id(target)}") from None
        kind, row = "edge", number
        ends = writer.edges([row])[0].edge.valid_to
    if ends is not None and to_micros(ends, "valid_to") <= moment:
        return
    writer.set_valid_to(kind, row, moment)
    detail = {"by": str(by.id)} if by else {}
    ledger.change(f"close_{kind}", target, valid_to=moment, **detail)

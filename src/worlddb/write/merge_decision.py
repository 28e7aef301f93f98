"""Merge decisions: the only way two nodes become one identity, and the way back.

Nothing is moved or rewritten: a decision is a status with a history, and readers follow it.
"""

from __future__ import annotations

import json

from worlddb.errors import ConflictError, InvalidInputError, NotFoundError
from worlddb.model.records import Proposal, ProposalStatus
from worlddb.store.rows import ProposalRow
from worlddb.write.commit import Ledger
from worlddb.write.reconcile import Reconciler

# From → to. Reopening is how an accepted merge is undone.
ALLOWED: dict[ProposalStatus, tuple[ProposalStatus, ...]] = {
    "pending": ("accepted", "rejected"),
    "accepted": ("pending",),
    "rejected": (),
    "withdrawn": (),
}
WAY_OUT = {
    "accepted": "undo it first with undo_merge",
    "pending": "accept or reject it",
    "rejected": "write a new same_as edge with new evidence",
    "withdrawn": "write a new same_as edge",
}


def decide(
    ledger: Ledger, reconciler: Reconciler, edge_id: bytes | str, status: ProposalStatus
) -> Proposal:
    """Give the proposal of a `same_as` edge a new status.

    Deciding the same again changes nothing.

    Raises:
        NotFoundError: the edge staged no proposal, nor has its pair one.
        ConflictError: it was decided otherwise; the message says how to go on.
        InvalidInputError: no such status.
    """
    if not isinstance(status, str) or status not in ALLOWED:
        raise InvalidInputError(f"status {status!r}: use one of {', '.join(ALLOWED)}")
    found = reconciler.find_edge(edge_id)
    row = _proposal_of(ledger, found.row, found.source, found.target)
    if row is None:
        raise NotFoundError(f"edge {found.edge.id.short} has no merge proposal")
    if status == "pending" and row.status == "pending":
        raise ConflictError("this merge was not accepted; there is nothing to undo")
    if row.status != status:
        if status not in ALLOWED[row.status]:
            raise ConflictError(f"this merge is {row.status} already; {WAY_OUT[row.status]}")
        ledger.writer.set_status(row.edge, status)
        staged = ledger.writer.edges([row.edge])[0].edge
        ledger.change("decide", staged.id, status=status)
    return Proposal(
        edge=ledger.writer.edges([row.edge])[0].edge.id,
        left=found.edge.source,
        right=found.edge.target,
        status=status,
        tier=row.tier,
        score=row.score,
        evidence=json.loads(row.evidence),
    )


def _proposal_of(ledger: Ledger, edge: int, source: int, target: int) -> ProposalRow | None:
    """Return the proposal an edge staged, or the newest one of its pair."""
    pair = (min(source, target), max(source, target))
    is_claim = ledger.writer.edges([edge])[0].edge.type == "same_as"
    rows = [row for row in ledger.writer.proposals(rows=[source]) if (row.low, row.high) == pair]
    own = [row for row in rows if row.edge == edge]
    # Another edge between the two says nothing about who they are.
    chosen = own or (rows[-1:] if is_claim else [])
    return chosen[0] if chosen else None

"""Trust guard: what is less trusted may not end or change what is more trusted.

Two things have an origin: the caller of a transaction, and each node. A transaction of the user has
no guard; its nodes may still rest on less trusted ones, so handlers ask `outranks` in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from worlddb.errors import RejectedError
from worlddb.model.address import Id
from worlddb.model.inputs import encode_metadata, premises_of
from worlddb.model.origin import FULL, NOTE, Origin, least, level_of
from worlddb.model.records import Edge, EdgeDraft, Node
from worlddb.view.trust_levels import TrustLevels

if TYPE_CHECKING:
    from worlddb.write.commit import Ledger


class TrustGuard:
    """Holds one transaction to the trust of its caller's origin."""

    def __init__(self, ledger: Ledger, origin: Origin) -> None:
        self.origin = origin
        self._ledger = ledger
        self._levels = TrustLevels(ledger.writer)

    def level(self, world: Id | None) -> int:
        """Return how far the caller is trusted in a world."""
        return level_of((self.origin,), self._levels.settings(world))

    def allows(self, ident: bytes | str) -> bool:
        """Return whether the caller may end or change a node."""
        row = self._ledger.place(ident).row
        if row > self._ledger.head.nodes:
            return True  # The transaction's own.
        node = self._ledger.writer.nodes([row])[row]
        return self._levels.of(node) <= self.level(node.parent)

    def check(self, ident: bytes | str) -> None:
        """Refuse to end or change a node that is more trusted than the caller.

        Raises:
            RejectedError: it is.
        """
        if not self.allows(ident):
            raise RejectedError(
                f"{self._ledger.resolve(ident).short} is more trusted than what comes from "
                f"{self.origin!r}, which may not end or change it; write a memory instead"
            )


def outranks(ledger: Ledger, target: Id, source: Id) -> bool:
    """Return whether a node is more trusted than another one that would end it.

    A summary that is made anew may replace the one before it in the same world.
    """
    old, new = _node(ledger, target), _node(ledger, source)
    if old.origins == new.origins and ledger.guard is None:
        return False
    if old.type == new.type == "Summary" and old.parent == new.parent:
        return False
    levels = TrustLevels(ledger.writer)
    # The settings of the old node's scope judge both: whoever wrote there decides whom to trust.
    own = level_of(new.origins, levels.settings(old.parent))
    if ledger.guard is not None:
        own = min(own, ledger.guard.level(old.parent))
    return levels.of(old) > own


def yields(ledger: Ledger, ident: Id, origins: Sequence[str]) -> bool:
    """Return whether a node is no more trusted than some origins; a name, only than full trust."""
    node, levels = _node(ledger, ident), TrustLevels(ledger.writer)
    own = level_of(origins, levels.settings(node.parent))
    return own >= (levels.of(node) if node.content else FULL)


def edge_outranks(ledger: Ledger, old: Edge, new: Edge) -> bool:
    """Return whether a stated edge is more trusted than another one that would end it."""
    levels, world = TrustLevels(ledger.writer), _node(ledger, old.source).parent
    own = levels.of_edge(new, world)
    if ledger.guard is not None:
        own = min(own, ledger.guard.level(world))
    return own < FULL and levels.of_edge(old, world) > own


def with_origin(ledger: Ledger, draft: EdgeDraft) -> EdgeDraft:
    """Return an edge that is trusted no more than its premises, and than who adds it to a node.

    An edge from a node of the same transaction needs no origin: its source has one.
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
    return replace(draft, metadata={**said, NOTE: least(origins)}) if origins else draft


def _node(ledger: Ledger, ident: Id) -> Node:
    row = ledger.place(ident).row
    return ledger.writer.nodes([row])[row]

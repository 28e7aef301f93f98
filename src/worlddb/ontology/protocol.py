"""What an edge handler is, and what it may do to the transaction it runs in.

A handler is any object with these members; nothing is inherited. It acts through the context
alone: no clock, no network, no randomness, so equal transactions have equal effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, Protocol, runtime_checkable

from worlddb.model.address import Id
from worlddb.model.inputs import Instant
from worlddb.model.records import Direction, Edge, Node, Proposal, Query


class WriteContext(Protocol):
    """The open transaction as a handler sees it: its reads include its own writes."""

    @property
    def now(self) -> datetime:
        """The commit's time."""

    def get(self, node_id: Id) -> Node:
        """Return a node."""

    def get_edge(self, edge_id: Id) -> Edge:
        """Return an edge, deleted or not."""

    def edges(
        self, node_id: Id, direction: Direction = "out", types: Iterable[str] | None = None
    ) -> list[Edge]:
        """Return the edges at a node that are not deleted, ended or not."""

    def reaches(self, start: Id, goal: Id, types: Iterable[str]) -> bool:
        """Return whether `goal` can be reached from `start` along edges of `types`."""

    def has_circle(self, starts: Iterable[Id], types: Iterable[str]) -> bool:
        """Return whether edges of `types` run in a circle anywhere downstream of `starts`."""

    def encloses(self, world: Id, node_id: Id) -> bool:
        """Return whether `world` is `node_id` or holds it, as parent or by membership."""

    def close_validity(self, target: Id, at: Instant) -> None:
        """End a node's or an edge's validity at `at`, if that is earlier than it ends now."""

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
        """Create a node in the same transaction; the same words as `tx.create_node`."""

    def add_source(self, node_id: Id, source: str | Sequence[str]) -> None:
        """Record further places a node comes from."""

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

    def delete_edge(self, edge_id: Id) -> None:
        """Close an edge on the known axis, through its own handler."""

    def place(self, node_id: Id, world: Id | None) -> None:
        """Move a node into `world`, or back to the root world."""

    def is_placed(self, node_id: Id) -> bool:
        """Return whether a node lives in a world of its own choosing, not just in the root."""

    def has_moved(self, node_id: Id) -> bool:
        """Return whether a node was born in the root world and lives elsewhere now."""

    def resting_on(self, edge_id: Id) -> list[Edge]:
        """Return the inferred edges, not deleted, that name an edge among their premises."""

    def stage_merge(
        self,
        edge: Edge,
        *,
        tier: str = "given",
        score: float = 1.0,
        evidence: Mapping[str, Any] | None = None,
    ) -> Proposal:
        """Stage a merge proposal for the ends of `edge`; one per unordered pair."""

    def drop_merge(self, edge: Edge) -> None:
        """Withdraw the proposal of an edge, whether pending or accepted."""

    def flag_conflict(self, edge: Edge, reason: str = "") -> None:
        """Record that the two ends of `edge` cannot both be right."""

    def settle_conflict(self, edge: Edge) -> None:
        """Record that the conflict of `edge` is settled."""

    def refuse(self, reason: str) -> NoReturn:
        """Give up the whole transaction; the caller gets `RejectedError` with `reason`."""


@runtime_checkable
class EdgeHandler(Protocol):
    """The program of an edge type.

    Optional members: `version` (text, recorded in the store, "1" without it) and
    `on_insert_many(ctx, edges)`, which bulk writes call once per batch instead of `on_insert`.
    """

    type: str
    pierces: bool

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Decide what a new edge means for the others; the edge is already written."""

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Decide what the end of an edge means; the edge is already closed."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Return the query as this edge type wants it read."""


class BatchHandler(Protocol):
    """A handler that takes a whole batch at once."""

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Decide for a batch of new edges of one type."""

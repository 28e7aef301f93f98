"""Edge types: the protocol of their handlers, and the eleven built-in types.

A handler is any object with the members of `EdgeHandler`; nothing is inherited. It acts only
through its `WriteContext`: no clock, no network, no randomness, so equal transactions have equal
effects.

    structure   contains, refers_to        what is inside a world, and references that leave it
    revision    supersedes, contradicts    later facts against earlier ones
    identity    same_as                    two nodes that may be one: staged, never merged silently
    inference   implies, derived_from      premises; an inferred edge ends with its premise
    taxonomy    instance_of, subtype_of    types as nodes: a type includes its subtypes
    order       causes, precedes           order in time
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn, Protocol, runtime_checkable

from worlddb.model.address import Id
from worlddb.model.inputs import Instant
from worlddb.model.records import Direction, Edge, Node, Proposal, Query


class WriteContext(Protocol):
    """The open transaction as a handler sees it; its reads include the transaction's own writes."""

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
        """Return the edges at a node that are not deleted, also ended ones."""

    def reaches(self, start: Id, goal: Id, types: Iterable[str]) -> bool:
        """Return whether `goal` can be reached from `start` along edges of `types`."""

    def has_circle(self, starts: Iterable[Id], types: Iterable[str]) -> bool:
        """Return whether edges of `types` form a cycle anywhere downstream of `starts`."""

    def encloses(self, world: Id, node_id: Id) -> bool:
        """Return whether `world` is `node_id` or contains it, as parent or by membership."""

    def close_validity(self, target: Id, at: Instant) -> None:
        """End the validity of a node or an edge at `at`, if that is earlier than it ends now."""

    def close_world(self, target: Id, at: Instant) -> None:
        """End the validity of a node and of everything that lives inside it."""

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
        """Create a node in the same transaction; arguments as for `tx.create_node`."""

    def add_source(self, node_id: Id, source: str | Sequence[str]) -> None:
        """Add sources to a node."""

    def add_origins(self, node_id: Id, origins: Sequence[str]) -> None:
        """Add origins to a node; this can only lower its trust."""

    def outranks(self, target: Id, source: Id) -> bool:
        """Return whether node `target` is more trusted than `source`, which would end it."""

    def edge_outranks(self, old: Edge, new: Edge) -> bool:
        """Return whether edge `old` is more trusted than `new`, which would end it."""

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
        """Write another edge, through its own handler."""

    def delete_edge(self, edge_id: Id) -> None:
        """Close an edge on the known axis, through its own handler."""

    def place(self, node_id: Id, world: Id | None) -> None:
        """Move a node into `world`, or back to the root world."""

    def is_placed(self, node_id: Id) -> bool:
        """Return whether a node was given a world to live in, and is not just in the root."""

    def has_moved(self, node_id: Id) -> bool:
        """Return whether a node was born in the root world and lives in another world now."""

    def resting_on(self, edge_id: Id) -> list[Edge]:
        """Return the inferred edges, not deleted, that have an edge as a premise."""

    def stage_merge(
        self,
        edge: Edge,
        *,
        tier: str = "given",
        score: float = 1.0,
        evidence: Mapping[str, Any] | None = None,
    ) -> Proposal:
        """Stage a merge proposal for the ends of `edge`; one per unordered pair."""

    def drop_merge(self, edge: Edge) -> bool:
        """Withdraw an edge's proposal, pending or accepted; return whether there was one."""

    def flag_conflict(self, edge: Edge, reason: str = "") -> None:
        """Record that the two ends of `edge` cannot both be right."""

    def settle_conflict(self, edge: Edge) -> None:
        """Record that the conflict of `edge` is settled."""

    def refuse(self, reason: str) -> NoReturn:
        """Roll the whole transaction back; the caller gets `RejectedError` with `reason`."""


@runtime_checkable
class EdgeHandler(Protocol):
    """The program of an edge type.

    Optional members: `version` (text, recorded in the store, default "1"), `on_insert_many(ctx,
    edges)`, which bulk writes call once per batch instead of `on_insert`, and `is_inert` (True: a
    new edge has no effects, so no handler is called for a batch).
    """

    type: str
    pierces: bool

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Apply the effects of a new edge; the edge is already written."""

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Apply the effects of deleting an edge; the edge is already closed."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Return the query with the changes that this edge type asks for."""


# -- shared by several types -----------------------------------------------------------------------


def refuse_cycle(ctx: WriteContext, edge: Edge) -> None:
    """Refuse an edge that would close a cycle of its own type."""
    if edge.source == edge.target or ctx.reaches(edge.target, edge.source, (edge.type,)):
        ctx.refuse("this edge would close a circle")


def refuse_circles(ctx: WriteContext, edges: Sequence[Edge]) -> None:
    """Refuse a batch that closes a cycle; downstream edges are read once for the batch."""
    if ctx.has_circle({edge.source for edge in edges}, {edge.type for edge in edges}):
        ctx.refuse("one of these edges would close a circle")


def retire_inferred(ctx: WriteContext, edge: Edge) -> None:
    """Delete the inferred edges that have `edge` as a premise.

    Edges that rest on a deleted edge are deleted by its own handler, so an edge of this list may be
    gone before the loop reaches it.
    """
    for other in ctx.resting_on(edge.id):
        if ctx.get_edge(other.id).known_to is None:
            ctx.delete_edge(other.id)


class Acyclic:
    """Base of types that must not form cycles and whose edges can be premises."""

    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse an edge that closes a cycle."""
        refuse_cycle(ctx, edge)

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Refuse a batch that closes a cycle."""
        refuse_circles(ctx, edges)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Delete the inferred edges that rest on this one."""
        retire_inferred(ctx, edge)


class _Ordered(Acyclic):
    """An acyclic relation in which the source may not begin after the target."""

    type: str

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse cycles, and an effect that begins before its cause."""
        super().on_insert(ctx, edge)
        self._check_times(ctx, [edge])

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Do the same for a batch."""
        super().on_insert_many(ctx, edges)
        self._check_times(ctx, edges)

    def _check_times(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        begins: dict[Id, datetime] = {}
        for edge in edges:
            for end in (edge.source, edge.target):
                if end not in begins:
                    begins[end] = ctx.get(end).valid_from
            if begins[edge.target] < begins[edge.source]:
                ctx.refuse("the target begins before the source; check both valid_from times")

    def on_query_rewrite(self, query: Query) -> Query:
        """Order a traversal along this type by time."""
        followed = any(op.kind == "traverse" and self.type in op.types for op in query.ops)
        return replace(query, orders_by_time=True) if followed else query


class Causes(_Ordered):
    """`cause --causes--> effect`."""

    type = "causes"


class Precedes(_Ordered):
    """`earlier --precedes--> later`."""

    type = "precedes"


# -- structure -----------------------------------------------------------------------------------


def is_home(edge: Edge, now: datetime) -> bool:
    """Return whether a `contains` edge can set the parent of a node: valid now, without an end."""
    return edge.valid_to is None and edge.valid_from <= now


class Contains:
    """`world --contains--> node`: membership; the first one also sets the parent world."""

    type = "contains"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse a cycle; give a node without a parent its parent.

        A parent has no time. So an edge that has ended, will end, or begins later is a membership
        for that time, and the node keeps its parent.
        """
        if ctx.encloses(edge.target, edge.source):
            ctx.refuse("a world cannot contain itself, directly or through others")
        if is_home(edge, ctx.now) and not ctx.is_placed(edge.target):
            ctx.place(edge.target, edge.source)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """End the membership; a node whose parent came from this edge goes back to the root."""
        if ctx.get(edge.target).parent != edge.source or not ctx.has_moved(edge.target):
            return
        holders = ctx.edges(edge.target, "in", (self.type,))
        if not any(it.source == edge.source and is_home(it, ctx.now) for it in holders):
            ctx.place(edge.target, None)

    def on_query_rewrite(self, query: Query) -> Query:
        """Read worlds with their members."""
        return replace(query, widens_to_members=True)


class RefersTo:
    """`node --refers_to--> node`: the one default type whose traversal may leave a world."""

    type = "refers_to"
    pierces = True
    is_inert = True

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Do nothing: a reference has no effects."""

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Do nothing: references have no effects."""

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Do nothing: deleting a reference has no effects."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Let traversals of this type leave the world."""
        return replace(query, pierces=query.pierces | {self.type})


# -- revision ------------------------------------------------------------------------------------


LESS_TRUSTED = "less trusted than what it would end"
"""Reason of a conflict that was recorded in place of a refused supersession."""


class Supersedes:
    """`new --supersedes--> old`: the old claim ends where the edge begins."""

    type = "supersedes"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Close the validity of the old node and of everything inside it; refuse cycles.

        A node that is less trusted ends nothing; a `contradicts` edge is written instead.
        """
        if edge.source == edge.target:
            ctx.refuse("a node cannot supersede itself")
        if ctx.reaches(edge.target, edge.source, (self.type,)):
            ctx.refuse("the old node already supersedes the new one")
        if ctx.outranks(edge.target, edge.source):
            ctx.delete_edge(edge.id)
            ctx.write_edge(
                "contradicts", edge.source, edge.target, metadata={"reason": LESS_TRUSTED}
            )
            return
        # Closed, not deleted: a reader at an earlier known time still sees it as it was.
        ctx.close_world(edge.target, at=edge.valid_from)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Do nothing: validity never reopens."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Hide ended nodes, unless the caller asked for them or named a valid time."""
        return replace(query, hides_ended=not query.include_superseded)


class Contradicts:
    """`a --contradicts--> b`: both stay, and readers see the conflict."""

    type = "contradicts"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Record the conflict."""
        if edge.source == edge.target:
            ctx.refuse("a node cannot contradict itself")
        ctx.flag_conflict(edge, str(edge.metadata.get("reason", "")))

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Mark the conflict as settled."""
        ctx.settle_conflict(edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """Add the open conflicts to results."""
        return replace(query, shows_conflicts=True)


# -- identity ------------------------------------------------------------------------------------


class SameAs:
    """`a --same_as--> b`: a proposal to be accepted or rejected."""

    type = "same_as"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Stage one pending proposal for the unordered pair."""
        if edge.source == edge.target:
            ctx.refuse("a node is already the same as itself")
        self._stage(ctx, edge)

    def _stage(self, ctx: WriteContext, edge: Edge) -> None:
        evidence = dict(edge.metadata)
        tier = str(evidence.pop("tier", "given"))
        score = evidence.pop("score", 1.0)
        if isinstance(score, bool) or not isinstance(score, int | float) or abs(score) > 1:
            ctx.refuse(f"the score must be a number from -1 to 1, not {score!r:.40}")
        ctx.stage_merge(edge, tier=tier, score=score, evidence=evidence)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Withdraw a pending proposal, split an accepted one.

        If the pair has another edge that is not deleted, that edge's own proposal is staged.
        """
        if not ctx.drop_merge(edge):
            return
        for other in ctx.edges(edge.source, "both", (self.type,)):
            if {other.source, other.target} == {edge.source, edge.target}:
                self._stage(ctx, other)
                return

    def on_query_rewrite(self, query: Query) -> Query:
        """Let seeds and hops act on all nodes accepted as the same."""
        return replace(query, follows_classes=True)


# -- inference -----------------------------------------------------------------------------------


SUMMARY = "Summary"
LEFT_OUT = "left_out"
"""Metadata key of a `derived_from` edge to a detail that the summary does not mention."""


def _add_provenance(ctx: WriteContext, edges: Sequence[Edge]) -> None:
    """Give a derived node the sources and origins of its details, so its trust is no higher.

    The sources of a summary are not passed on: they name its summarizer and its world.
    """
    added: set[tuple[Id, str]] = set()
    for edge in edges:
        detail = ctx.get(edge.target)
        if detail.origins and not edge.metadata.get(LEFT_OUT):
            ctx.add_origins(edge.source, detail.origins)
        for source in detail.provenance if detail.type != SUMMARY else ():
            if (edge.source, source) not in added:
                ctx.add_source(edge.source, source)
                added.add((edge.source, source))


class Implies(Acyclic):
    """`a --implies--> b`: the consolidator infers from it."""

    type = "implies"

    def on_query_rewrite(self, query: Query) -> Query:
        """Return the query unchanged."""
        return query


class DerivedFrom(Acyclic):
    """`summary --derived_from--> detail`: a derivation, which passes on sources."""

    type = "derived_from"

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse an edge that closes a cycle; add the target's sources to the source."""
        super().on_insert(ctx, edge)
        _add_provenance(ctx, [edge])

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Do the same for a batch."""
        super().on_insert_many(ctx, edges)
        _add_provenance(ctx, edges)

    def on_query_rewrite(self, query: Query) -> Query:
        """Replace details by summaries if the caller prefers summaries."""
        if not query.prefer_summaries:
            return query
        return replace(query, summary_edges=query.summary_edges | {self.type})


# -- taxonomy ------------------------------------------------------------------------------------


class InstanceOf:
    """`thing --instance_of--> type node`."""

    type = "instance_of"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse a node that would be its own type."""
        if edge.source == edge.target:
            ctx.refuse("a node cannot be an instance of itself")

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Delete the inferred edges that rest on this one."""
        retire_inferred(ctx, edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """Let `filter_type` include instances."""
        return replace(query, type_edges=query.type_edges | {self.type})


class SubtypeOf(Acyclic):
    """`type node --subtype_of--> wider type node`."""

    type = "subtype_of"

    def on_query_rewrite(self, query: Query) -> Query:
        """Let `filter_type` include subtypes."""
        return replace(query, type_edges=query.type_edges | {self.type})


def default_handlers() -> tuple[EdgeHandler, ...]:
    """Return the eleven built-in edge types."""
    return (
        Contains(),
        RefersTo(),
        Supersedes(),
        SameAs(),
        Contradicts(),
        Implies(),
        DerivedFrom(),
        InstanceOf(),
        SubtypeOf(),
        Causes(),
        Precedes(),
    )

"""causes and precedes: order in time. And the two rules that every acyclic type shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from worlddb.model.address import Id
from worlddb.model.records import Edge, Query
from worlddb.ontology.protocol import WriteContext


def refuse_cycle(ctx: WriteContext, edge: Edge) -> None:
    """Refuse an edge that would close a circle of its own type."""
    if edge.source == edge.target or ctx.reaches(edge.target, edge.source, (edge.type,)):
        ctx.refuse("this edge would close a circle")


def refuse_circles(ctx: WriteContext, edges: Sequence[Edge]) -> None:
    """Refuse a batch that closes a circle; one look at what lies downstream serves all of it."""
    if ctx.has_circle({edge.source for edge in edges}, {edge.type for edge in edges}):
        ctx.refuse("one of these edges would close a circle")


def retire_inferred(ctx: WriteContext, edge: Edge) -> None:
    """Delete the inferred edges that name `edge` among their premises.

    What rests on a retired edge follows through that edge's own handler, so by the time the loop
    comes to an edge it may be gone already.
    """
    for other in ctx.resting_on(edge.id):
        if ctx.get_edge(other.id).known_to is None:
            ctx.delete_edge(other.id)


class Acyclic:
    """What every relation has that must not run in circles and that inferences rest on."""

    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse an edge that closes a circle."""
        refuse_cycle(ctx, edge)

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Refuse a batch that closes a circle."""
        refuse_circles(ctx, edges)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Retire the inferred edges that rest on this one."""
        retire_inferred(ctx, edge)


class _Ordered(Acyclic):
    """An acyclic relation in which the source may not begin after the target."""

    type: str

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse cycles, and an effect that is valid before its cause."""
        super().on_insert(ctx, edge)
        self._check_times(ctx, [edge])

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """The same for a batch."""
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

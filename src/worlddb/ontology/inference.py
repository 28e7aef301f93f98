"""implies and derived_from: what rests on what. A derivation falls with its premise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from worlddb.model.query import Query
from worlddb.model.values import Edge
from worlddb.ontology.order import refuse_circles, refuse_cycle, retire_inferred
from worlddb.ontology.protocol import WriteContext


class Implies:
    """`a --implies--> b`: kept for the consolidator."""

    type = "implies"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse circular reasoning."""
        refuse_cycle(ctx, edge)

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """The same for a batch."""
        refuse_circles(ctx, edges)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Retire the inferred edges that rest on this one."""
        retire_inferred(ctx, edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """An implication does not change how a question is read."""
        return query


class DerivedFrom:
    """`summary --derived_from--> detail`: where a node comes from."""

    type = "derived_from"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse cycles; the edge itself is the provenance."""
        refuse_cycle(ctx, edge)

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """The same for a batch."""
        refuse_circles(ctx, edges)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Retire the inferred edges that rest on this one."""
        retire_inferred(ctx, edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """Let summaries stand for their details when the caller prefers them."""
        if not query.prefer_summaries:
            return query
        return replace(query, summary_edges=query.summary_edges | {self.type})

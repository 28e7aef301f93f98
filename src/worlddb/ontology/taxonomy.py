"""instance_of and subtype_of: types as nodes, so a question for a type finds its subtypes."""

from __future__ import annotations

from dataclasses import replace

from worlddb.model.records import Edge, Query
from worlddb.ontology.order import Acyclic, retire_inferred
from worlddb.ontology.protocol import WriteContext


class InstanceOf:
    """`thing --instance_of--> type node`."""

    type = "instance_of"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse a thing that is its own type."""
        if edge.source == edge.target:
            ctx.refuse("a node cannot be an instance of itself")

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Retire the inferred edges that rest on this one."""
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

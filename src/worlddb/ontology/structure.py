"""contains and refers_to: what is inside a world, and what it points to outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from worlddb.model.records import Edge, Query
from worlddb.ontology.protocol import WriteContext


class Contains:
    """`world --contains--> node`: membership; the first one is where the node lives."""

    type = "contains"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse a cycle; give a node that was made without a parent its parent."""
        if ctx.encloses(edge.target, edge.source):
            ctx.refuse("a world cannot contain itself, directly or through others")
        if not ctx.is_placed(edge.target):
            ctx.place(edge.target, edge.source)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """End the membership; a node that lived there through this edge goes back to the root."""
        if ctx.get(edge.target).parent != edge.source or not ctx.has_moved(edge.target):
            return
        holders = ctx.edges(edge.target, "in", (self.type,))
        if not any(other.source == edge.source for other in holders):
            ctx.place(edge.target, None)

    def on_query_rewrite(self, query: Query) -> Query:
        """Let a world be read with its members."""
        return replace(query, widens_to_members=True)


class RefersTo:
    """`node --refers_to--> node`: the one default type whose traversal may leave a world."""

    type = "refers_to"
    pierces = True

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Nothing follows from a reference."""

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Nothing follows from many."""

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Nothing follows from its end."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Let traversals of this type cross the world's border."""
        return replace(query, pierces=query.pierces | {self.type})

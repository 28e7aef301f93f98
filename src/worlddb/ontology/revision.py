"""supersedes and contradicts: how later facts meet earlier ones."""

from __future__ import annotations

from dataclasses import replace

from worlddb.model.records import Edge, Query
from worlddb.ontology.protocol import WriteContext


class Supersedes:
    """`new --supersedes--> old`: the old claim ends where the edge begins."""

    type = "supersedes"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Close the old node's validity; refuse self and cycles."""
        if edge.source == edge.target:
            ctx.refuse("a node cannot supersede itself")
        if ctx.reaches(edge.target, edge.source, (self.type,)):
            ctx.refuse("the old node already supersedes the new one")
        # Closed, not deleted: a reader at an earlier known time still sees it as it was.
        ctx.close_validity(edge.target, at=edge.valid_from)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Leave the validity closed: it only ever tightens."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Hide what has ended, unless the caller asked for it or named a valid time."""
        return replace(query, hides_closed=not query.include_superseded)


class Contradicts:
    """`a --contradicts--> b`: both stay, and readers are told."""

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
        """Let results carry their conflicts."""
        return replace(query, shows_conflicts=True)

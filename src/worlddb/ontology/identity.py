"""same_as: two nodes that may be one. Staged, never merged in silence."""

from __future__ import annotations

from dataclasses import replace

from worlddb.model.records import Edge, Query
from worlddb.ontology.protocol import WriteContext


class SameAs:
    """`a --same_as--> b`: a proposal that somebody accepts or rejects."""

    type = "same_as"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Stage one pending proposal for the unordered pair."""
        if edge.source == edge.target:
            ctx.refuse("a node is already the same as itself")
        evidence = dict(edge.metadata)
        tier = str(evidence.pop("tier", "given"))
        score = evidence.pop("score", 1.0)
        if isinstance(score, bool) or not isinstance(score, int | float) or abs(score) > 1:
            ctx.refuse(f"the score must be a number from -1 to 1, not {score!r:.40}")
        ctx.stage_merge(edge, tier=tier, score=score, evidence=evidence)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Withdraw a pending proposal, split an accepted one."""
        ctx.drop_merge(edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """Let seeds and hops act on the accepted class."""
        return replace(query, follows_classes=True)

"""implies and derived_from: what rests on what. A derivation falls with its premise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from worlddb.model.address import Id
from worlddb.model.records import Edge, Query
from worlddb.ontology.order import Acyclic
from worlddb.ontology.protocol import WriteContext

SUMMARY = "Summary"


def _add_provenance(ctx: WriteContext, edges: Sequence[Edge]) -> None:
    """Let what was derived come from where its details come from.

    The sources of a summary are left out: they say who made it, and for what.
    """
    added: set[tuple[Id, str]] = set()
    for edge in edges:
        detail = ctx.get(edge.target)
        for source in detail.provenance if detail.type != SUMMARY else ():
            if (edge.source, source) not in added:
                ctx.add_source(edge.source, source)
                added.add((edge.source, source))


class Implies(Acyclic):
    """`a --implies--> b`: kept for the consolidator."""

    type = "implies"

    def on_query_rewrite(self, query: Query) -> Query:
        """An implication does not change how a question is read."""
        return query


class DerivedFrom(Acyclic):
    """`summary --derived_from--> detail`: where a node comes from, and with it its sources."""

    type = "derived_from"

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse an edge that closes a circle; add the target's sources to the source's."""
        super().on_insert(ctx, edge)
        _add_provenance(ctx, [edge])

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """The same for a batch."""
        super().on_insert_many(ctx, edges)
        _add_provenance(ctx, edges)

    def on_query_rewrite(self, query: Query) -> Query:
        """Let summaries stand for their details when the caller prefers them."""
        if not query.prefer_summaries:
            return query
        return replace(query, summary_edges=query.summary_edges | {self.type})

"""implies and derived_from: what rests on what. A derivation falls with its premise."""

from __future__ import annotations

from dataclasses import replace

from worlddb.model.query import Query
from worlddb.ontology.order import Acyclic


class Implies(Acyclic):
    """`a --implies--> b`: kept for the consolidator."""

    type = "implies"

    def on_query_rewrite(self, query: Query) -> Query:
        """An implication does not change how a question is read."""
        return query


class DerivedFrom(Acyclic):
    """`summary --derived_from--> detail`: where a node comes from; the edge is the provenance."""

    type = "derived_from"

    def on_query_rewrite(self, query: Query) -> Query:
        """Let summaries stand for their details when the caller prefers them."""
        if not query.prefer_summaries:
            return query
        return replace(query, summary_edges=query.summary_edges | {self.type})

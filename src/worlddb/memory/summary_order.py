"""Summary order: summaries before details, each in place of the details it was derived from."""

from __future__ import annotations

from dataclasses import replace

from worlddb.query.summary_view import SUMMARY
from worlddb.recall.hits import Hit, Recall, tokens_in
from worlddb.view.stale_summaries import stale_summaries
from worlddb.view.visibility import View


def summaries_first(found: Recall, view: View, max_tokens: int | None) -> Recall:
    """Return an answer with summaries first.

    A hit that a present summary was derived from gives its place to that summary; what no summary
    stands for follows. A summary that lacks what was said since is left out until it is made anew.
    """
    reader, moment = view.reader, view.moment
    rows = {hit.id: row for hit in found if (row := reader.node_row(hit.id)) is not None}
    above: dict[int, set[int]] = {}
    for item in reader.edges_at(sorted(rows.values()), "in", ("derived_from",), moment.known):
        above.setdefault(item.target, set()).add(item.source)
    seen = view.keep({row for held in above.values() for row in held})
    nodes = reader.nodes(seen, moment.known)
    stale = stale_summaries(reader, nodes, moment)
    present = {row for row, node in nodes.items() if node.type == SUMMARY} - stale
    first: dict[int, Hit] = {}
    rest: list[Hit] = []
    for hit in found:
        row = rows.get(hit.id, 0)
        summaries = above.get(row, set()) & present
        if hit.node.type == SUMMARY:
            first.setdefault(row, hit)
        elif summaries:
            best = max(summaries)
            node = nodes[best]
            told = replace(hit, node=node, outdated=(), conflicts=(), tokens=tokens_in(node))
            first.setdefault(best, told)
        else:
            rest.append(hit)
    return replace(found, hits=tuple(_fitting([*first.values(), *rest], max_tokens)))


def _fitting(hits: list[Hit], max_tokens: int | None) -> list[Hit]:
    """Return the hits that together have at most so many tokens."""
    if max_tokens is None:
        return hits
    kept: list[Hit] = []
    for hit in hits:
        if sum(one.tokens for one in kept) + hit.tokens <= max_tokens:
            kept.append(hit)
    return kept

"""World hits: a session, a topic or a person as a hit of its own, when the whole is what matches.

A node that is only a name leads to answers and is none. But a question may be about the whole: its
composed vector, or the mean of what is inside (a name like "chat 86ee" says nothing), is then
nearer to the question than the vector of anything inside. Such a world is put right before the best
of what it holds. The hit brings the summary of the world along, if it has one that still holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from worlddb.index.held_world import HeldWorld, VectorRows
from worlddb.recall.hits import Ranking
from worlddb.view.stale_summaries import SUMMARY
from worlddb.view.visibility import MEMBERSHIP, View

WORLDS_MAX = 2
"""Worlds among the hits of one recall: each takes the place of a text, and the rest is inside."""
INSIDE_MIN = 2  # A world of one text says no more than the text.
NEVER_HITS = frozenset({"Scope", "Date", "Key"})
"""Types that hold or mark other nodes, and that nobody asks for."""


def with_worlds(
    ranking: Ranking,
    interior: HeldWorld,
    view: View,
    matrix: NDArray[np.float32],
    vector: NDArray[np.float32],
    k: int,
) -> Ranking:
    """Return a ranking with the worlds that match better than anything inside them."""
    first = list(ranking.order[:k])
    inside = _inside(interior, view, [ranking.rows[at] for at in first])
    if not inside:
        return ranking
    better = []
    for row, members in inside.items():
        places = np.array([interior.place[one] for one in (row, *members)], dtype=np.intp)
        vectors = VectorRows(matrix, places)
        whole, *parts = vectors.of(vector).tolist()
        mean = vectors.mean(range(1, len(places)))
        length = float(np.linalg.norm(mean))
        near = max(whole, float(mean @ vector) / length if length else 0.0)
        if near > max(0.0, *parts):
            better.append((-near, interior.ids[places[0]], row))
    for _, _, row in sorted(better)[:WORLDS_MAX]:
        ranking = _with_world(ranking, row, inside[row])
    return ranking


def _inside(interior: HeldWorld, view: View, rows: Sequence[int]) -> dict[int, list[int]]:
    """Return what is inside the worlds that hold some rows; only worlds that are only a name."""
    parents = view.reader.parents(rows, view.moment.known)
    holders = {up for up in parents.values() if up in interior.place}
    for item in view.reader.edges_at(rows, "in", MEMBERSHIP, view.moment.known):
        if view.moment.holds(item.edge) and item.source in interior.place:
            holders.add(item.source)
    places = {row: interior.place[row] for row in holders}
    named = [
        row
        for row, at in places.items()
        if interior.doors[at] and interior.types[at] not in NEVER_HITS
    ]
    seen = view.keep_time_of(named)
    found: dict[int, list[int]] = {row: [] for row in named if row in seen}
    if not found:
        return {}
    live = interior.seen(view.moment, ended=view.include_ended) & interior.are_answers()
    every = np.frombuffer(interior.parents, dtype=np.int64)
    for row in found:
        held = np.flatnonzero((every == row) & live).tolist()
        found[row] = [interior.rows[at] for at in held if interior.types[at] != SUMMARY]
    for item in view.reader.edges_at(sorted(found), "out", MEMBERSHIP, view.moment.known):
        at = interior.place.get(item.target)
        if at is not None and live[at] and view.moment.holds(item.edge):
            if item.target not in found[item.source]:
                found[item.source].append(item.target)
    return {row: members for row, members in found.items() if len(members) >= INSIDE_MIN}


def _with_world(ranking: Ranking, row: int, inside: Iterable[int]) -> Ranking:
    """Return a ranking with a world before the first of what it holds, and with its score."""
    held = set(inside)
    order = list(ranking.order)
    at = next((at for at, one in enumerate(order) if ranking.rows[one] in held), len(order))
    best = order[at] if at < len(order) else order[-1]
    new = len(ranking.rows)
    order.insert(at, new)
    return replace(
        ranking,
        order=order,
        rows=[*ranking.rows, row],
        scores={**ranking.scores, new: ranking.scores.get(best, 0.0)},
        parts={part: np.append(values, values[best]) for part, values in ranking.parts.items()},
    )

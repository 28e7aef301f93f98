"""World hits: a session, a topic or a person as a hit of its own, when the whole is what matches.

A node that is only a name leads to answers and is none. But a question may be about the whole: its
composed vector, or the mean of what is inside, is then
nearer to the question than the vector of anything inside. Such a world is put right before the best
of what it holds. The hit brings the summary of the world along, if it has one that still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.index.held_world import HeldWorld, VectorRows
from worlddb.index.vectors import Vectors
from worlddb.recall.hits import Ranking
from worlddb.store.rows import ROOT_ROW
from worlddb.view.stale_summaries import SUMMARY, world_summaries
from worlddb.view.visibility import MEMBERSHIP, View, is_name_only

WORLDS_MAX = 2
"""Worlds among the hits of one recall: each takes the place of a text, and the rest is inside."""
MEMBERS_MAX = 1_000
"""Nodes inside a world that is read from the store: a larger one is too much to be one hit."""
INSIDE_MIN = 2  # A world of one text says no more than the text.
NEVER_HITS = frozenset({"Scope", "Date", "Key"})
"""Types that hold or mark other nodes, and that nobody asks for."""


class WorldMembers(NamedTuple):
    """What is inside the worlds that hold the first hits, and how vectors of rows are read.

    Only worlds that are only a name: others are hits by themselves.
    """

    inside: Mapping[int, Sequence[int]]
    vectors: Callable[[list[int]], NDArray[np.float32]]


def with_worlds(
    ranking: Ranking, worlds: WorldMembers, vector: NDArray[np.float32], view: View
) -> Ranking:
    """Return a ranking with the worlds that match better than anything inside them.

    A name like "chat 86ee" says nothing: by the mean of what is inside, only a world with a summary
    to tell is a hit.
    """
    if not worlds.inside:
        return ranking
    nodes = view.reader.nodes(worlds.inside, view.moment.known)
    told = world_summaries(view.reader, nodes, view.moment)
    better = []
    for row, members in sorted(worlds.inside.items()):
        matrix = worlds.vectors([row, *members])
        whole, *parts = VectorRows(matrix, np.arange(len(matrix))).of(vector).tolist()
        mean = matrix[1:].mean(axis=0)
        length = float(np.linalg.norm(mean))
        near = max(whole, float(mean @ vector) / length if length and row in told else 0.0)
        if near > max(0.0, *parts):
            better.append((-near, row))
    for _, row in sorted(better)[:WORLDS_MAX]:
        ranking = _with_world(ranking, row, worlds.inside[row])
    return ranking


def held_members(
    interior: HeldWorld, view: View, matrix: NDArray[np.float32], rows: Sequence[int]
) -> WorldMembers:
    """Return the worlds that hold some rows of an interior that is held in memory."""
    found: dict[int, list[int]] = {row: [] for row in _named_worlds(view, rows)}
    if found:
        live = interior.seen(view.moment, ended=view.include_ended) & interior.are_answers()
        every = np.frombuffer(interior.parents, dtype=np.int64)
        for row in found:
            held = np.flatnonzero((every == row) & live).tolist()
            found[row] = [interior.rows[at] for at in held if interior.types[at] != SUMMARY]
        for row, member in _members(view, found):
            at = interior.place.get(member)
            if at is not None and live[at] and member not in found[row]:
                found[row].append(member)
    inside = {row: it for row, it in found.items() if row in interior.place}
    return WorldMembers(
        _large_enough(inside), lambda some: matrix[[interior.place[row] for row in some]]
    )


def stored_members(view: View, vectors: Vectors, rows: Sequence[int]) -> WorldMembers:
    """Return the worlds that hold some rows, read from the store."""
    found: dict[int, list[int]] = {row: [] for row in _named_worlds(view, rows)}
    reader, known = view.reader, view.moment.known
    for row in found:
        found[row] = reader.children(row, known, limit=MEMBERS_MAX + 1)
    for row, member in _members(view, found):
        found[row].append(member)
    small = {row: set(it) for row, it in found.items() if len(it) <= MEMBERS_MAX}
    kept = view.keep(set().union(*small.values())) if small else set()
    bodies = reader.bodies(sorted(kept), known)
    said = {body.row for body in bodies if body.type != SUMMARY}
    inside = {row: sorted(it & said) for row, it in small.items()}
    return WorldMembers(_large_enough(inside), lambda some: vectors.load(reader, some))


def _large_enough(inside: Mapping[int, list[int]]) -> dict[int, list[int]]:
    return {row: members for row, members in inside.items() if len(members) >= INSIDE_MIN}


def _members(view: View, worlds: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the worlds and their members at the moment."""
    rows = sorted(worlds)
    for item in view.reader.edges_at(rows, "out", MEMBERSHIP, view.moment.known) if rows else ():
        if view.moment.holds(item.edge):
            yield item.source, item.target


def _named_worlds(view: View, rows: Sequence[int]) -> set[int]:
    """Return the worlds around some rows that are only a name and can be seen."""
    reader, moment = view.reader, view.moment
    holders = {up for up in reader.parents(rows, moment.known).values() if up is not None}
    for item in reader.edges_at(rows, "in", MEMBERSHIP, moment.known):
        if moment.holds(item.edge):
            holders.add(item.source)
    bodies = reader.bodies(sorted(holders - {ROOT_ROW}), moment.known)
    named = {body.row for body in bodies if is_name_only(body) and body.type not in NEVER_HITS}
    return view.keep_time_of(named) if named else named


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

"""Visible: the one place that says what can be seen from inside a world.

A world's interior are its children, its members (by `contains`), and theirs, all the way down. The
world itself is not in its interior. `interior` walks down, `inside` walks up from candidates; both
follow the same two relations, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from worlddb.model.values import Edge
from worlddb.read.moment import Moment
from worlddb.store.protocol import ROOT_ROW, Reader

MEMBERSHIP = ("contains",)


def interior(reader: Reader, world: int, moment: Moment, members: bool) -> set[int]:
    """Return the rows of everything inside `world`."""
    found = interior_up_to(reader, [world], moment, members, None)
    assert found is not None
    return found


def interior_up_to(
    reader: Reader,
    worlds: Iterable[int],
    moment: Moment,
    members: bool,
    most: int | None,
    on_member: Callable[[Edge], None] = lambda edge: None,
) -> set[int] | None:
    """Return the rows of everything inside any of `worlds`; None if that is more than `most`."""
    seen: set[int] = set()
    starts = set(worlds)
    frontier = starts
    while frontier:
        below: set[int] = set()
        if moment.known is None:
            below.update(reader.children_of(frontier))
        else:
            for row in frontier:
                below.update(reader.children(row, moment.known))
        if members:
            found = reader.edges_at(frontier, "out", MEMBERSHIP, moment.known)
            for item in found:
                if moment.holds(item.edge):
                    on_member(item.edge)
                    below.add(item.target)
        frontier = below - seen
        seen |= frontier
        if most is not None and len(seen) > most:
            return None
    # A world is not inside itself, but it may be inside another of them.
    return seen if len(starts) > 1 else seen - starts


def inside(
    reader: Reader, world: int, rows: Iterable[int], moment: Moment, members: bool
) -> set[int]:
    """Return those of `rows` that are inside `world`."""
    candidates = set(rows) - {world}
    if world == ROOT_ROW:
        return candidates  # Every node but the root lives in it.
    above: dict[int, set[int]] = {}
    frontier = set(candidates)
    while frontier:
        for row in frontier:
            above.setdefault(row, set())
        for row, parent in reader.parents(frontier, moment.known).items():
            if parent is not None:
                above[row].add(parent)
        if members:
            for item in reader.edges_at(frontier, "in", MEMBERSHIP, moment.known):
                if moment.holds(item.edge):
                    above[item.target].add(item.source)
        reached = {parent for row in frontier for parent in above[row]}
        frontier = reached - above.keys() - {world}
    return _descendants_of(world, above) & candidates


def _descendants_of(world: int, above: dict[int, set[int]]) -> set[int]:
    """Return the rows from which `world` is reached by going up."""
    below: dict[int, set[int]] = {}
    for row, holders in above.items():
        for holder in holders:
            below.setdefault(holder, set()).add(row)
    found: set[int] = set()
    frontier = {world}
    while frontier:
        frontier = {row for holder in frontier for row in below.get(holder, ())} - found
        found |= frontier
    return found

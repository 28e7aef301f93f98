"""Conflicts: sources with more than one live target under a type that allows one.

Two targets contradict each other unless their edges never hold at the same time, unless they were
accepted as the same, and unless that was recorded before: what somebody has settled stays settled.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import combinations
from typing import NamedTuple

from worlddb.store.protocol import Reader
from worlddb.store.sweep import CauseRow
from worlddb.view.equivalence import accepted_class
from worlddb.view.visibility import Moment

FOREVER = 1 << 62


class Clash(NamedTuple):
    """Two targets of one source; the later edge's is the left one."""

    type: str
    source: int
    left: int
    right: int

    @property
    def key(self) -> tuple[object, ...]:
        """What it is about."""
        return self.left, self.right


def clashes_of(
    reader: Reader,
    moment: Moment,
    now: int,
    inside: set[int] | None,
    most: int,
    avoided: Set[tuple[object, ...]],
) -> tuple[list[Clash], bool]:
    """Return contradictions not recorded yet, at most `most`, and whether there are more."""
    functional = _Functional(reader)
    found: list[Clash] = []
    for type_ in sorted(functional.types):
        by_source: dict[int, list[CauseRow]] = {}
        for edge in reader.sweep.typed(type_):
            if edge.gone is None and (edge.valid_to is None or edge.valid_to > now):
                if inside is None or edge.source in inside:
                    by_source.setdefault(edge.source, []).append(edge)
        for source, edges in by_source.items():
            if len({edge.target for edge in edges}) < 2:
                continue
            if not functional.holds(type_, edges[0].world):
                continue
            for left, right in _pairs(reader, moment, edges, now):
                if (left, right) in avoided:
                    continue
                if len(found) == most:
                    return found, True
                found.append(Clash(type_, source, left, right))
    return found, False


class _Functional:
    """Which types allow one target only, in which worlds, as the store remembers it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._said = {(world, type_): flag for world, type_, _, flag in reader.registrations()}
        self.types = {type_ for (_, type_), flag in self._said.items() if flag}
        self._known: dict[tuple[str, int], bool] = {}

    def holds(self, type_: str, world: int) -> bool:
        """Return what the innermost registration around a world says."""
        key = type_, world
        if key not in self._known:
            row: int | None = world
            verdict = False
            while row is not None:
                around = self._reader.world(row)
                if (around.id, type_) in self._said:
                    verdict = self._said[around.id, type_]
                    break
                row = around.parent
            self._known[key] = verdict
        return self._known[key]


def _pairs(
    reader: Reader, moment: Moment, edges: list[CauseRow], now: int
) -> list[tuple[int, int]]:
    """Return the pairs of targets, later edge first, that contradict each other and are new."""
    targets = {edge.target for edge in edges}
    live = {
        body.row for body in reader.bodies(targets) if body.valid_to is None or body.valid_to > now
    }
    recorded = {(item.low, item.high) for item in reader.conflicts(live)}
    classes = reader.has_proposals()
    pairs: list[tuple[int, int]] = []
    for earlier, later in combinations(edges, 2):
        low, high = sorted((earlier.target, later.target))
        if low == high or not {low, high} <= live or (low, high) in recorded:
            continue
        if not _meet(earlier, later):
            continue
        if classes and high in accepted_class(reader, {low}, moment):
            continue
        recorded.add((low, high))
        pairs.append((later.target, earlier.target))
    return pairs


def _meet(one: CauseRow, other: CauseRow) -> bool:
    """Return whether two edges hold at some time together."""
    begins = max(one.valid_from, other.valid_from)
    ends = min(FOREVER if edge.valid_to is None else edge.valid_to for edge in (one, other))
    return begins < ends

"""Contradiction sweep: sources with more than one live target under a functional edge type.

Sources that were accepted as the same are one source. Two targets contradict each other, with three
exceptions: their edges never hold at the same time, the targets were accepted as the same, or the
conflict was recorded before. So a conflict that somebody settled stays settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import combinations
from typing import NamedTuple

from worlddb.consolidate.consolidation_run import ConsolidationRun, EdgeKey, EdgePlan, PlannedEdge
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.store.rows import CauseRow
from worlddb.view.visibility import Moment, accepted_class

CONTRADICTS = "contradicts"


class TargetClash(NamedTuple):
    """Two targets of one source; `left` is the target of the later edge."""

    type: str
    source: int
    left: int
    right: int


def plan_contradictions(run: ConsolidationRun, reader: Reader, refused: Set[EdgeKey]) -> EdgePlan:
    """Plan a flag for every contradiction not recorded yet, except those with a `refused` key."""
    moment, now = run.moment(reader)
    scope = run.scope(reader, moment)
    found: list[TargetClash] = []
    is_cut = False
    for clash in _clashes(reader, moment, now, scope):
        if (CONTRADICTS, clash.left, clash.right) in refused:
            continue
        is_cut = len(found) == run.options.edges_max
        if is_cut:
            break
        found.append(clash)
    nodes = reader.nodes({row for it in found for row in (it.source, it.left, it.right)})
    return EdgePlan([_flag(clash, nodes[clash.source]) for clash in found], [], nodes, is_cut)


def _flag(clash: TargetClash, source: Node) -> PlannedEdge:
    """Return the `contradicts` edge between the targets."""
    name = source.name or source.id.short
    metadata = {
        "reason": f"{clash.type} of {name}: the type allows one target only",
        "functional": clash.type,
        "source": str(source.id),
    }
    return PlannedEdge(CONTRADICTS, clash.left, clash.right, metadata=metadata)


def _clashes(
    reader: Reader, moment: Moment, now: int, scope: set[int] | None
) -> Iterator[TargetClash]:
    functional = _FunctionalTypes(reader)
    for type_ in sorted(functional.types):
        by_source: dict[int, list[CauseRow]] = {}
        for edge in reader.sweep.typed(type_):
            if edge.gone is None and (edge.valid_to is None or edge.valid_to > now):
                if scope is None or edge.source in scope:
                    by_source.setdefault(edge.source, []).append(edge)
        for source, edges in _by_identity(reader, moment, by_source).items():
            if len({edge.target for edge in edges}) < 2:
                continue
            if functional.holds(type_, edges[0].world):
                for left, right in _pairs(reader, moment, edges, now):
                    yield TargetClash(type_, source, left, right)


def _by_identity(
    reader: Reader, moment: Moment, by_source: dict[int, list[CauseRow]]
) -> dict[int, list[CauseRow]]:
    """Return the edges of all nodes that were accepted as one at the first of these nodes."""
    if not reader.has_proposals():
        return by_source
    joined: dict[int, list[CauseRow]] = {}
    for source in sorted(by_source):
        if source in by_source:
            same = sorted(accepted_class(reader, {source}, moment) & by_source.keys())
            edges = [edge for one in same for edge in by_source.pop(one)]
            joined[source] = sorted(edges, key=lambda edge: edge.row)
    return joined


class _FunctionalTypes:
    """Which edge types allow one target only, in which worlds, as registered in the store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._registered = {
            (world, type_): is_functional
            for world, type_, _, is_functional in reader.registrations()
        }
        self.types = {type_ for (_, type_), is_set in self._registered.items() if is_set}
        self._known: dict[tuple[str, int], bool] = {}

    def holds(self, type_: str, world: int) -> bool:
        """Return whether the innermost registration around a world says functional."""
        row: int | None = world
        while row is not None and (type_, world) not in self._known:
            around = self._reader.world(row)
            if (around.id, type_) in self._registered:
                self._known[type_, world] = self._registered[around.id, type_]
            row = around.parent
        return self._known.setdefault((type_, world), False)


def _pairs(
    reader: Reader, moment: Moment, edges: list[CauseRow], now: int
) -> list[tuple[int, int]]:
    """Return the pairs of targets, later edge first, that contradict each other and are new."""
    targets = {edge.target for edge in edges}
    live = {
        body.row for body in reader.bodies(targets) if body.valid_to is None or body.valid_to > now
    }
    recorded = {(item.low, item.high) for item in reader.conflicts(live)}
    has_classes = reader.has_proposals()
    pairs: list[tuple[int, int]] = []
    for earlier, later in combinations(edges, 2):
        low, high = sorted((earlier.target, later.target))
        if low == high or not {low, high} <= live or (low, high) in recorded:
            continue
        if not _overlap(earlier, later):
            continue
        if has_classes and high in accepted_class(reader, {low}, moment):
            continue
        recorded.add((low, high))
        pairs.append((later.target, earlier.target))
    return pairs


def _overlap(one: CauseRow, other: CauseRow) -> bool:
    """Return whether two edges hold at the same time at some moment."""
    begins = max(one.valid_from, other.valid_from)
    return all(edge.valid_to is None or begins < edge.valid_to for edge in (one, other))

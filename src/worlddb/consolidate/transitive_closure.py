"""Transitive closure: a → b and b → c give a → c, for edge types that are transitive.

Most types are acyclic, so one pass that begins at the nodes without outgoing edges finds all:
when a node's turn comes, everything that its targets lead to is known. A declared type may run in
circles; the nodes there are passed over until nothing more follows. The first premise is always an
edge that somebody stated, or the mirror of one, so the same premises are chosen whether or not an
earlier run was cut short.

C1  An inferred edge names its two premises and holds while both do.
C2  An inferred edge that somebody deleted while its premises still hold is not inferred again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import NamedTuple

from worlddb.consolidate.consolidation_run import ConsolidationRun, EdgeKey, EdgePlan, PlannedEdge
from worlddb.model.address import Id
from worlddb.model.inputs import premises_of
from worlddb.store.interface import Reader
from worlddb.store.rows import CauseRow
from worlddb.view.visibility import registrations

TRANSITIVE_TYPES = ("causes", "implies", "subtype_of")
MIRRORED = '"mirror":true'
"""In the metadata of an edge that states the same as another, from the other end."""


def plan_closure(run: ConsolidationRun, reader: Reader, refused: Set[EdgeKey]) -> EdgePlan:
    """Plan what follows, for every transitive type; `refused` are keys of edges to leave out."""
    moment, now = run.moment(reader)
    scope = run.scope(reader, moment)
    edges: list[PlannedEdge] = []
    withdrawn: list[Id] = []
    is_cut = False
    declared = _DeclaredTransitive(reader)
    for type_ in sorted({*TRANSITIVE_TYPES, *declared.types}):
        edges_there = reader.sweep.typed(type_)
        if type_ not in TRANSITIVE_TYPES:
            edges_there = (it for it in edges_there if declared.holds(type_, it.world))
        graph = _TypeGraph(type_, edges_there, now)
        withdrawn += graph.unfounded
        is_cut |= graph.infer(edges, run.options.edges_max, scope, refused)
    nodes = reader.nodes({row for edge in edges for row in (edge.source, edge.target)})
    return EdgePlan(edges, withdrawn, nodes, is_cut)


class _DeclaredTransitive:
    """Which edge types are declared transitive, and in which worlds."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._traits = {
            (item.world, item.type): item.declaration is not None and item.declaration.transitive
            for item in registrations(reader)
        }
        self.types = {type_ for (_, type_), is_set in self._traits.items() if is_set}
        self._known: dict[tuple[str, int], bool] = {}

    def holds(self, type_: str, world: int) -> bool:
        """Return whether the innermost registration around a world says transitive."""
        row: int | None = world
        while row is not None and (type_, world) not in self._known:
            around = self._reader.world(row)
            if (around.id, type_) in self._traits:
                self._known[type_, world] = self._traits[Id(around.id), type_]
            row = around.parent
        return self._known.setdefault((type_, world), False)


class _GraphLink(NamedTuple):
    """An edge of the graph, stored or planned; `premise` is what an inference calls it."""

    source: int
    target: int
    valid_from: int
    valid_to: int | None
    premise: bytes | int


class _TypeGraph:
    """The edges of one type."""

    def __init__(self, type_: str, edges: Iterable[CauseRow], now: int) -> None:
        self._type = type_
        self._live: dict[bytes, CauseRow] = {}
        ended: set[bytes] = set()
        deleted: list[CauseRow] = []
        for edge in edges:
            if edge.gone is not None:
                deleted.append(edge)
            elif edge.valid_to is not None and edge.valid_to <= now:
                ended.add(edge.id)
            else:
                self._live[edge.id] = edge
        self.unfounded: list[Id] = []
        """Inferred edges of which a premise has ended, directly or through another inference."""
        for edge in list(self._live.values()):
            # In the order of writing: premises are older than what rests on them.
            if edge.inferred and any(it in ended for it in premises_of(edge.inferred)):
                ended.add(edge.id)
                del self._live[edge.id]
                self.unfounded.append(Id(edge.id))
        self._taken_back = {
            (edge.source, edge.target)
            for edge in deleted
            if edge.inferred and all(it in self._live for it in premises_of(edge.inferred))
        }

    def infer(
        self,
        found: list[PlannedEdge],
        edges_max: int,
        scope: set[int] | None,
        refused: Set[EdgeKey],
    ) -> bool:
        """Add what follows to `found`; return whether there is more than `edges_max`."""
        out: dict[int, dict[int, _GraphLink]] = {}
        stated: dict[int, list[_GraphLink]] = {}
        for edge in sorted(self._live.values(), key=lambda it: (it.inferred is not None, it.row)):
            link = _GraphLink(edge.source, edge.target, edge.valid_from, edge.valid_to, edge.id)
            out.setdefault(edge.source, {}).setdefault(edge.target, link)
            if edge.inferred is None or MIRRORED in edge.inferred:
                stated.setdefault(edge.source, []).append(link)
        ordered = list(chain.from_iterable(topological_levels(out)))
        circular = sorted(out.keys() - set(ordered))
        while True:
            before = len(found)
            if self._pass(ordered + circular, out, stated, found, edges_max, scope, refused):
                return True
            if not circular or len(found) == before:
                return False

    def _pass(
        self,
        order: Iterable[int],
        out: dict[int, dict[int, _GraphLink]],
        stated: Mapping[int, list[_GraphLink]],
        found: list[PlannedEdge],
        edges_max: int,
        scope: set[int] | None,
        refused: Set[EdgeKey],
    ) -> bool:
        """Join every stated link with what its target leads to; return if there is too much."""
        for source in order:
            if scope is not None and source not in scope:
                continue
            for first in stated.get(source, ()):
                for second in list(out.get(first.target, {}).values()):
                    if second.target in out[source] or second.target == source:
                        continue
                    made = self._join(first, second, len(found))
                    if made is None or (self._type, source, made.target) in refused:
                        continue
                    if len(found) == edges_max:
                        return True
                    out[source][made.target] = made
                    ends = made.valid_from, made.valid_to
                    premises = first.premise, second.premise
                    found.append(PlannedEdge(self._type, source, made.target, *ends, premises))
        return False

    def _join(self, first: _GraphLink, second: _GraphLink, index: int) -> _GraphLink | None:
        """Return what follows from two links; None if they never held at the same time."""
        if (first.source, second.target) in self._taken_back:
            return None
        begins = max(first.valid_from, second.valid_from)
        ends = min((it for it in (first.valid_to, second.valid_to) if it is not None), default=None)
        if ends is not None and ends <= begins:
            return None
        return _GraphLink(first.source, second.target, begins, ends, index)


def topological_levels(targets: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Return the keys of a graph level by level, each after all keys among its targets.

    The keys of a level are sorted. Keys on a cycle, and those that lead to one, are left out.
    """
    sorter = TopologicalSorter(
        {source: [it for it in found if it in targets] for source, found in targets.items()}
    )
    with suppress(CycleError):  # The rest of the graph can still be sorted.
        sorter.prepare()
    levels = []
    while sorter.is_active() and (ready := sorter.get_ready()):
        levels.append(sorted(ready))
        sorter.done(*ready)
    return levels

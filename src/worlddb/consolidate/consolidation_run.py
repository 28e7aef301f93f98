"""Consolidation run: the options, progress and report of one run, and the transitive closure.

    a → b and b → c  ──plan_closure──▶  a → c, for edge types that are transitive

Most types are acyclic, so one pass that starts at the nodes without outgoing edges finds all
inferences: when a node is reached, everything that its targets lead to is known. A declared type
may have cycles; their nodes are visited until nothing more follows. The first premise is always a
stated edge, or the mirror of one, so the same premises are chosen whether or not an earlier run was
interrupted.

C1  An inferred edge names its two premises and holds while both do.
C2  An inferred edge that a caller deleted while its premises still hold is not inferred again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any, Literal, NamedTuple

from worlddb.errors import InvalidInputError
from worlddb.model.address import Id
from worlddb.model.inputs import Limits, Plain, check_integer, encode_text, premises_of, to_micros
from worlddb.model.records import NOW, Node, Summarizer
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import CauseRow
from worlddb.view.visibility import Moment, interior, moment_of, registrations
from worlddb.write.transaction import ACTOR_BYTES_MAX, Transaction, transact

PARTS = ("summaries", "closure", "conflicts")
MICROSECOND = timedelta(microseconds=1)
AGE_S_MAX = 1e12  # more than there are seconds between the years 1 and 9999

SummaryAction = Literal["written", "refreshed", "retired"]


# -- the report ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryChange(Plain):
    """A world whose summary was written, replaced by a newer one, or retired.

    `summary` is the new summary, or the retired one. In a dry run that would write one, it is None.
    """

    action: SummaryAction
    world: Id
    title: str
    details: int
    summary: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredEdge(Plain):
    """An edge that follows from two others of its type; `edge` is None in a dry run."""

    type: str
    source: Id
    target: Id
    valid_from: datetime
    valid_to: datetime | None = None
    edge: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction(Plain):
    """Two targets of one source under a functional edge type; `edge` is None in a dry run."""

    type: str
    source: Id
    left: Id
    right: Id
    edge: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport(Plain):
    """The result of a run. It is often empty, because nothing has changed since the last run.

    The run read `worlds` worlds. It reached its limit before it could read `left` more;
    `edges_left` says that it reached its limit of inferred edges or contradictions. `skipped`
    worlds changed while they were being summarised. A handler rejected the `refused` edges. `error`
    is why summarising stopped. The next run continues with all of these. `withdrawn` are inferred
    edges that lost a premise. `commits` are the numbers of the run's commits.
    """

    dry_run: bool = False
    worlds: int = 0
    summaries: tuple[SummaryChange, ...] = ()
    inferred: tuple[InferredEdge, ...] = ()
    withdrawn: tuple[Id, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    skipped: tuple[Id, ...] = ()
    refused: tuple[str, ...] = ()
    error: str | None = None
    left: int = 0
    edges_left: bool = False
    commits: tuple[int, ...] = ()
    ALSO_TOLD = (("written", int), ("refreshed", int), ("retired", int), ("complete", bool))
    """Properties that `to_dict` adds to the fields."""

    @property
    def written(self) -> int:
        """Number of summaries of worlds that had none."""
        return self._count("written")

    @property
    def refreshed(self) -> int:
        """Number of summaries that were replaced by newer ones."""
        return self._count("refreshed")

    @property
    def retired(self) -> int:
        """Number of summaries that were retired because too few details were left."""
        return self._count("retired")

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left for the next run."""
        return not (self.left or self.edges_left or self.skipped or self.error)

    def _count(self, action: SummaryAction) -> int:
        return sum(change.action == action for change in self.summaries)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data, with the counts."""
        counts = {name: getattr(self, name) for name in ("written", "refreshed", "retired")}
        return Plain.to_dict(self) | counts | {"complete": self.is_complete}


# -- the run ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationOptions:
    """The options of one run, as `WorldDB.consolidate` describes them.

    Raises:
        InvalidInputError: an option is wrong.
    """

    world: bytes | None = None
    summarizer: Summarizer | None = None
    min_age: timedelta | float = 0
    worlds_max: int = 1_000
    edges_max: int = 1_000
    dry_run: bool = False
    actor: str = "consolidator"
    only: str | Iterable[str] = PARTS

    def __post_init__(self) -> None:
        encode_text(self.actor, "actor", ACTOR_BYTES_MAX)
        check_integer(self.worlds_max, "worlds_max", 1)
        check_integer(self.edges_max, "edges_max", 1)
        age = _micros(self.min_age)
        if age < 0:
            raise InvalidInputError(
                f"min_age: give a timedelta or seconds, 0 or more, not {self.min_age!r}"
            )
        # Any iterable may be given, also one that can be read only once.
        parts = frozenset((self.only,) if isinstance(self.only, str) else self.only)
        unknown = sorted(map(str, parts - set(PARTS)))
        if unknown or not parts:
            raise InvalidInputError(
                f"only: give some of {', '.join(PARTS)}, not {', '.join(unknown) or 'nothing'}"
            )
        object.__setattr__(self, "only", parts)
        made = self.summarizer
        if made is not None and not (
            isinstance(getattr(made, "name", None), str)
            and callable(getattr(made, "summarize", None))
        ):
            raise InvalidInputError(
                f"summarizer: give an object with a name and summarize(title, messages), "
                f"not {made!r:.100}"
            )

    @property
    def min_age_micros(self) -> int:
        """The minimum age in microseconds."""
        return _micros(self.min_age)


def _micros(age: timedelta | float) -> int:
    """Return an age in microseconds; -1 if it is neither a timedelta nor a number of seconds."""
    if isinstance(age, timedelta):
        return age // MICROSECOND
    if isinstance(age, int | float) and not isinstance(age, bool):
        return int(age * 1_000_000) if 0 <= age <= AGE_S_MAX else -1
    return -1


@dataclass(slots=True)
class ConsolidationRun:
    """One run over a store and its results so far; the lists go into the report."""

    store: Store
    registry: Registry
    clock: Callable[[], int]
    limits: Limits
    options: ConsolidationOptions
    worlds: int = 0
    left: int = 0
    edges_left: bool = False
    error: str | None = None
    summaries: list[SummaryChange] = field(default_factory=list)
    edges: list[InferredEdge | Contradiction] = field(default_factory=list)
    withdrawn: list[Id] = field(default_factory=list)
    skipped: list[Id] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)

    def moment(self, reader: Reader) -> tuple[Moment, int]:
        """Return the present, as a moment and in microseconds."""
        moment = moment_of(reader, NOW, self.clock())
        return moment, to_micros(moment.now, "now")

    def scope(self, reader: Reader, moment: Moment) -> set[int] | None:
        """Return the rows of the world that the run is limited to; None for the whole store."""
        if self.options.world is None:
            return None
        row = reader.node_row(self.options.world)
        assert row is not None
        return interior(reader, row, moment, members=True) | {row}

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open a transaction with the actor of the run."""
        actor = self.options.actor
        return transact(self.store, self.registry, actor=actor, bulk=False, limits=self.limits)

    def record_commit(self, tx: Transaction) -> bool:
        """Record the commit of a finished transaction; return whether there is one."""
        if tx.commit is not None:
            self.commits.append(tx.commit.seq)
        return tx.commit is not None

    def report(self) -> ConsolidationReport:
        """Return the report of the run."""
        return ConsolidationReport(
            dry_run=self.options.dry_run,
            worlds=self.worlds,
            summaries=tuple(self.summaries),
            inferred=tuple(item for item in self.edges if isinstance(item, InferredEdge)),
            withdrawn=tuple(self.withdrawn),
            contradictions=tuple(item for item in self.edges if isinstance(item, Contradiction)),
            skipped=tuple(self.skipped),
            refused=tuple(self.refused),
            error=self.error,
            left=self.left,
            edges_left=self.edges_left,
            commits=tuple(self.commits),
        )


# -- edges that a run writes -----------------------------------------------------------------------


class PlannedEdge(NamedTuple):
    """An edge to be written between two rows. A premise is an edge id, or an index in the plan."""

    type: str
    source: int
    target: int
    valid_from: int | None = None
    valid_to: int | None = None
    premises: tuple[bytes | int, ...] = ()
    metadata: Mapping[str, Any] = {}

    @property
    def key(self) -> EdgeKey:
        """Identifies the edge if the plan is made again."""
        return self.type, self.source, self.target


EdgeKey = tuple[str, int, int]


class EdgePlan(NamedTuple):
    """Edges to write, in order, edges to withdraw, and the nodes at their ends by row."""

    edges: list[PlannedEdge]
    withdrawn: list[Id]
    nodes: dict[int, Node]
    is_cut: bool
    """Whether the limit left some edges out."""


TRANSITIVE_TYPES = ("causes", "implies", "subtype_of")
MIRRORED = '"mirror":true'
"""Metadata key of an edge that states the same as another edge from its other end."""


def plan_closure(run: ConsolidationRun, reader: Reader, refused: Set[EdgeKey]) -> EdgePlan:
    """Plan the inferences of every transitive type; edges with a key in `refused` are left out."""
    moment, now = run.moment(reader)
    scope = run.scope(reader, moment)
    edges: list[PlannedEdge] = []
    withdrawn: list[Id] = []
    is_cut = False
    traits = {
        (bytes(item.world), item.type): item.declaration is not None and item.declaration.transitive
        for item in registrations(reader)
    }
    declared = RegisteredTrait(reader, traits)
    for type_ in sorted({*TRANSITIVE_TYPES, *declared.types}):
        edges_there = reader.sweep.typed(type_)
        if type_ not in TRANSITIVE_TYPES:
            edges_there = (it for it in edges_there if declared.holds(type_, it.world))
        graph = _TypeGraph(type_, edges_there, now)
        withdrawn += graph.unfounded
        is_cut |= graph.infer(edges, run.options.edges_max, scope, refused)
    nodes = reader.nodes({row for edge in edges for row in (edge.source, edge.target)})
    return EdgePlan(edges, withdrawn, nodes, is_cut)


class RegisteredTrait:
    """Which edge types have a trait, and in which worlds; `traits` are by world and type."""

    def __init__(self, reader: Reader, traits: Mapping[tuple[bytes, str], bool]) -> None:
        self._reader = reader
        self._traits = traits
        self.types = {type_ for (_, type_), is_set in traits.items() if is_set}
        self._known: dict[tuple[str, int], bool] = {}

    def holds(self, type_: str, world: int) -> bool:
        """Return whether the innermost registration around a world has the trait."""
        row: int | None = world
        while row is not None and (type_, world) not in self._known:
            around = self._reader.world(row)
            if (around.id, type_) in self._traits:
                self._known[type_, world] = self._traits[around.id, type_]
            row = around.parent
        return self._known.setdefault((type_, world), False)


class _GraphLink(NamedTuple):
    """An edge of the graph, stored or planned; `premise` refers to it in an inference."""

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
            # In the order of writing: premises are older than their inferences.
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
        """Add the inferences to `found`; return whether there are more than `edges_max`."""
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
        """Join stated links with the links of their targets; return whether there are too many."""
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
        """Return the inference from two links; None if they were never valid at the same time."""
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

"""Consolidation run: the options, the progress and the report of one run of the consolidator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isfinite
from typing import Any, Literal, NamedTuple

from worlddb.errors import InvalidInputError
from worlddb.model.address import Id
from worlddb.model.drafts import Summarizer
from worlddb.model.inputs import Limits, check_whole, encode_text, to_micros
from worlddb.model.records import NOW, Node, Plain
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader, Store
from worlddb.view.visibility import Moment, interior, moment_of
from worlddb.write.transaction import ACTOR_BYTES_MAX, Transaction, transact

PARTS = ("summaries", "closure", "conflicts")
MICROSECOND = timedelta(microseconds=1)

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
    """What a run did. It is often empty: nothing has changed since the last run.

    The run looked at `worlds` worlds. It reached its limit before it could look at `left` more;
    `edges_left` says that it reached its limit of inferred edges or contradictions. `skipped`
    worlds changed while they were being summarised. A handler rejected the `refused` edges. `error`
    is why summarising stopped. All of these are left for the next run. `withdrawn` are inferred
    edges that lost a premise. `commits` are the numbers of the commits that the run made.
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
    """What `to_dict` gives besides the fields."""

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
        check_whole(self.worlds_max, "worlds_max", 1)
        check_whole(self.edges_max, "edges_max", 1)
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
    """Return an age in microseconds; -1 if it is neither a timedelta nor a finite number."""
    if isinstance(age, timedelta):
        return age // MICROSECOND
    if isinstance(age, int | float) and not isinstance(age, bool) and isfinite(age):
        return int(age * 1_000_000)
    return -1


@dataclass(slots=True)
class ConsolidationRun:
    """One run over a store, and what it has done so far. The lists go into the report."""

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
        """Return what was done."""
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
        """Identifies the edge when the plan is made again."""
        return self.type, self.source, self.target


EdgeKey = tuple[str, int, int]


class EdgePlan(NamedTuple):
    """Edges to write, in order, edges to withdraw, and the nodes at their ends by row."""

    edges: list[PlannedEdge]
    withdrawn: list[Id]
    nodes: dict[int, Node]
    is_cut: bool
    """Whether the limit left some edges out."""

"""Run: what the parts of one run share: the store, the bounds, and what was done so far."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from worlddb.model.address import Id
from worlddb.model.inputs import Limits, to_micros
from worlddb.model.records import NOW
from worlddb.ontology.registry import Registry
from worlddb.sleep.report import ConsolidationReport, Contradiction, InferredEdge, SummaryChange
from worlddb.store.protocol import Reader, Store
from worlddb.view.visibility import Moment, interior, moment_of
from worlddb.write.transaction import Transaction, transact


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a run may do: where, of what age, how much of it, and under whose name."""

    world: bytes | None
    min_age_micros: int
    worlds_max: int
    edges_max: int
    dry_run: bool
    actor: str


@dataclass(slots=True)
class Done:
    """What a run has done so far."""

    worlds: int = 0
    left: int = 0
    edges_left: bool = False
    error: str | None = None
    summaries: list[SummaryChange] = field(default_factory=list)
    inferred: list[InferredEdge] = field(default_factory=list)
    withdrawn: list[Id] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    skipped: list[Id] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)


class Run:
    """One run over a store."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        clock: Callable[[], int],
        limits: Limits,
        bounds: Bounds,
    ) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock
        self.limits = limits
        self.bounds = bounds
        self.done = Done()

    def moment(self, reader: Reader) -> tuple[Moment, int]:
        """Return now, as a moment and in microseconds."""
        moment = moment_of(reader, NOW, self.clock())
        return moment, to_micros(moment.now, "now")

    def inside(self, reader: Reader, moment: Moment) -> set[int] | None:
        """Return the rows of the part of the store that the run is about; None for all of it."""
        if self.bounds.world is None:
            return None
        row = reader.node_row(self.bounds.world)
        assert row is not None
        return interior(reader, row, moment, members=True) | {row}

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open a transaction under the name of the run."""
        return transact(
            self.store, self.registry, actor=self.bounds.actor, bulk=False, limits=self.limits
        )

    def landed(self, tx: Transaction) -> bool:
        """Note the commit of a transaction that has ended; return whether there is one."""
        commit = tx.commit
        if commit is not None:
            self.done.commits.append(commit.seq)
        return commit is not None

    def report(self) -> ConsolidationReport:
        """Return what was done."""
        done = self.done
        return ConsolidationReport(
            dry_run=self.bounds.dry_run,
            worlds=done.worlds,
            summaries=tuple(done.summaries),
            inferred=tuple(done.inferred),
            withdrawn=tuple(done.withdrawn),
            contradictions=tuple(done.contradictions),
            skipped=tuple(done.skipped),
            refused=tuple(done.refused),
            error=done.error,
            left=done.left,
            edges_left=done.edges_left,
            commits=tuple(done.commits),
        )

"""Consolidator: one run over a store, or repeated runs in the background.

    worlds ──read──▶ jobs ──ask, no lock held──▶ texts ──write──▶ a commit for each batch
    edges  ──read──▶ inferences, contradictions ─────────write──▶ a commit each

S1  A run writes, closes or deletes nothing but summaries, inferred edges and conflict flags.
S2  Every commit is complete by itself, and the work to do is read from the store alone. So a run
    that was stopped anywhere is finished by the next one, and a second run finds nothing to do.
S3  A world that changed between the read and the write is left for the next run.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any, NamedTuple, Protocol, Self

from worlddb.consolidate.consolidation_run import (
    ConsolidationOptions,
    ConsolidationReport,
    ConsolidationRun,
    Contradiction,
    EdgeKey,
    EdgePlan,
    InferredEdge,
    PlannedEdge,
    RegisteredTrait,
    plan_closure,
)
from worlddb.consolidate.extractive_summarizer import ExtractiveSummarizer
from worlddb.consolidate.summary_writer import write_summaries
from worlddb.errors import InvalidInputError, NotFoundError, ProviderError, RejectedError
from worlddb.model.address import Id
from worlddb.model.inputs import Limits, Plain, from_micros
from worlddb.model.records import Message, Node, Summarizer
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import CauseRow
from worlddb.view.visibility import Moment, accepted_class
from worlddb.write.transaction import Transaction

# Contradiction sweep: sources with more than one live target under a functional edge type.
#
# Sources that were accepted as the same are one source. Two targets contradict each other, with
# three exceptions: their edges never hold at the same time, the targets were accepted as the same,
# or the conflict was recorded before. So a settled conflict stays settled.

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
    traits = {(world, type_): only_one for world, type_, _, only_one in reader.registrations()}
    functional = RegisteredTrait(reader, traits)
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


# Consolidator.

UNLOCKED_TRIES = 4
"""Attempts to write a plan made without the write lock, if another commit overtakes it. The next
plan is made under the lock, so that a run ends even if others write all the time."""
REFUSED_MAX = 20
"""Edges that handlers may reject before a run gives up; each costs a plan and a transaction."""

Planner = Callable[[ConsolidationRun, Reader, set[EdgeKey]], EdgePlan]


def consolidate(
    store: Store,
    registry: Registry,
    clock: Callable[[], int],
    limits: Limits,
    options: ConsolidationOptions,
) -> ConsolidationReport:
    """Run once; see `WorldDB.consolidate`."""
    run = ConsolidationRun(store, registry, clock, limits, options)
    if "summaries" in options.only:
        write_summaries(run)
    if "closure" in options.only:
        _write_edges(run, plan_closure)
    if "conflicts" in options.only:
        _write_edges(run, plan_contradictions)
    return run.report()


def _write_edges(run: ConsolidationRun, planner: Planner) -> None:
    """Plan and write until no handler rejects an edge; rejected edges are left out and reported."""
    refused: set[EdgeKey] = set()
    while True:
        attempt, error = _attempt(run, planner, refused)
        plan, written = attempt.plan, attempt.written
        if error is None:
            break
        if len(written) == len(plan.edges) or len(refused) == REFUSED_MAX:
            raise error
        rejected = plan.edges[len(written)]
        refused.add(rejected.key)
        ends = " → ".join(plan.nodes[row].id.short for row in (rejected.source, rejected.target))
        run.refused.append(f"{rejected.type} {ends}: {error}")
    run.withdrawn += plan.withdrawn
    run.edges_left |= plan.is_cut
    for number, planned in enumerate(plan.edges):
        made = written[number] if written else None  # None in a dry run.
        run.edges.append(_result(planned, plan.nodes, made))


@dataclass(slots=True)
class _Attempt:
    """A plan, and the edges of it that were written so far."""

    plan: EdgePlan
    written: list[Id] = field(default_factory=list)

    def write(self, tx: Transaction) -> None:
        """Write the whole plan in one transaction."""
        for edge in self.plan.withdrawn:
            # The handler may have withdrawn it already, together with one of its premises.
            with suppress(NotFoundError):
                tx.delete_edge(edge)
        nodes = self.plan.nodes
        for planned in self.plan.edges:
            metadata = dict(planned.metadata)
            if planned.premises:
                ids = [self.written[it] if isinstance(it, int) else it for it in planned.premises]
                metadata |= {"inferred": True, "premises": [str(Id(it)) for it in ids]}
            made = tx.write_edge(
                planned.type,
                nodes[planned.source].id,
                nodes[planned.target].id,
                valid_from=_instant(planned.valid_from),
                valid_to=_instant(planned.valid_to),
                metadata=metadata,
            )
            self.written.append(made.id)


def _attempt(
    run: ConsolidationRun, planner: Planner, refused: set[EdgeKey]
) -> tuple[_Attempt, RejectedError | InvalidInputError | None]:
    """Write a plan if nobody has committed since, else plan again; return a handler's error."""
    tries = UNLOCKED_TRIES
    while True:
        with run.store.read() as reader:
            seen, attempt = reader.head().seq, _Attempt(planner(run, reader, refused))
        if run.options.dry_run or not (attempt.plan.edges or attempt.plan.withdrawn):
            return attempt, None
        try:
            with run.transaction() as tx:
                if tx.follows != seen:
                    if tries:
                        tries -= 1
                        continue
                    with run.store.read() as reader:
                        attempt = _Attempt(planner(run, reader, refused))
                attempt.write(tx)
        except (RejectedError, InvalidInputError) as error:
            return attempt, error
        run.record_commit(tx)
        return attempt, None


def _result(
    planned: PlannedEdge, nodes: dict[int, Node], edge: Id | None
) -> InferredEdge | Contradiction:
    """Return the entry of the report; `edge` is None in a dry run."""
    source, target = nodes[planned.source].id, nodes[planned.target].id
    begins, ends = _instant(planned.valid_from), _instant(planned.valid_to)
    if begins is not None:
        return InferredEdge(
            type=planned.type,
            source=source,
            target=target,
            valid_from=begins,
            valid_to=ends,
            edge=edge,
        )
    return Contradiction(
        type=planned.metadata["functional"],
        source=Id(planned.metadata["source"]),
        left=source,
        right=target,
        edge=edge,
    )


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


# Background consolidator: consolidate a store again and again, on a thread of its own.

EVERY_S = 3_600.0  # hourly: summaries are not urgent
MIN_AGE_S = 3_600.0  # a world that is still being written would get a new summary in every run
RUNS_KEPT = 100  # a few days of runs at the default interval, to find an error


class ConsolidatingStore(Protocol):
    """An open store; `WorldDB` is one."""

    @property
    def consolidate(self) -> Callable[..., ConsolidationReport]:
        """Run once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundRun(Plain):
    """One run in the background: its report or its error, and how long it took."""

    report: ConsolidationReport | None = None
    error: str | None = None
    seconds: float = 0.0


class _StoppableSummarizer:
    """A summarizer that fails once the consolidator stops; earlier summaries are kept."""

    def __init__(self, summarizer: Summarizer, stop: threading.Event) -> None:
        self._summarizer = summarizer
        self._stop = stop
        self.name = summarizer.name

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary; ProviderError while the consolidator stops."""
        if self._stop.is_set():
            raise ProviderError("stopped; the next run continues from here")
        return self._summarizer.summarize(title, messages)


class Background:
    """Consolidates a store every `every_s` seconds, and at once where a run reached its limits.

    `options` go to `db.consolidate`; `min_age` is `every_s` unless given, but at most an hour.
    Errors are recorded in `runs` and never end the thread. `on_run` is called after each run, on
    that thread. `with Background(db):` starts and stops it; stop it before the store is closed.

    Raises:
        InvalidInputError: `every_s` is not a positive number.
    """

    def __init__(
        self,
        db: ConsolidatingStore,
        every_s: float = EVERY_S,
        *,
        summarizer: Summarizer | None = None,
        on_run: Callable[[BackgroundRun], None] = lambda run: None,
        **options: Any,
    ) -> None:
        if isinstance(every_s, bool) or not isinstance(every_s, int | float) or not every_s > 0:
            raise InvalidInputError(f"every_s: give seconds above 0, not {every_s!r:.40}")
        self._db = db
        self._every_s = min(float(every_s), threading.TIMEOUT_MAX)
        self._options = {"min_age": min(MIN_AGE_S, self._every_s)} | options
        self._stop = threading.Event()
        self._summarizer = _StoppableSummarizer(summarizer or ExtractiveSummarizer(), self._stop)
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._on_run = on_run
        self.runs: deque[BackgroundRun] = deque(maxlen=RUNS_KEPT)
        """The last hundred runs, oldest first."""

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; the first run begins at once. Starting twice does nothing."""
        if self.is_running:
            return
        self._stop.clear()
        self._thread = threading.Thread(target=self._work, name="worlddb-consolidate", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current summary; summaries that are ready are written."""
        self._stop.set()
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def wake(self) -> None:
        """Start the next run now."""
        self._wake.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        while True:
            self._wake.clear()
            if self._stop.is_set():  # After clearing: otherwise a stop could be missed.
                return
            run = self._run_once()
            self.runs.append(run)
            try:
                self._on_run(run)
            except Exception as problem:
                self.runs.append(BackgroundRun(error=f"on_run: {_words(problem)}"))
            # A run that reached a limit continues at once. A run that failed, or that could not
            # write anything, waits.
            report = run.report
            if report is None or not report.commits or not (report.left or report.edges_left):
                self._wake.wait(self._every_s)

    def _run_once(self) -> BackgroundRun:
        began = time.monotonic()
        report, error = None, None
        try:
            report = self._db.consolidate(summarizer=self._summarizer, **self._options)
        except Exception as problem:
            # A model, a handler or the disk may raise anything. The next run may succeed.
            error = _words(problem)
        return BackgroundRun(report=report, error=error, seconds=time.monotonic() - began)


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"

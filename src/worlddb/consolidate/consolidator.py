"""Consolidator: one run over a store. Read, ask the summarizer, write; then report.

    worlds ──read──▶ jobs ──ask, no lock held──▶ texts ──write──▶ a commit for each batch
    edges  ──read──▶ inferences, contradictions ─────────write──▶ a commit each

S1  A run writes, closes or deletes nothing but summaries, inferred edges and conflict flags.
S2  Every commit is complete by itself, and the work to do is read from the store alone. So a run
    that was stopped anywhere is finished by the next one, and a second run finds nothing to do.
S3  A world that changed between the read and the write is left for the next run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from worlddb.consolidate.consolidation_run import (
    ConsolidationOptions,
    ConsolidationReport,
    ConsolidationRun,
    Contradiction,
    EdgeKey,
    EdgePlan,
    InferredEdge,
    PlannedEdge,
)
from worlddb.consolidate.contradiction_sweep import plan_contradictions
from worlddb.consolidate.summary_writer import write_summaries
from worlddb.consolidate.transitive_closure import plan_closure
from worlddb.errors import InvalidInputError, NotFoundError, RejectedError
from worlddb.model.address import Id
from worlddb.model.inputs import Limits, from_micros
from worlddb.model.records import Node
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader, Store
from worlddb.write.transaction import Transaction

UNLOCKED_TRIES = 4
"""Plans that are made without the write lock and lost to another writer's commit. The next plan is
made under the lock, so that a run also ends in a store that is written all the time."""
REFUSED_MAX = 20
"""Edges that handlers reject before a run gives up: each costs a whole plan and transaction."""

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

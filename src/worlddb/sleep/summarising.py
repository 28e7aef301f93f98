"""Summarising: worlds inside out, a batch at a time. Look, ask with no lock held, write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from worlddb.errors import InvalidInputError, ProviderError, RejectedError
from worlddb.model.address import Id
from worlddb.model.drafts import Message, Summarizer
from worlddb.model.inputs import from_micros
from worlddb.model.records import EdgeDraft, Node
from worlddb.query.pipeline import DERIVED, SUMMARY
from worlddb.sleep.details import MADE_BY, Job, candidates, jobs_of, levels_of
from worlddb.sleep.report import SummaryChange
from worlddb.sleep.run import Run
from worlddb.sleep.telling import messages_for, told_by
from worlddb.store.protocol import Reader
from worlddb.write.transaction import Transaction

LOOKED_AT = 500
"""Worlds that are looked at on one snapshot."""
BATCH = 50
"""Summaries in one commit: what a kill can cost, and how long other writers may wait."""


class Task(NamedTuple):
    """A job with everything that writing it needs, so that the store is not asked again."""

    job: Job
    world: Node
    old: Id | None
    details: tuple[Id, ...]
    messages: list[Message]


def summarise(run: Run, summarizer: Summarizer) -> None:
    """Bring the summaries of all worlds up to date, at most `worlds_max` of them."""
    with run.store.read() as reader:
        moment, _ = run.moment(reader)
        levels = levels_of(reader, candidates(reader, run.inside(reader, moment)))
    groups = [
        level[start : start + LOOKED_AT]
        for level in levels
        for start in range(0, len(level), LOOKED_AT)
    ]
    total = sum(map(len, groups))
    room = run.bounds.worlds_max
    coming: dict[int, bool] = {}
    for group in groups:
        seen, looked, tasks = _look(run, group, coming, room)
        run.done.worlds += looked
        room -= len({task.job.world for task in tasks})
        if run.bounds.dry_run:
            _foresee(run, tasks, coming)
        else:
            for start in range(0, len(tasks), BATCH):
                seen = _tell(run, summarizer, seen, tasks[start : start + BATCH])
                if run.done.error is not None:
                    room = 0
                    break
        if room <= 0 or looked < len(group):
            break
    run.done.left = total - run.done.worlds


def _look(
    run: Run, group: Sequence[int], coming: dict[int, bool], room: int
) -> tuple[int, int, list[Task]]:
    """Return the snapshot's commit, how many worlds were looked at, and what is to do."""
    with run.store.read() as reader:
        _, now = run.moment(reader)
        nodes = reader.nodes(group)
        oldest = from_micros(now - run.bounds.min_age_micros)
        grown = [
            row for row in group if nodes[row].created_at <= oldest and nodes[row].type != SUMMARY
        ]
        found = jobs_of(reader, grown, now, coming)
        chosen = list(found)[:room]
        looked = len(group) if len(chosen) == len(found) else group.index(list(found)[room])
        ask = not run.bounds.dry_run
        tasks = [_task(reader, job, nodes[row], ask) for row in chosen for job in found[row]]
        return reader.head().seq, looked, tasks


def _task(reader: Reader, job: Job, world: Node, ask: bool) -> Task:
    rows = sorted({row for unit in job.units for row in unit.rows})
    ids = {row: Id(found.id) for row, found in reader.worlds(rows).items()} if rows else {}
    old = None if job.old is None else Id(reader.world(job.old).id)
    messages = messages_for(reader, job) if ask and job.units else []
    return Task(job, world, old, tuple(ids[row] for row in rows), messages)


def _foresee(run: Run, tasks: Iterable[Task], coming: dict[int, bool]) -> None:
    """Report what would be done, and remember it for the worlds around."""
    for task in tasks:
        run.done.summaries.append(_change(task, None))
        had = coming.get(task.job.world, False)
        coming[task.job.world] = had or task.job.action != "retired"


def _change(task: Task, made: Id | None) -> SummaryChange:
    job = task.job
    return SummaryChange(
        action=job.action,
        world=task.world.id,
        title=title_of(task.world),
        details=len(job.units),
        summary=task.old if job.action == "retired" else made,
    )


def title_of(world: Node) -> str:
    """Return what the summary of a world is called: as the world is."""
    return world.name or world.type


def _tell(run: Run, summarizer: Summarizer, seen: int, tasks: Sequence[Task]) -> int:
    """Ask for the texts of a batch and write them; return the commit after which all is known.

    Worlds of one batch hold none of each other, so our own commit changes nothing for the rest.
    """
    texts: list[str] = []
    for task in tasks:
        try:
            texts.append(
                told_by(summarizer, title_of(task.world), task.messages, run.limits)
                if task.job.units
                else ""
            )
        except ProviderError as error:
            # What was told so far is kept; a model that fails once will fail again.
            run.done.error = f"{type(error).__name__}: {error}"
            break
    made: list[SummaryChange] = []
    try:
        with run.transaction() as tx:
            kept = set(map(id, tasks)) if tx.follows == seen else _unchanged(run, tasks)
            for task, text in zip(tasks, texts, strict=False):
                if id(task) in kept:
                    made.append(_change(task, _write(tx, task, text, summarizer.name)))
                else:
                    run.done.skipped.append(task.world.id)
    except (RejectedError, InvalidInputError) as error:
        run.done.error = f"{type(error).__name__}: {error}"
        return seen
    run.done.summaries += made
    return run.done.commits[-1] if run.landed(tx) and tx.follows == seen else seen


def _unchanged(run: Run, tasks: Sequence[Task]) -> set[int]:
    """Return which tasks are still what their worlds need; nobody can write from here on."""
    with run.store.read() as reader:
        _, now = run.moment(reader)
        worlds = sorted({task.job.world for task in tasks})
        found = jobs_of(reader, worlds, now, {})
        jobs = {job for group in found.values() for job in group}
        return {id(task) for task in tasks if task.job in jobs}


def _write(tx: Transaction, task: Task, text: str, by: str) -> Id | None:
    """Write, replace or retire one summary."""
    if task.job.action == "retired":
        assert task.old is not None
        tx.retire(task.old)
        return None
    made = tx.create_node(
        type=SUMMARY,
        name=task.world.name,
        content=text,
        parent=task.world.id,
        source=[f"{MADE_BY}{by}", *task.job.sources],
    )
    tx.write_edges(DERIVED, [EdgeDraft(source=made.id, target=ident) for ident in task.details])
    if task.old is not None:
        tx.write_edge("supersedes", made.id, task.old)
    return made.id

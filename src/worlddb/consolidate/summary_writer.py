"""Summary writer: bring the summaries of worlds up to date, inner worlds first, in batches.

Each batch is read on one snapshot. The summarizer, which may ask a model, runs with no lock held.
Then the batch is written in one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from worlddb.consolidate.consolidation_run import ConsolidationRun, SummaryChange
from worlddb.consolidate.summary_plan import MADE_BY, SummaryJob, plan_jobs, worlds_by_height
from worlddb.errors import InvalidInputError, ProviderError, RejectedError
from worlddb.model.address import Id
from worlddb.model.drafts import Message, Summarizer
from worlddb.model.inputs import Limits
from worlddb.model.records import EdgeDraft, Node
from worlddb.ontology.edge_types import LEFT_OUT
from worlddb.query.summary_view import DERIVED, SUMMARY
from worlddb.store.interface import Reader
from worlddb.view.stale_summaries import EndedSentence, ended_sentences
from worlddb.view.trust_levels import TrustLevels
from worlddb.view.visibility import Moment
from worlddb.write.transaction import Transaction

WORLDS_PER_SNAPSHOT = 500
"""Worlds that are planned on one snapshot: a longer read would keep the log from shrinking."""
SUMMARIES_PER_COMMIT = 50  # What a kill can cost, and how long other writers may wait.
UNNAMED_SPEAKER = "user"


class SummaryTask(NamedTuple):
    """A job with everything that writing it needs, so that the store is not read again."""

    job: SummaryJob
    world: Node
    old: Id | None
    details: tuple[tuple[Id, bool], ...]
    """What the summary is derived from, and whether it is left out as less trusted."""
    messages: list[Message]

    @property
    def title(self) -> str:
        """What the summary is about: the name of the world."""
        return self.world.name or self.world.type

    def change(self, made: Id | None) -> SummaryChange:
        """Return the entry of the report; `made` is the summary that was written."""
        return SummaryChange(
            action=self.job.action,
            world=self.world.id,
            title=self.title,
            details=len(self.job.units),
            summary=self.old if self.job.action == "retired" else made,
        )


def write_summaries(run: ConsolidationRun) -> None:
    """Bring the summaries of at most `worlds_max` worlds up to date."""
    with run.store.read() as reader:
        moment, _ = run.moment(reader)
        levels = worlds_by_height(reader, run.scope(reader, moment))
    groups = [
        level[start : start + WORLDS_PER_SNAPSHOT]
        for level in levels
        for start in range(0, len(level), WORLDS_PER_SNAPSHOT)
    ]
    summarizer = run.options.summarizer
    if summarizer is None:
        # Imported here: its English rules are slow to import, and a model may be used instead.
        from worlddb.consolidate.extractive_summarizer import ExtractiveSummarizer

        summarizer = ExtractiveSummarizer()
    room = run.options.worlds_max
    coming: dict[int, bool] = {}
    for group in groups:
        seen, looked, tasks = _read_tasks(run, group, coming, room)
        run.worlds += looked
        room -= len({task.job.world for task in tasks})
        if run.options.dry_run:
            for task in tasks:  # The outer worlds need to know what would be written.
                run.summaries.append(task.change(None))
                world, is_retired = task.job.world, task.job.action == "retired"
                coming[world] = coming.get(world, False) or not is_retired
        else:
            _write_tasks(run, summarizer, seen, tasks)
        if run.error is not None or room <= 0 or looked < len(group):
            break
    run.left = sum(map(len, groups)) - run.worlds


# -- read ------------------------------------------------------------------------------------------


def _read_tasks(
    run: ConsolidationRun, group: Sequence[int], coming: dict[int, bool], room: int
) -> tuple[int, int, list[SummaryTask]]:
    """Return the commit of the snapshot, how many worlds were looked at, and the tasks."""
    with run.store.read() as reader:
        moment, now = run.moment(reader)
        nodes = reader.nodes(group)
        worlds = [row for row in group if nodes[row].type != SUMMARY]
        found = plan_jobs(reader, worlds, now, coming, now - run.options.min_age_micros)
        chosen = list(found)[:room]
        looked = len(group) if len(chosen) == len(found) else group.index(list(found)[room])
        with_texts = not run.options.dry_run
        tasks = [
            _task(reader, job, nodes[row], moment if with_texts else None)
            for row in chosen
            for job in found[row]
        ]
        return reader.head().seq, looked, tasks


def _task(reader: Reader, job: SummaryJob, world: Node, moment: Moment | None) -> SummaryTask:
    """Return a task; its texts are read as of a moment, or left out."""
    rows = sorted(job.rows)
    nodes = reader.nodes(rows)
    left_out = _less_trusted(reader, nodes)
    details = tuple((nodes[row].id, row in left_out) for row in rows)
    old = None if job.old is None else Id(reader.world(job.old).id)
    messages: list[Message] = []
    if moment is not None and job.units:
        nodes = {row: node for row, node in nodes.items() if row not in left_out}
        messages = _messages(reader, job, nodes, moment)
    return SummaryTask(job, world, old, details, messages)


def _less_trusted(reader: Reader, nodes: Mapping[int, Node]) -> set[int]:
    """Return the rows of texts that are less trusted than others beside them.

    A summary would repeat what they say as if it were as good as the rest.
    """
    if not any(node.origins for node in nodes.values()):
        return set()
    levels = TrustLevels(reader)
    said = {row: levels.of(node) for row, node in nodes.items() if node.content}
    return {row for row, level in said.items() if level < max(said.values())}


def _messages(
    reader: Reader, job: SummaryJob, nodes: Mapping[int, Node], moment: Moment
) -> list[Message]:
    """Return the texts of the units, in the order of valid time, without replaced sentences.

    `nodes` are those that are told.
    """
    ended = ended_sentences(reader, job.rows, moment)
    messages = []
    told = [unit for unit in job.units if unit.row in nodes]
    for unit in sorted(told, key=lambda unit: (nodes[unit.row].valid_from, unit.row)):
        node = nodes[unit.row]
        if node.content or not unit.summaries:
            messages.append(_message(_without(node, ended.get(unit.row, ()))))
        for row in (one for one in unit.summaries if one in nodes):
            title = node.name or node.type
            messages.append(Message(text=nodes[row].content, speaker=title, at=node.valid_from))
    return messages


def _without(node: Node, ended: Iterable[EndedSentence]) -> Node:
    """Return a node without the sentences that were replaced; a fact in other words is told."""
    content = node.content
    for fact, _ in ended:
        if fact.content in content:
            content = content.replace(fact.content, "").strip()
        else:
            content += f" [no longer so: {fact.content}]"
    return replace(node, content=content)


def _message(node: Node) -> Message:
    if node.type == "Turn":
        text, speaker = node.content, node.name or UNNAMED_SPEAKER
    else:
        text, speaker = ": ".join(filter(None, (node.name, node.content))), UNNAMED_SPEAKER
    return Message(text=text, speaker=speaker, at=node.valid_from)


# -- ask and write ---------------------------------------------------------------------------------


def _write_tasks(
    run: ConsolidationRun, summarizer: Summarizer, seen: int, tasks: Sequence[SummaryTask]
) -> None:
    """Ask for the texts of tasks and write them, batch by batch, until an error.

    `seen` is the commit that the tasks were read at. No world of a group holds another one of it,
    so the commit of one batch changes nothing for the next.
    """
    for start in range(0, len(tasks), SUMMARIES_PER_COMMIT):
        batch = tasks[start : start + SUMMARIES_PER_COMMIT]
        texts = _texts(run, summarizer, batch)
        made: list[SummaryChange] = []
        try:
            with run.transaction() as tx:
                current = set(map(id, batch)) if tx.follows == seen else _current(run, batch)
                for task, text in zip(batch, texts, strict=False):
                    if id(task) in current:
                        made.append(task.change(_write(tx, task, text, summarizer.name)))
                    else:
                        run.skipped.append(task.world.id)
        except (RejectedError, InvalidInputError) as error:
            run.error = f"{type(error).__name__}: {error}"
            return
        run.summaries += made
        if run.record_commit(tx) and tx.follows == seen:
            seen = run.commits[-1]
        if run.error is not None:
            return


def _texts(
    run: ConsolidationRun, summarizer: Summarizer, tasks: Sequence[SummaryTask]
) -> list[str]:
    """Return the summaries of tasks, in order, up to the first failure of the summarizer."""
    texts: list[str] = []
    for task in tasks:
        try:
            texts.append(_text(summarizer, task, run.limits) if task.job.units else "")
        except ProviderError as error:
            # The texts so far are written. A model that failed once will probably fail again.
            run.error = f"{type(error).__name__}: {error}"
            break
    return texts


def _text(summarizer: Summarizer, task: SummaryTask, limits: Limits) -> str:
    """Return a summary that can be stored; ProviderError if the summarizer gave none."""
    messages = [message for message in task.messages if message.text.strip()]
    text = summarizer.summarize(task.title, messages) if messages else task.title
    if not isinstance(text, str) or not text.strip():
        raise ProviderError(
            f"summarizer {summarizer.name!r} returned no text for {task.title!r:.80}"
        )
    data = text.strip().replace("\0", " ").encode("utf-8", "replace")
    if len(data) > limits.content_bytes_max:
        data = data[: limits.content_bytes_max]
        data = data[: data.rfind(b"\n")] if b"\n" in data else data
    return data.decode("utf-8", "ignore")


def _current(run: ConsolidationRun, tasks: Sequence[SummaryTask]) -> set[int]:
    """Return which tasks still fit their worlds. Called under the write lock."""
    with run.store.read() as reader:
        _, now = run.moment(reader)
        worlds = sorted({task.job.world for task in tasks})
        found = plan_jobs(reader, worlds, now, {}, now - run.options.min_age_micros)
        jobs = {job for group in found.values() for job in group}
        return {id(task) for task in tasks if task.job in jobs}


def _write(tx: Transaction, task: SummaryTask, text: str, summarizer: str) -> Id | None:
    """Write, replace or retire one summary; return the new one."""
    if task.job.action == "retired":
        assert task.old is not None
        tx.retire(task.old)
        return None
    made = tx.create_node(
        type=SUMMARY,
        name=task.world.name,
        content=text,
        parent=task.world.id,
        source=[f"{MADE_BY}{summarizer}", *task.job.sources],
    )
    edges = [
        EdgeDraft(source=made.id, target=ident, metadata={LEFT_OUT: True} if left_out else None)
        for ident, left_out in task.details
    ]
    tx.write_edges(DERIVED, edges)
    if task.old is not None:
        tx.write_edge("supersedes", made.id, task.old)
    return made.id

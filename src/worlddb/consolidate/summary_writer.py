"""Summary writer: brings the summaries of worlds up to date, inner worlds first, in batches.

Each batch is read on one snapshot. The summarizer, which may ask a model, runs with no lock held.
Then the batch is written in one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from worlddb.consolidate.consolidation_run import (
    ConsolidationRun,
    SummaryAction,
    SummaryChange,
    topological_levels,
)
from worlddb.errors import InvalidInputError, ProviderError, RejectedError
from worlddb.model.address import Id
from worlddb.model.inputs import Limits, from_micros
from worlddb.model.records import EdgeDraft, Message, Node, Summarizer
from worlddb.ontology.edge_types import LEFT_OUT
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, InsideRow
from worlddb.view.node_filters import TrustLevels
from worlddb.view.summary_view import (
    DERIVED,
    SUMMARY,
    WHOLE,
    EndedSentence,
    ended_sentences,
    stale_summaries,
    whole_summaries,
)
from worlddb.view.visibility import NAME_TYPES, Moment
from worlddb.write.transaction import Transaction

# Summary plan: which details each summary of a world should cover, and which summaries are stale.
#
# The details of a world are the nodes directly inside it, as children or members, that have a
# content or a name, or whose interior has summaries. A *unit* is a detail with those summaries.
# Details and contents never change, so a summary is up to date if it was derived from exactly the
# units that are there now, and no sentence of them was replaced since.
#
#     nodes inside ──▶ units ──▶ parts (at most `DETAILS_MAX` units each) ──▶ jobs
#
# D1  A world with fewer than two units has no summary.
# D2  A unit stays in the part that covers it; new units fill the last part, then further parts. So
#     an interrupted run continues as if it had not been interrupted.

DETAILS_MAX = 1_000
"""Units of one summary; bounds the input of a summarizer and the work after one change."""
DETAILS_MIN = 2  # a summary of one detail would only repeat it
MADE_BY = "summarizer:"
"""Prefix of the source of every summary by the consolidator; the summarizer's name follows."""
MEMBERSHIP = ("contains",)


class SummaryUnit(NamedTuple):
    """A detail with the summaries of its own interior; `is_moving` if these are about to change."""

    row: int
    summaries: tuple[int, ...]
    is_moving: bool

    @property
    def rows(self) -> set[int]:
        """The rows that a summary of this unit is derived from."""
        return {self.row, *self.summaries}


class SummaryJob(NamedTuple):
    """A summary to write, to refresh or to retire. Equal jobs come from equal worlds."""

    action: SummaryAction
    world: int
    old: int | None
    units: tuple[SummaryUnit, ...] = ()
    depth: int = 0
    """Levels of summaries below this one if it covers its whole world, else 0."""

    @property
    def rows(self) -> set[int]:
        """The rows that the summary is derived from."""
        return {row for unit in self.units for row in unit.rows}

    @property
    def sources(self) -> list[str]:
        """The source that marks a summary of a whole world."""
        return [f"{WHOLE}{self.depth}"] if self.depth else []


def worlds_by_height(reader: Reader, scope: set[int] | None) -> list[list[int]]:
    """Return the worlds of a scope by height: worlds without inner worlds first.

    The root is never among them.
    """
    chosen = {
        row for row in reader.sweep.worlds() if row != ROOT_ROW and (scope is None or row in scope)
    }
    inner: dict[int, set[int]] = {row: set() for row in chosen}
    for row, parent in reader.parents(chosen).items():
        if parent in chosen and parent != row:
            inner[parent].add(row)
    for item in reader.sweep.covers(chosen, MEMBERSHIP):
        inner[item.source].add(item.target)
    return topological_levels(inner)


def plan_jobs(
    reader: Reader, worlds: Sequence[int], now: int, coming: Mapping[int, bool], oldest: int
) -> dict[int, list[SummaryJob]]:
    """Return the jobs of each of some worlds; worlds without a job are left out.

    Details created after `oldest` are too young, unless a summary covers them already. `coming` is
    for a dry run: it maps worlds whose summaries would have changed by now to whether they would
    then have one. A real run reads that from the store.
    """
    inside = _inside(reader, worlds, now)
    rows = [item for items in inside.values() for item in items]
    around = {*worlds, *(item.row for item in rows if item.has_interior or item.row in coming)}
    own: dict[int, list[int]] = {}
    for world, row, ends in reader.sweep.summaries_in(around, MADE_BY):
        if ends is None or ends > now:
            own.setdefault(world, []).append(row)
    ended = {
        body.row
        for body in reader.bodies(worlds)
        if body.valid_to is not None and body.valid_to <= now
    }
    covers: dict[int, set[int]] = {}
    parts = set(chain.from_iterable(own.get(world, ()) for world in worlds))
    for cover in reader.sweep.covers(parts, (DERIVED,)):
        covers.setdefault(cover.source, set()).add(cover.target)
    moment = Moment(from_micros(now), None, None)
    stale = stale_summaries(reader, reader.nodes(parts), moment, deep=False)
    found: dict[int, list[SummaryJob]] = {}
    for world in worlds:
        items = inside.get(world, [])
        covered = {part: covers.get(part, set()) for part in own.get(world, ())}
        grown = set().union(*covered.values())
        grown.update(item.row for item in items if item.created_at <= oldest)
        units = [] if world in ended else _units(items, own, now, coming)
        jobs = _jobs(world, [unit for unit in units if unit.row in grown], covered, stale)
        if jobs:
            found[world] = [_with_depth(reader, job, items, units, now) for job in jobs]
    return found


def _inside(reader: Reader, worlds: Sequence[int], now: int) -> dict[int, list[InsideRow]]:
    """Return the nodes directly inside worlds, without consolidator summaries of other worlds.

    A membership that begins later does not count yet.

    A summary counts only in the world it lives in. If it also counted where it is a member, two
    worlds could refresh each other's summaries forever.
    """
    found = reader.sweep.inside(worlds)
    later = {
        (item.source, item.target)
        for item in reader.sweep.covers(worlds, MEMBERSHIP)
        if item.valid_from > now
    }
    found = [item for item in found if not item.is_member or (item.world, item.row) not in later]
    guests = {item.row for item in found if item.is_member and item.type == SUMMARY}
    guests &= reader.sweep.noted(guests, MADE_BY).keys()
    inside: dict[int, list[InsideRow]] = {}
    for item in found:
        if item.row not in guests or not item.is_member:
            inside.setdefault(item.world, []).append(item)
    return inside


def _units(
    rows: Iterable[InsideRow], own: Mapping[int, list[int]], now: int, coming: Mapping[int, bool]
) -> list[SummaryUnit]:
    """Return the units of a world, in the order of writing."""
    units: dict[int, SummaryUnit] = {}
    for item in rows:
        if not _is_live(item, now) or item.row in own.get(item.world, ()):
            continue
        is_moving = item.row in coming
        summaries = () if is_moving else tuple(own.get(item.row, ()))
        has_text = item.has_content or (item.has_name and item.type not in NAME_TYPES)
        if has_text or summaries or coming.get(item.row):
            units[item.row] = SummaryUnit(item.row, summaries, is_moving)
    return [units[row] for row in sorted(units)]


def _is_live(item: InsideRow, now: int) -> bool:
    if item.valid_to is not None and item.valid_to <= now:
        return False
    return not item.is_member or item.member_to is None or item.member_to > now


def _jobs(
    world: int, units: Sequence[SummaryUnit], parts: Mapping[int, set[int]], stale: set[int]
) -> list[SummaryJob]:
    """Return the jobs of a world: parts to write, refresh or retire.

    `parts` maps the existing summaries to the rows that each is derived from.
    """
    if len(units) < DETAILS_MIN:
        return [SummaryJob("retired", world, part) for part in parts]
    kept: dict[int, list[SummaryUnit]] = {part: [] for part in parts}
    rest: list[SummaryUnit] = []
    for unit in units:
        home = next((part for part, covered in parts.items() if unit.row in covered), None)
        (rest if home is None else kept[home]).append(unit)
    if parts:
        last = kept[list(parts)[-1]]
        room = max(0, DETAILS_MAX - len(last))
        last += rest[:room]
        rest = rest[room:]
    jobs = []
    for part, covered_units in kept.items():
        job = SummaryJob("refreshed", world, part, tuple(covered_units))
        if not covered_units:
            jobs.append(SummaryJob("retired", world, part))
        elif (
            part in stale  # The details are the same, but a sentence of one was replaced.
            or any(unit.is_moving for unit in covered_units)
            or job.rows != parts[part]
        ):
            jobs.append(job)
    groups = [rest[at : at + DETAILS_MAX] for at in range(0, len(rest), DETAILS_MAX)]
    return jobs + [SummaryJob("written", world, None, tuple(group)) for group in groups]


def _with_depth(
    reader: Reader,
    job: SummaryJob,
    rows: Sequence[InsideRow],
    units: Sequence[SummaryUnit],
    now: int,
) -> SummaryJob:
    """Return the job with its depth if its summary will cover everything inside the world."""
    if job.action == "retired" or len(job.units) < len(units) or any(it.is_moving for it in units):
        return job
    if any(item.is_member for item in rows):
        return job  # A change of a member does not change the state of this world.
    covered = {unit.row for unit in units}
    worlds = [item.row for item in rows if item.has_interior]
    whole = whole_summaries(reader, worlds, now) if worlds else {}
    for item in rows:
        if item.has_interior:
            if item.row not in whole or item.row not in covered:
                return job
        # The summary that this job replaces is live, but not a unit.
        elif _is_live(item, now) and item.row not in covered and item.row != job.old:
            return job
    if reader.sweep.covers([item.row for item in rows], MEMBERSHIP):
        return job
    # A summary that a caller wrote may cover nodes outside this world.
    others = [item.row for item in rows if item.type == SUMMARY and item.row in covered]
    if not {item.target for item in reader.sweep.covers(others, (DERIVED,))} <= job.rows:
        return job
    return job._replace(depth=1 + max((depth for _, depth in whole.values()), default=0))


# Summary writer.

WORLDS_PER_SNAPSHOT = 500
"""Worlds planned on one snapshot: a longer read would keep the log from shrinking."""
SUMMARIES_PER_COMMIT = 50  # bounds the loss by a kill and the wait of other writers
UNNAMED_SPEAKER = "user"


class SummaryTask(NamedTuple):
    """A job with everything needed to write it, so that the store is not read again."""

    job: SummaryJob
    world: Node
    old: Id | None
    details: tuple[tuple[Id, bool], ...]
    """The details, and for each whether it is left out as less trusted."""
    messages: list[Message]

    @property
    def title(self) -> str:
        """The name of the world."""
        return self.world.name or self.world.type

    def change(self, made: Id | None) -> SummaryChange:
        """Return the entry of the report; `made` is the new summary."""
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
        # Imported here, because its English rules are slow to import and a model may be used
        # instead.
        from worlddb.consolidate.extractive_summarizer import ExtractiveSummarizer

        summarizer = ExtractiveSummarizer()
    room = run.options.worlds_max
    coming: dict[int, bool] = {}
    for group in groups:
        seen, looked, tasks = _read_tasks(run, group, coming, room)
        run.worlds += looked
        room -= len({task.job.world for task in tasks})
        if run.options.dry_run:
            for task in tasks:  # The plan of outer worlds depends on it.
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
    """Return the commit of the snapshot, the number of worlds read, and the tasks."""
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
    """Return a task with its texts as of a moment, or without texts."""
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

    A summary would repeat them without their mark.
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

    `nodes` are the units to include.
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
    """Return a node without its replaced sentences; a fact in other words stays."""
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
    """Get the texts of tasks and write them, batch by batch, until an error.

    `seen` is the commit that the tasks were read at. No world of a group contains another one of
    it, so the commit of one batch does not affect the next.
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
    """Return the tasks that still fit their worlds; called under the write lock."""
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

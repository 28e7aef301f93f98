"""Benchmark run: asks the questions of a plan that have no record yet, and reports on all of them.

    plan ──▶ questions without a record ──run_works──▶ folder ──▶ summary, report

    retrieval   in processes, because conversations are independent computations
    qa          in threads, because most of the time is spent waiting for models

The number of workers affects only the order and the times of records. If a model fails, the record
of its question has the error; many failures in a row end the run.
"""

from __future__ import annotations

import os
import queue
import random
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing import get_context, parent_process
from typing import Any, NamedTuple

from worlddb import WorldDB
from worlddb.errors import ProviderError, StorageError
from worlddb.evaluate.benchmark_cases import Case, GoldQuestion, RunSettings
from worlddb.evaluate.case_recall import StoredCase, ask, write_case
from worlddb.evaluate.data_sets import load_cases
from worlddb.evaluate.figure_summary import Summary, summarise
from worlddb.evaluate.model_answers import Roles, answer
from worlddb.evaluate.question_plan import CaseWork, PlannedQuestion, QuestionPlan, works_of
from worlddb.evaluate.run_folder import RunFolder
from worlddb.evaluate.run_report import machine_description, write_report

FAILURES_IN_A_ROW_MAX = 10  # an endpoint that is down fails every time
AHEAD = 2  # conversations queued for each worker, so that none is idle

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run: its records, its figures, and the questions at which a model failed."""

    records: list[dict[str, Any]]
    summary: Summary
    failed: dict[str, str] = field(default_factory=dict)
    is_report_kept: bool = False
    """Whether the folder has a report of more questions, which was left as it was."""


def questions_left(
    data: str, settings: RunSettings, *, plan: QuestionPlan, out: str | None
) -> list[PlannedQuestion]:
    """Return the questions of a plan without a record in the folder of a run."""
    done = RunFolder(out, settings, data).done
    return [one for one in plan.questions if one.id not in done]


class BenchmarkRow(NamedTuple):
    """One of several runs over the same questions; `out` is its folder."""

    settings: RunSettings
    out: str | None


def run_benchmark(
    data: str,
    settings: RunSettings,
    roles: Roles | None,
    *,
    plan: QuestionPlan,
    out: str | None = None,
    workers: int = 1,
    on_begin: Callable[[int], None] = lambda left: None,
    on_done: Callable[[int], None] = lambda done: None,
    more: Callable[[], Mapping[str, str]] = dict,
) -> Finished:
    """Ask the questions of a plan that have no record yet; report on all of them.

    `out` is the folder of the run; `more` has further rows for the report's table of settings.
    """
    folder = RunFolder(out, settings, data)
    folder.begin(plan.description, [one.id for one in plan.questions])
    left = [one for one in plan.questions if one.id not in folder.done]
    on_begin(len(left))
    works = works_of(load_cases(data, settings.benchmark), left)
    for number, record in enumerate(run_works(works, settings, roles, workers=workers), 1):
        folder.add(record)
        on_done(number)
    return _finished(folder, plan, more)


def run_rows(
    data: str,
    rows: Sequence[BenchmarkRow],
    *,
    plan: QuestionPlan,
    workers: int = 1,
    on_begin: Callable[[int], None] = lambda left: None,
    on_done: Callable[[int], None] = lambda done: None,
) -> list[Finished]:
    """Do several runs without models, conversation by conversation.

    Runs with equal settings of writing share a store, because writing takes longer than asking.
    """
    folders = [RunFolder(row.out, row.settings, data) for row in rows]
    ids = [one.id for one in plan.questions]
    for folder in folders:
        folder.begin(plan.description, ids)
    lacking = [ident for folder in folders for ident in ids if ident not in folder.done]
    on_begin(len(lacking))
    wanted = set(lacking)
    left = [one for one in plan.questions if one.id in wanted]
    done = 0
    all_settings = [row.settings for row in rows]
    works = works_of(load_cases(data, all_settings[0].benchmark), left)
    for number, record in _in_processes(works, all_settings, workers):
        if record["id"] not in folders[number].done:
            folders[number].add(record)
            done += 1
            on_done(done)
    return [_finished(folder, plan, machine_description) for folder in folders]


def _finished(
    folder: RunFolder, plan: QuestionPlan, more: Callable[[], Mapping[str, str]]
) -> Finished:
    """Return a run whose questions were asked; write its report."""
    ids = [one.id for one in plan.questions]
    records = folder.finish(ids)
    finished = Finished(
        records=records,
        summary=summarise(records),
        failed={name: folder.failed[name]["error"] for name in ids if name in folder.failed},
        is_report_kept=folder.is_fuller(ids),
    )
    if folder.path is not None and not finished.is_report_kept:
        told = {
            "done": f"{len(records)} of {len(ids)}, {len(finished.failed)} failed",
            **{name: f"{value:,.1f}" for name, value in finished.summary.spent.items()},
        }
        told |= more()
        part = plan.description if plan.is_part else ""
        write_report(
            *(folder.path, folder.run, finished.summary, records, told),
            part=part,
            failed=finished.failed,
        )
        folder.report_written(ids)
    return finished


def run_works(
    works: Iterable[CaseWork], settings: RunSettings, roles: Roles | None, *, workers: int = 1
) -> Iterator[Record]:
    """Yield the record of each question as soon as it is ready."""
    if roles is None:
        for _, record in _in_processes(works, [settings], workers):
            yield record
        return
    failures = 0
    for record in _in_threads(works, settings, roles, workers):
        yield record
        failures = failures + 1 if "error" in record else 0
        if failures == FAILURES_IN_A_ROW_MAX:
            raise ProviderError(
                f"{failures} questions in a row failed; the last: {record['error']}"
            )


def _in_processes(
    works: Iterable[CaseWork], rows: Sequence[RunSettings], workers: int
) -> Iterator[tuple[int, Record]]:
    """Yield each record with the index of its row."""
    if workers == 1:
        for work in works:
            yield from retrieve(rows, work)
        return
    left = iter(works)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_follow_parent)
    try:
        waiting: set[Future[list[tuple[int, Record]]]] = set()
        while True:
            for work in islice(left, workers * AHEAD - len(waiting)):
                waiting.add(pool.submit(_retrieve_there, rows, work))
            if not waiting:
                break
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield from future.result()
    except BrokenExecutor:
        raise StorageError(
            "a worker was killed, perhaps for lack of memory; what is done is kept: run the same "
            "command again, with fewer --workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _retrieve_there(rows: Sequence[RunSettings], work: CaseWork) -> list[tuple[int, Record]]:
    """Run `retrieve` in a worker process; errors are returned as text."""
    try:
        return list(retrieve(rows, work))
    except ProviderError as error:
        raise ProviderError(str(error)) from None


def _follow_parent() -> None:
    """End this process when its parent ends, even if the parent is killed."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="worlddb-parent", daemon=True).start()


def retrieve(rows: Sequence[RunSettings], work: CaseWork) -> Iterator[tuple[int, Record]]:
    """Yield the records of a conversation whose questions are not answered, with their rows.

    Rows that differ only in how they ask share a store. In a store without accepted classes, rows
    with and without classes have the same ranks.
    """
    left = list(enumerate(rows))
    while left:
        first = left[0][1]
        alike = [(number, one) for number, one in left if one.written() == first.written()]
        left = [one for one in left if one not in alike]
        with _store(first) as db:
            stored = write_case(db, work.case, first, None)
            has_classes = bool(db.proposals("accepted"))
            asked: list[tuple[RunSettings, list[Record]]] = []
            for number, settings in alike:
                same = settings if has_classes else replace(settings, classes=True)
                before = next((found for one, found in asked if one == same), None)
                found: list[Record] = []
                asked.append((same, found))
                _warm(db, settings)
                for at, place in enumerate(work.wanted):
                    question = work.case.questions[place]
                    ranks = before and before[at]
                    found.append(ranks or _ranks(db, work.case, question, stored, settings))
                    yield number, _record(work, question, stored) | found[-1]


def _store(settings: RunSettings) -> WorldDB:
    """Return an empty store. Blinds are the same in every run, because ids break ties."""
    drawn = random.Random(settings.seed).randbytes
    return WorldDB(
        ":memory:",
        embedder=settings.make_embedder(),
        pooling=settings.pooling,
        random_bytes=drawn,
    )


def _warm(db: WorldDB, settings: RunSettings) -> None:
    """Load what the first question would load, so that question times exclude it."""
    db.recall("hello", k=1, settings=settings.recall_settings())


def _record(work: CaseWork, question: GoldQuestion, stored: StoredCase) -> Record:
    return {
        "id": question.id,
        "conversation": work.number,
        "category": question.category,
        "question": question.text,
        "asked_at": work.case.asked_at(question).isoformat(),
        "reference": question.reference,
        "has_answer": question.has_answer,
        "gold": {
            "sessions": sorted(question.sessions),
            "turns": sorted(map(list, question.turns)),
            **({"missing": question.gold_missing} if question.gold_missing else {}),
        },
        "write_s": stored.seconds,
        "sessions": len(work.case.sessions),
        "sessions_unread": stored.unread,
    }


def _ranks(
    db: WorldDB, case: Case, question: GoldQuestion, stored: StoredCase, settings: RunSettings
) -> Record:
    """Return the ranks of a question's gold, if it has any, and the confidence of the recall."""
    if not settings.measures_retrieval or (question.has_answer and not question.is_measured):
        return {}
    recall = settings.recall_settings()
    return ask(db, question, stored.turns(), recall, at=case.asked_at(question))


class _End:
    """Marks the end of a conversation, with the error that ended it, if any."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def _in_threads(
    works: Iterable[CaseWork], settings: RunSettings, roles: Roles, workers: int
) -> Iterator[Record]:
    left = iter(works)
    out: queue.SimpleQueue[Record | _End] = queue.SimpleQueue()
    talks = ThreadPoolExecutor(workers, thread_name_prefix="worlddb-case")
    asking = ThreadPoolExecutor(workers, thread_name_prefix="worlddb-question")

    def do(work: CaseWork) -> None:
        try:
            _converse(work, settings, roles, asking, out)
        except BaseException as error:
            out.put(_End(error))
        else:
            out.put(_End())

    open_works = 0
    try:
        while True:
            for work in islice(left, workers - open_works):
                talks.submit(do, work)
                open_works += 1
            if not open_works:
                return
            got = out.get()
            if isinstance(got, dict):
                yield got
                continue
            open_works -= 1
            if got.error is not None:
                raise got.error
    finally:
        roles.calls.is_stopped = True
        talks.shutdown(cancel_futures=True)
        asking.shutdown(cancel_futures=True)
        roles.calls.is_stopped = False


def _converse(
    work: CaseWork,
    settings: RunSettings,
    roles: Roles,
    asking: ThreadPoolExecutor,
    out: queue.SimpleQueue[Record | _End],
) -> None:
    """Write a conversation, ask its questions in parallel, and yield a record for each."""
    case = work.case
    with _store(settings) as db:
        try:
            with roles.calls.counting() as spent:
                stored = write_case(db, case, settings, roles.make_reader())
        except ProviderError as error:
            for place in work.wanted:
                out.put(_failure(case.questions[place], error))
            return
        reading = {
            "reading_tokens": {role: list(counts) for role, counts in spent.tokens.items()},
            "reading_requests": spent.requests,
            "readings_cut": spent.cut,
        }
        _warm(db, settings)

        def one(question: GoldQuestion) -> None:
            try:
                out.put(
                    _record(work, question, stored)
                    | reading
                    | _ranks(db, case, question, stored, settings)
                    | {"qa": answer(db, case, question, stored, settings, roles)}
                )
            except ProviderError as error:
                out.put(_failure(question, error))

        for future in [asking.submit(one, case.questions[place]) for place in work.wanted]:
            future.result()


def _failure(question: GoldQuestion, error: ProviderError) -> Record:
    return {
        "id": question.id,
        "category": question.category,
        "question": question.text,
        "error": str(error),
    }

"""Running: many conversations at once, and their records as they come.

    retrieval   processes: each conversation is computation, and one has nothing to do with another
    qa          threads: most of the time is waiting for models; the questions of one conversation
                are asked side by side, too

However many workers, the records are the same; only their order and their times differ. A model
that fails makes an error of the question it failed at; too many in a row end the run.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from itertools import islice
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

from worlddb.errors import ProviderError, StorageError
from worlddb.evaluate.answering import Roles, answer
from worlddb.evaluate.cases import Asked, Case, asked_at
from worlddb.evaluate.plan import Work
from worlddb.evaluate.retrieval import ask, is_measured
from worlddb.evaluate.settings import RunSettings
from worlddb.evaluate.writing import Written, write_case
from worlddb.world_db import WorldDB

if TYPE_CHECKING:
    from worlddb.model.drafts import Extractor

FAILURES_IN_A_ROW_MAX = 10
AHEAD = 2
"""How many conversations wait for each worker."""

Record = dict[str, Any]


def run(
    works: Iterable[Work], settings: RunSettings, roles: Roles | None, *, workers: int = 1
) -> Iterator[Record]:
    """Yield a record for each question, as soon as it is there.

    Raises:
        ProviderError: the embedder failed, or models failed too often in a row.
    """
    if roles is None:
        yield from _in_processes(works, settings, workers)
        return
    failures = 0
    for record in _in_threads(works, settings, roles, workers):
        yield record
        failures = failures + 1 if "error" in record else 0
        if failures == FAILURES_IN_A_ROW_MAX:
            raise ProviderError(
                f"{failures} questions in a row failed; the last: {record['error']}"
            )


# -- processes -------------------------------------------------------------------------------------


def _in_processes(works: Iterable[Work], settings: RunSettings, workers: int) -> Iterator[Record]:
    if workers == 1:
        for work in works:
            yield from retrieve(settings, work)
        return
    left = iter(works)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_follow_parent)
    try:
        waiting: set[Future[list[Record]]] = set()
        while True:
            for work in islice(left, workers * AHEAD - len(waiting)):
                waiting.add(pool.submit(_retrieve_there, settings, work))
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


def _retrieve_there(settings: RunSettings, work: Work) -> list[Record]:
    """Do it in a worker; what goes wrong has to travel back as plain text."""
    try:
        return retrieve(settings, work)
    except ProviderError as error:
        raise ProviderError(str(error)) from None


def _follow_parent() -> None:
    """End this process with the one that started it, even if that is killed."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, name="worlddb-parent", daemon=True).start()


def retrieve(settings: RunSettings, work: Work) -> list[Record]:
    """Return the records of a conversation whose questions are only looked up."""
    with WorldDB(":memory:", embedder=settings.make_embedder(), pooling=settings.pooling) as db:
        written = write_case(db, work.case, settings, reader_of(settings, None))
        _warm(db, settings)
        return [
            _record(work, work.case.questions[place], written)
            | _ranks(db, work.case, work.case.questions[place], written, settings)
            for place in work.wanted
        ]


def reader_of(settings: RunSettings, roles: Roles | None) -> Extractor | None:
    """Return what reads conversations; None if turns are only kept."""
    if settings.reading == "model" and roles is not None:
        return roles.make_extractor()
    if settings.reading == "verbatim":
        return None
    from worlddb.extract import extractor_named

    return extractor_named("rules")


def _warm(db: WorldDB, settings: RunSettings) -> None:
    """Pay for what the first question to a store pays once; it is not what a question costs."""
    db.recall("hello", k=1, settings=settings.recall_settings())


def _record(work: Work, question: Asked, written: Written) -> Record:
    return {
        "id": question.id,
        "conversation": work.number,
        "category": question.category,
        "question": question.text,
        "asked_at": asked_at(work.case, question).isoformat(),
        "reference": question.reference,
        "has_answer": question.has_answer,
        "gold": {
            "sessions": sorted(question.sessions),
            "turns": sorted(map(list, question.turns)),
            **({"missing": question.gold_missing} if question.gold_missing else {}),
        },
        "write_s": written.seconds,
        "sessions": len(work.case.sessions),
        "sessions_unread": written.unread,
    }


def _ranks(
    db: WorldDB, case: Case, question: Asked, written: Written, settings: RunSettings
) -> Record:
    """Return where the gold of a question ranks, if there is any."""
    if not settings.measures_retrieval or not is_measured(question):
        return {}
    found = ask(
        db, question, written.turns(), settings.recall_settings(), at=asked_at(case, question)
    )
    return {
        "figures": found.figures,
        "recall_s": found.seconds,
        "hits": found.hits,
        "evidence_ranks": found.evidence,
    }


# -- threads ---------------------------------------------------------------------------------------


class _End:
    """That a conversation is done, or what has stopped it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def _in_threads(
    works: Iterable[Work], settings: RunSettings, roles: Roles, workers: int
) -> Iterator[Record]:
    left = iter(works)
    out: queue.SimpleQueue[Record | _End] = queue.SimpleQueue()
    talks = ThreadPoolExecutor(workers, thread_name_prefix="worlddb-case")
    asking = ThreadPoolExecutor(workers, thread_name_prefix="worlddb-question")

    def do(work: Work) -> None:
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
    work: Work,
    settings: RunSettings,
    roles: Roles,
    asking: ThreadPoolExecutor,
    out: queue.SimpleQueue[Record | _End],
) -> None:
    """Write a conversation, ask its questions side by side, and hand out what comes of each."""
    case = work.case
    with WorldDB(":memory:", embedder=settings.make_embedder(), pooling=settings.pooling) as db:
        try:
            with roles.calls.counting() as spent:
                written = write_case(db, case, settings, reader_of(settings, roles))
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

        def one(question: Asked) -> None:
            try:
                out.put(
                    _record(work, question, written)
                    | reading
                    | _ranks(db, case, question, written, settings)
                    | {"qa": answer(db, case, question, written, settings, roles)}
                )
            except ProviderError as error:
                out.put(_failure(question, error))

        for future in [asking.submit(one, case.questions[place]) for place in work.wanted]:
            future.result()


def _failure(question: Asked, error: ProviderError) -> Record:
    return {
        "id": question.id,
        "category": question.category,
        "question": question.text,
        "error": str(error),
    }

"""Consolidating in the background: it runs, it tells, it survives, and it stops."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from consolidate.stage import Noting, fact, open_store, summaries, world
from patience import PATIENCE_S
from worlddb import InvalidInputError, Message, ProviderError, WorldDB
from worlddb.consolidate.consolidator import Background, BackgroundRun

NEVER_S = 1e9


class Watched(Background):
    """A background whose runs can be waited for."""

    def __init__(self, db: WorldDB, every_s: float = NEVER_S, **options: Any) -> None:
        self.told: Queue[BackgroundRun] = Queue()
        super().__init__(db, every_s, on_run=self.told.put, **{"min_age": 0} | options)

    def next(self) -> BackgroundRun:
        return self.told.get(timeout=PATIENCE_S)


def test_it_consolidates_at_once_and_when_woken(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as db:
        tesla = world(db, "Tesla", ["a", "b"])
        with Watched(db) as background:
            assert background.is_running
            first = background.next()
            assert first.report is not None
            assert (first.error, first.report.written) == (None, 1)
            fact(db, "c", tesla)
            background.wake()
            second = background.next()
            assert second.report is not None
            assert second.report.refreshed == 1
        assert not background.is_running
        assert list(background.runs) == [first, second]


def test_it_comes_again_by_itself() -> None:
    with open_store() as db, Watched(db, 0.001) as background:
        for _ in range(3):
            assert background.next().error is None


def test_what_is_as_old_as_the_pause_is_summarised() -> None:
    done = threading.Event()

    def listen(run: BackgroundRun) -> None:
        if run.report is not None and run.report.written:
            done.set()

    with open_store() as db:
        world(db, "Tesla", ["a", "b"])
        with Background(db, 0.01, on_run=listen):
            assert done.wait(PATIENCE_S)


def test_what_a_limit_cut_short_goes_on_at_once() -> None:
    with open_store() as db:
        for number in range(5):
            world(db, f"world {number}", ["a", "b"])
        with Watched(db, worlds_max=2) as background:
            left = []
            for _ in range(3):
                report = background.next().report
                assert report is not None
                left.append(report.left)
        assert left == [3, 1, 0]


class Flaky(Noting):
    """Fails the first time, in a way nobody foresaw."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return super().summarize(title, messages)


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), ProviderError("asleep")])
def test_what_goes_wrong_is_told_and_the_next_run_works(error: Exception) -> None:
    with open_store() as db:
        tesla = world(db, "Tesla", ["a", "b"])
        with Watched(db, summarizer=Flaky(error)) as background:
            failed = background.next()
            told = failed.error or (failed.report.error if failed.report else None)
            assert told == f"{type(error).__name__}: {error}"
            background.wake()
            assert background.next().error is None
        assert len(summaries(db, tesla)) == 1


def test_a_listener_that_fails_does_not_end_it() -> None:
    done = threading.Event()

    def listen(run: BackgroundRun) -> None:
        if len(background.runs) > 2:
            done.set()
        raise RuntimeError("no")

    with open_store() as db:
        background = Background(db, 0.001, on_run=listen)
        with background:
            assert done.wait(PATIENCE_S)
        assert "on_run: RuntimeError: no" in [run.error for run in background.runs]


def test_it_stops_in_the_middle_of_a_run_and_keeps_what_was_made() -> None:
    class Stopping(Noting):
        """Asks for the stop itself, so that it comes in the middle."""

        def summarize(self, title: str, messages: Sequence[Message]) -> str:
            if len(self.asked) == 1:
                background._stop.set()
            return super().summarize(title, messages)

    with open_store() as db:
        worlds = [world(db, f"world {number}", ["a", "b"]) for number in range(5)]
        background = Watched(db, summarizer=Stopping())
        background.start()
        report = background.next().report
        background.stop()
        assert report is not None
        assert report.written == 2
        assert "stopped" in str(report.error)
        assert sum(len(summaries(db, it)) for it in worlds) == 2
        assert db.consolidate().written == 3


def test_stopping_does_not_wait_for_the_next_time_and_may_be_repeated() -> None:
    with open_store() as db:
        background = Watched(db)
        background.stop()
        for _ in range(2):
            background.start()
            background.start()
            background.next()
            background.stop()
            background.stop()
            assert not background.is_running


def test_a_closed_store_is_told_as_an_error() -> None:
    db = open_store()
    db.close()
    with Watched(db) as background:
        assert "closed" in str(background.next().error)


@pytest.mark.parametrize("every_s", [0, -1, "often", True, float("nan")])
def test_it_has_to_rest_sometimes(every_s: Any) -> None:
    with open_store() as db, pytest.raises(InvalidInputError, match="every_s"):
        Background(db, every_s)

"""Background: consolidate again and again on a thread of its own, until told to stop."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.drafts import Message, Summarizer
from worlddb.model.records import Plain
from worlddb.sleep.extractive import ExtractiveSummarizer
from worlddb.sleep.report import ConsolidationReport

EVERY_S = 3_600.0
MIN_AGE_S = 3_600.0
KEPT_MAX = 100


class Consolidates(Protocol):
    """An open store; `WorldDB` is one."""

    @property
    def consolidate(self) -> Callable[..., ConsolidationReport]:
        """Run once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundRun(Plain):
    """One run in the background: what it did, or why it failed, and how long it took."""

    report: ConsolidationReport | None = None
    error: str | None = None
    seconds: float = 0.0


class _Stoppable:
    """A summarizer that says no once it is time to stop; what it made so far is kept."""

    def __init__(self, summarizer: Summarizer, stop: threading.Event) -> None:
        self._summarizer = summarizer
        self._stop = stop
        self.name = summarizer.name

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary, unless it is time to stop.

        Raises:
            ProviderError: it is, or the summarizer failed.
        """
        if self._stop.is_set():
            raise ProviderError("stopped; the next run goes on from here")
        return self._summarizer.summarize(title, messages)


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"


class Background:
    """Consolidates a store every `every_s` seconds, and at once where a run was cut short.

    `options` go to `db.consolidate`; worlds have to be an hour old unless they say otherwise. What
    goes wrong is in `runs` and never ends the thread; `on_run` is called with each run, on that
    thread. `with Background(db):` starts and stops it; stop it before the store is closed.

    Raises:
        InvalidInputError: `every_s` is no positive number.
    """

    def __init__(
        self,
        db: Consolidates,
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
        self._options = {"min_age": MIN_AGE_S} | options
        self._stop = threading.Event()
        self._summarizer = _Stoppable(summarizer or ExtractiveSummarizer(), self._stop)
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._on_run = on_run
        self.runs: deque[BackgroundRun] = deque(maxlen=KEPT_MAX)
        """What the last hundred runs did, oldest first."""

    @property
    def is_running(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin; the first run is at once. Starting twice does nothing."""
        if self.is_running:
            return
        self._stop.clear()
        self._thread = threading.Thread(target=self._work, name="worlddb-sleep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, after the summary that is being made; what was made so far is written."""
        self._stop.set()
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def wake(self) -> None:
        """Run now instead of waiting for the next time."""
        self._wake.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        while True:
            self._wake.clear()
            if self._stop.is_set():  # After clearing: a stop must not be slept through.
                return
            run = self._once()
            self.runs.append(run)
            try:
                self._on_run(run)
            except Exception as problem:
                self.runs.append(BackgroundRun(error=f"on_run: {_told(problem)}"))
            # What a limit cut short goes on at once; what failed waits like everything else.
            goes_on = run.report is not None and (run.report.left or run.report.edges_left)
            if not goes_on or run.report is None or not run.report.commits:
                self._wake.wait(self._every_s)

    def _once(self) -> BackgroundRun:
        began = time.monotonic()
        report, error = None, None
        try:
            report = self._db.consolidate(summarizer=self._summarizer, **self._options)
        except Exception as problem:
            # Whatever a model, a handler or a disk raises: it is told, and the next run may work.
            error = _told(problem)
        return BackgroundRun(report=report, error=error, seconds=time.monotonic() - began)

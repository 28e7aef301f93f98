"""Background consolidator: consolidate a store again and again, on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from worlddb.consolidate.consolidation_run import ConsolidationReport
from worlddb.consolidate.extractive_summarizer import ExtractiveSummarizer
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.drafts import Message, Summarizer
from worlddb.model.records import Plain

EVERY_S = 3_600.0  # Hourly: summaries are for later.
MIN_AGE_S = 3_600.0  # A world that is still being written would get a new summary in every run.
RUNS_KEPT = 100  # A few days of runs at the default interval, for a person who looks for an error.


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

    `options` go to `db.consolidate`; `min_age` is one hour unless given. Errors are recorded in
    `runs` and never end the thread. `on_run` is called after each run, on that thread. `with
    Background(db):` starts and stops the thread; stop it before the store is closed.

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
        self._options = {"min_age": MIN_AGE_S} | options
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

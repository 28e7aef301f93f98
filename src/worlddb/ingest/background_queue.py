"""Background queue: work that follows commits and that no caller waits for. One thread.

Nodes that are put under the same key before their turn comes are worked on together. After each
piece of work the thread rests, several times as long as the work took. So under load more nodes
come together, and callers keep most of the processor time. While somebody waits or closes, the
thread does not rest.

`wait` returns when everything is done. `close`, and the end of the process, wait for a moment only:
what is not done by then is dropped, and `done` says so.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from worlddb.model.address import Id
from worlddb.model.records import Plain, Proposal

KEPT_MAX = 100  # Results kept for `db.reclustered`; bounds memory.
TOGETHER_MAX = 64
"""Puts that are worked on together at most, so that no snapshot is held for long."""
RESTS = 9
"""The thread rests this many times as long as it worked: a tenth of the time is for the work."""
REST_S_MAX = 5.0  # A long piece of work must not put off the next one for minutes.
IDLE_S = 0.2
"""How long an idle thread waits for more. A process that ends without closing waits as long."""
CLOSING_S_MAX = 1.0
"""How long closing, or the end of the process, waits for work that was put."""
THREAD_NAME = "worlddb-background"

_Item = TypeVar("_Item")
Nodes = tuple[Id, ...]
Work = Callable[[Sequence[Nodes]], list[Proposal]]


class LeftError(Exception):
    """Work was dropped: the store is closed, or the process ends, and nobody waits longer."""

    def __init__(self) -> None:
        super().__init__("the store was closed first; db.recluster(nodes) does it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclustered(Plain):
    """What looking again at a neighbourhood found, or why it failed."""

    nodes: tuple[Id, ...]
    proposals: tuple[Proposal, ...] = ()
    error: str | None = None


@dataclass(eq=False, slots=True)
class _Task:
    work: Work
    puts: list[Nodes] = field(default_factory=list)
    is_done: bool = False


class BackgroundQueue:
    """The queue of one open store."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._waiting: dict[Hashable, deque[_Task]] = {}
        self._running: _Task | None = None
        self._thread: threading.Thread | None = None
        self._hurried = 0
        self._closed = False
        self._until: float | None = None
        self.done: deque[Reclustered] = deque(maxlen=KEPT_MAX)

    def put(self, key: Hashable, nodes: Nodes, work: Work) -> None:
        """Do some work on nodes, after all other keys that wait already.

        `work` is called once with everything that was put under its key meanwhile. Its result or
        error is added to `done`. A closed queue does nothing.
        """
        with self._state:
            if self._closed:
                return
            tasks = self._waiting.setdefault(key, deque())
            if not tasks or len(tasks[-1].puts) >= TOGETHER_MAX:
                tasks.append(_Task(work))
            tasks[-1].puts.append(nodes)
            if self._thread is None:
                # No daemon: a process that ends without closing still does what it has time for.
                self._thread = threading.Thread(target=self._run, name=THREAD_NAME)
                self._thread.start()
            self._state.notify_all()

    @property
    def waiting(self) -> int:
        """How many pieces of work wait or are being done."""
        with self._state:
            return sum(map(len, self._waiting.values())) + (self._running is not None)

    def _run(self) -> None:
        while (task := self._next()) is not None:
            started = time.monotonic()
            done = _done(task)
            took_s = time.monotonic() - started
            with self._state:
                self.done.append(done)
                task.is_done, self._running = True, None
                self._state.notify_all()
                self._rest(min(RESTS * took_s, REST_S_MAX))

    def _next(self) -> _Task | None:
        """Take the task that waits longest; if none comes, end the thread and return None."""
        with self._state:
            self._state.wait_for(lambda: self._waiting or self._closed, IDLE_S)
            if self._waiting and self.is_over():
                self._leave()
            if not self._waiting:
                self._thread = None
                self._state.notify_all()
                return None
            key, tasks = next(iter(self._waiting.items()))
            task = self._running = tasks.popleft()
            del self._waiting[key]
            if tasks:
                self._waiting[key] = tasks  # At the end: the others come first.
            return task

    def is_over(self) -> bool:
        """Return whether closing, or the end of the process, waits no longer.

        Long work asks this now and then, and raises `LeftError` if it is so.
        """
        if self._until is None and (self._closed or _process_ends()):
            self._until = time.monotonic() + CLOSING_S_MAX
        return self._until is not None and time.monotonic() >= self._until

    def _leave(self) -> None:
        """Drop the tasks that still wait, and record that in `done`."""
        for tasks in self._waiting.values():
            self.done.extend(_left(task) for task in tasks)
        self._waiting.clear()
        self._state.notify_all()

    def _rest(self, seconds: float) -> None:
        """Rest, unless somebody waits for the work or the process ends."""
        end = time.monotonic() + seconds
        while not _process_ends() and (left_s := end - time.monotonic()) > 0:
            if self._state.wait_for(lambda: self._hurried or self._closed, min(left_s, IDLE_S)):
                return

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until everything that was put is done; return whether it was done in time.

        False if the store is closed meanwhile and some of the work was dropped.
        """
        with self._state:
            left = [task for tasks in self._waiting.values() for task in tasks]
            left += [] if self._running is None else [self._running]
            self._hurried += 1
            self._state.notify_all()
            try:
                self._state.wait_for(
                    lambda: all(task.is_done for task in left) or self._has_ended(), timeout_s
                )
                return all(task.is_done for task in left)
            finally:
                self._hurried -= 1

    def _has_ended(self) -> bool:
        """Return whether the queue is closed and its thread has ended."""
        return self._closed and self._thread is None

    def close(self) -> None:
        """Take no more work; finish what was put as far as there is time, and drop the rest.

        A KeyboardInterrupt drops all tasks that have not begun.
        """
        try:
            with self._state:
                self._closed = True
                if self._until is None:
                    self._until = time.monotonic() + CLOSING_S_MAX
                self._state.notify_all()
            self._join()
        except KeyboardInterrupt:
            self._closed, self._until = True, time.monotonic()
            self._join()
            raise

    def _join(self) -> None:
        """Wait until the thread has ended.

        `Thread.join`, interrupted once, takes a thread for ended that still runs.
        """
        with self._state:
            while self._thread is not None and self._thread.is_alive():
                self._state.wait(IDLE_S)


def unless(is_over: Callable[[], bool], items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield items until `is_over` is true.

    Raises:
        LeftError: it became true.
    """
    for item in items:
        if is_over():
            raise LeftError
        yield item


def _process_ends() -> bool:
    """Return whether only threads of this kind keep the process from ending."""
    return not threading.main_thread().is_alive() and all(
        thread.daemon or thread.name == THREAD_NAME or not thread.is_alive()
        for thread in threading.enumerate()
    )


def _left(task: _Task) -> Reclustered:
    """Return the record of work that was dropped."""
    nodes = tuple(ident for put in task.puts for ident in put)
    error = LeftError()
    return Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}")


def _done(task: _Task) -> Reclustered:
    """Do a piece of work; return its record."""
    nodes = tuple(ident for put in task.puts for ident in put)
    try:
        return Reclustered(nodes=nodes, proposals=tuple(task.work(task.puts)))
    except Exception as error:  # Any error: no caller waits for it, and the next task is due.
        return Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}")

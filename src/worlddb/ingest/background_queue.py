"""Background queue: work that follows commits and that no caller waits for. One thread.

What is put under one key before its turn comes is done in one go. And the thread rests after each
piece of work, for as long as that took several times over: so under load more comes together, and
callers keep most of the time for themselves. Who waits, or closes, lets nobody rest.

Who waits gets everything done. Closing, and the end of the process, wait for a moment only: what is
not done by then is left, and `done` says so.
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
"""How many puts are done in one go, so that no snapshot is held for long."""
RESTS = 9
"""How many times as long as it worked the thread rests: a tenth of the time is for the work."""
REST_S_MAX = 5.0  # A long piece of work must not put off the next one for minutes.
IDLE_S = 0.2
"""How long the thread stays for more; as long waits a process that ends without closing."""
CLOSING_S_MAX = 1.0
"""How long closing, or the end of the process, waits for what was put."""
THREAD_NAME = "worlddb-later"

_Item = TypeVar("_Item")
Nodes = tuple[Id, ...]
Work = Callable[[Sequence[Nodes]], list[Proposal]]


class LeftError(Exception):
    """Work was left because the store is closed, or the process ends, and nobody waits longer."""

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

        It is called once with all that was put under its key meanwhile. What it finds or raises is
        in `done`. Once closed, nothing more is done.
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

    def _run(self) -> None:
        while (task := self._next()) is not None:
            started = time.monotonic()
            told = _told(task)
            took_s = time.monotonic() - started
            with self._state:
                self.done.append(told)
                task.is_done, self._running = True, None
                self._state.notify_all()
                self._rest(min(RESTS * took_s, REST_S_MAX))

    def _next(self) -> _Task | None:
        """Take what waits longest; None, and the thread is no more, if nothing comes."""
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
        """Tell whether the time is up for which closing, or the end of the process, waits.

        Work that takes long asks this now and then, and raises `LeftError` if so.
        """
        if self._until is None and (self._closed or _process_ends()):
            self._until = time.monotonic() + CLOSING_S_MAX
        return self._until is not None and time.monotonic() >= self._until

    def _leave(self) -> None:
        """Leave what still waits, and say so."""
        for tasks in self._waiting.values():
            self.done.extend(_left(task) for task in tasks)
        self._waiting.clear()
        self._state.notify_all()

    def _rest(self, seconds: float) -> None:
        """Leave the time to others, unless somebody is in a hurry or the process ends."""
        end = time.monotonic() + seconds
        while not _process_ends() and (left_s := end - time.monotonic()) > 0:
            if self._state.wait_for(lambda: self._hurried or self._closed, min(left_s, IDLE_S)):
                return

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left to do of what was put; return whether that was so in time.

        It never is if the store is closed meanwhile and some of it was left.
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
        """Tell whether nothing more is done, ever."""
        return self._closed and self._thread is None

    def close(self) -> None:
        """Take no more, and finish what was put as far as there is time; leave the rest.

        Interrupted by a key, it leaves all that has not begun.
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
        """Wait until the thread is no more.

        Not by joining it: that, interrupted once, takes it for ended though it still runs.
        """
        with self._state:
            while self._thread is not None and self._thread.is_alive():
                self._state.wait(IDLE_S)


def unless(is_over: Callable[[], bool], items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield items until it is over.

    Raises:
        LeftError: it is.
    """
    for item in items:
        if is_over():
            raise LeftError
        yield item


def _process_ends() -> bool:
    """Tell whether only threads like ours keep the process from ending."""
    return not threading.main_thread().is_alive() and all(
        thread.daemon or thread.name == THREAD_NAME or not thread.is_alive()
        for thread in threading.enumerate()
    )


def _left(task: _Task) -> Reclustered:
    """Return what is said of work that was left."""
    nodes = tuple(ident for put in task.puts for ident in put)
    error = LeftError()
    return Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}")


def _told(task: _Task) -> Reclustered:
    """Do a piece of work; return what came of it."""
    nodes = tuple(ident for put in task.puts for ident in put)
    try:
        return Reclustered(nodes=nodes, proposals=tuple(task.work(task.puts)))
    except Exception as error:  # Whatever it is: nobody else is told, and the next one is due.
        return Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}")

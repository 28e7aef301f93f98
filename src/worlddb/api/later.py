"""Later: work that follows commits and that no caller waits for. One thread, first come first.

What is put under one key before its turn comes is done in one go. And the thread rests after each
piece of work, for as long as that took several times over: so under load more comes together, and
callers keep most of the time for themselves. Who waits, or closes, lets nobody rest.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from worlddb.model.id import Id
from worlddb.model.values import Plain, Proposal

KEPT_MAX = 100
TOGETHER_MAX = 64
"""How many puts are done in one go, so that no snapshot is held for long."""
RESTS = 9
"""How many times as long as it worked the thread rests: a tenth of the time is for the work."""
REST_S_MAX = 5.0
IDLE_S = 0.2
"""How long the thread stays for more; as long waits a process that ends without closing."""

Nodes = tuple[Id, ...]
Work = Callable[[Sequence[Nodes]], list[Proposal]]


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


class Later:
    """The queue of one open store."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._waiting: dict[Hashable, deque[_Task]] = {}
        self._running: _Task | None = None
        self._thread: threading.Thread | None = None
        self._hurried = 0
        self._closed = False
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
                # No daemon: a process that ends without closing still finishes what was put.
                self._thread = threading.Thread(target=self._run, name="worlddb-later")
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
            if not self._waiting:
                self._thread = None
                return None
            key, tasks = next(iter(self._waiting.items()))
            task = self._running = tasks.popleft()
            del self._waiting[key]
            if tasks:
                self._waiting[key] = tasks  # At the end: the others come first.
            return task

    def _rest(self, seconds: float) -> None:
        """Leave the time to others, unless somebody is in a hurry or the process ends."""
        end = time.monotonic() + seconds
        while threading.main_thread().is_alive() and (left_s := end - time.monotonic()) > 0:
            if self._state.wait_for(lambda: self._hurried or self._closed, min(left_s, IDLE_S)):
                return

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left to do of what was put; return whether that was so in time."""
        with self._state:
            left = [task for tasks in self._waiting.values() for task in tasks]
            left += [] if self._running is None else [self._running]
            self._hurried += 1
            self._state.notify_all()
            try:
                return self._state.wait_for(lambda: all(task.is_done for task in left), timeout_s)
            finally:
                self._hurried -= 1

    def close(self) -> None:
        """Finish what was put, and take no more."""
        with self._state:
            self._closed = True
            self._state.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()


def _told(task: _Task) -> Reclustered:
    """Do a piece of work; return what came of it."""
    nodes = tuple(ident for put in task.puts for ident in put)
    try:
        return Reclustered(nodes=nodes, proposals=tuple(task.work(task.puts)))
    except Exception as error:  # Whatever it is: nobody else is told, and the next one is due.
        return Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}")

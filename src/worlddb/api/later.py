"""Later: work that follows a commit and that no caller waits for. One thread, first come first."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from worlddb.errors import WorldDBError
from worlddb.model.id import Id
from worlddb.model.values import Plain, Proposal

KEPT_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclustered(Plain):
    """What looking again at a neighbourhood found, or why it failed."""

    nodes: tuple[Id, ...]
    proposals: tuple[Proposal, ...] = ()
    error: str | None = None


class Later:
    """The queue of one open store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: set[Future[None]] = set()
        self.done: deque[Reclustered] = deque(maxlen=KEPT_MAX)

    def put(self, nodes: tuple[Id, ...], work: Callable[[], list[Proposal]]) -> None:
        """Do some work after all that was put before; what it finds or raises is in `done`."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="worlddb-later")
            self._waiting = {future for future in self._waiting if not future.done()}
            self._waiting.add(self._pool.submit(self._do, nodes, work))

    def _do(self, nodes: tuple[Id, ...], work: Callable[[], list[Proposal]]) -> None:
        try:
            self.done.append(Reclustered(nodes=nodes, proposals=tuple(work())))
        except WorldDBError as error:
            self.done.append(Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}"))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left to do; return whether that was so in time."""
        with self._lock:
            waiting = set(self._waiting)
        return not wait(waiting, timeout_s).not_done

    def close(self) -> None:
        """Finish what was put, and take no more."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)

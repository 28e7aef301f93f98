"""Threads: blocking calls run on a bounded number of threads, and callers share them fairly.

    call ──▶ lane of its kind of work ──▶ the caller's turn ──▶ a thread

T1  Each kind of work has threads of its own: reads never wait behind writes, a short text never
    waits behind a long one.
T2  A caller holds at most its share of a lane, a quarter. Where calls wait, callers take turns.
T3  The event loop's own threads belong to nobody here: no call can keep an error answer, or a
    health check, from being sent.
T4  The threads are daemons: a call that is still at work does not keep the process from ending.

All bookkeeping happens on the event loop, so there are no locks.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Literal, TypeVar, cast

from worlddb.faces.calls import Effect
from worlddb.faces.http.http_problems import HttpError

# Few: each step of SQLite releases the interpreter and waits to get it back, so every further
# thread at work makes all of them slower.
READERS_MAX = 2
SEARCHERS_MAX = 2  # As READERS_MAX: a search reads, too.
WRITERS_MAX = 4
"""The store takes one writer at a time, but those that wait for it share one fsync."""
ASKING_MAX = 8
"""Writes of one caller at once where a write waits for a language model."""
SHARES = 4
"""A lane has so many shares: one caller leaves three quarters of it to the others."""
LONG_TEXT_BYTES = 16 << 10
"""Writes longer than this have a lane of their own: they take longer than a tenth of a second."""
PATIENCE_S = 30.0  # As long as most HTTP clients wait.

T = TypeVar("T")
Work = Literal["read", "search", "write", "long write"]


def work_of(effect: Effect, size: int) -> Work:
    """Return the kind of work of a call with `size` bytes or characters of arguments."""
    if effect in ("read", "search"):
        return cast(Work, effect)
    return "write" if size <= LONG_TEXT_BYTES else "long write"


class Threads:
    """A lane for each kind of work; a call waits a limited time for its turn."""

    def __init__(self, patience_s: float = PATIENCE_S, *, asks_a_model: bool = False) -> None:
        self._patience_s = patience_s
        writers = ASKING_MAX if asks_a_model else WRITERS_MAX
        self._lanes: dict[Work, _Lane] = {
            "read": _Lane(READERS_MAX),
            "search": _Lane(SEARCHERS_MAX),
            "write": _Lane(writers),
            "long write": _Lane(writers),
        }

    async def run(self, call: Callable[[], T], work: Work = "read", caller: str = "") -> T:
        """Run a blocking call for a caller and return its result.

        If the client closes the connection, the call still runs to its end.

        Raises:
            HttpError: no thread became free in time.
        """
        lane = self._lanes[work]
        try:
            async with asyncio.timeout(self._patience_s):
                await lane.enter(caller)
        except TimeoutError:
            raise HttpError(503, "the server is busy; try again", {"Retry-After": "1"}) from None
        return cast(T, await asyncio.shield(lane.start(call, caller)))


class _Lane:
    """The threads for one kind of work, and the calls that wait for one, by caller."""

    def __init__(self, share: int) -> None:
        self.share = share
        self._busy: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._idle: list[_Worker] = []

    async def enter(self, caller: str) -> None:
        """Wait for the caller's turn."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._call_up()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(caller)  # It was called up in the very moment it gave up.
            raise

    def leave(self, caller: str) -> None:
        """Give a place back."""
        self._busy[caller] -= 1
        if not self._busy[caller]:
            del self._busy[caller]
        self._call_up()

    def _call_up(self) -> None:
        """Give free places to those who wait: each caller in turn, none more than its share."""
        for caller in list(self._waiting):
            turns = self._waiting[caller]
            while turns and turns[0].done():
                turns.popleft()
            if turns and self._busy[caller] < self.share and self._has_place():
                self._busy[caller] += 1
                turns.popleft().set_result(None)
                del self._waiting[caller]
                self._waiting[caller] = turns  # At the end: the others come first.
            if not turns:
                del self._waiting[caller]

    def _has_place(self) -> bool:
        return self._busy.total() < SHARES * self.share

    def start(self, call: Callable[[], Any], caller: str) -> asyncio.Future[Any]:
        """Run a call of a caller that has entered, on an idle thread or a new one."""
        worker = self._idle.pop() if self._idle else _Worker()

        def ended(done: asyncio.Future[Any]) -> None:
            # Not before: the request may have ended while its thread is still at work.
            self._idle.append(worker)
            self.leave(caller)
            done.exception()  # Somebody has looked at it, even if the client is gone.

        done = worker.start(call)
        done.add_done_callback(ended)
        return done


class _Worker:
    """A daemon thread that runs one call after the other."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, name="worlddb-call", daemon=True).start()

    def start(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run a call in the context of the present task; return the future of its result."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def tell(tell_result: Callable[[Any], None], value: Any) -> None:
            # The loop has ended: nobody waits for the result.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(tell_result, value)

        def work() -> None:
            try:
                result = context.run(call)
            except BaseException as error:  # The caller gets it, whatever it is.
                tell(done.set_exception, error)
            else:
                tell(done.set_result, result)

        self._calls.put(work)
        return done

    def _run(self) -> None:
        while True:
            self._calls.get()()

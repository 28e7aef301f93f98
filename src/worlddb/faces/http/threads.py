"""Threads: blocking calls run on a bounded number of them, kinds of work apart.

Writes wait for one another; if they shared threads with reads, a hundred writers would leave none
to read with. And who reads one memory, or asks whether the server is well, does not queue behind
those who search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import anyio
import anyio.to_thread

from worlddb.faces.http.problems import RefusedError

# Few: each step of SQLite gives the interpreter away and waits to get it back, so that every
# further thread at work makes all of them slower; and there is one writer at a time anyway.
READERS_MAX = 2
SEARCHERS_MAX = 2
WRITERS_MAX = 1
TOOLS_MAX = 2
ASKING_MAX = 8
"""How many writes, and how many tool calls, where a write asks a model and waits for it."""
PATIENCE_S = 30.0

T = TypeVar("T")
Work = Literal["read", "search", "write"]


class Threads:
    """A set of threads for each kind of work, and how long a call waits for one of them."""

    def __init__(self, patience_s: float = PATIENCE_S, *, asks: bool = False) -> None:
        self._patience_s = patience_s
        self._crews: dict[Work, _Crew] = {
            "read": _Crew(READERS_MAX),
            "search": _Crew(SEARCHERS_MAX),
            "write": _Crew(ASKING_MAX if asks else WRITERS_MAX),
        }

    async def run(self, call: Callable[[], T], work: Work = "read") -> T:
        """Run a call that blocks and return what it returns.

        A caller that goes away leaves the call running: what was begun is finished.

        Raises:
            RefusedError: no thread came free in time.
        """
        crew = self._crews[work]
        try:
            with anyio.fail_after(self._patience_s):
                await crew.places.acquire()
        except TimeoutError:
            raise RefusedError(
                503, "too much to do at the moment; try again", {"Retry-After": "1"}
            ) from None
        try:
            return await anyio.to_thread.run_sync(call, limiter=crew.limiter)
        finally:
            crew.places.release()


class _Crew:
    """So many threads, and as many places in front of them; only a place can be waited for."""

    def __init__(self, size: int) -> None:
        self.places = anyio.Semaphore(size)
        self.limiter = anyio.CapacityLimiter(size)


def bound_tools(most: int = TOOLS_MAX) -> None:
    """Bound the threads that tools run on: those of the event loop itself."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = most

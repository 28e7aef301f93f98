"""Threads: blocking calls run on a bounded number of threads, each kind of work on its own.

Writes wait for one another. If they shared threads with reads, a hundred writers would leave none
for reading. Nor does a read of one memory, or a health check, wait behind searches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import anyio
import anyio.to_thread

from worlddb.faces.http.http_problems import HttpError

# Few: each step of SQLite releases the interpreter and waits to get it back, so every further
# thread at work makes all of them slower; and there is one writer at a time anyway.
READERS_MAX = 2
SEARCHERS_MAX = 2  # As READERS_MAX: a search reads, too.
WRITERS_MAX = 1  # The store takes one writer at a time.
TOOLS_MAX = 2  # As READERS_MAX: most tool calls read.
WAITING_MAX = 8
"""How many writes, and how many tool calls, where a write waits for a language model."""
PATIENCE_S = 30.0  # As long as most HTTP clients wait.

T = TypeVar("T")
Work = Literal["read", "search", "write"]


class Threads:
    """A set of threads for each kind of work; a call waits a limited time for a free one."""

    def __init__(self, patience_s: float = PATIENCE_S, *, asks_a_model: bool = False) -> None:
        self._patience_s = patience_s
        self._pools: dict[Work, _Pool] = {
            "read": _Pool(READERS_MAX),
            "search": _Pool(SEARCHERS_MAX),
            "write": _Pool(WAITING_MAX if asks_a_model else WRITERS_MAX),
        }

    async def run(self, call: Callable[[], T], work: Work = "read") -> T:
        """Run a blocking call and return its result.

        If the client closes the connection, the call still runs to its end.

        Raises:
            HttpError: no thread became free in time.
        """
        pool = self._pools[work]
        try:
            with anyio.fail_after(self._patience_s):
                await pool.places.acquire()
        except TimeoutError:
            raise HttpError(503, "the server is busy; try again", {"Retry-After": "1"}) from None
        try:
            return await anyio.to_thread.run_sync(call, limiter=pool.limiter)
        finally:
            pool.places.release()


class _Pool:
    """Some threads, and as many places in front of them: waiting for a place can time out."""

    def __init__(self, size: int) -> None:
        self.places = anyio.Semaphore(size)
        self.limiter = anyio.CapacityLimiter(size)


def limit_tool_threads(most: int = TOOLS_MAX) -> None:
    """Limit the threads that MCP tools run on: those of the event loop itself."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = most

"""Stdio: one server for the client that started it, until that client goes away."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from worlddb.errors import WorldDBError
from worlddb.faces.mcp.server import LogLevel, make_server
from worlddb.faces.mcp.wire import LAST_ANSWERS_S, Wire, standard_streams
from worlddb.memory.memory import Memory

ENDING_S_MAX = LAST_ANSWERS_S + 1.0

log = logging.getLogger(__name__)


def serve_stdio(
    memory: Memory, *, search_fetch: bool = False, log_level: LogLevel = "INFO"
) -> None:
    """Serve a memory on stdin and stdout until stdin ends, or SIGTERM or SIGINT comes.

    What was begun then is finished and answered, if that takes no more than two seconds; a call
    that takes longer, and a second signal, end the process as if it had been killed. Everything but
    the protocol goes to stderr.
    """
    # Before the SDK sets up its own: plain lines, and never on stdout.
    logging.basicConfig(stream=sys.stderr, level=log_level, format="%(levelname)s %(message)s")
    server = make_server(lambda: memory, search_fetch=search_fetch, log_level=log_level)
    warming = Warming(memory)
    server.middleware.append(warming)
    anyio.run(_serve, server)
    warming.wait()


async def _serve(server: MCPServer) -> None:
    ending = Ending()
    # The public way of running it has no place for streams of one's own.
    inner = server._lowlevel_server
    try:
        async with anyio.create_task_group() as tasks:
            async with standard_streams() as wire:
                tasks.start_soon(ending.on_signal, wire)
                await inner.run(wire.incoming, wire.outgoing, inner.create_initialization_options())
            tasks.cancel_scope.cancel()
    finally:
        ending.done()


class Ending:
    """Ends well at the first signal: soon, whatever is being done; and at once at the second."""

    def __init__(self) -> None:
        self._latest: threading.Timer | None = None

    async def on_signal(self, wire: Wire) -> None:
        """Wait for signals."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as tasks:
                async for number in signals:
                    if self._latest is not None:
                        _leave(number, "a second signal")
                    # On a thread: the loop waits for calls that are at work, however long.
                    self._latest = threading.Timer(ENDING_S_MAX, _leave, (number, "out of time"))
                    self._latest.daemon = True
                    self._latest.start()
                    log.info("ending: what was begun is finished first")
                    tasks.start_soon(wire.end)

    def done(self) -> None:
        """Note that it has ended well."""
        if self._latest is not None:
            self._latest.cancel()


def _leave(number: int, why: str) -> None:
    """End the process now. Nothing that was acknowledged is lost by that, as by any other end."""
    log.warning("%s: calls that were not answered yet are dropped", why)
    os._exit(128 + number)


class Warming:
    """Loads what the first recall needs, in the background, once the client has been answered."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._thread: threading.Thread | None = None

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Answer, and begin to warm up after the first answer."""
        try:
            return await call_next(ctx)
        finally:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._warm, name="worlddb-warming", daemon=True
                )
                self._thread.start()

    def wait(self) -> None:
        """Wait for it, for a moment: Python cannot end well while a thread is loading a library."""
        if self._thread is not None:
            self._thread.join(ENDING_S_MAX)

    def _warm(self) -> None:
        try:
            self._memory.warm()
        except WorldDBError as error:
            # Whoever asks for what is missing will be told; this is for the log.
            log.warning("recall is not ready yet: %s", error)

"""Stdio: one server for the client that started it, until that client goes away."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from worlddb.errors import WorldDBError
from worlddb.faces.mcp.server import LogLevel, make_server
from worlddb.faces.mcp.wire import standard_streams
from worlddb.memory import Memory

log = logging.getLogger(__name__)


def serve_stdio(
    memory: Memory, *, search_fetch: bool = False, log_level: LogLevel = "INFO"
) -> None:
    """Serve a memory on stdin and stdout until stdin ends, or SIGTERM or SIGINT comes.

    What is being written then is finished. Everything but the protocol goes to stderr.
    """
    # Before the SDK sets up its own: plain lines, and never on stdout.
    logging.basicConfig(stream=sys.stderr, level=log_level, format="%(levelname)s %(message)s")
    server = make_server(lambda: memory, search_fetch=search_fetch, log_level=log_level)
    server.middleware.append(Warming(memory))
    anyio.run(_serve, server)


async def _serve(server: MCPServer) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_on_signal, tasks.cancel_scope)
        # The public way of running it has no place for streams of one's own.
        inner = server._lowlevel_server
        async with standard_streams() as (incoming, outgoing):
            await inner.run(incoming, outgoing, inner.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


class Warming:
    """Loads what the first recall needs, in the background, once the client has been answered."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._started = False

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Answer, and begin to warm up after the first answer."""
        try:
            return await call_next(ctx)
        finally:
            if not self._started:
                self._started = True
                threading.Thread(target=self._warm, name="worlddb-warming", daemon=True).start()

    def _warm(self) -> None:
        try:
            self._memory.warm()
        except WorldDBError as error:
            # Whoever asks for what is missing will be told; this is for the log.
            log.warning("recall is not ready yet: %s", error)

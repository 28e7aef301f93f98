"""MCP on stdin and stdout, for the client that started this process, until it closes them.

    stdin ─▶ a thread reads a line ─▶ is it a message? ─▶ the server ─▶ stdout
                                     └▶ no: an error goes back ───────▲

The SDK's own reader drops a malformed line, so its sender waits forever. It replaces bytes that are
not UTF-8, so a memory would differ from the text that was sent. It cannot be interrupted, and at
the end of stdin, or on a signal, open calls lose their answers. While this transport runs, nothing
else can read stdin, and prints to stdout go to stderr.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from io import FileIO, RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from worlddb.errors import WorldDBError
from worlddb.faces.mcp.mcp_server import LogLevel, MemoryServer, make_server

if TYPE_CHECKING:
    from worlddb.faces.mcp.memory_tools import MemorySource
    from worlddb.memory.memory import Memory

LINE_BYTES_MAX = 64 << 20  # Far above the largest call; prevents endless lines.
LAST_ANSWERS_S = 2.0  # Clients kill a server that takes longer to stop.
ENDING_S_MAX = LAST_ANSWERS_S + 1.0

Incoming: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing: TypeAlias = MemoryObjectSendStream[SessionMessage]

log = logging.getLogger(__name__)


def serve_stdio(
    memory_for: MemorySource,
    *,
    search_fetch: bool = False,
    tools: str = "memory",
    log_level: LogLevel = "INFO",
) -> None:
    """Serve a memory on stdin and stdout until stdin ends, or SIGTERM or SIGINT arrives.

    Open calls are answered if that takes at most two seconds. A longer call, or a second signal,
    ends the process at once. Logs go to stderr.
    """
    # Before the SDK sets up its logging: plain lines, never on stdout.
    logging.basicConfig(stream=sys.stderr, level=log_level, format="%(levelname)s %(message)s")
    server = make_server(memory_for, search_fetch=search_fetch, tools=tools, log_level=log_level)
    warming = WarmUp(memory_for)
    server.middleware.append(warming)
    anyio.run(_serve, server)
    warming.wait()


async def _serve(server: MemoryServer) -> None:
    ending = GracefulEnd()
    try:
        async with anyio.create_task_group() as tasks:
            async with standard_streams(server.open_subscriptions.end) as wire:
                tasks.start_soon(ending.on_signal, wire)
                await server.run_on(wire.incoming, wire.outgoing)
            tasks.cancel_scope.cancel()
    finally:
        ending.done()


class GracefulEnd:
    """Ends the process soon after the first signal, and at once at the second."""

    def __init__(self) -> None:
        self._latest: threading.Timer | None = None

    async def on_signal(self, wire: StdioWire) -> None:
        """Wait for signals."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as tasks:
                async for number in signals:
                    if self._latest is not None:
                        _leave(number, "a second signal")
                    # On a thread, because the event loop waits for running calls.
                    self._latest = threading.Timer(ENDING_S_MAX, _leave, (number, "out of time"))
                    self._latest.daemon = True
                    self._latest.start()
                    log.info("stopping: open calls are finished first")
                    tasks.start_soon(wire.end)

    def done(self) -> None:
        """Cancel the deadline, because the server has ended in time."""
        if self._latest is not None:
            self._latest.cancel()


def _leave(number: int, why: str) -> None:
    """End the process now. Acknowledged writes are durable."""
    log.warning("%s: open calls are dropped", why)
    os._exit(128 + number)


class LateMemory:
    """Opens a memory at its first use, so that the engine loads after the handshake."""

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self._open = open_memory
        self._opening = threading.Lock()
        self._memory: Memory | None = None

    def __call__(self) -> Memory:
        """Return the memory.

        Raises:
            WorldDBError: the store cannot be opened; the next call tries again.
        """
        with self._opening:
            if self._memory is None:
                self._memory = self._open()
            return self._memory

    def close(self) -> None:
        """Close the memory if it was opened."""
        with self._opening:
            if self._memory is not None:
                self._memory.close()


class WarmUp:
    """Opens the memory in the background, loads the indexes, and runs the extraction queue.

    It starts after the first answer.
    """

    def __init__(self, memory_for: MemorySource) -> None:
        self._memory_for = memory_for
        self._thread: threading.Thread | None = None

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Answer; after the first answer, start the warm-up."""
        try:
            return await call_next(ctx)
        finally:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._warm, name="worlddb-warming", daemon=True
                )
                self._thread.start()

    def wait(self) -> None:
        """Wait briefly: Python cannot exit cleanly while a thread loads a library."""
        if self._thread is not None:
            self._thread.join(ENDING_S_MAX)

    def _warm(self) -> None:
        try:
            memory = self._memory_for()
            memory.read_pending()
            memory.warm()
        except WorldDBError as error:
            # The recall that needs it reports the error to its caller.
            log.warning("recall is not ready yet: %s", error)


@asynccontextmanager
async def standard_streams(on_end: Callable[[], None]) -> AsyncIterator[StdioWire]:
    """Yield the messages of stdin, and a function that sends messages to stdout."""
    source, sink = _take_standard_files()
    wire = StdioWire(source, sink, on_end)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.write)
        threading.Thread(target=wire.read, name="worlddb-stdin", daemon=True).start()
        try:
            yield wire
        finally:
            wire.incoming.close()
            tasks.cancel_scope.cancel()


class StdioWire:
    """Both directions of the transport, and the requests without an answer.

    `on_end` ends subscriptions, which have no answer of their own.
    """

    def __init__(self, source: BinaryIO, sink: RawIOBase, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._source = source
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self.incoming: Incoming
        self.outgoing: Outgoing
        self._messages, self.incoming = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](0)
        self.outgoing, self._answers = anyio.create_memory_object_stream[SessionMessage](0)
        self._refusals = self.outgoing.clone()
        self._unanswered: set[RequestId] = set()
        self._answered = anyio.Event()
        self._is_ending = False
        self._is_heard = True

    def read(self) -> None:
        """Read lines until stdin ends. The thread cannot be stopped while it waits for a line."""
        # The server or the event loop has ended, so nothing reads the messages.
        with suppress(RuntimeError, CancelledError, anyio.BrokenResourceError, OSError):
            while line := self._line():
                if not line.isspace():
                    self._in_loop(self._pass_on(message_of(line)))
            self._in_loop(self.end())

    def _line(self) -> bytes:
        line = self._source.readline(LINE_BYTES_MAX + 1)
        if len(line) > LINE_BYTES_MAX:
            while (more := self._source.readline(LINE_BYTES_MAX)) and not more.endswith(b"\n"):
                pass
        return line

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            done = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise
        done.result()

    async def _pass_on(self, found: SessionMessage | JSONRPCError) -> None:
        if self._is_ending:
            raise anyio.BrokenResourceError
        if isinstance(found, JSONRPCError):
            await self._refusals.send(SessionMessage(found))
            return
        if isinstance(found.message, JSONRPCRequest):
            self._unanswered.add(found.message.id)
        elif isinstance(found.message, JSONRPCNotification):
            asked = (found.message.params or {}).get("requestId")
            if found.message.method == "notifications/cancelled" and isinstance(asked, int | str):
                # A cancelled request gets no answer.
                self._unanswered.discard(asked)
        await self._messages.send(found)

    async def end(self) -> None:
        """End the input once all requests are answered, because the end cancels open requests."""
        self._is_ending = True
        self._on_end()
        with anyio.move_on_after(LAST_ANSWERS_S):
            while self._unanswered and self._is_heard:
                self._answered = anyio.Event()
                await self._answered.wait()
        self._refusals.close()
        self._messages.close()

    async def write(self) -> None:
        """Write messages until the server has no more."""
        writers = anyio.CapacityLimiter(1)
        async for item in self._answers:
            data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            # A thread of its own, because all threads of tools may be busy.
            await anyio.to_thread.run_sync(self._put, data + b"\n", limiter=writers)
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._unanswered.discard(item.message.id)
                self._answered.set()
            if not self._is_heard:
                # The client has closed stdout. Further answers are read and dropped, so that the
                # server can end.
                await self.end()

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest and self._is_heard:
                rest = rest[self._sink.write(rest) or 0 :]
        except ConnectionError:
            self._is_heard = False


def message_of(line: bytes) -> SessionMessage | JSONRPCError:
    """Return the message on a line, or the error to send back."""
    if len(line) > LINE_BYTES_MAX:
        message = f"the message is longer than {LINE_BYTES_MAX:,} bytes; send less at once"
        return _refusal(INVALID_REQUEST, message, None)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        message = f"byte {error.start} of the message is not UTF-8; send it as UTF-8"
        return _refusal(PARSE_ERROR, message, _id_in(line))
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            return _refusal(PARSE_ERROR, f"the message is not JSON: {first['msg']}", _id_in(line))
        return _refusal(INVALID_REQUEST, "the message is not a JSON-RPC 2.0 message", _id_in(line))


def _refusal(code: int, message: str, ident: RequestId | None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=ident, error=ErrorData(code=code, message=message))


def _id_in(line: bytes) -> RequestId | None:
    """Return the id of a malformed request, so that the error names it."""
    try:
        ident = json.loads(line.decode(errors="replace"))["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return ident if isinstance(ident, int | str) and not isinstance(ident, bool) else None


def _take_standard_files() -> tuple[BinaryIO, RawIOBase]:
    """Return stdin and stdout, and replace both so that nothing else reads or prints to them.

    They are never closed, because the reading thread may outlive everything else. Output is not
    buffered, so nothing has to be flushed when the client is gone.
    """
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(source, "rb", closefd=False), FileIO(sink, "wb", closefd=False)

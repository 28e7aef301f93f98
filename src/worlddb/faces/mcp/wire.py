"""Wire: stdin and stdout of this process as streams of protocol messages, one on each line.

    stdin ─▶ a thread reads a line ─▶ is it a message? ─▶ the server ─▶ stdout
                                     └▶ no: an error goes back ───────▲

The SDK's own reader drops a line that is no message, so whoever sent it waits for ever; it replaces
bytes that are no UTF-8, so a memory would differ from what was said; it cannot be interrupted; and
at the end of stdin, or when it is told to end, what is being answered is lost. While this one runs
nobody else can read stdin, and what is printed to stdout goes to stderr.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from io import FileIO, RawIOBase
from typing import Any, BinaryIO, TypeAlias

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
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

LINE_BYTES_MAX = 64 << 20
LAST_ANSWERS_S = 2.0

Incoming: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing: TypeAlias = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def standard_streams() -> AsyncIterator[Wire]:
    """Yield what comes in on stdin, and what takes messages to stdout."""
    source, sink = _take_standard_files()
    wire = Wire(source, sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.write)
        threading.Thread(target=wire.read, name="worlddb-stdin", daemon=True).start()
        try:
            yield wire
        finally:
            wire.incoming.close()
            tasks.cancel_scope.cancel()


class Wire:
    """Both directions, and which requests are not answered yet."""

    def __init__(self, source: BinaryIO, sink: RawIOBase) -> None:
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
        """Read lines until stdin ends. This thread cannot be stopped while it waits for one."""
        # The server is gone, or the loop: there is nobody left to read for.
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
                # Nobody answers that any more, and nobody should wait for it.
                self._unanswered.discard(asked)
        await self._messages.send(found)

    async def end(self) -> None:
        """End what comes in, but only once what was asked is answered: the end cancels it."""
        self._is_ending = True
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
            # A thread of its own: those that tools run on may all be taken.
            await anyio.to_thread.run_sync(self._put, data + b"\n", limiter=writers)
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._unanswered.discard(item.message.id)
                self._answered.set()
            if not self._is_heard:
                # The client went away without a word. Whatever else it asked for is taken off the
                # server's hands all the same, so that it can end.
                await self.end()

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest and self._is_heard:
                rest = rest[self._sink.write(rest) or 0 :]
        except ConnectionError:
            self._is_heard = False


def message_of(line: bytes) -> SessionMessage | JSONRPCError:
    """Return the message on a line, or the error that says why there is none."""
    if len(line) > LINE_BYTES_MAX:
        told = f"the message is longer than {LINE_BYTES_MAX:,} bytes; send less at once"
        return _refusal(INVALID_REQUEST, told, None)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        told = f"byte {error.start} of the message is no UTF-8; send it as UTF-8"
        return _refusal(PARSE_ERROR, told, _id_in(line))
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            return _refusal(PARSE_ERROR, f"the message is no JSON: {first['msg']}", _id_in(line))
        return _refusal(INVALID_REQUEST, "the message is no JSON-RPC 2.0 message", _id_in(line))


def _refusal(code: int, message: str, ident: RequestId | None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=ident, error=ErrorData(code=code, message=message))


def _id_in(line: bytes) -> RequestId | None:
    """Return the id of what would be a request, so that its sender knows which failed."""
    try:
        ident = json.loads(line.decode(errors="replace"))["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return ident if isinstance(ident, int | str) and not isinstance(ident, bool) else None


def _take_standard_files() -> tuple[BinaryIO, RawIOBase]:
    """Return stdin and stdout; from now on reading the one and printing to the other misses them.

    They are never closed: the thread that waits for a line may outlive everything else. Nothing is
    kept back for stdout: if nobody reads it any more, there is nothing left to be flushed.
    """
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(source, "rb", closefd=False), FileIO(sink, "wb", closefd=False)

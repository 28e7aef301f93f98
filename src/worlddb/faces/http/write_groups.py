"""Write groups: short writes of many requests, carried out by one thread and committed together.

    request ─▶ prepare ─▶ GroupThread ─▶ stage each ─▶ one COMMIT ─▶ all answers
    worker:    prepare ─▶ GroupLink ─▶ socket ─▶ GroupServer ─▶ the same

G1  A request is prepared where it came in: arguments, rights, secrets, reading of the text.
G2  One thread takes all writes that wait. Threads that hand the writer's turn to each other would
    pay a switch of threads for each write.
G3  Each write has its own commit, savepoint and error. Writes are carried out in the order in which
    they came. Nothing is answered before it is on disk.

Everything else than a short write takes a thread of its own (`request_limits.Threads`).
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from worlddb import errors
from worlddb.errors import StorageError, WorldDBError
from worlddb.faces.http.access_tokens import AccessToken
from worlddb.faces.http.http_problems import HttpError
from worlddb.faces.http.served_stores import CallerMemory, json_of
from worlddb.memory.memory import write_prepared
from worlddb.memory.prepared_write import PreparedWrite
from worlddb.memory.results import Written
from worlddb.model.text_safety import Origin

TOGETHER_MIN = 8
"""Writes of one group on a fast disk. In a larger group all clients wait for the writer, then the
writer waits for the clients."""
TOGETHER_MAX = 32
"""Writes of one group on a slow disk, which must not wait for it too often."""
SLOW_SHARE = 0.25  # Of a group's time: a COMMIT that takes more makes the groups larger.
FAST_SHARE = 0.1  # A COMMIT that takes less makes them smaller.
SENT_FROM = 4  # Writes that a worker sends without waiting for the end of its step.
READ_BYTES = 256 << 10  # Of one socket at once: some hundred writes.
CALLERS_MAX = 10_000  # Callers that a link has named; they are cheap to name again.
SEND_S_MAX = 10.0  # A worker that takes no answer for so long has stopped.
ENDING_S_MAX = 1.0  # A store that another program locks must not keep the server from ending.
SIZE_BYTES = 4  # Before each frame, its length.
REFUSED = "refused"
"""What stands for a refusal that only HTTP knows."""
FAILED = "failed"
"""What stands for an error that is none of WorldDB's own; the writer has logged it."""
WRITER_GONE = (
    "the process that writes has ended; a write of this moment is stored or not: try again with "
    "the same idempotency key"
)
Answer = tuple[str, Any]
"""The name of an error and its content, or "" and the result."""

log = logging.getLogger("worlddb.http")


def error_name(error: WorldDBError) -> str:
    """Return the name of an error's class in the error tree."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in errors.__all__)


def answer_of_error(error: Exception) -> Answer:
    """Return an error as a value for another process; log it if it is none of WorldDB's own."""
    if isinstance(error, WorldDBError):
        return error_name(error), str(error)
    if isinstance(error, HttpError):
        return REFUSED, (error.status, error.message, error.headers, error.type)
    log.error("a write failed", exc_info=error)
    return FAILED, ""


def error_of_answer(problem: str, content: Any) -> Exception:
    """Return the error that another process has answered with."""
    if problem == REFUSED:
        status, message, headers, kind = content
        return HttpError(status, message, headers, type=kind)
    if problem == FAILED:
        return RuntimeError("the call failed in the process that writes; its log says why")
    made: Exception = getattr(errors, problem)(content)
    return made


class GroupSize:
    """How many writes are committed together: the fewer, the faster the disk is."""

    def __init__(self) -> None:
        self.most = TOGETHER_MIN

    def note(self, writes: int, took_s: float, commit_s: float) -> None:
        """Follow what a group took, and what of it the COMMIT took."""
        if writes < self.most or took_s <= 0:
            return  # Fewer waited than would have been taken.
        share = commit_s / took_s
        if share > SLOW_SHARE:
            self.most = min(2 * self.most, TOGETHER_MAX)
        elif share < FAST_SHARE:
            self.most = max(self.most // 2, TOGETHER_MIN)


def carry_out(
    writes: Sequence[tuple[CallerMemory, PreparedWrite]], size: GroupSize
) -> list[bytes | Exception]:
    """Carry out writes in their order and commit them together; return JSON or error of each."""
    began, commits_s = time.perf_counter(), [0.0]
    results: dict[int, bytes | Exception] = {}
    admitted: list[int] = []
    for number, (caller, _) in enumerate(writes):
        try:
            caller.admit()
            admitted.append(number)
        except Exception as error:  # It is the answer to this write alone.
            results[number] = error
    done: Sequence[Written | Exception]
    try:
        pairs = [(writes[at][0].memory, writes[at][1]) for at in admitted]
        done = write_prepared(pairs, commits_s.append)
    except Exception as error:
        done = [error] * len(admitted)
    for number, result in zip(admitted, done, strict=True):
        results[number] = _settled(writes[number][0], result)
    size.note(len(writes), time.perf_counter() - began, commits_s[-1])
    return [results[number] for number in range(len(writes))]


def _settled(caller: CallerMemory, result: Written | Exception) -> bytes | Exception:
    """Return the answer to a write. Any error is its own: the thread serves all writes."""
    try:
        settled = caller.settle(result)
        return settled if isinstance(settled, Exception) else json_of(settled)
    except Exception as error:
        return error


class GroupWriter(Protocol):
    """Carries out prepared writes in groups."""

    async def write(self, caller: Any, prepared: PreparedWrite) -> bytes:
        """Carry out a write of a caller; return the result as JSON.

        Raises:
            WorldDBError, HttpError: as `Memory.write`.
        """

    def close(self) -> None:
        """Take no more writes. Those that were taken are carried out."""


class _Waiting(NamedTuple):
    """A write that waits in this process, and the future of its result."""

    caller: CallerMemory
    prepared: PreparedWrite
    done: asyncio.Future[bytes]


class GroupThread:
    """The writing thread of a server without workers."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def write(self, caller: CallerMemory, prepared: PreparedWrite) -> bytes:
        """Carry out a write of a caller; return the result as JSON.

        If the client closes the connection, the write is still carried out.

        Raises:
            WorldDBError, HttpError: as `Memory.write`.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="worlddb-writes", daemon=True)
            self._thread.start()
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._queue.put(_Waiting(caller, prepared, done))
        return await asyncio.shield(done)

    def close(self) -> None:
        """End the thread when it has carried out what it was given."""
        if self._thread is not None:
            self._queue.put(None)

    def _run(self) -> None:
        is_open, size = True, GroupSize()
        while is_open:
            given = [self._queue.get()]
            with suppress(Empty):
                while len(given) < size.most:
                    given.append(self._queue.get_nowait())
            group = [one for one in given if one is not None]
            is_open = len(group) == len(given)
            if not group:
                return
            answers = carry_out([(one.caller, one.prepared) for one in group], size)
            told = [(one.done, answer) for one, answer in zip(group, answers, strict=True)]
            # The loop may have ended, and then nobody waits for the results.
            with suppress(RuntimeError):
                group[0].done.get_loop().call_soon_threadsafe(_tell, told)


def _tell(told: Sequence[tuple[asyncio.Future[bytes], bytes | Exception]]) -> None:
    for done, answer in told:
        if done.cancelled():
            continue
        if isinstance(answer, Exception):
            done.set_exception(answer)
            done.exception()  # Marks it as retrieved, even if the client is gone.
        else:
            done.set_result(answer)


def group_address(address: str) -> str:
    """Return where the writer takes groups, from the address where it takes calls."""
    return f"{address}s"


class _Link:
    """The writer's end of a worker's connection: what came in, and the callers that it named."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.read = bytearray()
        self.callers: dict[int, CallerMemory] = {}

    def messages(self) -> list[tuple[Any, ...]]:
        """Return the messages that have arrived completely.

        Raises:
            EOFError, OSError: the worker has closed the connection.
        """
        data = self.connection.recv(READ_BYTES)
        if not data:
            raise EOFError
        self.read += data
        found: list[tuple[Any, ...]] = []
        at = 0
        while len(self.read) >= at + SIZE_BYTES:
            end = at + SIZE_BYTES + int.from_bytes(self.read[at : at + SIZE_BYTES])
            if len(self.read) < end:
                break
            found += pickle.loads(memoryview(self.read)[at + SIZE_BYTES : end].toreadonly())
            at = end
        if at:
            self.read = self.read[at:]
        return found


class _Sent(NamedTuple):
    """A write that came from a worker: its link, its number there, and the write."""

    link: _Link
    number: int
    caller: CallerMemory
    prepared: PreparedWrite


class GroupServer:
    """The writer's end of the workers' links: one thread that reads, writes and answers."""

    def __init__(
        self, address: str, caller_of: Callable[[AccessToken | None, Origin | None], CallerMemory]
    ) -> None:
        self._caller_of = caller_of
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address)
        self._listener.listen()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="worlddb-writes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no more writes. Those that have begun are finished, if that is soon."""
        self._wake.close()
        self._thread.join(ENDING_S_MAX)

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            for key in list(self._selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()
            self._selector.close()

    def _serve(self) -> None:
        waiting: list[_Sent] = []
        size = GroupSize()
        while True:
            for key, _ in self._selector.select(0 if waiting else None):
                if key.fileobj is self._woken:
                    return
                if key.fileobj is self._listener:
                    with suppress(OSError):  # It is tried again: no error may end this thread.
                        connection, _ = self._listener.accept()
                        connection.settimeout(SEND_S_MAX)
                        self._selector.register(connection, selectors.EVENT_READ, _Link(connection))
                else:
                    waiting += self._read(key.data)
            group, waiting = waiting[: size.most], waiting[size.most :]
            if group:
                writes = [(one.caller, one.prepared) for one in group]
                self._answer(group, carry_out(writes, size))

    def _read(self, link: _Link) -> list[_Sent]:
        """Return the writes that a worker has sent."""
        found = []
        try:
            for number, caller, content in link.messages():
                if number is None:
                    link.callers[caller] = self._caller_of(*content)
                else:
                    found.append(_Sent(link, number, link.callers[caller], content))
        except (EOFError, OSError):
            self._drop(link)
        except Exception:  # No message of a worker may end the thread that all writes need.
            log.exception("a worker sent what cannot be read")
            self._drop(link)
        return found

    def _answer(self, group: Sequence[_Sent], results: Sequence[bytes | Exception]) -> None:
        """Send all answers of a group, those of one worker together."""
        frames: dict[_Link, list[tuple[int, Answer]]] = {}
        for one, result in zip(group, results, strict=True):
            answer = answer_of_error(result) if isinstance(result, Exception) else ("", result)
            frames.setdefault(one.link, []).append((one.number, answer))
        for link, answers in frames.items():
            try:
                link.connection.sendall(_frame(answers))
            except OSError:  # The worker is gone, or stands still; what was written stays.
                self._drop(link)

    def _drop(self, link: _Link) -> None:
        with suppress(KeyError, ValueError):  # It was dropped before.
            self._selector.unregister(link.connection)
        link.connection.close()


def _frame(content: Sequence[Any]) -> bytes:
    data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(SIZE_BYTES) + data


class GroupLink(asyncio.Protocol):
    """A worker's end: sends the writes of one step of the event loop together."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opening: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._read = bytearray()
        self._messages: list[tuple[Any, ...]] = []
        self._callers: dict[tuple[AccessToken | None, Origin | None], int] = {}
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    async def write(self, caller: Any, prepared: PreparedWrite) -> bytes:
        """Carry out a write at the writer; return the result as JSON.

        Raises:
            WorldDBError, HttpError: as `Memory.write`.
            StorageError: the writer is gone; the write was done or not.
        """
        if self._transport is None:
            await self._open()
            if self._transport is None:
                raise StorageError(WRITER_GONE)
        loop = asyncio.get_running_loop()
        if not self._messages:
            loop.call_soon(self._send)
        signature = caller.signature
        known = self._callers.get(signature)
        if known is None:
            if len(self._callers) >= CALLERS_MAX:
                self._callers.clear()
            known = self._callers[signature] = len(self._callers)
            self._messages.append((None, known, signature))
        self._numbers += 1
        self._messages.append((self._numbers, known, prepared))
        done = self._waiting[self._numbers] = loop.create_future()
        if len(self._messages) >= SENT_FROM:
            self._send()
        return await asyncio.shield(done)

    def close(self) -> None:
        """Close the connection; the server has answered its requests by now."""
        if self._transport is not None:
            self._transport.close()

    async def _open(self) -> None:
        opening = self._opening
        if opening is None:
            opening = self._opening = asyncio.create_task(self._connect())
        try:
            await asyncio.shield(opening)
        except OSError:
            raise StorageError("the process that writes has ended; try again later") from None
        finally:
            # If only this request was cancelled, the others must not open a second connection.
            if opening.done() and self._opening is opening:
                self._opening = None

    async def _connect(self) -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: self, self._address)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send by this connection from now on."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def _send(self) -> None:
        messages, self._messages = self._messages, []
        if self._transport is not None and messages:
            self._transport.write(_frame(messages))

    def data_received(self, data: bytes) -> None:
        """Give each request its answer."""
        self._read += data
        at = 0
        while len(self._read) >= at + SIZE_BYTES:
            end = at + SIZE_BYTES + int.from_bytes(self._read[at : at + SIZE_BYTES])
            if len(self._read) < end:
                break
            for number, (problem, content) in pickle.loads(self._read[at + SIZE_BYTES : end]):
                answer = error_of_answer(problem, content) if problem else content
                _tell([(self._waiting.pop(number), answer)])
            at = end
        if at:
            del self._read[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        """Answer all open requests: nobody knows whether they were written."""
        self._transport = None
        self._read.clear()
        self._messages.clear()
        self._callers.clear()
        waiting, self._waiting = self._waiting, {}
        _tell([(done, StorageError(WRITER_GONE)) for done in waiting.values()])

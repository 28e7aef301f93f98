"""Request limits: connections, the size and time of a request, and threads for its work.

A connection is anonymous until its first request with a valid token.

C1  Request line and headers must arrive in time, or the connection is closed.
C2  An anonymous connection is closed soon after its answer; a known one may stay idle for longer.
C3  At the limit of connections, or of anonymous ones per address, the connection that was idle
    longest is closed, anonymous ones first. So idle connections never block a new client.
C4  A client that does not read its answer is disconnected.
C5  Writes of one step of the event loop are sent together, because each send may switch threads.

Blocking calls run on a limited number of threads, which callers share fairly:

    call ──▶ lane of its kind of work ──▶ the caller's turn ──▶ the interpreter's turn ──▶ a thread

T1  Each kind of work has its own threads: reads never wait behind writes, nor short texts behind
    long ones.
T2  A caller holds at most a quarter of a lane. Waiting callers take turns.
T3  The event loop's own threads run none of these calls, so errors and health checks always work.
T4  The threads are daemons: a running call does not keep the process from ending.
T5  Reads and recalls compute, and Python runs one thread at a time. So they run one after the
    other, reads first, and the event loop stands still while one runs. Between two calls it does
    what has arrived meanwhile: it reads requests, prepares writes, sends answers. Threads that run
    at once take the interpreter from each other, and most from the loop, which lets go of it at
    each system call and then waits for up to 5 ms.
T6  The loop stands still for a short time only. A long call goes on beside the others.

All state is changed on the event loop only, so there are no locks.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeVar, cast

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from worlddb.faces.call_parts import Effect
from worlddb.faces.http.auth_middleware import KNOWN, network_of
from worlddb.faces.http.http_problems import HttpError, problem_of

BODY_BYTES_MAX = 4 << 20  # A text of 1 MiB with escapes, or a long chat.
BODY_S_MAX = 30.0  # A slow mobile connection needs less.
HEAD_BYTES_MAX = 32 << 10  # Four times the default of common proxies.
HEADERS_MAX = 100  # As nginx and Apache allow.


class BodyLimit:
    """Reads the body before any route does, up to a limit, with or without a Content-Length."""

    def __init__(
        self, app: ASGIApp, *, bytes_max: int = BODY_BYTES_MAX, seconds_max: float = BODY_S_MAX
    ) -> None:
        self.app = app
        self.bytes_max = bytes_max
        self.seconds_max = seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read one body and pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check_headers(scope)
            async with asyncio.timeout(self.seconds_max):
                body = await self._read(receive)
        except HttpError as refused:
            await problem_of(refused)(scope, receive, send)
            return
        except TimeoutError:
            late = HttpError(408, "the body did not arrive in time", {"Connection": "close"})
            await problem_of(late)(scope, receive, send)
            return
        if body is None:
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, again, send)

    def _check_headers(self, scope: Scope) -> None:
        # uvicorn's own limit applies only to headers that arrive in parts.
        size = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > HEAD_BYTES_MAX or len(scope["headers"]) > HEADERS_MAX:
            raise HttpError(
                431,
                f"the URL and headers are longer than {HEAD_BYTES_MAX:,} bytes, or there are more "
                f"than {HEADERS_MAX} headers",
            )
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self.bytes_max:
                raise self._too_large()
            if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                raise HttpError(415, "send the body uncompressed, without Content-Encoding")

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body; None if the client closed the connection."""
        read = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            read += message.get("body", b"")
            if len(read) > self.bytes_max:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(read)

    def _too_large(self) -> HttpError:
        # Closing makes the client stop; the rest is not read.
        return HttpError(
            413,
            f"the body is larger than {self.bytes_max:,} bytes; send less at once",
            {"Connection": "close"},
        )


CONNECTIONS_MAX = 1_000  # More than can be served at once; limits open sockets.
STRANGERS_MAX = 100  # Per address. A browser opens six, a busy client some dozens.
KEEP_ALIVE_S = 75  # nginx's default, so that a proxy closes first.
STRANGER_KEEP_ALIVE_S = 3  # For a second try with a token.
HEAD_S_MAX = 15.0  # Usual clients send their headers at once.
STALLED_S_MAX = 20.0  # A client that takes no byte for so long does not read.
GATHERED_BYTES_MAX = 64 << 10  # The buffer size of a transport.
SEND_BYTES_PER_S_MIN = 4 << 10  # Slower than any modem: the client only keeps us busy.


class GatheredTransport:
    """A transport that collects writes until the next step of the event loop, and then sends them.

    Everything else is delegated to the transport.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting = bytearray()

    def __getattr__(self, name: str) -> Any:
        """Delegate to the transport."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send soon, or at once if the buffer is large."""
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting += data
        if len(self._waiting) > GATHERED_BYTES_MAX:
            self._send()

    def _send(self) -> None:
        if self._waiting:
            gathered, self._waiting = self._waiting, bytearray()
            self._transport.write(gathered)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the client has not taken."""
        return len(self._waiting) + self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Send everything, then close."""
        self._send()
        self._transport.close()


class GuardedConnection(H11Protocol):
    """One connection of HTTP/1.1.

    The time for the headers starts with the connection, or with the first byte of a further
    request. Further bytes do not extend it.
    """

    network = ""
    used_at = 0.0
    _deadline: asyncio.TimerHandle | None = None
    _was_known = False
    _unsent = 0
    _unsent_since = 0.0
    _taken_at = 0.0
    _unsent_all = 0

    @property
    def is_known(self) -> bool:
        """Whether a request on this connection was authenticated."""
        scope = cast("MutableMapping[str, Any] | None", self.scope)
        return self._was_known or bool(scope and scope.get(KNOWN))

    @property
    def is_idle(self) -> bool:
        """Whether no request on this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for this connection, and start the timer."""
        super().connection_made(cast(asyncio.Transport, GatheredTransport(transport, self.loop)))
        self.network = network_of(self.client[0]) if self.client else ""
        self.used_at = self.loop.time()
        self._make_room()
        self._wait()

    def _make_room(self) -> None:
        connections = cast("Iterable[GuardedConnection]", self.connections)
        others = [one for one in connections if one is not self and not one.transport.is_closing()]
        strangers = [one for one in others if not one.is_known]
        same = [one for one in strangers if one.network == self.network]
        trusted = self.config.forwarded_allow_ips or ()
        if len(same) >= STRANGERS_MAX and not (self.client and self.client[0] in trusted):
            _drop_one(same)
        elif len(others) + 1 >= CONNECTIONS_MAX:
            _drop_one([one for one in strangers if one.is_idle] or others)

    def data_received(self, data: bytes) -> None:
        """Read; stop the timer once the headers have arrived."""
        self.used_at = self.loop.time()
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Continue with the next request, which may have begun to arrive."""
        self._was_known = self.is_known
        self.used_at = self.loop.time()
        self.timeout_keep_alive = KEEP_ALIVE_S if self._was_known else STRANGER_KEEP_ALIVE_S
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def drop_unless_read(self) -> None:
        """Drop the connection if its client does not read."""
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if not self._unsent:
            self._unsent_since, self._unsent_all = now, unsent
        if unsent < self._unsent or not self._unsent:
            self._taken_at = now
        self._unsent_all += max(0, unsent - self._unsent)
        self._unsent = unsent
        allowed_s = STALLED_S_MAX + self._unsent_all / SEND_BYTES_PER_S_MIN
        if unsent and (
            now - self._taken_at > STALLED_S_MAX or now - self._unsent_since > allowed_s
        ):
            self.transport.abort()

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S_MAX, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


def _drop_one(connections: list[GuardedConnection]) -> None:
    """Drop the connection that was idle longest, if any is idle."""
    idle = [one for one in connections if one.is_idle]
    if idle:
        min(idle, key=lambda one: one.used_at).transport.abort()


# Few: SQLite releases the interpreter at each step and waits to get it back, so every further
# running thread slows all of them down.
READERS_MAX = 2
SEARCHERS_MAX = 1
"""Recalls work for milliseconds each. With many at once the event loop comes last, on which writes
are read and answered: under a hundred clients a write took up to twice as long with 2."""
WRITERS_MAX = 4
"""The store takes one writer at a time, but those that wait for it share one fsync."""
GROUPED_MAX = 8
"""Short writes of one caller in the groups of the writing thread; with four such it is full."""
ASKING_MAX = 8
"""Writes of one caller at once where a write waits for a language model."""
SHARES = 4
"""A lane has so many shares: one caller leaves three quarters of it to the others."""
LONG_TEXT_BYTES = 16 << 10
"""Writes longer than this have a lane of their own: they take longer than a tenth of a second."""
PATIENCE_S = 30.0  # The timeout of most HTTP clients.
STANDING_S_MAX = 0.01  # The event loop stands still so long at most: two or three recalls.
TURN_S_MAX = 0.05  # Longer calls are of large worlds, or wait for something else.
BESIDE = 8  # After a long call, so many of its lane are taken for long ones, too.
FIRST_IN_ROW_MAX = 8  # Then a recall has its turn: it takes as long as so many reads.
STEPS = 3
"""Of the event loop between two calls: a write that arrives is received, prepared and sent on."""

T = TypeVar("T")
Work = Literal["read", "search", "write", "long write"]


def work_of(effect: Effect, size: int) -> Work:
    """Return the kind of work of a call with `size` bytes or characters of arguments."""
    if effect in ("read", "search"):
        return cast(Work, effect)
    return "write" if size <= LONG_TEXT_BYTES else "long write"


class Threads:
    """A lane for each kind of work; a call waits a limited time for its turn."""

    def __init__(
        self,
        patience_s: float = PATIENCE_S,
        *,
        asks_a_model: bool = False,
        takes_turns: bool = False,
    ) -> None:
        """Make the lanes.

        With `takes_turns` reads and recalls have the interpreter one after the other. It is not for
        calls that wait for another server.
        """
        self._patience_s = patience_s
        writers = ASKING_MAX if asks_a_model else WRITERS_MAX
        turns = _Turns() if takes_turns else None
        self._lanes: dict[Work, _Lane] = {
            "read": _Lane(READERS_MAX, turns, is_first=True),
            "search": _Lane(SEARCHERS_MAX, turns),
            "write": _Lane(writers),
            "long write": _Lane(writers),
        }
        self._groups = _Lane(GROUPED_MAX)

    async def run(self, call: Callable[[], T], work: Work = "read", caller: str = "") -> T:
        """Run a blocking call for a caller and return its result.

        If the client closes the connection, the call still runs to its end.

        Raises:
            HttpError: no thread became free in time.
        """
        lane = self._lanes[work]
        await self._enter(lane, caller)
        return cast(T, await asyncio.shield(lane.start(call, caller)))

    async def in_turn(self, work: Callable[[], Awaitable[T]], caller: str = "") -> T:
        """Await the work of a group of writes in the caller's turn; it needs no thread of its own.

        Raises:
            HttpError: the turn did not come in time.
        """
        lane = self._groups
        await self._enter(lane, caller)
        try:
            return await work()
        finally:
            lane.leave(caller)

    async def _enter(self, lane: _Lane, caller: str) -> None:
        if not lane.admits(caller):
            try:
                async with asyncio.timeout(self._patience_s):
                    await lane.enter(caller)
            except TimeoutError:
                told = {"Retry-After": "1"}
                raise HttpError(503, "the server is busy; try again", told) from None


class _Lane:
    """The threads for one kind of work, and the calls that wait for one, by caller."""

    def __init__(self, share: int, turns: _Turns | None = None, *, is_first: bool = False) -> None:
        self.share = share
        self.is_first = is_first
        """Whether calls of this lane have the interpreter before those of others."""
        self.beside = 0
        """So many of the next calls do not wait for the interpreter's turn."""
        self._turns = turns
        self._busy: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._idle: list[_Worker] = []

    def admits(self, caller: str) -> bool:
        """Let a caller in at once if there is a place for it, and nobody waits."""
        if self._waiting or self._busy[caller] >= self.share or not self._has_place():
            return False
        self._busy[caller] += 1
        return True

    async def enter(self, caller: str) -> None:
        """Wait for the caller's turn."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._call_up()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(caller)  # The caller got its turn as it gave up.
            raise

    def leave(self, caller: str) -> None:
        """Release a place."""
        self._busy[caller] -= 1
        if not self._busy[caller]:
            del self._busy[caller]
        self._call_up()

    def _call_up(self) -> None:
        """Assign free places to waiting callers in turn, none more than its share."""
        for caller in list(self._waiting):
            if not self._has_place():
                return
            turns = self._waiting[caller]
            while turns and turns[0].done():
                turns.popleft()
            if turns and self._busy[caller] < self.share:
                self._busy[caller] += 1
                turns.popleft().set_result(None)
                del self._waiting[caller]
                self._waiting[caller] = turns  # At the end, so that others come first.
            if not turns:
                del self._waiting[caller]

    def _has_place(self) -> bool:
        return self._busy.total() < SHARES * self.share

    def start(self, run: Callable[[], Any], caller: str) -> asyncio.Future[Any]:
        """Run a call of a caller that has entered, on an idle thread or a new one."""
        worker = self._idle.pop() if self._idle else _Worker()
        call = _Call(run, self, worker)

        def ended(done: asyncio.Future[Any]) -> None:
            # Not earlier: the request may end while its thread is still working.
            self._idle.append(worker)
            self.leave(caller)
            done.exception()  # Marks the exception as retrieved, even if the client is gone.

        call.done.add_done_callback(ended)
        if self._turns is None or self.beside:
            self.beside = max(0, self.beside - 1)
            worker.calls.put(call)
        else:
            self._turns.add(call)
        return call.done


class _Call:
    """A call in the context of the present task, and the future of its result."""

    def __init__(self, run: Callable[[], Any], lane: _Lane, worker: _Worker) -> None:
        self.lane = lane
        self.worker = worker
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Any] = self._loop.create_future()
        self._run = run
        self._context = contextvars.copy_context()
        self._outcome: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        self._wakes_loop = True

    def run(self) -> None:
        """Run on the present thread, and wake the loop unless it waits for this call."""
        try:
            outcome = self.done.set_result, self._context.run(self._run)
        except StopIteration as error:  # No future takes it.
            outcome = self.done.set_exception, RuntimeError(f"the call ended with {error!r}")
        except BaseException as error:  # Any other error is passed to the caller.
            outcome = self.done.set_exception, error
        self._outcome.put(outcome)
        if self._wakes_loop:
            # The loop may have ended, and then nobody waits for the result.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._tell)

    def begin(self) -> None:
        """Run on the call's thread. The loop is not woken: it has to `wait`."""
        self._wakes_loop = False
        self.worker.calls.put(self)

    def has_ended(self, within_s: float) -> bool:
        """Wait for the end of the call, and tell its result."""
        with suppress(Empty):
            self._settle(*self._outcome.get(timeout=within_s))
        return self.done.done()

    def leave_alone(self) -> None:
        """Let the call wake the loop when it ends."""
        self._wakes_loop = True
        self._tell()  # It may have ended just now.

    def _tell(self) -> None:
        with suppress(Empty):
            self._settle(*self._outcome.get_nowait())

    def _settle(self, tell: Callable[[Any], None], value: Any) -> None:
        if not self.done.done():
            tell(value)


class _Turns:
    """Gives the interpreter to one call after the other, while the event loop stands still."""

    def __init__(self) -> None:
        self._first: deque[_Call] = deque()
        self._others: deque[_Call] = deque()
        self._first_in_row = 0
        self._current: _Call | None = None
        self._waited_s = 0.0
        self._is_due = False

    def add(self, call: _Call) -> None:
        """Run a call in its turn."""
        (self._first if call.lane.is_first else self._others).append(call)
        if not self._is_due:
            self._is_due = True
            # What arrived together with the call is prepared already, and sent on in one step.
            self._let_the_loop_work(asyncio.get_running_loop(), 1)

    def _let_the_loop_work(self, loop: asyncio.AbstractEventLoop, steps: int) -> None:
        if steps:
            loop.call_soon(self._let_the_loop_work, loop, steps - 1)
        else:
            loop.call_soon(self._give_turn, loop)

    def _give_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._run_one()
        finally:  # Whatever happens, the other calls have their turns.
            self._is_due = bool(self._current or self._first or self._others)
            if self._is_due:
                self._let_the_loop_work(loop, STEPS)

    def _run_one(self) -> None:
        """Run the next call, or go on with the one whose turn is not over."""
        call, self._current = self._current, None
        if call is None:
            call, self._waited_s = self._next(), 0.0
            call.begin()
        if call.has_ended(STANDING_S_MAX):
            return
        self._waited_s += STANDING_S_MAX
        if self._waited_s < TURN_S_MAX:
            self._current = call
        else:
            call.lane.beside = BESIDE
            call.leave_alone()

    def _next(self) -> _Call:
        if self._first and (self._first_in_row < FIRST_IN_ROW_MAX or not self._others):
            self._first_in_row += 1
            return self._first.popleft()
        self._first_in_row = 0
        return self._others.popleft()


class _Worker:
    """A daemon thread that runs one call after the other."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call] = SimpleQueue()
        threading.Thread(target=self._run, name="worlddb-call", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.calls.get().run()

"""Connections: how long one may be silent, how many a stranger may hold, who has to go.

    made ──▶ stranger ──a request with a valid token──▶ known

C1  Request line and headers arrive in time, or the connection is closed.
C2  A stranger's connection is closed soon after its answer; a known one may stay idle for longer.
C3  Too many strangers of one address, or too many connections: the one that was idle longest goes,
    strangers first. A newcomer is never refused because others wait idly.
C4  Who does not read its answer is dropped.
C5  What one step of the event loop writes goes out by one send: head and body of an answer are two
    writes, and with each send the interpreter goes to whichever thread is at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from worlddb.faces.http.auth_middleware import KNOWN
from worlddb.faces.http.guess_limit import network_of

CONNECTIONS_MAX = 1_000  # Far more than can be served at once; a limit on open sockets.
STRANGERS_MAX = 100  # For each address. A browser opens six, a busy client some dozens.
KEEP_ALIVE_S = 75  # nginx's own default, so that a proxy closes first.
STRANGER_KEEP_ALIVE_S = 3  # For a second try with a token.
HEAD_S_MAX = 15.0  # A client sends its headers at once; one that does not wastes a connection.
STALLED_S_MAX = 20.0  # So long no byte of an answer is taken: the client does not read.
GATHERED_BYTES_MAX = 64 << 10  # As much as a transport buffers before it asks to wait.
SEND_BYTES_PER_S_MIN = 4 << 10  # Slower than any modem: the client reads to keep us busy.


class GatheredTransport:
    """A transport that gathers what is written until the event loop comes round, and then sends it.

    Everything else is done by the transport itself.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting = bytearray()

    def __getattr__(self, name: str) -> Any:
        """Return what the transport has by this name."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send soon; at once if much has been gathered."""
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
        """Return how many bytes were written and not taken."""
        return len(self._waiting) + self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Send everything, then close."""
        self._send()
        self._transport.close()


class GuardedConnection(H11Protocol):
    """One connection of HTTP/1.1.

    The time for the headers runs from the connection, or from the first byte of a further request.
    Sending a byte now and then does not extend it.
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
        """Whether a request on it was let in."""
        scope = cast("MutableMapping[str, Any] | None", self.scope)
        return self._was_known or bool(scope and scope.get(KNOWN))

    @property
    def is_idle(self) -> bool:
        """Whether no request on it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, and start the timer."""
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
        """Go on with the next request, which may have begun to arrive."""
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
        """Drop the connection if its client does not take what it was sent."""
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
    """Drop the idle connection that was used longest ago, if there is one."""
    idle = [one for one in connections if one.is_idle]
    if idle:
        min(idle, key=lambda one: one.used_at).transport.abort()

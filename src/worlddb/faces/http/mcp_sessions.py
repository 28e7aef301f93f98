"""MCP over HTTP: clients whose user can be asked get a session, all others need none.

A client of the protocols before 2026-07-28 can be asked only while a session is open: the question
goes out on the stream of the call, and the answer comes back as another request. Without a session
any request can be answered by itself, which costs less and survives a restart of the server.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken as McpToken
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Message, Receive, Scope, Send

from worlddb.faces.http.auth_middleware import caller_key
from worlddb.faces.http.http_problems import problem
from worlddb.faces.mcp.mcp_server import MemoryServer

SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
ASKING = {"elicitation", "sampling"}  # Capabilities by which a server asks its client.
SESSIONS_MAX = 1_000  # Some ten megabytes. One that is idle for half an hour ends.


class McpSessions:
    """The endpoint of MCP: routes each request to its session, or answers it without one.

    A session lives in one process. Where several share the connections, `keeps` is False: no
    session is opened, so a client of the older protocols is never asked.
    """

    def __init__(self, server: MemoryServer, *, body_bytes_max: int, keeps: bool = True) -> None:
        self._keeps = keeps
        # AuthMiddleware has checked Host and Origin, for all routes alike.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=body_bytes_max,
            transport_security=security,
        )
        self._plain = server.session_manager
        server.streamable_http_app(
            max_request_body_size=body_bytes_max,
            max_sessions=SESSIONS_MAX,
            transport_security=security,
        )
        self._streaming = server.session_manager
        self._streams: set[anyio.CancelScope] = set()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Keep sessions while the server runs."""
        async with self._plain.run(), self._streaming.run():
            yield

    def end_streams(self) -> None:
        """End the streams on which clients wait for what the server may say."""
        for stream in list(self._streams):
            stream.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        in_session = any(name == SESSION_HEADER for name, _ in scope["headers"])
        if scope["method"] != "POST":
            if not in_session:
                refused = problem(
                    405, "405 Method Not Allowed: use POST", headers={"Allow": "POST"}
                )
                await refused(scope, receive, send)
                return
        elif not in_session:
            body = await _read(receive)
            receive = _replayed(body, receive)
            in_session = self._keeps and _opens_session(body)
            if _wants_progress(scope, body):
                await self._streaming.handle_request(scope, receive, send)
                return
        if not in_session:
            await self._plain.handle_request(scope, receive, send)
            return
        # A session belongs to whoever opened it: to a token, else to an address.
        owner = McpToken(token="", client_id=caller_key(), scopes=[])
        scope["user"] = AuthenticatedUser(owner)
        if scope["method"] == "GET":
            await self._stream(scope, receive, send)
        else:
            await self._streaming.handle_request(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = is_complete = False

        async def noted(message: Message) -> None:
            nonlocal has_begun, is_complete
            has_begun = True
            is_complete = message["type"].endswith("body") and not message.get("more_body")
            await send(message)

        with anyio.CancelScope() as stream:
            self._streams.add(stream)
            try:
                await self._streaming.handle_request(scope, receive, noted)
            finally:
                self._streams.discard(stream)
        if has_begun and not is_complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or not message.get("more_body"):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _wants_progress(scope: Scope, body: bytes) -> bool:
    """Return whether a request without a session asks to be told of progress, on a stream."""
    version = next((value for name, value in scope["headers"] if name == VERSION_HEADER), b"")
    is_new = version != b"" and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS
    return is_new and b'"progressToken"' in body


def _opens_session(body: bytes) -> bool:
    """Return whether a body is the greeting of a client that can be asked."""
    if b'"initialize"' not in body:
        return False
    try:
        told = json.loads(body)
        return told["method"] == "initialize" and bool(
            ASKING & told["params"]["capabilities"].keys()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False  # The server itself says what is wrong with it.

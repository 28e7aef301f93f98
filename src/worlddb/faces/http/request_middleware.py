"""Requests: how large and how slow a body may be, and what is counted and logged. Plain ASGI."""

from __future__ import annotations

import asyncio
import logging
import time

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worlddb.faces.http.auth_middleware import address_of
from worlddb.faces.http.http_problems import HttpError, problem_of
from worlddb.faces.http.server_metrics import METHODS, ServerMetrics

BODY_BYTES_MAX = 4 << 20  # A text of 1 MiB, escaped, or a long chat.
BODY_S_MAX = 30.0  # Longer than a slow mobile connection needs for that.
HEAD_BYTES_MAX = 32 << 10  # Four times what common proxies allow by default.
HEADERS_MAX = 100  # As nginx and Apache allow.
ACCESS_LOG = logging.getLogger("worlddb.access")
NO_ROUTE = "(none)"
CLIENT_GONE = 499
"""The client closed the connection before the answer; the number is the one that nginx uses."""
SAFE_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


class BodyLimit:
    """Reads the body before any route does, up to a limit, whether or not its length was given."""

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
            with anyio.fail_after(self.seconds_max):
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
        # uvicorn's own limit holds only for what does not arrive at once.
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
        """Return the body, or None if the client closed the connection."""
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
        # Closing makes the client stop sending; we do not read the rest.
        return HttpError(
            413,
            f"the body is larger than {self.bytes_max:,} bytes; send less at once",
            {"Connection": "close"},
        )


class RequestLog:
    """Counts and logs requests by their route. A path could hold an id or a text; a route cannot.

    Neither tokens nor texts are logged.
    """

    def __init__(self, app: ASGIApp, *, metrics: ServerMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = CLIENT_GONE

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                held = {name for name, _ in message.get("headers", [])}
                more = [header for header in SAFE_HEADERS if header[0] not in held]
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        self.metrics.began()
        started = time.perf_counter()
        try:
            await self.app(scope, receive, watched)
        except asyncio.CancelledError:
            if status == CLIENT_GONE:
                stopped = HttpError(503, "the server stops; try again", {"Connection": "close"})
                await problem_of(stopped)(scope, receive, watched)
        except Exception:
            status = 500  # What the outermost handler makes of it.
            raise
        finally:
            taken_s = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self.metrics.ended(route, scope["method"], status, taken_s)
            if ACCESS_LOG.isEnabledFor(logging.INFO):
                method = scope["method"] if scope["method"] in METHODS else "other"
                token = scope.get("worlddb.token", "") or "-"
                address = address_of(scope) or "-"
                line = "%s %s %d %.1f ms %s %s"
                ACCESS_LOG.info(line, method, route, status, taken_s * 1000, address, token)

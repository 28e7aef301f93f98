"""Watching: counts and logs each request, and never what it says. Plain ASGI."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worlddb.faces.http.metrics import METHODS, Tally

ACCESS_LOG = logging.getLogger("worlddb.access")
NOWHERE = "(none)"
GONE = 499
"""Nobody was left to answer; the number is the one that nginx uses."""
SAFE_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Watching:
    """Counts requests by the route they met; a path could hold an id or a text, a route cannot."""

    def __init__(self, app: ASGIApp, *, tally: Tally) -> None:
        self.app = app
        self.tally = tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Watch one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = GONE

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                held = {name for name, _ in message.get("headers", [])}
                more = [header for header in SAFE_HEADERS if header[0] not in held]
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        self.tally.began()
        started = time.perf_counter()
        try:
            await self.app(scope, receive, watched)
        except Exception:
            status = 500  # What it becomes further out.
            raise
        finally:
            taken_s = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", NOWHERE)
            self.tally.ended(route, scope["method"], status, taken_s)
            if ACCESS_LOG.isEnabledFor(logging.INFO):
                method = scope["method"] if scope["method"] in METHODS else "other"
                who = scope.get("worlddb.token", "") or "-"
                line = "%s %s %d %.1f ms %s"
                ACCESS_LOG.info(line, method, route, status, taken_s * 1000, who)

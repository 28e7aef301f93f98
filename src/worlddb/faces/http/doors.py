"""Doors: Host, Origin and token of every request, before any route sees it. Plain ASGI.

A page in a browser can be made to call a server on its user's own machine: by a name that suddenly
resolves to 127.0.0.1, or by simply sending. The first shows in Host, the second in Origin.
"""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worlddb.faces.http.access import Access, Token
from worlddb.faces.http.callers import CALLER, CallerMemory, caller_memory
from worlddb.faces.http.metrics import Tally
from worlddb.faces.http.problems import RefusedError, problem_of
from worlddb.memory.memory import Memory

OPEN = frozenset(("/health", "/openapi.json"))
"""Paths that need no token: they tell nothing of what is remembered."""
NOTHING = "/.well-known/"
"""Where clients look for a login server; "not found" tells them that there is none."""
CHALLENGE = 'Bearer realm="worlddb"'
PREFLIGHT_S = "600"


class Doors:
    """Lets a request in, or answers why not; what is let in has its `CALLER`."""

    def __init__(self, app: ASGIApp, *, access: Access, memory: Memory, tally: Tally) -> None:
        self.app = app
        self.access = access
        self._anybody = caller_memory(memory, None, tally)
        self._callers: dict[str, CallerMemory] = {
            token.digest.hex(): caller_memory(memory, token, tally) for token in access.tokens
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        shared: str | None = None
        try:
            shared = self._origin_of(scope)
            if shared is not None and scope["method"] == "OPTIONS":
                await _preflight()(scope, receive, _sharing(send, shared))
                return
            token = self._token_of(scope)
        except RefusedError as refused:
            answer = problem_of(refused)
            await answer(scope, receive, send if shared is None else _sharing(send, shared))
            return
        scope["worlddb.token"] = token.name if token else ""
        scope["worlddb.admin"] = token is None or token.admin
        caller = self._callers[token.digest.hex()] if token else self._anybody
        inside = CALLER.set(caller)
        try:
            await self.app(scope, receive, send if shared is None else _sharing(send, shared))
        finally:
            CALLER.reset(inside)

    def _origin_of(self, scope: Scope) -> str | None:
        """Check Host and Origin; return the origin if it is an allowed page of another place.

        Raises:
            RefusedError: either is not one of ours.
        """
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or not self.access.allows_host(hosts[0]):
            raise RefusedError(
                421, "this server does not go by that Host name; its owner can allow it"
            )
        if not origins:
            return None
        if len(origins) != 1 or not self.access.allows_origin(origins[0], hosts[0]):
            raise RefusedError(403, "pages of that Origin may not call; the owner can allow it")
        return origins[0] if self.access.shares_with(origins[0]) else None

    def _token_of(self, scope: Scope) -> Token | None:
        """Return the token of a request; None where none is needed.

        Raises:
            RefusedError: it is missing, wrong or expired.
        """
        path = scope["path"]
        if not self.access.tokens or path in OPEN or path.startswith(NOTHING):
            return None
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            raise _unauthorized("send a token: 'Authorization: Bearer …'", CHALLENGE)
        kind, _, value = given[0].partition(b" ")
        token = self.access.token_of(value.strip(b" "))
        if len(given) != 1 or kind.lower() != b"bearer" or token is None:
            raise _unauthorized(
                "that token opens nothing here, or has expired",
                f'{CHALLENGE}, error="invalid_token"',
            )
        return token


def _unauthorized(message: str, challenge: str) -> RefusedError:
    return RefusedError(401, message, {"WWW-Authenticate": challenge})


def _values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


def _preflight() -> Response:
    """Return the answer to a browser that asks whether a page may call."""
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "*, Authorization",
            "Access-Control-Max-Age": PREFLIGHT_S,
        },
    )


def _sharing(send: Send, origin: str) -> Send:
    """Return a `send` that lets an allowed page read the answer."""

    async def share(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate"),
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return share

"""The ASGI application: MCP, REST, health, metrics and OpenAPI, behind authentication."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from worlddb import __version__
from worlddb.errors import WorldDBError
from worlddb.faces.calls import Effect
from worlddb.faces.http.access_tokens import Access
from worlddb.faces.http.auth_middleware import (
    AuthMiddleware,
    CallerGate,
    RateSource,
    caller_key,
    memory_for,
)
from worlddb.faces.http.explorer import explorer_routes
from worlddb.faces.http.guess_limit import RateLimit
from worlddb.faces.http.http_problems import HttpError, problem, problem_of
from worlddb.faces.http.mcp_sessions import McpSessions
from worlddb.faces.http.oauth_rules import MCP_PATH, METADATA_PATH
from worlddb.faces.http.openapi_schema import openapi
from worlddb.faces.http.request_middleware import BODY_BYTES_MAX, BODY_S_MAX, BodyLimit, RequestLog
from worlddb.faces.http.rest_routes import rest_routes, server_routes
from worlddb.faces.http.served_stores import OneStore, TenantStores
from worlddb.faces.http.server_metrics import CONTENT_TYPE, ServerMetrics
from worlddb.faces.http.thread_limits import PATIENCE_S, Threads, work_of
from worlddb.faces.http.token_desk import TokenDesk
from worlddb.faces.http.token_uses import TokenUses
from worlddb.faces.http.write_link import WorkerStores
from worlddb.faces.mcp.mcp_server import make_server
from worlddb.faces.mcp.open_subscriptions import OpenSubscriptions
from worlddb.memory.memory import Memory

if TYPE_CHECKING:
    from worlddb.faces.http.oauth_tokens import OAuthTokens

HEALTH_S_MAX = 5.0  # A file that takes longer to look at is not in good health.

Endpoint = Callable[[Request], Awaitable[Response]]
Handler = Callable[[Request, Exception], Awaitable[Response]]
T = TypeVar("T")


def make_app(
    memory: Memory | TenantStores | WorkerStores,
    *,
    access: Access,
    body_bytes_max: int = BODY_BYTES_MAX,
    body_s_max: float = BODY_S_MAX,
    patience_s: float = PATIENCE_S,
    tools: str = "memory",
    tokens_file: str | None = None,
    read_access: Callable[[], Access] | None = None,
    url: str = "http://127.0.0.1:8765",
    state_key: bytes | None = None,
) -> Starlette:
    """Return the application that serves a memory, or those of tenants; the caller closes them.

    Authentication is part of the application, whatever ASGI server runs it. Administrators can
    change the tokens of `tokens_file`; `read_access` then returns what the changed file allows.
    `url` is where clients find the server, unless the rules for signing in say so.
    Processes that share their callers need the same `state_key`.
    """
    metrics = ServerMetrics()
    served = OneStore(memory) if isinstance(memory, Memory) else memory
    is_worker = isinstance(served, WorkerStores)
    rates: RateSource = served if isinstance(served, WorkerStores) else RateLimit()
    uses = TokenUses(None if is_worker else tokens_file)
    gate = CallerGate(access, served, metrics, uses)
    threads = Threads(patience_s=patience_s, asks_a_model=served.asks_a_model)
    server = make_server(memory_for, runner=ToolThreads(threads), tools=tools, state_key=state_key)
    mcp = McpSessions(server, body_bytes_max=body_bytes_max, keeps=not is_worker)
    sign_in = _sign_in(access, url)
    end_subscriptions = _end(server.open_subscriptions, mcp)
    let_in = _let_in(gate, end_subscriptions)
    desk = TokenDesk(
        gate,
        path=tokens_file,
        of_tenants=served.of_tenants,
        read_access=read_access,
        let_in=let_in,
        diagnose=served.diagnose,
        look_up=(lambda: served.look_up(uses)) if isinstance(served, WorkerStores) else None,
        erase=served.erase if isinstance(served, TenantStores) else None,
    )

    app = Starlette(
        routes=[
            Route(MCP_PATH, mcp, methods=["POST", "GET", "DELETE"]),
            *rest_routes(threads),
            *server_routes(threads, desk),
            *explorer_routes(),
            Route("/health", _health(served.check), methods=["GET"]),
            Route("/metrics", _metrics(served, threads, metrics), methods=["GET"]),
            Route("/openapi.json", _description(access.needs_token), methods=["GET"]),
            *_metadata_routes(sign_in),
        ],
        middleware=[
            Middleware(RequestLog, metrics=metrics),
            Middleware(AuthMiddleware, gate=gate, rates=rates, sign_in=sign_in),
            Middleware(BodyLimit, bytes_max=body_bytes_max, seconds_max=body_s_max),
        ],
        exception_handlers=_handlers(served.path),
        lifespan=_lifespan(mcp, gate),
    )
    # A redirect would send a token to wherever the Host header says.
    app.router.redirect_slashes = False
    app.state.end_subscriptions = end_subscriptions
    app.state.let_in = let_in
    app.state.gate = gate
    app.state.mcp_server = server
    app.state.metrics = metrics
    return app


def _sign_in(access: Access, url: str) -> OAuthTokens | None:
    if access.sign_in is None:
        return None
    from worlddb.faces.http.oauth_tokens import OAuthTokens  # Most servers need no JWT.

    return OAuthTokens(access.sign_in, url)


def _metadata_routes(sign_in: OAuthTokens | None) -> list[Route]:
    """Return where clients find the authorisation server (RFC 9728), for REST and for MCP."""

    def route(end: str, tokens: OAuthTokens) -> Route:
        async def answer(_: Request) -> Response:
            return _json(tokens.metadata(end))

        return Route(METADATA_PATH + end, answer, methods=["GET"])

    return [] if sign_in is None else [route(end, sign_in) for end in ("", MCP_PATH)]


def _lifespan(
    mcp: McpSessions, gate: CallerGate
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.run():
            yield
        gate.save_uses()

    return lifespan


def _end(subscriptions: OpenSubscriptions, mcp: McpSessions) -> Callable[[], None]:
    def end() -> None:
        subscriptions.end()
        mcp.end_streams()

    return end


def _let_in(gate: CallerGate, end_subscriptions: Callable[[], None]) -> Callable[[Access], None]:
    def let_in(access: Access) -> None:
        gate.let_in(access)
        # A subscription lasts: it could outlive its token. Whoever may, subscribes anew.
        end_subscriptions()

    return let_in


class ToolThreads:
    """Runs the calls of tools: on the same threads as those of REST, with the same shares."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def __call__(self, run: Callable[[], T], effect: Effect, size: int) -> T:
        """Run a call for the caller of the present request.

        Raises:
            ToolError: no thread became free in time.
        """
        try:
            return await self._threads.run(run, work_of(effect, size), caller_key())
        except HttpError as busy:
            raise ToolError(busy.message) from busy


def _health(check: Callable[[], None]) -> Endpoint:
    # A lane of its own, for one look at a time: whoever asks meanwhile gets the same answer.
    threads = Threads(HEALTH_S_MAX)
    looking: asyncio.Task[None] | None = None

    async def health(_: Request) -> Response:
        nonlocal looking
        if looking is None or looking.done():
            looking = asyncio.create_task(threads.run(check))
        try:
            async with asyncio.timeout(HEALTH_S_MAX):
                await asyncio.shield(looking)
        except (WorldDBError, TimeoutError):
            message = "the store cannot be read, or its file is gone"
            return problem(503, message, type="storage")
        return _json({"status": "ok", "version": __version__})

    return health


def _metrics(
    served: OneStore | TenantStores | WorkerStores, threads: Threads, metrics: ServerMetrics
) -> Endpoint:
    def text() -> str:
        shown = served.metrics_of_all(metrics) if isinstance(served, WorkerStores) else metrics
        return shown.text(served.gauges())

    async def answer(request: Request) -> Response:
        if not request.scope["worlddb.operator"]:
            raise HttpError(403, "this needs an admin token")
        shown = await threads.run(text, caller=caller_key())
        return Response(shown, headers={"Content-Type": CONTENT_TYPE})

    return answer


def _description(with_tokens: bool) -> Endpoint:
    described = openapi(with_tokens=with_tokens)

    async def description(_: Request) -> Response:
        return _json(described)

    return description


def _json(data: object) -> Response:
    body = json.dumps(data, ensure_ascii=False).encode()
    return Response(body, media_type="application/json")


def _handlers(path: str) -> dict[type[Exception] | int, Handler]:
    # Coroutines: Starlette would send plain functions to threads, which may all be taken.
    async def raised(_: Request, error: Exception) -> Response:
        return problem_of(error, "" if path == ":memory:" else path)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message, headers = error.detail, dict(error.headers or {})
        if error.status_code == 404:
            message = "404 Not Found: there is nothing at this URL; /openapi.json lists the routes"
        elif error.status_code == 405:
            allowed = _methods_at(request)
            headers["Allow"] = ", ".join(allowed)
            use = " or ".join(name for name in allowed if name != "HEAD")
            message = f"405 Method Not Allowed: use {use}"
        return problem(error.status_code, message, headers=headers)

    return {
        WorldDBError: raised,
        HttpError: raised,
        ValidationError: raised,
        HTTPException: refused,
        Exception: raised,
    }


def _methods_at(request: Request) -> list[str]:
    """Return the methods of all routes at a URL; Starlette itself names those of the first."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.path_regex.match(request.url.path):
            found |= route.methods or set()
    return sorted(found)

"""App: MCP, REST, health, metrics and the description, put behind the doors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from worlddb import __version__
from worlddb.errors import WorldDBError
from worlddb.faces.http.access import Access
from worlddb.faces.http.bodies import BODY_BYTES_MAX, BODY_S_MAX, Bodies
from worlddb.faces.http.callers import memory_for
from worlddb.faces.http.doors import Doors
from worlddb.faces.http.metrics import CONTENT_TYPE, Tally
from worlddb.faces.http.openapi import openapi
from worlddb.faces.http.problems import RefusedError, problem, problem_of
from worlddb.faces.http.rest import rest_routes
from worlddb.faces.http.threads import ASKING_MAX, PATIENCE_S, TOOLS_MAX, Threads, bound_tools
from worlddb.faces.http.watching import Watching
from worlddb.memory.memory import Memory

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    memory: Memory,
    *,
    access: Access,
    body_bytes_max: int = BODY_BYTES_MAX,
    body_s_max: float = BODY_S_MAX,
    patience_s: float = PATIENCE_S,
) -> Starlette:
    """Return the application that serves `memory`; whoever opened that closes it afterwards.

    It is its own guard: run it on any ASGI server, and the doors are there.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    from worlddb.faces.mcp.server import make_server

    tally, threads = Tally(), Threads(patience_s=patience_s, asks=memory.asks_a_model)
    server = make_server(memory_for)
    tools = server.streamable_http_app(
        streamable_http_path="/mcp",
        stateless_http=True,
        json_response=True,
        max_request_body_size=body_bytes_max,
        # The doors have looked at Host and Origin, for all routes alike.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        bound_tools(ASKING_MAX if memory.asks_a_model else TOOLS_MAX)
        async with server.session_manager.run():
            yield

    mcp = next(route for route in tools.routes if isinstance(route, Route))
    app = Starlette(
        routes=[
            # No sessions, so no stream to open by GET and nothing to end by DELETE.
            Route("/mcp", mcp.endpoint, methods=["POST"]),
            *rest_routes(threads),
            Route("/health", _health(memory, threads), methods=["GET"]),
            Route("/metrics", _metrics(memory, threads, tally), methods=["GET"]),
            Route("/openapi.json", _description(bool(access.tokens)), methods=["GET"]),
        ],
        middleware=[
            Middleware(Watching, tally=tally),
            Middleware(Doors, access=access, memory=memory, tally=tally),
            Middleware(Bodies, bytes_max=body_bytes_max, seconds_max=body_s_max),
        ],
        exception_handlers=_handlers(memory.db.engine.store.path),
        lifespan=lifespan,
    )
    # A redirect would send a token to wherever the Host header says.
    app.router.redirect_slashes = False
    return app


def _health(memory: Memory, threads: Threads) -> Endpoint:
    def look() -> None:
        memory.db.engine.store.refuse_lost()
        _ = memory.db.root_state

    async def health(_: Request) -> Response:
        try:
            await threads.run(look)
        except WorldDBError:
            return problem(503, "the store cannot be read, or its file is gone", type="storage")
        return _json({"status": "ok", "version": __version__})

    return health


def _metrics(memory: Memory, threads: Threads, tally: Tally) -> Endpoint:
    async def metrics(request: Request) -> Response:
        if not request.scope["worlddb.admin"]:
            raise RefusedError(403, "this needs a token that opens everything")
        text = await threads.run(lambda: tally.text(memory))
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    return metrics


def _description(with_tokens: bool) -> Endpoint:
    described = openapi(with_tokens=with_tokens)

    async def description(_: Request) -> Response:
        return _json(described)

    return description


def _json(data: object) -> Response:
    body = json.dumps(data, ensure_ascii=False).encode()
    return Response(body, media_type="application/json")


def _handlers(path: str) -> dict[type[Exception] | int, Callable[[Request, Exception], Response]]:
    from pydantic import ValidationError

    def raised(_: Request, error: Exception) -> Response:
        return problem_of(error, "" if path == ":memory:" else path)

    def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        told = {404: "there is nothing at this address", 405: "not by this method"}
        return problem(
            error.status_code,
            told.get(error.status_code, error.detail),
            headers=error.headers,
        )

    return {
        WorldDBError: raised,
        RefusedError: raised,
        ValidationError: raised,
        HTTPException: refused,
        Exception: raised,
    }

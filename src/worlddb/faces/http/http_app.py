"""HTTP app: MCP, REST, explorer, health, metrics and OpenAPI as one ASGI application.

The explorer is static pages in `pages/` that call the REST API from the browser: plain ES modules
without a build step and without other hosts. The pages have no data, so they need no token; a page
asks for one and keeps it in memory. The content security policy forbids inline scripts, inline
styles and every other host.

MCP clients that can ask their user get a session; others need none. Before protocol 2026-07-28, a
question needs an open session: it is sent on the stream of the call, and the answer is another
request. Without a session each request is answered by itself, which costs less and survives a
restart of the server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, TypeVar

import anyio
from blake3 import blake3
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken as McpToken
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import DEFAULT_NEGOTIATED_VERSION, JSONRPCRequest, jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from worlddb import __version__
from worlddb.errors import WorldDBError
from worlddb.faces.call_parts import Effect
from worlddb.faces.http.access_tokens import MCP_PATH, METADATA_PATH, Access
from worlddb.faces.http.auth_middleware import (
    PAGES_PATH,
    AuthMiddleware,
    CallerGate,
    RateLimit,
    RateSource,
    caller_key,
    memory_for,
)
from worlddb.faces.http.http_problems import HttpError, problem, problem_of
from worlddb.faces.http.request_limits import (
    BODY_BYTES_MAX,
    BODY_S_MAX,
    PATIENCE_S,
    BodyLimit,
    Threads,
    work_of,
)
from worlddb.faces.http.rest_routes import openapi, rest_routes, server_routes
from worlddb.faces.http.served_stores import OneStore, TenantStores
from worlddb.faces.http.server_metrics import CONTENT_TYPE, RequestLog, ServerMetrics
from worlddb.faces.http.token_desk import TokenDesk
from worlddb.faces.http.token_file import TokenUses
from worlddb.faces.http.worker_pool import WorkerStores
from worlddb.faces.http.write_groups import GroupThread, GroupWriter
from worlddb.faces.mcp.mcp_server import MemoryServer, OpenSubscriptions, make_server
from worlddb.faces.user_paths import is_file
from worlddb.memory.memory import Memory

if TYPE_CHECKING:
    from worlddb.faces.http.oauth_tokens import OAuthTokens


KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    # The browser revalidates each file; usually it has not changed.
    "Cache-Control": "no-cache",
}


@cache
def page_files() -> dict[str, tuple[bytes, str, str]]:
    """Return the content, kind and tag of every page file by its path below `/ui/`."""
    found = {}
    folder = files("worlddb.faces.http") / "pages"
    for part in (folder, folder / "vendor"):
        prefix = "" if part == folder else "vendor/"
        for item in part.iterdir():
            kind = KINDS.get(item.name.rpartition(".")[2])
            if kind and item.is_file():
                data = item.read_bytes()
                found[prefix + item.name] = data, kind, f'"{blake3(data).hexdigest()[:16]}"'
    return found


def explorer_routes() -> list[Route]:
    """Return the routes of the pages."""
    return [
        Route("/", _page, methods=["GET"]),
        Route(PAGES_PATH + "{path:path}", _page, methods=["GET"]),
    ]


async def _page(request: Request) -> Response:
    name = request.path_params.get("path", "index.html")
    try:
        data, kind, tag = page_files()[name]
    except KeyError:
        raise HttpError(404, "there is no such page; open / for the explorer") from None
    headers = {**HEADERS, "ETag": tag, "Content-Type": kind}
    if kind == KINDS["svg"]:  # A browser asks for the icon at each change of the address.
        headers["Cache-Control"] = "max-age=3600"
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers)


SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
TOOL_CALL = b'"tools/call"'
ASKING = {"elicitation", "sampling"}  # Capabilities that let a server ask its client.
SESSIONS_MAX = 1_000  # Some ten megabytes. Idle sessions end after half an hour.


class McpSessions:
    """The MCP endpoint: passes each request to its session, or answers it without one.

    A session lives in one process. If several processes share the connections, `keeps` is False: no
    session is opened, so clients of older protocols are never asked.
    """

    def __init__(self, server: MemoryServer, *, body_bytes_max: int, keeps: bool = True) -> None:
        self._keeps = keeps
        self._server = server
        # AuthMiddleware has checked Host and Origin for all routes.
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
        """Manage sessions while the server runs."""
        async with self._plain.run(), self._streaming.run():
            yield

    def end_streams(self) -> None:
        """End the streams on which clients wait for messages of the server."""
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
            call = _call_in(scope, body) if scope["method"] == "POST" else None
            if call is None:
                await self._plain.handle_request(scope, receive, send)
            else:
                version = _version_of(scope) or DEFAULT_NEGOTIATED_VERSION
                answer = await self._server.answer(call, Request(scope, receive), version)
                text = answer.model_dump_json(by_alias=True, exclude_unset=True)
                await Response(text, media_type="application/json")(scope, receive, send)
            return
        # A session belongs to its opener: to a token, else to an address.
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


def _version_of(scope: Scope) -> str:
    """Return the protocol version in the header of a request, or ""."""
    version = next((value for name, value in scope["headers"] if name == VERSION_HEADER), b"")
    return version.decode("latin-1")


def _wants_progress(scope: Scope, body: bytes) -> bool:
    """Return whether a request without a session asks for progress on a stream."""
    is_new = _version_of(scope) not in ("", *HANDSHAKE_PROTOCOL_VERSIONS)
    return is_new and b'"progressToken"' in body


def _call_in(scope: Scope, body: bytes) -> JSONRPCRequest | None:
    """Return the call of a tool in a request without a session; None for what the SDK decides."""
    headers = Headers(scope=scope)
    kind = headers.get("content-type", "").partition(";")[0].strip()
    if TOOL_CALL not in body or kind != "application/json":
        return None
    accepted = [it.partition(";")[0].strip() for it in headers.get("accept", "").split(",")]
    if "application/json" not in accepted:
        return None
    if _version_of(scope) not in ("", *HANDSHAKE_PROTOCOL_VERSIONS):
        return None
    try:
        call = jsonrpc_message_adapter.validate_python(from_json(body), by_name=False)
    except ValueError:
        return None  # The server reports the error.
    if isinstance(call, JSONRPCRequest) and call.method == "tools/call":
        return call
    return None


def _opens_session(body: bytes) -> bool:
    """Return whether a body is the `initialize` of a client that supports elicitation."""
    if b'"initialize"' not in body:
        return False
    try:
        told = json.loads(body)
        return told["method"] == "initialize" and bool(
            ASKING & told["params"]["capabilities"].keys()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False  # The server reports the error.


HEALTH_S_MAX = 5.0  # A slower check is a failure.

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
    change the tokens of `tokens_file`; `read_access` then returns the new rules. `url` is the
    server's address for clients, unless the OAuth rules have one. Processes that share their
    callers need the same `state_key`.
    """
    metrics = ServerMetrics()
    served = OneStore(memory) if isinstance(memory, Memory) else memory
    is_worker = isinstance(served, WorkerStores)
    rates: RateSource = served if isinstance(served, WorkerStores) else RateLimit()
    uses = TokenUses(None if is_worker else tokens_file)
    gate = CallerGate(access, served, metrics, uses)
    threads = _threads(served, patience_s)
    server = make_server(memory_for, runner=ToolThreads(threads), tools=tools, state_key=state_key)
    groups = _groups(served)
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
            *rest_routes(threads, groups),
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
        lifespan=_lifespan(mcp, gate, groups),
    )
    # A redirect would send a token to the host in the Host header.
    app.router.redirect_slashes = False
    app.state.end_subscriptions = end_subscriptions
    app.state.let_in = let_in
    app.state.gate = gate
    app.state.mcp_server = server
    app.state.metrics = metrics
    return app


def _threads(served: OneStore | TenantStores | WorkerStores, patience_s: float) -> Threads:
    # Reads of a database server wait for it, and a read of a store in memory for the writer.
    turns = is_file(served.path)
    return Threads(patience_s=patience_s, asks_a_model=served.asks_a_model, takes_turns=turns)


def _groups(served: OneStore | TenantStores | WorkerStores) -> GroupWriter | None:
    """Return what writes in groups: not into the stores of tenants, nor into one in memory."""
    if isinstance(served, WorkerStores):
        return served.groups
    if isinstance(served, TenantStores) or served.path == ":memory:":
        return None
    return GroupThread()


def _sign_in(access: Access, url: str) -> OAuthTokens | None:
    if access.sign_in is None:
        return None
    from worlddb.faces.http.oauth_tokens import (
        OAuthTokens,  # Imported late: most servers need none.
    )

    return OAuthTokens(access.sign_in, url)


def _metadata_routes(sign_in: OAuthTokens | None) -> list[Route]:
    """Return the routes of the metadata for REST and MCP (RFC 9728)."""

    def route(end: str, tokens: OAuthTokens) -> Route:
        async def answer(_: Request) -> Response:
            return _json(tokens.metadata(end))

        return Route(METADATA_PATH + end, answer, methods=["GET"])

    return [] if sign_in is None else [route(end, sign_in) for end in ("", MCP_PATH)]


def _lifespan(
    mcp: McpSessions, gate: CallerGate, groups: GroupWriter | None
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.run():
            yield
        if groups is not None:
            groups.close()
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
        # A subscription could outlive its token, so all end; clients may subscribe again.
        end_subscriptions()

    return let_in


class ToolThreads:
    """Runs the calls of tools on the threads of REST, with the same shares."""

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
    # A lane of its own with one check at a time; concurrent requests get the same answer.
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
    # Encoded once: anybody may ask for it, as often as they like.
    described = _json(openapi(with_tokens=with_tokens)).body

    async def description(_: Request) -> Response:
        return Response(described, media_type="application/json")

    return description


def _json(data: object) -> Response:
    body = json.dumps(data, ensure_ascii=False).encode()
    return Response(body, media_type="application/json")


def _handlers(path: str) -> dict[type[Exception] | int, Handler]:
    # Coroutines: Starlette would run plain functions on threads, which may all be busy.
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
    """Return the methods of all routes at a URL; Starlette only names those of the first route."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.path_regex.match(request.url.path):
            found |= route.methods or set()
    return sorted(found)

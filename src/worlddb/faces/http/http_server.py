"""The HTTP server: opens the store, listens, serves until a signal, closes the store."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from worlddb import __version__
from worlddb.consolidate.consolidator import Background
from worlddb.errors import StorageError, WorldDBError
from worlddb.faces.face_settings import Settings, open_memory
from worlddb.faces.hooks.hook_actions import leave_address, remove_address
from worlddb.faces.http.access_tokens import (
    SHORT_TOKEN_CHARS,
    Access,
    is_loopback,
    token_file_warnings,
)
from worlddb.faces.http.http_app import make_app
from worlddb.faces.http.request_limits import (
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    KEEP_ALIVE_S,
    GuardedConnection,
)
from worlddb.faces.http.served_stores import TenantStores, TokenReload, read_access, tenant_stores
from worlddb.faces.user_paths import is_file
from worlddb.memory.memory import Memory

BACKLOG = 2_048  # uvicorn's own default.
GRACE_S = 5  # Longer than a call without a model; service managers kill after 10 s.
LAST_WORDS_S = 0.5  # For the answers to dropped requests.
CLOSING_S_MAX = 3.0  # For closing the store after the last request.
COLLECTED_FROM = 10_000, 20, 20
"""Thresholds of the garbage collector; Python's own are 700, 10 and 10. A request makes some
hundred objects that stay for its time, and few cycles."""
EVERY_ADDRESS = ("0.0.0.0", "::", "")

log = logging.getLogger("worlddb.http")


class HttpServer(uvicorn.Server):
    """Reports when it listens; on a signal it finishes open requests."""

    def __init__(
        self,
        app: Starlette,
        listening: Callable[[], None],
        *,
        every_second: Callable[[], None] = lambda: None,
        trusted_proxies: Sequence[str] = (),
        accepts_at_once: int = BACKLOG,
        grace_s: float | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=GuardedConnection,
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(trusted_proxies),
            forwarded_allow_ips=list(trusted_proxies),
            limit_concurrency=CONNECTIONS_MAX,
            backlog=accepts_at_once,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        super().__init__(config)
        self._app = app
        self._listening = listening
        self._every_second = every_second
        self._grace_s = GRACE_S if grace_s is None else grace_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self.dropped = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and report it."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for listener in sockets or ():
            # asyncio accepts as many connections at once as the backlog has. With few at once,
            # processes that share a socket also share the connections; the others still wait.
            listener.listen(BACKLOG)
        self._listening()

    async def on_tick(self, counter: int) -> bool:
        """Check the connections once a second; ten ticks are a second."""
        if counter % 10 == 0:
            for connection in list(self.server_state.connections):
                if isinstance(connection, GuardedConnection):
                    connection.drop_unless_read()
            self._every_second()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish open requests, for a limited time. Subscriptions end at once."""
        self._app.state.end_subscriptions()
        late = asyncio.get_running_loop().call_later(self._grace_s, self._drop, "out of time")
        await super().shutdown(sockets)
        late.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish and stop on the first signal, stop at once on the second."""
        if self.should_exit:
            self._drop("second signal")
        self.should_exit = True

    def _drop(self, why: str) -> None:
        """Drop open requests."""
        # uvicorn would log a traceback for each of them.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        self.dropped = why
        self.force_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, LAST_WORDS_S, self._abort)

    def _abort(self) -> None:
        """Close open connections: a client that never reads would keep its answer waiting."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, GuardedConnection):
                connection.transport.abort()


def serve(settings: Settings, access: Access, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; then finish open requests and close the store.

    `announce` is called with the server's URL once it listens.
    """
    set_up_logs(settings.log_level)
    _log_warnings(settings, access)
    with ExitStack() as closing:
        listener = closing.enter_context(listener_on(settings.host, settings.port))
        memory = _opened(settings, closing)
        url = address(settings.host, listener.getsockname()[1], access.hosts)

        def listening() -> None:
            if settings.stores is None and is_file(settings.path):
                leave_address(settings.path, url, needs_token=access.needs_token)
                closing.callback(remove_address, settings.path)
            announce(url)
            if isinstance(memory, Memory):
                works = _work_of_writer if settings.workers else warm_up
                warming = threading.Thread(target=works, args=(memory,), name="worlddb-warming")
                warming.start()
                closing.callback(warming.join)

        if settings.workers:
            from worlddb.faces.http.worker_pool import WorkerPool

            pool = WorkerPool(settings, access, listener, memory, url=url)
            dropped = pool.run(listening, grace_s=GRACE_S, closing_s=CLOSING_S_MAX)
        else:
            app = make_app(
                memory,
                access=access,
                tools=settings.tools,
                tokens_file=settings.tokens_file,
                read_access=lambda: read_access(settings),
                url=url,
            )
            dropped = run_app(app, settings, listener, listening)
        if dropped:
            log.warning("%s: open requests are dropped", dropped)
        latest = closing_timer(CLOSING_S_MAX)
    latest.cancel()
    log.info("stopped")


def run_app(
    app: Starlette,
    settings: Settings,
    listener: socket.socket,
    listening: Callable[[], None],
    *,
    is_worker: bool = False,
    grace_s: float | None = None,
    stopper: Callable[[Callable[[], None]], None] = lambda stop: None,
) -> str:
    """Serve an application until a signal; return why requests were dropped, if any were.

    `stopper` gets a function that stops the server like a signal.
    """
    reload = TokenReload(settings, app.state.let_in)
    if settings.tokens_file is not None:
        reload.ask()  # The file may have changed while the store was opened.
        if is_worker:
            # A change of tokens by one worker must reach all workers.
            app.state.gate.before_each = reload.if_changed

    def every_second() -> None:
        reload.if_changed()
        app.state.gate.save_uses(if_due=True)

    server = HttpServer(
        app,
        listening,
        every_second=every_second,
        trusted_proxies=settings.trusted_proxies,
        accepts_at_once=1 if is_worker else BACKLOG,
        grace_s=grace_s,
    )
    stopper(lambda: server.handle_exit(signal.SIGTERM, None))
    with ExitStack() as closing:
        if hasattr(signal, "SIGHUP"):
            closing.callback(signal.signal, signal.SIGHUP, signal.getsignal(signal.SIGHUP))
            signal.signal(signal.SIGHUP, lambda *_: reload.ask())
        server.run(sockets=[listener])
    return server.dropped


def closing_timer(seconds: float) -> threading.Timer:
    """Return a timer that ends the process unless it is cancelled.

    Closing waits for running calls, which may take too long.
    """
    latest = threading.Timer(seconds, _leave)
    latest.daemon = True
    latest.start()
    return latest


def _opened(settings: Settings, closing: ExitStack) -> Memory | TenantStores:
    """Open the store or stores to serve, and register them to be closed at the end."""
    if settings.stores is not None:
        stores = tenant_stores(settings, settings.stores)
        closing.callback(stores.close)
        return stores
    memory = closing.enter_context(open_memory(settings, actor="http"))
    if reason := memory.db.why_read_only:
        log.warning("%s: %s", memory.db.path, reason)
    if settings.consolidate_every_s is not None:
        background = Background(memory.db, every_s=settings.consolidate_every_s)
        closing.callback(_log_failures, background)
        closing.enter_context(background)
    return memory


def _leave() -> None:
    """End the process now. Acknowledged writes are durable."""
    log.warning("out of time: a call is still at work; the process ends without it")
    os._exit(0)


def _work_of_writer(memory: Memory) -> None:
    """Start the background work that only the writing process does."""
    try:
        memory.read_pending()
        memory.db.embed_in_background()
    except WorldDBError as error:
        log.warning("nothing is embedded in the background: %s", error)
    collect_rarely()


def warm_up(memory: Memory) -> None:
    """Load what the first recall needs, and start the background work."""
    try:
        memory.read_pending()
        memory.warm()
        memory.db.embed_in_background()
    except WorldDBError as error:
        # The recall that needs it reports the error to its caller.
        log.warning("recall is not ready: %s", error)
    collect_rarely()


def collect_rarely() -> None:
    """Let the garbage collector look only at new objects, and more rarely.

    A server keeps its modules, models and lists until it ends. To walk through them again and again
    took a tenth of its time, in pauses that delayed all requests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_FROM)


def listener_on(host: str, port: int) -> socket.socket:
    """Return a socket bound to the port.

    Raises:
        StorageError: the address is taken or not allowed.
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(where)
        except OSError:
            made.close()
            raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(f"cannot listen on {host} port {port}: {reason}; try --port") from None
    return made


def set_up_logs(level: str, who: str = "") -> None:
    """Log to stderr. Libraries log warnings only: their details could have texts."""
    shown = f"%(asctime)s %(levelname)s {who}%(message)s"
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=shown)
    logging.getLogger("worlddb").setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel("ERROR" if level == "error" else "WARNING")


def _log_failures(background: Background) -> None:
    failed = [run.error for run in background.runs if run.error is not None]
    if failed:
        log.warning("%d consolidations failed; the last: %s", len(failed), failed[-1])


def _log_warnings(settings: Settings, access: Access) -> None:
    if settings.token is not None and len(settings.token) < SHORT_TOKEN_CHARS:
        log.warning("the token is shorter than %d characters", SHORT_TOKEN_CHARS)
    if settings.tokens_file is not None:
        for warning in token_file_warnings(settings.tokens_file):
            log.warning("%s", warning)
    if access.hosts and not access.needs_token:
        log.warning("host names other than localhost are allowed, but no token is required")
    if not is_loopback(settings.host):
        log.warning("HTTP is not encrypted; put a TLS proxy in front")


def address(host: str, port: int, allowed_hosts: tuple[str, ...] = ()) -> str:
    """Return the URL for clients; if `host` is a wildcard, with an allowed name."""
    if is_loopback(host) or not allowed_hosts:
        name = "127.0.0.1" if host in EVERY_ADDRESS else host
        if ":" in name:
            name = f"[{name.strip('[]')}]"
        return f"http://{name}:{port}"
    name = allowed_hosts[0].removesuffix(":*")
    has_port = ":" in name.rpartition("]")[2]
    return f"http://{name}" if has_port else f"http://{name}:{port}"


def addresses(url: str, path: str) -> dict[str, Any]:
    """Return the URL of each part of the server, for programs."""
    return {
        "url": url,
        "explorer": f"{url}/",
        "mcp": f"{url}/mcp",
        "rest": f"{url}/v1",
        "openapi": f"{url}/openapi.json",
        "health": f"{url}/health",
        "metrics": f"{url}/metrics",
        "store": path,
    }


def welcome_text(url: str, path: str, *, with_tokens: bool) -> str:
    """Return client settings to paste, with a variable in place of the token."""
    bearer = "Authorization: Bearer $WORLDDB_TOKEN"
    header = f' --header "{bearer}"' if with_tokens else ""
    curl = f' -H "{bearer}"' if with_tokens else ""
    entry: dict[str, Any] = {"type": "http", "url": f"{url}/mcp"}
    codex = ""
    if with_tokens:
        # Each client reads the variable in its own syntax; Claude Code without "env:".
        entry["headers"] = {"Authorization": "Bearer ${env:WORLDDB_TOKEN}"}
        codex = '\n  bearer_token_env_var = "WORLDDB_TOKEN"'
    asked = "content-type: application/json"
    return f"""\
worlddb {__version__} serves {path}
  explorer {url}/
  MCP      {url}/mcp
  REST     {url}/v1   ({url}/openapi.json)
  health   {url}/health
  metrics  {url}/metrics

Claude Code:
  claude mcp add --transport http worlddb {url}/mcp{header}
Cursor, Windsurf and others:
  {json.dumps({"mcpServers": {"worlddb": entry}})}
Codex (config.toml):
  [mcp_servers.worlddb]
  url = "{url}/mcp"{codex}
REST:
  curl{curl} -H '{asked}' {url}/v1/memories -d '{{"text": "I like green tea"}}'
  curl{curl} -H '{asked}' {url}/v1/recall -d '{{"query": "what do I like?"}}'

Press Ctrl-C to stop."""

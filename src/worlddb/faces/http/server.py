"""Server: from settings to a listening socket, and back to a closed store."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from worlddb.consolidate.background_consolidator import Background
from worlddb.errors import StorageError, WorldDBError
from worlddb.faces.config import Settings, open_memory
from worlddb.faces.http.access import Access, is_loopback
from worlddb.faces.http.announce import address
from worlddb.faces.http.app import make_app
from worlddb.faces.http.bodies import HEAD_BYTES_MAX
from worlddb.faces.http.connection import ImpatientProtocol
from worlddb.faces.http.tokens import SHORT_TOKEN_CHARS, doubts
from worlddb.memory.memory import Memory

CONNECTIONS_MAX = 1_000
BACKLOG = 2_048
KEEP_ALIVE_S = 75
GRACE_S = 30
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

log = logging.getLogger("worlddb.http")


class HttpServer(uvicorn.Server):
    """Tells when it listens, and takes a signal as the wish to end well, not as an accident."""

    def __init__(self, app: Starlette, listening: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=ImpatientProtocol,
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX,
            backlog=BACKLOG,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        )
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal: end well, or at once if it is the second."""
        if self.should_exit:
            # Impatience: what is not answered by now is dropped, which uvicorn takes for faults of
            # the application, with a stack for each.
            logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
            self.force_exit = True
        self.should_exit = True


def serve(settings: Settings, access: Access, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; then finish what was begun and close the store.

    `announce` is called with the server's URL once it listens.

    Raises:
        InvalidInputError: a setting is wrong.
        StorageError, FormatError, ConflictError: the store or the port cannot be had.
    """
    _set_up_logs(settings.log_level)
    _tell_doubts(settings, access)
    with ExitStack() as closing:
        listener = closing.enter_context(listener_on(settings.host, settings.port))
        memory = closing.enter_context(open_memory(settings, actor="http"))
        if memory.db.engine.store.read_only:
            log.warning("%s: %s", settings.path, memory.db.engine.store.why_read_only)
        if settings.consolidate_every_s is not None:
            background = Background(memory.db, every_s=settings.consolidate_every_s)
            closing.callback(_tell_failures, background)
            closing.enter_context(background)
        url = address(settings.host, listener.getsockname()[1], access.hosts)
        app = make_app(memory, access=access)
        warming = threading.Thread(target=_warm, args=(memory,), name="worlddb-warming")

        def listening() -> None:
            announce(url)
            warming.start()
            closing.callback(warming.join)

        server = HttpServer(app, listening)
        server.run(sockets=[listener])
        if server.force_exit:
            log.warning("a second signal: requests that were not answered yet are dropped")
        log.info("stopped")


def _warm(memory: Memory) -> None:
    try:
        memory.warm()
    except WorldDBError as error:
        # The recall that needs it will say so to whom it concerns.
        log.warning("recall is not ready: %s", error)


def listener_on(host: str, port: int) -> socket.socket:
    """Return a socket that holds the port.

    Raises:
        StorageError: it cannot be had.
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
        told = (error.strerror or str(error)).lower()
        raise StorageError(f"cannot listen on {host} port {port}: {told}; try --port") from None
    return made


def _set_up_logs(level: str) -> None:
    """Log to stderr. Libraries tell only what went wrong: their details could hold texts."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("worlddb").setLevel(LEVELS[level])
    logging.getLogger("uvicorn").setLevel(max(LEVELS[level], logging.WARNING))


def _tell_failures(background: Background) -> None:
    failed = [run.error for run in background.runs if run.error is not None]
    if failed:
        log.warning("%d consolidations failed; the last: %s", len(failed), failed[-1])


def _tell_doubts(settings: Settings, access: Access) -> None:
    if settings.token is not None and len(settings.token) < SHORT_TOKEN_CHARS:
        log.warning("the token is shorter than %d characters", SHORT_TOKEN_CHARS)
    if settings.tokens_file is not None:
        for doubt in doubts(settings.tokens_file):
            log.warning("%s", doubt)
    if access.hosts and not access.tokens:
        log.warning("other names than localhost are allowed, and no token is asked for")
    if not is_loopback(settings.host):
        log.warning("HTTP is not encrypted; put a proxy that speaks TLS in front")

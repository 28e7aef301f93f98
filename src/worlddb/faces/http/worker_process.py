"""Worker process of `worlddb serve --workers N`: answers requests, reads, and forwards writes.

The parent's orders come on stdin as one pickle; stdin then stays open while the parent lives. The
worker reports on stdout that it listens.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from worlddb.errors import WorldDBError
from worlddb.faces.face_settings import Settings, open_memory
from worlddb.faces.http.http_app import make_app
from worlddb.faces.http.http_server import closing_timer, collect_rarely, run_app, set_up_logs
from worlddb.faces.http.served_stores import OneStore, TenantStores, read_access, tenant_stores
from worlddb.faces.http.server_metrics import ServerMetrics
from worlddb.faces.http.token_file import TokenUses
from worlddb.faces.http.worker_pool import READY, WorkerOrders, WorkerStores, WriteLink
from worlddb.memory.memory import Memory

TELL_EVERY_S = 1.0  # The maximum age of this worker's counts in /metrics of another.
PIPE_BYTES = 4_096  # Any size: nothing more comes on stdin.
WRITER_GONE = 1  # The exit code of a worker whose parent has ended.
NICE = 5
"""How much lower the priority of a worker is than that of the writer. A third of the weight: enough
for the writer to go first when it wakes, and beside other programs a worker still gets its part."""

log = logging.getLogger("worlddb.http")


def work(orders: WorkerOrders) -> int:
    """Serve until a signal, or until the parent is gone; return the exit code."""
    settings, gone = orders.settings, threading.Event()
    set_up_logs(settings.log_level, f"worker {orders.number}: ")
    with ExitStack() as closing:
        own = _opened(settings, closing)
        served = WorkerStores(own, WriteLink(orders.writer), os.getpid())
        app = make_app(
            served,
            access=orders.access,
            tools=settings.tools,
            tokens_file=settings.tokens_file,
            read_access=lambda: read_access(settings),
            url=orders.url,
            state_key=orders.state_key,
        )
        listener = closing.enter_context(socket.socket(fileno=orders.listener))

        def listening() -> None:
            sys.stdout.buffer.write(READY)
            sys.stdout.buffer.flush()
            _background(_tell, served, app.state.gate.uses, app.state.metrics)
            if isinstance(own, OneStore):
                _background(_warm, own.memory)

        def stopper(stop: Callable[[], None]) -> None:
            _background(_end_with_parent, gone, stop)

        dropped = run_app(
            app,
            settings,
            listener,
            listening,
            is_worker=True,
            grace_s=orders.grace_s,
            stopper=stopper,
        )
        if dropped:
            log.warning("%s: open requests are dropped", dropped)
        with suppress(WorldDBError):
            served.tell(app.state.gate.uses, app.state.metrics)
        latest = closing_timer(orders.closing_s)
    latest.cancel()
    return WRITER_GONE if gone.is_set() else 0


def _opened(settings: Settings, closing: ExitStack) -> OneStore | TenantStores:
    """Open the stores for reading; the writer has created and migrated them."""
    if settings.stores is not None:
        stores = tenant_stores(settings, settings.stores)
        closing.callback(stores.close)
        return stores
    made = open_memory(settings, create=False, migrate=False, actor="http")
    return OneStore(closing.enter_context(made))


def _background(task: Callable[..., None], *given: object) -> None:
    threading.Thread(target=task, args=given, name="worlddb-worker", daemon=True).start()


def _end_with_parent(gone: threading.Event, stop: Callable[[], None]) -> None:
    # Reads until the parent ends. Not by `sys.stdin`, whose lock would be held at exit.
    while os.read(sys.stdin.fileno(), PIPE_BYTES):
        pass
    gone.set()
    log.error("the process that writes has ended; this worker ends, too")
    stop()


def _tell(served: WorkerStores, uses: TokenUses, metrics: ServerMetrics) -> None:
    """Report this worker's counts to the writer at intervals."""
    with suppress(WorldDBError):  # The writer is gone.
        while True:
            time.sleep(TELL_EVERY_S)
            served.tell(uses, metrics)


def _warm(memory: Memory) -> None:
    """Load what the first recall needs. The writer embeds new texts."""
    try:
        memory.warm()
        memory.db.engine.search.follow(elsewhere=True)
    except WorldDBError as error:
        log.warning("recall is not ready: %s", error)
    collect_rarely()


def main() -> int:
    """Run a worker by the orders on stdin."""
    orders = pickle.load(sys.stdin.buffer)
    with suppress(OSError):  # A system may refuse it; then writes only wait longer.
        os.nice(NICE)
    # A terminal may stop the processes in its background that write to it.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        return work(orders)
    except WorldDBError as error:
        log.error("%s", error)
        return 1

"""`worlddb serve --workers N`: one process that writes, and N that answer requests and read.

    this process: the listening socket and the writer ──starts, restarts, stops──▶ N workers

W1  Workers accept connections on the same socket. Each checks tokens and arguments, makes reads
    itself, and hands writes on.
W2  A worker that ends by itself is started again, after a pause that grows while that goes on.
W3  If this process ends, however it does, the workers end. No write is acknowledged without it.
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from worlddb.errors import InvalidInputError, StorageError
from worlddb.faces.face_settings import Settings
from worlddb.faces.http.access_tokens import Access
from worlddb.faces.http.served_stores import OneStore, TenantStores
from worlddb.faces.http.token_reload import TokenReload
from worlddb.faces.http.token_uses import TokenUses
from worlddb.faces.http.write_link import WriteServer
from worlddb.memory.memory import Memory

READY = b"listening\n"
LOOK_S = 0.1  # Between two looks at the workers; nobody notices a tenth of a second.
LOOKS_PER_RELOAD = 10  # A second, as a server without workers looks at the tokens.
PAUSE_S = 0.2  # Before a worker is started again for the first time: a chance event.
PAUSE_S_MAX = 10.0  # What keeps a worker from starting lasts; the log need not fill up with it.
CALM_S = 60.0  # A worker that ran for so long was well: its end is a new story.
SPARE_S = 2.0  # For the end of a process beyond the times that it allows itself.
KEY_BYTES = 32  # As many as the key has that the SDK of MCP makes of them.
PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import main; sys.exit(main())"
MODULE = "worlddb.faces.http.worker_process"

log = logging.getLogger("worlddb.http")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrders:
    """What a worker has to know: its number, what it serves and to whom, and where writes go."""

    number: int
    settings: Settings
    access: Access
    writer: str
    listener: int
    url: str
    state_key: bytes
    grace_s: float
    closing_s: float


class _WorkerPlace:
    """A place in the pool: the process that runs there, and when a next one is due."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.is_ready = False
        self.started_at = 0.0
        self.due_at = 0.0
        self.pause_s = PAUSE_S

    def start(self, orders: WorkerOrders) -> None:
        """Start a process. Its orders come by a pipe, where nobody else reads the tokens."""
        self.is_ready, self.started_at = False, time.monotonic()
        program = PROGRAM.format(path=sys.path, module=MODULE)
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[orders.listener],
            start_new_session=True,  # Ctrl-C is for the parent, which tells the workers.
        )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # It has ended already; `has_ended` finds that out.
            self.process.stdin.write(pickle.dumps(orders))
            self.process.stdin.flush()

    def look(self) -> int | None:
        """Note whether the worker listens; return its exit code if it has ended."""
        if self.process is None:
            return None
        stdout = self.process.stdout
        assert stdout is not None
        if not self.is_ready and select.select([stdout], [], [], 0)[0]:
            self.is_ready = os.read(stdout.fileno(), len(READY)) == READY
        return self.process.poll()

    def leave(self) -> float:
        """Let go of a process that has ended; return after how many seconds a next one is due."""
        assert self.process is not None
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # What it has not read is of no use any more.
                pipe.close()
        self.process, self.is_ready = None, False
        now = time.monotonic()
        pause_s = PAUSE_S if now - self.started_at > CALM_S else self.pause_s
        self.due_at, self.pause_s = now + pause_s, min(PAUSE_S_MAX, 2 * pause_s)
        return pause_s

    def signal(self, number: int) -> None:
        """Send a signal, if there is a process."""
        if self.process is not None:
            self.process.send_signal(number)


class WorkerPool:
    """Runs the workers of one server, from its main thread."""

    def __init__(
        self,
        settings: Settings,
        access: Access,
        listener: socket.socket,
        memory: Memory | TenantStores,
        *,
        url: str,
    ) -> None:
        self._settings = settings
        self._access = access
        self._listener = listener
        self._url = url
        self._served = memory if isinstance(memory, TenantStores) else OneStore(memory)
        self._reload = TokenReload(settings, self._let_in)
        self._workers = [_WorkerPlace(number + 1) for number in range(settings.workers)]
        self._uses = TokenUses(settings.tokens_file)
        self._state_key = os.urandom(KEY_BYTES)
        self._signals = 0

    def run(self, listening: Callable[[], None], *, grace_s: float, closing_s: float) -> str:
        """Serve until a signal; return why open requests were dropped, if they were.

        Raises:
            StorageError: a worker cannot be started.
        """
        writer = WriteServer(self._served, self._uses)
        try:
            with self._signalled():
                try:
                    self._start(writer, grace_s, closing_s)
                    if not self._signals:
                        listening()
                    self._watch(writer, grace_s, closing_s)
                finally:
                    dropped = self._end(grace_s + closing_s + SPARE_S)
        finally:
            writer.close()
            self._reload.if_changed()  # A token that a worker has added just now is known, too.
            self._uses.save(self._access.tokens)
        return dropped

    def _start(self, writer: WriteServer, grace_s: float, closing_s: float) -> None:
        """Start all workers, and wait until they listen."""
        for worker in self._workers:
            worker.start(self._orders(worker, writer, grace_s, closing_s))
        while not self._signals and not all(worker.is_ready for worker in self._workers):
            time.sleep(LOOK_S)
            for worker in self._workers:
                code = worker.look()
                if code is not None:
                    raise StorageError(
                        f"worker {worker.number} has ended before it listened ({_told(code)}); the "
                        "log says why"
                    )

    def _orders(
        self, worker: _WorkerPlace, writer: WriteServer, grace_s: float, closing_s: float
    ) -> WorkerOrders:
        return WorkerOrders(
            number=worker.number,
            settings=self._settings,
            access=self._access,
            writer=writer.address,
            listener=self._listener.fileno(),
            url=self._url,
            state_key=self._state_key,
            grace_s=grace_s,
            closing_s=closing_s,
        )

    def _watch(self, writer: WriteServer, grace_s: float, closing_s: float) -> None:
        """Restart workers that end, and look at the tokens, until a signal comes."""
        looks = 0
        while not self._signals:
            time.sleep(LOOK_S)
            looks += 1
            if looks % LOOKS_PER_RELOAD == 0:
                self._reload.if_changed()
                self._uses.save(self._access.tokens, if_due=True)
            for worker in self._workers:
                if worker.process is None and time.monotonic() >= worker.due_at:
                    worker.start(self._orders(worker, writer, grace_s, closing_s))
                code = worker.look()
                if code is not None and worker.process is not None:
                    writer.forget(worker.process.pid)
                    pause_s = worker.leave()
                    told = "worker %d has ended (%s); it is started again in %.1f s"
                    log.error(told, worker.number, _told(code), pause_s)

    def _end(self, seconds: float) -> str:
        """Let the workers finish what they have begun, and end."""
        self._listener.close()  # Otherwise the system would still accept connections.
        told, deadline = 0, time.monotonic() + seconds
        while running := [worker for worker in self._workers if worker.process is not None]:
            if told < max(1, self._signals):
                told += 1
                for worker in running:
                    worker.signal(signal.SIGTERM)
            for worker in running:
                if worker.look() is not None:
                    worker.leave()
            if time.monotonic() > deadline:
                for worker in running:
                    worker.signal(signal.SIGKILL)
                return "out of time"
            time.sleep(LOOK_S)
        return ""

    def _let_in(self, access: Access) -> None:
        self._access = access
        self._served.keep(access)

    @contextmanager
    def _signalled(self) -> Iterator[None]:
        """Count the signals that end a server; on SIGHUP all processes read the tokens again."""

        def end(number: int, frame: FrameType | None) -> None:
            self._signals += 1

        def again(number: int, frame: FrameType | None) -> None:
            self._reload.ask()
            for worker in self._workers:
                if worker.is_ready:  # Before that, the signal would end it.
                    worker.signal(number)

        wanted = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: again}
        before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def check_workers(settings: Settings) -> None:
    """Check that what is served can be served by several processes.

    Raises:
        InvalidInputError: it cannot.
    """
    if not settings.workers:
        return
    if sys.platform == "win32":
        raise InvalidInputError("--workers: needs sockets that processes share, as Unix has them")
    if settings.stores is None and settings.path == ":memory:":
        raise InvalidInputError("--workers: a store in memory belongs to one process; name a file")


def _told(code: int) -> str:
    """Return an exit code as people write it."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"

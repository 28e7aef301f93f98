"""Worker pool: `worlddb serve --workers N`. One process writes; N answer requests and read.

    request ─▶ worker: token, arguments ─▶ WriteLink ─▶ WriteServer: Memory ─▶ result ─▶ answer
                      └─ reads: its own Memory on the same store

W1  Workers accept connections on the same socket. Each checks tokens and arguments, reads the store
    itself, and sends writes to the parent process, which has the listening socket and the writer.
W2  A worker that ends is restarted, after a pause that grows with repeated failures.
W3  If the parent ends, the workers end. No write is acknowledged without it.
W4  The writer comes first on the processors: all writes wait for it, and it needs little. Otherwise
    it waits for the recalls of the workers at each fsync and each message.

A connection between a worker and the writer has one request at a time, as pickles; a worker opens
as many as it has writing threads. The socket is in a folder that only this user, who may open the
store anyway, can enter.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from types import FrameType
from typing import Any

from worlddb.errors import InvalidInputError, StorageError
from worlddb.faces.diagnosis import Diagnosis
from worlddb.faces.face_settings import Settings
from worlddb.faces.http.access_tokens import Access, AccessToken
from worlddb.faces.http.auth_middleware import TENANT, RateLimit
from worlddb.faces.http.served_stores import (
    CallerMemory,
    OneStore,
    TenantCaller,
    TenantStores,
    TokenReload,
    declared_call,
)
from worlddb.faces.http.server_metrics import MetricsState, ServerMetrics
from worlddb.faces.http.token_file import TokenUse, TokenUses
from worlddb.faces.http.write_groups import (
    WRITER_GONE,
    GroupLink,
    GroupServer,
    answer_of_error,
    error_of_answer,
    group_address,
)
from worlddb.memory.memory import Memory
from worlddb.memory.prepared_write import PreparedWrite
from worlddb.model.text_safety import Origin

BACKLOG = 256  # Concurrent connections of all workers' threads.
CALLERS_MAX = 10_000  # Tokens whose calls are cached; they are cheap to make again.
Caller = CallerMemory | TenantCaller


class WriteServer:
    """The writer's end of the sockets: runs the writes of all workers."""

    def __init__(self, served: OneStore | TenantStores, uses: TokenUses) -> None:
        self._served = served
        self._uses = uses
        self._metrics = ServerMetrics()
        self._rates = RateLimit()
        self._lock = threading.Lock()
        self._callers: dict[tuple[AccessToken | None, Origin | None], Caller] = {}
        self._states: dict[int, MetricsState] = {}
        self._folder = tempfile.mkdtemp(prefix="worlddb-")
        self.address = os.path.join(self._folder, "writer")
        try:
            self._listener = Listener(self.address, "AF_UNIX", BACKLOG)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise StorageError(
                f"{self.address}: workers cannot be reached by it: {error}; set TMPDIR to another "
                "folder, with a short name"
            ) from None
        self._groups: GroupServer | None = None
        if isinstance(served, OneStore):
            self._groups = GroupServer(group_address(self.address), self._caller_of_group)
        threading.Thread(target=self._accept, name="worlddb-workers", daemon=True).start()

    def close(self) -> None:
        """Accept no more connections. Open connections end with their workers."""
        self._listener.close()
        if self._groups is not None:
            self._groups.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def forget(self, worker: int) -> None:
        """Record that a worker has ended: its totals stay, its gauges become 0."""
        with self._lock:
            if worker in self._states:
                self._states[worker] = self._states[worker].at_rest()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return  # Closed.
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        """Answer requests until the worker closes the connection."""
        with connection, suppress(EOFError, OSError):
            while True:
                name, given = pickle.loads(connection.recv_bytes())
                try:
                    answer = "", getattr(self, f"on_{name}")(*given)
                except Exception as error:
                    answer = answer_of_error(error)
                connection.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))

    def on_call(
        self,
        token: AccessToken | None,
        tenant: str,
        origin: Origin | None,
        name: str,
        given: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Run a declared call as a token allows it. The worker has checked the token."""
        TENANT.set(tenant)  # Each connection has its own thread, and so its own context.
        return getattr(self._caller(token, origin), name)(*given, **options)

    def _caller(self, token: AccessToken | None, origin: Origin | None) -> Caller:
        """Return the calls of a token, made before or new."""
        caller = self._callers.get((token, origin))
        if caller is None:
            caller = self._served.caller(token, self._metrics, self._uses)
            caller = caller if origin is None else caller.signed(origin=origin)
            if len(self._callers) >= CALLERS_MAX:
                self._callers.clear()
            self._callers[token, origin] = caller
        return caller

    def _caller_of_group(self, token: AccessToken | None, origin: Origin | None) -> CallerMemory:
        caller = self._caller(token, origin)
        assert isinstance(caller, CallerMemory)  # Writes of tenants are not grouped.
        return caller

    def on_rate(self, digest: bytes, per_minute: int) -> float:
        """Count a request of a token; return the seconds that the token must wait first."""
        with self._lock:
            return self._rates.wait_s(digest, per_minute)

    def on_uses(self, noted: dict[bytes, TokenUse]) -> None:
        """Merge the token uses of a worker."""
        self._uses.add(noted)

    def on_all_uses(self) -> dict[bytes, TokenUse]:
        """Return the uses of all tokens."""
        return self._uses.all()

    def on_check(self) -> None:
        """Check that the store can be read."""
        self._served.check()

    def on_metrics(self, worker: int, state: MetricsState) -> list[MetricsState]:
        """Replace the counts of a worker; return those of all processes."""
        with self._lock:
            self._states[worker] = state
            return [self._metrics.state(), *self._states.values()]


class WriteLink:
    """A worker's end of the sockets to the writing process. Thread-safe."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._idle: list[Connection] = []

    def ask(self, name: str, *given: Any) -> Any:
        """Send a request to the writer and return its answer.

        Raises:
            WorldDBError, HttpError: what the call itself raises.
            StorageError: the writer is gone; the call was done or not.
        """
        question = pickle.dumps((name, given), pickle.HIGHEST_PROTOCOL)
        try:
            connection = self._idle.pop()  # Atomic, so no lock is needed.
        except IndexError:
            connection = self._connected()
        try:
            connection.send_bytes(question)
            problem, result = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            connection.close()
            raise StorageError(WRITER_GONE) from None
        self._idle.append(connection)
        if problem:
            raise error_of_answer(problem, result)
        return result

    def close(self) -> None:
        """Close the idle connections; the writer's threads for them end."""
        while self._idle:
            self._idle.pop().close()

    def _connected(self) -> Connection:
        try:
            return Client(self.address, "AF_UNIX")
        except OSError:
            raise StorageError("the process that writes has ended; try again later") from None


class WorkerStores:
    """The stores of a worker: it reads them itself, and sends writes to the writer."""

    def __init__(self, own: OneStore | TenantStores, link: WriteLink, worker: int) -> None:
        self._own = own
        self._link = link
        self._worker = worker
        self.path = own.path
        self.of_tenants = own.of_tenants
        self.asks_a_model = own.asks_a_model
        self.groups = GroupLink(group_address(link.address)) if isinstance(own, OneStore) else None

    def caller(
        self, token: AccessToken | None, metrics: ServerMetrics, uses: TokenUses
    ) -> WorkerCaller:
        """Return the calls that a token allows."""
        return WorkerCaller(self._own.caller(token, metrics, uses), self._link, token)

    def keep(self, access: Access) -> None:
        """Apply a change of the tokens."""
        self._own.keep(access)

    def check(self) -> None:
        """Check that this worker and the writer can read the store.

        Raises:
            StorageError: it cannot.
        """
        self._own.check()
        self._link.ask("check")

    def diagnose(self) -> Diagnosis:
        """Return the findings of `worlddb doctor` on the store, without the writer's work."""
        return self._own.diagnose()

    def gauges(self) -> dict[str, float]:
        """Return the size of the store, or the number of stores that are open here."""
        return self._own.gauges()

    async def rate_wait_s(self, digest: bytes, per_minute: int) -> float:
        """Count a request of a token, over all workers."""
        wait_s: float = await asyncio.to_thread(self._link.ask, "rate", digest, per_minute)
        return wait_s

    def tell(self, uses: TokenUses, metrics: ServerMetrics) -> None:
        """Report this worker's counts to the writer: requests, and uses of tokens."""
        self.metrics_of_all(metrics)
        if noted := uses.handed_over():
            self._link.ask("uses", noted)

    def look_up(self, uses: TokenUses) -> None:
        """Load the token uses of all workers."""
        self._link.ask("uses", uses.handed_over())
        uses.replace(self._link.ask("all_uses"))

    def metrics_of_all(self, own: ServerMetrics) -> ServerMetrics:
        """Report this worker's counts to the writer; return those of all processes."""
        states = self._link.ask("metrics", self._worker, own.state())
        return ServerMetrics.of(states)


class WorkerCaller:
    """The declared calls as one token allows them: reads run here, writes at the writer."""

    def __init__(
        self,
        own: Caller,
        link: WriteLink,
        token: AccessToken | None,
        origin: Origin | None = None,
    ) -> None:
        self._own = own
        self._link = link
        self._token = token
        self._origin = origin
        self.signature = token, origin

    def signed(self, *, origin: Origin) -> WorkerCaller:
        """Return the same calls, with an origin that writes get at best."""
        return WorkerCaller(self._own.signed(origin=origin), self._link, self._token, origin)

    def prepare_write(self, **arguments: Any) -> PreparedWrite | None:
        """Return a write that the writer can carry out in a group, or None: then `write` it.

        Raises:
            InvalidInputError, RejectedError: as `write`.
        """
        assert isinstance(self._own, CallerMemory)  # Writes of tenants are not grouped.
        return self._own.prepare_write(**arguments)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a declared call."""
        if declared_call(name).reads:
            own: Callable[..., Any] = getattr(self._own, name)
            return own

        def write(*given: Any, **options: Any) -> Any:
            tenant = TENANT.get()
            return self._link.ask("call", self._token, tenant, self._origin, name, given, options)

        return write


READY = b"listening\n"
LOOK_S = 0.1  # Interval of checks of the workers.
LOOKS_PER_RELOAD = 10  # Tokens are checked once a second, as without workers.
PAUSE_S = 0.2  # Before the first restart of a worker.
PAUSE_S_MAX = 10.0  # A permanent failure must not fill the log.
CALM_S = 60.0  # After so long a run, the pause starts again at its minimum.
SPARE_S = 2.0  # Beyond the time that a process allows itself to end.
KEY_BYTES = 32  # The size of the key that the MCP SDK derives.
PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import main; sys.exit(main())"
MODULE = "worlddb.faces.http.worker_process"

log = logging.getLogger("worlddb.http")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrders:
    """The orders of a worker: its number, its stores and tokens, and the address of the writer."""

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
    """A place in the pool: its process, and when the next one is due."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.is_ready = False
        self.started_at = 0.0
        self.due_at = 0.0
        self.pause_s = PAUSE_S

    def start(self, orders: WorkerOrders) -> None:
        """Start a process. Its orders come by a pipe, so that nobody else can read the tokens."""
        self.is_ready, self.started_at = False, time.monotonic()
        program = PROGRAM.format(path=sys.path, module=MODULE)
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[orders.listener],
            # Ctrl-C is for the parent, which stops the workers. Not a session: a system that shares
            # the processors among sessions would not compare the priorities of their processes.
            process_group=0,
        )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # It has ended already; `has_ended` reports that.
            self.process.stdin.write(pickle.dumps(orders))
            self.process.stdin.flush()

    def look(self) -> int | None:
        """Record whether the worker listens; return its exit code if it has ended."""
        if self.process is None:
            return None
        stdout = self.process.stdout
        assert stdout is not None
        if not self.is_ready and select.select([stdout], [], [], 0)[0]:
            self.is_ready = os.read(stdout.fileno(), len(READY)) == READY
        return self.process.poll()

    def leave(self) -> float:
        """Clean up after a process that has ended; return the seconds until the next start."""
        assert self.process is not None
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # Unread orders are of no use.
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
    """Runs the workers of one server from its main thread."""

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
        """Serve until a signal; return why requests were dropped, if any were.

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
            self._reload.if_changed()  # Includes a token that a worker has just added.
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
        """Restart workers that end, and check the tokens, until a signal comes."""
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
        """Let the workers finish open requests, and stop them."""
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
        """Count the signals that end a server; on SIGHUP all processes reload the tokens."""

        def end(number: int, frame: FrameType | None) -> None:
            self._signals += 1

        def again(number: int, frame: FrameType | None) -> None:
            self._reload.ask()
            for worker in self._workers:
                if worker.is_ready:  # Earlier, the signal would end it.
                    worker.signal(number)

        wanted = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: again}
        before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def check_workers(settings: Settings) -> None:
    """Check that several processes can serve the store or stores.

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
    """Return an exit code as text."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"

"""Write link: the processes that answer requests hand writes to the one process that writes.

    request ─▶ worker: token, arguments ─▶ WriteLink ─▶ WriteServer: Memory ─▶ result ─▶ answer
                      └─ reads: its own Memory on the same store

A connection carries one question and its answer at a time, as pickles; a worker opens as many as it
has threads that write. The socket lies in a folder that only this user may enter, and whoever is
this user may open the store as well.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from worlddb import errors
from worlddb.errors import StorageError, WorldDBError
from worlddb.faces.diagnosis import Diagnosis
from worlddb.faces.http.access_tokens import Access, AccessToken
from worlddb.faces.http.auth_middleware import TENANT
from worlddb.faces.http.caller_memory import CallerMemory, declared_call
from worlddb.faces.http.guess_limit import RateLimit
from worlddb.faces.http.http_problems import HttpError
from worlddb.faces.http.served_stores import OneStore, TenantCaller, TenantStores
from worlddb.faces.http.server_metrics import MetricsState, ServerMetrics
from worlddb.faces.http.token_uses import TokenUse, TokenUses
from worlddb.model.origin import Origin

BACKLOG = 256  # Threads of all workers that connect at the same moment.
CALLERS_MAX = 10_000  # Tokens whose calls are kept ready; they are cheap to make again.
REFUSED = "refused"
"""What stands for a refusal that only HTTP knows."""
FAILED = "failed"
"""What stands for an error that is none of WorldDB's own; the writer has logged it."""

log = logging.getLogger("worlddb.http")
Caller = CallerMemory | TenantCaller


class WriteServer:
    """The end of the process that writes: runs the writes of all workers, a thread for each."""

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
        threading.Thread(target=self._accept, name="worlddb-workers", daemon=True).start()

    def close(self) -> None:
        """Take no more connections. Those that are open end with their workers."""
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def forget(self, worker: int) -> None:
        """Note that a worker has ended: what it counted stays, but nothing of it is at work."""
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
        """Answer one question after the other until the worker closes the connection."""
        with connection, suppress(EOFError, OSError):
            while True:
                name, given = pickle.loads(connection.recv_bytes())
                try:
                    answer = "", getattr(self, f"on_{name}")(*given)
                except WorldDBError as error:
                    answer = error_name(error), str(error)
                except HttpError as error:
                    answer = REFUSED, (error.status, error.message, error.headers, error.type)
                except Exception:
                    log.exception("a write failed")
                    answer = FAILED, ""
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
        """Run a declared call as a token allows it. The worker has checked the token itself."""
        TENANT.set(tenant)  # Each connection has a thread, and so a context, of its own.
        caller = self._callers.get((token, origin))
        if caller is None:
            caller = self._served.caller(token, self._metrics, self._uses)
            caller = caller if origin is None else caller.signed(origin=origin)
            if len(self._callers) >= CALLERS_MAX:
                self._callers.clear()
            self._callers[token, origin] = caller
        return getattr(caller, name)(*given, **options)

    def on_rate(self, digest: bytes, per_minute: int) -> float:
        """Count a request of a token; return how long the token has to wait first."""
        with self._lock:
            return self._rates.wait_s(digest, per_minute)

    def on_uses(self, noted: dict[bytes, TokenUse]) -> None:
        """Note which tokens were used at a worker."""
        self._uses.add(noted)

    def on_all_uses(self) -> dict[bytes, TokenUse]:
        """Return the uses of all tokens."""
        return self._uses.all()

    def on_check(self) -> None:
        """Check that the store can be read."""
        self._served.check()

    def on_metrics(self, worker: int, state: MetricsState) -> list[MetricsState]:
        """Take what a worker has counted; return what everybody has."""
        with self._lock:
            self._states[worker] = state
            return [self._metrics.state(), *self._states.values()]


def error_name(error: WorldDBError) -> str:
    """Return the name of an error's branch of the error tree."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in errors.__all__)


class WriteLink:
    """The end of a worker. Safe to share between threads."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._idle: list[Connection] = []

    def ask(self, name: str, *given: Any) -> Any:
        """Ask the writer and wait for its answer.

        Raises:
            WorldDBError, HttpError: what the call itself raises.
            StorageError: the writer is gone; the call was done or not.
        """
        question = pickle.dumps((name, given), pickle.HIGHEST_PROTOCOL)
        try:
            connection = self._idle.pop()  # One step, so no lock is needed.
        except IndexError:
            connection = self._connected()
        try:
            connection.send_bytes(question)
            problem, result = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            connection.close()
            raise StorageError(
                "the process that writes has ended; a write of this moment is stored or not: try "
                "again with the same idempotency key"
            ) from None
        self._idle.append(connection)
        if problem == REFUSED:
            status, message, headers, kind = result
            raise HttpError(status, message, headers, type=kind)
        if problem == FAILED:
            raise RuntimeError("the call failed in the process that writes; its log says why")
        if problem:
            raise getattr(errors, problem)(result)
        return result

    def close(self) -> None:
        """Close the connections that are idle; the writer's threads for them end."""
        while self._idle:
            self._idle.pop().close()

    def _connected(self) -> Connection:
        try:
            return Client(self._address, "AF_UNIX")
        except OSError:
            raise StorageError("the process that writes has ended; try again later") from None


class WorkerStores:
    """What a worker serves: it reads the stores itself, and lets the writer write them."""

    def __init__(self, own: OneStore | TenantStores, link: WriteLink, worker: int) -> None:
        self._own = own
        self._link = link
        self._worker = worker
        self.path = own.path
        self.of_tenants = own.of_tenants
        self.asks_a_model = own.asks_a_model

    def caller(
        self, token: AccessToken | None, metrics: ServerMetrics, uses: TokenUses
    ) -> WorkerCaller:
        """Return the calls that a token allows."""
        return WorkerCaller(self._own.caller(token, metrics, uses), self._link, token)

    def keep(self, access: Access) -> None:
        """Follow a change of the tokens."""
        self._own.keep(access)

    def check(self) -> None:
        """Check that the store can be read, here and by the writer.

        Raises:
            StorageError: it cannot.
        """
        self._own.check()
        self._link.ask("check")

    def diagnose(self) -> Diagnosis:
        """Return what `worlddb doctor` finds in the store; the work of the writer is its own."""
        return self._own.diagnose()

    def gauges(self) -> dict[str, float]:
        """Return how large the store is, or how many are open here."""
        return self._own.gauges()

    async def rate_wait_s(self, digest: bytes, per_minute: int) -> float:
        """Count a request of a token among those of all workers."""
        wait_s: float = await asyncio.to_thread(self._link.ask, "rate", digest, per_minute)
        return wait_s

    def tell(self, uses: TokenUses, metrics: ServerMetrics) -> None:
        """Tell the writer what was counted here: requests, and uses of tokens."""
        self.metrics_of_all(metrics)
        if noted := uses.handed_over():
            self._link.ask("uses", noted)

    def look_up(self, uses: TokenUses) -> None:
        """Make the uses of tokens known here that all workers have counted."""
        self._link.ask("uses", uses.handed_over())
        uses.replace(self._link.ask("all_uses"))

    def metrics_of_all(self, own: ServerMetrics) -> ServerMetrics:
        """Tell the writer what this worker has counted; return what all processes have."""
        states = self._link.ask("metrics", self._worker, own.state())
        return ServerMetrics.of(states)


class WorkerCaller:
    """The declared calls as one token allows them: reads are made here, writes by the writer."""

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

    def signed(self, *, origin: Origin) -> WorkerCaller:
        """Return the same calls for what an origin brings in at best."""
        return WorkerCaller(self._own.signed(origin=origin), self._link, self._token, origin)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a declared call."""
        if declared_call(name).reads:
            own: Callable[..., Any] = getattr(self._own, name)
            return own

        def write(*given: Any, **options: Any) -> Any:
            tenant = TENANT.get()
            return self._link.ask("call", self._token, tenant, self._origin, name, given, options)

        return write

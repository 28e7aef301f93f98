"""Served stores: one store, or a folder with one store for each tenant.

    token ──▶ tenant ──▶ DIR/tenant.db, opened on demand; the least recently used one is closed

A tenant's store is an ordinary file. Its name comes from the token, or from the header of an
operator whose token opens everything, so no call of one tenant reaches another tenant's file.

`CallerMemory` has the calls of a Memory that one token allows. `TokenReload` reloads the tokens
when their file changes, or on SIGHUP.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import to_json

from worlddb.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RejectedError,
    StorageError,
    WorldDBError,
)
from worlddb.faces.call_parts import Call
from worlddb.faces.calls import CALLS
from worlddb.faces.diagnosis import Diagnosis, diagnosis_of, examine_served, ok
from worlddb.faces.face_settings import Settings, embedder_of, extractor_of, with_edge_types
from worlddb.faces.http.access_tokens import Access, AccessToken, access_of, checked_tenant
from worlddb.faces.http.auth_middleware import TENANT
from worlddb.faces.http.http_problems import too_many
from worlddb.faces.http.server_metrics import ServerMetrics
from worlddb.faces.http.token_file import TokenUses
from worlddb.faces.tenant_erasure import TenantErasure, erase_tenant
from worlddb.faces.user_paths import VECTORS_END, tenant_key
from worlddb.memory.memory import Memory, prepare_write
from worlddb.memory.prepared_write import PreparedWrite
from worlddb.memory.results import Retired, Written
from worlddb.model.text_safety import Origin


def json_of(result: Any) -> bytes:
    """Return the result of a declared call as JSON."""
    # Written in Rust; the arguments are read by the same library.
    return to_json(result.to_dict(), inf_nan_mode="constants")


# The effects that count as writes for quotas.
WRITTEN_TYPES = ("Memory", "Session", "Document")
_CALLS = {call.name: call for call in CALLS}


def declared_call(name: str) -> Call:
    """Return the declared call of a name.

    Raises:
        AttributeError: there is none.
    """
    try:
        return _CALLS[name]
    except KeyError:
        told = f"a caller has no {name!r}; it has the declared calls of Memory"
        raise AttributeError(told) from None


def bound_memory(memory: Memory, token: AccessToken | None) -> Memory:
    """Return a memory as a token allows it: with its name as actor, and bound to its scopes."""
    if token is None:
        return memory
    signed = memory.signed(f"http {token.name}", origin=token.origin)
    if token.bounds:
        scope: Any = token.bounds
        return signed.bound(writes_into=token.writes_into, **scope)
    return signed


log = logging.getLogger("worlddb.http")


class CallerMemory:
    """The declared calls of a Memory, as one token allows them.

    Counts writes and retirements; refuses calls that the role of the token does not allow.
    """

    def __init__(
        self,
        memory: Memory,
        token: AccessToken | None,
        metrics: ServerMetrics,
        uses: TokenUses | None = None,
    ) -> None:
        self._memory = memory
        self._token = token
        self._metrics = metrics
        self._uses = uses or TokenUses()

    @property
    def memory(self) -> Memory:
        """The memory, as the token is bound."""
        return self._memory

    def signed(self, *, origin: Origin) -> CallerMemory:
        """Return the same calls, with an origin that writes get at best."""
        signed = self._memory.signed(origin=origin)
        return CallerMemory(signed, self._token, self._metrics, self._uses)

    def prepare_write(self, **arguments: Any) -> PreparedWrite | None:
        """Return a write that can be carried out in a group, or None: then `write` it.

        Raises:
            InvalidInputError, RejectedError: as `write`.
        """
        self._refuse("add")
        return prepare_write(self._memory, **arguments)

    def admit(self) -> None:
        """Count a prepared write against the quota of the token.

        Raises:
            RejectedError: the token may not write.
            HttpError: it has written its memories of today.
        """
        self._refuse("add")
        if self._token is not None:
            self._take(self._token)

    def settle(self, result: Written | Exception) -> Written | Exception:
        """Count what an admitted write has done, and return its result or error."""
        if isinstance(result, Exception) or not result.created:
            if self._token is not None:
                self._uses.give_back(self._token)
        return result if isinstance(result, Exception) else self._counted(result)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a declared call."""
        declared = declared_call(name)
        call: Callable[..., Any] = getattr(self._memory, name)
        return call if declared.reads else self._writing(call, declared.effect)

    def _writing(self, call: Callable[..., Any], effect: str) -> Callable[..., Any]:
        def write(*given: Any, **options: Any) -> Any:
            self._refuse(effect)
            if self._token is None or effect != "add":
                return self._counted(call(*given, **options))
            return self._within_quota(self._token, lambda: call(*given, **options))

        return write

    def _refuse(self, effect: str) -> None:
        if self._token is not None and self._token.read_only:
            raise RejectedError("this token may only read; use one that may write")
        if self._token is not None and effect not in self._token.effects:
            raise RejectedError("this token may only read and write; use one that may curate")

    def _take(self, token: AccessToken) -> None:
        """Take one memory of a token's quota for today."""
        if wait_s := self._uses.take(token):
            told = f"this token may write {token.memories_per_day:,} memories a day"
            raise too_many(f"{told}; the next day begins at midnight UTC", wait_s)

    def _within_quota(self, token: AccessToken, write: Callable[[], Any]) -> Any:
        """Write a memory if its token has quota left for today."""
        self._take(token)
        written = False
        try:
            result = self._counted(write())
            written = getattr(result, "created", True)
        finally:
            if not written:
                self._uses.give_back(token)
        return result

    def _counted(self, result: Any) -> Any:
        if isinstance(result, Retired):
            self._metrics.add("worlddb_memories_retired_total", self._memories(result))
        elif isinstance(result, Written) and result.created:
            self._metrics.add("worlddb_memories_written_total")
        return result

    def _memories(self, ended: Retired) -> int:
        """Return the number of ended memories, without their turns and derived nodes."""
        with self._memory.db.engine.store.read() as reader:
            rows = (reader.node_row(ident) for ident in ended.ids)
            bodies = reader.bodies(row for row in rows if row is not None)
            return sum(body.type in WRITTEN_TYPES for body in bodies)


STORE_END = ".db"
PATIENCE_S = 20.0  # Wait for another tenant's store to become idle; clients wait for 30.
LOOK_S = 0.05  # Interval of checks while waiting.


class OneStore:
    """One store for everybody."""

    of_tenants = False

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.path = memory.db.path
        self.asks_a_model = memory.asks_a_model

    def caller(
        self, token: AccessToken | None, metrics: ServerMetrics, uses: TokenUses
    ) -> CallerMemory:
        """Return the calls that a token allows; without a token, all of them."""
        return CallerMemory(bound_memory(self.memory, token), token, metrics, uses)

    def check(self) -> None:
        """Check that the store can be read.

        Raises:
            StorageError: it cannot, or its file is gone.
        """
        self.memory.db.check_file()

    def gauges(self) -> dict[str, float]:
        """Return the size of the store."""
        newest = self.memory.db.log(limit=1, newest_first=True)
        vectors = self.path + VECTORS_END
        beside = os.path.getsize(vectors) if os.path.isfile(vectors) else 0
        return {
            "worlddb_store_commits": newest[0].seq if newest else 0,
            "worlddb_store_bytes": self.memory.db.engine.store.size_bytes() + beside,
        }

    def diagnose(self) -> Diagnosis:
        """Return the findings of `worlddb doctor` on the store and its background work."""
        return diagnosis_of(examine_served(self.memory.db))

    def keep(self, access: Access) -> None:
        """Apply a change of the tokens: nothing has to be closed."""


@dataclass(eq=False, slots=True)
class _OpenTenant:
    memory: Memory
    users: int = 0


class TenantStores:
    """A folder of stores, of which a limited number is open; thread-safe."""

    of_tenants = True

    def __init__(
        self,
        folder: str,
        make: Callable[[str], Memory],
        open_max: int,
        erase: Callable[[str, bool], TenantErasure],
    ) -> None:
        self.path = folder
        self._erase = erase
        self.asks_a_model = False
        self._make = make
        self._open_max = open_max
        self._state = threading.Condition()
        self._open: OrderedDict[str, _OpenTenant] = OrderedDict()
        self._busy: set[str] = set()
        """Tenants whose store is being opened or closed."""
        self._closed = False

    def caller(
        self, token: AccessToken | None, metrics: ServerMetrics, uses: TokenUses
    ) -> TenantCaller:
        """Return the calls that a token allows in the store of its tenant."""
        return TenantCaller(self, token, metrics, uses)

    @contextmanager
    def lease(self, tenant: str) -> Iterator[Memory]:
        """Yield the open store of a tenant; it stays open for the length of the block.

        Raises:
            ConflictError: all stores that may be open are in use.
            StorageError: the store cannot be opened.
        """
        found = self._taken(tenant)
        try:
            yield found.memory
        finally:
            with self._state:
                found.users -= 1
                self._state.notify_all()

    def _taken(self, tenant: str) -> _OpenTenant:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with self._state:
                if self._closed:
                    raise StorageError("the server stops; try again later")
                found = self._open.get(tenant)
                if found is not None and (found.users or _is_in_place(found.memory)):
                    found.users += 1
                    self._open.move_to_end(tenant)
                    return found
                chosen = self._to_change(tenant)
                if chosen is None:
                    self._wait(deadline)
                    continue
                self._busy.add(chosen)
                gone = self._open.pop(chosen, None)
            if gone is None:
                return self._opened(tenant)
            self._close(chosen, gone)

    def _to_change(self, tenant: str) -> str | None:
        """Return the tenant whose store is to be opened, or closed first; None to wait."""
        if tenant in self._busy:
            return None
        if tenant in self._open or len(self._open) + len(self._busy) < self._open_max:
            return tenant
        return next((name for name, one in self._open.items() if not one.users), None)

    def _wait(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise ConflictError(
                "too many tenants are served at once; try again, or start the server with a "
                "larger --stores-open"
            )
        self._state.wait(LOOK_S)

    def erase(self, tenant: str, receipt: bool) -> TenantErasure:
        """Erase the store of a tenant when its running calls have ended; new calls are refused.

        Raises:
            NotFoundError: there is no such tenant.
            ConflictError: it is in use for too long.
            InvalidInputError, RejectedError, StorageError: as `erase_tenant`.
        """
        if not os.path.isfile(os.path.join(self.path, checked_tenant(tenant) + STORE_END)):
            raise NotFoundError(f"there is no tenant {tenant!r}")
        deadline = time.monotonic() + PATIENCE_S
        with self._state:
            while tenant in self._busy or (tenant in self._open and self._open[tenant].users):
                if time.monotonic() > deadline:
                    raise ConflictError(f"{tenant}: is in use; try again later")
                self._state.wait(LOOK_S)
            self._busy.add(tenant)
            gone = self._open.pop(tenant, None)
        try:
            if gone is not None:
                gone.memory.close()
            return self._erase(tenant, receipt)
        finally:
            with self._state:
                self._busy.discard(tenant)
                self._state.notify_all()

    def _opened(self, tenant: str) -> _OpenTenant:
        """Open a store; other calls of this tenant wait, those of other tenants do not."""
        made: _OpenTenant | None = None
        try:
            made = _OpenTenant(self._make(os.path.join(self.path, tenant + STORE_END)), users=1)
        finally:
            with self._state:
                self._busy.discard(tenant)
                if made is not None:
                    self._open[tenant] = made
                self._state.notify_all()
        return made

    def _close(self, tenant: str, gone: _OpenTenant) -> None:
        try:
            gone.memory.close()
        finally:
            with self._state:
                self._busy.discard(tenant)
                self._state.notify_all()

    def check(self) -> None:
        """Check that the folder is there.

        Raises:
            StorageError: it is gone, or may not be written.
        """
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise StorageError(f"{self.path}: is gone, or may not be written")

    def gauges(self) -> dict[str, float]:
        """Return how many stores are open."""
        return {"worlddb_stores_open": len(self._open)}

    def diagnose(self) -> Diagnosis:
        """Return the number of open stores; the stores themselves are not examined."""
        seen = f"{len(self._open)} of at most {self._open_max} stores of tenants are open"
        return diagnosis_of([ok("stores", seen)])

    def keep(self, access: Access) -> None:
        """Close the stores of tenants without a token, unless they are in use."""
        if access.sign_in is not None or any(token.tenant is None for token in access.tokens):
            return  # An operator, or a person who signs in, may use any tenant.
        kept = {token.tenant for token in access.tokens}
        self._close_all(lambda name: name not in kept)

    def _close_all(self, chosen: Callable[[str], bool]) -> None:
        with self._state:
            idle = [name for name, one in self._open.items() if chosen(name) and not one.users]
            gone = [(name, self._open.pop(name)) for name in idle]
            self._busy.update(idle)
        for name, one in gone:
            self._close(name, one)

    def close(self) -> None:
        """Open no further store, and close all; those in use when their calls have ended."""
        with self._state:
            self._closed = True
        while self._open or self._busy:
            self._close_all(lambda _: True)
            with self._state:
                if self._open or self._busy:
                    self._state.wait(LOOK_S)


def _is_in_place(memory: Memory) -> bool:
    """Return whether the opened file is still the file at the store's path."""
    try:
        memory.db.engine.store.refuse_lost()
    except StorageError:
        return False
    return True


class TenantCaller:
    """The declared calls, in the store of a request's tenant."""

    def __init__(
        self,
        stores: TenantStores,
        token: AccessToken | None,
        metrics: ServerMetrics,
        uses: TokenUses,
        origin: Origin | None = None,
    ) -> None:
        self._stores = stores
        self._token = token
        self._counts = metrics, uses
        self._origin = origin

    def signed(self, *, origin: Origin) -> TenantCaller:
        """Return the same calls, with an origin that writes get at best."""
        return TenantCaller(self._stores, self._token, *self._counts, origin)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a declared call; the store is opened when the call is made."""
        declared_call(name)

        def run(*given: Any, **options: Any) -> Any:
            with self._stores.lease(self._tenant()) as memory:
                bound = bound_memory(memory, self._token)
                bound = bound if self._origin is None else bound.signed(origin=self._origin)
                call = getattr(CallerMemory(bound, self._token, *self._counts), name)
                return call(*given, **options)

        return run

    def _tenant(self) -> str:
        named, own = TENANT.get(), None if self._token is None else self._token.tenant
        if own is not None and named not in ("", own):
            raise RejectedError(f"this token is for the tenant {own} alone")
        if own is None and not named:
            raise InvalidInputError(
                "name the tenant: send the header 'WorldDB-Tenant: NAME', or use a token of a "
                "tenant"
            )
        return own or checked_tenant(named)


def tenant_stores(settings: Settings, path: str) -> TenantStores:
    """Return the stores in a folder; it and the folder of keys are created if missing.

    Raises:
        StorageError: the folder cannot be made.
    """
    try:
        for folder in (settings.stores_keys or path, path):
            os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(f"{folder}: cannot be made: {reason}; choose another folder") from None
    embedder, extractor = embedder_of(settings), extractor_of(settings)

    def make(store: str) -> Memory:
        memory = Memory(
            store,
            embedder=embedder,
            models_dir=settings.models_dir,
            verify_reads=settings.verify_reads,
            audit_reads=settings.audit_reads,
            key=tenant_key(settings, store),
            extractor=extractor,
            user_id=settings.user_id,
            actor="http",
        )
        return with_edge_types(memory, settings)

    def erase(tenant: str, receipt: bool) -> TenantErasure:
        return erase_tenant(replace(settings, stores=path), tenant, receipt=receipt)

    stores = TenantStores(path, make, settings.stores_open, erase)
    stores.asks_a_model = settings.extractor == "llm"
    return stores


def check_tenants(settings: Settings, access: Access) -> None:
    """Check that tokens and stores fit together.

    Raises:
        InvalidInputError: a token has a tenant, but there is one store; or the other way round.
    """
    if access.sign_in is not None:
        if (access.sign_in.tenant_claim is None) == (settings.stores is not None):
            raise InvalidInputError(
                "--stores and --oauth-tenant-claim belong together: the claim names the store"
            )
    tenants: Iterable[AccessToken] = [token for token in access.tokens if token.tenant]
    if settings.stores is None:
        for token in tenants:
            raise InvalidInputError(
                f"token {token.name!r} has a tenant, but the server has one store; start it with "
                "--stores DIR"
            )
        return
    if not access.needs_token:
        raise InvalidInputError(
            "--stores: a token says which tenant calls; give --tokens-file, with a tenant for each"
        )
    for token in access.tokens:
        if token.tenant is None and not token.admin:
            raise InvalidInputError(
                f"token {token.name!r} has no tenant; give it one, or admin = true for all tenants"
            )
    if settings.consolidate_every_s is not None:
        raise InvalidInputError(
            "--stores: no store is consolidated in the background, as it may be closed; run "
            "'worlddb consolidate --db DIR/TENANT.db' instead of --consolidate-every-s"
        )


def read_access(settings: Settings) -> Access:
    """Return the access rules of the settings and the tokens file as they are now."""
    access = access_of(settings)
    check_tenants(settings, access)
    return access


class TokenReload:
    """Reloads the tokens when their file changes, or on SIGHUP.

    If the file is invalid, the earlier tokens stay valid.
    """

    def __init__(self, settings: Settings, let_in: Callable[[Access], None]) -> None:
        self._settings = settings
        self._let_in = let_in
        self._asked = False
        self._seen = self._stamp()

    def ask(self) -> None:
        """Reload the tokens at the next tick, even if the file has not changed."""
        self._asked = True

    def if_changed(self) -> None:
        """Reload the tokens if needed."""
        stamp = self._stamp()
        if not self._asked and stamp == self._seen:
            return
        self._asked, self._seen = False, stamp
        try:
            access = read_access(self._settings)
        except WorldDBError as error:
            log.error("the tokens are not read again, the old ones hold: %s", error)
            return
        self._let_in(access)
        log.info("tokens read again: %d", len(access.tokens))

    def _stamp(self) -> tuple[int, ...] | None:
        if self._settings.tokens_file is None:
            return None
        try:
            found = os.stat(self._settings.tokens_file)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

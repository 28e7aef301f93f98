"""Token desk: the calls of a server on its tokens, for administrators; see server_calls.py.

A change is written to the tokens file and takes effect before the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Unpack

from worlddb import __version__
from worlddb.errors import ConflictError, InvalidInputError, RejectedError, WorldDBError
from worlddb.faces.diagnosis import Diagnosis
from worlddb.faces.http.access_tokens import Access, AccessToken
from worlddb.faces.http.auth_middleware import CallerGate, caller_token
from worlddb.faces.http.token_file import add_token, revoke_token, rotate_token, state_of, tokens_in
from worlddb.faces.server_calls import (
    CallerAccess,
    IssuedToken,
    RevokedToken,
    TokenEntry,
    TokenList,
)
from worlddb.faces.tenant_erasure import TenantErasure
from worlddb.model.inputs import Instant, ScopeIds, groups_of
from worlddb.model.text_safety import FULL, trust_level


class TokenDesk:
    """The tokens of a running server. The token of a request decides what the caller may do."""

    def __init__(
        self,
        gate: CallerGate,
        *,
        path: str | None,
        of_tenants: bool,
        read_access: Callable[[], Access] | None,
        let_in: Callable[[Access], None],
        diagnose: Callable[[], Diagnosis],
        look_up: Callable[[], None] | None = None,
        erase: Callable[[str, bool], TenantErasure] | None = None,
    ) -> None:
        self._gate = gate
        self._path = path if read_access is not None else None
        self._of_tenants = of_tenants
        self._read_access = read_access
        self._let_in = let_in
        self._diagnose = diagnose
        self._look_up = look_up or (lambda: None)
        """Makes the uses of tokens known here that another process counts."""
        self._erase = erase

    def reload(self) -> None:
        """Read the changed tokens file and apply it."""
        if self._read_access is not None:
            self._let_in(self._read_access())

    def access(self) -> CallerAccess:
        """Return what the token of the request may do."""
        token = caller_token()
        return CallerAccess(
            version=__version__,
            token=None if token is None else token.name,
            role="administer" if token is None else token.role,
            read_only=token is not None and token.read_only,
            admin=token is None or token.admin,
            manages_tokens=_is_operator(token) and bool(self._gate.access.tokens),
            bounds={} if token is None else token.bounds,
        )

    def doctor(self) -> Diagnosis:
        """Examine the store and its background work, as `worlddb doctor` does.

        Raises:
            RejectedError: the caller is not an administrator of the whole server.
        """
        if not _is_operator(caller_token()):
            raise RejectedError("a diagnosis is for an administrator of the whole server")
        return self._diagnose()

    def tokens(self) -> TokenList:
        """List the tokens of the server.

        Raises:
            RejectedError: the caller is not an administrator of the whole server.
        """
        self._admitted(changes=False)
        self._look_up()
        now = datetime.now(UTC)
        in_file = {one.digest for one in tokens_in(self._path)} if self._path else set()
        listed = (self._entry(one, now, in_file) for one in self._gate.access.tokens)
        return TokenList(tokens=tuple(listed))

    def add_token(
        self,
        name: str,
        *,
        role: str = "curate",
        expires: Instant | None = None,
        origin: str | None = None,
        per_minute: int | None = None,
        memories_per_day: int | None = None,
        writes_into: Sequence[str] | None = None,
        tenant: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> IssuedToken:
        """Add a token; see `add_token` of server_calls.py.

        Raises:
            RejectedError: the caller is not an administrator of the whole server.
            ConflictError: there is a token of that name, or the server has no tokens file.
            InvalidInputError: an argument is wrong.
        """
        bounds = {f"{one[0].kind}_id": [each.value for each in one] for one in groups_of(scope)}
        options: dict[str, Any] = {
            "expires": expires,
            "origin": origin,
            "per_minute": per_minute,
            "memories_per_day": memories_per_day,
            "writes_into": None if writes_into is None else [*writes_into],
            "tenant": tenant,
        }
        with self._file() as path:
            self._check_tenant(tenant, role)
            value = add_token(path, name, bounds=bounds, role=role, **options)
        return IssuedToken(name=name, token=value)

    def rotate_token(self, name: str) -> IssuedToken:
        """Replace the value of a token.

        Raises:
            RejectedError: the caller is not an administrator of the whole server.
            NotFoundError: the tokens file has no token of that name.
        """
        with self._file() as path:
            return IssuedToken(name=name, token=rotate_token(path, name))

    def revoke_token(self, name: str) -> RevokedToken:
        """Remove a token from the tokens file.

        Raises:
            RejectedError: the caller is not an administrator of the whole server.
            NotFoundError: the tokens file has no token of that name.
            ConflictError: it is the last one.
        """
        with self._file() as path:
            revoke_token(path, name)
        return RevokedToken(name=name)

    def erase_tenant(
        self, tenant: str, *, confirm: str | None = None, receipt: bool = False
    ) -> TenantErasure:
        """Destroy the key of a tenant, then remove its store; see `erase_tenant` there.

        Raises:
            RejectedError: the caller is not an administrator of the whole server, or a scope of the
                tenant is under legal hold.
            ConflictError: a token opens the tenant, it is in use, or this server cannot.
            InvalidInputError: the name is not confirmed.
            StorageError: there is no such store, or it cannot be removed.
        """
        self._admitted(changes=True)
        if self._erase is None:
            raise ConflictError(
                "this server has no stores of tenants, or several workers serve them; use "
                "'worlddb erase --tenant' while no server runs"
            )
        if confirm != tenant:
            raise InvalidInputError(f"erase_tenant: give confirm={tenant!r:.100} as well")
        opened_by = [one.name for one in self._gate.access.tokens if one.tenant == tenant]
        if opened_by:
            raise ConflictError(f"{tenant}: revoke its tokens first: {', '.join(opened_by)}")
        return self._erase(tenant, receipt)

    def _check_tenant(self, tenant: str | None, role: str) -> None:
        if self._of_tenants and tenant is None and role != "administer":
            raise InvalidInputError("tenant: name the tenant whose store the token opens")
        if tenant is not None and not self._of_tenants:
            raise InvalidInputError("tenant: this server has one store; leave the tenant out")

    @contextmanager
    def _file(self) -> Iterator[str]:
        """Yield the tokens file for a change; errors do not show its path."""
        self._admitted(changes=True)
        if self._path is None:
            raise ConflictError(
                "this server has no tokens file; make one with 'worlddb tokens add', and start "
                "the server with --tokens-file FILE"
            )
        try:
            yield self._path
        except WorldDBError as error:
            raise type(error)(str(error).replace(self._path, "the tokens file")) from None

    def _admitted(self, *, changes: bool) -> None:
        token = caller_token()
        if not _is_operator(token):
            raise RejectedError("tokens are for an administrator of the whole server")
        if changes and token is not None and token.read_only:
            raise RejectedError("this token may only read; use one that may administer")
        if changes and token is not None and token.origin is not None:
            if trust_level((token.origin,)) < FULL:
                raise RejectedError("only a caller who is trusted in full may change tokens")

    def _entry(self, token: AccessToken, now: datetime, in_file: set[bytes]) -> TokenEntry:
        last_used, written = self._gate.uses.of(token)
        return TokenEntry(
            name=token.name,
            role=token.role,
            bounds=token.bounds,
            writes_into=token.writes_into,
            origin=token.origin,
            tenant=token.tenant,
            per_minute=token.per_minute,
            memories_per_day=token.memories_per_day,
            expires=token.expires,
            state=state_of(token, now),
            last_used=last_used,
            written_today=written,
            in_file=token.digest in in_file,
        )


def _is_operator(token: AccessToken | None) -> bool:
    return token is None or (token.admin and token.tenant is None)

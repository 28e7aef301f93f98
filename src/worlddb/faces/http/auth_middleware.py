"""Auth middleware: checks Host, Origin and token of every request before any route. Plain ASGI.

A web page can make a browser call a server on its user's machine, by DNS rebinding or by a plain
cross-site request. The first shows in the Host header, the second in Origin.

An admitted request has a caller: the calls of Memory that its token allows. Tasks and worker
threads of the request inherit it, so a tool on another thread has the same caller.

`GuessLimit` limits the number of different wrong tokens per address. A token that was valid from
this address is never delayed. Neither is a repeated wrong token: a client that repeats an old token
learns nothing. Only new guesses count.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, cast

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worlddb.errors import RejectedError
from worlddb.faces.http.access_tokens import Access, AccessToken, token_digest
from worlddb.faces.http.http_problems import HttpError, problem_of, too_many
from worlddb.faces.http.server_metrics import ServerMetrics, address_of
from worlddb.faces.http.token_file import TokenUses
from worlddb.memory.memory import Memory

if TYPE_CHECKING:
    from worlddb.faces.http.oauth_tokens import OAuthTokens


MINUTE_S = 60  # Limits are per minute.
GUESSES_MAX = 50  # More than a person mistypes.
GUESS_EVERY_S = 1.0  # Afterwards one guess per second: 86,400 a day against 2**128 tokens.
ADDRESSES_MAX = 10_000  # Bounds the memory; the least recently active address is dropped.
KEPT_MAX = 1_000  # Tokens remembered per address: some hundred kilobytes.
IPV6_NETWORK_BITS = 64  # A customer's network; its addresses count as one.


@dataclass(slots=True)
class _Visitor:
    """The wrong tokens from one address."""

    left: float = GUESSES_MAX
    at: float = 0.0
    seen: set[bytes] = field(default_factory=set)


class GuessLimit:
    """Limits wrong tokens by address."""

    def __init__(self) -> None:
        self._visitors: OrderedDict[str, _Visitor] = OrderedDict()

    def wait_s(self, address: str, digest: bytes) -> float:
        """Return the seconds that an address must wait before its token is checked; 0 for none."""
        visitor = self._visitors.get(network_of(address))
        if visitor is None or digest in visitor.seen:
            return 0.0
        self._refill(visitor)
        return 0.0 if visitor.left >= 1 else (1 - visitor.left) * GUESS_EVERY_S

    def note(self, address: str, digest: bytes, *, right: bool) -> bool:
        """Record whether a token was valid; return whether this was the last guess for now."""
        network = network_of(address)
        visitor = self._visitors.setdefault(network, _Visitor(at=time.monotonic()))
        self._visitors.move_to_end(network)
        if len(self._visitors) > ADDRESSES_MAX:
            self._visitors.popitem(last=False)
        if digest in visitor.seen:
            return False
        if len(visitor.seen) >= KEPT_MAX:
            visitor.seen.clear()
        visitor.seen.add(digest)
        if right:
            return False
        self._refill(visitor)
        visitor.left -= 1
        return visitor.left < 1

    def _refill(self, visitor: _Visitor) -> None:
        now = time.monotonic()
        visitor.left = min(GUESSES_MAX, visitor.left + (now - visitor.at) / GUESS_EVERY_S)
        visitor.at = now


@lru_cache(ADDRESSES_MAX)
def network_of(address: str) -> str:
    """Return the key of an address: itself, or the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, IPV6_NETWORK_BITS), strict=False))


class RateLimit:
    """Limits requests by token; unused requests of up to a minute accumulate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    async def rate_wait_s(self, digest: bytes, per_minute: int) -> float:
        """Return `wait_s`; a coroutine, because workers ask another process."""
        return self.wait_s(digest, per_minute)

    def wait_s(self, digest: bytes, per_minute: int) -> float:
        """Count a request; return the seconds that its token must wait first; 0 for none."""
        now = self._clock()
        left, at = self._left.get(digest, (float(per_minute), now))
        left = min(per_minute, left + (now - at) * per_minute / MINUTE_S)
        allowed = left >= 1
        self._left[digest] = (left - 1 if allowed else left, now)
        self._left.move_to_end(digest)
        if len(self._left) > ADDRESSES_MAX:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) * MINUTE_S / per_minute


PUBLIC_PATHS = frozenset(("/", "/health", "/openapi.json"))
PAGES_PATH = "/ui/"
"""Paths that need no token: they show nothing of what is remembered."""
WELL_KNOWN = "/.well-known/"
"""Where clients look for an authorisation server; 404 tells them that there is none."""
CHALLENGE = 'Bearer realm="worlddb"'
KNOWN = "worlddb.known"
"""The key of a request's scope that says whether its caller was let in, not only its request."""
PREFLIGHT_S = "600"  # How long a browser may cache a preflight answer.

CALLER: ContextVar[Memory] = ContextVar("worlddb_caller")
TENANT: ContextVar[str] = ContextVar("worlddb_tenant", default="")
"""The tenant that a request names in its header."""
TENANT_HEADER = b"worlddb-tenant"
CALLER_KEY: ContextVar[str] = ContextVar("worlddb_caller_key", default="")
TOKEN: ContextVar[AccessToken | None] = ContextVar("worlddb_token", default=None)
log = logging.getLogger("worlddb.http")


def memory_for() -> Memory:
    """Return the Memory of the current request's caller.

    Raises:
        RejectedError: no request is being answered.
    """
    try:
        return CALLER.get()
    except LookupError:
        raise RejectedError("no request is being answered here") from None


def caller_key() -> str:
    """Return a key of the current request's caller: its token, else its address."""
    return CALLER_KEY.get()


def caller_token() -> AccessToken | None:
    """Return the token of the current request; None if none is needed."""
    return TOKEN.get()


class CallerSource(Protocol):
    """Returns the calls that a token allows."""

    def caller(self, token: AccessToken | None, metrics: ServerMetrics, uses: TokenUses) -> object:
        """Return an object with the declared calls."""

    def keep(self, access: Access) -> None:
        """Apply a change of the tokens."""


class RateSource(Protocol):
    """Counts requests by token."""

    async def rate_wait_s(self, digest: bytes, per_minute: int) -> float:
        """Count a request; return the seconds that its token must wait first; 0 for none."""


class CallerGate:
    """The access rules of a server, and the callers of its tokens. Rules can change at run time."""

    def __init__(
        self,
        access: Access,
        source: CallerSource,
        metrics: ServerMetrics,
        uses: TokenUses | None = None,
    ) -> None:
        self._source = source
        self._metrics = metrics
        self.uses = uses or TokenUses()
        self.before_each: Callable[[], None] = lambda: None
        """Called before the token of a request is looked at; may change whom the gate lets in."""
        self.let_in(access)

    def let_in(self, access: Access) -> None:
        """Replace the access rules."""
        source, counts = self._source, (self._metrics, self.uses)
        # People who sign in may be many, so their callers are made on demand.
        callers = {token.digest: source.caller(token, *counts) for token in access.tokens}
        self.access = access
        self._callers = callers
        self._anybody = source.caller(None, *counts)
        source.keep(access)

    def save_uses(self, *, if_due: bool = False) -> None:
        """Save the last uses of tokens; with `if_due`, only if the last save was long ago."""
        self.uses.save(self.access.tokens, if_due=if_due)

    def caller(self, token: AccessToken | None) -> Memory:
        """Return the calls that a token allows."""
        if token is None:
            return cast(Memory, self._anybody)
        if token.is_listed:
            return cast(Memory, self._callers[token.digest])
        return cast(Memory, self._source.caller(token, self._metrics, self.uses))


class AuthMiddleware:
    """Admits a request and sets its `CALLER`, or answers with an error."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        gate: CallerGate,
        rates: RateSource,
        sign_in: OAuthTokens | None = None,
    ) -> None:
        self.app = app
        self._gate = gate
        self._sign_in = sign_in
        self._guesses = GuessLimit()
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            page = self._allowed_page(scope)
        except HttpError as refused:
            await problem_of(refused)(scope, receive, send)
            return
        if page is not None:
            send = _shared_with(page, send)
            if scope["method"] == "OPTIONS":
                await _preflight_answer()(scope, receive, send)
                return
        self._gate.before_each()
        try:
            token = await self._token_of(scope)
            await self._count(token)
        except HttpError as refused:
            await problem_of(refused)(scope, receive, send)
            return
        scope["worlddb.token"] = token.name if token else ""
        scope["worlddb.operator"] = token is None or (token.admin and token.tenant is None)
        scope[KNOWN] = token is not None or not self._gate.access.needs_token
        # The request has a task of its own, so these variables end with it.
        CALLER.set(self._gate.caller(token))
        TOKEN.set(token)
        TENANT.set(_values(scope, TENANT_HEADER)[0] if _values(scope, TENANT_HEADER) else "")
        CALLER_KEY.set(token.digest.hex() if token else address_of(scope))
        await self.app(scope, receive, send)

    def _allowed_page(self, scope: Scope) -> str | None:
        """Check Host and Origin; return the origin if it is an allowed page of another server."""
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or not self._gate.access.allows_host(hosts[0]):
            raise HttpError(
                421,
                "this Host name is not allowed; start the server with --allowed-host NAME to "
                "allow it",
            )
        if not origins:
            return None
        if len(origins) != 1 or not self._gate.access.allows_origin(origins[0], hosts[0]):
            raise HttpError(
                403,
                "web pages of this Origin may not call; start the server with --allowed-origin URL "
                "to allow it",
            )
        return origins[0] if self._gate.access.shares_with(origins[0]) else None

    async def _token_of(self, scope: Scope) -> AccessToken | None:
        """Return the token of a request; None if none is needed."""
        path = scope["path"]
        if not self._gate.access.needs_token or path in PUBLIC_PATHS:
            return None
        if path.startswith((WELL_KNOWN, PAGES_PATH)):
            return None
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            raise self._unauthorized("send a token: 'Authorization: Bearer …'", path)
        kind, _, value = given[0].partition(b" ")
        token = await self._looked_up(address_of(scope), value.strip(b" "))
        if len(given) != 1 or kind.lower() != b"bearer" or token is None:
            raise self._unauthorized(
                "this token is not valid here, or has expired", path, ', error="invalid_token"'
            )
        return token

    def _unauthorized(self, message: str, path: str, error: str = "") -> HttpError:
        where = "" if self._sign_in is None else f", {self._sign_in.challenge(path)}"
        challenge = f"{CHALLENGE}{error}{where}"
        return HttpError(401, message, {"WWW-Authenticate": challenge, "Connection": "close"})

    async def _count(self, token: AccessToken | None) -> None:
        """Count a request of a token; refuse it above the rate limit."""
        if token is None:
            return
        if token.per_minute is not None:
            if wait_s := await self._rates.rate_wait_s(token.digest, token.per_minute):
                told = f"this token may make {token.per_minute:,} requests in a minute"
                raise too_many(f"{told}; wait a little", wait_s)
        if token.is_listed:
            self._gate.uses.note(token)

    async def _looked_up(self, address: str, value: bytes) -> AccessToken | None:
        """Return the token with a value, unless its address has guessed too often."""
        digest = token_digest(value)
        wait_s = self._guesses.wait_s(address, digest)
        token = None if wait_s else self._gate.access.token_of(value)
        if token is None and self._sign_in is not None:
            # Signed tokens are checked even then: a signature is not a guess, and each is new.
            token = await self._sign_in.token_of(value)
        if token is None and wait_s:
            raise HttpError(
                429,
                "too many wrong tokens came from this address; wait a little, then try again",
                {"Retry-After": str(math.ceil(wait_s)), "Connection": "close"},
            )
        if self._guesses.note(address, digest, right=token is not None):
            log.warning("%s: too many wrong tokens; further ones are not looked at", address)
        return token


def _values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


def _preflight_answer() -> Response:
    """Return the answer to a CORS preflight request."""
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "*, Authorization",
            "Access-Control-Max-Age": PREFLIGHT_S,
        },
    )


def _shared_with(origin: str, send: Send) -> Send:
    """Return a `send` that adds the CORS headers for an allowed page."""

    async def share(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate"),
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return share

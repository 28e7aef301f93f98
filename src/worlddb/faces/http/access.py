"""Access: who may come in, by which name, and what each token opens."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

from worlddb.errors import InvalidInputError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
ANY_PORT = "*"
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}|\*))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A key to some scopes, or to everything (`admin`). Only its hash is kept."""

    name: str
    digest: bytes = field(repr=False)
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    expires: datetime | None = None
    read_only: bool = False
    admin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The tokens that open, and the names and pages by which the server may be called.

    Without tokens everybody who reaches the port may do everything. The loopback names are always
    among the hosts: a page that was tricked into calling us shows its own name, not one of these.
    """

    tokens: tuple[Token, ...] = ()
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def token_of(self, presented: bytes, now: datetime | None = None) -> Token | None:
        """Return the token that was presented, unless it is none of ours or has expired."""
        digest = token_digest(presented)
        found: Token | None = None
        # All of them, always: how long it takes says nothing about how close a guess was.
        for token in self.tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        if found is None or found.expires is None:
            return found
        return found if (now or datetime.now(UTC)) < found.expires else None

    def allows_host(self, host: str) -> bool:
        """Return whether a Host header names this server."""
        return any(_same_host(allowed, host) for allowed in (*LOOPBACK_NAMES, *self.hosts))

    def allows_origin(self, origin: str, host: str) -> bool:
        """Return whether a page may call: one of ours, or one that was allowed."""
        lowered = origin.lower()
        own = lowered in (f"http://{host.lower()}", f"https://{host.lower()}")
        return own or self.shares_with(origin)

    def shares_with(self, origin: str) -> bool:
        """Return whether a page of another origin was allowed."""
        return origin.lower() in self.origins


def token_digest(value: bytes) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(value).digest()


def admin_token(value: str) -> Token:
    """Return the one token that opens everything.

    Raises:
        InvalidInputError: no client could send it.
    """
    return Token(name="admin", digest=token_digest(sendable(value)), admin=True)


def sendable(value: str) -> bytes:
    """Return a token as it stands in a header.

    Raises:
        InvalidInputError: it has characters that a header cannot carry.
    """
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise InvalidInputError(
            "a token has to be printable ASCII without spaces; make one with "
            "'python -c \"import secrets; print(secrets.token_urlsafe(32))\"'"
        )
    return value.encode()


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens on `host`.

    Raises:
        InvalidInputError: the name has no address.
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidInputError(
            f"host {host!r:.100}: no such address here; use 127.0.0.1"
        ) from None
    addresses = {str(info[4][0]).partition("%")[0] for info in found}
    return all(ipaddress.ip_address(one).is_loopback for one in addresses)


def make_access(
    *,
    host: str,
    tokens: Sequence[Token],
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> Access:
    """Return the access of a server on `host`; one that others reach has to be guarded.

    Raises:
        InvalidInputError: a name is wrong, two tokens are the same, or a guard is missing.
    """
    hosts = tuple(_checked_host(name) for name in allowed_hosts)
    origins = tuple(_checked_origin(name) for name in allowed_origins)
    if len({token.digest for token in tokens}) != len(tokens):
        raise InvalidInputError("two tokens are the same; each needs a value of its own")
    if not is_loopback(host):
        if not tokens:
            raise InvalidInputError(
                f"host {host}: others can reach it, so a token is needed; set WORLDDB_TOKEN or "
                "--tokens-file, or listen on 127.0.0.1"
            )
        if not hosts:
            raise InvalidInputError(
                f"host {host}: others can reach it, so say by which names; give --allowed-host "
                "NAME for each, or listen on 127.0.0.1"
            )
    return Access(tokens=tuple(tokens), hosts=hosts, origins=origins)


def _checked_host(given: str) -> str:
    name = given.strip().lower().removesuffix(".")
    found = _HOST.fullmatch(name)
    if found is None:
        raise InvalidInputError(
            f"allowed host {given!r:.100}: give a name such as memory.example.org, with or "
            "without a port; there is no name for all"
        )
    return name


def _checked_origin(given: str) -> str:
    lowered = given.strip().lower()
    parts = urlsplit(lowered)
    plain = parts.scheme and parts.netloc and lowered == f"{parts.scheme}://{parts.netloc}"
    if not plain or "*" in lowered or "@" in lowered:
        raise InvalidInputError(
            f"allowed origin {given!r:.100}: give scheme, name and port of a page, such as "
            "https://app.example.org"
        )
    return lowered


def _same_host(allowed: str, host: str) -> bool:
    """Return whether a Host header is an allowed name; a name without a port allows any."""
    wanted, asked = _HOST.fullmatch(allowed), _HOST.fullmatch(host.lower())
    if wanted is None or asked is None or asked[2] == ANY_PORT:
        return False
    if wanted[1] != asked[1].removesuffix("."):
        return False
    return wanted[2] in (None, ANY_PORT, asked[2])

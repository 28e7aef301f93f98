"""Access tokens: which hosts, web pages, tokens and OAuth issuers may call, and with which scopes.

Tokens are listed in a TOML file:

    [[token]]
    name = "ada's laptop"
    sha256 = "9f86d08…"                 # or value = "the token itself"
    user_id = "ada"                     # and agent_id, app_id, run_id; a text or a list
    writes_into = ["run_id"]            # optional: kinds of further scopes that a write may name
    expires = 2027-01-31T00:00:00Z      # optional
    role = "write"                      # optional: read, write or curate (all that a scope allows)
    origin = "web"                      # optional: the most trusted origin of its writes
    per_minute = 60                     # optional: requests per minute
    memories_per_day = 1000             # optional: memories that it may write per day
    tenant = "acme"                     # with `serve --stores DIR`: its store is DIR/acme.db

A token names at least one scope, or has `admin = true` for everything. `read_only = true` is the
role read. `worlddb tokens` writes such files.

With OAuth 2.1 the server is a resource server: people sign in at the issuer, never here.

    issuer, audience ─▶ token is for this server     scope ─▶ role     claims ─▶ user_id, tenant

This module imports nothing of the extra `server`, so that a wrong setting is reported quickly.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from worlddb.errors import FormatError, InvalidInputError, StorageError
from worlddb.faces.face_settings import Settings
from worlddb.faces.server_calls import ROLES
from worlddb.faces.user_paths import toml_in
from worlddb.model.inputs import KINDS, groups_of
from worlddb.model.text_safety import Origin, check_origin

USUAL_ROLES = {role: f"worlddb:{role}" for role in ROLES}
USUAL_BOUNDS = {"user_id": "sub"}
HOSTS_KEPT = 256  # Host headers as compared; a server has few names.
METADATA_PATH = "/.well-known/oauth-protected-resource"
MCP_PATH = "/mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthRules:
    """The rules for OAuth tokens. `roles` are by OAuth scope; `bounds` name the claims."""

    issuer: str
    resource: str | None
    audiences: tuple[str, ...]
    jwks_url: str | None
    roles: Mapping[str, str]
    bounds: Mapping[str, str]
    tenant_claim: str | None
    per_minute: int | None

    def accepted_audiences(self, resource: str) -> tuple[str, ...]:
        """Return the accepted values of `aud`: those of the settings, else this server."""
        return self.audiences or (resource, f"{resource}/", resource + MCP_PATH)

    def metadata(self, resource: str) -> dict[str, object]:
        """Return the metadata of a protected resource (RFC 9728)."""
        return {
            "resource": resource,
            "authorization_servers": [self.issuer],
            "scopes_supported": list(self.roles),
            "bearer_methods_supported": ["header"],
            "resource_name": "WorldDB",
        }


def oauth_rules(settings: Settings) -> OAuthRules | None:
    """Return the OAuth rules of the settings; None without OAuth.

    Raises:
        InvalidInputError: a setting is wrong.
    """
    if settings.oauth_issuer is None:
        return None
    resource = settings.oauth_resource
    roles = _pairs("oauth_roles", settings.oauth_roles, ROLES) or USUAL_ROLES
    kinds = [f"{kind}_id" for kind in KINDS]
    return OAuthRules(
        issuer=safe_url(settings.oauth_issuer, "oauth_issuer"),
        resource=None if resource is None else safe_url(resource, "oauth_resource").rstrip("/"),
        audiences=settings.oauth_audience,
        jwks_url=settings.oauth_jwks_url and safe_url(settings.oauth_jwks_url, "oauth_jwks_url"),
        roles={scope: role for role, scope in roles.items()},
        bounds=_pairs("oauth_bounds", settings.oauth_bounds, kinds) or USUAL_BOUNDS,
        tenant_claim=settings.oauth_tenant_claim,
        per_minute=settings.oauth_per_minute,
    )


def safe_url(given: str, name: str) -> str:
    """Return a URL after a check that its answers cannot be changed on the way.

    Raises:
        InvalidInputError: it is not a URL, or one without TLS of another machine.
    """
    try:
        parts = urlsplit(given)
        host = parts.hostname or ""
        plain = host and parts.port != 0 and not (parts.username or parts.query or parts.fragment)
    except ValueError:
        plain = False
    if not plain or parts.scheme not in ("http", "https"):
        raise InvalidInputError(f"{name}: give a URL such as https://login.example.org")
    if parts.scheme == "http" and not _is_this_machine(host):
        raise InvalidInputError(f"{name}: {given:.100} has no TLS; give an https URL")
    return given


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _pairs(name: str, given: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return settings such as "read=memory.read" as a mapping."""
    found = {}
    for one in given:
        key, _, value = (part.strip() for part in one.partition("="))
        if key not in known or not value or " " in value:
            raise InvalidInputError(
                f"{name}: {one!r:.80}: write it as {known[0]}=NAME; known are {', '.join(known)}"
            )
        found[key] = value
    return found


LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
ANY_PORT = "*"
SCOPES = tuple(f"{kind}_id" for kind in KINDS)
OTHER_KEYS = ("writes_into", "expires", "read_only", "admin", "tenant")
COUNTS = ("per_minute", "memories_per_day")
KEYS = ("name", "sha256", "value", *SCOPES, *OTHER_KEYS, "role", "origin", *COUNTS)
ROLE_EFFECTS: dict[str, frozenset[str]] = {
    "read": frozenset({"read", "search"}),
    "write": frozenset({"read", "search", "add"}),
    "curate": frozenset({"read", "search", "add", "change", "end"}),
}
"""The effects of the calls that each role allows; an administrator may do what a curator may."""
COUNT_MAX = 1_000_000  # More than one server can answer.
FILE_BYTES_MAX = 4 << 20  # Some ten thousand tokens.
SHORT_TOKEN_CHARS = 16  # Shorter tokens can be guessed.
_TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}", re.ASCII)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}|\*))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token for some scopes, or for everything (`admin`). Only its hash is stored."""

    name: str
    digest: bytes = field(repr=False)
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    writes_into: tuple[str, ...] = ()
    expires: datetime | None = None
    read_only: bool = False
    admin: bool = False
    tenant: str | None = None
    curates: bool = True
    origin: Origin | None = None
    per_minute: int | None = None
    memories_per_day: int | None = None
    is_listed: bool = True
    """False for the token of somebody who signed in at an authorisation server."""

    @property
    def role(self) -> str:
        """The role: read, write, curate or administer."""
        if self.read_only:
            return "read"
        return "administer" if self.admin else "curate" if self.curates else "write"

    @property
    def effects(self) -> frozenset[str]:
        """The effects of the calls that the token allows."""
        return ROLE_EFFECTS["curate" if self.role == "administer" else self.role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The valid tokens, and the allowed host names and web pages.

    Without tokens and without OAuth, everybody who reaches the port may do everything. The loopback
    names are always allowed as hosts, because an attack by DNS rebinding shows another name.
    """

    tokens: tuple[AccessToken, ...] = ()
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    sign_in: OAuthRules | None = None
    _by_digest: Mapping[bytes, AccessToken] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """File the tokens by their hashes."""
        object.__setattr__(self, "_by_digest", {token.digest: token for token in self.tokens})

    @property
    def needs_token(self) -> bool:
        """Whether every request needs a token."""
        return bool(self.tokens) or self.sign_in is not None

    def token_of(self, presented: bytes, now: datetime | None = None) -> AccessToken | None:
        """Return the token with this value; None if it is unknown or has expired."""
        # By the hash of what was presented: how close a guess was, no time taken can show.
        found = self._by_digest.get(token_digest(presented))
        if found is None or found.expires is None:
            return found
        return found if (now or datetime.now(UTC)) < found.expires else None

    def allows_host(self, host: str) -> bool:
        """Return whether a Host header names this server."""
        return any(_same_host(allowed, host) for allowed in (*LOOPBACK_NAMES, *self.hosts))

    def allows_origin(self, origin: str, host: str) -> bool:
        """Return whether a web page may call: one of this server, or an allowed one."""
        lowered = origin.lower()
        own = lowered in (f"http://{host.lower()}", f"https://{host.lower()}")
        return own or self.shares_with(origin)

    def shares_with(self, origin: str) -> bool:
        """Return whether a web page of another server is allowed."""
        return origin.lower() in self.origins


def token_digest(value: bytes) -> bytes:
    """Return the hash of a token, which is stored in place of it."""
    return hashlib.sha256(value).digest()


def sendable(value: str) -> bytes:
    """Return the bytes of a token in a header.

    Raises:
        InvalidInputError: a header cannot carry its characters.
    """
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise InvalidInputError(
            "a token must be printable ASCII without spaces; make one with "
            "'python -c \"import secrets; print(secrets.token_urlsafe(32))\"'"
        )
    return value.encode()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on `host`.

    Raises:
        InvalidInputError: the name cannot be resolved.
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidInputError(
            f"host {host!r:.100}: the name cannot be resolved; use 127.0.0.1"
        ) from None
    addresses = {str(info[4][0]).partition("%")[0] for info in found}
    return all(ipaddress.ip_address(one).is_loopback for one in addresses)


def make_access(
    *,
    host: str,
    tokens: Sequence[AccessToken],
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    sign_in: OAuthRules | None = None,
) -> Access:
    """Return the access rules of a server on `host`; a host that others can reach needs tokens.

    Raises:
        InvalidInputError: a name is wrong, two tokens are equal, or a token or name is missing.
    """
    hosts = tuple(_checked_host(name) for name in allowed_hosts)
    origins = tuple(_checked_origin(name) for name in allowed_origins)
    if len({token.digest for token in tokens}) != len(tokens):
        raise InvalidInputError("two tokens have the same value; each needs its own")
    if not is_loopback(host):
        if not tokens and sign_in is None:
            raise InvalidInputError(
                f"host {host}: other machines can reach it, so it needs a token; set "
                "WORLDDB_TOKEN, --tokens-file or --oauth-issuer, or listen on 127.0.0.1"
            )
        if not hosts:
            raise InvalidInputError(
                f"host {host}: other machines can reach it, so it needs the names by which they "
                "call; give --allowed-host NAME for each, or listen on 127.0.0.1"
            )
    return Access(tokens=tuple(tokens), hosts=hosts, origins=origins, sign_in=sign_in)


def _checked_host(given: str) -> str:
    name = given.strip().lower().removesuffix(".")
    found = _HOST.fullmatch(name)
    if found is None:
        raise InvalidInputError(
            f"allowed host {given!r:.100}: give a name such as memory.example.org, with or "
            "without a port; there is no wildcard"
        )
    return name


def _checked_origin(given: str) -> str:
    lowered = given.strip().lower()
    parts = urlsplit(lowered)
    plain = parts.scheme and parts.netloc and lowered == f"{parts.scheme}://{parts.netloc}"
    if not plain or "*" in lowered or "@" in lowered:
        raise InvalidInputError(
            f"allowed origin {given!r:.100}: give scheme, host and port of a web page, such as "
            "https://app.example.org"
        )
    return lowered


@lru_cache(HOSTS_KEPT)
def _same_host(allowed: str, host: str) -> bool:
    """Return whether a Host header is an allowed name; a name without a port allows any."""
    wanted, asked = _HOST.fullmatch(allowed), _HOST.fullmatch(host.lower())
    if wanted is None or asked is None or asked[2] == ANY_PORT:
        return False
    if wanted[1] != asked[1].removesuffix("."):
        return False
    return wanted[2] in (None, ANY_PORT, asked[2])


def access_of(settings: Settings) -> Access:
    """Return the access rules that the settings describe."""
    tokens: list[AccessToken] = []
    if settings.token is not None:
        digest = token_digest(sendable(settings.token))
        tokens.append(AccessToken(name="admin", digest=digest, admin=True))
    if settings.tokens_file is not None:
        tokens += read_tokens(settings.tokens_file)
    return make_access(
        host=settings.host,
        tokens=tokens,
        allowed_hosts=settings.allowed_hosts,
        allowed_origins=settings.allowed_origins,
        sign_in=oauth_rules(settings),
    )


def read_tokens(path: str) -> list[AccessToken]:
    """Return the tokens that a file lists.

    Raises:
        StorageError: the file cannot be read.
        FormatError: the file is not TOML.
        InvalidInputError: a token in it is wrong; the message says which.
    """
    listed = _parsed(path)
    tokens = []
    for number, held in enumerate(listed, 1):
        try:
            tokens.append(_token(held, number))
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: token {number}: {error}") from None
    if not tokens:
        raise InvalidInputError(f"{path}: has no tokens; add a [[token]], or leave the file out")
    return tokens


def token_file_warnings(path: str) -> list[str]:
    """Return warnings about a tokens file."""
    found = []
    if os.name == "posix" and os.stat(path).st_mode & 0o077:
        found.append(f"{path}: other users of this machine can read it; run chmod 600 on it")
    if any(len(str(held.get("value", "x" * 99))) < SHORT_TOKEN_CHARS for held in _parsed(path)):
        found.append(f"{path}: a token is shorter than {SHORT_TOKEN_CHARS} characters")
    return found


def _parsed(path: str) -> list[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        told = (error.strerror or "cannot be read").lower()
        raise StorageError(f"{path}: cannot read the tokens file: {told}") from None
    if len(data) > FILE_BYTES_MAX:
        raise FormatError(f"{path}: is too large for a tokens file")
    held = toml_in(data, path)
    listed = held.pop("token", [])
    if held or not isinstance(listed, list) or any(not isinstance(one, dict) for one in listed):
        raise InvalidInputError(f"{path}: begin each token with a line [[token]]")
    return listed


def _token(held: dict[str, Any], number: int) -> AccessToken:
    if strange := sorted(held.keys() - set(KEYS)):
        raise InvalidInputError(
            f"{strange[0]!r:.80} is not a key of a token; use {', '.join(KEYS)}"
        )
    bounds = {key: held[key] for key in SCOPES if key in held}
    groups = groups_of(bounds)
    admin, read_only = _flag(held, "admin"), _flag(held, "read_only")
    role = held.get("role", "read" if read_only else "curate")
    if not isinstance(role, str) or role not in ROLE_EFFECTS:
        raise InvalidInputError("role: give read, write or curate; for all scopes, admin = true")
    if read_only and role != "read":
        raise InvalidInputError("read_only: is the role read; give one of the two")
    if admin == bool(groups):
        raise InvalidInputError(
            "give a scope, such as user_id, or admin = true for everything; not both"
        )
    name = held.get("name", f"token {number}")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 100:
        raise InvalidInputError("name: give a text of 1 to 100 printable characters")
    return AccessToken(
        name=name,
        digest=_digest(held),
        bounds={f"{group[0].kind}_id": tuple(one.value for one in group) for group in groups},
        writes_into=_kinds(held.get("writes_into", [])),
        expires=_expiry(held.get("expires")),
        read_only=role == "read",
        admin=admin,
        curates=role == "curate",
        origin=None if "origin" not in held else check_origin(held["origin"]),
        per_minute=_count(held, "per_minute"),
        memories_per_day=_count(held, "memories_per_day"),
        tenant=checked_tenant(held["tenant"]) if "tenant" in held else None,
    )


def checked_tenant(name: object) -> str:
    """Return the name of a tenant, which is also its file name, after a check.

    Raises:
        InvalidInputError: it is not one.
    """
    if not isinstance(name, str) or not _TENANT.fullmatch(name):
        raise InvalidInputError(
            f"tenant {name!r:.80}: give up to 100 of a-z, 0-9, '-' and '_', a letter or digit first"
        )
    return name


def _count(held: dict[str, Any], key: str) -> int | None:
    given = held.get(key)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given <= COUNT_MAX:
        raise InvalidInputError(f"{key}: give a whole number from 1 to {COUNT_MAX:,}")
    return given


def _digest(held: dict[str, Any]) -> bytes:
    value, digest = held.get("value"), held.get("sha256")
    if (value is None) == (digest is None):
        raise InvalidInputError("give either sha256 or value")
    if digest is None:
        if not isinstance(value, str):
            raise InvalidInputError("value: give a text in quotes")
        return token_digest(sendable(value))
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-fA-F]{64}", digest):
        raise InvalidInputError(
            "sha256: give 64 hexadecimal digits, as 'printf %s TOKEN | sha256sum' prints them"
        )
    return bytes.fromhex(digest)


def _flag(held: dict[str, Any], key: str) -> bool:
    value = held.get(key, False)
    if not isinstance(value, bool):
        raise InvalidInputError(f"{key}: give true or false, without quotes")
    return value


def _kinds(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or any(kind not in SCOPES for kind in given):
        raise InvalidInputError(f"writes_into: give a list of some of {', '.join(SCOPES)}")
    return tuple(given)


def _expiry(given: object) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime) or given.utcoffset() is None:
        raise InvalidInputError("expires: write it as 2027-01-31T00:00:00Z, without quotes")
    return given.astimezone(UTC)

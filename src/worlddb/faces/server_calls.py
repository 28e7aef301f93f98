"""Server calls: the access of a caller, and the tokens of a server; declared as those of Memory.

A call here is a method of `TokenDesk` (faces/http/token_desk.py), because a server has tokens and a
Memory has none. REST, OpenAPI and the clients follow from the declaration; there are no MCP tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from worlddb.faces.call_parts import ORIGIN, SCOPES, Call, Parameter, flag, needed
from worlddb.model.inputs import Plain

# Token values: callers and tokens as the server shows them, without the value of any token.


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerAccess(Plain):
    """The access of a caller; `token` is the name of its token, if it has one.

    `admin` opens every scope. `manages_tokens` says that the caller may list and change tokens.
    """

    version: str
    token: str | None
    role: str
    read_only: bool
    admin: bool
    manages_tokens: bool
    bounds: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry(Plain):
    """A token of a server, without its value. `state` is "valid" or "expired".

    `last_used` is None if no use was recorded. `written_today` counts against `memories_per_day`.
    Only a token with `in_file` can be rotated and revoked.
    """

    name: str
    role: str
    bounds: Mapping[str, tuple[str, ...]]
    writes_into: tuple[str, ...]
    origin: str | None
    tenant: str | None
    per_minute: int | None
    memories_per_day: int | None
    expires: datetime | None
    state: str
    last_used: datetime | None
    written_today: int
    in_file: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenList(Plain):
    """The tokens of a server, in the order of the tokens file."""

    tokens: tuple[TokenEntry, ...]

    def __iter__(self) -> Iterator[TokenEntry]:
        return iter(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken(Plain):
    """A token with its value, which is shown only once; the server keeps its hash."""

    name: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedToken(Plain):
    """The name of a revoked token."""

    name: str


# Server calls.

ROLES = ("read", "write", "curate", "administer")
"""What a token may do, the least first."""
NAME_CHARS_MAX = 100  # The limit of the tokens file.
COUNT_MAX = 1_000_000  # More than one server can answer.


def _name(help: str) -> Parameter:
    return needed("name", "text", help, most=NAME_CHARS_MAX)


def _token_parameters() -> tuple[Parameter, ...]:
    return (
        _name("What the token is called in lists, in the log and in the journal."),
        Parameter(
            "role",
            "choice",
            "The role: read, write (also write and amend), curate (also change and end), or "
            "administer (everything, in every scope).",
            choices=ROLES,
            default="curate",
        ),
        Parameter("expires", "time", "When it expires: ISO-8601 with a time zone."),
        ORIGIN._replace(help="The most trusted origin of its writes."),
        Parameter(
            "per_minute",
            "whole",
            "The maximum number of requests per minute.",
            least=1,
            most=COUNT_MAX,
        ),
        Parameter(
            "memories_per_day",
            "whole",
            "The maximum number of memories to write or amend per UTC day.",
            least=1,
            most=COUNT_MAX,
        ),
        Parameter(
            "writes_into",
            "names",
            "Kinds of further scopes that a write may name, such as run_id.",
            most=len(SCOPES),
        ),
        Parameter(
            "tenant",
            "text",
            "The tenant whose store it opens, on a server with a store for each tenant.",
            most=NAME_CHARS_MAX,
        ),
        *(one._replace(help=f"Opens the scope of this {one.name[:-3]}.") for one in SCOPES),
    )


SERVER_CALLS: tuple[Call, ...] = (
    Call(
        name="access",
        title="Show the caller's access",
        summary="Say what the caller may do",
        help="Show the access of the request's token: its role and its scopes.",
        parameters=(),
        result="CallerAccess",
        effect="read",
        method="GET",
        path="/v1/access",
    ),
    Call(
        name="doctor",
        title="Examine the server",
        summary="Examine the store and the work in the background",
        help="Examine the store, its indexes, the embedder and the work in the background; for "
        "administrators.",
        parameters=(),
        result="Diagnosis",
        effect="read",
        method="GET",
        path="/v1/doctor",
    ),
    Call(
        name="tokens",
        title="List tokens",
        summary="List the tokens of the server",
        help="List the tokens of the server, without their values; for administrators.",
        parameters=(),
        result="TokenList",
        effect="read",
        method="GET",
        path="/v1/tokens",
    ),
    Call(
        name="add_token",
        title="Add a token",
        summary="Add a token; its value is shown once",
        help="Add a token to the tokens file. The answer has its value, which is not stored.",
        parameters=_token_parameters(),
        result="IssuedToken",
        effect="change",
        idempotent=False,
        path="/v1/tokens",
    ),
    Call(
        name="rotate_token",
        title="Rotate a token",
        summary="Give a token another value, shown once",
        help="Replace the value of a token; the old value is no longer valid.",
        parameters=(_name("The name of the token."),),
        result="IssuedToken",
        effect="change",
        idempotent=False,
        path="/v1/tokens/rotate",
    ),
    Call(
        name="revoke_token",
        title="Revoke a token",
        summary="Take a token out of the tokens file",
        help="Remove a token from the tokens file; it is no longer valid.",
        parameters=(_name("The name of the token."),),
        result="RevokedToken",
        effect="end",
        path="/v1/tokens/revoke",
    ),
    Call(
        name="erase_tenant",
        title="Erase a tenant",
        summary="Destroy the key of a tenant and remove its store",
        help="Destroy the key of a tenant, then remove its store with all files beside it; for "
        "administrators of a server with a store for each tenant. Revoke its tokens first.",
        parameters=(
            needed(
                "tenant",
                "text",
                "The tenant whose store is erased.",
                most=NAME_CHARS_MAX,
            ),
            Parameter(
                "confirm",
                "text",
                "The name of the tenant again, because this cannot be undone.",
                most=NAME_CHARS_MAX,
            ),
            flag(
                "receipt",
                "Return a receipt signed by the key of the store; save its public key first.",
            ),
        ),
        result="TenantErasure",
        effect="end",
        path="/v1/tenants/erase",
    ),
)

"""Token values: what a server tells of its callers and its tokens, without any token itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from worlddb.model.records import Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerAccess(Plain):
    """What the caller of a server may do; `token` is the name of its token, if it has one.

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

    `last_used` is None if it was not used since the server keeps a record. `written_today` counts
    against `memories_per_day`. Only a token with `in_file` can be rotated and revoked.
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
    """The tokens of a server, in the order of their file."""

    tokens: tuple[TokenEntry, ...]

    def __iter__(self) -> Iterator[TokenEntry]:
        return iter(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken(Plain):
    """A token with its value, which is shown this once; the server keeps a hash."""

    name: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedToken(Plain):
    """The name of a token that opens nothing any more."""

    name: str

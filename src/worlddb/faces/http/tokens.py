"""Tokens: the file that says which token opens whose memory.

    [[token]]
    name = "ada's laptop"
    sha256 = "9f86d08…"                 # or value = "the token itself"
    user_id = "ada"                     # and agent_id, app_id, run_id; text or a list
    expires = 2027-01-31T00:00:00Z      # if it does
    read_only = true                    # if it is

A token names at least one scope, or `admin = true` for everything.
"""

from __future__ import annotations

import os
import re
import tomllib
from datetime import UTC, datetime
from typing import Any

from worlddb.errors import FormatError, InvalidInputError, StorageError
from worlddb.faces.config import Settings
from worlddb.faces.http.access import (
    Access,
    Token,
    admin_token,
    make_access,
    sendable,
    token_digest,
)
from worlddb.model.scopes import KINDS, groups_of

SCOPES = tuple(f"{kind}_id" for kind in KINDS)
KEYS = ("name", "sha256", "value", *SCOPES, "expires", "read_only", "admin")
FILE_BYTES_MAX = 4 << 20
SHORT_TOKEN_CHARS = 16


def access_of(settings: Settings) -> Access:
    """Return who may come in.

    Raises:
        InvalidInputError: something about it is wrong, or a guard is missing.
        StorageError, FormatError: the file of tokens cannot be read.
    """
    tokens: list[Token] = []
    if settings.token is not None:
        tokens.append(admin_token(settings.token))
    if settings.tokens_file is not None:
        tokens += read_tokens(settings.tokens_file)
    return make_access(
        host=settings.host,
        tokens=tokens,
        allowed_hosts=settings.allowed_hosts,
        allowed_origins=settings.allowed_origins,
    )


def read_tokens(path: str) -> list[Token]:
    """Return the tokens that a file lists.

    Raises:
        StorageError: it cannot be read.
        FormatError: it is no TOML.
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
        raise InvalidInputError(f"{path}: lists no token; add a [[token]], or leave the file out")
    return tokens


def doubts(path: str) -> list[str]:
    """Return what a careful owner would change about a file of tokens."""
    found = []
    if os.name == "posix" and os.stat(path).st_mode & 0o077:
        found.append(f"{path}: others on this machine can read it; chmod 600 it")
    if any(len(str(held.get("value", "x" * 99))) < SHORT_TOKEN_CHARS for held in _parsed(path)):
        found.append(f"{path}: a token is shorter than {SHORT_TOKEN_CHARS} characters")
    return found


def _parsed(path: str) -> list[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        told = (error.strerror or "cannot be read").lower()
        raise StorageError(f"{path}: the file of tokens: {told}") from None
    if len(data) > FILE_BYTES_MAX:
        raise FormatError(f"{path}: is too large for a file of tokens")
    try:
        held = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        told = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise FormatError(f"{path}: is no TOML: {told}") from None
    listed = held.pop("token", [])
    if held or not isinstance(listed, list) or any(not isinstance(one, dict) for one in listed):
        raise InvalidInputError(f"{path}: begin each token with a line [[token]]")
    return listed


def _token(held: dict[str, Any], number: int) -> Token:
    if strange := sorted(held.keys() - set(KEYS)):
        raise InvalidInputError(f"{strange[0]!r:.80} is not known; known are {', '.join(KEYS)}")
    bounds = {key: held[key] for key in SCOPES if key in held}
    groups = groups_of(bounds)
    admin, read_only = _flag(held, "admin"), _flag(held, "read_only")
    if admin == bool(groups):
        raise InvalidInputError(
            "give it a scope, such as user_id, or admin = true for everything; not both"
        )
    name = held.get("name", f"token {number}")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 100:
        raise InvalidInputError("name: give a short text")
    return Token(
        name=name,
        digest=_digest(held),
        bounds={f"{group[0].kind}_id": tuple(one.value for one in group) for group in groups},
        expires=_expiry(held.get("expires")),
        read_only=read_only,
        admin=admin,
    )


def _digest(held: dict[str, Any]) -> bytes:
    value, digest = held.get("value"), held.get("sha256")
    if (value is None) == (digest is None):
        raise InvalidInputError("give either sha256 or value")
    if digest is None:
        if not isinstance(value, str):
            raise InvalidInputError("value: give text, in quotes")
        return token_digest(sendable(value))
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-fA-F]{64}", digest):
        raise InvalidInputError(
            "sha256: give 64 hexadecimal digits, as 'printf %s TOKEN | sha256sum' prints them"
        )
    return bytes.fromhex(digest)


def _flag(held: dict[str, Any], key: str) -> bool:
    value = held.get(key, False)
    if not isinstance(value, bool):
        raise InvalidInputError(f"{key}: is true or false, without quotes")
    return value


def _expiry(given: object) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime) or given.utcoffset() is None:
        raise InvalidInputError("expires: write it as 2027-01-31T00:00:00Z, without quotes")
    return given.astimezone(UTC)

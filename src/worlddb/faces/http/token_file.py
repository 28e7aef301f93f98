"""Token file: add, revoke and rotate the tokens of a server, which reads the file again by itself.

Each `[[token]]` is a block of lines; a change touches one block and leaves the others, with their
comments, as they are. The value of a token is shown once; the file has its hash.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from worlddb.errors import ConflictError, NotFoundError, StorageError
from worlddb.faces.http.access_tokens import AccessToken, read_tokens, token_digest
from worlddb.faces.user_paths import replace_private_file
from worlddb.model.inputs import Instant, from_micros, to_micros

_BLOCK = re.compile(r"^[ \t]*\[\[[ \t]*token[ \t]*\]\]", re.MULTILINE)
_HASH = re.compile(r"^([ \t]*)(?:sha256|value)[ \t]*=.*$", re.MULTILINE)
TOKEN_BYTES = 32  # As many as nobody guesses.


def tokens_in(path: str) -> list[AccessToken]:
    """Return the tokens of a file; none if there is no file yet.

    Raises:
        StorageError, FormatError, InvalidInputError: the file cannot be read, or is wrong.
    """
    return read_tokens(path) if os.path.exists(path) else []


def add_token(
    path: str,
    name: str,
    *,
    bounds: Mapping[str, Sequence[str]],
    role: str,
    expires: Instant | None = None,
    **options: Any,
) -> str:
    """Add a token to a file, which is made if there is none, and return its value.

    `options` are further keys of the file, such as `per_minute`; what is None is left out.

    Raises:
        ConflictError: there is a token of that name.
        InvalidInputError: an option is wrong; the file stays as it was.
        StorageError: the file cannot be written.
    """
    value = secrets.token_urlsafe(TOKEN_BYTES)
    lines = ["[[token]]", f"name = {_quoted(name)}", _hash_line(value)]
    lines += ["admin = true"] if role == "administer" else [f"role = {_quoted(role)}"]
    lines += [f"{kind} = {json.dumps([*given])}" for kind, given in bounds.items() if given]
    if expires is not None:
        until = from_micros(to_micros(expires, "expires")).astimezone(UTC)
        lines.append(f"expires = {until.strftime('%Y-%m-%dT%H:%M:%SZ')}")
    lines += [f"{key} = {_quoted(held)}" for key, held in options.items() if held is not None]
    with _alone(path):
        if any(token.name == name for token in tokens_in(path)):
            raise ConflictError(
                f"{path}: there is a token {name!r:.100}; rotate it, or revoke it first"
            )
        there = _read(path)
        gap = "\n" if there and not there.endswith("\n\n") else ""
        _write(path, f"{there}{gap}" + "\n".join(lines) + "\n")
    return value


def revoke_token(path: str, name: str) -> None:
    """Take a token out of a file.

    Raises:
        NotFoundError: there is no token of that name.
        ConflictError: it is the last one, and the server would let everybody in.
        StorageError: the file cannot be written.
    """
    with _alone(path):
        text, (start, end), count = _found(path, name)
        if count == 1:
            raise ConflictError(f"{path}: {name!r:.100} is the last token; add another one first")
        _write(path, text[:start] + text[end:])


def rotate_token(path: str, name: str) -> str:
    """Give a token another value, and return it; the old one is not valid any more.

    Raises:
        NotFoundError: there is no token of that name.
        StorageError: the file cannot be written.
    """
    value = secrets.token_urlsafe(TOKEN_BYTES)
    with _alone(path):
        text, (start, end), _ = _found(path, name)
        block = _HASH.sub(lambda match: match[1] + _hash_line(value), text[start:end], count=1)
        _write(path, text[:start] + block + text[end:])
    return value


def state_of(token: AccessToken, now: datetime) -> str:
    """Return whether a token is valid."""
    return "expired" if token.expires is not None and token.expires <= now else "valid"


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """Let no other thread or process change the file meanwhile: their changes would be lost."""
    try:
        import fcntl
    except ImportError:  # Windows: people who share a file have to wait for each other.
        yield
        return
    try:
        # The folder is locked: the file itself is replaced.
        held = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    except OSError as error:
        raise StorageError(f"{path}: cannot write the tokens file: {error.strerror}") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _hash_line(value: str) -> str:
    return f'sha256 = "{token_digest(value.encode()).hex()}"'


def _found(path: str, name: str) -> tuple[str, tuple[int, int], int]:
    """Return the text of a file, where the block of a token stands, and how many there are."""
    text, tokens = _read(path), tokens_in(path)
    starts = [match.start() for match in _BLOCK.finditer(text)]
    ends = [*starts[1:], len(text)]
    for token, start, end in zip(tokens, starts, ends, strict=False):
        if token.name == name and len(starts) == len(tokens):
            return text, (start, end), len(tokens)
    known = ", ".join(token.name for token in tokens)
    raise NotFoundError(f"{path}: there is no token {name!r:.100}; known are: {known or 'none'}")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: cannot read the tokens file: {error}") from None


def _write(path: str, text: str) -> None:
    """Replace the file; a wrong one is never put in place."""
    try:
        replace_private_file(path, text, read_tokens)
    except OSError as error:
        raise StorageError(f"{path}: cannot write the tokens file: {error.strerror}") from None

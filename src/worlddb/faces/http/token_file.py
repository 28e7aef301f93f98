"""Token file: adds, revokes and rotates the tokens of a server, which reloads the file by itself.

Each `[[token]]` is a block of lines. A change edits one block; other blocks and comments stay. The
value of a token is shown once; the file has its hash.

The last use of each token, and the number of memories it wrote today, are counted in memory and
saved beside the file, at most once in `SAVE_EVERY_S` seconds and at the end. A killed process loses
its unsaved counts.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from worlddb.errors import (
    ConflictError,
    NotFoundError,
    StorageError,
)
from worlddb.faces.http.access_tokens import AccessToken, read_tokens, token_digest
from worlddb.faces.user_paths import replace_private_file
from worlddb.model.inputs import Instant, from_micros, to_micros

_BLOCK = re.compile(r"^[ \t]*\[\[[ \t]*token[ \t]*\]\]", re.MULTILINE)
_HASH = re.compile(r"^([ \t]*)(?:sha256|value)[ \t]*=.*$", re.MULTILINE)
TOKEN_BYTES = 32  # Cannot be guessed.


def tokens_in(path: str) -> list[AccessToken]:
    """Return the tokens of a file; none if there is no file.

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
    """Add a token to a file, which is created if needed, and return the token's value.

    `options` are further keys of the file, such as `per_minute`; None values are left out.

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
    """Remove a token from a file.

    Raises:
        NotFoundError: there is no token of that name.
        ConflictError: there are several of that name; or it is the last one, and the server would
            let everybody in.
        StorageError: the file cannot be written.
    """
    with _alone(path):
        text, (start, end), count = _found(path, name)
        if count == 1:
            raise ConflictError(f"{path}: {name!r:.100} is the last token; add another one first")
        _write(path, text[:start] + text[end:])


def rotate_token(path: str, name: str) -> str:
    """Replace the value of a token and return the new one; the old one is no longer valid.

    Raises:
        NotFoundError: there is no token of that name.
        ConflictError: there are several of that name, or its hash is written in another way.
        StorageError: the file cannot be written.
    """
    value = secrets.token_urlsafe(TOKEN_BYTES)
    with _alone(path):
        text, (start, end), _ = _found(path, name)
        block, done = _HASH.subn(lambda match: match[1] + _hash_line(value), text[start:end], 1)
        if not done:
            raise ConflictError(f'{path}: write the hash of {name!r:.100} as: sha256 = "…"')
        _write(path, text[:start] + block + text[end:])
    return value


def state_of(token: AccessToken, now: datetime) -> str:
    """Return "valid" or "expired"."""
    return "expired" if token.expires is not None and token.expires <= now else "valid"


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """Lock the file against other threads and processes, whose changes would be lost."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock.
        yield
        return
    try:
        # The folder is locked, because the file itself is replaced.
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
    """Return the text of a file, the lines of a token's block, and the number of blocks."""
    text, tokens = _read(path), tokens_in(path)
    if sum(token.name == name for token in tokens) > 1:
        raise ConflictError(f"{path}: has several tokens {name!r:.100}; give each its own name")
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
    """Replace the file if the new text is valid."""
    try:
        replace_private_file(path, text, read_tokens)
    except OSError as error:
        raise StorageError(f"{path}: cannot write the tokens file: {error.strerror}") from None


USES_END = ".uses.json"


SAVE_EVERY_S = 60.0  # Precise enough to find unused tokens.


BYTES_MAX = 8 << 20  # More than the largest tokens file.


@dataclass(slots=True)
class TokenUse:
    """The last use of a token, and the number of memories it wrote on its last day of writing."""

    last_used: datetime | None = None
    day: str = ""
    written: int = 0

    def written_on(self, day: str) -> int:
        """Return the number of memories written on a day."""
        return self.written if self.day == day else 0


class TokenUses:
    """Counts the uses of tokens; safe to use from any thread."""

    def __init__(
        self,
        tokens_file: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = None if tokens_file is None else tokens_file + USES_END
        self._clock = clock
        self._lock = threading.Lock()
        self._uses = uses_beside(tokens_file)
        self._changed = False
        self._saved = time.monotonic()

    def note(self, token: AccessToken) -> None:
        """Record a use of a token now."""
        with self._lock:
            self._uses.setdefault(token.digest, TokenUse()).last_used = self._clock()
            self._changed = True

    def of(self, token: AccessToken) -> tuple[datetime | None, int]:
        """Return the last use of a token, and the number of memories it wrote today."""
        with self._lock:
            use = self._uses.get(token.digest, TokenUse())
            return use.last_used, use.written_on(_day(self._clock()))

    def handed_over(self) -> dict[bytes, TokenUse]:
        """Return all uses and clear them, because another process counts from now on."""
        with self._lock:
            uses, self._uses = self._uses, {}
            return uses

    def add(self, uses: Mapping[bytes, TokenUse]) -> None:
        """Merge the uses of another process; counts of memories are only kept here."""
        with self._lock:
            for digest, theirs in uses.items():
                ours = self._uses.setdefault(digest, TokenUse())
                ours.last_used = max(filter(None, (ours.last_used, theirs.last_used)), default=None)
                self._changed = True

    def all(self) -> dict[bytes, TokenUse]:
        """Return all uses."""
        with self._lock:
            return dict(self._uses)

    def replace(self, uses: dict[bytes, TokenUse]) -> None:
        """Replace all uses by those of another process."""
        with self._lock:
            self._uses = uses

    def take(self, token: AccessToken) -> float:
        """Count a memory before it is written; return the seconds to wait first, 0 for none."""
        most, now = token.memories_per_day, self._clock()
        if most is None:
            return 0.0
        with self._lock:
            use, day = self._uses.setdefault(token.digest, TokenUse()), _day(now)
            written = use.written_on(day)
            if written >= most:
                begin = now.replace(hour=0, minute=0, second=0, microsecond=0)
                return (begin + timedelta(days=1) - now).total_seconds()
            use.day, use.written, self._changed = day, written + 1, True
        return 0.0

    def give_back(self, token: AccessToken) -> None:
        """Undo the count of a memory that was not written."""
        with self._lock:
            use = self._uses.get(token.digest)
            if token.memories_per_day is not None and use is not None and use.written:
                use.written -= 1

    def save(self, tokens: Iterable[AccessToken], *, if_due: bool = False) -> None:
        """Save the uses of the present tokens; an unwritable file is ignored.

        With `if_due`, only if the last save was long enough ago.
        """
        if self._path is None or not self._changed:
            return
        if if_due and time.monotonic() - self._saved < SAVE_EVERY_S:
            return
        known = {token.digest for token in tokens}
        with self._lock:
            # Another server may use the same file, so the later use is kept.
            for digest, theirs in _read_uses(self._path).items():
                ours = self._uses.setdefault(digest, theirs)
                ours.last_used = max(filter(None, (ours.last_used, theirs.last_used)), default=None)
            self._uses = {one: use for one, use in self._uses.items() if one in known}
            held = {digest.hex(): _told(use) for digest, use in self._uses.items()}
            self._changed, self._saved = False, time.monotonic()
        with suppress(OSError):
            replace_private_file(self._path, json.dumps(held))


def uses_beside(tokens_file: str | None) -> dict[bytes, TokenUse]:
    """Return the saved uses beside a tokens file, by the hash of the token."""
    return {} if tokens_file is None else _read_uses(tokens_file + USES_END)


def _day(now: datetime) -> str:
    return now.date().isoformat()


def _told(use: TokenUse) -> dict[str, object]:
    at = None if use.last_used is None else use.last_used.isoformat(timespec="seconds")
    return {"last_used": at, "day": use.day, "written": use.written}


def _read_uses(path: str) -> dict[bytes, TokenUse]:
    """Return the uses in a file; none if the file is missing or invalid."""
    try:
        with open(path, "rb") as file:
            held = json.loads(file.read(BYTES_MAX))
        return {bytes.fromhex(digest): _use(told) for digest, told in held.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _use(told: dict[str, object]) -> TokenUse:
    at = told["last_used"]
    last = None if at is None else datetime.fromisoformat(str(at)).astimezone(UTC)
    return TokenUse(last, str(told["day"]), int(str(told["written"])))

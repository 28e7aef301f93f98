"""Token uses: when each token was last used, and how many memories it has written today.

Both are counted in memory and written beside the tokens file, at most once in `SAVE_EVERY_S`
seconds and at the end. A process that is killed loses what it has counted since.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from worlddb.faces.http.access_tokens import AccessToken
from worlddb.faces.user_paths import replace_private_file

USES_END = ".uses.json"
SAVE_EVERY_S = 60.0  # Whoever looks for a forgotten token asks for days, not for seconds.
BYTES_MAX = 8 << 20  # More than as many tokens as a tokens file holds.


@dataclass(slots=True)
class TokenUse:
    """What is known of one token: its last use, and how much it wrote on the last day it wrote."""

    last_used: datetime | None = None
    day: str = ""
    written: int = 0

    def written_on(self, day: str) -> int:
        """Return how many memories it has written on a day."""
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
        """Note that a token was used now."""
        with self._lock:
            self._uses.setdefault(token.digest, TokenUse()).last_used = self._clock()
            self._changed = True

    def of(self, token: AccessToken) -> tuple[datetime | None, int]:
        """Return when a token was last used, and how many memories it has written today."""
        with self._lock:
            use = self._uses.get(token.digest, TokenUse())
            return use.last_used, use.written_on(_day(self._clock()))

    def handed_over(self) -> dict[bytes, TokenUse]:
        """Return all uses, and forget them: another process counts them from now on."""
        with self._lock:
            uses, self._uses = self._uses, {}
            return uses

    def add(self, uses: Mapping[bytes, TokenUse]) -> None:
        """Note uses that another process has noted; what was written is counted here alone."""
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
        """Take over what another process has counted."""
        with self._lock:
            self._uses = uses

    def take(self, token: AccessToken) -> float:
        """Count a memory that is to be written; return the seconds to wait first, 0 for none."""
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
        """Take back the count of a memory that was not written."""
        with self._lock:
            use = self._uses.get(token.digest)
            if token.memories_per_day is not None and use is not None and use.written:
                use.written -= 1

    def save(self, tokens: Iterable[AccessToken], *, if_due: bool = False) -> None:
        """Write the uses of the tokens that there are; a file that cannot be written is left.

        With `if_due`, only if the last time is long enough ago.
        """
        if self._path is None or not self._changed:
            return
        if if_due and time.monotonic() - self._saved < SAVE_EVERY_S:
            return
        known = {token.digest for token in tokens}
        with self._lock:
            # Another server may use the same file: the later use is the last one.
            for digest, theirs in _read(self._path).items():
                ours = self._uses.setdefault(digest, theirs)
                ours.last_used = max(filter(None, (ours.last_used, theirs.last_used)), default=None)
            self._uses = {one: use for one, use in self._uses.items() if one in known}
            held = {digest.hex(): _told(use) for digest, use in self._uses.items()}
            self._changed, self._saved = False, time.monotonic()
        with suppress(OSError):
            replace_private_file(self._path, json.dumps(held))


def uses_beside(tokens_file: str | None) -> dict[bytes, TokenUse]:
    """Return what was written beside a tokens file, by the hash of the token."""
    return {} if tokens_file is None else _read(tokens_file + USES_END)


def _day(now: datetime) -> str:
    return now.date().isoformat()


def _told(use: TokenUse) -> dict[str, object]:
    at = None if use.last_used is None else use.last_used.isoformat(timespec="seconds")
    return {"last_used": at, "day": use.day, "written": use.written}


def _read(path: str) -> dict[bytes, TokenUse]:
    """Return the uses in a file; a file that is missing or wrong tells of none."""
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

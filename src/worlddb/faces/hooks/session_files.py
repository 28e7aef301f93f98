"""What hooks keep between two events of a session: small files in the user's data directory.

`.place`  how far the transcript is read; its lock lets one capture work at a time
`.seen`   the ids of the memories that were injected, so that none is told twice
`.fresh`  when the client last compacted its context
`.off`    hooks are off for this session
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

PRIVATE = 0o600  # What was said is personal: for its owner alone.
KEPT_S = 30 * 24 * 3600  # A session that nobody resumed for a month is over.
LOG = "hooks.log"
LOG_BYTES_MAX = 1 << 18  # Some thousand lines; then the log begins anew, and the old one is kept.


class SessionFiles:
    """The files of one session."""

    def __init__(self, folder: str, client: str, session: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._stem = os.path.join(
            folder, sha256(f"{client}\n{session}".encode(errors="replace")).hexdigest()[:24]
        )

    @contextmanager
    def place(self) -> Iterator[TranscriptPlace]:
        """Yield the place in the transcript; other captures of this session wait."""
        handle = os.open(f"{self._stem}.place", os.O_RDWR | os.O_CREAT, PRIVATE)
        try:
            _lock(handle)
            yield TranscriptPlace(handle)
        finally:
            os.close(handle)

    @property
    def off(self) -> bool:
        """Whether hooks are off for this session."""
        return os.path.exists(f"{self._stem}.off")

    def switch(self, *, off: bool) -> None:
        """Switch hooks off for this session, or on again."""
        if off:
            _write(f"{self._stem}.off", "")
        else:
            with suppress(FileNotFoundError):
                os.unlink(f"{self._stem}.off")

    def seen(self) -> set[str]:
        """Return the ids of the memories that were injected."""
        with suppress(FileNotFoundError), open(f"{self._stem}.seen", encoding="ascii") as file:
            return set(file.read().split())
        return set()

    def see(self, ids: set[str]) -> None:
        """Keep the ids of the memories that were injected."""
        _write(f"{self._stem}.seen", "\n".join(sorted(ids)))

    @property
    def compacted(self) -> str:
        """When the client last compacted its context, in UTC; empty if it never did."""
        with suppress(FileNotFoundError), open(f"{self._stem}.fresh", encoding="ascii") as file:
            return file.read().strip()
        return ""

    def begin_anew(self) -> None:
        """Note that the model has forgotten what was injected and what was said before."""
        self.see(set())
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        _write(f"{self._stem}.fresh", f"{now}.{nanoseconds // 1000:06}")


class TranscriptPlace:
    """How far a transcript is read, in bytes, in a locked file."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        digits = os.pread(handle, 32, 0).strip()
        self.bytes = int(digits) if digits.isdigit() else 0

    def keep(self, place: int) -> None:
        """Keep a place; what lies before it is not read again."""
        self.bytes = place
        os.pwrite(self._handle, f"{place:<32}".encode(), 0)


def remove_old(folder: str) -> None:
    """Remove the files of sessions that are over."""
    limit = time.time() - KEPT_S
    with suppress(OSError), os.scandir(folder) as found:
        for one in found:
            if one.name != LOG and one.stat().st_mtime < limit:
                os.unlink(one.path)


def log_line(folder: str, text: str) -> None:
    """Add a line to the log of hooks; a log that cannot be written is no reason to fail."""
    path = os.path.join(folder, LOG)
    with suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES_MAX:
            os.replace(path, f"{path}.1")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        os.write(handle, f"{now} {' '.join(text.split())}\n".encode(errors="replace"))
        os.close(handle)


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: idempotency keys alone keep a turn from being written twice.
        return
    fcntl.flock(handle, fcntl.LOCK_EX)


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    os.write(handle, text.encode())
    os.close(handle)

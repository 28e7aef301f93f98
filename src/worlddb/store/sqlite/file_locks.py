"""File locks: who may use a store's file, in this process and beside other users of it.

`LockedFiles` has locks that keep another SQLite in this process from closing the store under us.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock

from worlddb.store.sqlite.private_files import two_logs

try:
    import fcntl
except ImportError:  # Windows, where locks belong to open files anyway.
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = sys.platform == "linux" and sys.maxsize > 1 << 32  # Locks that belong to an open file.
ALONE_BYTE = 0x40000002
"""In the file: a byte that has to be free for the one who takes the log away."""
USED_BYTE = 128
"""In the index of the log: the byte that has to be free for the one who begins it anew."""
LOGS_BYTE = 1 << 61
"""In the file, far behind its end: from here on, one byte for each log that the file could have."""
LOGS_MAX = 1 << 32  # Logs are told apart by their file numbers, of which this much is looked at.
_LOCK = struct.Struct("hhqqi0q")  # l_type, l_whence, l_start, l_len, l_pid, as C lays them out.


class FileLocks:
    """The locks on one file, for all the stores that this process has open on it.

    SQLite learns who else has a file open from locks that belong to processes. So a second copy of
    SQLite in our own process (Python's `sqlite3` beside the one we use) does not learn of us: it
    would begin the index of the log anew when it comes, and take the log away when it goes, while
    we still write to it. And whoever merely reads the file's bytes in our process gives up all our
    locks by closing it; then other processes do not learn of us either.

    Locks that belong to an open file do not have that weakness. We hold two, on the bytes that
    SQLite asks for before it does either. They keep nobody from reading or writing. A third says
    which log we use, so that whoever comes with another one (by another name of the file, or after
    the log was deleted) is refused.
    """

    def __init__(self) -> None:
        self._files: list[tuple[int, int]] = []
        self._log = 0
        self._holding: set[object] = set()
        self._open: set[object] = set()

    def take(self, path: str, who: object) -> None:
        """Hold the file for one store more, whose connection is open already.

        Raises:
            StorageError: this process or another one uses another log with this file.
        """
        log = _log_byte(path)
        if self._holding and log != self._log:
            raise two_logs(path)
        self._holding.add(who)
        self._open.add(who)
        if len(self._holding) > 1:
            return
        self._log = log
        # Anew, also while another store is being closed: the log may have a new index by now.
        for name, byte in ((f"{path}-shm", USED_BYTE), (path, ALONE_BYTE), (path, log)):
            # A disk without such locks, or a log without an index: as safe as SQLite alone.
            with suppress(OSError):
                self._files.append((os.open(name, os.O_RDONLY), byte))
                _lock_byte(*self._files[-1], fcntl.F_RDLCK)
        if self._files and _uses_another_log(self._files[-1][0], log):
            self.release(who)
            self.forget(who)
            raise two_logs(path)

    def release(self, who: object) -> None:
        """Let go for one store, before it closes: its last connection is to tidy the log up."""
        self._holding.discard(who)
        for file, byte in self._files if not self._holding else ():
            with suppress(OSError):
                _lock_byte(file, byte, fcntl.F_UNLCK)

    def forget(self, who: object) -> None:
        """Note that a store has closed its connections."""
        self._open.discard(who)

    def close(self) -> bool:
        """Close the files if no store is open; return whether that is so.

        Not before: closing them gives up the locks of every connection to them.
        """
        while self._files and not self._open:
            os.close(self._files.pop()[0])
        return not self._open

    def abandon(self) -> None:
        """Close the files without a look at who uses them: after a fork they are the parent's."""
        while self._files:
            os.close(self._files.pop()[0])


def _lock_byte(file: int, byte: int, kind: int) -> None:
    """Change a lock that belongs to the open file."""
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, _LOCK.pack(kind, os.SEEK_SET, byte, 1, 0))


def _log_byte(path: str) -> int:
    """Return the byte that stands for the log beside a file; the last one if there is no log."""
    try:
        return LOGS_BYTE + os.stat(f"{path}-wal").st_ino % LOGS_MAX
    except OSError:
        return LOGS_BYTE + LOGS_MAX


def _uses_another_log(file: int, log: int) -> bool:
    """Return whether somebody has said that their log is another one."""
    for first, count in ((LOGS_BYTE, log - LOGS_BYTE), (log + 1, LOGS_BYTE + LOGS_MAX - log)):
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
        with suppress(OSError):  # A disk without such locks.
            if count and _LOCK.unpack(fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))[0] != (
                fcntl.F_UNLCK
            ):
                return True
    return False


class LockedFiles:
    """All files that this process holds, by what they are: two paths may lead to one file."""

    def __init__(self) -> None:
        self._by_file: dict[tuple[int, int], FileLocks] = {}
        self._looks: dict[tuple[int, int], int] = {}
        self._opening = 0
        # A store that is dropped lets go wherever its thread happens to be, also in here.
        self._lock = RLock()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Close no file meanwhile: a connection that is being made has locks, but no hold yet."""
        with self._lock:
            self._opening += 1
        try:
            yield
        finally:
            with self._lock:
                self._opening -= 1
                self._close_left()

    def refuse_two_logs(self, path: str) -> None:
        """Look, before a file is opened, whether another program uses another log with it.

        Raises:
            StorageError: so it does.
        """
        real = os.path.realpath(path)
        if not HAS_LOCKS or not os.access(real, os.R_OK):
            return
        key = _key_of(real)
        with self._lock:
            if key not in self._looks:
                self._looks[key] = os.open(real, os.O_RDONLY)
            if _uses_another_log(self._looks[key], _log_byte(real)):
                raise two_logs(path)

    def take(self, path: str, who: object) -> None:
        """Hold a file for a store, where there are such locks."""
        if not HAS_LOCKS:
            return
        real = os.path.realpath(path)  # That is where the log lies.
        with self._lock:
            self._by_file.setdefault(_key_of(real), FileLocks()).take(real, who)

    def release(self, who: object) -> None:
        """Let go of a store's file, before its connections are closed; twice does nothing."""
        with self._lock:
            for held in self._by_file.values():
                held.release(who)

    def forget(self, who: object) -> None:
        """Forget a store, after its connections are closed; twice does nothing."""
        with self._lock:
            for held in self._by_file.values():
                held.forget(who)
            self._close_left()

    def _close_left(self) -> None:
        """Close the files of which no store is open."""
        for key, hold in list(self._by_file.items()) if not self._opening else ():
            if hold.close():
                self._by_file.pop(key, None)
        for key in list(self._looks) if not self._opening else ():
            if key not in self._by_file:
                os.close(self._looks.pop(key))

    def drop(self, who: object) -> None:
        """Let go of a file and forget it, when a store is gone without having been closed."""
        self.release(who)
        self.forget(who)

    def begin_anew(self) -> None:
        """Hold nothing: after a fork, what is held is the parent's business."""
        # Closed here, too: a lock that belongs to an open file lives until the last one closes it.
        for held in self._by_file.values():
            held.abandon()
        self._by_file = {}
        self._looks = {}
        self._opening = 0
        self._lock = RLock()


def _key_of(file: str) -> tuple[int, int]:
    about = os.stat(file)
    return about.st_dev, about.st_ino


LOCKED_FILES = LockedFiles()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LOCKED_FILES.begin_anew)

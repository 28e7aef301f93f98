"""File locks: keep another SQLite in this very process from closing the store under us.

SQLite learns who else has a file open from locks that belong to processes. So a second copy of
SQLite in our own process (Python's `sqlite3` beside the one we use) does not learn of us: it would
begin the index of the log anew when it comes, and take the log away when it goes, while we still
write to it. And whoever merely reads the file's bytes in our process gives up all our locks by
closing it; then other processes do not learn of us either.

Locks that belong to an open file do not have that weakness. We hold two, on the bytes that SQLite
asks for before it does either. They keep nobody from reading or writing.

`FileWatch` notices that the file under an open store was deleted, moved or replaced. SQLite goes on
writing to the file it has opened, whatever its path leads to by now. Nobody would find what was
written there, so it must not be acknowledged.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock

try:
    import fcntl
except ImportError:  # Windows, where locks belong to open files anyway.
    fcntl = None  # type: ignore[assignment]

from worlddb.errors import StorageError

ALONE_BYTE = 0x40000002
"""In the file: a byte that has to be free for the one who takes the log away."""
USED_BYTE = 128
"""In the index of the log: the byte that has to be free for the one who begins it anew."""


class FileLocks:
    """The locks on one file, for all the stores that this process has open on it."""

    def __init__(self) -> None:
        self._files: list[tuple[int, int]] = []
        self._holding = 0
        self._open = 0

    def take(self, path: str) -> None:
        """Hold the file for one store more, whose connection is open already."""
        self._holding += 1
        self._open += 1
        if self._holding > 1:
            return
        # Anew, also while another store is being closed: the log may have a new index by now.
        for name, byte in ((path, ALONE_BYTE), (f"{path}-shm", USED_BYTE)):
            # A disk without such locks, or a log without an index: as safe as SQLite alone.
            with suppress(OSError):
                self._files.append((os.open(name, os.O_RDONLY), byte))
                _lock_byte(*self._files[-1], fcntl.F_RDLCK)

    def release(self) -> None:
        """Let go for one store, before it closes: its last connection is to tidy the log up."""
        self._holding -= 1
        for file, byte in self._files if not self._holding else ():
            with suppress(OSError):
                _lock_byte(file, byte, fcntl.F_UNLCK)

    def forget(self) -> None:
        """Note that a store has closed its connections."""
        self._open -= 1

    def close(self) -> bool:
        """Close the files if no store is open; return whether that is so.

        Not before: closing them gives up the locks of every connection to them.
        """
        while self._files and not self._open:
            os.close(self._files.pop()[0])
        return not self._open


def _lock_byte(file: int, byte: int, kind: int) -> None:
    """Change a lock that belongs to the open file."""
    # l_type, l_whence, l_start, l_len, l_pid, as the C compiler lays them out.
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, byte, 1, 0))


class LockedFiles:
    """All files that this process holds, by what they are: two paths may lead to one file."""

    def __init__(self) -> None:
        self._by_file: dict[tuple[int, int], FileLocks] = {}
        self._opening = 0
        # A store that is dropped lets go wherever its thread happens to be, also in here.
        self._lock = RLock()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Close no file meanwhile: a connection that is being made has its locks, and no hold yet.

        A store is opened, and takes its hold, inside.
        """
        with self._lock:
            self._opening += 1
        try:
            yield
        finally:
            with self._lock:
                self._opening -= 1
                self._close_left()

    def take(self, path: str) -> tuple[int, int] | None:
        """Hold a file; return its key, or None where there are no such locks."""
        if sys.platform != "linux" or sys.maxsize < 1 << 32:
            return None
        real = os.path.realpath(path)  # That is where the log lies.
        about = os.stat(real)
        key = about.st_dev, about.st_ino
        with self._lock:
            self._by_file.setdefault(key, FileLocks()).take(real)
        return key

    def release(self, key: tuple[int, int] | None) -> None:
        """Let go of a file, before the connections of a store are closed."""
        with self._lock:
            if key is not None and key in self._by_file:
                self._by_file[key].release()

    def forget(self, key: tuple[int, int] | None) -> None:
        """Forget a file, after the connections of a store are closed."""
        with self._lock:
            if key is not None and key in self._by_file:
                self._by_file[key].forget()
                self._close_left()

    def _close_left(self) -> None:
        """Close the files of which no store is open."""
        for key, hold in list(self._by_file.items()) if not self._opening else ():
            if hold.close():
                self._by_file.pop(key, None)

    def drop(self, key: tuple[int, int] | None) -> None:
        """Let go of a file and forget it, when a store is gone without having been closed."""
        self.release(key)
        self.forget(key)

    def begin_anew(self) -> None:
        """Hold nothing: after a fork, what is held is the parent's business."""
        self._by_file = {}
        self._opening = 0
        self._lock = RLock()


LOCKED_FILES = LockedFiles()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LOCKED_FILES.begin_anew)


class FileWatch:
    """A path, and the file that it led to when the store was opened."""

    def __init__(self, path: str, file: str | None) -> None:
        self._path = path
        self._file = file
        self._found = None if file is None else _identity(file)

    def refuse_lost(self) -> None:
        """Refuse to go on if the path leads to another file by now, or to none.

        Raises:
            StorageError: it does.
        """
        if self._file is None or self._found is None:
            return
        try:
            if _identity(self._file) == self._found:
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return  # A folder that we may not look into any more says nothing about the file.
        raise StorageError(
            f"{self._path}: was deleted, moved or replaced while it was open here, so nothing is "
            "written any more; put the right file in its place (a backup, by 'worlddb restore') "
            "and start this program again"
        )


def _identity(file: str) -> tuple[int, int] | None:
    """Return what tells a file from others; None on a file system that numbers none."""
    about = os.stat(file)
    return (about.st_dev, about.st_ino) if about.st_ino else None

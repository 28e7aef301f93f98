"""File locks: which programs may use the files of a store, in this process and in others.

`LockedFiles` holds locks that keep another SQLite library in this process from closing the store's
file. `PartialFile` is a copy in progress; it gets its name when it is complete, and
`sweep_partials` removes copies that were never completed. New files are readable by their owner
alone (`make_private`).

A path that cannot be a store is refused early. So is a file with two names, because it would have
two logs, and half of the acknowledged writes would be lost.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

from worlddb.errors import StorageError
from worlddb.store.sqlite.database_file import MEMORY
from worlddb.store.sqlite.gate import second_name

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be deleted anyway.
    fcntl = None  # type: ignore[assignment]

PRIVATE = 0o600  # a new file is for its owner alone, because memories are personal
READ_OR_WRITE = 0o666  # rights that a data file may have; never executable
MOUNTS = "/proc/self/mountinfo"
_PARTIAL = re.compile(r"(.*\.[0-9a-f]{32}\.partial)(-journal|-wal|-shm)?")
_BESIDE_PARTIAL = ("-journal", "-wal", "-shm")
"""Suffixes of the files that SQLite puts beside a file while it is written or checked."""
_WHAT_TO_MOUNT = "to use a store in a container, mount the folder of the store, not the single file"


def private_opener(path: str, flags: int) -> int:
    """Open a new file for its owner alone; the `opener` of `open`."""
    return os.open(path, flags, PRIVATE)


@contextmanager
def locked_file(path: str, flags: int, what: str) -> Iterator[int]:
    """Yield a private file that no other process has locked so; made if there is none."""
    try:
        while True:
            file = private_opener(path, flags | os.O_CREAT)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.exists(path) and os.fstat(file).st_ino == os.stat(path).st_ino:
                break
            os.close(file)  # It was replaced while this process waited.
    except OSError as error:
        raise StorageError(f"{path}: {what}: {error.strerror}") from error
    try:
        yield file
    finally:
        os.close(file)


def refuse_bad_path(path: str) -> None:
    """Raise early for a path that cannot be a store, with the reason."""
    if path == MEMORY:
        return
    try:
        path.encode()
    except UnicodeEncodeError:
        raise StorageError(f"{path!r}: is not UTF-8; choose another name") from None
    if not path or "\0" in path:
        raise StorageError(f"{path!r}: is not a path; give the path of a file")
    target = Path(path)
    if target.is_dir():
        raise StorageError(f"{path}: is a folder; give the path of a file in it")
    if not target.parent.is_dir():
        raise StorageError(f"{path}: the folder {target.parent} does not exist; create it first")


def refuse_second_name(path: str, file: str) -> None:
    """Refuse to open a file that has two names, or that is mounted by itself."""
    real = os.path.realpath(file)
    try:
        about = os.stat(real)
    except OSError:
        return  # Opening it will raise the reason.
    if about.st_nlink > 1 and stat.S_ISREG(about.st_mode):
        _remove_own_twin(real)
        if os.stat(real).st_nlink > 1:
            raise StorageError(f"{path}: {second_name(path)}")
    if _is_mounted(real):
        raise StorageError(
            f"{path}: is mounted as a single file, so its log would lie elsewhere than the log of "
            f"others who use the same file; {_WHAT_TO_MOUNT}"
        )


def two_logs(path: str) -> StorageError:
    """Return the error for a file that another program has open with another log."""
    return StorageError(
        f"{path}: another program has this file open with another log beside it, so it is not "
        "opened here: the file has a second name or is mounted by itself, or its log was deleted "
        f"while it was open; end that program first, then open the store again; {_WHAT_TO_MOUNT}"
    )


def _remove_own_twin(real: str) -> None:
    """Remove the first name of a backup that was killed directly after it got its second."""
    for twin in Path(real).parent.glob("*.partial"):
        with suppress(OSError):
            if _PARTIAL.fullmatch(twin.name) and os.path.samefile(twin, real):
                twin.unlink()


def _is_mounted(real: str) -> bool:
    """Return whether a path is a mount point, by the kernel's list."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            places = {line.split(" ", 5)[4] for line in file}
    except (OSError, IndexError):
        return False
    escaped = "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in real)
    return escaped in places


# -- the rights of files ---------------------------------------------------------------------------


def make_private(path: str, like: str | None = None) -> None:
    """Create an empty file for its owner alone, or with the rights of `like`, never wider.

    SQLite gives the log the rights of the file. Does nothing if the file exists.
    """
    mode = PRIVATE if like is None else stat.S_IMODE(os.stat(like).st_mode) & READ_OR_WRITE
    with suppress(FileExistsError):
        try:
            # Without opening it: closing it would drop this process's locks on the file.
            os.mknod(path, mode | stat.S_IFREG)
        except (AttributeError, PermissionError, NotImplementedError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


class PartialFile:
    """A file in progress that gets its real name at the end; locked against sweepers meanwhile.

    Files left by killed programs in the same folder are removed first.
    """

    def __init__(self, path: str, like: str | None) -> None:
        sweep_partials(os.path.dirname(path) or ".")
        self.path = path
        held = None
        while held is None:
            make_private(path, like)
            held = _held_open(path)
        self._held = held

    def close(self) -> None:
        """Remove the temporary name of the file."""
        try:
            remove_partial(self.path)
        finally:
            os.close(self._held)


def _held_open(path: str) -> int | None:
    """Return a descriptor whose lock keeps sweepers away; None if one came in between."""
    try:
        held = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    if fcntl is not None:
        with suppress(OSError):  # The file system may lack such locks.
            fcntl.flock(held, fcntl.LOCK_EX)  # A sweeper holds it only briefly.
    if os.fstat(held).st_nlink:
        return held
    os.close(held)
    return None


def sweep_partials(folder: str) -> None:
    """Remove files of killed backups in a folder; running ones are locked."""
    names = os.listdir(folder) if fcntl is not None else ()
    for name in {found[1] for found in map(_PARTIAL.fullmatch, names) if found}:
        path = os.path.join(folder, name)
        with suppress(OSError):
            try:
                held = os.open(path, os.O_RDONLY)
            except FileNotFoundError:  # It has its real name by now, so it is complete.
                remove_partial(path)
                continue
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_partial(path)
            finally:
                os.close(held)


def remove_partial(path: str) -> None:
    """Remove an unfinished file and the files beside it; the file last, for later sweepers."""
    for end in (*_BESIDE_PARTIAL, ""):
        Path(path + end).unlink(missing_ok=True)


def why_read_only(path: str) -> str:
    """Return why a file cannot be written, and a remedy."""
    about = os.statvfs(path) if hasattr(os, "statvfs") else None
    if about is not None and about.f_flag & os.ST_RDONLY:
        return "lies on a read-only file system, so it can only be read; copy it to another disk"
    what = "to its folder, where the log has to be" if os.access(path, os.W_OK) else "it"
    return (
        f"can only be read, for you have no right to write {what}; change that (chmod u+w), or run "
        "as its owner"
    )


HAS_LOCKS = sys.platform == "linux" and sys.maxsize > 1 << 32  # locks that belong to an open file
ALONE_BYTE = 0x40000002
"""Byte of the file that must be unlocked for a process to remove the log."""
USED_BYTE = 128
"""Byte of the log's index that must be unlocked for a process to start it again."""
LOGS_BYTE = 1 << 61
"""Offset far behind the end of the file: from here, one byte for each possible log."""
LOGS_MAX = 1 << 32  # logs are distinguished by their inode numbers modulo this
_LOCK = struct.Struct("hhqqi0q")  # l_type, l_whence, l_start, l_len, l_pid in C's layout


class FileLocks:
    """The locks on one file, for all stores that this process has open on it.

    SQLite detects other users of a file by locks that belong to processes. So a second copy of
    SQLite in our own process (Python's `sqlite3` beside the one we use) does not detect us: it
    would reset the log's index when it opens the file, and remove the log when it closes it, while
    we still write. And any code in our process that only reads the file's bytes drops all our locks
    by closing it; then other processes do not detect us either.

    Locks that belong to an open file do not have these problems. We hold two, on the bytes that
    SQLite locks before it does either. They block no reader or writer. A third lock says which log
    we use, so that a program with another log (by another name of the file, or after the log was
    deleted) is refused.
    """

    def __init__(self) -> None:
        self._files: list[tuple[int, int]] = []
        self._log = 0
        self._holding: set[object] = set()
        self._open: set[object] = set()

    def take(self, path: str, who: object) -> None:
        """Hold the file for one more store, whose connection is open already.

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
        # Always taken again, also while another store closes: the log may have a new index by now.
        for name, byte in ((f"{path}-shm", USED_BYTE), (path, ALONE_BYTE), (path, log)):
            # Without such locks, or without an index of the log, this is as safe as plain SQLite.
            with suppress(OSError):
                self._files.append((os.open(name, os.O_RDONLY), byte))
                _lock_byte(*self._files[-1], fcntl.F_RDLCK)
        if self._files and _uses_another_log(self._files[-1][0], log):
            self.release(who)
            self.forget(who)
            raise two_logs(path)

    def release(self, who: object) -> None:
        """Release the locks for one store before it closes, so that SQLite can tidy up the log."""
        self._holding.discard(who)
        for file, byte in self._files if not self._holding else ():
            with suppress(OSError):
                _lock_byte(file, byte, fcntl.F_UNLCK)

    def forget(self, who: object) -> None:
        """Record that a store has closed its connections."""
        self._open.discard(who)

    def close(self) -> bool:
        """Close the files if no store is open; return whether they are closed.

        Not earlier, because closing them drops the locks of every connection to them.
        """
        while self._files and not self._open:
            os.close(self._files.pop()[0])
        return not self._open

    def abandon(self) -> None:
        """Close the files regardless of their users: after a fork they belong to the parent."""
        while self._files:
            os.close(self._files.pop()[0])


def _lock_byte(file: int, byte: int, kind: int) -> None:
    """Change a lock that belongs to the open file."""
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, _LOCK.pack(kind, os.SEEK_SET, byte, 1, 0))


def _log_byte(path: str) -> int:
    """Return the byte that stands for the log beside a file; the last byte without a log."""
    try:
        return LOGS_BYTE + os.stat(f"{path}-wal").st_ino % LOGS_MAX
    except OSError:
        return LOGS_BYTE + LOGS_MAX


def _uses_another_log(file: int, log: int) -> bool:
    """Return whether another program holds the lock of another log."""
    for first, count in ((LOGS_BYTE, log - LOGS_BYTE), (log + 1, LOGS_BYTE + LOGS_MAX - log)):
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
        with suppress(OSError):  # The file system may lack such locks.
            if count and _LOCK.unpack(fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))[0] != (
                fcntl.F_UNLCK
            ):
                return True
    return False


class LockedFiles:
    """All files that this process holds, by identity: two paths may lead to one file."""

    def __init__(self) -> None:
        self._by_file: dict[tuple[int, int], FileLocks] = {}
        self._looks: dict[tuple[int, int], int] = {}
        self._opening = 0
        # A dropped store may be finalised in any thread at any point, also in here.
        self._lock = RLock()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Close no file meanwhile: a connection being opened has locks, but is not held yet."""
        with self._lock:
            self._opening += 1
        try:
            yield
        finally:
            with self._lock:
                self._opening -= 1
                self._close_left()

    def refuse_two_logs(self, path: str) -> None:
        """Check, before a file is opened, whether another program uses another log with it.

        Raises:
            StorageError: it does.
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
        """Hold a file for a store, if such locks exist here."""
        if not HAS_LOCKS:
            return
        real = os.path.realpath(path)  # The log is beside the real path.
        with self._lock:
            self._by_file.setdefault(_key_of(real), FileLocks()).take(real, who)

    def release(self, who: object) -> None:
        """Release a store's file before its connections close; calling it twice does nothing."""
        with self._lock:
            for held in self._by_file.values():
                held.release(who)

    def forget(self, who: object) -> None:
        """Forget a store after its connections are closed; calling it twice does nothing."""
        with self._lock:
            for held in self._by_file.values():
                held.forget(who)
            self._close_left()

    def _close_left(self) -> None:
        """Close the files that no open store uses."""
        for key, hold in list(self._by_file.items()) if not self._opening else ():
            if hold.close():
                self._by_file.pop(key, None)
        for key in list(self._looks) if not self._opening else ():
            if key not in self._by_file:
                os.close(self._looks.pop(key))

    def drop(self, who: object) -> None:
        """Release and forget a file when a store is gone without having been closed."""
        self.release(who)
        self.forget(who)

    def begin_anew(self) -> None:
        """Hold nothing after a fork: the locks belong to the parent."""
        # Closed here, too: such a lock lives until the last descriptor of the open file is closed.
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

"""File locks: who may use a store's file, in this process and beside other users of it.

LockedFiles   locks that keep another SQLite in this process from closing the store under us
Checkpointer  moves the write-ahead log into the file, off every writer's path
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import RLock

import apsw

from worlddb.errors import WorldDBError
from worlddb.store.sqlite.file_watch import FileWatch, two_logs
from worlddb.store.sqlite.gate import Gate

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
LOG_BYTES_MIN = 32 << 20
"""A log of this size is moved: pages written often are moved once, and a crash re-reads it fast."""
STOPPING_S_MAX = 30.0  # Far longer than a checkpoint takes; then the thread is left behind.
TAIL_MAX = 200  # What one turn may move while writers wait: a millisecond or two.
ROUNDS_MAX = 4  # A writer that is faster than the disk leaves the rest to the next time.
OTHERS_PATIENCE_MS = 10  # Other processes wait for this lock, too; a later commit tries again.
LOG_BYTES_MAX = 64 << 20  # What the log keeps of its size when it begins anew after a large load.
X_SYNC = 5
"""Where `xSync` is in a file's methods, after version, xClose, xRead, xWrite and xTruncate."""


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


def sync_file(con: apsw.Connection) -> None:
    """Wait until the disk has what was moved into the file.

    Through SQLite's own handle, by its public table of methods: to open the file a second time and
    close it again would take away the locks that this process has on it.
    """
    import ctypes

    words = ctypes.POINTER(ctypes.c_void_p)
    file = ctypes.c_void_p()
    con.file_control("main", apsw.SQLITE_FCNTL_FILE_POINTER, ctypes.addressof(file))
    methods = ctypes.cast(ctypes.cast(file, words)[0], words)
    sync = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(methods[X_SYNC] or 0)
    sync(file, apsw.SQLITE_SYNC_NORMAL)


class Checkpointer:
    """A thread that sleeps until the log has grown, then moves it into the file.

    A log begins anew only if all of it has been moved when the next writer starts. A writer that
    never rests writes on meanwhile, and the log would grow without end. So most of the log is moved
    beside the writers, and the little that is left in a turn of its own.
    """

    def __init__(self, path: str, writer: apsw.Connection, gate: Gate, watch: FileWatch) -> None:
        self._path = path
        self._gate = gate
        self._watch = watch
        # No event: an interrupt inside `set` would leave the thread asleep.
        self._due: SimpleQueue[None] = SimpleQueue()
        self._is_due = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._pages = 0
        self._tried = 0
        self.follow(writer)

    def follow(self, writer: apsw.Connection) -> None:
        """Hear of the commits of a connection."""
        self._pages_min = LOG_BYTES_MIN // int(str(writer.pragma("page_size")))
        writer.pragma("journal_size_limit", LOG_BYTES_MAX)
        writer.set_wal_hook(self._after_commit)

    def _after_commit(self, con: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._pages:
            self._tried = 0  # The log has begun anew.
        self._pages = pages
        grown = pages - self._tried
        is_large = grown >= self._pages_min or (grown >= TAIL_MAX and self._is_tight(pages))
        if is_large and not self._is_due:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="worlddb-checkpoint", daemon=True
                )
                self._thread.start()
            self._is_due = True
            self._due.put(None)
        return apsw.SQLITE_OK

    def _is_tight(self, pages: int) -> bool:
        """Return whether the disk is nearly full: the file needs as much room as its log has."""
        try:
            free = shutil.disk_usage(os.path.dirname(self._path)).free
        except OSError:
            return False
        return free < 2 * pages * LOG_BYTES_MIN // self._pages_min

    def _run(self) -> None:
        con: apsw.Connection | None = None
        try:
            while not self._stopped:
                self._due.get()
                # A failed checkpoint loses nothing: the log stays, and a later commit asks again.
                with suppress(apsw.Error, WorldDBError):
                    self._watch.refuse_lost()  # A new connection would begin a new log.
                    con = con or self._connect()
                    if not self._stopped:
                        self._move(con)
                self._tried = self._pages
                self._is_due = False
        finally:
            if con is not None:
                con.close()

    def _connect(self) -> apsw.Connection:
        con = apsw.Connection(self._path)
        con.set_busy_timeout(OTHERS_PATIENCE_MS)
        return con

    def _move(self, con: apsw.Connection) -> None:
        """Move the log into the file, all of it if readers allow."""
        # A connection that has read nothing does not know of the log, and would move nothing.
        con.pragma("user_version")
        for _ in range(ROUNDS_MAX):
            _, moved = con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            # SQLite waits for the disk only with the last page; here no writer waits with it.
            sync_file(con)
            if self._pages - moved <= TAIL_MAX:
                with self._gate.tidying():
                    con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
                return

    def stop(self) -> None:
        """End the thread; the last connection to close checkpoints what is left."""
        self._stopped = True
        self._due.put(None)
        with suppress(RuntimeError):  # An interrupt may have come before the thread began.
            if self._thread is not None:
                self._thread.join(STOPPING_S_MAX)

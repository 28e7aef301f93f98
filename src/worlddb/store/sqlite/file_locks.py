"""File locks: who may use a store's file, in this process and beside other users of it.

Gate          counts readers, admits one writer at a time, and shuts behind the last
LockedFiles   locks that keep another SQLite in this process from closing the store under us
FileWatch     notices that the file was deleted, moved or replaced
Checkpointer  moves the write-ahead log into the file, off every writer's path
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import RLock

import apsw

from worlddb.errors import ConflictError, InvalidInputError, StorageError, WorldDBError

try:
    import fcntl
except ImportError:  # Windows, where locks belong to open files anyway.
    fcntl = None  # type: ignore[assignment]

TIDYING_S_MAX = 5.0
"""How long the store's own upkeep may wait for its turn, or a writer for the upkeep."""
ALONE_BYTE = 0x40000002
"""In the file: a byte that has to be free for the one who takes the log away."""
USED_BYTE = 128
"""In the index of the log: the byte that has to be free for the one who begins it anew."""
PAGES_MIN = 8_000  # About 32 MB of log: small enough to re-read after a crash in no time.
TAIL_MAX = 200  # What one turn may move while writers wait: a millisecond or two.
ROUNDS_MAX = 4  # A writer that is faster than the disk leaves the rest to the next time.
OTHERS_PATIENCE_MS = 10  # Other processes wait for this lock, too; a later commit tries again.
LOG_BYTES_MAX = 64 << 20  # What the log keeps of its size when it begins anew after a large load.
X_SYNC = 5
"""Where `xSync` is in a file's methods, after version, xClose, xRead, xWrite and xTruncate."""


class Gate:
    """Counts readers, admits one writer at a time, and shuts when both are gone."""

    def __init__(self, path: str, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._state = threading.Condition()
        self._readers = 0
        self._writer: int | None = None
        self._tidier: int | None = None
        self._closed = False
        self._queue: deque[object] = deque()
        self._long_lived: list[apsw.Connection] = []

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count as a reader for the length of the block."""
        counted = False
        try:
            with self._state:
                self._check_open()
                self._readers += 1
                counted = True
            yield
        finally:
            if counted:
                with self._state:
                    self._readers -= 1
                    self._state.notify_all()

    @contextmanager
    def writing(self, timeout_s: float | None = None) -> Iterator[None]:
        """Be the one writer for the length of the block.

        Raises:
            InvalidInputError: the store is closed, or this thread is the writer already.
            ConflictError: another thread stayed the writer for longer than the time-out.
        """
        me = threading.get_ident()
        patience_s = self._timeout_s if timeout_s is None else timeout_s
        if self._writer == me:
            raise InvalidInputError(
                "this thread already has a transaction open; use that one, or end it first"
            )
        ticket = object()
        try:
            with self._state:
                self._check_open()
                self._queue.append(ticket)
                if not self._wait_for_turn(ticket, patience_s):
                    raise ConflictError(
                        f"{self._path}: another thread's transaction took longer than "
                        f"{patience_s:g} s; try again"
                    )
                self._check_open()
                self._writer = me
            yield
        finally:
            with self._state:
                with suppress(ValueError):
                    self._queue.remove(ticket)
                if self._writer == me:
                    self._writer = None
                self._state.notify_all()

    @contextmanager
    def tidying(self) -> Iterator[None]:
        """Be the one writer for a moment that is the store's own business."""
        self._tidier = threading.get_ident()
        try:
            with self.writing(TIDYING_S_MAX):
                yield
        finally:
            self._tidier = None

    def _wait_for_turn(self, ticket: object, patience_s: float) -> bool:
        """Wait until a writer may pass; one without patience still waits while we tidy up."""
        if self._state.wait_for(lambda: self._is_next(ticket), patience_s):
            return True
        is_ours = self._tidier is not None and self._writer in (None, self._tidier)
        return is_ours and self._state.wait_for(lambda: self._is_next(ticket), TIDYING_S_MAX)

    def _is_next(self, ticket: object) -> bool:
        """Return whether it is a waiting writer's turn: first come, first served."""
        return self._writer is None and self._queue[0] is ticket

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other thread out for the length of the block; the writer passes."""
        with nullcontext() if self._writer == threading.get_ident() else self.writing():
            yield

    def adopt(self, con: apsw.Connection) -> None:
        """Remember a connection that lives outside the count, to close it with the store."""
        with self._state:
            self._long_lived.append(con)

    def drop(self, con: apsw.Connection) -> None:
        """Forget an adopted connection."""
        with self._state:
            if con in self._long_lived:
                self._long_lived.remove(con)

    def close(self) -> list[apsw.Connection]:
        """Admit nobody more, wait until all are out, and return the adopted connections."""
        if self._writer == threading.get_ident():
            raise InvalidInputError(
                "this thread has a transaction open; leave its block, then close the store"
            )
        with self._state:
            self._closed = True
            self._state.wait_for(lambda: not self._readers and self._writer is None)
            left, self._long_lived = self._long_lived, []
        return left

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(f"{self._path}: is closed; open it again")


class FileLocks:
    """The locks on one file, for all the stores that this process has open on it.

    SQLite learns who else has a file open from locks that belong to processes. So a second copy of
    SQLite in our own process (Python's `sqlite3` beside the one we use) does not learn of us: it
    would begin the index of the log anew when it comes, and take the log away when it goes, while
    we still write to it. And whoever merely reads the file's bytes in our process gives up all our
    locks by closing it; then other processes do not learn of us either.

    Locks that belong to an open file do not have that weakness. We hold two, on the bytes that
    SQLite asks for before it does either. They keep nobody from reading or writing.
    """

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
        """Close no file meanwhile: a connection that is being made has locks, but no hold yet."""
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
    """A path, and the file that it led to when the store was opened.

    SQLite goes on writing to the file it has opened, whatever its path leads to by now. Nobody
    would find what was written there, so it must not be acknowledged.
    """

    def __init__(self, path: str, file: str | None) -> None:
        self._path = path
        self._file = file
        self._found = None if file is None else _identity(file)

    def refuse_lost(self) -> None:
        """Raise StorageError if the path leads to another file by now, or to none."""
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

    def __init__(self, path: str, writer: apsw.Connection, gate: Gate) -> None:
        self._path = path
        self._gate = gate
        self._due = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._pages = 0
        self._tried = 0
        writer.pragma("journal_size_limit", LOG_BYTES_MAX)
        writer.set_wal_hook(self._after_commit)

    def _after_commit(self, con: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._pages:
            self._tried = 0  # The log has begun anew.
        self._pages = pages
        if pages - self._tried >= PAGES_MIN and not self._due.is_set():
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="worlddb-checkpoint", daemon=True
                )
                self._thread.start()
            self._due.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        con = apsw.Connection(self._path)
        con.set_busy_timeout(OTHERS_PATIENCE_MS)
        try:
            while True:
                self._due.wait()
                if self._stopped:
                    return
                # A failed checkpoint loses nothing: the log stays, and a later commit asks again.
                with suppress(apsw.Error, WorldDBError):
                    self._move(con)
                self._tried = self._pages
                self._due.clear()
                if self._stopped:
                    return
        finally:
            con.close()

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
        self._due.set()
        if self._thread is not None:
            self._thread.join()

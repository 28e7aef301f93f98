"""Checkpointer: moves the write-ahead log into the file, off every writer's path.

A log begins anew only if all of it has been moved when the next writer starts. Beside a writer that
never rests, moving alone does not get there: it writes on meanwhile, and the log grows without end.
So most of the log is moved beside the writers, and the little that is left in a turn of its own.
"""

from __future__ import annotations

import threading
from contextlib import suppress

import apsw

from worlddb.errors import WorldDBError
from worlddb.store.sqlite.gate import Gate

PAGES_MIN = 8_000  # About 32 MB of log: small enough to re-read after a crash in no time.
TAIL_MAX = 200  # What one turn may move while writers wait: a millisecond or two.
ROUNDS_MAX = 4  # A writer that is faster than the disk leaves the rest to the next time.
OTHERS_PATIENCE_MS = 10  # Other processes wait for this lock, too; a later commit tries again.
LOG_BYTES_MAX = 64 << 20  # What the log keeps of its size when it begins anew after a large load.
X_SYNC = 5
"""Where `xSync` is in a file's methods, after version, xClose, xRead, xWrite and xTruncate."""


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
    """A thread that sleeps until the log has grown, then moves it into the file."""

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

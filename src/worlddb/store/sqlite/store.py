"""SqliteStore: one file, one writer at a time, readers that nobody blocks.

Each thread reads on its own connection and snapshot (WAL). Writes go through one connection behind
a lock; other processes wait for the file's write lock. Checkpoints run on a thread of their own,
so no write pays for one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from worlddb.errors import ConflictError, InvalidInputError, StorageError
from worlddb.store.protocol import Head
from worlddb.store.sqlite.checkpoint import Checkpointer
from worlddb.store.sqlite.connection import (
    MEMORY,
    check_format,
    connect,
    migrate,
    refuse_bad_path,
    translated,
)
from worlddb.store.sqlite.reader import SqliteReader
from worlddb.store.sqlite.writer import SqliteWriter

SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}


def _we_write(*_: Any) -> int:
    """Answer the guards: this connection is the engine's own."""
    return 1


class SqliteStore:
    """A WorldDB store in a SQLite file, or in memory."""

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], int],
        read_only: bool,
        create: bool,
        durability: str,
        busy_timeout_s: float,
    ) -> None:
        self.path = path
        self._clock = clock
        self._busy_timeout_s = busy_timeout_s
        self._lock = threading.RLock()
        self._writing_thread: int | None = None
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._closed = False
        refuse_bad_path(path)
        with translated(path):
            self._writer = self._open_writer(read_only, create, durability)
        self._checkpointer = Checkpointer(path, self._writer) if self._uses_wal else None

    def _open_writer(self, read_only: bool, create: bool, durability: str) -> apsw.Connection:
        if read_only or not create:
            if self.path != MEMORY and not Path(self.path).exists():
                raise StorageError(f"{self.path}: does not exist; create it by opening it to write")
        con = self._connect_somehow(read_only, create)
        try:
            self.read_only = read_only or con.readonly("main")
            if self.read_only:
                if check_format(con, self.path) == 0:
                    raise StorageError(f"{self.path}: is empty and read-only; nothing to read")
                con.execute("PRAGMA query_only = ON")
            else:
                migrate(con, self.path)
                con.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
                con.create_scalar_function(
                    "worlddb_write", _we_write, 0, flags=apsw.SQLITE_INNOCUOUS
                )
        except BaseException:
            con.close()
            raise
        return con

    def _connect_somehow(self, read_only: bool, create: bool) -> apsw.Connection:
        """Return a connection, also where nothing may be written, not even a lock file.

        A reader opens the file to write, too, where it may, and then only reads: a connection that
        cannot write leaves its log files behind when it closes.
        """
        try:
            return connect(
                self.path,
                read_only=False,
                busy_timeout_s=self._busy_timeout_s,
                create=create and not read_only,
            )
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            log = Path(f"{self.path}-wal")
            if not Path(self.path).exists() or (log.exists() and log.stat().st_size):
                raise
        # No log: the file alone is the whole store, and nobody can change it where it lies.
        self._immutable = True
        return apsw.Connection(
            f"{Path(self.path).absolute().as_uri()}?immutable=1",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )

    _immutable = False

    @property
    def _uses_wal(self) -> bool:
        return self.path != MEMORY and not self.read_only

    @property
    def _shares_one_connection(self) -> bool:
        return self.path == MEMORY or self._immutable

    # -- sessions ----------------------------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """Yield one snapshot; nested calls of the same thread share it."""
        self._check_open()
        if self._shares_one_connection:
            with self._exclusive(), translated(self.path):
                yield SqliteReader(self._writer)
            return
        reader: SqliteReader | None = getattr(self._local, "reader", None)
        if reader is not None:
            yield reader
            return
        with translated(self.path):
            con = self._reading_connection()
            con.execute("BEGIN")
            self._local.reader = SqliteReader(con)
            try:
                yield self._local.reader
            finally:
                self._local.reader = None
                # A generator may outlive the store; then there is nothing left to end.
                with suppress(apsw.ConnectionClosedError):
                    if con.in_transaction:
                        con.execute("COMMIT")

    def _reading_connection(self) -> apsw.Connection:
        con: apsw.Connection | None = getattr(self._local, "con", None)
        if con is None:
            con = connect(
                self.path, read_only=True, busy_timeout_s=self._busy_timeout_s, create=False
            )
            self._local.con = con
            with self._lock_of_readers:
                self._readers.append(con)
        return con

    _lock_of_readers = threading.Lock()

    @contextmanager
    def write(self) -> Iterator[SqliteWriter]:
        """Yield the write transaction; it lands when the block ends, or not at all.

        Raises:
            StorageError: the store is read-only, or the disk refused.
            ConflictError: another process kept the write lock longer than the time-out.
            InvalidInputError: this thread already has a transaction open.
        """
        self._check_open()
        if self.read_only:
            raise StorageError(f"{self.path}: opened read-only; open it to write")
        if self._writing_thread == threading.get_ident():
            raise InvalidInputError(
                "this thread already has a transaction open; use that one, or end it first"
            )
        with self._exclusive(), translated(self.path):
            self._check_open()
            con = self._writer
            con.execute("BEGIN IMMEDIATE")
            self._writing_thread = threading.get_ident()
            try:
                head = SqliteReader(con).head()
                yield SqliteWriter(con, head, self._next_time(head))
                con.execute("COMMIT")
            except BaseException:
                if con.in_transaction:
                    with suppress(apsw.Error):
                        con.execute("ROLLBACK")
                raise
            finally:
                self._writing_thread = None

    def _next_time(self, head: Head) -> int:
        """Return the commit's time: the clock's, but always after the last commit's."""
        return max(self._clock(), head.time + 1)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the one connection; the thread that already holds it passes."""
        if not self._lock.acquire(timeout=self._busy_timeout_s):
            raise ConflictError(
                f"{self.path}: another thread's transaction took longer than "
                f"{self._busy_timeout_s:g} s; try again"
            )
        try:
            yield
        finally:
            self._lock.release()

    # -- the whole file ----------------------------------------------------------------------------

    def verify(self) -> list[str]:
        """Return what SQLite itself finds wrong with the file's pages and indexes."""
        with self.read() as reader:
            found = [str(row[0]) for row in reader.con.execute("PRAGMA integrity_check(100)")]
        return [] if found == ["ok"] else found

    def backup(self, path: str) -> None:
        """Copy the last commit's state to `path` while readers and writers go on.

        Raises:
            StorageError: the target exists already or cannot be written.
        """
        refuse_bad_path(path)
        if os.path.exists(path):
            raise StorageError(f"{path}: exists already; choose a new path for the backup")
        partial = f"{path}.partial"
        with self.read() as reader, translated(path):
            Path(partial).unlink(missing_ok=True)
            target = apsw.Connection(partial)
            try:
                with target.backup("main", reader.con, "main") as copy:
                    while not copy.done:
                        copy.step(4096)
                target.close()
                # Under its name only when it is whole: a killed backup is never taken for one.
                os.rename(partial, path)
            except BaseException:
                target.close()
                Path(partial).unlink(missing_ok=True)
                raise

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(f"{self.path}: is closed; open it again")

    def close(self) -> None:
        """Close every connection. Calling it twice does nothing."""
        if self._closed:
            return
        with self._exclusive():
            self._closed = True
            if self._checkpointer is not None:
                self._checkpointer.stop()
            with self._lock_of_readers:
                for con in self._readers:
                    con.close()
            self._writer.close()

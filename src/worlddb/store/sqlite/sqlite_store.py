"""SqliteStore: one file, one writer at a time, readers that are never blocked.

Reads take a connection from a pool and see one snapshot (WAL). Writes go through one connection
behind a lock; other processes wait for the file's write lock. Checkpoints run on a thread of their
own, so no write pays for one. A store in memory has one connection for all, one at a time.
"""

from __future__ import annotations

import inspect
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import apsw

from worlddb.errors import ConflictError, StorageError, StoreKeyError
from worlddb.model.records import Branch
from worlddb.store.commit_group import GatheredBlocks, Mark, SharedCommit
from worlddb.store.interface import Seal, StoreOptions
from worlddb.store.sqlite import file_locks
from worlddb.store.sqlite.branch_file import (
    branches_of,
    check_name,
    drop,
    fork,
    has_branches,
    move_log,
    refuse_lost_base,
    trunk_of,
)
from worlddb.store.sqlite.database_file import (
    MEMORY,
    PAGE_BUDGET,
    SYNCHRONOUS,
    FileSession,
    TableSums,
    check_format,
    connect,
    connect_immutable,
    connect_somehow,
    teach_writer,
    translated,
)
from worlddb.store.sqlite.file_copy import (
    OldStoreView,
    copy_pages,
    copy_to_new,
    migrate_store,
    refuse_bad_target,
)
from worlddb.store.sqlite.file_locks import LOCKED_FILES, make_private, refuse_bad_path
from worlddb.store.sqlite.gate import (
    Checkpointer,
    FileWatch,
    Gate,
    LostLogError,
    close_connection,
    function_of,
    has_returned,
)
from worlddb.store.sqlite.schema import FORMAT_VERSION
from worlddb.store.sqlite.table_audit import edited_rows, lost_rows, lost_tables
from worlddb.store.tables.derived_tables import PageCache
from worlddb.store.tables.sql_session import SessionContext
from worlddb.store.tables.table_session import TableReader, TableWriter

IDLE_READERS_MAX = 8
"""Idle reading connections kept; each has a page cache of its own."""


class FileTransaction:
    """The transaction of a file that a group of blocks shares."""

    def __init__(self, session: Callable[[], FileSession], check: Callable[[], None]) -> None:
        self._session = session
        self._check = check

    def _writer(self) -> apsw.Connection:
        con: apsw.Connection = self._session().con
        return con

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return self._writer().in_transaction

    def begin(self) -> None:
        """Begin a transaction; no words wait yet, whatever was undone before."""
        self._session().is_behind = False
        self._writer().execute("BEGIN IMMEDIATE")

    def begin_block(self) -> None:
        """Begin a block that can be undone by itself."""
        self._writer().execute("SAVEPOINT block")

    def end_block(self, is_nested: bool) -> None:
        """End a block; the first has no savepoint."""
        if is_nested:
            self._writer().execute("RELEASE block")

    def undo_block(self) -> None:
        """Undo a block; an interrupt may have come before its savepoint, or after it."""
        with suppress(apsw.SQLError):
            self._writer().execute("ROLLBACK TO block; RELEASE block")
        self._session().is_behind = True  # If it has searched, earlier blocks were indexed in it.

    def commit(self) -> None:
        """Commit, unless the file was lost: a commit that nobody would find is not acknowledged."""
        self._session().index_new()
        self._writer().execute("COMMIT")
        self._check()

    def rollback(self) -> None:
        """Undo everything."""
        with suppress(apsw.Error):
            self._writer().execute("ROLLBACK")

    def has(self, mark: Mark) -> bool:
        """Return whether a commit is in the journal."""
        sql = "SELECT 1 FROM commits WHERE seq = ? AND hash = ?"
        return self._writer().execute(sql, mark).get is not None


class SqliteStore:
    """A WorldDB store in a SQLite file, or in memory."""

    def __init__(self, path: str, options: StoreOptions) -> None:
        self.path = path
        self._options = options
        self._key = key = options.key
        self._settings: tuple[float, bool] | None = None
        self._local = threading.local()
        self._idle: list[TableReader] = []
        self._context = SessionContext(options.verify_reads, options.random_bytes)
        self._immutable = False
        self._view: OldStoreView | None = None
        self._holder = object()
        self._pages = PageCache()
        self._sums = TableSums()
        self._gate = Gate(path, options.busy_timeout_s)
        transaction = FileTransaction(lambda: self._session, self._refuse_lost_log)
        self._shared = SharedCommit(self._gate, transaction)
        refuse_bad_path(path)
        # The process may change its working directory while the store is open.
        self._file = MEMORY if path == MEMORY else os.path.abspath(path)
        if options.read_only and path == MEMORY:
            raise StorageError(":memory: is new and empty; open it to write")
        if key is not None and path == MEMORY:
            raise StoreKeyError(":memory: is never written to a disk; leave the key out")
        with LOCKED_FILES.opening(), translated(path):
            file_locks.refuse_second_name(path, self._file)
            LOCKED_FILES.refuse_two_logs(self._file)
            if trunk_of(self._file) is not None:
                refuse_lost_base(self._file, key)
            try:
                self._writer = self._open_writer()
            except (apsw.NotADBError, StoreKeyError):
                if key is None:
                    raise
                # Another process has just created the file, with its own salt for the passphrase.
                self._writer = self._open_writer()
            in_file = path != MEMORY and not self._immutable
            if in_file:
                LOCKED_FILES.take(self._file, self._holder)
            self._watch = FileWatch(path, self._file if in_file else None, self._writer)
        self._session = FileSession(self._writer, self._context, sums=self._sums)
        self._transaction = TableWriter(self._session, self._pages)
        # Also if the store is never closed: dropped, or left open when the program ends.
        weakref.finalize(self, LOCKED_FILES.drop, self._holder)
        self._checkpointer: Checkpointer | None = None
        if path != MEMORY and not self.read_only:
            ours = self._writer, self._gate, self._watch
            self._checkpointer = Checkpointer(self._file, key, *ours)

    def _open_writer(self) -> apsw.Connection:
        read_only, create = self._options.read_only, self._options.create
        kind, timeout_s = self._options.migration, self._options.busy_timeout_s
        if (read_only or not create) and self.path != MEMORY:
            if not os.path.exists(self.path):
                raise StorageError(f"{self.path}: does not exist; create it by opening it to write")
        elif self.path != MEMORY:
            with suppress(OSError):  # If that fails, SQLite's error says more.
                make_private(os.path.realpath(self._file))
        con, self._immutable = connect_somehow(
            self.path,
            self._file,
            self._key,
            busy_timeout_s=timeout_s,
            create=create and not read_only,
        )
        try:
            self.read_only = read_only or con.readonly("main")
            self.why_read_only = "opened read-only; open it to write"
            if self.read_only and not read_only:
                self.why_read_only = file_locks.why_read_only(self._file)
            if self.read_only or not create:
                if check_format(con, self.path) == 0 and self.path != MEMORY:
                    raise StorageError(f"{self.path}: is empty; there is no store to open")
            if self.read_only or (kind == "never" and check_format(con, self.path)):
                con = self._view_of_old_format(con)
            if self.read_only:
                con.execute("PRAGMA query_only = ON")
            else:
                migrate_store(con, self.path, self._file, self._key, timeout_s, kind)
                teach_writer(con)
                self._sums.follow(con)
        except BaseException:
            con.close()
            raise
        return con

    def _view_of_old_format(self, con: apsw.Connection) -> apsw.Connection:
        """Return a connection to a private copy of the present format, if the store is older."""
        version = check_format(con, self.path)
        if version == FORMAT_VERSION:
            return con
        self._view = view = OldStoreView(con, self.path, self._key, version)
        con.close()
        self.read_only, self._immutable = True, False
        self.why_read_only, self._file = view.why_read_only, view.file
        return self._connect(read_only=False)

    @property
    def statements(self) -> int:
        return self._context.statements

    # -- sessions ----------------------------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[TableReader]:
        """Yield one snapshot; nested calls of the same thread share it.

        In memory other threads wait meanwhile, and a read inside a transaction sees its writes.
        """
        shared = self._shared_reader()
        if shared is not None:
            yield shared
            return
        if self.path == MEMORY:
            with self._gate.alone(), translated(self.path):
                yield TableReader(
                    FileSession(self._writer, self._context, time=self._transaction.time),
                    is_uncommitted=self._writer.in_transaction,
                )
            return
        with self._gate.reading(), translated(self.path):
            reader = self._take()
            opened = reader, function_of(inspect.currentframe())
            try:
                reader.session.execute("BEGIN")
                self._local.shared = opened
                yield reader
            finally:
                if getattr(self._local, "shared", None) is opened:
                    self._local.shared = None
                del opened  # Breaks the reference cycle of the frame.
                self._give_back(reader)

    def _shared_reader(self) -> TableReader | None:
        """Return the snapshot that this thread has open, unless an interrupt left it open."""
        shared = getattr(self._local, "shared", None)
        if shared is not None and has_returned(shared[1], threading.current_thread()):
            shared = self._local.shared = None
        return None if shared is None else shared[0]

    def _take(self) -> TableReader:
        with suppress(IndexError):
            reader = self._idle.pop()
            PAGE_BUDGET.share(reader.con)
            return reader
        return TableReader(FileSession(self._connect_to_read(), self._context))

    def _connect_to_read(self) -> apsw.Connection:
        if self._immutable:
            return connect_immutable(self.path, self._key)
        # Otherwise another file would be read beside the open one.
        self._watch.refuse_lost(to_read=True)
        return self._connect(read_only=True)

    def _connect(self, *, read_only: bool) -> apsw.Connection:
        options = {"read_only": read_only, "create": False}
        return connect(
            self._file, self._key, busy_timeout_s=self._options.busy_timeout_s, **options
        )

    def _give_back(self, reader: TableReader) -> None:
        session, con = reader.session, reader.con
        session.forget()
        # A rollback instead of a commit also drops FTS5's cache of its own structure, which would
        # be stale after another connection's write.
        with suppress(apsw.Error):
            if con.in_transaction:
                session.execute("ROLLBACK")
        # A statement left by an interrupt keeps its snapshot, also for the next reader.
        is_clean = con.txn_state("main") == apsw.SQLITE_TXN_NONE
        if len(self._idle) < IDLE_READERS_MAX and is_clean:
            self._idle.append(reader)
        else:
            con.close(True)

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Yield a snapshot for long reads, by any thread, beside all other sessions.

        In memory it is a copy, because a reader would keep writers from committing.
        """
        if self.path == MEMORY:
            snapshot = TableReader(FileSession(apsw.Connection(MEMORY), self._context))
            with self.read() as reader:
                reader.head()  # The snapshot begins with the first read.
                copy_pages(reader.con, snapshot.con)
        else:
            with self.using():
                snapshot = self._take()
                snapshot.session.execute("BEGIN")
                snapshot.head()  # The snapshot begins with the first read.
        self._gate.adopt(snapshot.con)
        try:
            yield snapshot
        finally:
            self._gate.drop(snapshot.con)
            snapshot.con.close()

    @contextmanager
    def using(self) -> Iterator[None]:
        with self._gate.reading(), translated(self.path):
            yield

    def translating(self) -> AbstractContextManager[None]:
        return translated(self.path)

    @contextmanager
    def write(self, *, together: bool = False) -> Iterator[TableWriter]:
        """Yield the write transaction; it commits when the block ends, or is rolled back.

        A block written `together` with others shares their COMMIT (see `commit_group`).
        """
        self._refuse_read_only()
        joins = together and self.path != MEMORY
        with translated(self.path), self._landing(joins=joins):
            self._session.postpones = joins
            self._transaction.begin(self._options.clock)
            yield self._transaction
            self._pages.landed()

    @contextmanager
    def gathering(self) -> Iterator[GatheredBlocks]:
        with self._shared.gathering() as gathered:
            yield gathered

    @contextmanager
    def derive(self, patience_s: float | None = None) -> Iterator[TableReader]:
        """Yield a session that may write derived rows; makes no commit and waits for no disk."""
        self._refuse_read_only()
        with translated(self.path), self._landing(patience_s, is_derived=True) as con:
            yield TableReader(FileSession(con, self._context))

    def refuse_lost(self) -> None:
        """Check that the file was not deleted, moved or replaced since it was opened."""
        self._watch.refuse_lost()

    def _refuse_lost_log(self) -> None:
        try:
            self._watch.refuse_lost()
        except LostLogError:
            # Earlier acknowledged commits are in a log without a name; a crash would lose them.
            with suppress(apsw.Error):
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
            raise

    def _refuse_read_only(self) -> None:
        if self.read_only:
            raise StorageError(f"{self.path}: {self.why_read_only}")

    @contextmanager
    def _landing(
        self,
        patience_s: float | None = None,
        *,
        is_derived: bool = False,
        joins: bool = False,
    ) -> Iterator[apsw.Connection]:
        """Yield the writing connection in a transaction that commits completely or not at all."""
        turn, shared = self._gate.turn(joins), self._shared
        patience_s = self._options.busy_timeout_s if patience_s is None else patience_s
        patience_s = shared.patience_s(patience_s)
        if self._checkpointer is not None:
            self._checkpointer.let_catch_up()
        try:
            self._gate.take(turn, patience_s)
            con = self._prepared(patience_s, is_derived, joins)
            self._context.statements += 2
            group = shared.begin()
            self._sums.begin()
            yield con
            self._sums.write(con)
            shared.hand_in(group, turn, self._pages.coming, stays=not is_derived)
        except BaseException as error:
            # If an interrupt skips this, the next turn does it.
            with suppress(apsw.Error):
                if self._gate.holds(turn):
                    shared.take_back(turn, error)
                    if isinstance(error, apsw.FullError):
                        # The log is moved into the file, so that the next write has its room.
                        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE
                        move_log(self._file, self._writer, mode, self._key)
            raise
        finally:
            turn.leave()
            self._gate.pass_on(turn)
        shared.wait(group, turn)

    def _prepared(self, patience_s: float, is_derived: bool, joins: bool) -> apsw.Connection:
        """Return the writing connection after cleaning up what an interrupt left."""
        if joins and self._shared.is_open:
            return self._writer
        self._shared.land_open()
        self._refuse_lost_log()
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        if self._writer.txn_state("main") != apsw.SQLITE_TXN_NONE and self.path != MEMORY:
            self._renew_writer()
        con = self._writer
        PAGE_BUDGET.share(con, writes=True)
        if self._session.has_loaded:
            # FTS5 keeps a table as large as the words of the load, and goes through it at each
            # commit, until the schema is read again.
            con.execute("PRAGMA writable_schema = RESET")
            self._session.has_loaded = False
        if self._settings != (patience_s, is_derived):
            self._settings = None
            con.set_busy_timeout(int(patience_s * 1000))
            con.pragma(
                "synchronous", SYNCHRONOUS["normal" if is_derived else self._options.durability]
            )
            self._settings = patience_s, is_derived
        return con

    def _renew_writer(self) -> None:
        """Replace the writing connection: an interrupt has left a statement with a snapshot."""
        new = self._connect(read_only=False)
        teach_writer(new)
        self._sums.follow(new)
        self._settings = None
        old, self._writer = self._writer, new
        self._session = FileSession(new, self._context, sums=self._sums)
        self._transaction = TableWriter(self._session, self._pages)
        if self._checkpointer is not None:
            self._checkpointer.follow(new)
        old.close(True)

    def _close_writer(self) -> None:
        """Close the last connection, which moves the log; branches keep their pages."""
        if self.path != MEMORY and not self._immutable and has_branches(self._file):
            with suppress(apsw.Error):
                self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                mode = apsw.SQLITE_CHECKPOINT_PASSIVE
                move_log(self._file, self._writer, mode, self._key)
        close_connection(self._writer, self.path)

    # -- the whole file ----------------------------------------------------------------------------

    def mend(self) -> bool:
        """Repair or reset lost derived data; return whether anything was lost."""
        is_mended = False
        for lost in (lost_tables, lost_rows, edited_rows):
            with self.read() as reader:
                found = lost(reader.con)  # First without blocking writers.
            if found:
                with self.derive() as session:
                    for statement, values in lost(session.con):
                        session.session.execute(statement, values)
                is_mended = True
        return is_mended

    def verify(self) -> list[str]:
        """Return SQLite's own findings about the file's pages and indexes."""
        sql = "PRAGMA integrity_check(100)"
        if self.path == MEMORY:
            with self.read() as reader:
                found = [str(line) for (line,) in reader.session.execute(sql)]
        else:
            # A new connection: FTS5 checks against its cache of the index, which is stale in a
            # connection that searched before the last commit.
            with self.using(), closing(self._connect_to_read()) as con:
                found = [str(line) for (line,) in con.execute(sql)]
        return [] if found == ["ok"] else found

    def clean(self) -> bool:
        self._refuse_read_only()
        self.refuse_branches("cleaned")
        with translated(self.path):
            with self._landing() as con:
                con.execute("INSERT INTO texts (texts) VALUES ('optimize')")
            if self.path == MEMORY:
                return True
            with self._gate.writing():
                self._shared.land_open()
                self._refuse_lost_log()
                con.execute("VACUUM")
                try:
                    con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                except apsw.BusyError:
                    return False
        # Beside the file itself, also if a link leads to it.
        return not Path(f"{os.path.realpath(self._file)}-wal").stat().st_size

    def backup(self, path: str) -> None:
        refuse_bad_target(path)
        like = self._file if os.path.exists(self._file) else None
        with self.read() as reader, translated(path):
            reader.head()  # The snapshot begins with the first read.
            copy_to_new(reader.con, path, like, self._key)

    def fork(self, name: str, actor: str) -> Branch:
        """Create a branch of the last commit."""
        self._refuse_read_only()
        check_name(name)
        if self.path == MEMORY or trunk_of(self._file) is not None:
            what = "a store in memory" if self.path == MEMORY else "a branch"
            raise StorageError(f"{self.path}: {what} cannot be branched; branch a store in a file")
        with translated(self.path), self._gate.writing():
            writer = self._prepared(self._options.busy_timeout_s, is_derived=False, joins=False)
            writer.execute("BEGIN IMMEDIATE")
            try:
                head = TableReader(FileSession(writer, self._context)).head()
                now = max(self._options.clock(), head.time)
                about = {"fork": head.seq, "hash": head.hash.hex(), "time": now, "actor": actor}
                fork(self._file, writer, name, about, self._key)
            finally:
                writer.execute("ROLLBACK")
        return next(row for row in self.branches() if row.name == name)

    def branches(self) -> list[Branch]:
        return [] if self.path == MEMORY else branches_of(self._file)

    def drop_branch(self, name: str) -> None:
        """Remove a branch and its files."""
        self._refuse_read_only()
        drop(self._file, name)
        if not has_branches(self._file):
            self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)

    def refuse_branches(self, what: str) -> None:
        if names := ", ".join(row.name for row in self.branches()):
            raise ConflictError(
                f"{self.path}: cannot be {what} while its branches ({names}) hold copies of what "
                "it says; merge or drop them first"
            )
        if self.path != MEMORY and trunk_of(self._file) is not None:
            raise ConflictError(
                f"{self.path}: a branch cannot be {what}, for the store below it still has the "
                "texts; do that to the store itself"
            )

    def side_file(self, suffix: str) -> str | None:
        """Return the path of a derived file beside the store; None in memory."""
        is_kept = self.path != MEMORY and self._view is None
        return f"{self.path}{suffix}" if is_kept else None

    def side_lines(self, name: str) -> None:
        """Return None: files beside the store are used instead."""

    def side_seal(self, salt: bytes | None = None) -> Seal | None:
        return None if self._key is None else self._key.seal(self._file, salt)

    def size_bytes(self) -> int:
        """Return the size of the file and its log; 0 in memory."""
        if self.path == MEMORY:
            return 0
        if trunk_of(self._file) is not None:
            return sum(entry.stat().st_size for entry in os.scandir(os.path.dirname(self._file)))
        files = (self._file, f"{os.path.realpath(self._file)}-wal")
        return sum(os.path.getsize(name) for name in files if os.path.isfile(name))

    def close(self) -> None:
        """Wait for running calls, then close every connection; calling it twice does nothing.

        If an interrupt comes, or another thread does not finish, a later call continues here.
        """
        for con in self._gate.close():
            close_connection(con, self.path)
            self._gate.drop(con)
        LOCKED_FILES.release(self._holder)
        while self._idle:
            close_connection(self._idle[-1].con, self.path)
            self._idle.pop()
        if self._checkpointer is not None:
            self._checkpointer.stop()
        self._close_writer()
        PAGE_BUDGET.leave(self._writer)
        if self._view is not None:
            self._view.close()
        LOCKED_FILES.forget(self._holder)

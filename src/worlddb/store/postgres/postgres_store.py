"""PostgresStore: one tenant of a database that other programs may use at the same time.

Reads take a connection from a pool and see one snapshot (REPEATABLE READ READ ONLY). A write locks
the tenant's row of `heads` until it commits, so one tenant has one writer at a time in all
processes, and tenants never wait for each other. All settings belong to a transaction (`SET
LOCAL`), so a pooler may hand out connections by transaction. Everything that starts a transaction
is sent at once, and tried again on a new connection while nothing has been done yet.

Held worlds check the journal's head at the beginning of each read. So the next read sees what
another server has written, without notifications, which would serialise all commits of a cluster.
"""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    NotFoundError,
    StorageError,
    WorldDBError,
)
from worlddb.model.records import Branch
from worlddb.store.commit_group import GatheredBlocks, Mark, SharedCommit
from worlddb.store.interface import BACKUP_KEYS_END, StoreOptions
from worlddb.store.postgres import server_schema
from worlddb.store.postgres.server_session import (
    POOLED,
    KnownAnswers,
    ServerLines,
    ServerSession,
    Statement,
)
from worlddb.store.rows import ROOT_TEXT, NewText, first_commit, root_node
from worlddb.store.sqlite.gate import Gate, function_of, has_returned
from worlddb.store.tables.derived_tables import PageCache
from worlddb.store.tables.sql_session import SessionContext
from worlddb.store.tables.table_session import TableReader, TableWriter

IDLE_MAX = 8  # idle connections kept; a server allows about a hundred for all programs
PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 2.0
"""Pause between two attempts to connect; doubles each time, and short compared with a restart."""
LINE_OPTIONS: dict[str, Any] = {
    "connect_timeout": 10,  # one attempt; a running server answers in milliseconds
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # ms; as long as the three keepalives
    "fallback_application_name": "worlddb",
}
"""A silent connection is given up after 25 s, not after libpq's two hours. The address may set
other values."""
ENDS = "08", "57P"  # error classes that end a connection
REFUSALS = "authentication failed", "does not exist", "no pg_hba.conf entry", "could not translate"
CLEANED = ("nodes", "notes", "edges", "words", "proposals", "conflicts", "side_lines")
"""The tables from which an erasure removes texts."""
_SNAPSHOT = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", None)
_SET = (
    "SELECT set_config('search_path', 'worlddb', true), set_config('role', $1, true), "
    "set_config('worlddb.tenant', $2, true)"
)
_SET_TO_WRITE = (
    f"{_SET}, set_config('lock_timeout', $3, true), set_config('synchronous_commit', "
    "coalesce($4, current_setting('synchronous_commit')), true)"
)

Meaning = tuple[tuple[type[Exception], ...], type[WorldDBError], str]
MEANINGS: tuple[Meaning, ...] = (
    (
        (errors.LockNotAvailable, errors.DeadlockDetected),
        ConflictError,
        "another writer took too long; try again, or open with a larger busy_timeout_s",
    ),
    (
        POOLED,
        ConflictError,
        "a pooler between here and the server does not keep prepared statements; from now on none "
        "are used, try again",
    ),
    (
        (errors.QueryCanceled,),
        ConflictError,
        "the server ended a statement that took too long; try again, or raise statement_timeout",
    ),
    (
        (errors.InsufficientPrivilege, errors.InvalidAuthorizationSpecification),
        StorageError,
        "the server refuses: {}; grant this login the roles worlddb_reader and worlddb_writer",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        StorageError,
        "the server is a standby that can only be read; connect to the primary",
    ),
    ((errors.DiskFull,), StorageError, "the server's disk is full; free some space"),
    (
        (psycopg.OperationalError, psycopg.InterfaceError),
        StorageError,
        "the connection to the server was lost: {}; what was not acknowledged may be missing, "
        "try again",
    ),
    ((psycopg.Error,), CorruptionError, "the database refuses: {}; run `worlddb check`"),
)
"""The errors for PostgreSQL's errors, in the order in which they are tried."""


class server_errors:  # noqa: N801 - it reads as what it does: `with server_errors(address):`
    """Turn PostgreSQL's errors into WorldDB errors that name the store and a remedy."""

    __slots__ = ("_address",)

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for kinds, ours, says in MEANINGS:
            if isinstance(error, kinds):
                what = str(error).strip().partition("\n")[0]
                raise ours(f"{self._address}: {says.format(what)}") from error


def server_format(address: str) -> tuple[int, int]:
    """Return the format of a database, and the present one; nothing is changed."""
    dsn, _, shown, _ = server_schema.split_address(address)
    with server_errors(shown), psycopg.connect(dsn, autocommit=True) as con:
        return server_schema.format_of_server(con, shown), len(server_schema.MIGRATIONS)


class ServerTransaction:
    """The server transaction that a group of blocks shares, on a connection from the pool.

    `beginning` are the statements that begin the next transaction.
    """

    def __init__(
        self,
        begun: Callable[[Sequence[Statement]], ServerSession],
        give_back: Callable[[ServerSession], None],
        has: Callable[[Mark], bool],
    ) -> None:
        self._begun = begun
        self._give_back = give_back
        self.has = has
        self.beginning: Sequence[Statement] = ()
        self._session: ServerSession | None = None

    @property
    def session(self) -> ServerSession:
        """The session of the open transaction."""
        assert self._session is not None
        return self._session

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open; a lost connection has none."""
        return self._session is not None and not self._session.con.broken

    def begin(self) -> None:
        """Begin a transaction and take the tenant's lock."""
        self._session = self._begun(self.beginning)

    def begin_block(self) -> None:
        """Begin a block that can be undone by itself."""
        self.session.foreseen.clear()
        self.session.run("SAVEPOINT block")

    def end_block(self, is_nested: bool) -> None:
        """End a block: the server must have accepted all deferred statements."""
        if is_nested:
            self.session.run("RELEASE block")
        else:
            self.session.flush()

    def undo_block(self) -> None:
        """Undo a block; if an interrupt came before its savepoint, `commit` will be refused."""
        self.session.forget()
        with suppress(psycopg.Error):
            self.session.run("ROLLBACK TO block")
            self.session.run("RELEASE block")

    def commit(self) -> None:
        """Commit, and free the connection."""
        self.session.commit()
        self._leave()

    def rollback(self) -> None:
        """Undo everything, and free the connection."""
        if self._session is not None:
            self._leave()

    def _leave(self) -> None:
        session, self._session = self.session, None
        self._give_back(session)


class PostgresStore:
    """A WorldDB store in a PostgreSQL database: the worlds of one tenant."""

    def __init__(self, address: str, options: StoreOptions) -> None:
        dsn, tenant, self.path, self._backup_keys = server_schema.split_address(address)
        self.read_only = options.read_only
        self.why_read_only = "opened read-only; open it to write"
        self._options = options
        self._local = threading.local()
        self._idle: list[ServerSession] = []
        weakref.finalize(self, _close_all, self._idle)  # Also if the store is never closed.
        self._rows: dict[bytes, int] = {}  # The rows of ids that sessions have read.
        self._context = SessionContext(options.verify_reads, options.random_bytes)
        self._told = self._context, self._rows, KnownAnswers()
        self._pages = PageCache()
        self._gate = Gate(self.path, options.busy_timeout_s)
        self._writing = ServerTransaction(self._begun, self._give_back, self._has)
        self._shared = SharedCommit(self._gate, self._writing)
        self._tenant = 0
        self._prepares = True
        with server_errors(self.path):
            self._line = {**LINE_OPTIONS, **conninfo_to_dict(dsn), "autocommit": True}
            self._open_tenant(tenant, options.create and not options.read_only)

    # -- opening -----------------------------------------------------------------------------------

    def _open_tenant(self, tenant: str, create: bool) -> None:
        con = self._connect()
        try:
            if create:
                server_schema.migrate_server(con, self.path)
            elif server_schema.format_of_server(con, self.path) == 0:
                raise StorageError(f"{self.path}: has no store; create it by opening it to write")
            find = "create_tenant" if create else "find_tenant"
            found: Any = con.execute(f"SELECT worlddb.{find}(%s)", (tenant,)).fetchone()
            if found[0] is None:
                raise StorageError(f"{self.path}: has no tenant {tenant!r}; open it to write")
            self._tenant = found[0]
        except BaseException:
            con.close()
            raise
        self._idle.append(ServerSession(con, *self._told))
        if create:
            self._begin_journal()

    def _begin_journal(self) -> None:
        """Write the root and the first commit of a new tenant."""
        session = self._begun(self._begin_write(self._options.busy_timeout_s, is_derived=False))
        try:
            if not session.run("SELECT 1 FROM commits LIMIT 1"):
                writer = TableWriter(session, self._pages)
                writer.insert_nodes([root_node()])
                writer.insert_texts([ROOT_TEXT])
                writer.insert_commit(first_commit())
            session.commit()
        finally:
            self._give_back(session)

    def _connect(self) -> psycopg.Connection[Any]:
        """Return a new connection; while a server restarts, tries until the time-out."""
        deadline, pause_s = time.monotonic() + self._options.busy_timeout_s, PAUSE_S_MIN
        while True:
            try:
                con = psycopg.connect(**self._line)
                server_schema.teach_types(con)
                self._rows.clear()  # A promoted standby may lack the last commits.
                return con
            except psycopg.OperationalError as error:
                is_final = isinstance(error, errors.InvalidAuthorizationSpecification)
                if is_final or _is_refusal(error) or time.monotonic() + pause_s > deadline:
                    what = str(error).strip().partition("\n")[0]
                    raise StorageError(
                        f"{self.path}: cannot be reached: {what}; check the address, the login and "
                        "that the server runs"
                    ) from error
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_S_MAX)

    @property
    def statements(self) -> int:
        return self._context.statements

    # -- sessions ----------------------------------------------------------------------------------

    def _begun(self, begin: Sequence[Statement], *, is_snapshot: bool = False) -> ServerSession:
        """Return a session in a transaction; replaces connections that the server has closed."""
        while True:
            try:
                session, is_new = self._idle.pop(), False
            except IndexError:
                con, is_new = self._connect(), True
                session = ServerSession(con, *self._told, prepares=self._prepares)
            try:
                session.begin(begin, is_snapshot=is_snapshot)
                return session
            except BaseException as error:
                session.con.close()
                if not self._is_pooled(session) and (is_new or not _is_lost(error)):
                    raise

    def _is_pooled(self, session: ServerSession) -> bool:
        """Return whether a pooler mixes prepared statements up; if so, prepare none from now on."""
        if session.line.is_pooled:
            self._prepares = False
            _close_all(self._idle)
        return session.line.is_pooled

    def _begin_read(self) -> list[Statement]:
        # One role where both are had: a prepared plan holds for the role it was made for.
        role = server_schema.READER if self.read_only else server_schema.WRITER
        return [_SNAPSHOT, (_SET, (role, str(self._tenant)))]

    def _begin_write(self, patience_s: float, *, is_derived: bool) -> list[Statement]:
        waits = "off" if is_derived or self._options.durability != "full" else None
        patience_ms = max(int(patience_s * 1000), 1)  # 0 would mean without end.
        given = (server_schema.WRITER, str(self._tenant), f"{patience_ms}ms", waits)
        # The row of a tenant may not exist while the tenant is being created.
        return [("BEGIN", None), (_SET_TO_WRITE, given), ("SELECT begin_write()", None)]

    def _give_back(self, session: ServerSession) -> None:
        con = session.con
        with suppress(psycopg.Error):
            session.end()
        is_clean = not con.closed and not con.broken and not self._is_pooled(session)
        if is_clean and len(self._idle) < IDLE_MAX:
            self._idle.append(session)
        else:
            con.close()

    def _has(self, mark: Mark) -> bool:
        session = self._begun(self._begin_read(), is_snapshot=True)
        try:
            return bool(session.run("SELECT 1 FROM commits WHERE seq = $1 AND hash = $2", mark))
        finally:
            self._give_back(session)

    @contextmanager
    def read(self) -> Iterator[TableReader]:
        shared = getattr(self._local, "shared", None)
        if shared is not None and not has_returned(shared[1], threading.current_thread()):
            yield shared[0]
            return
        with self._gate.reading(), server_errors(self.path):
            session = self._begun(self._begin_read(), is_snapshot=True)
            opened = TableReader(session), function_of(inspect.currentframe())
            try:
                self._local.shared = opened
                yield opened[0]
            finally:
                if getattr(self._local, "shared", None) is opened:
                    self._local.shared = None
                del opened  # Breaks the reference cycle of the frame.
                self._give_back(session)

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        with self.using():
            session = self._begun(self._begin_read(), is_snapshot=True)
            reader = TableReader(session)
            reader.head()  # Only the first read takes the snapshot.
        self._gate.adopt(session.con)
        try:
            yield reader
        finally:
            self._gate.drop(session.con)
            session.con.close()

    @contextmanager
    def using(self) -> Iterator[None]:
        with self._gate.reading(), server_errors(self.path):
            yield

    def translating(self) -> AbstractContextManager[None]:
        return server_errors(self.path)

    @contextmanager
    def write(self, *, together: bool = False) -> Iterator[TableWriter]:
        """Yield the write transaction; it commits when the block ends, or is rolled back.

        A block written `together` with others shares their COMMIT (see `commit_group`).
        """
        with self._landing(self._options.busy_timeout_s, joins=together) as session:
            writer = TableWriter(session, self._pages)
            writer.begin(self._options.clock)
            yield writer
            self._pages.landed()

    @contextmanager
    def gathering(self) -> Iterator[GatheredBlocks]:
        with server_errors(self.path), self._shared.gathering() as gathered:
            yield gathered

    @contextmanager
    def derive(self, patience_s: float | None = None) -> Iterator[TableReader]:
        """Yield a session that may write derived rows; makes no commit and waits for no disk."""
        patience_s = self._options.busy_timeout_s if patience_s is None else patience_s
        with self._landing(patience_s, is_derived=True) as session:
            yield TableReader(session)

    @contextmanager
    def _landing(
        self, patience_s: float, *, is_derived: bool = False, joins: bool = False
    ) -> Iterator[ServerSession]:
        """Yield a session whose transaction is committed completely or not at all."""
        if self.read_only:
            raise StorageError(f"{self.path}: {self.why_read_only}")
        turn, shared = self._gate.turn(joins), self._shared
        patience_s = shared.patience_s(patience_s)
        with server_errors(self.path):
            try:
                self._gate.take(turn, patience_s)
                if not (joins and shared.is_open):
                    shared.land_open()
                    self._writing.rollback()  # Left by an interrupt of the last turn.
                    self._writing.beginning = self._begin_write(patience_s, is_derived=is_derived)
                group = shared.begin()
                yield self._writing.session
                shared.hand_in(group, turn, self._pages.coming, stays=not is_derived)
            except BaseException as error:
                if self._gate.holds(turn):
                    shared.take_back(turn, error)
                raise
            finally:
                turn.leave()
                self._gate.pass_on(turn)
            shared.wait(group, turn)

    # -- the whole store ---------------------------------------------------------------------------

    def mend(self) -> bool:
        """Index texts again whose words were lost; return whether there were any."""
        with self.read() as reader:
            if not reader.scan.text_problems():
                return False
        with self.derive() as session:
            own = session.session
            own.execute("DELETE FROM words")
            own.execute("UPDATE heads SET texts = 0, words = 0")
            texts = [NewText(*row) for row in own.execute("SELECT row, name, content FROM nodes")]
            own.texts().insert(texts)
        return True

    def refuse_lost(self) -> None:
        """Check that the server answers, and has the tenant."""
        with self.read() as reader:
            reader.head()

    def verify(self) -> list[str]:
        """Return an empty list: PostgreSQL checks its own pages (`pg_amcheck`)."""
        return []

    def clean(self) -> bool:
        """Remove deleted and overwritten texts from the tables; the server's log keeps them."""
        with self.using():
            con = self._connect()  # VACUUM runs outside a transaction.
            try:
                for table in CLEANED:
                    con.execute(f"VACUUM worlddb.{table}")
            except errors.InsufficientPrivilege:
                return False
            finally:
                con.close()
        return True

    def backup(self, path: str) -> None:
        """Refuse: use `worlddb copy` for a file, and the server's own tools for a backup."""
        raise StorageError(
            f"{self.path}: is backed up by the server's own tools; 'worlddb copy' writes a store "
            "to a file"
        )

    def fork(self, name: str, actor: str) -> Branch:
        """Refuse: only a store in a file can have branches."""
        raise StorageError(
            f"{self.path}: a store on a server has no branches; copy the store to a file by "
            "'worlddb copy' and branch that"
        )

    def branches(self) -> list[Branch]:
        """Return none: a store on a server has no branches."""
        return []

    def drop_branch(self, name: str) -> None:
        """Refuse: there is no such branch."""
        raise NotFoundError(f"there is no branch {name!r}; a store on a server has none")

    def refuse_branches(self, what: str) -> None:
        """Refuse nothing: there are no branches."""

    def side_file(self, suffix: str) -> str | None:
        """Return None: nothing lies beside; keys of backups lie where the address says."""
        return self._backup_keys if suffix == BACKUP_KEYS_END else None

    def side_lines(self, name: str) -> ServerLines:
        """Return the lines of a name, in a table of their own."""
        return ServerLines(self._beside, name)

    @contextmanager
    def _beside(self) -> Iterator[ServerSession]:
        """Yield a session that writes outside the journal and waits for no writer."""
        with self.using():
            session = self._begun(
                [("BEGIN", None), (_SET, (server_schema.WRITER, str(self._tenant)))]
            )
            try:
                yield session
                session.commit()
            finally:
                self._give_back(session)

    def side_seal(self, salt: bytes | None = None) -> None:
        """Return None: the server encrypts its own disks."""

    def size_bytes(self) -> int:
        """Return the disk space of the tables of all tenants."""
        with self.read() as reader:
            size: int = reader.session.execute(
                "SELECT sum(pg_total_relation_size(oid))::int8 FROM pg_class WHERE relkind = 'r' "
                "AND relnamespace = 'worlddb'::regnamespace"
            ).get
        return size

    def close(self) -> None:
        """Wait for running calls, then close every connection; calling it twice does nothing."""
        for con in self._gate.close():
            con.close()
            self._gate.drop(con)
        self._writing.rollback()
        _close_all(self._idle)


def _close_all(sessions: list[ServerSession]) -> None:
    while sessions:
        sessions.pop().con.close()


def _is_lost(error: BaseException) -> bool:
    """Return whether a connection has ended; the server may report it before it is closed."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or ENDS[0]).startswith(
        ENDS
    )


def _is_refusal(error: Exception) -> bool:
    """Return whether a server refused a login, so that another attempt would not help."""
    return any(word in str(error) for word in REFUSALS)

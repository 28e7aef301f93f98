"""Database file: how a store's file is opened, and what all its tables share.

`translated` says what SQLite's errors mean here, `SqlSession` is one connection in one transaction,
and `JournalTable` has the commits, with the former values of the fields that they changed.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import apsw

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    StorageError,
    WorldDBError,
)
from worlddb.store.rows import CommitRow, Head, LookupsReached, NewText
from worlddb.store.sqlite.schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    MIGRATIONS,
    create,
    teach_words,
)

MEMORY = ":memory:"
PAGE_BYTES = 1_024
"""A commit writes a few bytes each to some thirty pages, and a page is written whole: a quarter of
SQLite's usual size makes the log three times smaller (bench.write_volume)."""
SMALLEST_BYTES = 512  # The smallest page of SQLite: a shorter file is none of its databases.
BUSY_PAUSE_S = 0.005
"""Between two attempts to switch the journal's mode: much shorter than anybody notices."""
SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}  # What `durability` means to SQLite.
BUDGET_KIB = 131_072
"""The indexes of a million nodes fit. The kernel keeps the file in memory as well, so more gains
little; unused pages cost nothing."""
SHARE_KIB_MIN = 2_000  # SQLite's own default: with less, a larger commit spills to the disk.
IN = "IN (SELECT value FROM carray(?))"
"""The condition for a list of rows, bound as one value: `(among(rows),)`."""
FOREVER = 1 << 62  # A commit number above all others.
# Commits are numbered without gaps and their times increase, so halving finds one by its time; an
# index by time would cost every commit a page.
_COMMIT_AT = """
    WITH RECURSIVE search (low, high) AS (
        SELECT -1, ?1
        UNION ALL
        SELECT iif(c.time <= ?2, c.seq, low), iif(c.time <= ?2, high, (low + high + 1) / 2 - 1)
        FROM search LEFT JOIN commits c ON c.seq = (low + high + 1) / 2 WHERE low < high
    )
    SELECT low FROM search WHERE low = high
"""

Past = dict[tuple[str, int], Any]  # Former values by (field, row).
Meaning = tuple[type[Exception] | tuple[type[Exception], ...], type[WorldDBError], str]
MEANINGS: tuple[Meaning, ...] = (
    (
        (apsw.BusyError, apsw.LockedError),
        ConflictError,
        "another process kept the write lock too long; try again, or open with a larger "
        "busy_timeout_s",
    ),
    (apsw.FullError, StorageError, "the disk is full; free some space, nothing was lost"),
    (
        apsw.ReadOnlyError,
        StorageError,
        "the file or its folder is read-only; change its permissions to write",
    ),
    (
        apsw.CantOpenError,
        StorageError,
        "cannot be opened; check that the folder exists and may be written",
    ),
    (apsw.ConnectionClosedError, InvalidInputError, "is closed; open it again"),
    (apsw.NotADBError, FormatError, "is not a WorldDB store; choose another path"),
    (
        (apsw.CorruptError, apsw.ConstraintError, apsw.MismatchError, apsw.SQLError),
        CorruptionError,
        "damaged: {}; restore a backup",
    ),
    (
        (apsw.IOError, apsw.PermissionsError),
        StorageError,
        "the disk failed: {}; nothing was acknowledged",
    ),
)
"""What SQLite's errors mean here, in the order they are tried."""


NOT_UTF8 = "a stored text is not UTF-8, so the file was damaged or changed by another program"
WAY_OUT = "`worlddb check` lists all damage; restore a backup"


class translated:  # noqa: N801 - it reads as what it does: `with translated(path):`
    """Turn what SQLite raises into the error tree, naming the file and the way out."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, WorldDBError):
            return
        if isinstance(error, UnicodeDecodeError) and _is_ours(trace):
            raise CorruptionError(f"{self._path}: {NOT_UTF8}; {WAY_OUT}") from error
        for kinds, ours, says in MEANINGS:
            if isinstance(error, kinds):
                raise ours(f"{self._path}: {says.format(error)}") from error


def _is_ours(trace: TracebackType | None) -> bool:
    """Return whether an error came up in this package, and not in a caller's transaction block."""
    module = ""
    while trace is not None:
        module, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return module.startswith("worlddb.")


class PageBudget:
    """The memory for pages that all connections of this process share.

    SQLite gives each connection a page cache of its own and has no limit over all of them. So each
    connection gets an equal share, anew whenever it is taken or given back: one alone may use it
    all, nine use no more together than one would.
    """

    def __init__(self, kib: int = BUDGET_KIB) -> None:
        self._kib = kib
        self._shares: WeakKeyDictionary[apsw.Connection, int] = WeakKeyDictionary()

    def share(self, con: apsw.Connection) -> None:
        """Give a connection its share; pages beyond the share are freed at once."""
        self._shares.setdefault(con, 0)
        share = max(self._kib // len(self._shares), SHARE_KIB_MIN)
        if self._shares[con] != share:
            con.pragma("cache_size", -share)
            self._shares[con] = share

    def leave(self, con: apsw.Connection) -> None:
        """Forget a connection that closes; the others get more when they are used next."""
        self._shares.pop(con, None)


PAGE_BUDGET = PageBudget()


def connect(path: str, *, read_only: bool, busy_timeout_s: float, create: bool) -> apsw.Connection:
    """Open one connection with this project's settings; the file's format is not looked at."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if create and not read_only:
        flags |= apsw.SQLITE_OPEN_CREATE
    con = apsw.Connection(path, flags=flags)
    try:
        con.set_busy_timeout(int(busy_timeout_s * 1000))
        # Without QPSG SQLite may re-prepare a statement for each bound value: twice as slow here.
        con.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        con.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        PAGE_BUDGET.share(con)
        con.execute("PRAGMA threads = 2")
        con.pragma("user_version")  # The first look at the file: what cannot be read fails here.
    except BaseException:
        con.close()
        raise
    return con


def teach_writer(con: apsw.Connection) -> None:
    """Give a connection what the tables ask of who writes them."""
    # Answers the guards: this connection is the engine's own.
    flags = apsw.SQLITE_INNOCUOUS
    con.create_scalar_function("worlddb_write", lambda *_: 1, 0, flags=flags)
    teach_words(con)


def connect_immutable(path: str) -> apsw.Connection:
    """Open a file that nobody can change, without any lock or log beside it."""
    uri = f"{Path(path).absolute().as_uri()}?immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def connect_somehow(
    path: str, file: str, *, busy_timeout_s: float, create: bool
) -> tuple[apsw.Connection, bool]:
    """Return a connection, also where nothing may be written, not even a lock file.

    And whether the file is such that nobody can change it. A reader opens the file to write, too,
    where it may, and then only reads: a connection that cannot write leaves its log files behind
    when it closes.
    """
    try:
        return connect(file, read_only=False, busy_timeout_s=busy_timeout_s, create=create), False
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        log = Path(f"{path}-wal")
        if os.path.isfile(path) and not os.access(path, os.R_OK):
            raise StorageError(
                f"{path}: you have no right to read it; change that (chmod u+rw), or run as its "
                "owner"
            ) from None
        if not os.path.exists(path) or (log.exists() and log.stat().st_size):
            raise
    # No log: the file alone is the whole store, and nobody can change it where it lies.
    return connect_immutable(path), True


def why_read_only(path: str) -> str:
    """Return why a file that was to be written cannot be, and what to do about it."""
    about = os.statvfs(path) if hasattr(os, "statvfs") else None
    if about is not None and about.f_flag & os.ST_RDONLY:
        return "lies on a read-only file system, so it can only be read; copy it to another disk"
    what = "to its folder, where the log has to be" if os.access(path, os.W_OK) else "it"
    return (
        f"can only be read, for you have no right to write {what}; change that (chmod u+w), or run "
        "as its owner"
    )


def check_format(con: apsw.Connection, path: str) -> int:
    """Return the file's format version; 0 for a new, empty file.

    Raises:
        FormatError: another program's database, or a newer format than this version reads.
    """
    # One statement, so one snapshot: another process may be making the store right now.
    found: Any = con.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), "
        "(SELECT user_version FROM pragma_user_version), "
        "(SELECT count(*) FROM sqlite_schema)"
    ).fetchone()
    application, version, objects = found
    if application == 0 and version == 0:
        if objects or (path != MEMORY and 0 < os.path.getsize(path) < SMALLEST_BYTES):
            raise FormatError(f"{path}: is another program's file; choose another path")
        return 0
    if application != APPLICATION_ID or version < 1:
        raise FormatError(f"{path}: is not a WorldDB store; choose another path")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"{path}: has format {version}, this version reads up to {FORMAT_VERSION}; "
            "install a newer worlddb"
        )
    return int(version)


def migrate(
    con: apsw.Connection,
    path: str,
    timeout_s: float,
    keep: Callable[[apsw.Connection, int], KeptCopy | None],
) -> None:
    """Bring the file to the present format; all or nothing, also when two processes try at once.

    `keep` gets a snapshot of a store of an older format and its number. It makes a copy, or raises
    if the store is not to be migrated. Nothing was changed before.
    """
    kept = None
    if 0 < check_format(con, path) < FORMAT_VERSION:
        with con:
            version = check_format(con, path)
            kept = keep(con, version) if version < FORMAT_VERSION else None
    mode = "memory" if path == MEMORY else "wal"
    if con.pragma("journal_mode") != mode:
        if path != MEMORY and check_format(con, path) == 0:
            con.pragma("page_size", PAGE_BYTES)
        _set_journal_mode(con, path, mode, timeout_s)
    if check_format(con, path) == FORMAT_VERSION:
        if kept is not None:
            kept.drop()
        return
    con.execute("BEGIN IMMEDIATE")
    try:
        version = check_format(con, path)
        if version == 0:
            create(con)
        else:
            for migration in MIGRATIONS[version - 1 :]:
                migration(con)
        con.pragma("application_id", APPLICATION_ID)
        con.pragma("user_version", FORMAT_VERSION)
    except BaseException:
        con.execute("ROLLBACK")
        if kept is not None:
            kept.drop()
        raise
    con.execute("COMMIT")
    if kept is not None:
        kept.tell()


def _set_journal_mode(con: apsw.Connection, path: str, mode: str, timeout_s: float) -> None:
    """Switch the journal's mode; SQLite does not wait for others here by itself, so we do."""
    check_format(con, path)  # Another program's file is not ours to switch.
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            con.pragma("journal_mode", mode)
            return
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(BUSY_PAUSE_S)


def refuse_bad_path(path: str) -> None:
    """Say early, in words, what is wrong with a path that cannot be a store."""
    if path == MEMORY:
        return
    try:
        path.encode()
    except UnicodeEncodeError:
        raise StorageError(f"{path!r}: is not UTF-8; choose another name") from None
    if not path or "\0" in path:
        raise StorageError(f"{path!r}: is no path; give the path of a file")
    target = Path(path)
    if target.is_dir():
        raise StorageError(f"{path}: is a folder; give the path of a file in it")
    if not target.parent.is_dir():
        raise StorageError(f"{path}: the folder {target.parent} does not exist; create it first")


def among(rows: list[int]) -> Any:
    """Return rows as the array that `IN` reads; 0 is no row."""
    return apsw.carray(array("q", rows or (0,)))


class SessionContext:
    """What all sessions of a store share: a count of statements, a setting, and randomness."""

    __slots__ = ("random_bytes", "statements", "verifies")

    def __init__(self, verifies: bool, random_bytes: Callable[[int], bytes]) -> None:
        self.random_bytes = random_bytes
        self.statements = 0
        self.verifies = verifies


class KeptCopy(Protocol):
    """The copy of a store that is being migrated."""

    def tell(self) -> None: ...  # noqa: D102
    def drop(self) -> None: ...  # noqa: D102


class DeferredIndexes(Protocol):
    """A bulk load that has put indexes off."""

    names: set[str]

    def keep(self, rows: Iterable[NewText]) -> None: ...  # noqa: D102
    def analyse(self, pool: Executor) -> None: ...  # noqa: D102
    def build(self) -> None: ...  # noqa: D102


class SqlSession:
    """One connection, from the beginning of a transaction to its end.

    It counts statements, remembers what cannot change during a snapshot, and knows whether a bulk
    load has put indexes off. `seq` and `time` are those of the commit that a write becomes.
    """

    __slots__ = (
        "_context",
        "_run",
        "_run_many",
        "con",
        "deferred",
        "has_moved",
        "head",
        "node_rows",
        "reached",
        "seq",
        "time",
        "verifies",
    )

    def __init__(self, con: apsw.Connection, context: SessionContext, time: int = 0) -> None:
        self.con = con
        self.seq = 0
        self.time = time
        self.deferred: DeferredIndexes | None = None
        self.verifies = context.verifies
        self._context = context
        self._run = con.execute
        self._run_many = con.executemany
        self.forget()

    def forget(self) -> None:
        """Drop what was remembered of a snapshot, before the next one."""
        self.head: Head | None = None
        self.reached: LookupsReached | None = None
        self.has_moved = False
        self.node_rows: dict[bytes, int] = {}

    def execute(self, sql: str, values: Any = None) -> apsw.Cursor:
        """Run one statement."""
        self._context.statements += 1
        return self._run(sql, values)

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """Run one statement for many rows; it counts once."""
        self._context.statements += 1
        self._run_many(sql, rows)

    def one(self, sql: str, values: tuple[Any, ...]) -> int | None:
        """Return the first column of the first row, an integer, or None."""
        self._context.statements += 1
        found: int | None = self._run(sql, values).get
        return found

    def rows(self, sql: str, values: tuple[Any, ...]) -> list[int]:
        """Return the only column of all rows, integers."""
        self._context.statements += 1
        return [row for (row,) in self._run(sql, values)]

    def need_index(self, *names: str) -> None:
        """Build indexes that a bulk load has put off, if one of these is among them."""
        if self.deferred is not None and not self.deferred.names.isdisjoint(names):
            self.deferred.build()


class JournalTable:
    """Commits and history, as one session sees them.

    Tables hold the present. The past is the present with `history` laid over it: the first change
    after the asked commit says what the field was then.
    """

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def head(self) -> Head:
        """Return the last commit; inside a write transaction, the one that it follows."""
        session = self._session
        if session.head is None:
            found = session.execute(
                "SELECT seq, time, hash, root_state, nodes, edges, notes FROM commits "
                "ORDER BY seq DESC LIMIT 1"
            ).fetchone()
            if found is None:
                raise CorruptionError("the journal is empty; restore a backup")
            session.head = Head(*found)
        return session.head

    def commit_at(self, time: int) -> int | None:
        """Return the last commit at or before `time`, None before the first."""
        found = self._session.one(_COMMIT_AT, (self.head().seq, time))
        return None if found is None or found < 0 else found

    def commits(self, after: int, limit: int | None, newest_first: bool) -> list[CommitRow]:
        """Return up to `limit` commits with a number above `after`, by number."""
        order = "DESC" if newest_first else "ASC"
        found = self._session.execute(
            f"SELECT * FROM commits WHERE seq > ? ORDER BY seq {order} LIMIT ?",
            (after, -1 if limit is None else limit),
        )
        return [CommitRow(*row) for row in found]

    def state_count(self, row: int) -> int:
        """Return how many commits have changed the state of a world."""
        sql = "SELECT count(*) FROM history WHERE field = 'node.state' AND row = ?"
        return self._session.one(sql, (row,)) or 0

    def root_state(self, known: int | None) -> bytes:
        """Return the root's state: every commit has it, and no other table does."""
        if known is None:
            return self.head().root_state
        sql = "SELECT root_state FROM commits WHERE seq = ?"
        state: bytes = self._session.execute(sql, (known,)).get
        return state

    def past(self, fields: tuple[str, ...], rows: list[int], known: int | None) -> Past:
        """Return what fields said at commit `known`, where they have changed since."""
        if known is None:
            return {}
        marks = ", ".join("?" * len(fields))
        found = self._session.execute(
            f"SELECT field, row, was, min(seq) FROM history WHERE field IN ({marks}) "
            f"AND row {IN} AND seq > ? GROUP BY field, row",
            [*fields, among(rows), known],
        )
        return {(field, row): was for field, row, was, _ in found}

    def change(self, kind: str, column: str, row: int, value: Any) -> None:
        """Change a field, and keep what it said before this commit.

        Of several changes in one commit, the first counts. `kind` is node, edge or proposal.
        """
        key = "edge" if kind == "proposal" else "row"
        self._session.execute(
            f"INSERT OR IGNORE INTO history SELECT '{kind}.{column}', {key}, ?, {column} "
            f"FROM {kind}s WHERE {key} = ?",
            (self._session.seq, row),
        )
        self._session.execute(f"UPDATE {kind}s SET {column} = ? WHERE {key} = ?", (value, row))

    def set_valid_to(self, kind: str, row: int, valid_to: int) -> None:
        """Close the validity of a node (`kind` "node") or an edge ("edge")."""
        self.change(kind, "valid_to", row, valid_to)

    def insert_commit(self, row: CommitRow) -> None:
        """Write the journal's row."""
        self._session.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

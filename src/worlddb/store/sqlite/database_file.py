"""Database file: opens a store's file; connections, sessions, text index and sums.

`translated` maps SQLite's errors, `FileSession` is one connection in one transaction,
`FileTextIndex` has the words of every node (FTS5; words are analysed before and never FTS5 syntax),
and `TableSums` has a sum over the rows of every derived table.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import apsw
from blake3 import blake3

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    StorageError,
    WorldDBError,
)
from worlddb.language.text_tokens import indexed, indexed_content
from worlddb.store.rows import Head, NewText, TextHit
from worlddb.store.sqlite.branch_file import guard_branches, has_branches, vfs_of
from worlddb.store.sqlite.file_encryption import StoreKey, refuse_wrong_key, unlocked
from worlddb.store.sqlite.schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    INDEX_NEW,
    NEVER_DELETED,
    RECALLS,
    teach_words,
)
from worlddb.store.tables.sql_session import (
    WAY_OUT,
    DeferredIndexes,
    SessionContext,
    SqlSession,
)

if TYPE_CHECKING:
    from worlddb.store.sqlite.table_audit import FileScan

MEMORY = ":memory:"
PAGE_BYTES = 1_024
"""Bytes. A commit writes a few bytes each to some thirty pages, and a page is written whole: a
quarter of SQLite's usual size makes the log three times smaller (bench.write_volume)."""
SMALLEST_BYTES = 512  # the smallest page of SQLite; a shorter file is not a database
SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}  # SQLite's setting for `durability`
BUDGET_KIB = 131_072
"""KiB; holds the indexes of a million nodes. The kernel caches the file as well, so more gains
little; unused pages cost nothing."""
SHARE_KIB_MIN = 2_000  # SQLite's default; with less, a larger commit spills to the disk
WRITER_KIB = 8_192
"""KiB. To balance a tree SQLite gives a page a number beyond the end of the file for a moment. The
next COMMIT then looks for such pages among all in the cache, which in a large one takes longer than
the whole write. This much holds the inner pages of the indexes of a million nodes."""
COUNTED_MAX = 2_000
"""Nodes per word up to which they are counted; more are estimated, as counting takes too long."""
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
"""The errors for SQLite's errors, in the order in which they are tried."""


NOT_UTF8 = "a stored text is not UTF-8, so the file was damaged or changed by another program"


class translated:  # noqa: N801 - it reads as what it does: `with translated(path):`
    """Turn SQLite's errors into WorldDB errors that name the file and a remedy."""

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
    """Return whether an error was raised in this package, and not in a caller's block."""
    module = ""
    while trace is not None:
        module, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return module.startswith("worlddb.")


class PageBudget:
    """The page memory that all connections of this process share.

    SQLite gives each connection a page cache of its own, without a limit over all of them. So each
    reader gets an equal share, recomputed whenever one is opened or closed: one reader may use all
    that the writers leave, nine use no more together.
    """

    def __init__(self, kib: int = BUDGET_KIB) -> None:
        self._kib = kib
        self._shares: WeakKeyDictionary[apsw.Connection, int] = WeakKeyDictionary()
        self._writers: WeakSet[apsw.Connection] = WeakSet()

    def share(self, con: apsw.Connection, *, writes: bool = False) -> None:
        """Give a connection its share; pages beyond it are freed at once."""
        self._shares.setdefault(con, 0)
        (self._writers.add if writes else self._writers.discard)(con)
        share = min(self._kib // len(self._shares), WRITER_KIB)
        if not writes:
            count = sum(it in self._shares for it in tuple(self._writers))  # Others have left.
            share = (self._kib - share * count) // max(1, len(self._shares) - count)
        share = max(share, SHARE_KIB_MIN)
        if self._shares[con] != share:
            con.pragma("cache_size", -share)
            self._shares[con] = share

    def leave(self, con: apsw.Connection) -> None:
        """Remove a closing connection; the others get larger shares when they are used next."""
        self._shares.pop(con, None)
        self._writers.discard(con)


PAGE_BUDGET = PageBudget()


def connect(
    path: str, key: StoreKey | None, *, read_only: bool, busy_timeout_s: float, create: bool
) -> apsw.Connection:
    """Open one connection with WorldDB's settings, without checking the file's format."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if create and not read_only:
        flags |= apsw.SQLITE_OPEN_CREATE
    if key is None:
        # Before SQLite reads it: without the key it would roll back a journal left by a crash, and
        # destroy the file.
        refuse_wrong_key(path, None)
    con = unlocked(path, key, flags=flags, vfs=vfs_of(path, key))
    try:
        if has_branches(path):
            guard_branches(con)
        con.set_busy_timeout(int(busy_timeout_s * 1000))
        # Without QPSG SQLite may re-prepare a statement for each bound value: twice as slow here.
        con.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        con.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        PAGE_BUDGET.share(con)
        con.execute("PRAGMA threads = 2")
        con.pragma("user_version")  # The first read of the file; an unreadable file fails here.
    except BaseException as error:
        con.close()
        if isinstance(error, apsw.NotADBError):
            refuse_wrong_key(path, key)
        raise
    return con


def teach_writer(con: apsw.Connection) -> None:
    """Let a connection write: the guards are for all others, and it knows the indexed words."""
    # A trigger would cost each row a call of Python and a savepoint. What the guards refuse to us,
    # too, is refused when a statement is prepared.
    con.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    con.authorizer = _refuse_deletion
    teach_words(con)


def _refuse_deletion(action: int, table: str | None, *_: str | None) -> int:
    """Refuse a statement that deletes rows which are never deleted."""
    if action == apsw.SQLITE_DELETE and table in NEVER_DELETED:
        raise apsw.ConstraintError(f"WorldDB: no row of {table} is ever deleted")
    return apsw.SQLITE_OK


def connect_immutable(path: str, key: StoreKey | None) -> apsw.Connection:
    """Open a file that cannot change, without any lock or log beside it."""
    uri = f"{Path(path).absolute().as_uri()}?immutable=1"
    con = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    if key is not None:
        key.unlock(con, path)
    return con


def connect_somehow(
    path: str, file: str, key: StoreKey | None, *, busy_timeout_s: float, create: bool
) -> tuple[apsw.Connection, bool]:
    """Return a connection, even if nothing may be written, not even a lock file.

    The second value says whether the file cannot change. A reader also opens the file to write, if
    it may, and then only reads: a read-only connection would leave its log files behind when it
    closes.
    """
    try:
        options = {"read_only": False, "create": create}
        return connect(file, key, busy_timeout_s=busy_timeout_s, **options), False
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        log = Path(f"{path}-wal")
        if os.path.isfile(path) and not os.access(path, os.R_OK):
            raise StorageError(
                f"{path}: you have no right to read it; change that (chmod u+rw), or run as its "
                "owner"
            ) from None
        if not os.path.exists(path) or (log.exists() and log.stat().st_size):
            raise
    # Without a log the file is the whole store, and nobody can change it here.
    return connect_immutable(path, key), True


def check_format(con: apsw.Connection, path: str) -> int:
    """Return the file's format version; 0 for a new, empty file."""
    # One statement, so one snapshot: another process may be creating the store.
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


class FileSession(SqlSession):
    """A session on a connection to SQLite."""

    __slots__ = ("_run", "_run_many", "_sums", "has_loaded", "is_behind", "postpones")

    def __init__(
        self,
        con: apsw.Connection,
        context: SessionContext,
        time: int = 0,
        sums: TableSums | None = None,
    ) -> None:
        self._run = con.execute
        self._run_many = con.executemany
        self._sums = sums
        self.has_loaded = self.is_behind = self.postpones = False
        super().__init__(con, context, time)

    def execute(self, sql: str, values: Any = None) -> apsw.Cursor:
        self.context.statements += 1
        return self._run(sql, values)

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        self.context.statements += 1
        self._run_many(sql, rows)

    def stream(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        return iter(self.execute(sql, values))

    def insert(
        self, table: str, columns: Sequence[str], rows: Iterable[Any], conflict: str = ""
    ) -> None:
        sql = _INSERTS.get((table, conflict))
        if sql is None:
            sql = _INSERTS[table, conflict] = _insert(table, columns, conflict)
        if self._sums is None or table in SUMMED:
            self.executemany(sql, rows)
        else:
            self._unwatched(sql, rows)

    def insert_fresh(self, table: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
        # A row that is there although it cannot be was written by another program. It is counted
        # twice, so that the sum no longer fits.
        if self._sums is None:
            self.insert(table, columns, rows, "DO NOTHING")
        else:
            self._unwatched(_insert(table, columns, "DO NOTHING"), rows)
            self._sums.add(table, rows)

    def _unwatched(self, sql: str, rows: Iterable[Any]) -> None:
        """Run a statement for many rows without the hook: nothing of theirs has to be summed."""
        if self._sums is None:
            return self.executemany(sql, rows)
        self.con.preupdate_hook(None)
        try:
            self.executemany(sql, rows)
        finally:
            self._sums.follow(self.con)

    def insert_texts(self, rows: Iterable[NewText]) -> None:
        # FTS5 writes what it has at each savepoint, so blocks index their words together.
        if self.postpones and self.deferred is None:
            self.is_behind = True
        else:
            super().insert_texts(rows)

    def index_new(self) -> None:
        """Index the words of new nodes that wait for the COMMIT, or for the first search.

        What is interrupted is done again. A load indexes its words when it builds its indexes.
        """
        if self.is_behind and self.deferred is None:
            self._unwatched(INDEX_NEW, [()])
            self.is_behind = False

    def among(self, rows: Sequence[int]) -> Any:
        return apsw.carray(array("q", rows or (0,)))

    def texts(self) -> FileTextIndex:
        return FileTextIndex(self)

    def scan(self) -> FileScan:
        from worlddb.store.sqlite.table_audit import FileScan

        return FileScan(self)

    def bulk_load(self, head: Head) -> DeferredIndexes:
        """Defer indexes until the end of a load, which may use as much memory as a reader."""
        from worlddb.store.sqlite.schema import BulkLoad

        PAGE_BUDGET.share(self.con)
        self.has_loaded = True
        return BulkLoad(self, head)

    def need_table(self, name: str, *, is_written: bool = False) -> bool:
        """Return whether the table of recall counts exists; with `is_written`, create it."""
        if is_written:
            self.execute(RECALLS)
        sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        return self.one(sql, (name,)) is not None

    def one(self, sql: str, values: tuple[Any, ...]) -> int | None:
        self.context.statements += 1
        found: int | None = self._run(sql, values).get
        return found

    def rows(self, sql: str, values: tuple[Any, ...]) -> list[int]:
        self.context.statements += 1
        return [row for (row,) in self._run(sql, values)]


_INSERTS: dict[tuple[str, str], str] = {}
"""The statements by table and conflict; each table has one list of columns."""


def _insert(table: str, columns: Sequence[str], conflict: str) -> str:
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
    return f"{sql} ON CONFLICT {conflict}" if conflict else sql


class FileTextIndex:
    """The words of every node, as one session sees them."""

    def __init__(self, session: FileSession) -> None:
        self._whole = session

    @property
    def _session(self) -> FileSession:
        """The session, after what its transaction has not indexed yet."""
        self._whole.index_new()
        return self._whole

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]:
        """Return the approximate number of `nodes` with each word; exact for small numbers.

        Counting a common word would take longer than the search. So only the first nodes with it
        are counted, and the total is estimated from the row that they reach.
        """
        sql = (
            "SELECT count(*), max(rowid) FROM (SELECT rowid FROM texts WHERE texts MATCH ? LIMIT ?)"
        )
        found = {}
        for word in words:
            count, last = next(self._session.execute(sql, (f'"{word}"', COUNTED_MAX)))
            found[word] = count if count < COUNTED_MAX else max(count, count * nodes // last)
        return found

    def match(self, words: Sequence[str], most: int) -> list[TextHit]:
        return self._ranked(" OR ".join(map(_quoted, words)), most)

    def match_all(self, words: Sequence[str], phrase: bool, most: int) -> list[TextHit]:
        return self._ranked(_quoted(" ".join(words)) if phrase else _all_of(words), most)

    def _ranked(self, expression: str, most: int) -> list[TextHit]:
        sql = "SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
        return list(map(TextHit._make, self._session.execute(sql, (expression, most))))

    def latest(self, words: Sequence[str], most: int) -> list[int]:
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid DESC LIMIT ?"
        return self._session.rows(sql, (_all_of(words), most))

    def named(self, words: str) -> list[int]:
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid"
        return self._session.rows(sql, (f"name : {_quoted(words)}",))

    def average_length(self) -> float:
        body = self._session.execute("SELECT block FROM texts_data WHERE id = 1").get
        nodes, *columns = _varints(body if isinstance(body, bytes) else b"")
        return sum(columns) / nodes if nodes else 0.0

    def insert(self, rows: Iterable[NewText]) -> None:
        """Index new nodes."""
        words = ((row, indexed(name), indexed_content(content)) for row, name, content in rows)
        self._whole.insert("texts", ("rowid", "name", "content"), words)

    def erase(self, rows: Sequence[int]) -> None:
        """Remove the words of nodes."""
        sql = "UPDATE texts SET name = '', content = '' WHERE rowid = ?"
        self._session.executemany(sql, [(row,) for row in rows])


def _quoted(words: str) -> str:
    return f'"{words}"'


def _all_of(words: Iterable[str]) -> str:
    return " AND ".join(map(_quoted, words))


def _varints(body: bytes) -> list[int]:
    """Return the numbers in FTS5's record of totals: nodes, then words per column."""
    numbers, value = [], 0
    for byte in body:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers or [0]


# -- sums ----------------------------------------------------------------------------------------

SUMMED = {
    "lookups_reached": 1,
    "lookups": 2,
    "lookups_worlds": 3,
    "lookups_moved": 4,
    "models": 5,
    "vectors": 6,
    "tokens": 7,
    "pools": 8,
    "recalls": 9,
}
"""The tables with a sum, and the number of its row; never changed, because files contain it."""
_ROW_BYTES = 8  # An integer of SQLite.
FORGET_SUMS = "DELETE FROM lookups_reached WHERE number > 0"
"""A transaction that executes this sums all rows again at its end."""
_READ_SUMS = "SELECT number, node, note FROM lookups_reached WHERE number > 0"
# SQLite has no exclusive or: (a | b) without (a & b).
_ADD_SUMS = (
    "UPDATE lookups_reached SET node = (node | ?2) - (node & ?2), note = note + ?3 "
    "WHERE number = ?1"
)
_WRITE_SUMS = "INSERT OR REPLACE INTO lookups_reached VALUES (?, ?, ?)"

Sum = tuple[int, int]  # the combined hash of the rows, and their number


def _hash(table: str, row: tuple[Any, ...]) -> Sum:
    """Return the contribution of one row to the sum of its table."""
    if table == "lookups_reached" and row[0] != 0:
        return 0, 0
    # The repr of a tuple of numbers, texts and bytes is unambiguous.
    digest = blake3(repr(row).encode("utf-8", "surrogatepass")).digest(_ROW_BYTES)
    return int.from_bytes(digest, "big", signed=True), 1


def sum_of(con: apsw.Connection, table: str) -> Sum:
    """Return the sum over the rows of a table as they are."""
    total = rows = 0
    if con.table_exists("main", table):
        for row in con.execute(f"SELECT * FROM {table}"):
            hashed, count = _hash(table, row)
            total, rows = total ^ hashed, rows + count
    return total, rows


class TableSums:
    """The changes of the present transaction to the sums.

    Vectors, counts and keys have no address to compare them with. So each of our transactions adds
    its changes in a table to the sum of that table: the hashes of its rows, combined by exclusive
    or. If another program edits a row, the sum no longer fits. The sums are stored after row 0 of
    `lookups_reached`, whose page nearly every write changes anyway; a store of an earlier version
    gets them with the first write.

     The sums protect against accidents and foreign SQL, not against a person who computes them
     again.
    """

    def __init__(self) -> None:
        self._changed: dict[str, Sum] = {}
        self._are_there = False

    def follow(self, con: apsw.Connection) -> None:
        """Record every row that a connection changes."""
        con.preupdate_hook(self._note)

    def _note(self, change: apsw.PreUpdate) -> None:
        table = change.table_name
        if table not in SUMMED or change.database_name != "main":
            return
        total, rows = self._changed.get(table, (0, 0))
        if (old := change.old) is not None:
            hashed, count = _hash(table, old)
            total, rows = total ^ hashed, rows - count
        if (new := change.new) is not None:
            hashed, count = _hash(table, new)
            total, rows = total ^ hashed, rows + count
        self._changed[table] = total, rows

    def add(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Record rows that were inserted without a hook."""
        total, count = self._changed.get(table, (0, 0))
        for row in rows:
            hashed, one = _hash(table, row)
            total, count = total ^ hashed, count + one
        self._changed[table] = total, count

    def begin(self) -> None:
        """Forget the changes of a transaction that was rolled back."""
        self._changed.clear()

    def write(self, con: apsw.Connection) -> None:
        """Write the sums that the transaction has changed; all of them if there are none."""
        changed = self._changed
        if not changed:
            return
        con.preupdate_hook(None)
        try:
            if not self._are_there:
                self._are_there = stored_sums(con).keys() == set(SUMMED)
            if self._are_there:
                added = [(SUMMED[table], *found) for table, found in changed.items()]
                before = con.total_changes()
                con.executemany(_ADD_SUMS, added)
                self._are_there = con.total_changes() - before == len(added)
            if not self._are_there:
                every = [(SUMMED[table], *sum_of(con, table)) for table in SUMMED]
                con.executemany(_WRITE_SUMS, every)
        finally:
            self.follow(con)


def stored_sums(con: apsw.Connection) -> dict[str, Sum]:
    """Return the sums in the file, by table; empty in a store that has none yet."""
    tables = {number: table for table, number in SUMMED.items()}
    return {
        tables.get(number, str(number)): (total, rows)
        for number, total, rows in con.execute(_READ_SUMS)
    }

"""Database file: how a store's file is opened, and what SQLite's errors mean here."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    StorageError,
    WorldDBError,
)
from worlddb.store.sqlite.schema import APPLICATION_ID, FORMAT_VERSION, MIGRATIONS, create

MEMORY = ":memory:"
CACHE_KIB = 262_144
"""The page cache of a connection: a store of a million nodes fits; unused pages cost nothing."""
SMALLEST_BYTES = 512
"""The smallest page of SQLite: a shorter file is none of its databases."""
BUSY_PAUSE_S = 0.005
"""Between two attempts to switch the journal's mode: much shorter than anybody notices."""
SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
"""What `durability` means to SQLite."""


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
        for kinds, ours, says in MEANINGS:
            if isinstance(error, kinds):
                raise ours(f"{self._path}: {says.format(error)}") from error


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
        con.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        con.execute("PRAGMA threads = 2")
        con.pragma("user_version")  # The first look at the file: what cannot be read fails here.
    except BaseException:
        con.close()
        raise
    return con


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
        con = connect(file, read_only=False, busy_timeout_s=busy_timeout_s, create=create)
        return con, False
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
    if os.access(path, os.W_OK):
        return (
            "can only be read, for you have no right to write to its folder, where the log has to "
            "be; change that (chmod u+w), or run as its owner"
        )
    return (
        "can only be read, for you have no right to write it; change that (chmod u+w), or run as "
        "its owner"
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


def refuse_old_format(con: apsw.Connection, path: str) -> None:
    """Say what to do with an older file that may not be written.

    Raises:
        FormatError: it must be brought to the present format first.
    """
    version = check_format(con, path)
    if version < FORMAT_VERSION:
        raise FormatError(
            f"{path}: has format {version}; open it once to write, which brings it to format "
            f"{FORMAT_VERSION}, or work on a copy"
        )


def migrate(con: apsw.Connection, path: str, timeout_s: float) -> None:
    """Bring the file to the present format; all or nothing, also when two processes try at once."""
    mode = "memory" if path == MEMORY else "wal"
    if con.pragma("journal_mode") != mode:
        _set_journal_mode(con, path, mode, timeout_s)
    if check_format(con, path) == FORMAT_VERSION:
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
        raise
    con.execute("COMMIT")


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

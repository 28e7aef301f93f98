"""Connections: how a store file is opened, and what SQLite's errors mean here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    StorageError,
    WorldDBError,
)
from worlddb.store.sqlite.schema import APPLICATION_ID, FORMAT_VERSION, MIGRATIONS

MEMORY = ":memory:"
CACHE_KIB = 65_536


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn what SQLite raises into the error tree, naming the file and the way out."""
    try:
        yield
    except WorldDBError:
        raise
    except (apsw.BusyError, apsw.LockedError) as error:
        raise ConflictError(
            f"{path}: another process kept the write lock too long; try again, or open with a "
            "larger busy_timeout_s"
        ) from error
    except apsw.FullError as error:
        raise StorageError(
            f"{path}: the disk is full; free some space, nothing was lost"
        ) from error
    except apsw.ReadOnlyError as error:
        raise StorageError(
            f"{path}: the file or its folder is read-only; change its permissions to write"
        ) from error
    except apsw.CantOpenError as error:
        raise StorageError(
            f"{path}: cannot be opened; check that the folder exists and may be written"
        ) from error
    except apsw.NotADBError as error:
        raise FormatError(f"{path}: is not a WorldDB store; choose another path") from error
    except apsw.CorruptError as error:
        raise CorruptionError(f"{path}: damaged: {error}; restore a backup") from error
    except (apsw.ConstraintError, apsw.MismatchError) as error:
        raise CorruptionError(f"{path}: {error}") from error
    except (apsw.IOError, apsw.PermissionsError) as error:
        raise StorageError(f"{path}: the disk failed: {error}; nothing was acknowledged") from error


def connect(path: str, *, read_only: bool, busy_timeout_s: float, create: bool) -> apsw.Connection:
    """Open one connection with this project's settings; the file's format is not looked at."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if create and not read_only:
        flags |= apsw.SQLITE_OPEN_CREATE
    con = apsw.Connection(path, flags=flags)
    con.set_busy_timeout(int(busy_timeout_s * 1000))
    # Without QPSG SQLite may re-prepare a statement for each bound value: twice as slow here.
    con.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    con.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    con.execute(f"PRAGMA cache_size = -{CACHE_KIB}; PRAGMA temp_store = MEMORY; PRAGMA threads = 2")
    con.execute("PRAGMA trusted_schema = ON")
    return con


def check_format(con: apsw.Connection, path: str) -> int:
    """Return the file's format version; 0 for a new, empty file.

    Raises:
        FormatError: another program's database, or a newer format than this version reads.
    """
    application = con.pragma("application_id")
    version = con.pragma("user_version")
    if application == 0 and version == 0:
        if con.execute("SELECT count(*) FROM sqlite_schema").get:
            raise FormatError(f"{path}: is another program's SQLite database; choose another path")
        return 0
    if application != APPLICATION_ID:
        raise FormatError(f"{path}: is not a WorldDB store; choose another path")
    assert isinstance(version, int)
    if version > FORMAT_VERSION:
        raise FormatError(
            f"{path}: has format {version}, this version reads up to {FORMAT_VERSION}; "
            "install a newer worlddb"
        )
    return version


def migrate(con: apsw.Connection, path: str) -> None:
    """Bring the file to the present format; all or nothing, also when two processes try at once."""
    if check_format(con, path) == FORMAT_VERSION:
        return
    if path != MEMORY and con.pragma("journal_mode") != "wal":
        con.pragma("journal_mode", "wal")
    con.execute("BEGIN IMMEDIATE")
    try:
        for number in range(check_format(con, path), FORMAT_VERSION):
            MIGRATIONS[number](con)
        con.pragma("application_id", APPLICATION_ID)
        con.pragma("user_version", FORMAT_VERSION)
    except BaseException:
        con.execute("ROLLBACK")
        raise
    con.execute("COMMIT")


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

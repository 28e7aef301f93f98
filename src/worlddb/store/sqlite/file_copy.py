"""File copy: a store to a new file, and a copy back into the place of a store.

Both go through SQLite, page by page in one transaction: whoever has a file open keeps a sound one,
logs that a crash left behind are dealt with, and what does not come to its end changes nothing.
"""

from __future__ import annotations

import logging
import os
import tempfile
import uuid
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import apsw

from worlddb.errors import ConflictError, FormatError, StorageError
from worlddb.store.interface import Migration
from worlddb.store.sqlite.branch_file import branches_of
from worlddb.store.sqlite.database_file import (
    MEMORY,
    check_format,
    connect_somehow,
    migrate,
    refuse_bad_path,
    translated,
)
from worlddb.store.sqlite.private_files import PartialFile, make_private
from worlddb.store.sqlite.schema import APPLICATION_ID, FORMAT_VERSION

log = logging.getLogger(__name__)

PAGES_AT_ONCE = 4_096  # 16 MiB: few steps, and an interrupt does not wait long.
BUSY_S = 5.0  # How long to wait for a store that another program is just writing.
MAGIC = b"SQLite format 3\0"
APPLICATION_ID_AT = 68  # Where a SQLite file has its application id.
HEAD_BYTES = 100
"""The header of a SQLite file, and where the number is in it that says whose file it is."""


def copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy a whole database over another; all of it or nothing.

    `source` has to have a snapshot already, or writers would get in between.
    """
    with target.backup("main", source, "main") as copy:
        while not copy.done:
            copy.step(PAGES_AT_ONCE)


def refuse_bad_target(path: str) -> None:
    """Say early what is wrong with the path of a backup."""
    refuse_bad_path(path)
    if path == MEMORY:
        raise StorageError("a backup is a file; give a path")
    if os.path.exists(path):
        raise StorageError(f"{path}: exists already; choose a new path for the backup")


def copy_to_new(source: apsw.Connection, path: str, like: str | None) -> None:
    """Copy a snapshot to a new file, with the rights of the file `like`, or for its owner alone."""
    with (
        closing(PartialFile(f"{path}.{uuid.uuid4().hex}.partial", like)) as partial,
        closing(apsw.Connection(partial.path)) as target,
    ):
        copy_pages(source, target)
        target.close()
        # Under its name only when it is whole: a killed backup is never taken for one.
        _land(partial.path, path)


def _land(partial: str, path: str) -> None:
    """Give a finished copy its name; StorageError if another file has it."""
    try:
        os.link(partial, path)
    except OSError as error:  # A disk without hard links: a small gap between look and move.
        if isinstance(error, FileExistsError) or os.path.exists(path):
            raise StorageError(f"{path}: exists already; choose a new path") from None
        os.rename(partial, path)


@dataclass(frozen=True, slots=True)
class OldStore:
    """The copy of a store of an older format, which is kept when the store is migrated."""

    path: str
    version: int
    copy: str

    @classmethod
    def kept(cls, con: apsw.Connection, path: str, file: str, version: int) -> OldStore:
        """Copy a snapshot to a new file beside the store."""
        name = f"{file}.format-{version}"
        names = chain([name], (f"{name}-{number}" for number in count(2)))
        copy = next(name for name in names if not os.path.exists(name))
        copy_to_new(con, copy, file)
        return cls(path, version, copy)

    def tell(self) -> None:
        """Say that the store was migrated, and where the copy is."""
        log.warning(
            "%s: brought from format %d to format %d; the store as it was is kept in %s",
            *(self.path, self.version, FORMAT_VERSION, self.copy),
        )

    def drop(self) -> None:
        """Remove the copy: somebody else has migrated the store, or nobody."""
        Path(self.copy).unlink(missing_ok=True)


def migrate_store(
    con: apsw.Connection, path: str, file: str, timeout_s: float, migration: Migration
) -> None:
    """Bring a store to the present format as `migration` says, or make a new one.

    Raises:
        FormatError: it has a newer format.
    """

    def keep(snapshot: apsw.Connection, version: int) -> OldStore | None:
        return OldStore.kept(snapshot, path, file, version) if migration == "copy" else None

    migrate(con, path, timeout_s, keep)


class OldStoreView:
    """A copy of a store of an older format, brought to the present one, for who only reads.

    It lies in a folder of its own that only its owner can enter, and goes when it is closed.
    """

    def __init__(self, con: apsw.Connection, path: str, version: int) -> None:
        self.why_read_only = (
            f"has format {version}, and is read from a temporary copy of format {FORMAT_VERSION}; "
            "to write it, run 'worlddb migrate', which keeps a copy of the store as it is"
        )
        # Also swept when the store is dropped or the program ends without closing it.
        self._folder = tempfile.TemporaryDirectory(prefix="worlddb-", ignore_cleanup_errors=True)
        self.file = os.path.join(self._folder.name, "copy.db")
        make_private(self.file)
        try:
            with closing(apsw.Connection(self.file)) as copy:
                with con:
                    check_format(con, path)  # Only the first read takes the snapshot.
                    copy_pages(con, copy)
                migrate(copy, path, BUSY_S, lambda *_: None)
        except BaseException:
            self.close()
            raise
        log.warning("%s: %s", path, self.why_read_only)

    def close(self) -> None:
        """Remove the copy."""
        self._folder.cleanup()


def format_of_file(path: str) -> int:
    """Return the format of a store; 0 for a new, empty file."""
    with translated(path):
        con, _ = connect_somehow(path, os.path.abspath(path), busy_timeout_s=BUSY_S, create=False)
        with closing(con):
            return check_format(con, path)


def copy_out(path: str, target: str) -> None:
    """Copy a store of any format that this version knows to a new file, as it is.

    Raises:
        FormatError: it is no store.
        StorageError, CorruptionError: it cannot be read, or the copy not be written.
    """
    with translated(path):
        con, _ = connect_somehow(path, os.path.abspath(path), busy_timeout_s=BUSY_S, create=False)
        with closing(con):
            if check_format(con, path) == 0:
                raise FormatError(f"{path}: is empty, so there is no store in it")
            con.execute("BEGIN")
            con.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            with closing(apsw.Connection(target)) as copy:
                copy_pages(con, copy)


def copy_into(source: str, path: str) -> None:
    """Put what the store `source` holds in the place of what `path` holds, if anything.

    The file stays the same one, and its logs go. Also a damaged store is overwritten; whatever is
    none, never.

    Raises:
        ConflictError: somebody has the store at `path` open, or it has branches.
        FormatError: the file at `path` is no store.
        StorageError: it cannot be written.
    """
    refuse_bad_path(path)
    if names := ", ".join(row.name for row in branches_of(path)):
        raise ConflictError(f"{path}: has branches ({names}) of what it says now; drop them first")
    is_new = not os.path.exists(path)
    if is_new:
        make_private(path)
    else:
        _refuse_stranger(path)
    try:
        with translated(path), closing(apsw.Connection(path)) as con:
            con.set_busy_timeout(int(BUSY_S * 1000))
            # What the file says about itself is not looked at: it may be why it is replaced.
            con.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
            # Others that have it open remember what is in it, so there must be none.
            con.pragma("locking_mode", "exclusive")
            with closing(apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)) as copy:
                if not is_new and copy.pragma("page_size") != con.pragma("page_size"):
                    # Only without a log can pages get another size.
                    con.pragma("journal_mode", "delete")
                copy_pages(copy, con)
            # Who is alone keeps the index of the log in memory, and leaves an old one behind.
            Path(f"{os.path.realpath(path)}-shm").unlink(missing_ok=True)
    except ConflictError:
        raise ConflictError(
            f"{path}: is open in another program; end it (worlddb serve, worlddb mcp) and try again"
        ) from None
    except BaseException:
        if is_new:
            Path(path).unlink(missing_ok=True)
        raise
    # Of what was there before; it is made again when it is needed.
    Path(f"{path}-vectors").unlink(missing_ok=True)


def _refuse_stranger(path: str) -> None:
    """Raise FormatError if the file to overwrite is no store."""
    # Nobody in this process has it open yet, so closing it gives up no locks.
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    found = head[APPLICATION_ID_AT : APPLICATION_ID_AT + 4]
    if head.startswith(MAGIC) and found == APPLICATION_ID.to_bytes(4, "big"):
        return
    if head and not _is_store_by_its_log(path):
        raise FormatError(
            f"{path}: is no WorldDB store, or not to be recognised as one; move it away first"
        )


def _is_store_by_its_log(path: str) -> bool:
    """Return whether a file is a store by what its log says: of a young one, all is still there."""
    try:
        with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as con:
            return bool(con.pragma("application_id") == APPLICATION_ID)
    except apsw.Error:
        return False

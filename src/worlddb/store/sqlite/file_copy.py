"""File copy: back up, restore, migrate and rekey the file of a store.

A copy goes through SQLite, page by page, in one transaction. So programs that have the file open
keep a consistent one, logs left by a crash are included, and an interrupted copy changes nothing.

To change the key, SQLite writes the store to a new file beside the old one, under the new key from
the first byte. That file is checked, forced to disk and renamed in one step, so a crash leaves the
old or the new file. No other program may have the store open.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from glob import escape
from itertools import chain, count
from pathlib import Path
from typing import Protocol

import apsw

from worlddb.errors import ConflictError, CorruptionError, FormatError, StorageError
from worlddb.store.interface import Migration
from worlddb.store.sqlite.branch_file import branches_of
from worlddb.store.sqlite.database_file import (
    MEMORY,
    PAGE_BYTES,
    check_format,
    connect_somehow,
    teach_writer,
    translated,
)
from worlddb.store.sqlite.file_encryption import (
    MAGIC,
    StoreKey,
    head_of,
    is_encrypted,
    plain_address,
    unlocked,
)
from worlddb.store.sqlite.file_locks import PartialFile, make_private, refuse_bad_path
from worlddb.store.sqlite.schema import APPLICATION_ID, FORMAT_VERSION, MIGRATIONS, create

log = logging.getLogger(__name__)

PAGES_AT_ONCE = 4_096  # 16 MiB: few steps, and short waits for an interrupt
BUSY_S = 5.0  # wait for a store that another program is writing
BUSY_PAUSE_S = 0.005
"""Pause between two attempts to switch the journal mode."""
APPLICATION_ID_AT = 68  # offset of the application id in a SQLite file


def copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy a whole database over another, completely or not at all.

    `source` must have a snapshot already, so that no writer gets in between.
    """
    with target.backup("main", source, "main") as copy:
        while not copy.done:
            copy.step(PAGES_AT_ONCE)


def refuse_bad_target(path: str) -> None:
    """Raise early for an unusable path of a backup."""
    refuse_bad_path(path)
    if path == MEMORY:
        raise StorageError("a backup is a file; give a path")
    if os.path.exists(path):
        raise StorageError(f"{path}: exists already; choose a new path for the backup")


def copy_to_new(source: apsw.Connection, path: str, like: str | None, key: StoreKey | None) -> None:
    """Copy a snapshot to a new file, with the rights of the file `like`, or for its owner alone.

    The key is that of the source, and of the copy.
    """
    with (
        closing(PartialFile(f"{path}.{uuid.uuid4().hex}.partial", like)) as partial,
        closing(_new_target(partial.path, source, key)) as target,
    ):
        copy_pages(source, target)
        target.close()
        # It gets its name only when complete, so a killed backup is never mistaken for one.
        land(partial.path, path)


def _new_target(path: str, source: apsw.Connection, key: StoreKey | None) -> apsw.Connection:
    """Return a connection to an empty file, into which the pages of a source can be copied."""
    target = unlocked(path, key)
    if key is not None:  # Encrypted pages are copied only to pages of their size.
        target.pragma("page_size", int(str(source.pragma("page_size"))))
    return target


def land(partial: str, path: str) -> None:
    """Give a finished copy its name; StorageError if another file has it."""
    try:
        os.link(partial, path)
    except OSError as error:  # Without hard links: a small gap between check and rename.
        if isinstance(error, FileExistsError) or os.path.exists(path):
            raise StorageError(f"{path}: exists already; choose a new path") from None
        os.rename(partial, path)


@dataclass(frozen=True, slots=True)
class OldStore:
    """The copy of a store of an older format that a migration keeps."""

    path: str
    version: int
    copy: str

    @classmethod
    def kept(
        cls, con: apsw.Connection, path: str, file: str, version: int, key: StoreKey | None
    ) -> OldStore:
        """Copy a snapshot to a new file beside the store."""
        copy = free_name(f"{file}.format-{version}")
        copy_to_new(con, copy, file, key)
        return cls(path, version, copy)

    def tell(self) -> None:
        """Log that the store was migrated, and the path of the copy."""
        log.warning(
            "%s: brought from format %d to format %d; the store as it was is kept in %s",
            *(self.path, self.version, FORMAT_VERSION, self.copy),
        )

    def drop(self) -> None:
        """Remove the copy: another process has migrated the store, or the migration failed."""
        Path(self.copy).unlink(missing_ok=True)


def free_name(name: str) -> str:
    """Return a free name for a copy: this one, or with a number."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(name for name in names if not os.path.exists(name))


class KeptCopy(Protocol):
    """The copy of a store that is being migrated."""

    def tell(self) -> None: ...
    def drop(self) -> None: ...


def migrate(
    con: apsw.Connection,
    path: str,
    timeout_s: float,
    keep: Callable[[apsw.Connection, int], KeptCopy | None],
) -> None:
    """Migrate a file to the present format, completely or not at all, safe against two processes.

    `keep` gets a snapshot of the old store and its format number. It makes a copy, or raises if the
    store must not be migrated. Nothing has been changed before.
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
    """Switch the journal mode; SQLite does not wait for other processes here, so this loop does."""
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


def migrate_store(
    con: apsw.Connection,
    path: str,
    file: str,
    key: StoreKey | None,
    timeout_s: float,
    migration: Migration,
) -> None:
    """Migrate a store to the present format as `migration` says, or create a new one.

    Raises:
        FormatError: it has a newer format.
    """

    def keep(snapshot: apsw.Connection, version: int) -> OldStore | None:
        return OldStore.kept(snapshot, path, file, version, key) if migration == "copy" else None

    migrate(con, path, timeout_s, keep)


class OldStoreView:
    """A migrated temporary copy of a store of an older format, for reading only.

    It lies in a private folder and is removed when closed.
    """

    def __init__(self, con: apsw.Connection, path: str, key: StoreKey | None, version: int) -> None:
        self.why_read_only = (
            f"has format {version}, and is read from a temporary copy of format {FORMAT_VERSION}; "
            "to write it, run 'worlddb migrate', which keeps a copy of the store as it is"
        )
        # Also swept when the store is dropped or the program ends without closing it.
        self._folder = tempfile.TemporaryDirectory(prefix="worlddb-", ignore_cleanup_errors=True)
        self.file = os.path.join(self._folder.name, "copy.db")
        make_private(self.file)
        try:
            with closing(_new_target(self.file, con, key)) as copy:
                with con:
                    check_format(con, path)  # The snapshot begins with the first read.
                    copy_pages(con, copy)
                migrate(copy, path, BUSY_S, lambda *_: None)
        except BaseException:
            self.close()
            raise
        log.warning("%s: %s", path, self.why_read_only)

    def close(self) -> None:
        """Remove the copy."""
        self._folder.cleanup()


def format_of_file(path: str, key: StoreKey | None) -> int:
    """Return the format of a store; 0 for a new, empty file."""
    file = os.path.abspath(path)
    with translated(path):
        con, _ = connect_somehow(path, file, key, busy_timeout_s=BUSY_S, create=False)
        with closing(con):
            return check_format(con, path)


def copy_out(path: str, target: str, key: StoreKey | None) -> None:
    """Copy a store of any known format to a new file, unchanged.

    If the store is encrypted, so is the copy.

    Raises:
        FormatError: it is not a store.
        StorageError, CorruptionError: it cannot be read, or the copy not be written.
    """
    file = os.path.abspath(path)
    with translated(path):
        con, _ = connect_somehow(path, file, key, busy_timeout_s=BUSY_S, create=False)
        with closing(con):
            if check_format(con, path) == 0:
                raise FormatError(f"{path}: is empty, so there is no store in it")
            con.execute("BEGIN")
            con.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            with closing(_new_target(target, con, key)) as copy:
                copy_pages(con, copy)


def copy_into(source: str, path: str, key: StoreKey | None) -> None:
    """Replace the content of the store at `path`, if any, by that of `source`.

    The file stays the same one, and its logs are removed. A damaged store is overwritten, too; a
    file that is not a store, never.

    Raises:
        ConflictError: another program has the store at `path` open, or it has branches.
        FormatError: the file at `path` is not a store.
        StorageError: it cannot be written.
        StoreKeyError: it is encrypted and the source is not, or the other way round.
    """
    refuse_bad_path(path)
    refuse_branches(path)
    is_new = not os.path.exists(path)
    if is_new:
        make_private(path)
    else:
        _refuse_stranger(path, key)
    try:
        with translated(path), closing(unlocked(path, key)) as con:
            con.set_busy_timeout(int(BUSY_S * 1000))
            # The content is not checked: damage may be the reason for the replacement.
            if key is None:
                con.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
            # Other processes would have cached its content, so there must be none.
            con.pragma("locking_mode", "exclusive")
            with closing(unlocked(source, key, flags=apsw.SQLITE_OPEN_READONLY)) as copy:
                if is_new and key is not None:
                    con.pragma("page_size", int(str(copy.pragma("page_size"))))
                elif copy.pragma("page_size") != con.pragma("page_size"):
                    # The page size can change only without a log.
                    con.pragma("journal_mode", "delete")
                _overwrite(con, copy, key)
            # An exclusive connection keeps the log's index in memory and leaves an old one behind.
            Path(f"{os.path.realpath(path)}-shm").unlink(missing_ok=True)
    except ConflictError:
        raise ConflictError(
            f"{path}: is open in another program; end it (worlddb serve, worlddb mcp) and try again"
        ) from None
    except BaseException:
        if is_new:
            Path(path).unlink(missing_ok=True)
        raise
    # Derived from the old content; built again when needed.
    Path(f"{path}-vectors").unlink(missing_ok=True)


def refuse_branches(path: str) -> None:
    """Raise ConflictError if a store has branches, which read its file."""
    if names := ", ".join(row.name for row in branches_of(path)):
        raise ConflictError(f"{path}: has branches ({names}) of what it says now; drop them first")


def _overwrite(con: apsw.Connection, copy: apsw.Connection, key: StoreKey | None) -> None:
    try:
        copy_pages(copy, con)
    except apsw.CorruptError:
        if key is None:
            raise
        # A damaged encrypted page cannot be overwritten, so all pages are dropped first.
        con.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
        con.execute("VACUUM")
        con.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
        copy_pages(copy, con)


def _refuse_stranger(path: str, key: StoreKey | None) -> None:
    """Raise FormatError if the file to overwrite is not a store."""
    head = head_of(path)
    if head and (key is not None or is_encrypted(path)):
        with suppress(CorruptionError):
            format_of_file(path, key)
        return
    found = head[APPLICATION_ID_AT : APPLICATION_ID_AT + 4]
    if head.startswith(MAGIC) and found == APPLICATION_ID.to_bytes(4, "big"):
        return
    if head and not _is_store_by_its_log(path):
        raise FormatError(
            f"{path}: is not a WorldDB store, or not to be recognised as one; move it away first"
        )


def _is_store_by_its_log(path: str) -> bool:
    """Return whether a file is a store by its log; the content of a new store is still there."""
    try:
        with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as con:
            return bool(con.pragma("application_id") == APPLICATION_ID)
    except apsw.Error:
        return False


KEPT_END = ".before-rekey"


def rekey_file(
    path: str,
    old: StoreKey | None,
    new: StoreKey | None,
    prepare: Callable[[str], None],
    *,
    keep: bool,
) -> str | None:
    """Give a store another key; return the path of the copy of the old file, if it is kept.

    `prepare` is called with the new file before it replaces the old one.

    Raises:
        ConflictError: another program has the store open, or it has branches.
        FormatError: it is not a store, or has an older format.
        StoreKeyError: the old key does not fit.
        StorageError: it cannot be written.
    """
    if format_of_file(path, old) != FORMAT_VERSION:
        raise FormatError(f"{path}: is not a store of the present format; run 'worlddb migrate'")
    refuse_branches(path)
    file = os.path.realpath(path)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    with (
        translated(path),
        closing(unlocked(file, old, flags=flags)) as con,
        closing(PartialFile(f"{file}.{uuid.uuid4().hex}.partial", file)) as partial,
    ):
        _hold_alone(con, path)
        target = plain_address(partial.path) if new is None else new.address(partial.path)
        con.execute("VACUUM INTO ?", (target,))
        prepare(partial.path)
        copy = free_name(file + KEPT_END) if keep else None
        if copy is not None:
            copy_to_new(con, copy, file, old)
            sync(copy)
        sync(partial.path)
        os.replace(partial.path, file)
        sync(os.path.dirname(file))
    return copy


def _hold_alone(con: apsw.Connection, path: str) -> None:
    """Exclude all other programs from the file until the connection closes."""
    con.set_busy_timeout(int(BUSY_S * 1000))
    teach_writer(con)
    con.pragma("locking_mode", "exclusive")
    try:
        # Without a log the file is the whole store; the next program to open it starts a new log.
        if con.pragma("journal_mode", "delete") == "delete":
            con.execute("BEGIN EXCLUSIVE")
            con.execute("COMMIT")
            return
    except (apsw.BusyError, apsw.LockedError):
        pass
    raise ConflictError(
        f"{path}: is open in another program; end it (worlddb serve, worlddb mcp) and try again"
    )


def sync(path: str) -> None:
    """Wait until a file or a folder that nobody else has open is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some file systems cannot sync a folder.
            os.fsync(handle)
    finally:
        os.close(handle)


def remove_vectors(path: str, end: str) -> None:
    """Remove the saved vector index, also half-written ones; it is built again."""
    folder, name = os.path.split(os.path.abspath(path))
    for found in Path(folder).glob(f"{escape(name + end)}*"):
        found.unlink(missing_ok=True)


def kept_copies(path: str) -> list[str]:
    """Return the copies beside a store that changes of key or format have left."""
    folder, name = os.path.split(os.path.realpath(path))
    ends = (KEPT_END, ".format-")
    found = [one for end in ends for one in Path(folder).glob(f"{escape(name + end)}*")]
    return sorted(str(one) for one in found if one.suffix != ".partial")

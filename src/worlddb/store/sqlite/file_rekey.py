"""File rekey: the file of a store under another key, or under none.

SQLite writes the store anew to a file beside it, under the new key from its first byte. Once that
file was checked and is on the disk, it gets the name of the store in one step: a crash leaves the
old file or the new one. Nobody else has the store open meanwhile.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from glob import escape
from pathlib import Path

import apsw

from worlddb.errors import ConflictError, FormatError
from worlddb.store.sqlite.database_file import teach_writer, translated
from worlddb.store.sqlite.file_copy import (
    BUSY_S,
    copy_to_new,
    format_of_file,
    free_name,
    refuse_branches,
)
from worlddb.store.sqlite.file_encryption import StoreKey, plain_address, unlocked
from worlddb.store.sqlite.private_files import PartialFile
from worlddb.store.sqlite.schema import FORMAT_VERSION

KEPT_END = ".before-rekey"


def rekey_file(
    path: str,
    old: StoreKey | None,
    new: StoreKey | None,
    prepare: Callable[[str], None],
    *,
    keep: bool,
) -> str | None:
    """Put a store under another key; return the path of the copy of the old file, if it is kept.

    `prepare` gets the new file before that takes the name of the old one.

    Raises:
        ConflictError: somebody has the store open, or it has branches.
        FormatError: it is no store, or one of an older format.
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
    """Keep everybody else out of the file until the connection closes."""
    con.set_busy_timeout(int(BUSY_S * 1000))
    teach_writer(con)
    con.pragma("locking_mode", "exclusive")
    try:
        # Without a log: the file alone is the whole store. Whoever opens it next begins another.
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
    """Wait until the disk has a file or a folder that nobody else has open."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some file systems cannot sync a folder.
            os.fsync(handle)
    finally:
        os.close(handle)


def remove_vectors(path: str, end: str) -> None:
    """Remove the saved index of vectors, also half-written ones; it is made again."""
    folder, name = os.path.split(os.path.abspath(path))
    for found in Path(folder).glob(f"{escape(name + end)}*"):
        found.unlink(missing_ok=True)


def kept_copies(path: str) -> list[str]:
    """Return the copies that changes of the key and of the format have left beside a store."""
    folder, name = os.path.split(os.path.realpath(path))
    ends = (KEPT_END, ".format-")
    found = [one for end in ends for one in Path(folder).glob(f"{escape(name + end)}*")]
    return sorted(str(one) for one in found if one.suffix != ".partial")

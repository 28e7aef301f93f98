"""Restoring: what a backup holds, in the place of a store."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import closing, suppress

from worlddb.errors import CorruptionError, StorageError
from worlddb.model.records import Commit
from worlddb.read import history
from worlddb.read.check import check
from worlddb.store.sqlite.connection import MEMORY, refuse_bad_path
from worlddb.store.sqlite.copying import copy_into, copy_out
from worlddb.store.sqlite.store import SqliteStore

BUSY_TIMEOUT_S = 5.0
ENDS = ("", "-wal", "-shm", "-journal")


def restore(
    backup: str | os.PathLike[str], path: str | os.PathLike[str], *, replace: bool = False
) -> Commit:
    """Put what a backup holds in the place of a store; return its last commit.

    Everything in the backup is checked first, on a copy that is brought to the present format; the
    backup stays as it is. Then the store is written over in one transaction.

    Raises:
        StorageError: there is a store at `path` and `replace` is not set, one of them is no file,
            or the disk refused.
        ConflictError: somebody has that store open.
        FormatError: the backup is no store, or what is to be replaced is none.
        CorruptionError: the backup is not sound.
    """
    source, target = os.fspath(backup), os.fspath(path)
    for given in (source, target):
        if given == MEMORY:
            raise StorageError(f"{given}: is no file; give the path of one")
        refuse_bad_path(given)
    if not os.path.exists(source):
        raise StorageError(f"{source}: does not exist; give the path of a backup")
    if os.path.exists(target) and not replace:
        raise StorageError(f"{target}: exists already; say that it is to be replaced")
    folder, name = os.path.split(os.path.realpath(target))
    draft = os.path.join(folder, f".{name}.{os.getpid()}.part")
    is_new = not os.path.exists(target)
    _sweep(folder, name)
    try:
        # Whoever may not read the backup may not read its copy.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        copy_out(source, draft)
        last = _checked(draft, source)
        copy_into(draft, target)
        if is_new:
            shutil.copymode(source, target)
    finally:
        for end in ENDS:
            with suppress(FileNotFoundError):
                os.unlink(draft + end)
    return last


def _sweep(folder: str, name: str) -> None:
    """Remove what a restore that was killed has left: a copy that nobody would ever erase from."""
    draft = re.compile(rf"{re.escape('.' + name)}\.(\d+)\.part({'|'.join(ENDS)})")
    for found in filter(None, map(draft.fullmatch, os.listdir(folder))):
        if not _is_running(int(found[1])):
            with suppress(OSError):
                os.unlink(os.path.join(folder, found[0]))


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True  # Asking would be a signal there.
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # Somebody else's.
    return True


def _checked(draft: str, backup: str) -> Commit:
    """Return the last commit of a copy, once everything in it was found sound.

    Raises:
        CorruptionError: it is not.
    """
    try:
        store = SqliteStore(
            draft,
            clock=lambda: 0,  # Nothing is committed.
            read_only=False,
            create=False,
            durability="full",
            busy_timeout_s=BUSY_TIMEOUT_S,
        )
        with closing(store):
            problems = check(store)
            if not problems:
                with store.read() as reader:
                    return history.log(reader, -1, 1, True)[0]
    except CorruptionError as error:
        raise CorruptionError(str(error).replace(draft, backup)) from error
    first = f"{problems[0].place}: {problems[0].message}"
    raise CorruptionError(f"{backup}: is damaged ({first}); restore another backup")

"""Files: what commands write appears whole under its name, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from worlddb.errors import StorageError

BESIDE = ("", "-wal", "-shm", "-journal", "-vectors")
"""What the names of a store's files end in."""


@contextmanager
def landing(target: str, *, replace: bool) -> Iterator[str]:
    """Yield a temporary name beside `target`; what is written there is renamed to it at the end.

    Whatever goes wrong before that leaves `target` as it was.

    Raises:
        StorageError: `target` exists and `replace` is not set, is no file, or has no folder.
    """
    folder, name = os.path.split(os.path.realpath(target))
    if os.path.isdir(target):
        raise StorageError(f"{target}: is a folder; give the path of a file in it")
    if os.path.exists(target) and not os.path.isfile(target):
        # Renaming would replace the device or pipe itself.
        raise StorageError(f"{target}: is no ordinary file")
    if os.path.lexists(target) and not replace:
        raise StorageError(f"{target}: exists already; choose another path")
    if not os.path.isdir(folder):
        raise StorageError(f"{target}: the folder {folder} does not exist; create it first")
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.part")
    try:
        yield temporary
        _rename(temporary, os.path.join(folder, name), target, replace)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def refuse_store(target: str, store: str) -> None:
    """Refuse to write what a command writes over the store that it reads, or a file of its own.

    Raises:
        StorageError: `target` is one of them, by its name or by a link.
    """
    real = os.path.realpath(store)
    for end in BESIDE:
        # By name, too: what SQLite has not made yet, it would take for its own.
        if os.path.realpath(target) == real + end or _is_same(target, real + end):
            raise StorageError(
                f"{target}: is the store itself or belongs to it; choose another path"
            )


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _rename(temporary: str, path: str, target: str, replace: bool) -> None:
    """Give the finished file its name; only `replace` may take one that somebody else took."""
    if replace:
        os.replace(temporary, path)
    else:
        try:
            # Unlike a rename, a link fails if the name was taken in the meantime.
            os.link(temporary, path)
        except FileExistsError:
            raise StorageError(f"{target}: exists already; choose another path") from None
        except OSError:
            # A file system without links.
            os.rename(temporary, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

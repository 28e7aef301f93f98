"""File watch: whether a store's files are still the ones that were opened, and only ours to read.

A store is a file and the log beside it (`-wal`, with its index `-shm`). SQLite goes on writing to
the files it has opened, whatever their paths lead to by now. Nobody would find what was written
there, so it must not be acknowledged. A second name of the file would have a log of its own: two
logs for one file, and half of what was acknowledged is lost.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from worlddb.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be deleted anyway.
    fcntl = None  # type: ignore[assignment]

LOG_ENDS = ("-wal", "-shm")
PRIVATE = 0o600  # Memories are personal: a new file is for its owner alone.
READ_OR_WRITE = 0o666  # The rights that a data file may have; none is a program.
MOUNTS = "/proc/self/mountinfo"
_PARTIAL = re.compile(r".*\.[0-9a-f]{32}\.partial(-journal)?")
_WHAT_TO_MOUNT = "to use a store in a container, mount the folder of the store, not the single file"

Identity = tuple[int, int]  # Device and number of a file.


class LostLogError(StorageError):
    """The log beside a store was deleted, moved or replaced while the store was open."""


class FileWatch:
    """The paths of a store's files, and the files that they led to when the store was opened."""

    def __init__(self, path: str, file: str | None) -> None:
        self._path = path
        self._file = file
        self._found = None if file is None else _identity(os.stat(file))
        real = "" if file is None else os.path.realpath(file)
        # Of a file that can only be read, there may be no log.
        self._logs = [
            (real + end, _identity(os.stat(real + end)))
            for end in LOG_ENDS
            if file is not None and os.path.exists(real + end)
        ]

    def refuse_lost(self, *, to_read: bool = False) -> None:
        """Raise StorageError if a path leads to another file by now, or to none, or got a twin.

        A twin does not matter to who only reads.

        Raises:
            LostLogError: it is the log. What the log held can still be moved into the file.
        """
        if self._file is None or self._found is None:
            return
        about = _look(self._file, self._found)
        if about is None:
            raise StorageError(
                f"{self._path}: was deleted, moved or replaced while it was open here, so nothing "
                "is written any more; put the right file in its place (a backup, by 'worlddb "
                "restore') and start this program again"
            )
        if about.st_nlink > 1 and not to_read:
            raise StorageError(f"{self._path}: {_second_name(self._path)}")
        for log, found in self._logs:
            if found is not None and _look(log, found) is None:
                raise LostLogError(
                    f"{self._path}: its log {os.path.basename(log)} was deleted, moved or replaced "
                    "while the store was open, so nothing is written any more; end this program "
                    "(closing the store moves what the log held into the file) and start it again"
                )


def _look(path: str, found: Identity) -> os.stat_result | None:
    """Return what a path leads to; None if that is not the file that was found there."""
    try:
        about = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # A folder that we may not look into any more says nothing about the file.
        return os.stat_result((0, found[1], found[0], 1, 0, 0, 0, 0, 0, 0))
    return about if _identity(about) == found else None


def _identity(about: os.stat_result) -> Identity | None:
    """Return what tells a file from others; None on a file system that numbers none."""
    return (about.st_dev, about.st_ino) if about.st_ino else None


def _second_name(path: str) -> str:
    return (
        "has a second name (a hard link), and each name would get a log of its own, so it is not "
        f"opened or written; remove the other name (find FOLDER -samefile {path}), or copy the "
        "store by 'worlddb backup' instead of linking it"
    )


def refuse_second_name(path: str, file: str) -> None:
    """Refuse to open a file that has two names, or that is mounted by itself.

    Raises:
        StorageError: so it is; the message says what to do.
    """
    real = os.path.realpath(file)
    try:
        about = os.stat(real)
    except OSError:
        return  # Opening it says why.
    if about.st_nlink > 1 and stat.S_ISREG(about.st_mode):
        _remove_own_twin(real)
        if os.stat(real).st_nlink > 1:
            raise StorageError(f"{path}: {_second_name(path)}")
    if _is_mounted(real):
        raise StorageError(
            f"{path}: is mounted as a single file, so its log would lie elsewhere than the log of "
            f"others who use the same file; {_WHAT_TO_MOUNT}"
        )


def two_logs(path: str) -> StorageError:
    """Return the error for a file that another program has open with another log."""
    return StorageError(
        f"{path}: another program has this file open with another log beside it, so it is not "
        "opened here: the file has a second name or is mounted by itself, or its log was deleted "
        f"while it was open; end that program first, then open the store again; {_WHAT_TO_MOUNT}"
    )


def _remove_own_twin(real: str) -> None:
    """Remove the first name of a backup that was killed just after it got its second."""
    for twin in Path(real).parent.glob("*.partial"):
        with suppress(OSError):
            if _PARTIAL.fullmatch(twin.name) and os.path.samefile(twin, real):
                twin.unlink()


def _is_mounted(real: str) -> bool:
    """Return whether a path is a place where something is mounted, by the kernel's list."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            places = {line.split(" ", 5)[4] for line in file}
    except (OSError, IndexError):
        return False
    escaped = "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in real)
    return escaped in places


# -- the rights of files ---------------------------------------------------------------------------


def make_private(path: str, like: str | None = None) -> None:
    """Make an empty file for its owner alone, or with the rights of `like`, never wider.

    SQLite gives the log the rights of the file. Nothing is done if there is a file already.
    """
    mode = PRIVATE if like is None else stat.S_IMODE(os.stat(like).st_mode) & READ_OR_WRITE
    with suppress(FileExistsError):
        try:
            # Without opening it: closing it would give up locks that this process has on the file.
            os.mknod(path, mode | stat.S_IFREG)
        except (AttributeError, PermissionError, NotImplementedError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


class PartialFile:
    """A file that is being written and gets its real name at the end; nobody sweeps it meanwhile.

    What a killed program left in the same folder is swept first.
    """

    def __init__(self, path: str, like: str | None) -> None:
        sweep_partials(os.path.dirname(path) or ".")
        self.path = path
        held = None
        while held is None:
            make_private(path, like)
            held = _held_open(path)
        self._held = held

    def close(self) -> None:
        """Remove the name that the file had while it was written."""
        try:
            for end in ("", "-journal"):
                Path(self.path + end).unlink(missing_ok=True)
        finally:
            os.close(self._held)


def _held_open(path: str) -> int | None:
    """Return a descriptor that keeps sweepers away, or None if one came in between."""
    try:
        held = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    if fcntl is not None:
        with suppress(OSError):  # A disk without such locks.
            fcntl.flock(held, fcntl.LOCK_EX)  # A sweeper has it for an instant only.
    if os.fstat(held).st_nlink:
        return held
    os.close(held)
    return None


def sweep_partials(folder: str) -> None:
    """Remove what killed backups left in a folder; those that are being written are locked."""
    for name in os.listdir(folder) if fcntl is not None else ():
        if not _PARTIAL.fullmatch(name):
            continue
        with suppress(OSError):
            held = os.open(os.path.join(folder, name.removesuffix("-journal")), os.O_RDONLY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(os.path.join(folder, name))
            finally:
                os.close(held)

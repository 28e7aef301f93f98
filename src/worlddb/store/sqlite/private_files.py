"""Private files: the names, the rights and the unfinished copies of a store's files.

A second name of a file would have a log of its own: two logs for one file, and half of what was
acknowledged is lost. So such a file is refused.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from worlddb.errors import StorageError
from worlddb.store.sqlite.gate import second_name

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be deleted anyway.
    fcntl = None  # type: ignore[assignment]

PRIVATE = 0o600  # Memories are personal: a new file is for its owner alone.
READ_OR_WRITE = 0o666  # The rights that a data file may have; none is a program.
MOUNTS = "/proc/self/mountinfo"
_PARTIAL = re.compile(r".*\.[0-9a-f]{32}\.partial(-journal)?")
_WHAT_TO_MOUNT = "to use a store in a container, mount the folder of the store, not the single file"


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
            raise StorageError(f"{path}: {second_name(path)}")
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

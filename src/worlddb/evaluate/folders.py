"""Folders: one run at a time in each. The lock is the system's, so a crash leaves none behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from worlddb.errors import ConflictError

try:
    import fcntl
except ImportError:  # pragma: no cover
    # Windows has none; there two runs in one folder are up to whoever starts them.
    fcntl = None  # type: ignore[assignment]

LOCK = "run.lock"


@contextmanager
def held(folder: str | None) -> Iterator[None]:
    """Keep a folder to oneself while the block runs; what it leaves empty is removed again.

    Raises:
        ConflictError: another run is at work in it.
        OSError: it cannot be made or written.
    """
    if folder is None:
        yield
        return
    path = Path(folder)
    made = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        file = _locked(path / LOCK)
        try:
            yield
        finally:
            # Removed while it is held: nobody can have locked this very file since.
            (path / LOCK).unlink(missing_ok=True)
            file.close()
    finally:
        with suppress(OSError):
            for one in made:
                one.rmdir()


def _locked(path: Path) -> IO[bytes]:
    while True:
        file = path.open("ab")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(file, path):
                return file
        except BlockingIOError:
            file.close()
            raise ConflictError(
                f"{path.parent}: another run is at work in this folder; wait for it, or choose "
                "another --out"
            ) from None
        except BaseException:
            file.close()
            raise
        # Whoever held it has removed it in the meantime: what we locked is no file any more.
        file.close()


def _is_there(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False

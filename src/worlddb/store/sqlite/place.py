"""Place: notices that the file under an open store was deleted, moved or replaced.

SQLite goes on writing to the file it has opened, whatever its path leads to by now. Nobody would
find what was written there, so it must not be acknowledged.
"""

from __future__ import annotations

import os

from worlddb.errors import StorageError


class Place:
    """A path, and the file that it led to when the store was opened."""

    def __init__(self, path: str, file: str | None) -> None:
        self._path = path
        self._file = file
        self._found = None if file is None else _identity(file)

    def refuse_lost(self) -> None:
        """Refuse to go on if the path leads to another file by now, or to none.

        Raises:
            StorageError: it does.
        """
        if self._file is None or self._found is None:
            return
        try:
            if _identity(self._file) == self._found:
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return  # A folder that we may not look into any more says nothing about the file.
        raise StorageError(
            f"{self._path}: was deleted, moved or replaced while it was open here, so nothing is "
            "written any more; put the right file in its place (a backup, by 'worlddb restore') "
            "and start this program again"
        )


def _identity(file: str) -> tuple[int, int] | None:
    """Return what tells a file from others; None on a file system that numbers none."""
    about = os.stat(file)
    return (about.st_dev, about.st_ino) if about.st_ino else None

"""Stores: which file a command works on, and how it is opened."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    from worlddb.db import WorldDB
    from worlddb.embed.protocol import Embedder

PATH_VARIABLE = "WORLDDB_PATH"
IN_MEMORY = ":memory:"


def data_directory() -> str:
    """Return the folder of this user's own store, whether it exists or not."""
    if sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Application Support")
    else:
        home = os.environ.get("XDG_DATA_HOME", "")
        # The XDG specification: a relative path is to be ignored.
        if not os.path.isabs(home):
            home = os.path.expanduser("~/.local/share")
    return os.path.join(home, "worlddb")


def store_path(args: argparse.Namespace) -> str:
    """Return the store's path: `--db`, else the environment, else the user's own.

    Raises:
        InvalidInputError: `--db` is empty or no text.
    """
    given: str | None = getattr(args, "db", None)
    if given == "":
        # An unset variable in a script; the user's own store is not what it meant.
        raise InvalidInputError("--db: the path is empty")
    given = given or os.environ.get(PATH_VARIABLE)
    # No shell has expanded what comes from a settings file.
    path = os.path.expanduser(given) if given else os.path.join(data_directory(), "memory.db")
    return checked_path(path)


def checked_path(path: str) -> str:
    """Return a path that SQLite can open.

    Raises:
        InvalidInputError: its bytes are no UTF-8.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{path!r}: a store's path has to be UTF-8 text") from None
    return path


def open_to_read(args: argparse.Namespace, *, embedder: Embedder | str | None = None) -> WorldDB:
    """Open an existing store; a typo in its path makes no file.

    Not read-only in SQLite's sense: such a connection leaves its `-wal` and `-shm` files behind.

    Raises:
        StorageError, FormatError: there is none, or it cannot be read.
    """
    from worlddb.db import open as open_store

    path = store_path(args)
    if path != IN_MEMORY:
        if not os.path.exists(path):
            raise StorageError(
                f"{path}: there is no store here; give --db PATH or set {PATH_VARIABLE}"
            )
        if os.path.isfile(path) and os.path.getsize(path) == 0:
            raise StorageError(f"{path}: is an empty file, not a store")
    return open_store(path, create=False, embedder=embedder, models_dir=models_directory())


def open_to_write(args: argparse.Namespace) -> WorldDB:
    """Open a store, making it if it is new, and the user's data directory with it.

    Raises:
        StorageError, FormatError: it cannot be opened or made.
    """
    from worlddb.db import open as open_store

    path = store_path(args)
    if os.path.dirname(path) == data_directory():
        os.makedirs(data_directory(), mode=0o700, exist_ok=True)
    return open_store(path)


def models_directory() -> str | None:
    """Return where installed models lie, if that was said; None for the usual place."""
    given = os.environ.get("WORLDDB_MODELS")
    # No shell has expanded what comes from a settings file.
    return os.path.abspath(os.path.expanduser(given)) if given else None


def chosen_embedder(args: argparse.Namespace) -> Embedder | str | None:
    """Return the embedder of `--embedder` or $WORLDDB_EMBEDDER; None if neither says one.

    An endpoint is asked with $WORLDDB_EMBEDDER_KEY.

    Raises:
        InvalidInputError: there is no such embedder.
    """
    name: str | None = args.embedder or os.environ.get("WORLDDB_EMBEDDER")
    if not name or name == "none":
        return name or None
    from worlddb.embed.names import embedder_named

    key = os.environ.get("WORLDDB_EMBEDDER_KEY")
    return embedder_named(name, models_dir=models_directory(), api_key=key)

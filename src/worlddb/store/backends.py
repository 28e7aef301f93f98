"""Backends: selects the database for an address; opens, copies and replaces it.

Only this module knows the databases; each has a folder of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError, NotFoundError, StorageError, StoreKeyError
from worlddb.model.inputs import Limits
from worlddb.model.records import Branch
from worlddb.store.interface import Store, StoreOptions

if TYPE_CHECKING:
    from worlddb.store.sqlite.file_encryption import Given, StoreKey

DURABILITIES = ("full", "normal")
"""Wait for the disk at each commit, or accept the loss of the last commits in a power cut."""
PATIENCE_S_MAX = 1_000_000
"""Seconds; eleven days. More is a mistake of units, and would overflow SQLite's milliseconds."""
IN_MEMORY = ":memory:"  # address of a store that is gone when closed
SERVER_STARTS = ("postgresql://", "postgres://")  # addresses of databases on a server
FILE_ENDS = ("", "-wal", "-shm", "-journal")
"""Suffixes of the files that may belong to a store."""


def check_options(
    path: object,
    durability: object,
    patience: object,
    limits: object,
    handlers: object,
    clock: object,
    random_bytes: object,
) -> None:
    """Refuse options of the wrong kind."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"path: give text or a Path, not {path!r}")
    if not isinstance(durability, str) or durability not in DURABILITIES:
        raise InvalidInputError(f"durability {durability!r}: use 'full' or 'normal'")
    if isinstance(patience, bool) or not isinstance(patience, int | float):
        raise InvalidInputError(f"busy_timeout_s: give seconds, not {patience!r}")
    if not 0 <= patience <= PATIENCE_S_MAX:
        raise InvalidInputError(
            f"busy_timeout_s: give 0 to {PATIENCE_S_MAX} seconds, not {patience!r}"
        )
    if limits is not None and not isinstance(limits, Limits):
        raise InvalidInputError(f"limits: give worlddb.Limits(…), not {limits!r}")
    if not isinstance(handlers, Iterable):
        raise InvalidInputError(f"handlers: give a list of edge handlers, not {handlers!r}")
    if not callable(clock):
        raise InvalidInputError(f"clock: give a function of microseconds, not {clock!r}")
    if not callable(random_bytes):
        raise InvalidInputError(
            f"random_bytes: give a function as os.urandom, not {random_bytes!r}"
        )


def is_server(address: object) -> bool:
    """Return whether an address is that of a server."""
    return isinstance(address, str) and address.startswith(SERVER_STARTS)


def key_of(path: str, given: Given | None) -> StoreKey | None:
    """Return the key of a store's file; None if none is given.

    Raises:
        InvalidInputError, StoreKeyError: it is not a key, or encryption is not available.
    """
    if given is None:
        return None
    if is_server(path):
        raise StoreKeyError(
            "a key is for a store in a file; a server encrypts its own disks, so leave the key out"
        )
    from worlddb.store.sqlite.file_encryption import StoreKey

    return StoreKey(given)


def format_of(path: str, key: StoreKey | None = None) -> tuple[int, int]:
    """Return the format of a store's file, and the present one; the file is not changed.

    Raises:
        StorageError, FormatError: it cannot be read, is not a store, or has a newer format.
    """
    if is_server(path):
        found: tuple[int, int] = _postgres().server_format(path)
        return found
    from worlddb.store.sqlite.file_copy import format_of_file
    from worlddb.store.sqlite.schema import FORMAT_VERSION

    return format_of_file(path, key), FORMAT_VERSION


def find_branch(address: str, name: str) -> Branch:
    """Return a branch of the store at an address, which need not be open.

    Raises:
        InvalidInputError: not a valid name.
        NotFoundError: there is no such branch.
    """
    from worlddb.store.sqlite.branch_file import branches_of, check_name

    check_name(name)
    for found in () if is_server(address) or address == IN_MEMORY else branches_of(address):
        if found.name == name:
            return found
    raise NotFoundError(f"{address}: there is no branch {name!r}; make it, or list the branches")


def open_store(address: str, **given: Any) -> Store:
    """Open the store at an address: a file's path, ":memory:", or "postgresql://host/database".

    `given` are the fields of `StoreOptions`.

    Raises:
        StoreKeyError: the key is missing or wrong.
        StorageError: it cannot be opened.
        FormatError: it is not a store, or one of a newer format.
        CorruptionError: it is damaged.
    """
    options = StoreOptions(**given)
    if is_server(address):
        store: Store = _postgres().PostgresStore(address, options)
        return store
    from worlddb.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(address, options)


def _postgres() -> ModuleType:
    """Return the module for PostgreSQL, whose driver is an extra."""
    try:
        from worlddb.store.postgres import postgres_store
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise
        raise StorageError(
            "a store in PostgreSQL needs the driver psycopg; run: pip install 'worlddb[postgres]'"
        ) from None
    return postgres_store

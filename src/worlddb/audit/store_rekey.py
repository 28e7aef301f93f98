"""Store rekey: encrypt a store, change its key, or decrypt it; with the files beside it."""

from __future__ import annotations

import os

from worlddb.audit.backup_restore import last_commit_if_sound
from worlddb.audit.read_audit import finish_reseal, reseal_reads
from worlddb.errors import InvalidInputError, StorageError
from worlddb.model.records import Commit
from worlddb.store.backends import IN_MEMORY, is_server, key_of
from worlddb.store.sqlite.file_encryption import (
    Given,
    destroy_key_file,
    encrypting_build,
    is_encrypted,
    make_key_file,
)
from worlddb.store.sqlite.file_rekey import kept_copies, rekey_file, remove_vectors

__all__ = [
    "destroy_key_file",
    "encrypting_build",
    "is_encrypted",
    "kept_copies",
    "make_key_file",
    "rekey",
]

VECTORS_END = "-vectors"


def rekey(
    path: str | os.PathLike[str],
    *,
    key: Given | None,
    new_key: Given | None,
    keep: bool = True,
) -> tuple[Commit, str | None]:
    """Put a store under a new key; return its last commit, and the path of the copy that is kept.

    Without a `key` the store is not encrypted yet; without a `new_key` it is decrypted. The new
    file is checked completely before it takes the place of the old one. With `keep`, a copy of the
    store as it was, under its old key, is kept beside it.

    Raises:
        InvalidInputError: there is neither a key nor a new one.
        StoreKeyError: the key does not fit, or nothing here can be encrypted.
        ConflictError: another program has the store open, or it has branches.
        FormatError, CorruptionError: it is no store of the present format, or damaged.
        StorageError: it cannot be read or written.
    """
    store = os.fspath(path)
    if store == IN_MEMORY or is_server(store):
        raise StorageError(f"{store}: only a store in a file has a key; give the path of a file")
    if key is None and new_key is None:
        raise InvalidInputError("the store has no key, and no new key is given; give a new key")
    old, new = key_of(store, key), key_of(store, new_key)
    commits: list[Commit] = []

    def prepare(made: str) -> None:
        commits.append(last_commit_if_sound(made, store, new))
        new_seal = None if new is None else new.seal(made)
        reseal_reads(store, None if old is None else old.seal(store), new_seal)
        remove_vectors(store, VECTORS_END)

    kept = rekey_file(store, old, new, prepare, keep=keep)
    finish_reseal(store)
    return commits[0], kept

"""Store files: restore a backup, migrate a store, and encrypt it, change its key or decrypt it."""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import closing, suppress
from functools import partial

from worlddb.audit.backup_keys import (
    Wrap,
    adopt_keys,
    keys_beside,
    no_wrap,
    rewrap_keys,
)
from worlddb.audit.history import log
from worlddb.audit.journal_export import RESTORE_ACTOR, replay_records
from worlddb.audit.read_audit import finish_reseal, reseal_reads
from worlddb.audit.sealed_backup import is_sealed, sealed_records
from worlddb.audit.store_check import check
from worlddb.errors import CorruptionError, InvalidInputError, StorageError
from worlddb.model.records import Commit
from worlddb.store.backends import FILE_ENDS, IN_MEMORY, format_of, is_server, key_of, open_store
from worlddb.store.sqlite.database_file import MEMORY
from worlddb.store.sqlite.file_copy import (
    copy_into,
    copy_out,
    kept_copies,
    rekey_file,
    remove_vectors,
)
from worlddb.store.sqlite.file_encryption import (
    Given,
    StoreKey,
    destroy_key_file,
    encrypting_build,
    is_encrypted,
    make_key_file,
)
from worlddb.store.sqlite.file_locks import refuse_bad_path

BUSY_TIMEOUT_S = 5.0
"""Seconds; no other process opens the working copy, so a longer wait would not help."""


def restore(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    replace: bool = False,
    key: Given | None = None,
    keys: str | os.PathLike[str] | None = None,
) -> Commit:
    """Replace a store by the contents of a backup; return the last commit of the store.

    The backup is copied, brought to the current format and checked completely. Only then is the
    store overwritten, in one transaction. The backup itself is not changed. `key` is that of the
    backup and of the store.

    A sealed backup needs the file of its `keys`; by default the one beside the store. Nodes that
    were erased since the backup are erased in the restored store, by one more commit
    (`repeated_erasures`).

    Raises:
        StoreKeyError: the key is missing, or does not fit the backup or the store.
        StorageError: there is a store at `path` and `replace` is not set, a path is not a file, or
            the disk refused.
        ConflictError: another program has the store at `path` open.
        FormatError: the backup, or the file to be replaced, is not a store.
        CorruptionError: the backup is damaged.
    """
    source, target = os.fspath(backup), os.fspath(path)
    for given in (source, target):
        if given == MEMORY:
            raise StorageError(f"{given}: is not a file; give the path of a file")
        refuse_bad_path(given)
    if not os.path.exists(source):
        raise StorageError(f"{source}: does not exist; give the path of a backup")
    is_new = not os.path.exists(target)
    if not is_new and not replace:
        raise StorageError(f"{target}: exists already; set `replace` to overwrite it")
    unlocking = key_of(target, key)
    folder, name = os.path.split(os.path.realpath(target))
    copy = os.path.join(folder, f".{name}.{os.getpid()}.part")
    remove_abandoned_copies(folder, name)
    try:
        # Only the owner may read the copy, because the backup may be private.
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if is_sealed(source):
            _unseal(source, copy, target, unlocking, keys)
        else:
            copy_out(source, copy, unlocking)
        last = last_commit_if_sound(copy, source, unlocking)
        copy_into(copy, target, unlocking)
        if is_new and not is_sealed(source):
            shutil.copymode(source, target)
    finally:
        for suffix in FILE_ENDS:
            with suppress(FileNotFoundError):
                os.unlink(copy + suffix)
    return last


def repeated_erasures(last: Commit) -> int:
    """Return how many nodes a restore from a sealed backup has erased again, by its commit."""
    if last.actor != RESTORE_ACTOR:
        return 0
    return sum(change.kind == "erase" for change in last.changes)


def _unseal(
    source: str,
    copy: str,
    target: str,
    key: StoreKey | None,
    keys: str | os.PathLike[str] | None,
) -> None:
    """Write the content of a sealed backup into a new store."""
    given = None if keys is None else os.path.realpath(keys)
    found = adopt_keys(keys_beside(target), _wrap(target, key), given)
    os.unlink(copy)  # The store is created anew, readable by its owner alone.
    now = time.time_ns() // 1_000
    with closing(open_store(copy, clock=lambda: now, create=True, key=key)) as store:
        replay_records(store, sealed_records(source, found), lambda _: None, confirms=True)


def _wrap(path: str, key: StoreKey | None) -> Wrap:
    """Return the function that seals the keys of backups beside a store."""
    return no_wrap if key is None else partial(key.seal, path)


def migrate(path: str | os.PathLike[str], *, key: Given | None = None) -> tuple[int, int]:
    """Bring a store to the present format; return the format it had, and the present one.

    A copy of the old store is kept beside it; a warning in the log names the copy.

    Raises:
        StorageError, ConflictError: the store cannot be read or written now.
        FormatError: the file is not a store, or has a newer format.
    """
    unlocking = key_of(os.fspath(path), key)
    before, present = format_of(os.fspath(path), unlocking)
    if before < present:
        # Nothing is committed, so no time is needed.
        open_store(os.fspath(path), clock=lambda: 0, create=False, key=unlocking).close()
    return before, present


def remove_abandoned_copies(folder: str, name: str) -> None:
    """Remove unfinished files of killed programs, because no erasure would reach them."""
    pattern = re.compile(rf"{re.escape('.' + name)}\.(\d+)\.part({'|'.join(FILE_ENDS)})")
    for found in filter(None, map(pattern.fullmatch, os.listdir(folder))):
        if not _is_running(int(found[1])):
            with suppress(OSError):
                os.unlink(os.path.join(folder, found[0]))


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True  # os.kill would end the process there.
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # It belongs to another user.
    return True


def last_commit_if_sound(copy: str, backup: str, key: StoreKey | None) -> Commit:
    """Return the last commit of the copy of a backup, after checking everything in it."""
    try:
        # Nothing is committed, so no time is needed.
        store = open_store(
            copy,
            clock=lambda: 0,
            create=False,
            busy_timeout_s=BUSY_TIMEOUT_S,
            migration="plain",
            key=key,
        )
        with closing(store):
            problems = check(store)
            if not problems:
                with store.read() as reader:
                    return log(reader, -1, 1, True)[0]
    except CorruptionError as error:
        raise CorruptionError(str(error).replace(copy, backup)) from error
    first = f"{problems[0].place}: {problems[0].message}"
    raise CorruptionError(f"{backup}: is damaged ({first}); restore another backup")


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
    """Give a store a new key; return its last commit, and the path of the copy that is kept.

    Without `key` the store is not encrypted yet; without `new_key` it is decrypted. The new file is
    checked completely before it replaces the old one. With `keep`, a copy of the old store, under
    its old key, is kept beside it.

    Raises:
        InvalidInputError: neither a key nor a new key was given.
        StoreKeyError: the key does not fit, or encryption is not available.
        ConflictError: another program has the store open, or it has branches.
        FormatError, CorruptionError: not a store of the present format, or damaged.
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
        # Sealed by both keys until the store has the new one, because the change may be killed.
        rewrap_keys(store, (_wrap(store, old), _wrap(made, new)))
        commits.append(last_commit_if_sound(made, store, new))
        new_seal = None if new is None else new.seal(made)
        reseal_reads(store, None if old is None else old.seal(store), new_seal)
        remove_vectors(store, VECTORS_END)

    kept = rekey_file(store, old, new, prepare, keep=keep)
    finish_reseal(store)
    rewrap_keys(store, (_wrap(store, new),))
    return commits[0], kept

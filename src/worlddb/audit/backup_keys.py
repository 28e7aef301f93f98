"""Backup keys: a random secret for each node, kept beside the store and never in a backup.

A sealed backup (`audit/sealed_backup.py`) has every text encrypted by the secrets of the nodes that
the text is about. Erasing a node destroys its secret, so no sealed backup can show its texts. The
id stays, with a secret of zeros, which distinguishes an erased text from one whose key is missing.

    file    = magic ‖ number of slots as 1 byte ‖ slots, or payload ‖ blake3(payload) if there are none
    slot    = 16 bytes of salt ‖ length as 8 bytes big-endian ‖ payload sealed by the store's key
    payload = id of the file, 16 bytes ‖ secret of the file, 32 bytes ‖ (node id ‖ secret, 16 bytes) …

Beside an encrypted store the payload is sealed by the store's key. There are two slots while that
key is changed, and none while a store is encrypted or decrypted, so after a kill the old or the new
key opens the file. Each change writes a new file, renames it over the old one, and overwrites the
bytes of the old one.
"""  # noqa: E501

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from blake3 import blake3

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    StorageError,
    StoreKeyError,
)
from worlddb.model.address import ID_BYTES
from worlddb.store.interface import BACKUP_KEYS_END, Seal, Store
from worlddb.store.sqlite.file_copy import sync
from worlddb.store.sqlite.file_locks import locked_file, private_opener

KEYS_END = BACKUP_KEYS_END
"""Suffix of the file's name after that of the store; the file may be a symbolic link."""
MAGIC = b"worlddb backup keys 1\n"
SALT_BYTES = 16  # random, so no two files are sealed by one key and salt
FILE_ID_BYTES = 16  # random, so no two files have one id
FILE_SECRET_BYTES = 32  # the key length of AES-256
SECRET_BYTES = 16  # 128 random bits cannot be guessed; one per node
DESTROYED = bytes(SECRET_BYTES)
_HEAD = FILE_ID_BYTES + FILE_SECRET_BYTES
_ENTRY = ID_BYTES + SECRET_BYTES
_DIGEST_BYTES = 32  # of blake3
_LENGTH_BYTES = 8  # as the format says

Wrap = Callable[[bytes], Seal | None]
"""Returns the seal of the file for a salt; None if the store is not encrypted."""


def no_wrap(salt: bytes) -> Seal | None:
    """Return None: the store is not encrypted."""


class BackupKeys:
    """The secrets of one file: `id` names it, `secret` is for whole backups, the rest for nodes."""

    def __init__(self, payload: bytes = b"") -> None:
        payload = payload or os.urandom(_HEAD)
        self.id = payload[:FILE_ID_BYTES]
        self.secret = payload[FILE_ID_BYTES:_HEAD]
        self._secrets = {
            payload[at : at + ID_BYTES]: payload[at + ID_BYTES : at + _ENTRY]
            for at in range(_HEAD, len(payload), _ENTRY)
        }

    @property
    def payload(self) -> bytes:
        """The bytes to keep in the file."""
        entries = (ident + secret for ident, secret in self._secrets.items())
        return self.id + self.secret + b"".join(entries)

    def secret_of(self, ident: bytes) -> bytes | None:
        """Return the secret of a node; `DESTROYED` if the node was erased, None if it has none."""
        return self._secrets.get(ident)

    def add(self, idents: Iterable[bytes]) -> bool:
        """Create a secret for each node without one; return whether there was such a node."""
        new = [ident for ident in idents if ident not in self._secrets]
        drawn = os.urandom(SECRET_BYTES * len(new))
        for place, ident in enumerate(new):
            self._secrets[ident] = drawn[place * SECRET_BYTES : (place + 1) * SECRET_BYTES]
        return bool(new)

    def merge(self, other: BackupKeys) -> None:
        """Merge another copy of these keys; a secret destroyed in either copy is destroyed."""
        gone = {
            ident
            for secrets in (self._secrets, other._secrets)
            for ident, secret in secrets.items()
            if secret == DESTROYED
        }
        self._secrets |= other._secrets | dict.fromkeys(gone, DESTROYED)

    def destroy(self, idents: Iterable[bytes]) -> bool:
        """Replace the secrets of nodes by zeros, for good; return whether any was replaced."""
        found = [one for one in idents if self._secrets.get(one, DESTROYED) != DESTROYED]
        self._secrets.update(dict.fromkeys(found, DESTROYED))
        return bool(found)


def keys_beside(path: str) -> str:
    """Return the path of the keys of the store at `path`, with links resolved."""
    return os.path.realpath(os.path.realpath(path) + KEYS_END)


def keys_of(store: Store) -> str | None:
    """Return the path of the keys of a store; None if it has no place for them."""
    beside = store.side_file(KEYS_END)
    return None if beside is None else os.path.realpath(beside)


def read_keys(path: str, wrap: Wrap = no_wrap) -> BackupKeys:
    """Return the keys in a file.

    Raises:
        StorageError: there is no such file, or it cannot be read.
        StoreKeyError: it is sealed by another key than the store's.
        FormatError, CorruptionError: it is not a file of keys, or damaged.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise StorageError(
            f"{path}: the keys of sealed backups cannot be read: {error.strerror}"
        ) from error
    return BackupKeys(_payload(path, data, wrap))


def _payload(path: str, data: bytes, wrap: Wrap) -> bytes:
    if not data.startswith(MAGIC) or len(data) == len(MAGIC):
        raise FormatError(f"{path}: is not a file of backup keys")
    slots, rest = data[len(MAGIC)], data[len(MAGIC) + 1 :]
    payload = _opened(path, slots, rest, wrap) if slots else rest[:-_DIGEST_BYTES]
    if not slots and blake3(payload).digest() != rest[-_DIGEST_BYTES:]:
        raise CorruptionError(f"{path}: the keys of sealed backups are damaged")
    if len(payload) < _HEAD or (len(payload) - _HEAD) % _ENTRY:
        raise CorruptionError(f"{path}: the keys of sealed backups are cut off")
    return payload


def _opened(path: str, slots: int, rest: bytes, wrap: Wrap) -> bytes:
    for _ in range(slots):
        start = SALT_BYTES + _LENGTH_BYTES
        end = start + int.from_bytes(rest[SALT_BYTES:start])
        seal = wrap(rest[:SALT_BYTES])
        if seal is None:
            raise StoreKeyError(f"{path}: is sealed by the key of its store; give that key")
        with suppress(StoreKeyError):
            return seal.open(rest[start:end])
        rest = rest[end:]
    raise StoreKeyError(f"{path}: is sealed by another key than that of the store, or damaged")


def _file_bytes(keys: BackupKeys, wraps: Iterable[Wrap]) -> bytes:
    payload = keys.payload
    slots: list[bytes] = []
    for wrap in wraps:
        salt = os.urandom(SALT_BYTES)
        seal = wrap(salt)
        if seal is None:  # It must open without a key, too.
            slots.clear()
            break
        sealed = seal.close(payload)
        slots.append(salt + len(sealed).to_bytes(_LENGTH_BYTES) + sealed)
    body = b"".join(slots) or payload + blake3(payload).digest()
    return MAGIC + bytes((len(slots),)) + body


def _save(path: str, file: int, data: bytes) -> None:
    """Replace the file of the keys, and overwrite the bytes of the old file."""
    made = path + ".part"
    with open(made, "wb", opener=private_opener) as new:
        new.write(data)
        new.flush()
        os.fsync(new.fileno())
    os.replace(made, path)
    sync(os.path.dirname(path))
    os.pwrite(file, bytes(os.fstat(file).st_size), 0)
    os.fsync(file)


@contextmanager
def _alone(path: str) -> Iterator[int]:
    """Yield the file of the keys, locked for this process; an empty one if there was none."""
    what = "the keys of sealed backups"
    try:
        with locked_file(path, os.O_RDWR, what) as file:
            with suppress(FileNotFoundError):
                os.unlink(path + ".part")  # Left by a killed process.
            yield file
    except OSError as error:
        raise StorageError(f"{path}: {what}: {error.strerror}") from error


def keys_for(path: str, wrap: Wrap, idents: Iterable[bytes], gone: Iterable[bytes]) -> BackupKeys:
    """Return the saved keys, after creating missing secrets for some nodes.

    The secrets of the nodes in `gone` are destroyed.
    """
    with _alone(path) as file:
        keys = read_keys(path, wrap) if os.fstat(file).st_size else BackupKeys()
        is_new = not os.fstat(file).st_size
        has_fewer, has_more = keys.destroy(gone), keys.add(idents)
        if is_new or has_fewer or has_more:
            _save(path, file, _file_bytes(keys, (wrap,)))
    return keys


def destroy_keys(path: str, wrap: Wrap, gone: Iterable[bytes]) -> None:
    """Destroy the secrets of nodes that were erased."""
    with _alone(path) as file:
        if os.fstat(file).st_size:
            keys = read_keys(path, wrap)
            if keys.destroy(gone):
                _save(path, file, _file_bytes(keys, (wrap,)))


def destroy_keys_of(store: Store, gone: Callable[[], Iterable[bytes]]) -> None:
    """Destroy the secrets of erased nodes for the sealed backups of a store, if there are keys.

    Raises:
        StorageError: the file of the keys cannot be written.
        StoreKeyError: it is sealed by another key.
    """
    path = keys_of(store)
    if path is not None and os.path.exists(path):
        destroy_keys(path, store.side_seal, gone())


def adopt_keys(path: str, wrap: Wrap, given: str | None) -> BackupKeys:
    """Return the keys beside a store, merged with those of another file, if given.

    They are then saved beside the store, so that a later erasure reaches the backups.

    Raises:
        StorageError: there are no keys, or they cannot be read or written.
        ConflictError: the keys beside the store are those of other backups.
        StoreKeyError: they are sealed by another key than the store's.
    """
    if given is None or os.path.realpath(given) == path:
        if not os.path.exists(path) or not os.path.getsize(path):
            raise StoreKeyError(
                f"{path}: there are no keys of sealed backups beside the store; give their file "
                "(--keys). Without it nobody can read the backup"
            )
        return read_keys(path, wrap)
    keys = read_keys(given, wrap)
    with _alone(path) as file:
        if os.fstat(file).st_size:
            beside = read_keys(path, wrap)
            if beside.id != keys.id:
                raise ConflictError(
                    f"{path}: has the keys of other backups; move it away, or give another store"
                )
            keys.merge(beside)
        _save(path, file, _file_bytes(keys, (wrap,)))
    return keys


def rewrap_keys(store_path: str, wraps: Iterable[Wrap]) -> None:
    """Seal the keys beside a store again, by all of `wraps`; the first that fits opens them."""
    path, wraps = keys_beside(store_path), tuple(wraps)
    if not os.path.exists(path):
        return
    with _alone(path) as file:
        if os.fstat(file).st_size:
            keys = _first_that_opens(path, wraps)
            _save(path, file, _file_bytes(keys, wraps))


def _first_that_opens(path: str, wraps: tuple[Wrap, ...]) -> BackupKeys:
    for wrap in wraps[:-1]:
        with suppress(StoreKeyError):
            return read_keys(path, wrap)
    return read_keys(path, wraps[-1])

"""File encryption: the key of a store's file, and the encryption of files beside it.

SQLite3 Multiple Ciphers (the package apsw-sqlite3mc instead of apsw) encrypts each page of the
file, of its log and of its journals by ChaCha20-Poly1305. SQLite's temporary data stays in memory.
The first 16 bytes of an encrypted file are random, and the next 8 are those of every SQLite file,
so an encrypted file can be distinguished from a damaged one without its key.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b, pbkdf2_hmac
from importlib.util import find_spec
from typing import Any

import apsw

from worlddb.errors import InvalidInputError, StorageError, StoreKeyError

KEY_BYTES = 32  # key length of ChaCha20 and AES-256
SALT_BYTES = 16  # the salt at the beginning of an encrypted file
ROUNDS = 600_000
"""Iterations of PBKDF2 with SHA-256 for a passphrase, as OWASP recommends; a third of a second. Any
SQLite3 Multiple Ciphers opens such a file with `PRAGMA kdf_iter = 600000`."""
MAGIC = b"SQLite format 3\0"
ENCRYPTING = "multipleciphers-"  # prefix of the file system name of the encrypting SQLite
HEAD_BYTES = 100  # the header of a SQLite file
_SEALED = slice(20, 24), b"\x20@  "
"""Offset and content of the plain part of an encrypted header: 32 bytes of each page are the
cipher's (nonce and tag), and the three numbers are the same in every SQLite file."""
NONCE_BYTES = 12  # nonce length of GCM
STATEMENTS_KEPT = 512
"""Prepared statements kept by a connection, the most that apsw allows. The cache is a ring: each
use moves it on by one, also each row of a batch, so a short one forgets statements in use."""
KEY_FILE_BYTES_MAX = 4_096  # bytes; a key is a line, so a longer file is not read further
_HEX = re.compile(f"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")
INSTALL = (
    "run: pip install 'worlddb[encrypted]' and then: "
    "pip install --force-reinstall --no-deps apsw-sqlite3mc (both have the module apsw, and the "
    "last one that is installed counts)"
)
GIVE = "key=… in Python, --key-file, WORLDDB_KEY_FILE or WORLDDB_KEY on the command line"

Given = str | bytes | os.PathLike[str]
"""A passphrase or 64 hexadecimal digits; 32 bytes; or the path of a file with one of these."""


class StoreKey:
    """The key of an encrypted store: 32 bytes, or a passphrase. It is never shown."""

    __slots__ = ("_derived", "_passphrase", "_raw")

    def __init__(self, given: Given) -> None:
        """Read a key."""
        if isinstance(given, os.PathLike):
            given = _in_file(os.fspath(given))
        if isinstance(given, str):
            if not given.strip():
                raise InvalidInputError("key: is empty; give a passphrase or 64 hexadecimal digits")
            given = bytes.fromhex(given) if _HEX.fullmatch(given) else given
        elif not isinstance(given, bytes) or len(given) != KEY_BYTES:
            raise InvalidInputError(
                "key: give 32 bytes, 64 hexadecimal digits, a passphrase, or the Path of a file "
                "with one of these"
            )
        self._raw = given if isinstance(given, bytes) else b""
        self._passphrase = given.encode() if isinstance(given, str) else b""
        self._derived: dict[bytes, bytes] = {}
        if encrypting_build() is None:
            raise StoreKeyError(f"an encrypted store needs the encrypting SQLite; {INSTALL}")
        if find_spec("cryptography") is None:
            raise StoreKeyError(
                "an encrypted store needs the package cryptography for the files beside it; run: "
                "pip install cryptography"
            )

    def unlock(self, con: apsw.Connection, path: str) -> None:
        """Give a new connection the key; the file is not read yet."""
        # A temporary file would not be encrypted.
        con.pragma("temp_store", "memory")
        con.pragma("key", f"raw:{self._for_file(path)}")

    def seal(self, path: str, salt: bytes | None = None) -> SideSeal:
        """Return the seal of files beside a store, with a salt of their own or the file's."""
        secret = bytes.fromhex(self._for_file(path, salt)[: 2 * KEY_BYTES])
        return SideSeal(blake2b(b"worlddb side files", key=secret, digest_size=KEY_BYTES).digest())

    def address(self, path: str) -> str:
        """Return the SQLite address of a file with the key to encrypt it."""
        return f"{_uri(path)}?key=raw:{self._for_file(path)}"

    def _for_file(self, path: str, salt: bytes | None = None) -> str:
        """Return the key in hexadecimal; of a passphrase with a salt, by default the file's."""
        if self._raw:
            return self._raw.hex()
        salt = salt or head_of(path)[:SALT_BYTES] or os.urandom(SALT_BYTES)
        if salt not in self._derived:
            self._derived[salt] = pbkdf2_hmac("sha256", self._passphrase, salt, ROUNDS, KEY_BYTES)
        return self._derived[salt].hex() + salt.hex()


class SideSeal:
    """Encrypts files beside a store by AES-256-GCM with a random nonce each time."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def close(self, data: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, None)

    def open(self, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
        except (InvalidTag, ValueError):
            raise StoreKeyError("is sealed by another key, or damaged") from None


def unlocked(path: str, key: StoreKey | None, **options: Any) -> apsw.Connection:
    """Return a new connection with the key set; the file is not read yet."""
    con = apsw.Connection(path, statementcachesize=STATEMENTS_KEPT, **options)
    if key is not None:
        try:
            key.unlock(con, path)
        except BaseException:
            con.close()
            raise
    return con


def plain_address(path: str) -> str:
    """Return the SQLite address of a file for a copy without encryption."""
    return f"{_uri(path)}?key="


def _uri(path: str) -> str:
    from pathlib import Path

    return Path(path).absolute().as_uri()


def _in_file(path: str) -> str | bytes:
    """Return the key in a file: text without the end of the line, or the bytes as they are."""
    try:
        with open(os.path.expanduser(path), "rb") as file:
            data = file.read(KEY_FILE_BYTES_MAX)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreKeyError(f"{path}: the key file cannot be read: {reason}") from None
    try:
        text = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return data
    return text if text.isprintable() else data


def make_key_file(path: str) -> bool:
    """Write a new random key to a new file, for its owner alone; return False if there was one."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(f"{path}: the key file cannot be made: {reason}") from None
    try:
        os.write(handle, os.urandom(KEY_BYTES).hex().encode() + b"\n")
        os.fsync(handle)  # On the disk before it is used.
    finally:
        os.close(handle)
    return True


def destroy_key_file(path: str) -> bool:
    """Overwrite and remove the file of a key; return whether there was one.

    Nobody can then read what it has encrypted, including copies and backups, without another copy
    of the key. A flash disk may keep the old bytes for a while.
    """
    try:
        with open(path, "r+b", buffering=0) as file:
            file.write(bytes(os.fstat(file.fileno()).st_size))
            os.fsync(file.fileno())
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(f"{path}: the key file cannot be destroyed: {reason}") from None
    return True


def system_vfs() -> str:
    """Return the name of SQLite's file system below the encryption, if there is one."""
    return apsw.vfs_names()[0].removeprefix(ENCRYPTING)


def encrypting_build() -> str | None:
    """Return the name and version of the encrypting SQLite; None if the usual one is loaded."""
    return getattr(apsw, "mc_version", None)


# -- what a file says without a key ----------------------------------------------------------------


def head_of(path: str) -> bytes:
    """Return the first bytes of a file; empty if the file is empty or missing.

    Read through SQLite: to open and close the file here would drop this process's locks on it.
    """
    from worlddb.store.sqlite.branch_file import trunk_of

    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
    try:
        # A branch has the key and the salt of its trunk.
        file = apsw.VFSFile(system_vfs(), trunk_of(path) or os.path.abspath(path), [flags, 0])
    except apsw.Error:
        return b""
    try:
        return file.xRead(min(HEAD_BYTES, file.xFileSize()), 0)
    finally:
        file.xClose()


def is_encrypted(path: str) -> bool:
    """Return whether a file is an encrypted store, as far as can be seen without its key."""
    where, what = _SEALED
    head = head_of(path)
    return not head.startswith(MAGIC) and head[where] == what


def refuse_wrong_key(path: str, key: StoreKey | None) -> None:
    """Raise if the key is the reason why SQLite cannot read a file."""
    if key is not None and head_of(path).startswith(MAGIC):
        raise StoreKeyError(
            f"{path}: is not encrypted, but a key is given; leave the key out, or encrypt the "
            "store by 'worlddb rekey'"
        )
    if not is_encrypted(path):
        return
    if key is not None:
        raise StoreKeyError(
            f"{path}: the key does not fit; give the key that the store was encrypted with (if it "
            "is that key, the first page is damaged: move the file away and restore a backup)"
        )
    needed = "" if encrypting_build() else f"; it needs the encrypting SQLite: {INSTALL}"
    raise StoreKeyError(f"{path}: is encrypted; give its key: {GIVE}{needed}")

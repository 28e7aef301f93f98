"""Sealed backup: the journal as records, each text encrypted by the secrets of its nodes.

    file    = magic ‖ id of the file of keys ‖ 32 bytes of salt ‖ chunks
    chunk   = length as 4 bytes big-endian ‖ AES-256-GCM of compressed lines
    nonce   = number of the chunk as 11 bytes ‖ 1 for the last chunk, else 0

The lines are those of an export (`audit/journal_export.py`), with the states of all worlds. The
parts of a line that an erasure would remove are in its "sealed" field, which AES-256-GCM encrypts
by the secrets of the nodes it is about (`audit/backup_keys.py`): of a node its name, content, time
and blind; the text of a note; the metadata of an edge, by both ends; evidence and reasons in a
commit, by both ends; and the blind of a commit, by all nodes that its notes, evidence and reasons
are about. The rest of the line is what the store keeps after an erasure.

Derived tables are not included; they are built again. If some keys were destroyed, reading gives
the lines that an export after the erasure has, and `restore` adds one commit that names what was
erased. The chunks are encrypted by the secret of the file of keys, so without that file nothing can
be read, and any change is noticed.
"""

from __future__ import annotations

import json
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import IO, Any
from uuid import uuid4

from blake3 import blake3

from worlddb.audit.backup_keys import (
    DESTROYED,
    FILE_ID_BYTES,
    SECRET_BYTES,
    BackupKeys,
    keys_for,
    keys_of,
)
from worlddb.audit.history import erasures
from worlddb.audit.journal_export import Record, export_records
from worlddb.errors import CorruptionError, InvalidInputError, StorageError, StoreKeyError
from worlddb.model.address import ERASED
from worlddb.store.backends import IN_MEMORY
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import without_texts
from worlddb.store.sqlite.file_copy import land
from worlddb.store.sqlite.file_locks import PartialFile

MAGIC = b"worlddb sealed backup 1\n"
SALT_BYTES = 32  # random, so no two backups are encrypted by one key
NONCE_BYTES = 12  # as AES-GCM expects
LENGTH_BYTES = 4  # as the format says
CHUNK_CHARS = 1 << 20  # bounds the memory, and keeps the overhead of 20 bytes per chunk small
CHUNK_BYTES_MAX = 1 << 31  # one line may be long; a length above this is damage
NODES_PER_READ = 10_000  # bounds the memory of one read
WHOLE = "worlddb sealed backup 1: chunks"
PART = "worlddb sealed backup 1: part of a record"
BLANKS = ("", "{}")
STAGED = {"propose": ("evidence", "{}"), "flag": ("reason", "")}
"""The texts in the changes of a commit, by the kind of change, and what an erasure keeps."""
HIDDEN = ("name", "content", "created_at", "blind")
"""The fields of a node that an erasure removes."""


def is_sealed(path: str) -> bool:
    """Return whether a file is a sealed backup."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _cipher(secret: bytes, context: str) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(blake3(secret, derive_key_context=context).digest())


def _refuse_without_package() -> None:
    if find_spec("cryptography") is None:
        raise InvalidInputError(
            "a sealed backup needs the package cryptography; run: pip install 'worlddb[receipts]'"
        )


# -- write -----------------------------------------------------------------------------------------


def write_sealed(store: Store, path: str) -> None:
    """Write a sealed backup of the last commit to a new file; create missing keys.

    Raises:
        InvalidInputError: the package for encryption is missing.
        StorageError: the store has no place for keys, or the target exists or cannot be written.
        StoreKeyError: the keys are sealed by another key than the store's.
    """
    _refuse_without_package()
    beside = keys_of(store)
    if beside is None:
        if store.path == IN_MEMORY:
            raise StorageError("a store in memory has no place for the keys of its backups")
        raise StorageError(
            f"{store.path}: say where the keys of its sealed backups are to lie: add "
            "backup_keys=/PATH/TO/FILE to the address, for every program that erases"
        )
    if os.path.lexists(path):
        raise StorageError(f"{path}: exists already; choose a new path for the backup")
    with store.snapshot() as reader:
        gone = erasures(reader).nodes
        # The keys are on the disk before they are used.
        keys = keys_for(beside, store.side_seal, _node_ids(reader), gone)
        try:
            with closing(PartialFile(f"{path}.{uuid4().hex}.partial", None)) as partial:
                with open(partial.path, "wb") as file:
                    _write_chunks(file, keys, _Sealer(reader, keys).lines())
                    file.flush()
                    os.fsync(file.fileno())
                land(partial.path, path)  # It gets its name only when it is complete.
        except OSError as error:
            raise StorageError(f"{path}: cannot be written: {error.strerror}") from error


def _node_ids(reader: Reader) -> Iterator[bytes]:
    """Yield the ids of the nodes that were not erased."""
    last = reader.head().nodes
    for low in range(1, last + 1, NODES_PER_READ):
        for node in reader.scan.nodes(low, min(low + NODES_PER_READ - 1, last)):
            if node.created_at != ERASED:
                yield node.id


def _write_chunks(file: IO[bytes], keys: BackupKeys, lines: Iterable[str]) -> None:
    salt = os.urandom(SALT_BYTES)
    head = MAGIC + keys.id + salt
    file.write(head)
    cipher = _cipher(keys.secret + salt, WHOLE)
    number, size, waiting = 0, 0, list[str]()

    def write(*, is_last: bool) -> None:
        data = zlib.compress("".join(waiting).encode("utf-8", "surrogatepass"), 1)
        sealed = cipher.encrypt(_nonce(number, is_last), data, head)
        file.write(len(sealed).to_bytes(LENGTH_BYTES) + sealed)

    for line in lines:
        waiting.append(line + "\n")
        size += len(line)
        if size > CHUNK_CHARS:
            write(is_last=False)
            number, size = number + 1, 0
            waiting.clear()
    write(is_last=True)


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(NONCE_BYTES - 1) + bytes((is_last,))


class _Sealer:
    """Turns the records of an export into records with sealed parts."""

    def __init__(self, reader: Reader, keys: BackupKeys) -> None:
        self._reader = reader
        self._keys = keys
        self._notes = 0  # of the commits so far

    def lines(self) -> Iterator[str]:
        """Yield the lines of the backup."""
        for record in export_records(self._reader, every_state=True):
            if "commit" in record:
                self._commit(record)
            elif record.get("erased") is not True:
                self._row(record)
            yield json.dumps(record, ensure_ascii=False, separators=(",", ":"))

    def _row(self, record: Record) -> None:
        if "node" in record:
            hidden = {key: record.pop(key) for key in HIDDEN if key in record}
            record["sealed"] = self._seal(hidden, [record["node"]])
        elif "edge" in record and record["metadata"]:
            hidden = record["metadata"]
            record["metadata"] = without_texts(hidden)
            record["sealed"] = self._seal(hidden, [record["source"], record["target"]])
        elif "note" in record and record["text"] not in BLANKS:
            record["sealed"] = self._seal(record.pop("text"), [record["note"]])

    def _commit(self, record: Record) -> None:
        about: set[str] = set()
        for place, (kind, ident, detail) in enumerate(record["changes"]):
            if kind not in STAGED or detail[STAGED[kind][0]] in BLANKS:
                continue
            key, blank = STAGED[kind]
            ends = self._ends(ident)
            record.setdefault("staged", []).append([place, ends, self._seal(detail[key], ends)])
            detail[key] = blank
            about.update(ends)
        first, self._notes = self._notes + 1, self._notes + record["notes"]
        rows = {
            node
            for _, node, _, text, _ in self._reader.scan.notes(first, self._notes)
            if text not in BLANKS
        }
        about.update(world.id.hex() for world in self._reader.worlds(rows).values())
        if about:
            nodes = sorted(about)
            record |= {"about": nodes, "sealed": self._seal(record.pop("blind", ""), nodes)}

    def _ends(self, ident: str) -> list[str]:
        """Return the ids of the two nodes of an edge."""
        row = self._reader.edge_row(bytes.fromhex(ident))
        if row is None:
            raise CorruptionError(f"a change names an edge that does not exist: {ident}")
        edge = self._reader.edges([row])[0].edge
        return [str(edge.source), str(edge.target)]

    def _seal(self, hidden: Any, nodes: Sequence[str]) -> str:
        secrets = [self._keys.secret_of(bytes.fromhex(ident)) for ident in nodes]
        # A node erased since the snapshot is sealed by a secret that is not kept.
        drawn = [
            os.urandom(SECRET_BYTES) if secret in (None, DESTROYED) else secret
            for secret in secrets
        ]
        nonce = os.urandom(NONCE_BYTES)
        cipher = _cipher(b"".join(one for one in drawn if one), PART)
        data = json.dumps(hidden, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return b64encode(nonce + cipher.encrypt(nonce, data, None)).decode()


# -- read ------------------------------------------------------------------------------------------


def sealed_records(path: str, keys: BackupKeys) -> Iterator[Record]:
    """Yield the records of an export from a sealed backup; texts of destroyed keys are erased.

    Raises:
        StoreKeyError: the keys belong to other backups, or are older than the backup.
        CorruptionError: the backup was changed or cut off.
    """
    _refuse_without_package()
    opener = _Opener(path, keys)
    for chunk in _read_chunks(path, keys):
        for line in chunk.split("\n"):
            if line:
                record = json.loads(line)
                opener.open(record)
                yield record


def _read_chunks(path: str, keys: BackupKeys) -> Iterator[str]:
    from cryptography.exceptions import InvalidTag

    with open(path, "rb") as file:
        head = file.read(len(MAGIC) + FILE_ID_BYTES + SALT_BYTES)
        if not head.startswith(MAGIC) or len(head) < len(MAGIC) + FILE_ID_BYTES + SALT_BYTES:
            raise CorruptionError(f"{path}: is not a sealed backup, or was cut off")
        if head[len(MAGIC) :][:FILE_ID_BYTES] != keys.id:
            raise StoreKeyError(f"{path}: was sealed by other keys; give the keys of its store")
        cipher = _cipher(keys.secret + head[-SALT_BYTES:], WHOLE)
        number, is_last = 0, False
        while not is_last:
            size = int.from_bytes(file.read(LENGTH_BYTES))
            sealed = file.read(size) if size < CHUNK_BYTES_MAX else b""
            at = file.tell()
            is_last = not file.read(1)
            file.seek(at)
            try:
                data = cipher.decrypt(_nonce(number, is_last), sealed, head)
                yield zlib.decompress(data).decode("utf-8", "surrogatepass")
            except (InvalidTag, ValueError, zlib.error):
                raise CorruptionError(
                    f"{path}: was changed or cut off; restore another backup"
                ) from None
            number += 1


class _Opener:
    """Decrypts the sealed parts of records; erased parts stay erased."""

    def __init__(self, path: str, keys: BackupKeys) -> None:
        self._path = path
        self._keys = keys

    def open(self, record: Record) -> None:
        """Open the sealed parts of a record, in place."""
        if "commit" in record:
            self._commit(record)
            return
        sealed = record.pop("sealed", None)
        if sealed is None:
            return
        if "node" in record:
            found = self._open(sealed, [record["node"]])
            gone = {"name": "", "content": "", "created_at": ERASED, "erased": True}
            record.update(gone if found is None else found)
        elif "edge" in record:
            found = self._open(sealed, [record["source"], record["target"]])
            record.update({"erased": True} if found is None else {"metadata": found})
        else:
            found = self._open(sealed, [record["note"]])
            blank = "{}" if record["kind"] == "metadata" else ""
            record["text"] = blank if found is None else found

    def _commit(self, record: Record) -> None:
        for place, ends, sealed in record.pop("staged", ()):
            found = self._open(sealed, ends)
            if found is not None:
                kind, _, detail = record["changes"][place]
                detail[STAGED[kind][0]] = found
        sealed, about = record.pop("sealed", None), record.pop("about", ())
        if sealed is not None:
            blind = self._open(sealed, about)
            if blind is None:
                record["erased"] = True
            elif blind:
                record["blind"] = blind

    def _open(self, sealed: str, nodes: Sequence[str]) -> Any:
        """Return the content of a sealed part; None if a key that it needs was destroyed."""
        from cryptography.exceptions import InvalidTag

        secrets = [self._keys.secret_of(bytes.fromhex(ident)) for ident in nodes]
        if None in secrets:
            raise StoreKeyError(
                f"{self._path}: the keys are older than this backup; give the present ones"
            )
        if DESTROYED in secrets:
            return None
        data = b64decode(sealed)
        cipher = _cipher(b"".join(one for one in secrets if one), PART)
        try:
            return json.loads(cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None))
        except (InvalidTag, ValueError):
            raise CorruptionError(f"{self._path}: a part does not fit its key") from None

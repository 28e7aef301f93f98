"""Read audit: a record of reads: who asked what, when, and the ids of the answer.

The record is optional and lies beside the store (`memory.db-reads`): a JSON object on each line,
readable by its owner alone; on a server, a table. It is not in the journal, because a read is not a
commit. Processes take turns by a lock on the file. An erasure also removes the lines that name an
erased memory or its scope. Beside an encrypted store each line is sealed by the store's key.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from worlddb.audit.signed_envelope import file_beside
from worlddb.errors import StorageError, StoreKeyError
from worlddb.model.address import Id
from worlddb.model.inputs import Plain, from_micros, to_micros
from worlddb.model.text_safety import without_secrets
from worlddb.store.interface import Seal, Store
from worlddb.store.sqlite.file_locks import locked_file, private_opener

READS_END = "-reads"
"""Suffix of the record's file name, after that of the store."""
REKEYED_END = ".rekeyed"  # the record under a new key, until the store has that key
UNFINISHED_END = ".part"

_unsaved: WeakKeyDictionary[Store, list[str]] = WeakKeyDictionary()
"""The records of stores in memory, by store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEntry(Plain):
    """One read: actor, call, scopes, question, and the ids of the answer."""

    time: datetime
    actor: str
    call: str
    scopes: tuple[str, ...]
    question: str
    hits: tuple[Id, ...]


def note_read(
    store: Store,
    now: int,
    actor: str,
    call: str,
    scopes: Iterable[object],
    question: str,
    hits: Iterable[bytes],
) -> None:
    """Add a read to the record.

    Raises:
        StorageError: it cannot be written; an unrecorded read must fail.
    """
    entry = ReadEntry(
        time=from_micros(now),
        actor=actor,
        call=call,
        scopes=tuple(map(str, scopes)),
        question=without_secrets(question),
        hits=tuple(map(Id, hits)),
    )
    line = json.dumps(entry.to_dict(), ensure_ascii=False, separators=(",", ":"))
    lines = store.side_lines(READS_END)
    if lines is not None:
        lines.add(line)
        return
    path = file_beside(store, READS_END, "the record of reads")
    if path is None:
        _unsaved.setdefault(store, []).append(line)
        return
    seal = store.side_seal()
    _settle(path, seal)
    with _locked(path) as file:
        os.write(file, _sealed(line, seal) + b"\n")


def reads(store: Store) -> Iterator[ReadEntry]:
    """Yield the record, the oldest first.

    Raises:
        StorageError: the record cannot be read.
    """
    for line in _lines(store):
        yield _entry(line)


def forget_reads(store: Store, is_gone: Callable[[ReadEntry], bool]) -> int:
    """Remove entries from the record; return how many.

    Raises:
        StorageError: the record cannot be written.
    """
    recorded = store.side_lines(READS_END)
    if recorded is not None:
        found = recorded.read().items()
        numbers = [number for number, line in found if is_gone(_entry(line))]
        if numbers:
            recorded.remove(numbers)
        return len(numbers)
    path = store.side_file(READS_END)
    if path is None:
        lines = _unsaved.get(store, [])
        kept = [line for line in lines if not is_gone(_entry(line))]
        gone, lines[:] = len(lines) - len(kept), kept
        return gone
    if not os.path.exists(path):
        return 0
    with _locked(path):
        lines = list(_lines(store))
        kept = [line for line in lines if not is_gone(_entry(line))]
        if len(kept) < len(lines):
            made = path + UNFINISHED_END
            _write(made, kept, store.side_seal())
            os.replace(made, path)  # A process that waits for the lock notices.
    return len(lines) - len(kept)


def forget_hits(store: Store, ids: Sequence[bytes]) -> None:
    """Remove the entries that name one of the erased memories."""
    gone = set(ids)
    forget_reads(store, lambda entry: not gone.isdisjoint(entry.hits))


def _lines(store: Store) -> Sequence[str]:
    lines = store.side_lines(READS_END)
    if lines is not None:
        return list(lines.read().values())
    path = store.side_file(READS_END)
    if path is None:
        return list(_unsaved.get(store, ()))
    seal = store.side_seal()
    _settle(path, seal)
    return _read(path, seal)


def _read(path: str, seal: Seal | None, *, is_strict: bool = False) -> list[str]:
    try:
        with open(path, "rb") as file:
            lines = [line for line in file.read().split(b"\n") if line]
        if is_strict and any(line.startswith(b"{") == (seal is not None) for line in lines):
            raise StoreKeyError("is not sealed by the key of the store")
        return [_opened(line, seal) for line in lines]
    except FileNotFoundError:
        return []
    except StoreKeyError as error:
        raise StoreKeyError(f"{path}: the record of reads {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: the record of reads: {error}") from error


def _write(path: str, lines: Iterable[str], seal: Seal | None) -> None:
    with open(path, "wb", opener=private_opener) as file:
        file.writelines(_sealed(line, seal) + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def _sealed(line: str, seal: Seal | None) -> bytes:
    data = line.encode("utf-8", "backslashreplace")
    return data if seal is None else b64encode(seal.close(data))


def _opened(line: bytes, seal: Seal | None) -> str:
    if not line.startswith(b"{"):
        if seal is None:
            raise StoreKeyError("is encrypted, and the store is not")
        line = seal.open(b64decode(line))
    return line.decode()


def reseal_reads(path: str, old: Seal | None, new: Seal | None) -> None:
    """Write the record of a store again, under another key, to a file beside it."""
    _settle(path + READS_END, old)  # An earlier change of the key may have been killed.
    if os.path.exists(path + READS_END):
        made = path + READS_END + REKEYED_END
        _write(made + UNFINISHED_END, _read(path + READS_END, old), new)
        os.replace(made + UNFINISHED_END, made)  # It gets its name only when it is complete.


def finish_reseal(path: str) -> None:
    """Replace the old record by the one under the new key, which the store has by now."""
    with suppress(FileNotFoundError):
        os.replace(path + READS_END + REKEYED_END, path + READS_END)


def settle_reads(store: Store) -> None:
    """Finish a killed change of the key, so that the record does not stay under the old key.

    Raises:
        StorageError: the record cannot be read or written.
    """
    path = store.side_file(READS_END)
    if path is not None:
        _settle(path, store.side_seal())


def _settle(path: str, seal: Seal | None) -> None:
    """Finish a killed change of the key, or remove its unfinished files."""
    made = path + REKEYED_END
    if not os.path.exists(made) and not os.path.exists(made + UNFINISHED_END):
        return
    try:
        with suppress(FileNotFoundError):
            os.unlink(made + UNFINISHED_END)
        with suppress(FileNotFoundError):  # Another process was faster.
            try:
                _read(made, seal, is_strict=True)  # Empty if it is gone; then nothing is replaced.
            except StoreKeyError:
                # Under another key: the change was killed before the store had it. A copy would
                # keep what is erased from the record.
                os.unlink(made)
            else:
                os.replace(made, path)
    except OSError as error:
        raise StorageError(f"{path}: the record of reads: {error.strerror}") from error


def _entry(line: str) -> ReadEntry:
    try:
        found: dict[str, Any] = json.loads(line)
        return ReadEntry(
            time=from_micros(to_micros(found["time"], "time")),
            actor=found["actor"],
            call=found["call"],
            scopes=tuple(found["scopes"]),
            question=found["question"],
            hits=tuple(map(Id, found["hits"])),
        )
    except (ValueError, KeyError, TypeError):
        raise StorageError(f"the record of reads has a damaged line: {line[:80]!r}") from None


def _locked(path: str) -> AbstractContextManager[int]:
    return locked_file(path, os.O_WRONLY | os.O_APPEND, "the record of reads")

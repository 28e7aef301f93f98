"""Read audit: who asked what, when, and which memories were the answer.

An optional record beside the store (`memory.db-reads`), a JSON object on each line, readable by its
owner alone. The journal does not have it: a read is no commit. Processes take turns by a lock on
the file. What is erased leaves the record, too: lines that name an erased memory, or its scope.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from worlddb.audit.signed_envelope import file_beside
from worlddb.errors import StorageError
from worlddb.model.address import Id
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.records import Plain
from worlddb.store.interface import Store

READS_END = "-reads"
"""The name of the record's file is that of the store with this end."""
PRIVATE = 0o600  # Questions are as personal as memories.

_unsaved: WeakKeyDictionary[Store, list[str]] = WeakKeyDictionary()
"""The records of stores in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEntry(Plain):
    """One read: by whom, of which scopes, what was asked, and the ids of the answer."""

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
        StorageError: it cannot be written. A read that leaves no trace would be no audit.
    """
    entry = ReadEntry(
        time=from_micros(now),
        actor=actor,
        call=call,
        scopes=tuple(map(str, scopes)),
        question=question,
        hits=tuple(map(Id, hits)),
    )
    line = json.dumps(entry.to_dict(), ensure_ascii=False, separators=(",", ":"))
    path = file_beside(store, READS_END, "the record of reads")
    if path is None:
        _unsaved.setdefault(store, []).append(line)
        return
    with _locked(path) as file:
        os.write(file, line.encode("utf-8", "backslashreplace") + b"\n")


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
            made = f"{path}.part"
            with open(made, "w", encoding="utf-8", opener=_private) as file:
                file.writelines(f"{line}\n" for line in kept)
                file.flush()
                os.fsync(file.fileno())
            os.replace(made, path)  # Who waits for the lock sees that its file was replaced.
    return len(lines) - len(kept)


def forget_hits(store: Store, ids: Sequence[bytes]) -> None:
    """Remove the entries that name one of some erased memories."""
    gone = set(ids)
    forget_reads(store, lambda entry: not gone.isdisjoint(entry.hits))


def _lines(store: Store) -> Sequence[str]:
    path = store.side_file(READS_END)
    if path is None:
        return list(_unsaved.get(store, ()))
    try:
        with open(path, encoding="utf-8") as file:
            return [line for line in file.read().split("\n") if line]
    except FileNotFoundError:
        return []
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


@contextmanager
def _locked(path: str) -> Iterator[int]:
    """Yield the file of the record, open for this process alone."""
    import fcntl

    try:
        while True:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.exists(path) and os.fstat(file).st_ino == os.stat(path).st_ino:
                break
            os.close(file)  # It was replaced while this process waited.
    except OSError as error:
        raise StorageError(f"{path}: the record of reads: {error.strerror}") from error
    try:
        yield file
    finally:
        os.close(file)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)

"""Erasure: texts leave the store for good, and a receipt says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from worlddb.audit.journal_export import replay
from worlddb.audit.read_audit import forget_hits
from worlddb.errors import ConflictError, InvalidInputError, StorageError
from worlddb.index.search import Search
from worlddb.model.address import Id
from worlddb.model.records import Commit, Plain, has_erased
from worlddb.store.interface import Store
from worlddb.write.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Plain):
    """What was erased, and the commit that did it; None if all of it had been erased before.

    `cleaned` says whether the bytes have left the file and its log, too. They have not while a
    reader still holds an older snapshot; then `db.clean()` does it later.
    """

    ids: tuple[Id, ...]
    commit: Commit | None
    root_state: Id
    cleaned: bool


def erase_texts(
    store: Store,
    search: Search,
    transaction: AbstractContextManager[Transaction],
    given: bytes | str | Sequence[bytes | str],
) -> Receipt:
    """Erase nodes in one transaction, then rewrite the file; see `WorldDB.erase`."""
    ids = [given] if isinstance(given, bytes | str) else list(given)
    if not ids:
        raise InvalidInputError("erase: give an id, or several")
    with transaction as tx:
        erased = tx.erase(ids)
    forget_hits(store, erased)
    search.forget()
    cleaned = False
    # The texts are erased by the commit; the receipt says whether the file could be rewritten.
    with suppress(StorageError, ConflictError):
        cleaned = store.clean()
    with store.read() as reader:
        root = Id(reader.head().root_state)
    return Receipt(ids=tuple(erased), commit=tx.commit, root_state=root, cleaned=cleaned)


def replay_and_clean(
    store: Store, search: Search, lines: Iterable[str], on_commit: Callable[[int], None]
) -> int:
    """Play an export into a store; rewrite the file if the export erases anything."""
    with store.read() as reader:
        before = reader.head().seq
    added = replay(store, lines, on_commit)
    with store.read() as reader:
        changes = (commit.changes for commit in reader.commits(before, None, False))
        erased = any(has_erased(text) for text in changes)
    if erased:
        search.forget()
        store.clean()
    return added

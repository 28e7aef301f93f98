"""Erasure receipt: removes texts from the store for good, and signs a receipt for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from worlddb.audit.backup_keys import destroy_keys_of
from worlddb.audit.history import commit_row, erasures
from worlddb.audit.journal_export import replay
from worlddb.audit.read_audit import forget_hits
from worlddb.audit.signed_envelope import canonical_json, sign
from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, StorageError
from worlddb.index.search import Search
from worlddb.model.address import Id
from worlddb.model.inputs import Plain, from_micros
from worlddb.model.records import Commit, has_erased
from worlddb.store.interface import Store
from worlddb.write.transaction import Transaction

KIND = "application/vnd.worlddb.erasure-receipt.1+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Plain):
    """The erased ids and the commit; None if everything had been erased before.

    `cleaned` says whether the bytes have left the file and its log, too. They stay while a reader
    holds an older snapshot; then call `db.clean()` later. `envelope` is the receipt with a
    signature, if requested.
    """

    ids: tuple[Id, ...]
    commit: Commit | None
    root_state: Id
    cleaned: bool
    envelope: Mapping[str, Any] | None = field(default=None, hash=False)


def erase_beside(store: Store, tx: Transaction) -> None:
    """Erase what a landed transaction has erased beside the store, too.

    Raises:
        StorageError: a file beside the store cannot be written. The texts are erased; erase them
        again to erase the rest.
        StoreKeyError: it is sealed by another key.
    """
    if tx.erased is not None:
        forget_hits(store, tx.erased)
        forget_sealed(store)


def erase_texts(
    store: Store,
    search: Search,
    transaction: AbstractContextManager[Transaction],
    given: bytes | str | Sequence[bytes | str] | Callable[[], Sequence[bytes | str]],
) -> Receipt:
    """Erase nodes in one transaction, then rewrite the file; see `WorldDB.erase`.

    A function says inside the transaction, while nobody else writes, which nodes; it may be none.
    """
    if not callable(given):
        given = [given] if isinstance(given, bytes | str) else list(given)
        if not given:
            raise InvalidInputError("erase: give an id, or several")
    with transaction as tx:
        ids = given() if callable(given) else given
        erased = tx.erase(ids) if ids else []
    search.forget()
    cleaned = False
    # The commit erases the texts; the receipt says whether the file could be rewritten.
    with suppress(StorageError, ConflictError):
        cleaned = store.clean()
    with store.read() as reader:
        root = Id(reader.head().root_state)
    return Receipt(ids=tuple(erased), commit=tx.commit, root_state=root, cleaned=cleaned)


def forget_sealed(store: Store) -> None:
    """Destroy the keys in sealed backups of all nodes that were ever erased.

    Not only those of this erasure: an earlier process may have been killed after its commit.

    Raises:
        StorageError: the keys cannot be written. Erase again to repeat it.
        StoreKeyError: they are sealed by another key.
    """
    with store.read() as reader:
        destroy_keys_of(store, lambda: erasures(reader).nodes)


def signed_receipt(
    store: Store, receipt: Receipt, now: int, scope: Mapping[str, Any], *, is_bound: bool = False
) -> Receipt:
    """Return a receipt with a signed envelope of its content.

    A bound caller may not see commits of the store, so its envelope has none.

    Raises:
        InvalidInputError: the package for signatures is missing.
        StorageError: the key cannot be made or read.
    """
    commit = None if is_bound else receipt.commit
    told = {
        "scope": dict(scope),
        "time": from_micros(now).isoformat(),
        "ids": [str(ident) for ident in receipt.ids],
        "commit": None if commit is None else commit.seq,
        "commit_hash": None if commit is None else str(commit.hash),
        "root_state": str(receipt.root_state),
        "cleaned": receipt.cleaned,
    }
    return replace(receipt, envelope=sign(store, KIND, canonical_json(told)))


def erasure_differences(store: Store, told: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a receipt's payload that a store contradicts: `ids`, `commit` or none.

    A backup from before the erasure has the texts and lacks the commit.
    """
    with store.read() as reader:
        rows = [reader.node_row(bytes.fromhex(ident)) for ident in told["ids"]]
        nodes = reader.nodes([row for row in rows if row is not None]).values()
        is_erased = None not in rows and all(node.erased for node in nodes)
        try:
            is_known = told["commit"] is None or (
                commit_row(reader, told["commit"]).hash.hex() == told["commit_hash"]
            )
        except NotFoundError:
            is_known = False
    return tuple(what for what, holds in (("ids", is_erased), ("commit", is_known)) if not holds)


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
        forget_sealed(store)
        search.forget()
        store.clean()
    return added

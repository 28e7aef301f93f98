"""Erasing: texts leave the store for good, and a receipt says so."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from worlddb.api.opened import Opened
from worlddb.errors import ConflictError, InvalidInputError, StorageError
from worlddb.model.address import Id
from worlddb.model.records import Commit, Plain
from worlddb.write.transaction import DEFAULT_ACTOR, transact


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Plain):
    """What was erased, and the commit that did it; None if all of it had been erased before.

    `cleaned` says whether the bytes have left the file and its log, too. They have not while
    somebody still reads from before; then `db.clean()` does it later.
    """

    ids: tuple[Id, ...]
    commit: Commit | None
    root_state: Id
    cleaned: bool


class ErasingTexts(Opened):
    """The part of WorldDB that erases."""

    def erase(
        self, id: bytes | str | Sequence[bytes | str], *, actor: str = DEFAULT_ACTOR
    ) -> Receipt:
        """Remove a node's texts for good, with all inside it and all that was derived from it.

        Name, content, time of creation, aliases, sources, metadata, words, keys and vectors go,
        and what edges, proposals and conflicts at it say in words. Its id, type and validity stay,
        so the tree still verifies. To end a memory without that, retire it. Backups and exports
        that were made before are yours to erase.

        Raises:
            InvalidInputError: no id, the start of several, or the root.
            NotFoundError: there is no such node.
            StorageError, ConflictError: the store cannot be written.
        """
        given = [id] if isinstance(id, bytes | str) else list(id)
        if not given:
            raise InvalidInputError("erase: give an id, or several")
        with transact(
            self._store, self._registry, actor=actor, bulk=False, limits=self._limits
        ) as tx:
            ids = tx.erase(given)
        self._search.forget()
        cleaned = False
        # What is erased is erased; that it could not be cleaned is told in the receipt.
        with suppress(StorageError, ConflictError):
            cleaned = self.clean()
        with self._store.read() as reader:
            root = Id(reader.head().root_state)
        return Receipt(ids=tuple(ids), commit=tx.commit, root_state=root, cleaned=cleaned)

    def clean(self) -> bool:
        """Rewrite the file without what is no longer in it; return whether that is done.

        Takes about as long as copying the file.

        Raises:
            StorageError, ConflictError: the store cannot be written.
        """
        return self._store.clean()

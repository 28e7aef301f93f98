"""Scope files: the file tree that lives in a scope."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.files.versioned_files import Files, FilesHome
from worlddb.memory.scope_view import generations
from worlddb.memory.writes import MemoryWriter
from worlddb.model.address import Id
from worlddb.model.records import SCOPE, born
from worlddb.store.interface import Reader
from worlddb.write.transaction import Transaction


def scope_files(writer: MemoryWriter, scope: Mapping[str, Any]) -> Files:
    """Return the files of the one scope that a call means; see `Memory.files_of`."""
    names = [name for group in writer.scopes.written(scope) for name in group]
    if len(names) != 1:
        told = ", ".join(map(str, names))
        raise InvalidInputError(f"files: live in one scope, not in {told}; name one of them")
    store, name = writer.engine.store, names[0]

    def find(reader: Reader) -> int | None:
        rows = generations(reader, name)
        return rows[-1] if rows and not reader.closed_by(rows[-1:]) else None

    def make(tx: Transaction) -> Id:
        number = len(generations(tx.reader, name))
        return tx.create_node(type=SCOPE, name=str(name), created_at=born(number)).id

    transact = partial(writer.engine.ingestion.transact, origin=writer.origin)
    return Files(store, transact, FilesHome(find, make), writer.actor)

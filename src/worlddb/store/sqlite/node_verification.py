"""Node verification: a node that is read must be the node that was written.

An id is the hash of type, name, content, creation time and blind, so each read compares them.
Notes, validity and parents are no part of the address; `check` compares those with the journal.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import product
from types import NoneType
from typing import Any

from worlddb.errors import CorruptionError
from worlddb.model.address import has_address
from worlddb.model.inputs import from_micros
from worlddb.store.rows import BodyRow
from worlddb.store.sqlite.database_file import IN, WAY_OUT, SqlSession, among

DAMAGE = (ValueError, TypeError, AttributeError, OverflowError, struct.error, CorruptionError)
"""What reading a damaged row raises. One flipped bit turns a number into a text or into nothing."""
_BODY_TYPES = frozenset(
    (int, bytes, str, parent, str, str, int, valid_to)
    for parent, valid_to in product((int, NoneType), repeat=2)
)
"""What the fields of a body may be; SQLite checks them only when they are written."""


def sound_body(body: BodyRow) -> BodyRow:
    """Return a body as it is.

    Raises:
        CorruptionError: a field is of another type than was written.
    """
    if tuple(map(type, body)) not in _BODY_TYPES:
        raise _damaged(body.id, "cannot be read (a field is of another type than was written)")
    return body


def refuse_changed(found: Iterable[Any]) -> None:
    """Refuse nodes (row, id, state, type, name, content, created_at, …, blind) that were changed.

    Raises:
        CorruptionError: the fields of a node do not hash to its id.
    """
    for _, ident, _, type_, name, content, created_at, *_, blind in found:
        if not has_address(ident, type_, name, content, created_at, blind):
            raise _damaged(ident, "is not what was written (its fields do not hash to its id)")


def first_damage(session: SqlSession, rows: list[int], error: Exception) -> CorruptionError:
    """Return the error for nodes of which a field cannot be read, naming the first of them."""
    sql = (
        "SELECT n.id, n.valid_from, n.valid_to, cast(n.type || n.name || n.content || "
        "coalesce((SELECT group_concat(text) FROM notes WHERE node = n.row), '') AS BLOB) "
        f"FROM nodes n WHERE n.row {IN} ORDER BY n.row"
    )
    for ident, valid_from, valid_to, texts in session.execute(sql, (among(rows),)):
        try:
            texts.decode()
            from_micros(valid_from)
            from_micros(valid_from if valid_to is None else valid_to)
        except DAMAGE as damage:
            return _damaged(ident, f"cannot be read ({damage})")
    if isinstance(error, CorruptionError):
        return error
    return CorruptionError(f"a node cannot be read ({error}); {WAY_OUT}")


def _damaged(ident: Any, what: str) -> CorruptionError:
    name = ident.hex() if isinstance(ident, bytes) else repr(ident)
    return CorruptionError(
        f"node {name} {what}: the file was damaged or changed by another program; "
        f"{WAY_OUT}, or open the store with verify_reads=False to see what is there"
    )

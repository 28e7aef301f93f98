"""Ids as people give them: an Id, 32 bytes, 64 hex digits, or a unique prefix of at least 4."""

from __future__ import annotations

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.model.id import ID_BYTES, Id, parse_prefix
from worlddb.store.protocol import Reader

AMBIGUOUS_SHOWN = 3


def whole_id(reader: Reader, given: bytes | str, table: str) -> Id:
    """Return the id that `given` stands for among nodes or edges (`table`).

    A whole id is returned as it is, whether or not anything has it.

    Raises:
        InvalidInputError: not an id, too short, or the start of several.
        NotFoundError: no id begins with this prefix.
    """
    if isinstance(given, bytes):
        return given if isinstance(given, Id) else Id(given)
    if not isinstance(given, str):
        raise InvalidInputError(f"{given!r} is not an id; give an Id or hex text")
    prefix = parse_prefix(given)
    if len(prefix) == 2 * ID_BYTES:
        return Id(prefix)
    found = reader.ids_like(table, prefix, AMBIGUOUS_SHOWN)
    if not found:
        what = table.removesuffix("s")
        raise NotFoundError(f"no {what} has an id that begins with {given!r}")
    if len(found) > 1:
        some = ", ".join(ident.short for ident in found)
        raise InvalidInputError(f"{given!r} is the start of several ids ({some}, …); give more")
    return found[0]

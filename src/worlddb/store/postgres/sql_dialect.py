"""SQL dialect: the SQL of the shared tables as PostgreSQL reads it, and values as it takes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Any

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

from worlddb.store.postgres.server_schema import COLUMNS, TYPES

_INT8_ARRAY_OID = 1016  # The number of the type int8[] in every PostgreSQL.
_TEXT_ARRAY_OID, _BYTEA_ARRAY_OID = 1009, 1001  # Those of text[] and bytea[].
_INT8_OID, _TEXT_OID, _BYTEA_OID = 20, 25, 17
_NUMBER_BYTES = 8  # An int8.
_MANY = 64  # From here on numpy is faster than a loop.
_SIZES = tuple(size.to_bytes(4, "big") for size in range(256))  # The usual sizes of words.
_ITEM = Struct(">iq")  # The size of a number, and the number.
_MISSING = (-1).to_bytes(4, "big", signed=True)
_REWRITES = (
    (re.compile(r"IN \(SELECT value FROM carray\((\?\d?)\)\)"), r"= ANY(\1)"),
    (re.compile(r"carray\((\?\d?)\) (\w+)"), r"unnest(\1) AS \2(value)"),
    # SQLite starts at the subquery; PostgreSQL would compare every node with it.
    (
        re.compile(r"CROSS JOIN nodes n ON n\.row IN"),
        "JOIN nodes n ON n.content_key = k.value AND n.row IN",
    ),
    (re.compile(r"CROSS JOIN (\w+ \w+)(\s+)ON"), r"JOIN \1\2ON"),
    (re.compile(r"ON CONFLICT \("), "ON CONFLICT (tenant, "),
    (re.compile(r"text = \? COLLATE NOCASE"), 'folded = lower(? COLLATE "C")'),
)
_MARK = re.compile(r"\?(\d?)")


@cache
def translated_sql(sql: str) -> str:
    """Return a statement of the shared tables in PostgreSQL's words, its values as $1, $2, ...."""
    for pattern, words in _REWRITES:
        sql = pattern.sub(words, sql)
    marks = 0

    def numbered(mark: re.Match[str]) -> str:
        nonlocal marks
        marks += 1
        return f"${mark[1] or marks}"

    return _MARK.sub(numbered, sql)


@cache
def insert_sql(table: str, columns: tuple[str, ...], conflict: str) -> str:
    """Return the statement that inserts rows given as one array for each column."""
    arrays = ", ".join(
        f"${number}::{TYPES[COLUMNS[table][column][0]]}[]"
        for number, column in enumerate(columns, 1)
    )
    sql = f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"
    return translated_sql(f"{sql} ON CONFLICT {conflict}" if conflict else sql)


@cache
def insert_one_sql(table: str, columns: tuple[str, ...], conflict: str) -> str:
    """Return the statement that inserts one row, or changes the row that is there."""
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT {conflict}"
    return translated_sql(sql)


class RowNumbers(list["int | None"]):
    """Numbers, or None, as one value, which nobody changes."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Hash by the numbers: an answer is remembered by what was asked."""
        return hash(tuple(self))


class RowNumbersDumper(Dumper):
    """Sends numbers as int8[]: one type, so one prepared statement for lists of any length."""

    format = Format.BINARY
    oid = _INT8_ARRAY_OID

    def dump(self, obj: RowNumbers) -> bytes:
        """Return the array as PostgreSQL reads it."""
        if len(obj) >= _MANY and None not in obj:
            import numpy as np

            items = np.empty(len(obj), [("size", ">i4"), ("number", ">i8")])
            items["size"], items["number"] = _NUMBER_BYTES, obj
            return _array_head(len(obj), _INT8_OID) + items.tobytes()
        return _array_head(len(obj), _INT8_OID) + b"".join(
            [_MISSING if number is None else _ITEM.pack(_NUMBER_BYTES, number) for number in obj]
        )


class TextColumn(list["str | None"]):
    """Texts, or None, as one value."""


class BytesColumn(list["bytes | None"]):
    """Byte strings, or None, as one value."""


class TextColumnDumper(Dumper):
    """Sends texts as text[], without a look at the type of each."""

    format = Format.BINARY
    oid = _TEXT_ARRAY_OID

    def dump(self, obj: TextColumn) -> bytes:
        """Return the array as PostgreSQL reads it."""
        return _array(_TEXT_OID, [None if text is None else text.encode() for text in obj])


class BytesColumnDumper(Dumper):
    """Sends byte strings as bytea[]."""

    format = Format.BINARY
    oid = _BYTEA_ARRAY_OID

    def dump(self, obj: BytesColumn) -> bytes:
        """Return the array as PostgreSQL reads it."""
        return _array(_BYTEA_OID, obj)


def _array_head(items: int, oid: int) -> bytes:
    """Return what an array begins with: dimensions, whether some are missing, type, length."""
    shape = (1, 1, oid, items, 1) if items else (0, 0, oid)
    return b"".join([number.to_bytes(4, "big") for number in shape])


def _array(oid: int, items: Sequence[bytes | None]) -> bytes:
    parts = [_array_head(len(items), oid)]
    for item in items:
        if item is None:
            parts.append(_MISSING)
        else:
            size = len(item)
            parts.append(_SIZES[size] if size < len(_SIZES) else size.to_bytes(4, "big"))
            parts.append(item)
    return b"".join(parts)


_COLUMNS: dict[str, type[list[Any]]] = {"n": RowNumbers, "t": TextColumn, "b": BytesColumn}


def turned(table: str, columns: Sequence[str], rows: Sequence[Any]) -> list[list[Any]]:
    """Return rows as one list for each column."""
    letters = [COLUMNS[table][column][0] for column in columns]
    return [
        _COLUMNS.get(letter, list)(column)
        for letter, column in zip(letters, zip(*rows, strict=True), strict=True)
    ]


def teach_types(con: Connection[Any]) -> None:
    """Let a connection send every number as int8 and every text as text.

    By default psycopg chooses the smallest type that a number fits, so that one statement would be
    prepared again and again.
    """
    con.adapters.register_dumper(int, Int8BinaryDumper)
    con.adapters.register_dumper(str, StrBinaryDumper)
    con.adapters.register_dumper(RowNumbers, RowNumbersDumper)
    con.adapters.register_dumper(TextColumn, TextColumnDumper)
    con.adapters.register_dumper(BytesColumn, BytesColumnDumper)

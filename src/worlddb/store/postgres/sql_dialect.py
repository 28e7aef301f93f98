"""SQL dialect: the SQL of the shared tables as PostgreSQL reads it, and values as it takes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
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


class NumberArray(bytes):
    """Numbers as PostgreSQL reads them: one value of type int8[]."""

    @classmethod
    def of(cls, numbers: Any) -> NumberArray:
        """Return a list of numbers, or None, or a numpy array as an array."""
        head = _array_head(len(numbers), _INT8_OID)
        if not isinstance(numbers, list | tuple) or (len(numbers) >= _MANY and None not in numbers):
            import numpy as np

            items = np.empty(len(numbers), [("size", ">i4"), ("number", ">i8")])
            items["size"], items["number"] = _NUMBER_BYTES, numbers
            return cls(head + items.tobytes())
        packed = [_MISSING if one is None else _ITEM.pack(_NUMBER_BYTES, one) for one in numbers]
        return cls(head + b"".join(packed))


class TextArray(bytes):
    """Texts as PostgreSQL reads them: one value of type text[]."""

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> TextArray:
        """Return texts, or None, as an array."""
        try:
            items: list[bytes | None] = list(map(str.encode, texts))  # type: ignore[arg-type]
        except TypeError:  # Some are missing.
            items = [None if text is None else text.encode() for text in texts]
        return cls(_array(_TEXT_OID, items))


class BytesArray(bytes):
    """Byte strings as PostgreSQL reads them: one value of type bytea[]."""

    @classmethod
    def of(cls, items: Sequence[bytes | None]) -> BytesArray:
        """Return byte strings, or None, as an array."""
        return cls(_array(_BYTEA_OID, items))


class ArrayDumper(Dumper):
    """Sends what is an array already; its type is always the same, so it is prepared once."""

    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        """Return the array."""
        return obj


class NumberArrayDumper(ArrayDumper):
    """Sends numbers."""

    oid = _INT8_ARRAY_OID


class TextArrayDumper(ArrayDumper):
    """Sends texts."""

    oid = _TEXT_ARRAY_OID


class BytesArrayDumper(ArrayDumper):
    """Sends byte strings."""

    oid = _BYTEA_ARRAY_OID


class RowNumbersDumper(NumberArrayDumper):
    """Sends a list of numbers."""

    def dump(self, obj: RowNumbers) -> bytes:  # type: ignore[override]
        """Return the array."""
        return NumberArray.of(obj)


def _array_head(items: int, oid: int) -> bytes:
    """Return what an array begins with: dimensions, whether some are missing, type, length."""
    shape = (1, 1, oid, items, 1) if items else (0, 0, oid)
    return b"".join([number.to_bytes(4, "big") for number in shape])


def _array(oid: int, items: Sequence[bytes | None]) -> bytes:
    try:
        lengths = list(map(len, items))  # type: ignore[arg-type]
    except TypeError:  # Some are missing.
        sizes = [_MISSING if item is None else len(item).to_bytes(4, "big") for item in items]
        items = [item or b"" for item in items]
    else:
        if max(lengths, default=0) < len(_SIZES):
            sizes = list(map(_SIZES.__getitem__, lengths))
        else:
            sizes = [length.to_bytes(4, "big") for length in lengths]
    return _array_head(len(items), oid) + b"".join(
        chain.from_iterable(zip(sizes, items, strict=True))  # type: ignore[arg-type]
    )


_ARRAYS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "n": NumberArray.of,
    "t": TextArray.of,
    "b": BytesArray.of,
    "f": list,
}


def turned(table: str, columns: Sequence[str], rows: Sequence[Any]) -> list[Any]:
    """Return rows as one array for each column."""
    letters = [COLUMNS[table][column][0] for column in columns]
    return [
        _ARRAYS[letter](column)
        for letter, column in zip(letters, zip(*rows, strict=True), strict=True)
    ]


def teach_types(con: Connection[Any]) -> None:
    """Let a connection send every number as int8 and every text as text.

    By default psycopg chooses the smallest type that a number fits, so that one statement would be
    prepared again and again. psycopg itself prepares nothing: `ServerPipeline` does.
    """
    con.prepare_threshold = None
    con.adapters.register_dumper(int, Int8BinaryDumper)
    con.adapters.register_dumper(str, StrBinaryDumper)
    con.adapters.register_dumper(RowNumbers, RowNumbersDumper)
    con.adapters.register_dumper(NumberArray, NumberArrayDumper)
    con.adapters.register_dumper(TextArray, TextArrayDumper)
    con.adapters.register_dumper(BytesArray, BytesArrayDumper)

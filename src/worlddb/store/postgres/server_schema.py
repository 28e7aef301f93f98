"""Server schema: the tables of all tenants, their migrations, and the SQL dialect of PostgreSQL.

The tables are those of a file (`store/sqlite/schema.py` explains each), with a last column
`tenant`, with which every key begins. Beside them:

    heads      one row per tenant, locked by a writer until the end of its transaction, so a tenant
               has one writer at a time and tenants do not wait for each other; it counts the words
               of the tenant's texts
    words      the text index: the positions of each word in each node (`word_table`)
    side_lines lines outside the journal: the signing key and the record of reads; only the
               writer's role may read them, and adding a line takes no lock
    migrations the migrations of this module that the database has had

Row-level security limits every session, even the owner's, to the tenant that its transaction has
named (`worlddb.tenant`). Two roles have rights: `worlddb_reader` may read, `worlddb_writer` may
also write. A trigger refuses every write in a transaction that has not called `begin_write()`,
which takes the lock. Nodes, edges, notes, history and commits are never deleted.

PostgreSQL evaluates the conditions of row-level security first. An index serves a further condition
only if its operator is leakproof: comparisons of numbers and texts are, `@@` and `lower` are not.
Hence one row per word instead of a tsvector, and a folded copy of each alias.

`translated_sql` turns the SQL of the shared tables into PostgreSQL's. Lists of values are sent as
arrays, one per column.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from struct import Struct
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

from worlddb.errors import FormatError, InvalidInputError

READER, WRITER = "worlddb_reader", "worlddb_writer"
FIRST_TENANT = "main"
KEYS_OPTION = "backup_keys"
OURS = ("tenant", KEYS_OPTION)
"""What an address says to us, not to libpq."""
TYPES = {"n": "int8", "t": "text", "b": "bytea", "f": "float8"}
"""The SQL type for each letter in `_TABLES`."""
_SQL_TYPES = {**TYPES, "t": 'text COLLATE "C"'}  # Sorted by bytes, as SQLite does.
# table | key | columns: a number, unless a letter says text, bytes or float; ? may be missing.
_TABLES = """
nodes | row | row key id:b state:b? type:t name:t content:t created_at parent:n? valid_from
    valid_to:n? born blind:b content_key:n?
edges | row | row key id:b type:t source target world valid_from valid_to:n? metadata:t generation
    born gone:n?
commits | seq | seq time actor:t root_state:b hash:b nodes edges notes changes:t blind:b
notes | row | row node kind:t text:t born
history | field row seq | field:t row seq was:t?
proposals | edge | edge low high status:t tier:t score:f evidence:t born
conflicts | edge | edge low high reason:t born gone:n?
premises | premise edge | premise edge
registrations | world type | world type:t version:t functional born
pages | world kind path | world kind path:t fork body:b
waiting | seq | seq body:b
models | number | number id:t dim active pooling:t embedded composed seq
vectors | model node | model node vector:b
tokens | model node | model node vectors:b
pools | model node | model node children weight:f total:b vector:b seq
lookups | key node | key node
lookups_reached | number | number node note
lookups_worlds | world | world names
lookups_moved | node | node
recalls | node | node count last
words | word node | word:t node length named places:b
"""
_INDEXES = """
nodes key | nodes parent row | nodes content_key created_at | edges key | edges source type
edges target type | notes node kind | proposals low | proposals high | conflicts low
conflicts high | pools model seq
"""
NEVER_DELETED = ("nodes", "edges", "notes", "history", "commits")

Columns = dict[str, tuple[str, bool]]  # By column: the letter of its type, whether it may be NULL.


def _read_tables() -> tuple[dict[str, list[str]], dict[str, Columns]]:
    keys, columns = {}, {}
    for line in _TABLES.strip().replace("\n    ", " ").splitlines():
        table, key, listed = (part.strip() for part in line.split("|"))
        keys[table] = key.split()
        columns[table] = {
            name: (kind.rstrip("?") or "n", kind.endswith("?"))
            for name, _, kind in (column.partition(":") for column in listed.split())
        }
    return keys, columns


KEYS, COLUMNS = _read_tables()

_FUNCTIONS = """
CREATE FUNCTION tenant() RETURNS int4 LANGUAGE sql STABLE
    RETURN current_setting('worlddb.tenant')::int4;
CREATE FUNCTION instr(text, text) RETURNS int4 LANGUAGE sql IMMUTABLE RETURN strpos($1, $2);
CREATE FUNCTION zeroblob(int4) RETURNS bytea LANGUAGE sql IMMUTABLE
    RETURN decode(repeat('00', $1), 'hex');
CREATE FUNCTION former(int8) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'n' || $1;
CREATE FUNCTION former(bytea) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'b' || encode($1, 'hex');
CREATE FUNCTION former(text) RETURNS text LANGUAGE sql IMMUTABLE RETURN 't' || $1;
CREATE TABLE heads (
    tenant int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    texts int8 NOT NULL DEFAULT 0,
    words int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE FUNCTION find_tenant(wanted text) RETURNS int4 LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = worlddb, pg_temp
    RETURN (SELECT tenant FROM heads WHERE name = wanted);
CREATE FUNCTION create_tenant(wanted text) RETURNS int4 LANGUAGE sql SECURITY DEFINER
    SET search_path = worlddb, pg_temp
    BEGIN ATOMIC
        INSERT INTO heads (name) VALUES (wanted) ON CONFLICT DO NOTHING;
        SELECT tenant FROM heads WHERE name = wanted;
    END;
CREATE FUNCTION begin_write() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM worlddb.heads WHERE tenant = worlddb.tenant() FOR UPDATE;
    PERFORM set_config('worlddb.writing', pg_current_xact_id()::text, true);
END $$;
CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('worlddb.writing', true) IS DISTINCT FROM pg_current_xact_id()::text
        OR TG_OP = 'TRUNCATE' OR (TG_OP = 'DELETE' AND TG_TABLE_NAME = ANY (TG_ARGV)) THEN
        RAISE EXCEPTION 'WorldDB: % are written by edge handlers only', TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;
"""
_ROLES = f"""
DO $$ BEGIN
    CREATE ROLE {READER} NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN
    CREATE ROLE {WRITER} NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
GRANT {READER}, {WRITER} TO CURRENT_USER;
GRANT USAGE ON SCHEMA worlddb TO {READER}, {WRITER};
"""


def _policy(table: str, *, is_forced: bool = True) -> str:
    forced = f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY;" if is_forced else ""
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; {forced}"
        f"CREATE POLICY inside ON {table} USING (tenant = tenant()) WITH CHECK (tenant = tenant());"
        f"GRANT SELECT ON {table} TO {READER}, {WRITER};"
    )


def _table(name: str) -> str:
    columns = [
        f"{column} {_SQL_TYPES[letter]}{'' if is_optional else ' NOT NULL'}"
        for column, (letter, is_optional) in COLUMNS[name].items()
    ]
    columns.append("tenant int4 NOT NULL DEFAULT tenant()")
    key = ", ".join(["tenant", *KEYS[name]])
    never = ", ".join(f"'{table}'" for table in NEVER_DELETED)
    return (
        f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key}));"
        f"{_policy(name)} GRANT INSERT, UPDATE, DELETE ON {name} TO {WRITER};"
        f"CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {name} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION guard({never});"
    )


def _first(con: Any) -> None:
    """Make every table, function and right."""
    con.execute(_ROLES + _FUNCTIONS + "".join(map(_table, COLUMNS)))
    for index in " | ".join(_INDEXES.strip().splitlines()).split("|"):
        table, *columns = index.split()
        con.execute(f"CREATE INDEX ON {table} (tenant, {', '.join(columns)})")
    con.execute(
        'ALTER TABLE notes ADD COLUMN folded text COLLATE "C" GENERATED ALWAYS AS '
        "(CASE WHEN kind = 'alias' THEN lower(text) END) STORED;"
        "CREATE INDEX ON notes (tenant, folded) WHERE folded IS NOT NULL;"
        # Not forced: the two functions that find and make tenants run as the owner.
        f"{_policy('heads', is_forced=False)} GRANT UPDATE ON heads TO {WRITER};"
    )


def _second(con: Any) -> None:
    """Make the table of what a file has beside it."""
    con.execute(
        "CREATE TABLE side_lines (tenant int4 NOT NULL DEFAULT tenant(), name text NOT NULL, "
        "number int8 GENERATED ALWAYS AS IDENTITY, line text NOT NULL, "
        "PRIMARY KEY (tenant, name, number));"
        f"{_policy('side_lines')} REVOKE SELECT ON side_lines FROM {READER};"
        f"GRANT INSERT, DELETE ON side_lines TO {WRITER};"
    )


def _third(con: Any) -> None:
    """Change no table: a row of `words` may be a list, which older programs misread."""


MIGRATIONS: tuple[Callable[[Any], None], ...] = (_first, _second, _third)
"""Never edited once released; a change of the tables is another function."""
_LOCK = 0x57724442  # "WrDB": the advisory lock for migrations


def format_of_server(con: Any, address: str) -> int:
    """Return the format of a database; 0 if it has no store."""
    if con.execute("SELECT to_regclass('worlddb.migrations')").fetchone()[0] is None:
        return 0
    version = con.execute("SELECT coalesce(max(number), 0) FROM worlddb.migrations").fetchone()[0]
    if version > len(MIGRATIONS):
        raise FormatError(
            f"{address}: has format {version}, this version reads up to {len(MIGRATIONS)}; install "
            "a newer worlddb"
        )
    return int(version)


def migrate_server(con: Any, address: str) -> None:
    """Migrate a database to the present format: each step once, in one locked transaction."""
    if format_of_server(con, address) == len(MIGRATIONS):
        return
    with con.transaction():
        con.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        version = format_of_server(con, address)
        if version == 0:
            con.execute(
                "CREATE SCHEMA IF NOT EXISTS worlddb; CREATE TABLE worlddb.migrations "
                "(number int4 PRIMARY KEY, done_at timestamptz NOT NULL DEFAULT now())"
            )
            con.execute(_ROLES + f"GRANT SELECT ON worlddb.migrations TO {READER}, {WRITER}")
        con.execute("SET LOCAL search_path = worlddb")
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            step(con)
            con.execute(f"INSERT INTO migrations (number) VALUES ({number})")


_INT8_ARRAY_OID = 1016  # the type int8[] in every PostgreSQL
_TEXT_ARRAY_OID, _BYTEA_ARRAY_OID = 1009, 1001  # Those of text[] and bytea[].
_INT8_OID, _TEXT_OID, _BYTEA_OID = 20, 25, 17
_NUMBER_BYTES = 8  # An int8.
_MANY = 64  # items; from here on numpy is faster than a loop
_SIZES = tuple(size.to_bytes(4, "big") for size in range(256))  # the usual sizes of words
_ITEM = Struct(">iq")  # the size of a number, and the number
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
    (re.compile(r"lower\(hex\((\S+?)\)\)"), r"encode(\1, 'hex')"),
    (re.compile(r"text = \? COLLATE NOCASE"), 'folded = lower(? COLLATE "C")'),
)
_MARK = re.compile(r"\?(\d?)")


@cache
def translated_sql(sql: str) -> str:
    """Return a statement of the shared tables in PostgreSQL's dialect, with values $1, $2, …."""
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
    """Numbers, or None, as one immutable value."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Hash by the numbers: answers are cached by query and values."""
        return hash(tuple(self))


class NumberArray(bytes):
    """Numbers in PostgreSQL's format: one value of type int8[]."""

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
    """Texts in PostgreSQL's format: one value of type text[]."""

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> TextArray:
        """Return texts, or None, as an array."""
        try:
            items: list[bytes | None] = list(map(str.encode, texts))  # type: ignore[arg-type]
        except TypeError:  # Some are missing.
            items = [None if text is None else text.encode() for text in texts]
        return cls(_array(_TEXT_OID, items))


class BytesArray(bytes):
    """Byte strings in PostgreSQL's format: one value of type bytea[]."""

    @classmethod
    def of(cls, items: Sequence[bytes | None]) -> BytesArray:
        """Return byte strings, or None, as an array."""
        return cls(_array(_BYTEA_OID, items))


class ArrayDumper(Dumper):
    """Sends arrays that are encoded already; the type is constant, so one preparation suffices."""

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
    """Return the header of an array: dimensions, whether it has NULLs, type, length."""
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

    By default psycopg chooses the smallest type for a number, so one statement would be prepared
    many times. psycopg itself prepares nothing: `ServerPipeline` does.
    """
    con.prepare_threshold = None
    con.adapters.register_dumper(int, Int8BinaryDumper)
    con.adapters.register_dumper(str, StrBinaryDumper)
    con.adapters.register_dumper(RowNumbers, RowNumbersDumper)
    con.adapters.register_dumper(NumberArray, NumberArrayDumper)
    con.adapters.register_dumper(TextArray, TextArrayDumper)
    con.adapters.register_dumper(BytesArray, BytesArrayDumper)


def split_address(address: str) -> tuple[str, str, str, str | None]:
    """Return the address for libpq, the tenant, the address to show, and the file of backup keys.

    Ours in the address are `?tenant=NAME` and `&backup_keys=FILE`. A password is not shown.
    """
    try:
        parts = urlsplit(address)
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError as error:
        raise InvalidInputError(f"the address of a database is wrong: {error}") from None
    tenant = dict(options).get("tenant", FIRST_TENANT)
    keys = dict(options).get(KEYS_OPTION)
    if not tenant or "\0" in tenant:
        raise InvalidInputError("tenant: give a name, as postgresql://host/database?tenant=NAME")
    if keys is not None and not os.path.isabs(keys):
        raise InvalidInputError(f"{KEYS_OPTION}: give a whole path, such as /home/ada/backup-keys")
    # libpq takes a plus for a plus.
    rest = urlencode([one for one in options if one[0] not in OURS], quote_via=quote)
    login, at, host = parts.netloc.rpartition("@")
    start = f"{parts.scheme}://"
    given = f"{start}{parts.netloc}{parts.path}?{rest}"
    shown = f"{start}{login.partition(':')[0]}{at}{host}{parts.path}"
    return given, tenant, shown if tenant == FIRST_TENANT else f"{shown}?tenant={tenant}", keys

"""Mending: which derived rows and indexes are lost, and the statements that let them be made again.

What is derived knows how far it has come. Where rows are gone that should be there, it is said to
have come less far, and whoever follows makes the rest. Words and indexes are made at once.
"""

from __future__ import annotations

from typing import Any

import apsw

from worlddb.store.sqlite.schema import INDEX_TEXTS, ROOT_ROW, TEXTS, create

Statement = tuple[str, tuple[Any, ...]]

MADE_AGAIN = frozenset(
    {
        "texts",
        "models",
        "vectors",
        "tokens",
        "pools",
        "lookups",
        "lookups_reached",
        "lookups_worlds",
        "lookups_moved",
    }
)
"""Tables of which nothing is lost if they are: the others are the store itself."""
FTS_RECORDS = (1, 10)
"""Where FTS5 keeps its totals, and which segments it has."""


def lost_tables(con: apsw.Connection) -> list[Statement]:
    """Return what makes the derived tables and the indexes that a new store has and this has not.

    What they are missing in rows is only seen when they are there.
    """
    fresh = apsw.Connection(":memory:")
    try:
        create(fresh)
        sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC"
        expected = list(fresh.execute(sql))
    finally:
        fresh.close()
    there = {name for (name,) in con.execute("SELECT name FROM sqlite_schema")}
    return [
        (str(statement), ())
        for kind, name, statement in expected
        if name not in there and (kind == "index" or name in MADE_AGAIN)
    ]


def lost_rows(con: apsw.Connection) -> list[Statement]:
    """Return what lets lost rows of derived tables be made again."""
    found = _texts(con) + _lookups(con)
    for number, embedded, composed in con.execute("SELECT number, embedded, composed FROM models"):
        found += _vectors(con, number, embedded) or _pools(con, number, composed)
    return found


def _texts(con: apsw.Connection) -> list[Statement]:
    indexed = con.execute("SELECT count(*) FROM texts_docsize").get
    records: int = con.execute(
        "SELECT count(*) FROM texts_data WHERE id IN (?, ?)", FTS_RECORDS
    ).get
    if indexed == con.execute("SELECT count(*) FROM nodes").get and records == len(FTS_RECORDS):
        return []
    return [("DROP TABLE texts", ()), (TEXTS, ()), (INDEX_TEXTS, (0,))]


def _lookups(con: apsw.Connection) -> list[Statement]:
    """Begin anew if a node that was filed is not: names may have no keys, contents have one."""
    tables = ("lookups", "lookups_reached", "lookups_worlds", "lookups_moved")
    reached = con.execute("SELECT node FROM lookups_reached").get
    if reached is None:
        begun = [con.execute(f"SELECT 1 FROM {table} LIMIT 1").get for table in tables]
        is_lost = any(begun)
    else:
        missing = con.execute(
            "SELECT 1 FROM nodes WHERE row BETWEEN ? AND ? AND content != '' "
            "AND row NOT IN (SELECT node FROM lookups) LIMIT 1",
            (ROOT_ROW + 1, reached),
        ).get
        has_keys = con.execute("SELECT 1 FROM lookups LIMIT 1").get
        has_names = con.execute("SELECT 1 FROM lookups_worlds LIMIT 1").get
        is_lost = bool(missing or (has_names and not has_keys))
    return [(f"DELETE FROM {table}", ()) for table in tables] if is_lost else []


def _vectors(con: apsw.Connection, number: int, embedded: int) -> list[Statement]:
    """Let a model have come as far as its vectors have no gap."""
    sound = (number, ROOT_ROW + 1, embedded)
    there: int = con.execute(
        "SELECT count(*) FROM vectors WHERE model = ? AND node BETWEEN ? AND ?", sound
    ).get
    if there == embedded - ROOT_ROW:
        return []
    gap: int | None = con.execute(
        "SELECT place FROM (SELECT node, row_number() OVER (ORDER BY node) + ? AS place "
        "FROM vectors WHERE model = ? AND node BETWEEN ? AND ?) WHERE node != place LIMIT 1",
        (ROOT_ROW, *sound),
    ).get
    last = ROOT_ROW + there if gap is None else gap - 1
    beyond = [
        (f"DELETE FROM {table} WHERE model = ? AND node > ?", (number, last))
        for table in ("vectors", "tokens")
    ]
    reached = ("UPDATE models SET embedded = ? WHERE number = ?", (last, number))
    return [*beyond, reached, *_compose_anew(number)]


def _pools(con: apsw.Connection, number: int, composed: int) -> list[Statement]:
    """Compose anew if a world with a child that counts is not composed."""
    missing = con.execute(
        "SELECT 1 FROM nodes n WHERE parent BETWEEN ? AND ? AND row <= ? "
        "AND parent NOT IN (SELECT node FROM pools WHERE model = ?) AND NOT EXISTS "
        "(SELECT 1 FROM history h WHERE h.field = 'node.valid_to' AND h.row = n.row) LIMIT 1",
        (ROOT_ROW + 1, composed, composed, number),
    ).get
    return _compose_anew(number) if missing else []


def _compose_anew(number: int) -> list[Statement]:
    return [
        ("DELETE FROM pools WHERE model = ?", (number,)),
        ("UPDATE models SET composed = 1, seq = -1 WHERE number = ?", (number,)),
    ]

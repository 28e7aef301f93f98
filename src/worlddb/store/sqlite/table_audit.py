"""Table audit: compares a file with what it should contain, and repairs lost derived rows.

Derived tables record the last commit they have reached. If rows are missing, the repair sets that
back, and the code that follows the journal makes the rows again. Words and indexes are rebuilt at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from typing import Any

import apsw

from worlddb.language.text_tokens import MARKS, indexed, indexed_content, language_of
from worlddb.model.records import NAME_CHARS_MAX, NOT_NAMED
from worlddb.store.rows import ROOT_ROW
from worlddb.store.sqlite.database_file import FORGET_SUMS, SUMMED, FileSession, stored_sums, sum_of
from worlddb.store.sqlite.schema import INDEX_TEXTS, TEXTS, USUAL_HASH_BYTES, USUAL_MERGE, create
from worlddb.store.tables.derived_tables import EMBEDDING_TABLES
from worlddb.store.tables.sql_session import TableScan


class FileScan(TableScan):
    """Reads every row of a file's tables once, and compares the file with a new one."""

    def __init__(self, session: FileSession) -> None:
        super().__init__(session)
        self._con = session.con

    def schema_problems(self) -> list[str]:
        """Return the differences of tables, indexes and guards from those of a new store."""
        # The table of recall counts exists only if there are some.
        sql = (
            "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' "
            "AND name != 'recalls'"
        )
        with closing(apsw.Connection(":memory:")) as fresh:
            create(fresh)
            expected, found = dict(fresh.execute(sql)), dict(self._con.execute(sql))
        return [
            f"{name} is not as it was made"
            for name in sorted(expected.keys() | found.keys())
            if expected.get(name, 0) != found.get(name, 0)
        ]

    def edited_tables(self) -> list[str]:
        return edited_tables(self._con)

    def text_problems(self) -> list[str]:
        """Index every node's text again beside the store and compare the two, word by word.

        A node indexed before languages were distinguished has English stems, by which it is found;
        `reindex` indexes it again.
        """
        marked = _marked(self._con)
        stored = self._con.execute("SELECT row, name, content FROM nodes ORDER BY row")
        with closing(apsw.Connection(":memory:")) as fresh:
            fresh.execute(TEXTS)
            fresh.execute("BEGIN")
            fresh.executemany(
                "INSERT INTO texts (rowid, name, content) VALUES (?, ?, ?)",
                (
                    (row, indexed(str(name)), (indexed_content if row in marked else indexed)(text))
                    for row, name, text in stored
                ),
            )
            fresh.execute("COMMIT")
            return (
                _compare("words", _words(self._con), _words(fresh))
                or _compare("lengths", _lengths(self._con), _lengths(fresh))
                or _compare("settings", _settings(self._con), _settings(fresh))
            )


def edited_tables(con: apsw.Connection) -> list[str]:
    """Return the tables with rows that another program changed, added or removed."""
    stored = stored_sums(con)
    if not stored:
        return []
    tables = sorted(stored.keys() | SUMMED.keys())
    return [table for table in tables if stored.get(table) != sum_of(con, table)]


def _marked(con: apsw.Connection) -> set[int]:
    """Return the nodes whose content is indexed with stems of another language than English."""
    terms = _marked_terms(con)
    con.execute("DROP TABLE IF EXISTS temp.words")
    con.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, texts, instance)")
    sql = "SELECT doc FROM temp.words WHERE term = ?"
    return {doc for term in terms for (doc,) in con.execute(sql, (term,))}


def _marked_terms(con: apsw.Connection) -> list[str]:
    """Return the stems of other languages than English that the index has."""
    con.execute("DROP TABLE IF EXISTS temp.vocabulary")
    con.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, texts, row)")
    found = con.execute("SELECT term FROM temp.vocabulary")
    return [str(term) for (term,) in found if str(term)[-1:] in MARKS]


def _words(con: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield (term, row, column, offset) of every word in the index."""
    con.execute("DROP TABLE IF EXISTS temp.words")
    con.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, texts, instance)")
    return iter(con.execute('SELECT term, doc, col, "offset" FROM temp.words'))


def _lengths(con: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield the numbers used for ranking: the words per node, and (row 0) the totals."""
    yield from con.execute("SELECT 0, block FROM texts_data WHERE id = 1")
    yield from con.execute("SELECT id, sz FROM texts_docsize ORDER BY id")


def _settings(con: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield the index's settings; the two that a load changes return to these defaults."""
    usual = {"hashsize": USUAL_HASH_BYTES, "automerge": USUAL_MERGE}
    for key, value in con.execute("SELECT k, v FROM texts_config ORDER BY k"):
        if usual.get(str(key)) != value:
            yield key, value


def _compare(what: str, stored: Iterator[Any], fresh: Iterator[Any]) -> list[str]:
    for one, other in zip_longest(stored, fresh):
        if one != other:
            return [f"{what}: the index says {one}, the nodes say {other}"]
    return []


# -- repair ----------------------------------------------------------------------------------------

Statement = tuple[str, tuple[Any, ...]]

LOOKUP_TABLES = ("lookups", "lookups_reached", "lookups_worlds", "lookups_moved")
MADE_AGAIN = frozenset({"texts", "models", "vectors", "tokens", "pools", *LOOKUP_TABLES})
"""Tables that can be lost without loss of data; the other tables are the store itself."""
FTS_RECORDS = (1, 10)  # FTS5's records of its totals and of its segments


def lost_tables(con: apsw.Connection) -> list[Statement]:
    """Return the statements that create missing derived tables and indexes."""
    sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC"
    with closing(apsw.Connection(":memory:")) as fresh:
        create(fresh)
        expected = list(fresh.execute(sql))
    there = {name for (name,) in con.execute("SELECT name FROM sqlite_schema")}
    return [
        (str(statement), ())
        for kind, name, statement in expected
        if name not in there and (kind == "index" or name in MADE_AGAIN)
    ]


def edited_rows(con: apsw.Connection) -> list[Statement]:
    """Return the statements that reset tables which another program edited, by their sums.

    A sum does not say which row was edited, so all rows are made again; counts of recalls cannot be
    derived, and stay as they are.
    """
    edited = set(edited_tables(con))
    found: list[Statement] = [(FORGET_SUMS, ())] if edited else []
    if edited & set(LOOKUP_TABLES):
        found += [(f"DELETE FROM {table}", ()) for table in LOOKUP_TABLES]
    if "models" in edited:
        found.append(("DELETE FROM models", ()))
    if edited & {"models", *EMBEDDING_TABLES}:
        found += [(f"DELETE FROM {table}", ()) for table in EMBEDDING_TABLES]
        found.append(("UPDATE models SET embedded = ?1, composed = ?1, seq = -1", (ROOT_ROW,)))
    return found


def lost_rows(con: apsw.Connection) -> list[Statement]:
    """Return the statements that reset derived tables with lost rows."""
    found = _texts(con) + _lookups(con)
    for number, embedded, composed in con.execute("SELECT number, embedded, composed FROM models"):
        found += _vectors(con, number, embedded) or _pools(con, number, composed)
    # The sums still count the lost rows; the remaining rows need not be made again.
    return [(FORGET_SUMS, ()), *found] if found else []


def _texts(con: apsw.Connection) -> list[Statement]:
    indexed = con.execute("SELECT count(*) FROM texts_docsize").get
    records: int = con.execute(
        "SELECT count(*) FROM texts_data WHERE id IN (?, ?)", FTS_RECORDS
    ).get
    if indexed == con.execute("SELECT count(*) FROM nodes").get and records == len(FTS_RECORDS):
        contents = con.execute("SELECT content FROM nodes")
        if _marked_terms(con) or not any(language_of(str(text)) for (text,) in contents):
            return []  # else it is an index from before languages were told apart
    return [("DROP TABLE texts", ()), (TEXTS, ()), (INDEX_TEXTS, (0,))]


def _lookups(con: apsw.Connection) -> list[Statement]:
    """Start again if an indexed node has no keys; a name without letters may have none."""
    reached = con.execute("SELECT node FROM lookups_reached WHERE number = 0").get
    if reached is None:
        is_lost = any(con.execute(f"SELECT 1 FROM {it} LIMIT 1").get for it in LOOKUP_TABLES)
    else:
        missing = con.execute(
            "SELECT 1 FROM nodes WHERE row BETWEEN ? AND ? AND name GLOB '*[a-zA-Z]*' "
            f"AND length(name) <= ? AND type NOT IN ({', '.join('?' * len(NOT_NAMED))}) "
            "AND row NOT IN (SELECT node FROM lookups) LIMIT 1",
            (ROOT_ROW + 1, reached, NAME_CHARS_MAX, *sorted(NOT_NAMED)),
        ).get
        has_keys = con.execute("SELECT 1 FROM lookups LIMIT 1").get
        has_names = con.execute("SELECT 1 FROM lookups_worlds LIMIT 1").get
        is_lost = bool(missing or (has_names and not has_keys))
    return [(f"DELETE FROM {table}", ()) for table in LOOKUP_TABLES] if is_lost else []


def _vectors(con: apsw.Connection, number: int, embedded: int) -> list[Statement]:
    """Set a model back to the last vector before a gap."""
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
    """Compose again if a world with a child that counts is not composed."""
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

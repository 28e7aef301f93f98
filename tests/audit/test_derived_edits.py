"""check() of derived tables: no field of any row can be changed, and no row lost or added, unseen.

The tables and columns are those of the file, so a new one is tried without a word here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from index.test_tokens import ReadingEmbedder
from worlddb import Memory
from worlddb.store.sqlite.database_file import SUMMED
from worlddb.store.sqlite.schema import create

from .test_store_check import KEYS as JOURNALED

TABLES = (*SUMMED,)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    path = tmp_path_factory.mktemp("derived") / "store.db"
    with Memory(path, embedder=ReadingEmbedder(), recluster="now") as memory:
        memory.write("My friend Sarah Chen met Tom Berg in Oslo.", user_id="ada")
        memory.write("Sarah Chen likes tea and the red bike.", app_id="shop")
        memory.recall("Sarah Chen", user_id="ada")
        memory.db.reindex()
        with memory.db.transaction() as tx:  # Its home is moved, and nobody files it anew.
            node = tx.create_node(type="Entity", name="Tom Berg").id
            tx.write_edge("contains", tx.create_node(type="Topic", name="people").id, node)
    with Memory(path, embedder=ReadingEmbedder()) as memory:
        assert memory.db.check() == []
        yield memory


@pytest.fixture
def con(memory: Memory) -> Iterator[apsw.Connection]:
    """A stranger's connection, which leaves the store as it was."""
    with closing(apsw.Connection(str(memory.db.path))) as con:
        con.pragma("synchronous", "off")
        yield con
    assert memory.db.check() == []


def columns(con: apsw.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in con.execute(f"PRAGMA table_info({table})")]


def keys(con: apsw.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in con.execute(f"PRAGMA table_info({table})") if row[5]]


def changed(value: Any) -> Any:
    """Return the least other value."""
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    if isinstance(value, bytes):
        return value[:-1] + bytes([value[-1] ^ 1])
    return value + (1 if isinstance(value, int) else "x")


def test_every_table_is_covered_by_addresses_words_or_sums() -> None:
    with closing(apsw.Connection(":memory:")) as con:
        create(con)
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        found = {str(name) for (name,) in con.execute(sql)}
    words = {name for name in found if name.startswith("texts")}
    assert found == {*JOURNALED, *SUMMED, *words} - {"recalls"}


@pytest.mark.parametrize("table", TABLES)
def test_the_least_change_of_any_field_is_found(
    memory: Memory, con: apsw.Connection, table: str
) -> None:
    names = columns(con, table)
    where = " AND ".join(f"{name} IS ?" for name in keys(con, table))
    row = con.execute(f"SELECT * FROM {table}").fetchall()[-1]
    for place, name in enumerate(names):
        new = (*row[:place], changed(row[place]), *row[place + 1 :])
        for old, now in ((row, new), (new, row)):
            key = [old[names.index(one)] for one in keys(con, table)]
            con.execute(f"UPDATE {table} SET {name} = ? WHERE {where}", (now[place], *key))
            assert con.changes() == 1
            found = [problem.place for problem in memory.db.check()] if now is new else []
            assert bool(found) == (now is new), (table, name)


@pytest.mark.parametrize("table", TABLES)
def test_a_row_that_was_lost_or_added_is_found(
    memory: Memory, con: apsw.Connection, table: str
) -> None:
    rows: list[tuple[Any, ...]] = con.execute(f"SELECT * FROM {table}").fetchall()
    marks = ", ".join("?" * len(rows[0]))
    with con:
        con.execute(f"DELETE FROM {table}")
        con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[:-1])
    assert memory.db.check() != []
    added = tuple(changed(value) for value in rows[-1])
    con.executemany(f"INSERT INTO {table} VALUES ({marks})", [rows[-1], added])
    assert memory.db.check() != []
    with con:
        con.execute(f"DELETE FROM {table}")
        con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def test_reindex_makes_again_what_another_program_changed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    edits = (
        "UPDATE vectors SET vector = (SELECT vector FROM vectors LIMIT 1)",
        "UPDATE models SET pooling = 'mean'",
        "UPDATE lookups SET key = key + 1",
        "UPDATE recalls SET count = count + 1",
    )
    with Memory(path, embedder="hash-16", recluster="now") as memory:
        memory.write("My friend Sarah Chen met Tom Berg in Oslo.", user_id="ada")
        memory.recall("Sarah Chen", user_id="ada")
    for edit in edits:
        with closing(apsw.Connection(str(path))) as con:
            con.execute(edit)
        with Memory(path, embedder="hash-16") as memory:
            assert memory.db.check() != [], edit
            memory.db.reindex()
            assert memory.db.check() == [], edit
            assert memory.recall("Who met Tom Berg?", user_id="ada").hits


def test_a_store_without_sums_gets_them_with_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Memory(path, embedder="none") as memory:
        memory.write("Sarah Chen likes tea.")
    with closing(apsw.Connection(str(path))) as con:
        con.execute("DELETE FROM lookups_reached WHERE number > 0")
        assert con.changes() == len(SUMMED)
    with Memory(path, embedder="none") as memory:
        assert memory.db.check() == []
        memory.write("Tom Berg likes coffee.")
        assert memory.db.check() == []
    with closing(apsw.Connection(str(path))) as con:
        con.execute("UPDATE lookups_worlds SET names = names + 1")
    with Memory(path, embedder="none") as memory:
        assert {"lookups_worlds"} <= {problem.place for problem in memory.db.check()}

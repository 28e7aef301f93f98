"""The guard: whoever is not the engine cannot write to the file, even with a plain SQLite."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb.store.sqlite.schema import GUARDED

from .processes import Child, StartChild, commit_one, picture

COLUMNS = {
    "nodes": "content",
    "edges": "metadata",
    "commits": "actor",
    "history": "was",
    "notes": "text",
    "pages": "body",
    "waiting": "body",
    "proposals": "status",
    "conflicts": "reason",
    "registrations": "version",
    "premises": "edge",
}
"""The guarded tables, each with a column worth changing."""
TABLES = tuple(COLUMNS)


def attacks(table: str) -> list[str]:
    """Return the ways to write to a table."""
    column = COLUMNS[table]
    return [
        f"INSERT INTO {table} SELECT * FROM {table}",
        f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        f"INSERT OR IGNORE INTO {table} SELECT * FROM {table}",
        f"INSERT INTO {table} DEFAULT VALUES",
        f"REPLACE INTO {table} SELECT * FROM {table} LIMIT 1",
        f"UPDATE {table} SET {column} = {column}",
        f"UPDATE {table} SET {column} = 'x'",
        f"UPDATE OR REPLACE {table} SET {column} = 'x'",
        f"DELETE FROM {table}",
        f"WITH one AS (SELECT 1) DELETE FROM {table} WHERE 1 IN one",
    ]


@pytest.fixture
def full(path: Path) -> Path:
    """Return the path of a closed store with a row in every table."""
    with worlddb.open(path) as db, db.transaction() as tx:
        # So many that their pages are written at once.
        tx.create_nodes(worlddb.NodeDraft(type="Turn", name=f"{i}") for i in range(300))
    with worlddb.open(path) as db, db.transaction() as tx:
        old = tx.create_node(type="Fact", name="old", aliases=["o"], source="a diary")
        new = tx.create_node(type="Fact", name="new")
        tx.write_edge("supersedes", new.id, old.id)
        tx.write_edge("same_as", new.id, old.id)
        link = tx.write_edge("contradicts", new.id, old.id)
        inferred = {"inferred": True, "premises": [str(link.id)]}
        tx.write_edge("implies", new.id, old.id, metadata=inferred)
        tx.register(old.id, "likes", "1", False)
    return path


def rows_of(db: worlddb.WorldDB) -> dict[str, list[Any]]:
    """Return every row of every guarded table."""
    with db.engine.store.read() as reader:
        return {name: reader.con.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}  # type: ignore[attr-defined]


def schema_of(db: worlddb.WorldDB) -> list[Any]:
    """Return every table, index and trigger as the statement that made it."""
    with db.engine.store.read() as reader:
        sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
        return reader.con.execute(sql).fetchall()  # type: ignore[attr-defined, no-any-return]


def settings_of(db: worlddb.WorldDB) -> list[Any]:
    """Return what the text index has been told about itself."""
    with db.engine.store.read() as reader:
        return reader.con.execute("SELECT * FROM texts_config ORDER BY k").fetchall()  # type: ignore[attr-defined, no-any-return]


DERIVED = {
    *("models", "vectors", "tokens", "pools"),
    *("lookups", "lookups_reached", "lookups_worlds", "lookups_moved"),
}


def test_every_table_that_is_not_derived_has_a_guard(full: Path) -> None:
    assert sorted(TABLES) == sorted(GUARDED)
    with worlddb.open(full) as db, db.engine.store.read() as reader:
        tables = reader.con.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")  # type: ignore[attr-defined]
        names = {name for (name,) in tables if not name.startswith("texts")}
        assert names - DERIVED == set(TABLES)
    with worlddb.open(full) as db:
        assert all(rows_of(db).values())


def test_a_plain_sqlite_cannot_write_to_any_table(full: Path, start: StartChild) -> None:
    with worlddb.open(full) as db:
        before = picture(db), rows_of(db), schema_of(db)
    child = start("stranger", full)
    for table in TABLES:
        for statement, error in zip(attacks(table), child.tell(*attacks(table)), strict=True):
            assert error is not None, statement
    child.rest()
    with worlddb.open(full) as db:
        assert (picture(db), rows_of(db), schema_of(db)) == before
        assert db.check() == []
        commit_one(db, "our own writer still can")
        assert db.check() == []


def test_a_plain_sqlite_is_told_why(full: Path, start: StartChild) -> None:
    child = start("stranger", full)
    said = child.tell("INSERT INTO edges SELECT * FROM edges", "DELETE FROM edges")
    assert all("worlddb" in error.lower() for error in said)


def test_a_plain_sqlite_can_read(full: Path, start: StartChild) -> None:
    assert start("stranger", full).tell("SELECT * FROM nodes", "SELECT * FROM commits") == [
        None,
        None,
    ]


def test_another_connection_of_our_own_library_cannot_write_either(full: Path) -> None:
    with worlddb.open(full) as db:
        before = rows_of(db)
        con = apsw.Connection(str(full))
        for table in TABLES:
            for statement in attacks(table):
                with pytest.raises(apsw.Error):
                    con.execute(statement)
        con.close()
        assert rows_of(db) == before
        assert db.check() == []


@pytest.mark.parametrize("table", ["nodes", "edges", "notes", "history", "commits"])
def test_nothing_is_deleted_even_on_our_own_connection(full: Path, table: str) -> None:
    with worlddb.open(full) as db:
        before = rows_of(db)
        with pytest.raises(apsw.ConstraintError, match="WorldDB"):
            db.engine.store._writer.execute(f"DELETE FROM {table}")  # type: ignore[attr-defined]
        with (
            pytest.raises((apsw.ConstraintError, worlddb.WorldDBError)),
            db.engine.store.write() as writer,
        ):
            writer.con.execute(f"DELETE FROM {table}")  # type: ignore[attr-defined]
        assert rows_of(db) == before
        commit_one(db)
        assert db.check() == []


def test_reading_connections_cannot_write(full: Path) -> None:
    with worlddb.open(full) as db, db.engine.store.read() as reader:
        for table in TABLES:
            for statement in attacks(table):
                with pytest.raises(apsw.Error):
                    reader.con.execute(statement)  # type: ignore[attr-defined]


# -- around a bulk load --------------------------------------------------------------------------


def load(tx: worlddb.Transaction) -> None:
    """Write enough that every deferred structure has something to hold."""
    ids = tx.create_nodes(
        worlddb.NodeDraft(type="Turn", name=f"turn {i}", content="words") for i in range(300)
    )
    links = [worlddb.EdgeDraft(source=a, target=b) for a, b in pairwise(ids)]
    tx.write_edges("refers_to", links)


def attack(child: Child) -> None:
    """Try to write to every table."""
    for table in TABLES:
        for statement, error in zip(attacks(table), child.tell(*attacks(table)), strict=True):
            assert error is not None, statement


def test_the_guard_holds_while_a_bulk_load_is_open(full: Path, start: StartChild) -> None:
    with worlddb.open(full) as db:
        before = rows_of(db)
        child = start("stranger", full)
        with db.transaction(bulk=True) as tx:
            attack(child)
            load(tx)
            attack(child)
            assert rows_of(db) == before
        attack(child)
        assert len(db.log()) == 4
        assert db.check() == []


@pytest.mark.parametrize("end", ["commit", "roll back", "refusal", "empty"])
def test_guards_and_indexes_are_back_after_a_bulk_load(
    full: Path, start: StartChild, end: str
) -> None:
    with worlddb.open(full) as db:
        before = schema_of(db), settings_of(db)
        try:
            with db.transaction(bulk=True) as tx:
                if end != "empty":
                    load(tx)
                if end == "roll back":
                    raise ValueError("stop")
                if end == "refusal":
                    node = tx.create_node(type="Fact")
                    tx.write_edge("supersedes", node.id, node.id)
        except (ValueError, worlddb.RejectedError):
            assert end in ("roll back", "refusal")
        assert schema_of(db) == before[0]
        attack(start("stranger", full))
        assert db.check() == []
        assert len(db.log()) == (4 if end == "commit" else 3)
        if end in ("roll back", "refusal"):
            assert settings_of(db) == before[1]


def test_a_second_bulk_load_leaves_the_schema_as_the_first_did(full: Path) -> None:
    with worlddb.open(full) as db:
        before = schema_of(db)
        for _ in range(2):
            with db.transaction(bulk=True) as tx:
                load(tx)
            assert schema_of(db) == before
        settings = settings_of(db)
        with db.transaction(bulk=True) as tx:
            load(tx)
        assert settings_of(db) == settings
        assert db.check() == []


def test_a_read_in_the_middle_of_a_bulk_load_brings_the_indexes_back(full: Path) -> None:
    with worlddb.open(full) as db:
        before = schema_of(db)
        with db.transaction(bulk=True) as tx:
            load(tx)
            a = tx.create_node(type="Fact", name="a")
            b = tx.create_node(type="Fact", name="b")
            tx.write_edge("supersedes", b.id, a.id)
            load(tx)
        assert schema_of(db) == before
        assert db.check() == []


# -- what no guard can stop, `check` sees --------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TRIGGER edges_guard_insert",
        "DROP TRIGGER nodes_guard_update",
        "DROP TRIGGER nodes_guard_delete",
        "DROP INDEX edges_source",
        "DROP INDEX nodes_key",
    ],
)
def test_a_guard_that_somebody_removed_is_reported(
    full: Path, start: StartChild, damage: str
) -> None:
    child = start("stranger", full)
    assert child.tell(damage) == [None]
    child.rest()
    with worlddb.open(full) as db:
        problems = [str(problem) for problem in db.check()]
        assert any(damage.split()[-1] in problem for problem in problems), problems

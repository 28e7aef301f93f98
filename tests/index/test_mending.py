"""Mending: what a stranger deletes of what is derived is made again in place by `reindex`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from recall.search_stage import hold_at_most
from worlddb import RecallSettings, WorldDB
from worlddb.embed.embedder import HashEmbedder

from .exact_texts import ExactEmbedder
from .test_tokens import ReadingEmbedder

QUESTION = "Who rides the red bike?"
TABLES = ("texts", "vectors", "tokens", "pools", "lookups")
INDEXES = ("edges_source", "edges_target", "nodes_parent", "nodes_key", "pools_seq")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a store whose every derived table has rows."""
    path = tmp_path / "m.db"
    with open_it(path) as db:
        with db.transaction() as tx:
            garage = tx.create_node(type="Topic", name="garage").id
            shelf = tx.create_node(type="Topic", name="shelf", parent=garage).id
            tx.create_node(type="Memory", content="the red bike", parent=garage)
            tx.create_node(type="Memory", content="the blue bike", parent=shelf)
            gone = tx.create_node(type="Memory", content="the secret", parent=garage).id
        db.ingest("Ada Lovelace rides the red bike.")
        db.reindex()
        db.erase(gone)
        db.ingest("Bob Miller rides the blue bike.")
        db.reindex()
    return path


def open_it(path: Path, **options: Any) -> WorldDB:
    return worlddb.open(path, **{"embedder": ReadingEmbedder(), **options})


def meddle(path: Path, *statements: str) -> None:
    """Change the file as another program does."""
    con = apsw.Connection(str(path))
    for statement in statements:
        con.execute(statement)
    con.close()


def answers(db: WorldDB) -> list[Any]:
    """Return what is found, held in memory and wide, lane by lane, and who is known."""
    lanes = [RecallSettings(weights={lane: 1.0}) for lane in ("text", "vector", "graph")]
    found: list[Any] = []
    for held in (1 << 20, 0):
        hold_at_most(db, held)
        found += [db.recall(QUESTION, settings=one).to_dict() for one in lanes]
    return found


def rows(path: Path, table: str) -> list[Any]:
    con = sqlite3.connect(path)
    found = con.execute(f"SELECT * FROM {table}").fetchall()
    con.close()
    return sorted(found, key=repr)


@pytest.mark.parametrize("part", ["", "WHERE rowid % 2"], ids=["all", "some"])
@pytest.mark.parametrize("tables", [*((table,) for table in TABLES), TABLES], ids="-".join)
def test_deleted_rows_are_made_again(path: Path, tables: tuple[str, ...], part: str) -> None:
    with open_it(path) as db:
        before = answers(db)
    kept = {table: rows(path, table) for table in ("tokens", "lookups")}
    vectors = [row[:6] for row in rows(path, "pools")], rows(path, "vectors")
    for table in tables:
        # Only the first of these tables have a number of their own; the others know the node.
        where = part if table in ("texts", "tokens") else part.replace("rowid", "node")
        meddle(path, f"DELETE FROM {table} {where}")
    with open_it(path) as db:
        answers(db)  # What is held now is of what is left.
        assert db.reindex() == ReadingEmbedder().model_id
        assert db.check() == []
        assert answers(db) == before
        ada = db.ingest("Ada Lovelace likes tea.")
        assert [one.name for one in map(db.get, ada.reused)] == ["Ada Lovelace"]
    assert rows(path, "tokens")[: len(kept["tokens"])] == kept["tokens"]
    assert set(kept["lookups"]) <= set(rows(path, "lookups"))
    assert {row[:2] for row in vectors[1]} <= {row[:2] for row in rows(path, "vectors")}
    with open_it(path) as db:
        assert db.check() == []


@pytest.mark.parametrize("table", ["texts_data", "texts_docsize"])
def test_words_are_made_again_whatever_of_their_index_is_lost(path: Path, table: str) -> None:
    with open_it(path) as db:
        before = answers(db)
    con = sqlite3.connect(path)  # Knows too little of our words to be kept from it.
    con.execute(f"DELETE FROM {table}")
    con.commit()
    con.close()
    with open_it(path) as db:
        db.reindex()
        assert db.check() == []
        assert answers(db) == before


@pytest.mark.parametrize("name", [*INDEXES, *TABLES])
def test_what_was_dropped_is_made_again(path: Path, name: str) -> None:
    with open_it(path) as db:
        before = answers(db)
    meddle(path, f"DROP {'INDEX' if name in INDEXES else 'TABLE'} {name}")
    with open_it(path) as db:
        assert name in TABLES or db.check() != []
        db.reindex()
        assert db.check() == []
        assert answers(db) == before


@pytest.mark.parametrize("held", [1 << 20, 0], ids=["held", "wide"])
def test_what_was_read_of_lost_vectors_is_not_kept(path: Path, held: int) -> None:
    by_meaning = RecallSettings(weights={"vector": 1.0}, weighing=None)
    question = "Bob Miller rides the blue bike."
    with open_it(path) as db:
        before = db.recall(question, settings=by_meaning)
    meddle(path, "DELETE FROM vectors")
    with open_it(path) as db:
        hold_at_most(db, held)
        assert db.recall(question, settings=by_meaning) != before
        db.reindex()
        assert db.recall(question, settings=by_meaning) == before


def test_words_are_made_again_without_an_embedder(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with worlddb.open(path, embedder="none") as db, db.transaction() as tx:
        tx.create_node(type="Memory", content="the red bike")
    meddle(path, "DELETE FROM texts")
    with worlddb.open(path, embedder="none") as db:
        hold_at_most(db, 0)
        assert db.check() != []
        assert len(db.recall("bike")) == 0
        assert db.reindex() == "none"
        assert db.check() == []
        assert len(db.recall("bike")) == 1


def test_nothing_is_made_again_where_nothing_is_lost(path: Path) -> None:
    embedder = ReadingEmbedder()
    before = {table: rows(path, table) for table in ("models", "vectors", "tokens", "pools")}
    with open_it(path, embedder=embedder) as db:
        assert not db.engine.store.mend()
        db.reindex()
    assert not embedder.documents
    assert {table: rows(path, table) for table in before} == before


def test_only_what_comes_after_a_gap_is_embedded_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        with db.transaction() as tx:
            for number in range(8):
                tx.create_node(type="Memory", name=f"text {number}")
        db.reindex()
    meddle(path, "DELETE FROM vectors WHERE node = 7")
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=embedder) as db:
        db.reindex()
        assert set(embedder.documents) == {"text 5", "text 6", "text 7"}
        assert db.check() == []


def test_a_store_that_may_only_be_read_is_not_mended(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with worlddb.open(path, embedder=HashEmbedder(32)) as db:
        db.ingest("The red bike.")
    meddle(path, "DELETE FROM texts")
    db = worlddb.open(path, read_only=True)
    with db, pytest.raises(worlddb.StorageError, match="read-only"):
        db.reindex()

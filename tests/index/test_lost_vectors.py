"""Lost vectors: what was cut short, erased or damaged is finished, made again, or told."""

from __future__ import annotations

from pathlib import Path

import pytest

import worlddb
from store.processes import StartChild
from worlddb.index import vectors

from .exact_texts import ExactEmbedder
from .recomposed import stored_vectors
from .test_vectors import assert_complete, fill, found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_killed_reindex_goes_on_where_it_was(
    path: Path, start: StartChild, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    with worlddb.open(path) as db:
        fill(db, 39)
    child = start("embed", path, "exact", 8)
    seen: list[str] = []
    for _ in range(batches):
        seen += child.hear()
        child.go()
    # While it waits for leave for the next batch, all before that are in the store.
    in_vain = child.hear()
    child.end()
    monkeypatch.setattr(vectors, "EMBED_BATCH", 8)
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=embedder) as db:
        assert db.check() == []
        db.reindex()
        assert not embedder.documents.keys() & set(seen)
        assert set(in_vain) <= embedder.documents.keys()
        assert embedder.documents.total() == 40 - len(seen)
        assert_complete(db)


@pytest.mark.parametrize(
    "tables",
    [
        ("models",),
        ("models", "vectors"),
        ("models", "pools"),
        ("models", "vectors", "pools"),
    ],
)
def test_what_is_derived_can_be_erased_by_hand_and_is_made_again(
    path: Path, tables: tuple[str, ...]
) -> None:
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        fill(db, 10)
        db.reindex()
        before = stored_vectors(db)
        with db.engine.store.derive() as session:
            for table in tables:
                session.con.execute(f"DELETE FROM {table}")  # type: ignore[attr-defined]
        assert found(db, "text 4") == "text 4"
        assert_complete(db)
        assert stored_vectors(db) == before


def test_a_vector_that_cannot_be_one_is_told_and_crashes_nothing(path: Path) -> None:
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        world, *_ = fill(db, 4)
        db.reindex()
        with db.engine.store.derive() as session:
            session.con.execute("UPDATE vectors SET vector = x'00' WHERE node = 3")  # type: ignore[attr-defined]
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        with pytest.raises(worlddb.CorruptionError, match="node row 3 is damaged"):
            db.recall("text 1")
        with db.transaction() as tx:
            for child in db.children(world):
                tx.retire(child.id)
        with pytest.raises(worlddb.CorruptionError, match="reindex --embedder"):
            db.reindex()
        db.reindex(ExactEmbedder("other"))
        assert_complete(db, "other")

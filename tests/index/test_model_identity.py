"""Model identity: a store's vectors are of one model, and change to another whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import worlddb
from store.processes import StartChild
from worlddb import ConflictError, InvalidInputError, ProviderError
from worlddb.index import vectors

from .exact_texts import ExactEmbedder
from .recomposed import model_row, stored_vectors
from .test_vectors import BY_WORDS, Interrupted, assert_complete, fill, found, model_ids

NODES = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that the model `exact` has embedded; its name needs quotes in a shell."""
    path = tmp_path / "my store.db"
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        fill(db, NODES - 1)
        db.reindex()
    return path


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "EMBED_BATCH", 8)


def test_every_vector_is_kept_under_its_model(path: Path, small_batches: None) -> None:
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        with pytest.raises(ProviderError):
            db.reindex(ExactEmbedder("other", fails_after=10))
        assert model_ids(db) == ["exact", "other"]
        mine, others = stored_vectors(db, "exact"), stored_vectors(db, "other")
    assert len(mine) == NODES
    assert len(others) == 8
    assert all(mine[row] != vector for row, vector in others.items())


def test_opening_with_another_embedder_names_the_way_out(path: Path) -> None:
    with pytest.raises(ConflictError) as caught:
        worlddb.open(path, embedder="hash")
    assert "made by exact, not by hash-64" in str(caught.value)
    assert f"worlddb reindex --embedder hash-64 --db '{path}'" in str(caught.value)
    with pytest.raises(ConflictError, match="worlddb reindex --embedder 'a model; rm x'"):
        worlddb.open(path, embedder=ExactEmbedder("a model; rm x"))
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        assert found(db, "text 3") == "text 3"


def test_a_store_opened_without_an_embedder_uses_the_one_it_was_embedded_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hashed.db"
    with worlddb.open(path, embedder="hash-32") as db:
        fill(db, 3)
        db.recall("text 1")
    with worlddb.open(path) as db:
        fill(db, 3, "more")
        assert db.recall("more 2").hits[0].node.name == "more 2"
        assert db.reindex() == "hash-32"
        assert model_row(db, "hash-32").embedded == 9
        assert model_ids(db) == ["hash-32"]


def test_a_new_store_takes_the_embedder_that_needs_no_download(tmp_path: Path) -> None:
    with worlddb.open(tmp_path / "new.db") as db:
        fill(db, 2)
        assert db.reindex() == "wordllama-256"


def test_a_custom_embedder_that_was_not_brought_along_is_asked_for(path: Path) -> None:
    with worlddb.open(path) as db:
        assert db.recall("text 3", settings=BY_WORDS).hits[0].node.name == "text 3"
        for ask in (lambda: db.recall("text 3"), db.reindex):
            with pytest.raises(ProviderError, match="made by 'exact'") as caught:
                ask()
            assert "pass that one as embedder=" in str(caught.value)
            assert "db.reindex(" in str(caught.value)
        assert db.reindex("hash-32") == "hash-32"
        assert db.recall("text 3").hits[0].node.name == "text 3"
        assert model_ids(db) == ["hash-32"]


def test_without_an_embedder_words_are_searched_and_vectors_refused(path: Path) -> None:
    with worlddb.open(path, embedder="none") as db:
        hits = db.recall("text 3").hits
        assert "vector" not in hits[0].lanes
        with pytest.raises(InvalidInputError, match="embedder='none'"):
            db.query().vector([1.0]).execute()
        assert db.reindex() == "none"
        with pytest.raises(InvalidInputError, match="no such embedder"):
            db.reindex("none")
    with pytest.raises(InvalidInputError, match="pooling"):
        worlddb.open(path, pooling="max")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("embedder", "complaint"),
    [
        (object(), "an object with model_id, dim, embed_queries, embed_documents"),
        (7, "an object with model_id"),
        ("no-such-model", "no such embedder"),
        ("", "no such embedder"),
        (ExactEmbedder(""), "model_id: is empty"),
        (ExactEmbedder(5), "model_id: give text, not int"),  # type: ignore[arg-type]
        (ExactEmbedder("a\0b"), "model_id: has a NUL"),
    ],
)
def test_what_is_no_embedder_is_refused_when_it_is_given(
    path: Path, embedder: Any, complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        worlddb.open(path, embedder=embedder)
    with worlddb.open(path) as db, pytest.raises(InvalidInputError, match=complaint):
        db.reindex(embedder)


def test_an_embedder_is_not_asked_for_its_dim_before_it_is_needed(tmp_path: Path) -> None:
    class Learning(ExactEmbedder):
        """Like an endpoint: what it does not know yet costs a call."""

        asked = 0

        @property
        def dim(self) -> int:
            self.asked += 1
            return 8

        @dim.setter
        def dim(self, value: int) -> None:
            pass

    embedder = Learning("learning")
    with worlddb.open(tmp_path / "new.db", embedder=embedder) as db:
        fill(db, 2)
        db.recall("text 1", settings=BY_WORDS)
        assert embedder.asked == 0
        assert found(db, "text 1") == "text 1"


def test_the_same_name_with_vectors_of_another_length_is_a_conflict(path: Path) -> None:
    with worlddb.open(path, embedder=ExactEmbedder(dim=5)) as db:
        with pytest.raises(ConflictError, match="have 8 numbers, those of this embedder 5"):
            db.recall("text 3")
        fill(db, 2, "more")
        for ask in (lambda: db.recall("text 3"), db.reindex):
            with pytest.raises(ConflictError, match="give it another model_id"):
                ask()
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        db.reindex()
        assert_complete(db)


def test_a_change_of_model_that_stops_half_way_goes_on_and_the_old_one_serves_until_then(
    path: Path, small_batches: None
) -> None:
    old, new = ExactEmbedder(), ExactEmbedder("new", fails_after=18)
    with worlddb.open(path, embedder=old) as db:
        with pytest.raises(ProviderError, match="new: out of order"):
            db.reindex(new)
        assert found(db, "text 3") == "text 3"
    assert new.documents.total() == 20
    with worlddb.open(path, embedder=old) as db:
        fill(db, 3, "more")
        assert found(db, "text 5") == "text 5"
        assert found(db, "more 1") == "more 1"
        assert old.documents.total() == 4
        assert model_row(db, "new").embedded == 17
        assert db.reindex() == "exact"
        assert model_row(db, "new").embedded == 17, "catching up leaves the other one alone"
        assert db.check() == []

        new.fails_after = None
        new.documents.clear()
        assert db.reindex(new) == "new"
        assert new.documents.total() == NODES + 4 - 16
        assert model_ids(db) == ["new"]
        assert_complete(db, "new")
        assert found(db, "more 1") == "more 1"
    assert new.queries["more 1"] == 1
    with worlddb.open(path, embedder=new) as db:
        assert found(db, "text 3") == "text 3"
    with pytest.raises(ConflictError, match="made by new, not by exact"):
        worlddb.open(path, embedder=old)


def test_a_killed_change_of_model_goes_on_where_it_was(
    path: Path, start: StartChild, small_batches: None
) -> None:
    child = start("embed", path, "new", 8)
    seen = child.hear()
    child.go()
    seen += child.hear()
    child.go()
    child.hear()
    child.end()
    new = ExactEmbedder("new")
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        assert found(db, "text 3") == "text 3"
        db.reindex(new)
        assert not new.documents.keys() & set(seen)
        assert new.documents.total() == NODES - 16
        assert_complete(db, "new")


def test_what_is_written_during_a_change_of_model_is_in_it(path: Path) -> None:
    new = Interrupted("new")
    with (
        worlddb.open(path, embedder=ExactEmbedder()) as db,
        worlddb.open(path, embedder=ExactEmbedder()) as other,
    ):
        written = 0

        def write() -> None:
            nonlocal written
            written += 1
            if written <= 3:
                fill(other, 2, f"more {written}")
                assert found(other, f"more {written} 1") == f"more {written} 1"

        new.meanwhile = write
        db.reindex(new)
        assert written == 4
        assert set(new.documents.values()) == {1}
        assert_complete(db, "new")


def test_a_handle_that_is_open_with_the_old_model_is_told(path: Path) -> None:
    with (
        worlddb.open(path, embedder=ExactEmbedder()) as stale,
        worlddb.open(path, embedder=ExactEmbedder()) as db,
    ):
        assert found(stale, "text 3") == "text 3"
        db.reindex(ExactEmbedder("new"))
        fill(db, 1, "more")
        for ask in (lambda: stale.recall("text 3"), stale.reindex):
            with pytest.raises(ConflictError, match="embedded anew by new meanwhile") as caught:
                ask()
            assert "open it again" in str(caught.value)
        assert stale.recall("text 3", settings=BY_WORDS).hits
        assert model_ids(db) == ["new"]
        stale.reindex(ExactEmbedder("newest"))
        assert_complete(stale, "newest")


def test_a_handle_that_was_embedding_by_the_old_model_leaves_nothing_of_it(path: Path) -> None:
    old = Interrupted()
    with (
        worlddb.open(path, embedder=old) as stale,
        worlddb.open(path, embedder=ExactEmbedder()) as db,
    ):
        fill(db, 4, "more")
        old.meanwhile = lambda: db.reindex(ExactEmbedder("new"))
        with pytest.raises(ConflictError, match="embedded anew by new"):
            stale.recall("text 3")
        assert model_ids(db) == ["new"]
        assert_complete(db, "new")


def test_changing_to_the_model_it_has_only_catches_up(path: Path) -> None:
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        fill(db, 2, "more")
        assert db.reindex(embedder) == "exact"
        assert embedder.documents == Counter(["more world", "more 0", "more 1"])
        assert_complete(db)


def test_progress_is_told_and_ends_at_all_nodes(path: Path, small_batches: None) -> None:
    told: list[tuple[int, int]] = []
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        db.reindex(ExactEmbedder("new"), on_progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == [9, 17, 25, 31]
    assert {total for _, total in told} == {NODES + 1}


def test_texts_without_words_get_zero_vectors_and_never_reach_the_embedder(tmp_path: Path) -> None:
    embedder = ExactEmbedder()
    with worlddb.open(tmp_path / "blank.db", embedder=embedder) as db:
        with db.transaction() as tx:
            tx.create_node(type="Scope")
            tx.create_node(type="Fact", content=" \n\t ")
            tx.create_node(type="Fact", name="a name", content="and a text")
        db.reindex()
        assert list(embedder.documents) == ["a name: and a text"]
        assert [any(vector) for vector in stored_vectors(db).values()] == [False, False, True]
        assert db.check() == []


def test_an_empty_store_can_be_searched_and_reindexed(tmp_path: Path) -> None:
    class Strict(ExactEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise AssertionError("there is nothing to embed")

    with worlddb.open(tmp_path / "empty.db", embedder=Strict()) as db:
        assert db.recall("anything").hits == ()
        assert db.reindex() == "exact"
        assert model_row(db).embedded == 1
        assert db.check() == []

"""Vectors: made when first needed, once, by the store's own model, whoever else is at work."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import worlddb
from patience import PATIENCE_S
from store.processes import StartChild
from worlddb import (
    ConflictError,
    Id,
    InvalidInputError,
    NodeDraft,
    ProviderError,
    RecallSettings,
    StorageError,
    WorldDB,
)
from worlddb.index import vectors

from .exact_texts import ExactEmbedder, exact
from .recomposed import assert_composed, model_row, stored_vectors

BY_MEANING = RecallSettings(weights={"vector": 1.0}, weighing=None)
BY_WORDS = RecallSettings(weights={"text": 1.0})
NEVER_S = 10 * PATIENCE_S
"""An answer that waited for a lock would take as long as this, its `busy_timeout_s`."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def fill(db: WorldDB, count: int, prefix: str = "text") -> list[Id]:
    """Write nodes into a world of their own."""
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name=f"{prefix} world").id
        drafts = (NodeDraft(type="Fact", name=f"{prefix} {i}", parent=world) for i in range(count))
        return [world, *tx.create_nodes(drafts)]


def found(db: WorldDB, text: str) -> str:
    """Return the name of the node whose meaning is nearest."""
    return db.recall(text, k=1, settings=BY_MEANING).hits[0].node.name


def assert_complete(db: WorldDB, model_id: str = "exact") -> None:
    """Assert that every node has its vector, and no other, and that worlds are composed."""
    with db.engine.store.read() as reader:
        names = {node.row: node.name for node in reader.scan.nodes() if node.row > 1}
        head = reader.head()
    expected = {
        row: exact(name, model_id=model_id).astype("<f2").tobytes() for row, name in names.items()
    }
    assert stored_vectors(db, model_id) == expected
    model = model_row(db, model_id)
    assert (model.embedded, model.composed, model.seq) == (head.nodes, head.nodes, head.seq)
    assert_composed(db, model_id=model_id)
    assert db.check() == []


def model_ids(db: WorldDB) -> list[str]:
    with db.engine.store.read() as reader:
        return [model.id for model in reader.derived.models()]


class Interrupted(ExactEmbedder):
    """Does something else in the middle of embedding documents."""

    def __init__(self, model_id: str = "exact") -> None:
        super().__init__(model_id)
        self.batch_size = 1_000
        self.meanwhile: Callable[[], object] = lambda: None
        self.calls = 0

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        self.meanwhile()
        return super().embed_documents(texts)


# -- when and how often ----------------------------------------------------------------------------


def test_nothing_is_embedded_before_the_first_search_by_meaning(path: Path) -> None:
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=embedder) as db:
        ids = fill(db, 5)
        db.get(ids[1])
        db.query().seeds(ids).execute()
        db.query().text("text 3").execute()
        db.recall("text 3", settings=BY_WORDS)
        assert (embedder.documents.total(), embedder.queries.total()) == (0, 0)
        assert model_ids(db) == []
        assert found(db, "text 3") == "text 3"
        assert embedder.documents.total() == 6
        assert_complete(db)


def test_each_node_is_embedded_once_however_often_and_from_wherever_one_asks(path: Path) -> None:
    embedder = ExactEmbedder()
    with (
        worlddb.open(path, embedder=embedder) as db,
        worlddb.open(path, embedder=embedder) as other,
    ):
        for number in range(6):
            fill([db, other][number % 2], 3, f"round {number}")
            for handle in (other, db, other):
                assert found(handle, f"round {number} 1") == f"round {number} 1"
            other.reindex()
        assert set(embedder.documents.values()) == {1}
        assert embedder.documents.total() == 24
        assert_complete(db)
    with worlddb.open(path, embedder=embedder) as db:
        assert found(db, "round 0 2") == "round 0 2"
        assert embedder.documents.total() == 24


def test_threads_that_ask_at_once_share_one_embedding(path: Path) -> None:
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=embedder) as db:
        fill(db, 300)
        threads = 6
        barrier = threading.Barrier(threads)
        answers: list[str] = []

        def ask(number: int) -> None:
            barrier.wait()
            answers.append(found(db, f"text {number}"))

        workers = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert sorted(answers) == [f"text {number}" for number in range(threads)]
        assert set(embedder.documents.values()) == {1}
        assert_complete(db)


def test_processes_that_race_store_each_vector_once_and_embed_no_node_twice_themselves(
    path: Path, start: StartChild
) -> None:
    with worlddb.open(path) as db:
        fill(db, 400)
    racers = [start("race", path, 16) for _ in range(2)]
    for racer in racers:
        assert racer.hear() == "ready"
    for racer in racers:
        racer.go()
    done = [Counter(racer.hear()) for racer in racers]
    for embedded in done:
        assert set(embedded.values()) <= {1}
    assert len(done[0] + done[1]) == 401
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        assert_complete(db)


def test_a_batch_that_another_handle_has_embedded_meanwhile_is_dropped(path: Path) -> None:
    slow = Interrupted()
    with (
        worlddb.open(path, embedder=slow) as db,
        worlddb.open(path, embedder=ExactEmbedder()) as other,
    ):
        fill(db, 5)

        def overtake() -> None:
            fill(other, 3, "more")
            other.reindex()

        slow.meanwhile = overtake
        db.reindex()
        assert slow.calls == 1
        assert_complete(db)


def test_a_search_does_not_run_after_a_writer_who_never_stops(path: Path) -> None:
    embedder = Interrupted()
    with worlddb.open(path, embedder=embedder) as db, worlddb.open(path) as other:
        fill(db, 2)
        count = 0

        def write_on() -> None:
            nonlocal count
            count += 1
            assert count < 50, "the search follows the writer for ever"
            fill(other, 1, f"even more {count}")

        embedder.meanwhile = write_on
        db.recall("text 1")
        assert embedder.calls <= 2
        embedder.meanwhile = lambda: None
        db.reindex()
        assert set(embedder.documents.values()) == {1}
        assert_complete(db)


# -- where it goes wrong ---------------------------------------------------------------------------


def test_a_failing_embedder_keeps_what_is_done_and_the_next_call_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EMBED_BATCH", 8)
    embedder = ExactEmbedder(fails_after=20)
    with worlddb.open(path, embedder=embedder) as db:
        fill(db, 40)
        for ask in (lambda: db.recall("text 1"), db.reindex):
            with pytest.raises(ProviderError, match="out of order"):
                ask()
        assert model_row(db).embedded == 17, "two batches of 8 are kept, of the third nothing"
        assert len(stored_vectors(db)) == 16
        assert db.check() == []
        assert db.recall("text 1", settings=BY_WORDS).hits
        embedder.fails_after = None
        before = Counter(embedder.documents)
        assert found(db, "text 30") == "text 30"
        assert (embedder.documents - before).total() == 41 - 16
        assert_complete(db)


def test_an_embedder_that_answers_nonsense_leaves_nothing_behind(path: Path) -> None:
    class Mad(ExactEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.full((len(texts), self.dim), np.nan, dtype=np.float32)

    with worlddb.open(path, embedder=Mad()) as db:
        fill(db, 3)
        with pytest.raises(ProviderError, match="NaN"):
            db.recall("text 1")
        assert model_ids(db) == []
    with worlddb.open(path, embedder=ExactEmbedder("other")) as db:
        db.reindex()
        assert_complete(db, "other")


def test_a_read_only_store_answers_by_meaning_and_keeps_its_bytes(path: Path) -> None:
    with worlddb.open(path) as db:
        fill(db, 20)
    before = path.read_bytes()
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=embedder, read_only=True) as db:
        assert [found(db, f"text {number}") for number in (3, 17)] == ["text 3", "text 17"]
        assert set(embedder.documents.values()) == {1}
        with pytest.raises(StorageError, match="read-only"):
            db.reindex()
    assert path.read_bytes() == before


@pytest.mark.parametrize("other_model", [False, True])
def test_reindexing_a_store_that_cannot_be_written_fails_before_it_embeds(
    path: Path, start: StartChild, other_model: bool
) -> None:
    with worlddb.open(path) as db:
        fill(db, 3)
    embedder = ExactEmbedder()
    with worlddb.open(path, read_only=True) as db, pytest.raises(StorageError):
        db.reindex(embedder if other_model else "hash")
    holder = start("hold", path)
    assert holder.hear() == "held"
    with worlddb.open(path, busy_timeout_s=0.1, embedder=embedder) as db:
        with pytest.raises(ConflictError, match="write lock"):
            db.reindex(ExactEmbedder("other") if other_model else None)
        assert embedder.documents.total() == 0


def test_a_store_that_another_process_is_writing_answers_soon_and_saves_later(
    path: Path, start: StartChild
) -> None:
    with worlddb.open(path) as db:
        fill(db, 20)
    holder = start("hold", path)
    assert holder.hear() == "held"
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=embedder, busy_timeout_s=NEVER_S) as db:
        began = time.monotonic()
        assert found(db, "text 7") == "text 7"
        assert found(db, "text 8") == "text 8"
        assert time.monotonic() - began < PATIENCE_S
        assert embedder.documents.total() == 21
        assert model_ids(db) == []
        holder.go()
        assert holder.hear() == "released"
        assert found(db, "text 9") == "text 9"
        assert embedder.documents == Counter(
            ["text world", *(f"text {number}" for number in range(20)), "held"]
        )
        assert_complete(db)


@pytest.mark.parametrize("place", ["file", "memory"])
def test_inside_an_open_transaction_what_is_committed_can_be_recalled(
    path: Path, place: str
) -> None:
    embedder = ExactEmbedder()
    where = path if place == "file" else ":memory:"
    with worlddb.open(where, embedder=embedder) as db:
        fill(db, 6)
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="not yet")
            assert found(db, "text 2") == "text 2"
            assert found(db, "text 3") == "text 3"
            with pytest.raises(InvalidInputError, match="transaction open"):
                db.reindex()
        assert "not yet" not in embedder.documents
        assert found(db, "not yet") == "not yet"
        assert set(embedder.documents.values()) == {1}
        assert_complete(db)


def test_a_rolled_back_node_leaves_no_vector_to_the_one_that_takes_its_row(path: Path) -> None:
    with worlddb.open(":memory:", embedder=ExactEmbedder()) as db:
        fill(db, 2)
        with pytest.raises(ZeroDivisionError), db.transaction() as tx:  # noqa: PT012
            tx.create_node(type="Fact", name="never")
            db.recall("text 1")
            raise ZeroDivisionError
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="instead")
        assert found(db, "instead") == "instead"
        assert_complete(db)


def test_in_memory_a_transaction_is_not_kept_waiting_by_a_thread_that_embeds() -> None:
    embedder = Interrupted()
    with worlddb.open(":memory:", embedder=embedder, busy_timeout_s=NEVER_S) as db:
        fill(db, 3)
        embedding, inside = threading.Event(), threading.Event()

        def meanwhile() -> None:
            if threading.current_thread() is worker:
                embedding.set()
                inside.wait(PATIENCE_S)

        embedder.meanwhile = meanwhile
        worker = threading.Thread(target=lambda: found(db, "text 1"))
        with db.transaction() as tx:
            pass
        worker.start()
        assert embedding.wait(PATIENCE_S)
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="new")
            inside.set()
            began = time.monotonic()
            assert found(db, "text 2") == "text 2"
            assert time.monotonic() - began < PATIENCE_S
        worker.join()
        db.reindex()
        assert_complete(db)

"""Embedding in the background: recalls wait for nobody's bulk, and say what had no vector yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import worlddb
from patience import PATIENCE_S, until
from worlddb.embed.embedder import Vector
from worlddb.index import store_search
from worlddb.index.vectors import EARLY_MAX, Vectors
from worlddb.store.interface import Reader

BULK = 300


class SlowEmbedder:
    """Embeds by the first letter; documents wait while the gate is shut, but for a few."""

    model_id = "slow-26"
    dim = 26

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.embedded: list[str] = []

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self._vectors(texts)

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if threading.current_thread().name == "worlddb-vectors":
            self.entered.set()
            assert self.gate.wait(PATIENCE_S)
        self.embedded += texts
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        made = np.zeros((len(texts), self.dim), dtype=np.float32)
        for number, text in enumerate(texts):
            made[number, (ord(text[:1].lower() or "a") - 97) % 26] = 1
        return made


@pytest.fixture
def embedder() -> Iterator[SlowEmbedder]:
    """Return the embedder; its gate is open when the test ends, so the thread can end."""
    made = SlowEmbedder()
    yield made
    made.gate.set()


def loaded(path: Path, embedder: SlowEmbedder) -> worlddb.Memory:
    """Return a memory in which a thread is at work on somebody's bulk, and stuck."""
    memory = worlddb.Memory(path, embedder=embedder, recluster="off")
    memory.write("Tea is in the kitchen.", user_id="ada", extractor="verbatim")
    memory.db.reindex()
    embedder.gate.clear()
    for number in range(BULK):
        memory.write(f"Row {number} of a bulk.", user_id="bob", extractor="verbatim")
    memory.db.embed_in_background()
    assert embedder.entered.wait(PATIENCE_S)
    return memory


def test_a_recall_waits_for_nobodys_bulk_and_embeds_its_own_few(
    tmp_path: Path, embedder: SlowEmbedder
) -> None:
    with loaded(tmp_path / "store.db", embedder) as memory:
        memory.write("Zebras are striped.", user_id="ada", extractor="verbatim")
        # The thread is stuck, so an answer at all shows that the recall did not wait for it.
        found = memory.recall("zzz", user_id="ada")
        assert [hit.node.content for hit in found][:1] == ["Zebras are striped."]
        assert "vector" in found[0].lanes
        assert "unembedded" not in found.signals
        assert not any("bulk" in text for text in embedder.embedded)
        embedder.gate.set()


def test_a_recall_says_how_many_had_no_vector(tmp_path: Path, embedder: SlowEmbedder) -> None:
    with loaded(tmp_path / "store.db", embedder) as memory:
        found = memory.recall("bulk", user_id="bob", k=BULK)
        early = [text for text in embedder.embedded if "bulk" in text]
        assert EARLY_MAX <= len(early) <= 2 * EARLY_MAX  # A recall looks at vectors twice.
        assert found.signals["unembedded"] == BULK - len(early)
        assert len(found) == BULK  # Words find what has no vector.
        embedder.gate.set()
        until(lambda: "unembedded" not in memory.recall("bulk", user_id="bob").signals)


def test_an_index_of_the_whole_store_reads_only_the_newest_that_wait(
    tmp_path: Path, embedder: SlowEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    load = Vectors.load

    def spy(self: Vectors, reader: Reader, rows: list[int]) -> Vector:
        read.append(len(rows))
        return load(self, reader, rows)

    monkeypatch.setattr(store_search, "MISSING_MAX", 8)
    monkeypatch.setattr(Vectors, "load", spy)
    with loaded(tmp_path / "store.db", embedder) as memory:
        engine = memory.db.engine
        with engine.store.read() as reader:
            store_search.NearestIndex(engine.store).index(reader, engine.search.vectors())
        embedder.gate.set()
    assert read == [8]


def test_the_thread_follows_every_commit_and_ends_with_the_store(
    tmp_path: Path, embedder: SlowEmbedder
) -> None:
    path = tmp_path / "store.db"
    with loaded(path, embedder):
        embedder.gate.set()
        texts = {f"Row {number} of a bulk." for number in range(BULK)}
        until(lambda: texts <= set(embedder.embedded))
        with worlddb.open(path, embedder="none") as other:  # As another process would.
            other.ingest("Xylophones are loud.", extractor="verbatim")
        until(lambda: any("Xylophones" in text for text in embedder.embedded))
    assert not any(thread.name == "worlddb-vectors" for thread in threading.enumerate())
    with worlddb.open(path, embedder="none") as db:
        assert db.check() == []


def test_without_the_thread_a_recall_embeds_everything_first(
    tmp_path: Path, embedder: SlowEmbedder
) -> None:
    with worlddb.Memory(tmp_path / "store.db", embedder=embedder, recluster="off") as memory:
        for number in range(EARLY_MAX + 10):
            memory.write(f"Row {number}.", user_id="ada", extractor="verbatim")
        assert "unembedded" not in memory.recall("row", user_id="ada").signals
        assert {f"Row {number}." for number in range(EARLY_MAX + 10)} <= set(embedder.embedded)


def test_a_recall_reads_only_the_vectors_that_were_missing(
    tmp_path: Path, embedder: SlowEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the store is never done with embedding, because others write all the time."""
    read: list[int] = []
    load = Vectors.load

    def loading(self: Vectors, reader: Reader, rows: list[int]) -> Vector:
        read.extend(rows)
        return load(self, reader, rows)

    with worlddb.Memory(tmp_path / "store.db", embedder=embedder, recluster="off") as memory:
        vectors = memory.db.engine.search.vectors()
        for text in ("Tea is in the kitchen.", "Zebras are striped."):
            memory.write(text, user_id="ada", extractor="verbatim")
        vectors.catch_up()
        vectors.is_followed = True  # As if a thread embedded.
        memory.write("Somebody else says this.", user_id="bob", extractor="verbatim")
        monkeypatch.setattr(Vectors, "load", loading)
        for _ in range(2):
            assert memory.recall("zzz", user_id="ada")[0].node.content == "Zebras are striped."
        held = len(read)
        memory.write("Yaks are shaggy.", user_id="ada", extractor="verbatim")
        for _ in range(3):
            assert memory.recall("yyy", user_id="ada")[0].node.content == "Yaks are shaggy."
        assert len(read) == held + 3  # The new one each time, until it is stored.
        vectors.catch_up()
        read.clear()
        for _ in range(2):
            assert memory.recall("yyy", user_id="ada")[0].node.content == "Yaks are shaggy."
        assert len(read) == 1

"""The nearest-neighbour index of a large store, saved beside it and checked before it is used.

Nearest vectors are compared with those of a store that has no saved index, and builds are counted:
a file that is used saves one, and a file that is not changes no answer.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from recall.search_stage import (
    edge,
    fact,
    facts,
    found,
    hold_at_most,
    lanes,
    open_store,
    write_after_catch_up,
)
from worlddb import Id, ProviderError, WorldDB
from worlddb.embed.embedder import HashEmbedder, Vectors
from worlddb.index import vectors
from worlddb.index.nearest import Nearest
from worlddb.index.store_search import SUFFIX

Made = Counter[str]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Count how many vectors are built and put into indexes."""
    counted: Made = Counter()
    for name in ("build", "put"):
        real = getattr(Nearest, name)

        def counting(
            self: Nearest, rows: Any, *rest: Any, name: str = name, real: Any = real
        ) -> None:
            counted[name] += len(rows)
            real(self, rows, *rest)

        monkeypatch.setattr(Nearest, name, counting)
    return counted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def open_wide(path: Path, **options: Any) -> WorldDB:
    return hold_at_most(open_store(path, **options), 0)


def index_of(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def furnish(path: Path) -> dict[str, Id]:
    """Make a store with some worlds and what is in them, and search it once."""
    with open_wide(path) as db:
        ids = {
            "fruit": fact(db, "", type="Topic", name="Fruit"),
            "metal": fact(db, "", type="Topic", name="Metal"),
        }
        ids["apple"] = fact(db, "an apple", parent=ids["fruit"])
        ids["iron"] = fact(db, "some iron", parent=ids["metal"])
        ids["loose"] = fact(db, "a loose end")
        facts(db, (f"number {number}" for number in range(20)))
        nearest(db)
    return ids


def nearest(db: WorldDB) -> list[list[Id]]:
    """Return what is nearest some vectors."""
    rng = random.Random(1)
    dim = db.engine.search.vectors().dim
    queries = [[rng.uniform(-1, 1) for _ in range(dim)] for _ in range(8)]
    return [found(db.query().vector(query).execute()) for query in queries]


def nearest_without_index(path: Path, tmp_path: Path, **options: Any) -> list[list[Id]]:
    """Return what is nearest in a copy of the store that has no saved index."""
    copy = tmp_path / "copy" / "store.db"
    copy.parent.mkdir()
    with open_store(path, **options) as db:
        db.backup(copy)
    with open_wide(copy, **options) as db:
        answer = nearest(db)
    shutil.rmtree(copy.parent)
    return answer


# -- saved and taken up again ----------------------------------------------------------------------


def test_an_index_is_saved_when_a_store_that_was_searched_wide_is_closed(path: Path) -> None:
    with open_store(path) as db:
        fact(db, "an apple")
        nearest(db)
    assert not index_of(path).exists()
    furnish(path)
    assert index_of(path).exists()
    assert [file.name for file in path.parent.iterdir() if "part" in file.name] == []


def test_a_saved_index_is_used_and_builds_nothing(path: Path, tmp_path: Path, made: Made) -> None:
    furnish(path)
    expected = nearest_without_index(path, tmp_path)
    made.clear()
    with open_wide(path) as db:
        assert nearest(db) == expected
    assert not made
    before = index_of(path).stat().st_mtime_ns
    with open_wide(path) as db:
        nearest(db)
    assert index_of(path).stat().st_mtime_ns == before, "unchanged, and written again"


def test_an_index_that_is_behind_is_caught_up_and_not_built(
    path: Path, tmp_path: Path, made: Made
) -> None:
    ids = furnish(path)
    with open_store(path) as db:
        fact(db, "a pear", parent=ids["fruit"])
        with db.transaction() as tx:
            tx.retire(ids["iron"])
        edge(db, "contains", ids["metal"], ids["loose"])
    expected = nearest_without_index(path, tmp_path)
    made.clear()
    with open_wide(path) as db:
        assert nearest(db) == expected
    assert made["build"] == 0
    assert made["put"] == 1 + len({"fruit", "metal"})
    made.clear()
    with open_wide(path) as db:
        assert nearest(db) == expected
    assert not made


def test_deleting_the_index_changes_no_answer(path: Path, made: Made) -> None:
    furnish(path)
    with open_wide(path) as db:
        expected = nearest(db)
    index_of(path).unlink()
    made.clear()
    with open_wide(path) as db:
        assert nearest(db) == expected
    assert made["build"] == 25
    assert index_of(path).exists()


def test_a_store_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with hold_at_most(open_store(), 0) as db:
        fact(db, "an apple")
        assert nearest(db)[0]
    assert list(tmp_path.iterdir()) == []


# -- not trusted -----------------------------------------------------------------------------------


def cut(body: bytes) -> bytes:
    return body[: len(body) // 2]


def flip(body: bytes) -> bytes:
    return body[:-100] + bytes([body[-100] ^ 1]) + body[-99:]


def flip_head(body: bytes) -> bytes:
    return bytes([body[0] ^ 1]) + body[1:]


def flip_stamp(body: bytes) -> bytes:
    return body[:90] + bytes([body[90] ^ 1]) + body[91:]


@pytest.mark.parametrize(
    "damage", [cut, flip, flip_head, flip_stamp, lambda _: b"", lambda _: b"no index" * 99]
)
def test_a_damaged_index_is_built_again(
    path: Path, made: Made, damage: Callable[[bytes], bytes]
) -> None:
    furnish(path)
    with open_wide(path) as db:
        expected = nearest(db)
    whole = index_of(path).read_bytes()
    index_of(path).write_bytes(damage(whole))
    made.clear()
    with open_wide(path) as db:
        assert nearest(db) == expected
    assert made["build"] == 25
    assert index_of(path).read_bytes() == whole


def test_the_index_of_another_store_is_not_taken(path: Path, tmp_path: Path, made: Made) -> None:
    furnish(path)
    other = tmp_path / "other.db"
    with open_wide(other) as db:
        facts(db, (f"quite another {number}" for number in range(24)))
        facts(db, (f"and more {number}" for number in range(9)))
        nearest(db)
    with open_wide(path) as db:
        expected = nearest(db)
    shutil.copy(index_of(other), index_of(path))
    made.clear()
    with open_wide(path) as db:
        assert nearest(db) == expected
    assert made["build"] == 25


def test_the_index_of_a_store_that_went_another_way_is_not_taken(
    path: Path, tmp_path: Path, made: Made
) -> None:
    """Two stores with a common past; the index was saved after they parted."""
    furnish(path)
    twin = tmp_path / "twin.db"
    with open_store(path) as db:
        db.backup(twin)
    for store, content in ((path, "a pear"), (twin, "a plum")):
        with open_wide(store) as db:
            fact(db, content)
            expected = nearest(db)
    shutil.copy(index_of(path), index_of(twin))
    made.clear()
    with open_wide(twin) as db:
        assert nearest(db) == expected
    assert made["build"] == 26


def test_the_index_of_another_model_is_not_taken(path: Path, tmp_path: Path, made: Made) -> None:
    furnish(path)
    with open_wide(path) as db:
        db.reindex(HashEmbedder(32))
    expected = nearest_without_index(path, tmp_path, embedder=HashEmbedder(32))
    made.clear()
    with open_wide(path, embedder=HashEmbedder(32)) as db:
        assert nearest(db) == expected
    assert made["build"] == 25


def test_after_a_change_of_model_an_open_store_searches_by_the_new_one(path: Path) -> None:
    furnish(path)
    with open_wide(path) as db:
        nearest(db)
        db.reindex(HashEmbedder(32))
        hold_at_most(db, 0)
        by_new = nearest(db)
    with open_wide(path, embedder=HashEmbedder(32)) as db:
        assert nearest(db) == by_new


def test_the_index_of_worlds_composed_another_way_is_not_taken(path: Path, tmp_path: Path) -> None:
    ids = furnish(path)
    with open_wide(path) as db:
        facts(db, ["a red apple", "a ripe pear", "grapes"], parent=ids["fruit"])
        by_attention = nearest(db)
    expected = nearest_without_index(path, tmp_path, pooling="mean")
    with open_wide(path, pooling="mean") as db:
        assert nearest(db) == expected
    with open_wide(path) as db:
        assert nearest(db) == by_attention


def test_an_index_that_cannot_be_saved_or_read_is_done_without(path: Path) -> None:
    furnish(path)
    with open_wide(path) as db:
        expected = nearest(db)
    index_of(path).unlink()
    index_of(path).mkdir()
    with open_wide(path) as db:
        assert nearest(db) == expected
    assert index_of(path).is_dir()


class LongNamed(HashEmbedder):
    @property
    def model_id(self) -> str:
        return "long" * 1_000


def test_a_model_may_have_a_long_name(path: Path, made: Made) -> None:
    with open_wide(path, embedder=LongNamed()) as db:
        fact(db, "an apple")
        expected = nearest(db)
    made.clear()
    with open_wide(path, embedder=LongNamed()) as db:
        assert nearest(db) == expected
    assert not made


# -- others write ----------------------------------------------------------------------------------


def test_an_open_index_follows_what_another_store_writes(path: Path, tmp_path: Path) -> None:
    """New nodes, and worlds that are composed anew: something came, moved, or ended in them."""
    ids = furnish(path)
    with open_wide(path) as db, open_store(path) as other:
        assert nearest(db)
        for number in range(3):
            fact(other, f"a pear {number}", parent=ids["fruit"])
            assert nearest(db) == nearest_without_index(path, tmp_path)
        edge(other, "contains", ids["metal"], ids["loose"])
        assert nearest(db) == nearest_without_index(path, tmp_path)
        for gone in ("iron", "loose"):
            with other.transaction() as tx:
                tx.retire(ids[gone])
            assert nearest(db) == nearest_without_index(path, tmp_path)


class Failing(HashEmbedder):
    """An embedder that fails after some documents."""

    def __init__(self, documents_max: int) -> None:
        super().__init__()
        self._left = documents_max

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self._left -= len(texts)
        if self._left < 0:
            raise ProviderError("out of order")
        return super().embed_documents(texts)


def test_an_index_read_while_a_commit_was_half_embedded_gets_the_rest(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = furnish(path)
    monkeypatch.setattr(vectors, "EMBED_BATCH", 4)

    def load_and_break_off() -> None:
        with open_store(path, embedder=Failing(documents_max=4)) as other:
            facts(other, (f"an apple {number}" for number in range(9)), parent=ids["fruit"])
            with pytest.raises(ProviderError):
                other.recall("apple")

    with open_wide(path) as db:
        fact(db, "a loose end")
        write_after_catch_up(monkeypatch, load_and_break_off)
        half = db.recall("an apple", settings=lanes("vector"), k=100)
        assert not {node.content for node in half.nodes} >= {f"an apple {i}" for i in range(9)}
        assert nearest(db) == nearest_without_index(path, tmp_path)
        whole = db.recall("an apple", settings=lanes("vector"), k=100)
        assert {node.content for node in whole.nodes} >= {f"an apple {i}" for i in range(9)}
    with open_wide(path) as db:
        assert nearest(db) == nearest_without_index(path, tmp_path)


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
def test_a_store_that_may_only_be_read_is_searched_by_meaning(path: Path, most: int) -> None:
    with open_store(path) as db:
        apple, pear = facts(db, ["an apple", "a pear"])
    with open_store(path, read_only=True) as db:
        hold_at_most(db, most)
        assert found(db.recall("apple", settings=lanes("vector"))) == [apple]
        with open_store(path) as other:
            more = fact(other, "another pear")
        vector = db.engine.search.vectors().ask("pear").tolist()
        assert found(db.query().vector(vector).limit(2).execute()) == [pear, more]

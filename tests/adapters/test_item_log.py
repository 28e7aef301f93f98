"""Item logs, kept vectors and folder names: what the adapters stand on. Needs no framework."""

from __future__ import annotations

from pathlib import Path

import pytest

import worlddb
from worlddb import Memory, WorldDB
from worlddb.adapters.item_log import (
    ItemLog,
    Vectors,
    adapter_store,
    folder_name,
    pack_vectors,
    rank_by_cosine,
    unpack_vectors,
)


@pytest.fixture
def db(tmp_path: Path) -> WorldDB:
    return worlddb.open(tmp_path / "m.db", embedder="none")


def log(db: WorldDB, name: str = "one") -> ItemLog:
    return ItemLog(db, ("lists", name), actor="test")


def test_items_stay_in_order_and_each_change_is_a_commit(db: WorldDB) -> None:
    assert (log(db).read(), log(db).pop()) == ([], None)
    before = len(db.log())
    assert log(db).append(["a", "b", "a"]) == 3
    assert len(db.log()) == before + 1
    log(db, "other").append(["x"])
    assert log(db).read() == ["a", "b", "a"]
    assert (log(db).read(2), log(db).read(0)) == (["b", "a"], [])
    assert log(db).pop() == "a"
    log(db).append(["c"])
    assert log(db).read() == ["a", "b", "c"]
    log(db).clear()
    assert (log(db).read(), log(db, "other").read()) == ([], ["x"])
    assert log(db).append([]) == 0
    assert db.check() == []
    db.close()


def test_an_item_whose_key_is_there_is_left_out(db: WorldDB) -> None:
    assert log(db).append(["a", "b"], keys=["1", None]) == 2
    assert log(db).append(["again", "b", "c"], keys=["1", None, "2"]) == 2
    assert log(db).read() == ["a", "b", "b", "c"]
    db.close()


def test_what_is_kept_in_a_list_is_no_memory_of_a_scope(db: WorldDB) -> None:
    memory = Memory(db, user_id="ada")
    log(db).append(["Ada drinks green tea."])
    assert memory.recall("green tea").hits == ()
    assert memory.list().memories == ()
    assert adapter_store(memory).db is db
    db.close()


@pytest.mark.parametrize("text", ["a/b", "..", ".", "", "a\nb", "ä", "x" * 500, "%", "a%2Fb"])
def test_any_text_is_a_name_of_its_own(db: WorldDB, text: str) -> None:
    others = ["a/b", "..", ".", "", "a\nb", "ä", "x" * 500, "x" * 501, "%", "a%2Fb"]
    assert len({folder_name(one) for one in others}) == len(others)
    log(db, text).append([text or "empty"])
    assert log(db, text).read() == [text or "empty"]
    db.close()


def test_vectors_are_kept_and_ranked_by_their_angle() -> None:
    kept = pack_vectors([[1.0, 0.0], [0.5, 0.5]])
    assert [list(one) for one in unpack_vectors(kept)] == [[1.0, 0.0], [0.5, 0.5]]
    assert pack_vectors([[0.1] * 100_000]) == []
    held: dict[bytes, Vectors] = {b"far": [[0.0, 1.0]], b"near": [[0.0, 1.0], [2.0, 0.0]]}
    held |= {b"none": [], b"zero": [[0.0, 0.0]]}
    assert rank_by_cosine([1.0, 0.0], held) == [(b"near", 1.0), (b"far", 0.0), (b"zero", 0.0)]

"""Retention: how memories fade, how recalls are counted, and what is made of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consolidate.stage import DAY, Clock, fact, open_store, retire, world
from patience import PATIENCE_S
from worlddb import Id, InvalidInputError, NotFoundError, RecallSettings, Weights, WorldDB
from worlddb.index import search
from worlddb.index.search import HeldWorlds
from worlddb.model.retention_curve import RetentionSettings, retention


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(clock: Clock) -> Iterator[WorldDB]:
    with open_store(clock=clock) as db:
        yield db


# -- the formula -----------------------------------------------------------------------------------


def test_half_is_left_after_the_half_life_and_a_quarter_after_two() -> None:
    plain = RetentionSettings(half_life_days=10)
    left = [retention(0, None, 0, 0, days * DAY, plain) for days in (0, 10, 20)]
    assert left == [1.0, 0.5, 0.25]


def test_a_recall_makes_fresh_and_slows_the_fading() -> None:
    plain = RetentionSettings(half_life_days=10)
    forgotten = retention(0, None, 0, 0, 40 * DAY, plain)
    recalled = retention(0, 20 * DAY, 1, 0, 40 * DAY, plain)
    often = retention(0, 20 * DAY, 5, 0, 40 * DAY, plain)
    linked = retention(0, 20 * DAY, 5, 9, 40 * DAY, plain)
    assert forgotten < 0.25 < recalled < often < linked < 1
    assert retention(5, None, 0, 0, 0, plain) == 1.0  # Nothing is fresher than fresh.


@pytest.mark.parametrize(
    "options",
    [{"half_life_days": 0}, {"recall_gain": -1}, {"link_gain": float("inf")}, {"link_gain": "x"}],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        RetentionSettings(**options)


# -- the report ------------------------------------------------------------------------------------


def test_nothing_is_fading_in_a_young_store(db: WorldDB) -> None:
    fact(db, "new")
    assert db.fading() == []


def test_what_nobody_recalls_fades_first_and_says_why(db: WorldDB, clock: Clock) -> None:
    old, kept, linked = (fact(db, f"apple {name}") for name in ("old", "kept", "linked"))
    with db.transaction() as tx:
        tx.write_edge("refers_to", linked, kept)
    clock.now += 90 * DAY
    assert [hit.node.id for hit in db.recall("kept")] == [kept]
    clock.now += 100 * DAY
    found = db.fading(below=1.0)
    assert [item.node.id for item in found] == [old, linked, kept]
    assert found[0].retention < found[1].retention < found[2].retention
    assert (found[0].recalls, found[0].links, found[0].last_recalled) == (0, 0, None)
    assert (found[2].recalls, found[2].links) == (1, 1)
    assert round(found[2].age_days) == 190
    assert round(found[2].idle_days) == 100
    assert "190 days old, never recalled, 0 links" in found[0].because
    assert "recalled 1 times, last 100 days ago" in found[2].because
    assert [item.node.id for item in db.fading()] == [old, linked]
    assert [item.node.id for item in db.fading(1)] == [old]
    assert [item.node.id for item in db.fading(below=found[0].retention * 1.001)] == [old]
    assert found[0].to_dict()["node"]["id"] == str(old)


def test_a_report_retires_nothing_and_leaves_out_what_has_ended(db: WorldDB, clock: Clock) -> None:
    tesla = world(db, "Tesla", ["a", "b"])
    gone = fact(db, "gone", tesla)
    retire(db, gone)
    db.consolidate()
    clock.now += 900 * DAY
    before = db.log()
    found = db.fading()
    assert sorted(item.node.content for item in found) == ["a", "b"]
    assert db.log() == before
    assert all(db.get(item.node.id).valid_to is None for item in found)


def test_the_report_can_be_of_one_world(db: WorldDB, clock: Clock) -> None:
    tesla = world(db, "Tesla", ["a", "b"])
    fact(db, "elsewhere")
    clock.now += 900 * DAY
    assert sorted(item.node.content for item in db.fading(world=tesla)) == ["a", "b"]
    with pytest.raises(NotFoundError):
        db.fading(world="ab" * 32)


def test_other_settings_give_another_report(db: WorldDB, clock: Clock) -> None:
    fact(db, "a")
    clock.now += 90 * DAY
    assert len(db.fading()) == 1
    assert db.fading(settings=RetentionSettings(half_life_days=365)) == []


@pytest.mark.parametrize("options", [{"limit": 0}, {"below": 0}, {"below": "x"}])
def test_a_bad_question_is_refused(db: WorldDB, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        db.fading(**options)


# -- counting --------------------------------------------------------------------------------------


def counts(db: WorldDB) -> dict[str, int]:
    return {item.node.content: item.recalls for item in db.fading(below=2.0)}


def test_counts_outlive_the_store_and_make_no_commit(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as db:
        fact(db, "apple pie")
        fact(db, "pear pie")
        for _ in range(3):
            db.recall("apple", k=1)
        log = db.log()
    with open_store(path) as db:
        assert counts(db) == {"apple pie": 3, "pear pie": 0}
        db.recall("pie")
        assert counts(db) == {"apple pie": 4, "pear pie": 1}
        assert db.log() == log
        assert db.check() == []
        assert list(db.export())  # Not part of it: counts are derived.
        db.backup(tmp_path / "copy.db")
    with open_store(tmp_path / "copy.db", read_only=True) as copy:
        assert counts(copy) == {"apple pie": 4, "pear pie": 1}


def test_a_store_that_is_read_only_counts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as db:
        fact(db, "apple pie")
    before = path.read_bytes()
    with open_store(path, read_only=True) as db:
        assert len(db.recall("apple")) == 1
        assert counts(db) == {"apple pie": 0}
    assert path.read_bytes() == before


def test_many_counts_are_written_down_without_waiting_for_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "UNSAVED_MAX", 2)
    path = tmp_path / "store.db"
    with open_store(path) as db, open_store(path, read_only=True) as other:
        fact(db, "apple pie")
        fact(db, "pear pie")
        db.recall("pie")
        db.engine.recalls.wait()
        assert counts(other) == {"apple pie": 1, "pear pie": 1}


def test_a_busy_store_keeps_counting_and_no_recall_waits(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as db:
        fact(db, "apple pie")
        db.recall("apple")
        began, end = threading.Event(), threading.Event()

        def keep() -> None:
            with db.transaction():
                began.set()
                end.wait(PATIENCE_S)

        holder = threading.Thread(target=keep)
        holder.start()
        assert began.wait(PATIENCE_S)
        try:
            assert len(db.recall("apple")) == 1
            assert not db.engine.recalls.flush(timeout_s=0.01)
        finally:
            end.set()
            holder.join()
        assert counts(db) == {"apple pie": 2}


def test_recalls_of_many_threads_are_all_counted(db: WorldDB) -> None:
    fact(db, "apple pie")

    def ask() -> None:
        for _ in range(10):
            db.recall("apple")

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts(db) == {"apple pie": 40}


# -- as a factor of recall -------------------------------------------------------------------------


def two_pies(db: WorldDB, clock: Clock) -> tuple[Id, Id]:
    old = fact(db, "apple pie with cream")
    clock.now += 200 * DAY
    return old, fact(db, "apple pie with cream on top of it")


def test_by_default_retention_says_nothing_about_the_order(db: WorldDB, clock: Clock) -> None:
    two_pies(db, clock)
    first = db.recall("apple pie with cream")
    db.fading()  # Counts are written down, and change nothing.
    off = RecallSettings(weighing=Weights(retention=0.0))
    assert db.recall("apple pie with cream").to_json() == first.to_json()
    assert db.recall("apple pie with cream", settings=off).to_json() == first.to_json()
    assert all("retention" not in hit.lanes for hit in first)


def test_with_a_weight_the_fresh_one_wins_and_the_hit_says_so(db: WorldDB, clock: Clock) -> None:
    old, new = two_pies(db, clock)
    assert [hit.node.id for hit in db.recall("apple pie with cream")] == [old, new]
    fresh_first = RecallSettings(weighing=Weights(retention=5.0))
    hits = db.recall("apple pie with cream", settings=fresh_first)
    assert [hit.node.id for hit in hits] == [new, old]
    told = [hit.lanes["retention"] for hit in hits]
    assert [it.rank for it in told] == [1, 2]
    assert told[0].score > 0.9 > told[1].score
    slow = RetentionSettings(half_life_days=1e6)
    slowly = RecallSettings(weighing=Weights(retention=5.0, fading=slow))
    assert [hit.node.id for hit in db.recall("apple pie with cream", settings=slowly)] == [old, new]


def test_the_weight_and_the_settings_are_checked() -> None:
    with pytest.raises(InvalidInputError):
        Weights(retention=-1)
    with pytest.raises(InvalidInputError):
        Weights(fading=3)  # type: ignore[arg-type]


def test_retention_is_weighed_in_worlds_that_are_not_held_in_memory(
    db: WorldDB, clock: Clock
) -> None:
    old, new = two_pies(db, clock)
    db.engine.search._interiors = HeldWorlds(held_max=0)
    fresh_first = RecallSettings(weighing=Weights(retention=5.0))
    hits = db.recall("apple pie with cream", settings=fresh_first)
    assert [hit.node.id for hit in hits] == [new, old]

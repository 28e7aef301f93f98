"""Processes on one file: each sees the others' commits, and none can break another's."""

from __future__ import annotations

import contextlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from thinning import some
from worlddb.store.sqlite.database_file import check_format
from worlddb.store.sqlite.schema import FORMAT_VERSION

from .processes import StartChild, commit_one, picture


def test_processes_that_write_at_once_lose_no_commit(
    db: worlddb.WorldDB, start: StartChild
) -> None:
    names = ["a", "b", "c"]
    children = [start("write", db.engine.store.path, name, "30") for name in names]
    for child in children:
        assert child.hear() == "ready"
    for child in children:
        child.go()
    acks: list[dict[str, Any]] = []
    for child in children:
        while (said := child.hear()) != "done":
            acks.append(said)
    written = sorted(f"{name} {number}" for name in names for number in range(30))
    assert sorted(ack["name"] for ack in acks) == written
    # Nobody has opened the file again: all see all of it.
    for child in children:
        child.go()
        assert child.hear() == written
    assert sorted(node.name for node in db.children()) == written
    log = db.log()
    assert {ack["seq"]: ack["hash"] for ack in acks} == {c.seq: str(c.hash) for c in log[1:]}
    assert all(after.previous == before.hash for before, after in pairwise(log))
    assert all(after.time > before.time for before, after in pairwise(log))
    assert db.check() == []


def test_processes_that_make_the_same_file_at_once_all_succeed(
    tmp_path: Path, start: StartChild
) -> None:
    for attempt in some(range(4), 2):
        path = tmp_path / f"{attempt}.db"
        children = [start("make", path, f"{name}") for name in range(6)]
        for child in children:
            assert child.hear() == "ready"
        for child in children:
            child.go()
        acks = [said for child in children for said in child.rest()]
        with worlddb.open(path) as db:
            assert sorted(node.name for node in db.children()) == sorted("012345")
            assert {ack["hash"] for ack in acks} == {str(c.hash) for c in db.log()[1:]}
            assert db.check() == []


class Meddled:
    """A connection beside which another process makes the store just before the nth question."""

    def __init__(self, con: apsw.Connection, path: Path, nth: int) -> None:
        self.con = con
        self.path = path
        self.left = nth

    def __getattr__(self, name: str) -> Any:
        self.left -= 1
        if self.left == 0:
            # A look that keeps others out until it is over is as good as one that notices them.
            with contextlib.suppress(worlddb.ConflictError):
                worlddb.open(self.path, busy_timeout_s=0.1).close()
        return getattr(self.con, name)


@pytest.mark.parametrize("nth", range(1, 8))
def test_a_store_that_appears_while_its_format_is_looked_at_is_recognised(
    path: Path, nth: int
) -> None:
    con = apsw.Connection(str(path))
    try:
        found = check_format(Meddled(con, path, nth), str(path))  # type: ignore[arg-type]
        assert found in (0, FORMAT_VERSION)
    finally:
        con.close()


def test_two_processes_see_each_other_without_opening_again(
    db: worlddb.WorldDB, start: StartChild
) -> None:
    child = start("write", db.engine.store.path, "theirs", "1")
    assert child.hear() == "ready"
    assert len(db.log()) == 1
    child.go()
    theirs = child.hear()
    assert child.hear() == "done"
    assert db.get(theirs["node"]).name == "theirs 0"
    assert [node.name for node in db.query().text("theirs").execute().nodes] == ["theirs 0"]
    commit_one(db, "ours")
    child.go()
    assert child.hear() == ["ours", "theirs 0"]
    assert db.check() == []


def test_readers_are_not_blocked_by_another_process_that_writes(
    db: worlddb.WorldDB, start: StartChild
) -> None:
    commit_one(db, "landed")
    child = start("hold", db.engine.store.path)
    assert child.hear() == "held"
    assert [node.name for node in db.children()] == ["landed"]
    assert db.check() == []
    child.go()
    node = child.hear()
    assert db.get(node).name == "held"


def test_a_process_that_waits_too_long_for_the_lock_is_told_and_loses_nothing(
    path: Path, start: StartChild
) -> None:
    with worlddb.open(path, busy_timeout_s=0.05) as db:
        commit_one(db, "before")
        before = picture(db)
        child = start("hold", path)
        assert child.hear() == "held"
        with pytest.raises(worlddb.ConflictError, match=r"store\.db.*try again.*busy_timeout_s"):
            commit_one(db, "too early")
        assert picture(db) == before
        child.go()
        child.hear()
        commit_one(db, "now")
        assert [node.name for node in db.children()] == ["before", "held", "now"]
        assert db.check() == []


def test_a_process_with_patience_gets_its_turn(path: Path, start: StartChild) -> None:
    patient = start("write", path, "patient", "1")
    assert patient.hear() == "ready"
    holder = start("hold", path)
    assert holder.hear() == "held"
    patient.go()
    holder.go()
    assert patient.hear()["name"] == "patient 0"
    with worlddb.open(path) as db:
        assert sorted(node.name for node in db.children()) == ["held", "patient 0"]


def test_an_interrupt_while_waiting_for_the_lock_leaves_the_store_usable(
    path: Path, start: StartChild
) -> None:
    assert start("interrupt", path).rest() == ["interrupted"]
    with worlddb.open(path) as db:
        names = [node.name for node in db.children()]
        assert names == ["the other one", "after", "after"]
        assert db.check() == []


def test_a_lock_is_gone_with_the_process_that_held_it(path: Path, start: StartChild) -> None:
    with worlddb.open(path, busy_timeout_s=0) as db:
        child = start("hold", path)
        assert child.hear() == "held"
        child.end()
        commit_one(db, "free again")
        assert [node.name for node in db.children()] == ["free again"]
        assert db.check() == []

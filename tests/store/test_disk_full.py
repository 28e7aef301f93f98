"""A full disk: the write is refused, what was acknowledged stays, and with space all goes on."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import worlddb
from patience import until
from thinning import DEEP, some
from worlddb.store.sqlite.gate import Checkpointer

from .processes import StartChild, commit_one, picture

FILL_MAX = 2_000


def limit_pages(db: worlddb.WorldDB, extra: int | None) -> None:
    """Let the database grow by `extra` pages and no more; None lifts the limit."""
    con = db.engine.store._writer  # type: ignore[attr-defined]
    pages = con.pragma("page_count")
    assert isinstance(pages, int)
    con.pragma("max_page_count", 1 << 30 if extra is None else pages + extra)


def fill(db: worlddb.WorldDB) -> list[worlddb.Id]:
    """Commit until the disk is full; return what was acknowledged."""
    landed: list[worlddb.Id] = []

    def commit_until_full() -> None:
        for number in range(FILL_MAX):
            with db.transaction() as tx:
                node = tx.create_node(type="Fact", name=f"{number}", content=f"{number} " * 600)
            landed.append(node.id)

    with pytest.raises(worlddb.StorageError, match="full"):
        commit_until_full()
    return landed


# -- full by count of pages ----------------------------------------------------------------------


def test_a_full_disk_refuses_the_write_and_keeps_what_was_acknowledged(
    any_db: worlddb.WorldDB,
) -> None:
    commit_one(any_db, "before")
    limit_pages(any_db, 40)
    landed = fill(any_db)
    assert landed
    before = picture(any_db)
    assert any_db.check() == []
    with pytest.raises(worlddb.StorageError, match=r"disk is full.*nothing was lost"):
        fill_at_once(any_db)
    assert picture(any_db) == before
    limit_pages(any_db, None)
    commit_one(any_db, "after")
    assert [node.id for node in any_db.children()][1:-1] == landed
    assert any_db.check() == []


def fill_at_once(db: worlddb.WorldDB, *, bulk: bool = False) -> None:
    """Load more than there is room for, in one transaction."""
    drafts = [
        worlddb.NodeDraft(type="Turn", name=f"turn {i}", content=f"{i} " * 100) for i in range(400)
    ]
    with db.transaction(bulk=bulk) as tx:
        ids = tx.create_nodes(drafts)
        links = [worlddb.EdgeDraft(source=a, target=b) for a, b in pairwise(ids)]
        tx.write_edges("refers_to", links)


@pytest.mark.parametrize("bulk", [False, True])
def test_a_load_that_fills_the_disk_at_any_page_changes_nothing(
    any_db: worlddb.WorldDB, bulk: bool
) -> None:
    for number in range(5):
        commit_one(any_db, f"node {number}")
    failures = 0
    for extra in some((0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377), 2):
        before = picture(any_db)
        limit_pages(any_db, extra)
        try:
            fill_at_once(any_db, bulk=bulk)
        except worlddb.StorageError:
            limit_pages(any_db, None)
            failures += 1
            assert picture(any_db) == before, f"{extra} pages"
            assert any_db.check() == [], f"{extra} pages"
            commit_one(any_db, f"after {extra}")
        else:
            limit_pages(any_db, None)
            break
    assert failures > (8 if DEEP else 4)
    assert any_db.check() == []


def test_a_full_disk_that_the_block_swallows_still_rolls_back(any_db: worlddb.WorldDB) -> None:
    kept = commit_one(any_db, "before")
    before = picture(any_db)
    limit_pages(any_db, 20)

    def fill_inside(tx: worlddb.Transaction) -> None:
        for number in range(FILL_MAX):
            tx.create_node(type="Fact", name=f"{number}", content=f"{number} " * 600)

    def swallow() -> None:
        with any_db.transaction() as tx:
            with contextlib.suppress(Exception):
                fill_inside(tx)
            limit_pages(any_db, None)
            with contextlib.suppress(worlddb.WorldDBError):
                tx.add_aliases(kept.id, ["late"])

    with pytest.raises(worlddb.StorageError):
        swallow()
    assert picture(any_db) == before
    assert any_db.check() == []


def test_deleting_and_closing_on_a_full_disk_is_all_or_nothing(any_db: worlddb.WorldDB) -> None:
    nodes = [commit_one(any_db, f"node {number}") for number in range(60)]
    with any_db.transaction() as tx:
        edges = [tx.write_edge("refers_to", a.id, nodes[0].id) for a in nodes[1:]]
    limit_pages(any_db, 0)
    before = picture(any_db)
    try:
        with any_db.transaction() as tx:
            for edge in edges:
                tx.delete_edge(edge.id)
            for node in nodes[1:]:
                tx.write_edge("supersedes", nodes[0].id, node.id)
    except worlddb.StorageError:
        assert picture(any_db) == before
    limit_pages(any_db, None)
    assert any_db.check() == []


def test_a_full_disk_does_not_keep_others_from_reading(db: worlddb.WorldDB) -> None:
    limit_pages(db, 10)
    landed = fill(db)
    with worlddb.open(db.engine.store.path, read_only=True) as other:
        assert [node.id for node in other.children()] == landed
        assert other.check() == []


# -- full by the kernel's word -------------------------------------------------------------------


def hashes(said: list[Any]) -> list[str]:
    """Return the hashes of the commits that were acknowledged."""
    return [item["hash"] for item in said if isinstance(item, dict) and "hash" in item]


def test_a_disk_that_fills_up_under_a_writer_loses_nothing_acknowledged(
    path: Path, start: StartChild
) -> None:
    said = start("fill", path).rest()
    full = said.index("full")
    acks = hashes(said[:full])
    assert len(acks) > 5
    while_full = said[full + 1]
    assert while_full["error"] == "StorageError"
    assert while_full["log"][1:] == acks
    assert while_full["check"] == []
    again, after = said[full + 2 :]
    assert after["log"][1:] == [*acks, again["hash"]]
    assert after["check"] == []
    with worlddb.open(path) as db:
        assert [str(commit.hash) for commit in db.log()] == after["log"]
        assert db.check() == []


def test_a_bulk_load_on_a_disk_that_fills_up_changes_nothing(path: Path, start: StartChild) -> None:
    first, *tries, last = start("fill_bulk", path).rest()
    assert len(tries) == 4
    for tried in tries:
        assert tried["error"] == "StorageError"
        assert tried["log"][1:] == [first["hash"]]
        assert tried["check"] == []
    assert last["error"] is None
    assert len(last["log"]) == 3
    assert last["check"] == []
    with worlddb.open(path) as db:
        assert [str(commit.hash) for commit in db.log()] == last["log"]
        assert len(db.children()) == 3_001
        assert db.check() == []


@pytest.mark.parametrize("what", ["create_node", "add_aliases", "add_source", "write_edge"])
def test_a_disk_error_that_the_block_swallows_never_commits_half(
    path: Path, start: StartChild, what: str
) -> None:
    first, inside, further, ended, again, after = start("swallow", path, what).rest()
    assert ended["log"][1:] == [first["hash"]]
    assert ended["check"] == []
    assert ended["error"] == "StorageError"
    assert inside == "StorageError"
    assert all(further), "a call after the failure was taken"
    assert after["log"][1:] == [first["hash"], again["hash"]]
    assert after["check"] == []


def test_a_store_cannot_be_made_on_a_full_disk_and_can_be_later(
    path: Path, start: StartChild
) -> None:
    *errors, first, after = start("open_full", path).rest()
    assert errors == ["StorageError"] * 4
    assert after["log"][1:] == [first["hash"]]
    assert after["check"] == []


def test_a_backup_to_a_full_disk_fails_and_leaves_nothing_behind(
    path: Path, tmp_path: Path, start: StartChild
) -> None:
    with worlddb.open(path) as db:
        for number in range(50):
            commit_one(db, f"node {number}")
        before = picture(db)
    folder = tmp_path / "copies"
    folder.mkdir()
    error, left = start("backup_full", path, folder / "copy.db").rest()
    assert error == "StorageError"
    assert left == []
    with worlddb.open(folder / "copy.db") as copy, worlddb.open(path) as db:
        assert picture(copy) == picture(db) == before
        assert copy.check() == []


# -- full by a small disk --------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of its own, a few megabytes large."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("this user may not mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_fills_up_with_memories_and_not_with_the_log(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = Checkpointer._move
    lates: list[int] = []

    def late(self: Checkpointer, con: Any) -> None:
        if len(lates) < 3:
            until(lambda: self._is_behind or self._stopped)
            time.sleep(0.3)  # As on a busy machine: long enough to fill the disk meanwhile.
            lates.append(db.engine.store.size_bytes())
        move(self, con)

    monkeypatch.setattr(Checkpointer, "_move", late)
    with worlddb.open(small_disk / "store.db", durability="normal") as db:
        landed = fill(db)
        file, log = (small_disk / name for name in ("store.db", "store.db-wal"))
        assert len(lates) == 3
        assert file.stat().st_size > log.stat().st_size
        assert [node.id for node in db.children()] == landed
        assert db.check() == []


def test_on_a_full_disk_writing_goes_on_as_soon_as_there_is_space(small_disk: Path) -> None:
    others = small_disk / "others"
    others.write_bytes(bytes(2 << 20))
    with worlddb.open(small_disk / "store.db") as db:
        landed = fill(db)
        others.unlink()
        landed.append(commit_one(db, "after").id)
        assert [node.id for node in db.children()] == landed
        assert db.check() == []


def test_a_load_that_fills_the_disk_gives_its_room_back(small_disk: Path) -> None:
    (small_disk / "others").write_bytes(bytes(11 << 19))
    with worlddb.open(small_disk / "store.db") as db:
        kept = commit_one(db, "before").id  # In the file, not in the log, as soon as it is closed.
    with worlddb.open(small_disk / "store.db") as db:
        with pytest.raises(worlddb.StorageError, match="full"):
            fill_at_once(db)
        assert (small_disk / "store.db-wal").stat().st_size == 0
        after = commit_one(db, "after").id
        assert [node.id for node in db.children()] == [kept, after]

"""Backups: a copy of one moment, made while others write, that is a store of its own."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import worlddb
from patience import PATIENCE_S

from .processes import commit_one, picture

COMMITS_MAX = 5_000  # Far more than land while a backup is made that begins once.


@contextmanager
def busy_writer(db: worlddb.WorldDB) -> Iterator[Callable[[], int]]:
    """Commit pairs on another thread while the block runs; the function counts them."""
    stop, first = threading.Event(), threading.Event()
    count = 0

    def write() -> None:
        nonlocal count
        while not stop.is_set() and count < COMMITS_MAX:
            with db.transaction() as tx:
                left = tx.create_node(type="Fact", name=f"left {count}")
                right = tx.create_node(type="Fact", name=f"right {count}")
                tx.write_edge("refers_to", left.id, right.id)
            count += 1
            first.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            assert first.wait(PATIENCE_S)
            yield lambda: count
        finally:
            stop.set()
        writing.result()


def test_a_backup_is_the_same_store(any_db: worlddb.WorldDB, tmp_path: Path) -> None:
    for number in range(20):
        commit_one(any_db, f"node {number}")
    any_db.backup(tmp_path / "copy.db")
    with worlddb.open(tmp_path / "copy.db") as copy:
        assert picture(copy) == picture(any_db)
        assert copy.check() == []
        node = any_db.children()[7]
        assert copy.get(node.id) == node
        assert copy.query().text("node").execute().ids == any_db.query().text("node").execute().ids


def test_a_backup_of_an_empty_store_is_an_empty_store(
    any_db: worlddb.WorldDB, tmp_path: Path
) -> None:
    any_db.backup(tmp_path / "copy.db")
    with worlddb.open(tmp_path / "copy.db") as copy:
        assert copy.log() == any_db.log()
        assert copy.check() == []


def test_a_backup_is_one_file_that_works_like_any_store(
    any_db: worlddb.WorldDB, tmp_path: Path
) -> None:
    commit_one(any_db)
    folder = tmp_path / "copies"
    folder.mkdir()
    any_db.backup(folder / "copy.db")
    assert [item.name for item in folder.iterdir()] == ["copy.db"]
    with worlddb.open(folder / "copy.db") as copy:
        # Readers and a writer at once is what the write-ahead log is for.
        assert copy.engine.store._writer.pragma("journal_mode") == "wal"  # type: ignore[attr-defined]
        with copy.transaction() as tx, ThreadPoolExecutor(1) as pool:
            tx.create_node(type="Fact", name="open")
            assert len(pool.submit(copy.children).result(PATIENCE_S)) == 1
        lines = copy.export()
        for _ in range(3):
            next(lines)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(commit_one, copy, "while a reader reads").result(PATIENCE_S)
        del lines
        assert copy.check() == []


def test_backups_made_while_a_writer_goes_on_are_each_one_moment(
    any_db: worlddb.WorldDB, tmp_path: Path
) -> None:
    seen: list[int] = []
    with busy_writer(any_db):
        for number in range(8):
            before = any_db.log()[-1].seq
            any_db.backup(tmp_path / f"{number}.db")
            after = any_db.log()[-1].seq
            with worlddb.open(tmp_path / f"{number}.db") as copy:
                assert copy.check() == []
                head = copy.log()[-1]
                names = [node.name for node in copy.children()]
            assert before <= head.seq <= after
            assert len(names) == 2 * head.seq
            assert any_db.log(after=head.seq - 1, limit=1) == [head]
            seen.append(head.seq)
    assert seen == sorted(seen)
    assert any_db.check() == []


def test_a_backup_of_a_large_store_ends_although_the_writer_never_does(
    db: worlddb.WorldDB, tmp_path: Path
) -> None:
    # Larger than one step of the copy, so that commits land between two steps.
    with db.transaction() as tx:
        for number in range(50):
            tx.create_node(type="Fact", name=f"{number}", content="x" * 1_000_000)
    with ThreadPoolExecutor(1) as pool, busy_writer(db) as count:
        pool.submit(db.backup, tmp_path / "copy.db").result()
        assert count() < COMMITS_MAX, "it began again and again until the writer had ended"
    with worlddb.open(tmp_path / "copy.db") as copy:
        assert copy.check() == []


def test_a_backup_takes_the_place_of_a_lost_store(path: Path, tmp_path: Path) -> None:
    with worlddb.open(path) as db:
        node = commit_one(db, "kept")
        db.backup(tmp_path / "copy.db")
        before = picture(db)
    path.write_bytes(b"ruined")
    path.unlink()
    (tmp_path / "copy.db").rename(path)
    with worlddb.open(path) as db:
        assert picture(db) == before
        assert db.get(node.id).name == "kept"
        commit_one(db, "more")
        assert db.check() == []


def test_a_backup_and_its_origin_go_separate_ways(any_db: worlddb.WorldDB, tmp_path: Path) -> None:
    commit_one(any_db, "common")
    any_db.backup(tmp_path / "copy.db")
    with worlddb.open(tmp_path / "copy.db") as copy:
        commit_one(any_db, "ours")
        commit_one(copy, "theirs")
        commit_one(copy, "theirs again")
        assert [node.name for node in any_db.children()] == ["common", "ours"]
        assert [node.name for node in copy.children()] == ["common", "theirs", "theirs again"]
        assert any_db.log()[:2] == copy.log()[:2]
        assert any_db.log()[2].previous == copy.log()[2].previous
        assert any_db.log()[2].hash != copy.log()[2].hash
        assert any_db.check() == copy.check() == []


def test_a_backup_catches_up_from_its_origin(any_db: worlddb.WorldDB, tmp_path: Path) -> None:
    commit_one(any_db, "common")
    any_db.backup(tmp_path / "copy.db")
    commit_one(any_db, "later")
    with worlddb.open(tmp_path / "copy.db") as copy:
        assert copy.replay(any_db.export()) == 1
        assert picture(copy) == picture(any_db)
        assert copy.check() == []


# -- targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"a letter", None])
def test_an_existing_target_is_refused_and_left_alone(
    any_db: worlddb.WorldDB, tmp_path: Path, content: bytes | None
) -> None:
    target = tmp_path / "copy.db"
    if content is None:
        target.mkdir()
    else:
        target.write_bytes(content)
    with pytest.raises(worlddb.StorageError, match=r"copy\.db"):
        any_db.backup(target)
    assert target.is_dir() if content is None else target.read_bytes() == content


def test_a_store_cannot_be_backed_up_onto_itself(db: worlddb.WorldDB, path: Path) -> None:
    commit_one(db)
    with pytest.raises(worlddb.StorageError, match="exists already"):
        db.backup(path)
    assert db.check() == []


def test_a_missing_folder_is_named(any_db: worlddb.WorldDB, tmp_path: Path) -> None:
    with pytest.raises(worlddb.StorageError, match="no_such_folder does not exist"):
        any_db.backup(tmp_path / "no_such_folder" / "copy.db")


def test_a_backup_into_memory_is_refused(
    any_db: worlddb.WorldDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # It would be gone before anybody could read it.
    with pytest.raises(worlddb.WorldDBError):
        any_db.backup(":memory:")
    assert not Path(":memory:").exists()


def test_backups_to_one_target_at_once_leave_one_whole_copy(
    db: worlddb.WorldDB, tmp_path: Path
) -> None:
    with db.transaction() as tx:
        for number in range(20):
            tx.create_node(type="Fact", name=f"{number}", content="x" * 1_000_000)
    target = tmp_path / "copy.db"
    start = threading.Barrier(4)
    refused: list[str] = []

    def back_up() -> bool:
        start.wait()
        try:
            db.backup(target)
        except worlddb.StorageError as error:
            refused.append(str(error))
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: back_up(), range(4)))
    assert sum(outcomes) == 1, refused
    with worlddb.open(target) as copy:
        assert copy.check() == []
        assert picture(copy) == picture(db)
    left = {item.name for item in tmp_path.iterdir()}
    assert left <= {"copy.db", "store.db", "store.db-wal", "store.db-shm"}


def test_a_file_beside_the_target_is_left_alone(db: worlddb.WorldDB, tmp_path: Path) -> None:
    neighbours = [tmp_path / f"copy.db{end}" for end in (".partial", ".tmp", "~", ".bak")]
    for neighbour in neighbours:
        neighbour.write_bytes(b"mine")
    db.backup(tmp_path / "copy.db")
    assert [neighbour.read_bytes() for neighbour in neighbours] == [b"mine"] * 4


def test_a_backup_works_on_a_disk_that_knows_no_hard_links(
    db: worlddb.WorldDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    # What a memory stick says; none can be mounted here.
    monkeypatch.setattr(os, "link", refuse)
    commit_one(db)
    folder = tmp_path / "stick"
    folder.mkdir()
    db.backup(folder / "copy.db")
    assert [item.name for item in folder.iterdir()] == ["copy.db"]
    with worlddb.open(folder / "copy.db") as copy:
        assert picture(copy) == picture(db)


def test_a_store_opened_to_read_can_be_backed_up(path: Path, tmp_path: Path) -> None:
    with worlddb.open(path) as db:
        commit_one(db)
        before = picture(db)
    with worlddb.open(path, read_only=True) as db:
        db.backup(tmp_path / "copy.db")
    with worlddb.open(tmp_path / "copy.db") as copy:
        assert picture(copy) == before
        commit_one(copy, "writable")
        assert copy.check() == []

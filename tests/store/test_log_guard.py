"""The log beside a store: removed, replaced or doubled, it is noticed before an acknowledgement."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import worlddb

from .processes import StartChild, commit_one

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="locks of open files are Linux's own")


def names(path: Path) -> list[str]:
    """Return what a store holds."""
    with worlddb.open(path) as db:
        assert db.check() == []
        return [node.name for node in db.children()]


@pytest.fixture
def mounted(path: Path) -> Iterator[Path]:
    """Return another path where the single file is mounted, as a container would have it."""
    commit_all(path, "first")
    place = path.with_name("container") / "store.db"
    place.parent.mkdir()
    place.touch()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "--bind", path, place], check=False).returncode:
        pytest.skip("this user may not mount")
    yield place
    subprocess.run(["umount", place], check=True)


def commit_all(path: Path, *given: str) -> None:
    """Make a commit for each name."""
    with worlddb.open(path) as db:
        for name in given:
            commit_one(db, name)


def remove(log: Path) -> None:
    """Take the file away."""
    log.unlink()


def replace(log: Path) -> None:
    """Put a copy in the place of the file."""
    copy = log.with_name("copy")
    shutil.copy(log, copy)
    os.replace(copy, log)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
@pytest.mark.parametrize("lose", [remove, replace])
def test_nothing_is_acknowledged_once_the_log_is_gone_and_nothing_acknowledged_is_lost(
    path: Path, end: str, lose: Callable[[Path], None]
) -> None:
    db = worlddb.open(path)
    commit_one(db, "safe")
    lose(path.with_name(f"store.db{end}"))
    for write in (lambda: commit_one(db, "lost"), db.clean):
        with pytest.raises(worlddb.StorageError, match=rf"its log store\.db{end} was deleted"):
            write()
    db.close()
    assert names(path) == ["safe"]


def test_what_a_lost_log_held_survives_a_kill_after_the_first_refusal(
    path: Path, start: StartChild
) -> None:
    child = start("lose_log", path)
    acknowledged, refused = child.hear(), child.hear()
    child.end()
    assert "its log store.db-wal was deleted" in refused
    assert names(path) == acknowledged


def test_a_log_that_is_lost_during_a_transaction_is_noticed_before_the_acknowledgement(
    db: worlddb.WorldDB, path: Path
) -> None:
    def lose_it_meanwhile() -> None:
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="unsaid")
            path.with_name("store.db-wal").unlink()

    commit_one(db, "safe")
    with pytest.raises(worlddb.StorageError, match=r"its log store\.db-wal was deleted"):
        lose_it_meanwhile()


@LINUX
def test_nobody_opens_a_store_whose_log_was_removed_under_another_program(
    path: Path, start: StartChild
) -> None:
    commit_all(path, "first")
    child = start("hold", path)
    assert child.hear() == "held"
    path.with_name("store.db-wal").unlink()
    with pytest.raises(worlddb.StorageError, match=r"another log .* end that program first"):
        worlddb.open(path)
    assert not path.with_name("store.db-wal").exists()


def test_a_store_with_two_names_is_neither_opened_nor_written(
    db: worlddb.WorldDB, path: Path
) -> None:
    commit_one(db, "safe")
    twin = path.with_name("twin.db")
    os.link(path, twin)
    with pytest.raises(worlddb.StorageError, match=r"second name .*find FOLDER -samefile"):
        commit_one(db, "lost")
    for name in (path, twin):
        for read_only in (False, True):
            with pytest.raises(worlddb.StorageError, match=r"second name .* remove the other"):
                worlddb.open(name, read_only=read_only)
    twin.unlink()
    commit_one(db, "on")
    assert [node.name for node in db.children()] == ["safe", "on"]


def test_a_backup_that_was_killed_between_its_two_names_can_be_opened(path: Path) -> None:
    commit_all(path, "first")
    os.link(path, f"{path}.{'0a' * 16}.partial")
    assert names(path) == ["first"]
    assert sorted(item.name for item in path.parent.iterdir()) == ["store.db"]


def test_a_single_mounted_file_is_not_opened(path: Path, mounted: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(worlddb.StorageError, match=r"mounted as a single file.* the folder"):
            worlddb.open(mounted, read_only=read_only)
    assert [item.name for item in mounted.parent.iterdir()] == ["store.db"]
    assert names(path) == ["first"]


@LINUX
def test_two_logs_for_one_file_are_noticed_whatever_the_reason(
    path: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a container that cannot see how its files were mounted.
    monkeypatch.setattr("worlddb.store.sqlite.file_locks.MOUNTS", os.devnull)
    with worlddb.open(path) as db:
        with pytest.raises(worlddb.StorageError, match="another log beside it"):
            worlddb.open(mounted)
        program = (
            "import sys, worlddb; from worlddb.store.sqlite import file_locks;"
            "file_locks.MOUNTS = '/dev/null'; worlddb.open(sys.argv[1])"
        )
        other = subprocess.run(
            [sys.executable, "-c", program, str(mounted)], capture_output=True, check=False
        )
        assert b"another log beside it" in other.stderr
        commit_one(db, "second")
    assert names(path) == ["first", "second"]


@LINUX
def test_a_process_that_forks_and_closes_can_open_again_while_the_child_lives(path: Path) -> None:
    with worlddb.open(path) as db:
        commit_one(db, "first")
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            os.close(writes)
            os.read(reads, 1)
            os._exit(0)
    try:
        commit_all(path, "second")
    finally:
        os.close(reads)
        os.close(writes)
        os.waitpid(child, 0)
    assert names(path) == ["first", "second"]

"""A store whose file was deleted, moved or replaced while it was open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import worlddb

from .processes import commit_one


def _delete(path: Path) -> None:
    for file in path.parent.glob("store.db*"):
        file.unlink()


def _move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def _replace(path: Path) -> None:
    os.replace(path.with_name("backup.db"), path)


def _remove_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("gone"))


WAYS = [_delete, _move, _replace, _remove_folder]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "store.db"


@pytest.mark.parametrize("lose", WAYS)
def test_nothing_is_acknowledged_once_the_file_is_gone(
    db: worlddb.WorldDB, path: Path, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    commit_one(db, "safe")
    db.backup(path.with_name("backup.db"))
    before = db.root_state
    lose(path)
    for write in (lambda: commit_one(db, "lost"), db.clean, lambda: db.erase(before)):
        with pytest.raises(worlddb.StorageError, match=r"store\.db: was deleted, moved or rep"):
            write()
    assert db.root_state == before
    # What is still open can be saved.
    db.backup(tmp_path / "saved.db")
    with worlddb.open(tmp_path / "saved.db") as saved:
        assert saved.root_state == before
        assert saved.check() == []


def test_readers_do_not_mix_the_open_file_with_the_one_that_took_its_place(
    db: worlddb.WorldDB, path: Path
) -> None:
    commit_one(db, "ours")
    with worlddb.open(path.with_name("backup.db")) as other:
        commit_one(other, "theirs")
    # The pool's own connection reads what is open; a further one would read what is there.
    with db.engine.store.read():
        _replace(path)
        with pytest.raises(worlddb.StorageError, match="replaced while it was open"):
            db.check()


def test_the_file_that_took_the_place_is_untouched_by_who_had_the_old_one_open(
    db: worlddb.WorldDB, path: Path
) -> None:
    commit_one(db, "ours")
    with worlddb.open(path.with_name("backup.db")) as other:
        commit_one(other, "theirs")
    for end in ("-wal", "-shm"):
        path.with_name(f"store.db{end}").unlink()
    _replace(path)
    with worlddb.open(path) as new:
        commit_one(new, "theirs, too")
        with pytest.raises(worlddb.StorageError):
            commit_one(db, "lost")
        db.close()
        commit_one(new, "and on")
        assert new.check() == []
    with worlddb.open(path) as again:
        assert [node.name for node in again.children()] == ["theirs", "theirs, too", "and on"]


def test_a_store_in_memory_and_one_behind_a_link_are_not_lost(path: Path) -> None:
    with worlddb.open(":memory:") as db:
        commit_one(db)
    link = path.with_name("link.db")
    link.symlink_to(path)
    with worlddb.open(path) as db:
        commit_one(db)
    with worlddb.open(link) as db:
        commit_one(db)
        assert len(db.children()) == 2


def test_a_relative_path_is_not_lost_when_the_process_changes_its_folder(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with worlddb.open("store.db") as db:
        monkeypatch.chdir(tmp_path)
        commit_one(db)

"""Strangers in our own process: another SQLite, or somebody who reads the file's bytes."""

from __future__ import annotations

import fcntl
import gc
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb.store.sqlite import sqlite_store
from worlddb.store.sqlite.file_copy import migrate_store
from worlddb.store.sqlite.file_locks import ALONE_BYTE, USED_BYTE

from .processes import StartChild, commit_one

pytestmark = pytest.mark.skipif(
    not hasattr(fcntl, "F_OFD_SETLK"), reason="this system has no locks of open files"
)


def look_and_go(path: Path) -> None:
    """Read the store with Python's own SQLite, try to write to it, and close it again."""
    stranger = sqlite3.connect(path)
    try:
        assert stranger.execute("SELECT count(*) FROM nodes").fetchone() != (0,)
        with pytest.raises(sqlite3.Error, match="worlddb_write"):
            stranger.execute("UPDATE nodes SET content = 'x'")
    finally:
        stranger.close()


def files_of(path: Path) -> set[str]:
    """Return the names of the store's files."""
    return {file.name for file in path.parent.iterdir()}


def open_files() -> int:
    """Return how many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def test_the_store_goes_on_after_pythons_own_sqlite_has_come_and_gone(
    db: worlddb.WorldDB, path: Path
) -> None:
    for number in range(5):
        commit_one(db, f"before {number}")
        look_and_go(path)
        db.ingest(f"Ada has seen {number} whales.")
    head = db.log()[-1]
    db.erase(db.children()[0].id)
    db.close()
    with worlddb.open(path) as again:
        assert head.hash in {commit.hash for commit in again.log()}
        assert again.check() == []


def test_the_log_is_not_taken_away_by_another_sqlite_in_this_process(
    db: worlddb.WorldDB, path: Path
) -> None:
    commit_one(db, "one")
    log = os.stat(f"{path}-wal").st_ino
    look_and_go(path)
    assert os.stat(f"{path}-wal").st_ino == log


def test_reading_the_files_bytes_does_not_let_another_process_take_the_log_away(
    db: worlddb.WorldDB, path: Path, start: StartChild
) -> None:
    commit_one(db, "one")
    log = os.stat(f"{path}-wal").st_ino
    for name in sorted(files_of(path)):
        assert path.with_name(name).read_bytes()
    child = start("make", path, "of another process")
    assert child.hear() == "ready"
    child.go()
    child.rest()
    assert os.stat(f"{path}-wal").st_ino == log
    commit_one(db, "two")
    db.close()
    with worlddb.open(path) as again:
        assert {"one", "of another process", "two"} <= {node.name for node in again.children()}
        assert again.check() == []


def test_the_last_store_of_a_process_to_close_tidies_the_log_up(path: Path) -> None:
    one, other = worlddb.open(path), worlddb.open(path)
    commit_one(one, "one")
    commit_one(other, "two")
    one.close()
    look_and_go(path)
    assert f"{path.name}-wal" in files_of(path)
    commit_one(other, "three")
    other.close()
    assert files_of(path) == {path.name}


def test_a_program_that_ends_without_closing_the_store_tidies_the_log_up_too(path: Path) -> None:
    program = (
        "import sys, worlddb\n"
        "db = worlddb.open(sys.argv[1])\n"
        "with db.transaction() as tx:\n"
        "    tx.create_node(type='Fact', name='left open')\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert files_of(path) == {path.name}
    with worlddb.open(path) as db:
        assert [node.name for node in db.children()] == ["left open"]


def test_stores_leave_no_open_files_behind_closed_or_dropped(path: Path) -> None:
    with worlddb.open(path) as db:
        commit_one(db, "one")
    gc.collect()
    before = open_files()
    for number in range(5):
        with worlddb.open(path) as db:
            commit_one(db, f"closed {number}")
        dropped = worlddb.open(path)
        commit_one(dropped, f"dropped {number}")
        del dropped
        gc.collect()
    assert open_files() == before


def test_a_store_that_opens_while_another_one_closes_is_safe_as_well(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = worlddb.open(path)
    commit_one(one, "one")
    opened: list[worlddb.WorldDB] = []
    writer = one.engine.store._writer  # type: ignore[attr-defined]

    class Closing:
        def close(self) -> None:
            writer.close()
            opened.append(worlddb.open(path))

    monkeypatch.setattr(one.engine.store, "_writer", Closing())
    one.close()
    other = opened[0]
    commit_one(other, "two")
    log = os.stat(f"{path}-wal").st_ino
    look_and_go(path)
    assert os.stat(f"{path}-wal").st_ino == log
    commit_one(other, "three")
    other.close()
    assert files_of(path) == {path.name}


def test_a_store_that_closes_leaves_one_that_opens_its_locks(
    path: Path, start: StartChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = worlddb.open(path)
    commit_one(one, "one")
    child = start("make", path, "of another process")
    assert child.hear() == "ready"
    logs: list[int] = []

    def migrate_slowly(con: apsw.Connection, *args: Any) -> None:
        migrate_store(con, *args)
        one.close()
        logs.append(os.stat(f"{path}-wal").st_ino)
        child.go()
        child.rest()
        logs.append(os.stat(f"{path}-wal").st_ino)

    monkeypatch.setattr(sqlite_store, "migrate_store", migrate_slowly)
    with worlddb.open(path) as other:
        assert logs[0] == logs[1]
        commit_one(other, "two")
    assert files_of(path) == {path.name}


def test_a_store_that_is_dropped_while_another_one_is_held_does_not_wait_for_itself(
    path: Path,
) -> None:
    program = (
        "import gc, sys, worlddb\n"
        "from worlddb.store.sqlite.file_locks import LOCKED_FILES\n"
        "db = worlddb.open(sys.argv[1])\n"
        "with LOCKED_FILES._lock:  # Where the collector may well find what is dropped.\n"
        "    del db\n"
        "    gc.collect()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)
    assert files_of(path) == {path.name}


def test_a_store_behind_a_link_is_held_where_its_log_lies(path: Path) -> None:
    worlddb.open(path).close()
    link = path.with_name("link.db")
    link.symlink_to(path)
    with worlddb.open(link) as db:
        commit_one(db, "one")
        for name, byte in ((path.name, ALONE_BYTE), (f"{path.name}-shm", USED_BYTE)):
            held = f":{path.with_name(name).stat().st_ino} {byte} {byte}\n"
            locks = Path("/proc/locks").read_text().splitlines(keepends=True)
            assert [line for line in locks if "OFDLCK" in line and line.endswith(held)]

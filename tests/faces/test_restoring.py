"""restore: a backup in the place of a store, whatever became of that; or nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import worlddb as engine
from worlddb.audit.store_files import restore
from worlddb.store.sqlite.schema import FORMAT_VERSION

from .command import in_process, worlddb
from .http.serving import Process
from .samples import Sample
from .test_keeping import flip_byte_of

CRASH = """
import os, sys, worlddb
db = worlddb.open(sys.argv[1])
for number in range(30):
    with db.transaction(actor="lost") as tx:
        tx.create_node(type="Fact", content=f"written before the crash {number}")
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def backup(sample: Sample, tmp_path: Path) -> Path:
    """A backup of the sample."""
    assert in_process("backup", tmp_path / "monday.db", "--db", sample.path).code == 0
    return tmp_path / "monday.db"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with another history, in a folder of its own."""
    path = tmp_path / "here" / "memory.db"
    path.parent.mkdir()
    write(path, "other")
    return path


def write(path: Path, text: str) -> None:
    with engine.open(path) as db, db.transaction(actor="other") as tx:
        tx.create_node(type="Fact", content=text)


def crash(path: Path) -> None:
    subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False, timeout=60)
    assert Path(f"{path}-wal").stat().st_size
    assert Path(f"{path}-shm").exists()


def lines(path: Path) -> list[str]:
    with engine.open(path, create=False) as db:
        assert db.check() == []
        return list(db.export())


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


def test_a_store_that_is_gone_comes_back_whole(
    sample: Sample, backup: Path, tmp_path: Path
) -> None:
    path = tmp_path / "new.db"
    before = backup.read_bytes()
    done = in_process("restore", backup, "--db", path)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"restored {path} up to commit 4, root state {sample.root_state}\n"
    assert lines(path) == sample.lines
    assert names(path) == ["monday.db", "new.db"]
    assert backup.read_bytes() == before


def test_a_store_that_is_there_is_replaced_only_by_force(
    sample: Sample, backup: Path, store: Path
) -> None:
    before = store.read_bytes()
    refused = in_process("restore", backup, "--db", store)
    assert (refused.code, refused.out) == (8, "")
    assert "--force" in refused.err
    assert store.read_bytes() == before
    done = in_process("restore", backup, "--db", store, "--force", "--json")
    assert done.data == {"path": str(store), "commit": 4, "root_state": str(sample.root_state)}
    assert lines(store) == sample.lines
    assert names(store) == ["memory.db"]


def test_logs_that_a_crash_left_do_not_reach_the_restored_store(
    sample: Sample, backup: Path, store: Path
) -> None:
    crash(store)
    assert in_process("restore", backup, "--db", store, "--force").code == 0
    assert names(store) == ["memory.db"]
    assert lines(store) == sample.lines
    # Nor if somebody has moved the old file away, and only that.
    crash(store)
    store.unlink()
    assert in_process("restore", backup, "--db", store).code == 0
    assert lines(store) == sample.lines


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _blank(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))


def _forget_sizes(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:16] + bytes(48) + data[64:])


@pytest.mark.parametrize("damage", [_cut, _blank, _forget_sizes])
def test_a_damaged_store_is_replaced(
    sample: Sample, backup: Path, store: Path, damage: Callable[[Path], None]
) -> None:
    damage(store)
    assert in_process("restore", backup, "--db", store, "--force").code == 0
    assert lines(store) == sample.lines


@pytest.mark.parametrize("damage", [_cut, _blank, lambda path: flip_byte_of(path, b"the CEO is A")])
def test_a_backup_that_is_not_sound_is_refused_and_nothing_changes(
    backup: Path, store: Path, damage: Callable[[Path], None]
) -> None:
    before = store.read_bytes()
    damage(backup)
    done = in_process("restore", backup, "--db", store, "--force")
    assert (done.code, done.out) == (7, "")
    assert done.err.startswith(f"worlddb: {backup}: ")
    assert ".part" not in done.err
    assert store.read_bytes() == before
    assert names(store) == ["memory.db"]


def test_what_is_no_backup_is_refused_and_makes_no_store(backup: Path, tmp_path: Path) -> None:
    text, empty, other = tmp_path / "text", tmp_path / "empty", tmp_path / "other.db"
    text.write_text("My memories\n" * 100)
    empty.touch()
    with sqlite3.connect(other) as con:
        con.execute("CREATE TABLE theirs (a)")
    con.close()
    before = names(backup)
    for file, code in ((text, 6), (empty, 8), (other, 6), (tmp_path / "no", 8), (tmp_path, 8)):
        done = in_process("restore", file, "--db", tmp_path / "new.db")
        assert (done.code, done.out) == (code, ""), done.err
    assert names(backup) == before


def test_what_is_no_store_is_not_overwritten(backup: Path, tmp_path: Path) -> None:
    precious, other = tmp_path / "letter.txt", tmp_path / "other.db"
    precious.write_text("precious")
    with sqlite3.connect(other) as con:
        con.execute("CREATE TABLE theirs (a)")
    con.close()
    for file in (precious, other):
        before = file.read_bytes()
        done = in_process("restore", backup, "--db", file, "--force")
        assert (done.code, done.out) == (6, "")
        assert "move it away" in done.err
        assert file.read_bytes() == before
    assert in_process("restore", backup, "--db", backup, "--force").code == 8


def test_a_store_that_a_server_has_open_is_not_replaced(
    backup: Path, store: Path, sample: Sample
) -> None:
    with Process(store) as process:
        # Its log is empty the first time, and has something in it the second.
        for text in ("I like tea", "I like milk"):
            done = in_process("restore", backup, "--db", store, "--force")
            assert (done.code, done.out) == (4, "")
            assert "is open in another program; end it" in done.err
            assert process.site.post("/v1/memories", text=text).status == 200
            assert process.site.get("/health").status == 200
    with engine.Memory(store, embedder="none") as memory:
        assert [one.text for one in memory.list()] == ["I like milk", "I like tea"]
        assert memory.db.check() == []
    assert in_process("restore", backup, "--db", store, "--force").code == 0
    assert lines(store) == sample.lines


def test_a_backup_of_an_older_format_is_brought_up_to_date_on_the_way(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    shutil.copy(Path(__file__).parent.parent / "format" / "v1.db", old)
    before = old.read_bytes()
    assert in_process("restore", old, "--db", tmp_path / "new.db").code == 0
    assert old.read_bytes() == before
    with sqlite3.connect(tmp_path / "new.db") as con:
        assert con.execute("PRAGMA user_version").fetchone() == (FORMAT_VERSION,)
    con.close()
    with engine.open(tmp_path / "new.db", create=False) as db:
        assert db.check() == []


def test_a_store_of_which_all_is_still_in_its_log_is_replaced(
    sample: Sample, backup: Path, tmp_path: Path
) -> None:
    path = tmp_path / "young" / "memory.db"
    path.parent.mkdir()
    crash(path)
    done = in_process("restore", backup, "--db", path, "--force")
    assert done.code == 0, done.err
    assert lines(path) == lines(sample.path)


def test_what_others_may_not_read_they_may_not_read_restored(backup: Path, tmp_path: Path) -> None:
    backup.chmod(0o600)
    path = tmp_path / "new.db"
    assert in_process("restore", backup, "--db", path).code == 0
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_a_killed_restore_has_left_is_swept_away_and_nothing_else(
    backup: Path, store: Path
) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=60)
    left = [f".memory.db.{gone.pid}.part{end}" for end in ("", "-wal")]
    kept = [f".memory.db.{os.getpid()}.part", f".other.db.{gone.pid}.part", ".memory.db.x.part"]
    for name in (*left, *kept):
        (store.parent / name).write_text("texts of a backup")
    done = worlddb("restore", backup, "--db", store, "--force")
    assert done.code == 0, done.err
    assert names(store) == sorted([*kept, "memory.db"])


@pytest.mark.parametrize("place", ["backup", "path"])
def test_a_store_in_memory_cannot_be_restored(backup: Path, tmp_path: Path, place: str) -> None:
    path = tmp_path / "new.db"
    with pytest.raises(engine.StorageError, match=":memory:: is not a file"):
        restore(*((":memory:", path) if place == "backup" else (backup, ":memory:")))
    assert not path.exists()


def test_a_sealed_backup_by_commands(tmp_path: Path) -> None:
    store, sealed = tmp_path / "memory.db", tmp_path / "monday.sealed"
    write(store, "Zanzibar is a secret")
    write(store, "tea is none")
    done = in_process("backup", "--sealed", sealed, "--db", store, "--json")
    assert done.data["keys"] == f"{store}-backup-keys"
    assert in_process("erase", "--db", store, node_id(store, "Zanzibar"), "--yes").code == 0
    told = in_process("restore", sealed, "--db", store, "--force")
    assert "1 nodes were erased since the backup" in told.out
    lines = in_process("export", "--db", store).out
    assert ("tea is none" in lines, "Zanzibar" in lines) == (True, False)
    lost = in_process("restore", sealed, "--db", tmp_path / "new.db")
    assert (lost.code, "--keys" in lost.err) == (10, True)
    given = in_process(
        "restore", sealed, "--db", tmp_path / "new.db", "--keys", f"{store}-backup-keys"
    )
    assert given.code == 0
    assert in_process("check", "--db", tmp_path / "new.db").code == 0


def node_id(path: Path, word: str) -> str:
    with engine.open(path, read_only=True) as db:
        return next(str(node.id) for node in db.diff(0).nodes if word in node.content)

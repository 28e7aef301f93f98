"""Rights: who else on the machine can read the files that a store makes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import worlddb
from worlddb.faces.diagnosis import examine_store
from worlddb.faces.face_settings import Settings
from worlddb.index.nearest import Nearest
from worlddb.store.sqlite.file_locks import PartialFile

from .processes import commit_one

pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights are POSIX's own")


def modes(folder: Path) -> dict[str, int]:
    """Return the rights of all files of a folder."""
    return {item.name: stat.S_IMODE(item.stat().st_mode) for item in folder.iterdir()}


@pytest.fixture(autouse=True)
def usual_umask() -> None:
    """Let files be as wide as they usually are."""
    os.umask(0o022)


def test_all_files_of_a_new_store_are_for_their_owner_alone(path: Path) -> None:
    with worlddb.Memory(path, user_id="ada") as memory:
        memory.write("I live in Rome.")
        memory.recall("Rome")
        memory.db.backup(path.with_name("copy.db"))
        assert set(modes(path.parent)) >= {"store.db", "store.db-wal", "store.db-shm", "copy.db"}
        assert set(modes(path.parent).values()) == {0o600}


def test_the_saved_vectors_are_as_private_as_the_store(tmp_path: Path) -> None:

    index = Nearest(4)
    wide = tmp_path / "wide.db"
    wide.touch(0o640)
    index.save(str(tmp_path / "alone"), b"stamp")
    index.save(str(tmp_path / "like"), b"stamp", like=str(wide))
    assert modes(tmp_path) == {"wide.db": 0o640, "alone": 0o600, "like": 0o640}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_backup_has_the_rights_of_its_store_and_never_more(path: Path, mode: int) -> None:
    with worlddb.open(path) as db:
        commit_one(db)
        path.chmod(mode)
        db.backup(path.with_name("copy.db"))
        os.umask(0o077)
        db.backup(path.with_name("narrow.db"))
    found = modes(path.parent)
    assert found["copy.db"] == mode
    assert found["narrow.db"] == 0o600


def test_exports_and_restored_stores_are_for_their_owner_alone(path: Path) -> None:
    with worlddb.open(path) as db:
        commit_one(db)
    for command in (
        ("export", path.with_name("all.jsonl")),
        ("backup", path.with_name("copy.db")),
        ("restore", path, "--db", path.with_name("again.db")),
    ):
        given = command if "--db" in command else (*command, "--db", path)
        subprocess.run([sys.executable, "-m", "worlddb", *map(str, given)], check=True)
    assert set(modes(path.parent).values()) == {0o600}


def test_the_doctor_warns_of_a_store_that_others_can_read(path: Path) -> None:
    with worlddb.open(path) as db:
        commit_one(db)

    def said() -> list[str]:
        return [f.advice for f in examine_store(Settings(path=str(path))) if f.part == "rights"]

    assert said() == []
    path.chmod(0o644)
    assert said()[0].startswith("chmod 600 ")
    assert str(path) in said()[0]


KILLED = """
import os, signal, sys, worlddb
from worlddb.audit import sealed_backup
from worlddb.store.sqlite import file_copy
sealed_backup._write_chunks = file_copy.copy_pages = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
worlddb.open(sys.argv[1]).backup(sys.argv[2], sealed=bool(sys.argv[3]))
"""


@pytest.mark.parametrize("sealed", ["", "sealed"])
def test_what_a_killed_backup_left_is_swept_by_the_next_one_and_a_running_one_is_not(
    path: Path, tmp_path: Path, sealed: str
) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    with worlddb.open(path) as db:
        commit_one(db)
        killed = [sys.executable, "-c", KILLED, str(path), str(folder / "monday.db"), sealed]
        assert subprocess.run(killed, check=False).returncode == -signal.SIGKILL
        (left,) = folder.iterdir()
        assert left.name.endswith(".partial")
        for end in ("-journal", "-wal", "-shm"):  # And of one that was killed while it was checked.
            left.with_name(left.name + end).touch()
        left.with_name(f"friday.db.{'2c' * 16}.partial-wal").touch()  # The file has its name.
        running = PartialFile(str(folder / f"sunday.db.{'1b' * 16}.partial"), None)
        others = folder / "report.partial"
        others.touch()
        db.backup(folder / "tuesday.db", sealed=bool(sealed))
        found = {item.name for item in folder.iterdir()}
        assert found == {"tuesday.db", os.path.basename(running.path), "report.partial"}
        running.close()

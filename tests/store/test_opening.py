"""Opening: what is not a store is refused and left alone; what is one is read as it is."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb.store.sqlite.schema import APPLICATION_ID, FORMAT_VERSION

from .processes import StartChild, commit_one, picture

COMMITS = 20


@pytest.fixture
def made(path: Path) -> Path:
    """Return the path of a closed store with a few commits."""
    with worlddb.open(path) as db:
        for number in range(3):
            commit_one(db, f"node {number}")
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder with its bytes."""
    return {item.name: item.read_bytes() for item in folder.iterdir()}


# -- what is not a store ---------------------------------------------------------------------------

NO_STORES = {
    "a text": b"My memories\n" * 100,
    "two bytes": b"xy",
    "noise": random.Random(1).randbytes(20_000),
    "a header and nothing more": b"SQLite format 3\x00",
    "a header and noise": b"SQLite format 3\x00" + random.Random(2).randbytes(10_000),
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(5_000),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("content", NO_STORES.values(), ids=NO_STORES.keys())
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    path: Path, content: bytes, read_only: bool
) -> None:
    path.write_bytes(content)
    with pytest.raises((worlddb.FormatError, worlddb.CorruptionError), match=r"store\.db"):
        worlddb.open(path, read_only=read_only)
    assert files_of(path.parent) == {"store.db": content}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE nodes (id)",
        "CREATE TABLE notes (text); PRAGMA user_version = 1",
        "CREATE TABLE notes (text); PRAGMA application_id = 77",
        "PRAGMA application_id = 77",
        "PRAGMA user_version = 5",
        "PRAGMA journal_mode = WAL; CREATE TABLE notes (text)",
    ],
)
def test_another_programs_database_is_refused_and_left_alone(
    path: Path, script: str, read_only: bool
) -> None:
    with closing(sqlite3.connect(path)) as con:
        con.executescript(script)
    before = files_of(path.parent)
    with pytest.raises(worlddb.FormatError, match="choose another path"):
        worlddb.open(path, read_only=read_only)
    assert files_of(path.parent) == before


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 99, 2**31 - 1])
def test_a_newer_format_is_refused_with_the_way_out(
    made: Path, version: int, read_only: bool
) -> None:
    with closing(sqlite3.connect(made)) as con:
        con.execute(f"PRAGMA user_version = {version}")
    before = files_of(made.parent)
    with pytest.raises(worlddb.FormatError, match=f"format {version}.*install a newer worlddb"):
        worlddb.open(made, read_only=read_only)
    assert files_of(made.parent) == before


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [0, -1])
def test_a_store_that_denies_its_version_is_refused_and_left_alone(
    made: Path, version: int, read_only: bool
) -> None:
    with closing(sqlite3.connect(made)) as con:
        con.execute(f"PRAGMA user_version = {version}")
    before = files_of(made.parent)
    with pytest.raises((worlddb.FormatError, worlddb.CorruptionError), match=r"store\.db"):
        worlddb.open(made, read_only=read_only)
    assert files_of(made.parent) == before


@pytest.mark.parametrize("kept", [2, 50, 100, 1_000, 4_096, 4_100, 8_192, 40_960])
def test_a_store_that_was_cut_off_is_reported_in_our_own_words(made: Path, kept: int) -> None:
    made.write_bytes(made.read_bytes()[:kept])
    try:
        with worlddb.open(made) as db:
            problems = db.check()
    except (worlddb.FormatError, worlddb.CorruptionError) as error:
        problems = [worlddb.Problem(place="file", message=str(error))]
    assert problems


# -- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"read_only": True}, {"create": False}])
def test_a_folder_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(worlddb.StorageError, match="is a folder"):
        worlddb.open(tmp_path, **options)
    with pytest.raises(worlddb.StorageError, match="give the path of a file"):
        worlddb.open("", **options)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(worlddb.StorageError, match="no_such_folder does not exist; create it"):
        worlddb.open(tmp_path / "no_such_folder" / "store.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_refused(made: Path) -> None:
    with pytest.raises(worlddb.StorageError):
        worlddb.open(made / "store.db")


@pytest.mark.parametrize("options", [{"read_only": True}, {"create": False}])
def test_a_missing_file_is_not_made_when_it_should_be_there(
    path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(worlddb.StorageError, match="does not exist"):
        worlddb.open(path, **options)
    assert not path.exists()


def test_an_existing_store_opens_without_the_right_to_create(made: Path) -> None:
    with worlddb.open(made, create=False) as db:
        commit_one(db, "more")
        assert len(db.log()) == 5


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with worlddb.open(path) as db:
        commit_one(db)
        assert db.check() == []
    with worlddb.open(path) as db:
        assert len(db.log()) == 2


def test_an_empty_file_opened_to_read_is_refused_and_stays_empty(path: Path) -> None:
    path.touch()
    with pytest.raises(worlddb.StorageError, match="empty"):
        worlddb.open(path, read_only=True)
    assert files_of(path.parent) == {"store.db": b""}


@pytest.mark.parametrize(
    "name", ["with space.db", "q?mode=memory.db", "hash#.db", "per%20cent.db", "ünï.db", "'.db"]
)
def test_a_name_is_taken_literally(tmp_path: Path, name: str) -> None:
    with worlddb.open(tmp_path / name) as db:
        commit_one(db)
        assert len(db.children()) == 1
    assert [item.name for item in tmp_path.iterdir()] == [name]
    with worlddb.open(tmp_path / name, read_only=True) as db:
        assert len(db.children()) == 1


def test_a_text_path_and_a_path_object_are_the_same_store(made: Path) -> None:
    with worlddb.open(str(made)) as one, worlddb.open(made) as two:
        assert one.log() == two.log()


def test_a_relative_path_stays_the_same_file_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(there)
    with worlddb.open("store.db") as other:
        commit_one(other, "there")
    monkeypatch.chdir(here)
    with worlddb.open("store.db") as db:
        monkeypatch.chdir(there)
        node = commit_one(db, "here")
        assert db.get(node.id).name == "here"
        assert [found.name for found in db.children()] == ["here"]
        assert db.check() == []
        db.backup(tmp_path / "copy.db")
    with worlddb.open(tmp_path / "copy.db") as copy:
        assert [found.name for found in copy.children()] == ["here"]


def test_a_link_leads_to_the_one_store(made: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(made)
    with worlddb.open(link) as one, worlddb.open(made) as two:
        commit_one(one, "through the link")
        assert [node.name for node in two.children()][-1] == "through the link"
        commit_one(two, "straight")
        assert one.log() == two.log()
        assert one.check() == []


@pytest.mark.parametrize(
    "options",
    [
        {"durability": "none"},
        {"durability": ""},
        {"busy_timeout_s": -1},
        {"busy_timeout_s": float("nan")},
        {"busy_timeout_s": 1e12},
        {"busy_timeout_s": "soon"},
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_made(
    path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(worlddb.InvalidInputError, match=next(iter(options))):
        worlddb.open(path, **options)
    assert not path.exists()


@pytest.mark.parametrize("wrong", [b"store.db", "a\0b.db", "lone \ud800.db"])
def test_a_path_that_is_no_text_is_refused(wrong: Any) -> None:
    with pytest.raises(worlddb.WorldDBError):
        worlddb.open(wrong)


# -- reading only --------------------------------------------------------------------------------


def test_a_store_opened_to_read_reads_everything_and_writes_nothing(made: Path) -> None:
    with worlddb.open(made) as db:
        before = picture(db)
        node = db.children()[0]
    with worlddb.open(":memory:") as other:
        other.replay(before[2])
        commit_one(other, "one more")
        longer = list(other.export())
    with worlddb.open(made, read_only=True) as db:
        assert picture(db) == before
        assert db.get(node.id) == node
        assert db.query().text("node").execute().nodes
        assert worlddb.verify_proof(db.prove(node.id), db.root_state)
        assert db.check() == []
        with pytest.raises(worlddb.StorageError, match="read-only"):
            commit_one(db)
        with pytest.raises(worlddb.StorageError, match="read-only"), db.transaction(bulk=True):
            pass
        with pytest.raises(worlddb.StorageError, match="read-only"):
            db.replay(longer)
    with worlddb.open(made) as db:
        assert picture(db) == before


def test_a_store_opened_to_read_sees_what_others_write(made: Path) -> None:
    with worlddb.open(made, read_only=True) as reader, worlddb.open(made) as writer:
        commit_one(writer, "new")
        assert [node.name for node in reader.children()][-1] == "new"


def test_a_store_in_memory_that_may_not_be_written_is_refused() -> None:
    with pytest.raises(worlddb.StorageError):
        worlddb.open(":memory:", read_only=True)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Return a folder that every user of the machine can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("file_mode", "folder_mode"),
    [(0o444, 0o777), (0o444, 0o555)],
    ids=["file", "file and folder"],
)
def test_a_file_without_the_right_to_write_can_be_read(
    public_folder: Path, start: StartChild, file_mode: int, folder_mode: int
) -> None:
    path = public_folder / "store.db"
    with worlddb.open(path) as db:
        commit_one(db, "readable")
        log = [str(commit.hash) for commit in db.log()]
    path.chmod(file_mode)
    public_folder.chmod(folder_mode)
    before = path.read_bytes()
    said = start("read_only", path).rest()
    if "skip" in said[0]:
        pytest.skip(said[0]["skip"])
    wanted = {"log": log, "names": ["readable"], "check": [], "written": "StorageError"}
    assert said == [wanted, wanted]
    assert path.read_bytes() == before


@pytest.mark.parametrize("with_index", [True, False], ids=["with -shm", "without -shm"])
def test_a_read_only_store_with_a_hot_log_shows_all_of_it_or_says_that_it_cannot(
    public_folder: Path, start: StartChild, with_index: bool
) -> None:
    path = public_folder / "store.db"
    child = start("die", path, str(COMMITS))
    acks = [child.hear() for _ in range(COMMITS)]
    child.process.wait()
    if not with_index:
        Path(f"{path}-shm").unlink()
    for item in public_folder.iterdir():
        item.chmod(0o444)
    public_folder.chmod(0o555)
    said = start("read_only", path).rest()
    if "skip" in said[0]:
        pytest.skip(said[0]["skip"])
    for found in said:
        if "error" in found:
            assert found["error"].startswith("StorageError")
        else:
            assert found["log"][1:] == [ack["hash"] for ack in acks]
            assert found["check"] == []


# -- closing -------------------------------------------------------------------------------------


def test_a_closed_store_says_so(any_db: worlddb.WorldDB, tmp_path: Path) -> None:
    node = commit_one(any_db)
    any_db.close()
    for call in (
        lambda: any_db.get(node.id),
        lambda: any_db.children(),
        lambda: any_db.query().execute(),
        lambda: any_db.root_state,
        lambda: any_db.log(),
        lambda: any_db.check(),
        lambda: list(any_db.export()),
        lambda: any_db.backup(tmp_path / "copy.db"),
        lambda: commit_one(any_db),
    ):
        with pytest.raises(worlddb.InvalidInputError, match="is closed; open it again"):
            call()
    assert not (tmp_path / "copy.db").exists()


def test_closing_twice_does_nothing(any_db: worlddb.WorldDB) -> None:
    any_db.close()
    any_db.close()


def test_the_block_closes_the_store_also_when_it_raises(path: Path) -> None:
    with contextlib.suppress(ValueError), worlddb.open(path) as db:
        commit_one(db)
        raise ValueError
    with pytest.raises(worlddb.InvalidInputError, match="is closed"):
        db.log()
    assert [item.name for item in path.parent.iterdir()] == ["store.db"]


def test_a_store_that_nobody_closed_is_whole(path: Path) -> None:
    db = worlddb.open(path)
    node = commit_one(db, "kept")
    del db
    with worlddb.open(path) as db:
        assert db.get(node.id).name == "kept"
        assert db.check() == []


def test_stores_in_memory_are_strangers_to_each_other() -> None:
    with worlddb.open(":memory:") as one, worlddb.open(":memory:") as two:
        commit_one(one)
        assert len(one.log()) == 2
        assert len(two.log()) == 1
    assert not Path(":memory:").exists()


# -- an existing store ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"read_only": True}, {"durability": "normal"}])
def test_opening_and_reading_does_not_change_the_file(made: Path, options: dict[str, Any]) -> None:
    before = files_of(made.parent)
    mode = made.stat().st_mode
    with worlddb.open(made, **options) as db:
        picture(db)
        db.check()
        with pytest.raises(worlddb.NotFoundError):
            db.get("0000" * 16)
    assert files_of(made.parent) == before
    assert made.stat().st_mode == mode


def test_a_store_opened_twice_in_one_process_is_one_store(made: Path) -> None:
    with worlddb.open(made) as one, worlddb.open(made) as two:
        commit_one(one, "by one")
        commit_one(two, "by two")
        assert one.log() == two.log()
        one.close()
        commit_one(two, "alone")
        assert [node.name for node in two.children()][-3:] == ["by one", "by two", "alone"]
        assert two.check() == []


def test_the_file_says_what_it_is(made: Path) -> None:
    with closing(sqlite3.connect(made)) as con:
        assert con.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert con.execute("PRAGMA user_version").fetchone() == (FORMAT_VERSION,)
        assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_that_lost_its_log_mode_gets_it_back(made: Path) -> None:
    con = apsw.Connection(str(made))
    assert con.pragma("journal_mode", "delete") == "delete"
    con.close()
    with worlddb.open(made) as db:
        assert db.engine.store._writer.pragma("journal_mode") == "wal"  # type: ignore[attr-defined]
        commit_one(db)
        assert db.check() == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_log_left_by_a_killed_process_is_read_in_full(
    path: Path, start: StartChild, read_only: bool
) -> None:
    child = start("die", path, str(COMMITS))
    acks = [child.hear() for _ in range(COMMITS)]
    child.process.wait()
    assert Path(f"{path}-wal").stat().st_size > 0
    with worlddb.open(path, read_only=read_only) as db:
        assert [str(commit.hash) for commit in db.log()[1:]] == [ack["hash"] for ack in acks]
        assert db.check() == []


def test_a_killed_process_whose_index_of_the_log_is_gone_lost_nothing(
    path: Path, start: StartChild
) -> None:
    child = start("die", path, str(COMMITS))
    acks = [child.hear() for _ in range(COMMITS)]
    child.process.wait()
    os.unlink(f"{path}-shm")
    with worlddb.open(path) as db:
        assert [str(commit.hash) for commit in db.log()[1:]] == [ack["hash"] for ack in acks]
        assert db.check() == []


def test_a_torn_end_of_the_log_costs_only_the_commit_that_was_not_whole(
    path: Path, start: StartChild
) -> None:
    child = start("die", path, str(COMMITS))
    acks = [child.hear() for _ in range(COMMITS)]
    child.process.wait()
    log = Path(f"{path}-wal")
    log.write_bytes(log.read_bytes()[:-100])
    with worlddb.open(path) as db:
        hashes = [str(commit.hash) for commit in db.log()[1:]]
        assert hashes == [ack["hash"] for ack in acks[:-1]]
        assert db.check() == []

"""check and backup: that a store is sound, and a copy of it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import worlddb as engine

from .command import in_process, worlddb
from .samples import Sample


def flip_byte_of(path: Path, needle: bytes) -> None:
    """Change one stored byte behind the engine's back.

    Where the text is found last: earlier finds may be what a page left behind as it grew.
    """
    data = bytearray(path.read_bytes())
    place = data.rindex(needle)
    data[place] ^= 1
    path.write_bytes(data)


def test_check_of_a_sound_store_says_so(sample: Sample) -> None:
    done = in_process("check", "--db", sample.path)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"sound: up to commit 4, root state {sample.root_state}\n"
    assert in_process("check", "--json", "--db", sample.path).data == {
        "path": str(sample.path),
        "sound": True,
        "commit": 4,
        "root_state": str(sample.root_state),
        "problems": [],
    }


def test_check_names_the_node_whose_text_was_changed(own: Sample) -> None:
    flip_byte_of(own.path, b"the CEO is A")
    done = in_process("check", "--db", own.path)
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("not sound: ")
    assert f"node {own.old.id.short}  its fields do not hash to its id" in done.out
    found = in_process("check", "--json", "--db", own.path)
    assert found.code == 1
    assert found.data["sound"] is False
    assert found.data["root_state"] is None
    assert {"place": f"node {own.old.id.short}", "message": "its fields do not hash to its id"} in (
        found.data["problems"]
    )


def test_check_of_a_file_that_lost_its_end_is_not_quiet(own: Sample) -> None:
    data = own.path.read_bytes()
    own.path.write_bytes(data[: len(data) // 2])
    done = in_process("check", "--db", own.path)
    assert done.code in (1, 7)
    assert "Traceback" not in done.err


def test_a_backup_is_a_store_with_the_same_history(sample: Sample, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    done = in_process("backup", target, "--db", sample.path)
    assert (done.code, done.err) == (0, "")
    assert f"copied up to commit 4 to {target}" in done.out
    assert str(sample.root_state) in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    with engine.open(target) as restored:
        assert list(restored.export()) == sample.lines
        assert restored.check() == []
        with restored.transaction() as tx:
            tx.create_node(type="Fact", content="life goes on")


def test_backup_as_json_says_what_the_copy_holds(sample: Sample, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    done = in_process("backup", target, "--json", "--db", sample.path)
    assert done.data == {
        "path": str(target),
        "bytes": target.stat().st_size,
        "commit": 4,
        "root_state": str(sample.root_state),
    }


def test_backup_never_touches_a_file_that_exists(sample: Sample, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    done = in_process("backup", target, "--db", sample.path)
    assert (done.code, done.out) == (8, "")
    assert "exists already" in done.err
    assert target.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_backup_into_a_folder_that_is_missing_or_a_folder_itself_fails(
    sample: Sample, tmp_path: Path
) -> None:
    assert in_process("backup", tmp_path / "no" / "copy.db", "--db", sample.path).code == 8
    assert in_process("backup", tmp_path, "--db", sample.path).code == 8
    assert list(tmp_path.iterdir()) == []


def test_a_backup_taken_while_another_process_writes_is_sound(own: Sample, tmp_path: Path) -> None:
    with engine.open(own.path) as db:
        stop = threading.Event()
        wrote = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                with db.transaction(actor="busy") as tx:
                    tx.create_node(type="Fact", content=f"busy {number}")
                number += 1
                wrote.set()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert wrote.wait(60)
            done = worlddb("backup", tmp_path / "copy.db", "--json", "--db", own.path)
        finally:
            stop.set()
            writer.join()
        assert done.code == 0
        commit = db.log(after=done.data["commit"] - 1, limit=1)[0]
        assert str(commit.root_state) == done.data["root_state"]
    assert in_process("check", "--db", tmp_path / "copy.db").code == 0


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bills (amount)")
    other.close()
    before = path.read_bytes()
    for command in ("check", "log", "export"):
        done = in_process(command, "--db", path)
        assert (done.code, done.out) == (6, "")
    assert path.read_bytes() == before

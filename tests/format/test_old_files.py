"""Files of every released format: a later version opens them, and finds in them what was written.

`v1.db` was made by `make_v1.py`. The file itself is never opened: tests work on a copy.
"""

from __future__ import annotations

import json
import runpy
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb import AsOf, StorageError, WorldDB
from worlddb.faces.cli import run
from worlddb.store.sqlite import file_copy
from worlddb.store.sqlite.schema import FORMAT_VERSION, MIGRATIONS, from_1_to_2

HERE = Path(__file__).parent
HEADER_BYTES = 100  # SQLite counts changes there, also in a copy.
EXPECTED: dict[str, Any] = json.loads((HERE / "golden.json").read_text(encoding="utf-8"))["v1"]


@pytest.fixture
def old(tmp_path: Path) -> Iterator[WorldDB]:
    shutil.copyfile(HERE / "v1.db", tmp_path / "v1.db")
    with worlddb.open(tmp_path / "v1.db", create=False, durability="normal") as db:
        yield db


def test_a_file_of_format_1_opens_sound_and_says_what_it_said(old: WorldDB) -> None:
    assert old.check() == []
    assert str(old.root_state) == EXPECTED["root_state"]
    assert [str(commit.hash) for commit in old.log()] == EXPECTED["commits"]


def test_a_file_of_format_1_has_every_kind_of_row(old: WorldDB) -> None:
    lines = [json.loads(line) for line in old.export()]
    types = {line["type"] for line in lines if "edge" in line}
    assert types == set(EXPECTED["edge_types"])
    kinds = {change.kind for commit in old.log() for change in commit.changes}
    assert kinds == set(EXPECTED["change_kinds"])
    assert {item.status for item in old.proposals(None)} == {
        "pending",
        "accepted",
        "rejected",
        "withdrawn",
    }
    assert [item.settled for item in old.conflicts(include_settled=True)] == [False, True]
    people = next(node for node in old.children() if node.name == "people")
    assert [
        (item.type, item.version, item.functional) for item in old.ontology(people.id).types()
    ] == [("likes", "7", True)]
    assert any(line.get("generation") for line in lines)


def test_the_past_of_a_file_of_format_1_can_be_read(old: WorldDB) -> None:
    for commit in old.log():
        seen = AsOf(known=commit.time)
        assert old.get(old.root_id, as_of=seen).state == commit.root_state
    moon = old.query().text("Moon").execute().nodes[0]
    parents = [
        old.get(old.get(moon.id, as_of=AsOf(known=commit.time)).parent or b"").name
        for commit in old.log()[1:]
    ]
    assert list(dict.fromkeys(parents)) == ["root", "Tesla"]
    assert parents[-1] == "root"


def test_every_node_of_a_file_of_format_1_has_a_proof(old: WorldDB) -> None:
    found = old.query().include_superseded().execute()
    assert len(found) == EXPECTED["nodes"]
    assert all(worlddb.verify_proof(old.prove(node.id), old.root_state) for node in found)


def test_an_export_of_a_file_of_format_1_plays_back_to_the_same_store(old: WorldDB) -> None:
    lines = list(old.export())
    with worlddb.open(":memory:") as new:
        assert new.replay(lines) == len(EXPECTED["commits"]) - 1
        assert str(new.root_state) == EXPECTED["root_state"]
        assert new.log() == old.log()
        assert list(new.export()) == lines
        assert new.check() == []
        assert new.proposals(None) == old.proposals(None)


def test_a_file_of_format_1_can_be_written_on(old: WorldDB) -> None:
    with old.transaction() as tx:
        new = tx.create_node(type="Fact", name="later")
        first = old.query().text("Sarah").execute().nodes[0]
        tx.write_edge("refers_to", new.id, first.id)
    assert old.check() == []
    assert [str(commit.hash) for commit in old.log()[:-1]] == EXPECTED["commits"]


def test_a_file_of_format_2_opens_sound_and_can_be_written_on(tmp_path: Path) -> None:
    path = tmp_path / "v2.db"
    shutil.copyfile(HERE / "v1.db", path)
    con = apsw.Connection(str(path))
    con.create_scalar_function("worlddb_write", lambda *_: 1, 0)
    with con:
        from_1_to_2(con)
        con.pragma("user_version", 2)
    con.close()
    with worlddb.open(path, create=False, durability="normal") as db:
        assert db.check() == []
        assert str(db.root_state) == EXPECTED["root_state"]
        with db.transaction() as tx:
            new = tx.create_node(type="Fact", name="later")
        assert db.check() == []
        assert worlddb.verify_proof(db.prove(new.id), db.root_state)
        assert [str(commit.hash) for commit in db.log()[:-1]] == EXPECTED["commits"]


def test_the_same_script_makes_the_same_journal(tmp_path: Path) -> None:
    build = runpy.run_path(str(HERE / "make_v1.py"))["build"]
    exports = []
    for name in ("one.db", "two.db"):
        build(tmp_path / name)
        with worlddb.open(tmp_path / name, create=False) as db:
            exports.append(list(db.export()))
    assert exports[0] == exports[1]


# -- migrating -------------------------------------------------------------------------------------


def file_of(path: Path, version: int) -> bytes:
    """Make a store of an older format; return its bytes."""
    shutil.copyfile(HERE / "v1.db", path)
    con = apsw.Connection(str(path))
    con.create_scalar_function("worlddb_write", lambda *_: 1, 0)
    with con:
        for migration in MIGRATIONS[: version - 1]:
            migration(con)
        con.pragma("user_version", version)
    con.close()
    return path.read_bytes()


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION))
def test_a_store_of_every_older_format_is_migrated_and_a_copy_is_kept(
    tmp_path: Path, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    path, copy = tmp_path / "m.db", tmp_path / f"m.db.format-{version}"
    before = file_of(path, version)
    with worlddb.open(path, create=False, durability="normal") as db:
        assert db.check() == []
        assert [str(commit.hash) for commit in db.log()] == EXPECTED["commits"]
        again = list(db.export())
    assert copy.read_bytes()[HEADER_BYTES:] == before[HEADER_BYTES:]
    assert f"from format {version} to format {FORMAT_VERSION}" in caplog.text
    assert str(copy) in caplog.text
    with worlddb.open(":memory:") as new:
        new.replay(again)
        assert new.check() == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.db", copy.name]


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION))
def test_who_only_reads_leaves_a_store_of_an_older_format_as_it_is(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copies = tmp_path / "m.db", tmp_path / "copies"
    before = file_of(path, version)
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    for options in ({"read_only": True}, {"create": False, "migrate": False}):
        with worlddb.open(path, **options) as db:  # type: ignore[arg-type]
            assert db.check() == []
            assert [str(commit.hash) for commit in db.log()] == EXPECTED["commits"]
            assert [node.name for node in db.query().text("Moon").execute()] == ["Moon"]
            (folder,) = copies.iterdir()
            assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            with pytest.raises(StorageError, match=rf"has format {version}.*worlddb migrate"):
                db.transaction().__enter__()
        assert list(copies.iterdir()) == []
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copies", "m.db"]


def test_a_migration_that_fails_changes_nothing_and_leaves_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.db"
    before = file_of(path, 4)

    def fails(con: apsw.Connection) -> None:
        con.execute("CREATE TABLE half (done)")
        raise apsw.FullError("no space")

    monkeypatch.setattr(file_copy, "MIGRATIONS", (fails,) * 4)
    with pytest.raises(StorageError, match="full"):
        worlddb.open(path, create=False)
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".db-wal"] == ["m.db"]
    monkeypatch.undo()
    with worlddb.open(path, create=False) as db:
        assert db.check() == []
    copy = (tmp_path / "m.db.format-4").read_bytes()
    assert copy[HEADER_BYTES:] == before[HEADER_BYTES:]


def test_an_equal_text_of_an_older_format_is_found_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    file_of(path, 4)
    with worlddb.open(path, create=False) as db:
        tesla = next(node for node in db.children() if node.name == "Tesla")
        fact = next(node for node in db.children(tesla.id) if node.content == "fact h")
        with db.transaction() as tx:
            again = tx.create_node(
                type=fact.type,
                name=fact.name,
                content=fact.content,
                created_at=fact.created_at,
                parent=tesla.id,
            )
        assert again.id == fact.id


def test_commands_read_a_store_of_an_older_format_and_say_what_to_do_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.db"
    before = file_of(path, 4)
    reading = [["check"], ["log"], ["list"], ["recall", "x"], ["export"], ["doctor"]]
    for command in (*reading, ["backup", str(tmp_path / "copy.db")], ["children"], ["scopes"]):
        assert run([*command, "--db", str(path)]) == 0, command
        said = capsys.readouterr()
        assert "worlddb migrate" in said.out + said.err + caplog.text, command
        caplog.clear()
    assert run(["proposals", "reject", "--tier", "phonetic", "--yes", "--db", str(path)]) != 0
    assert "worlddb migrate" in caplog.text
    assert path.read_bytes() == before
    with worlddb.open(tmp_path / "copy.db", create=False, migrate=False) as db:
        assert db.why_read_only is None
    assert run(["migrate", "--db", str(path)]) == 0
    assert "from format 4 to format 5" in capsys.readouterr().out
    copy = (tmp_path / "m.db.format-4").read_bytes()
    assert copy[HEADER_BYTES:] == before[HEADER_BYTES:]
    assert run(["migrate", "--db", str(path)]) == 0
    assert "has format 5 already" in capsys.readouterr().out
    assert run(["check", "--db", str(path)]) == 0

"""Files of every released format: a later version opens them, and finds in them what was written.

`v1.db` was made by `make_v1.py`. The file itself is never opened: tests work on a copy.
"""

from __future__ import annotations

import json
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb import AsOf, WorldDB
from worlddb.store.sqlite.schema import from_1_to_2

HERE = Path(__file__).parent
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

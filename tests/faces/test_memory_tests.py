"""worlddb test: questions with their expected answers, and what is no such file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import worlddb

from .command import Result, in_process

EXAMPLE = Path(__file__).parents[2] / "examples" / "beliefs.yaml"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tests") / "memory.db"
    with worlddb.Memory(path, user_id="ada") as memory:
        memory.write("I live in Rome.", at="2026-01-10T00:00Z")
        memory.write("I moved to Paris.", at="2026-02-20T00:00Z")
        memory.write("I am allergic to peanuts.", at="2026-02-21T00:00Z")
    return path


def run_tests(store: Path, folder: Path, *tests: dict[str, Any], **usual: Any) -> Result:
    file = folder / "tests.json"
    file.write_text(json.dumps({"user_id": "ada", **usual, "tests": list(tests)}))
    return in_process("test", file, "--db", store, "--json")


def test_the_example_passes(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    report = tmp_path / "report.xml"
    done = in_process("test", EXAMPLE, "--db", store, "--junit", report)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "5 passed, 0 failed"
    suite = ElementTree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("5", "0")


ASK = {"query": "Where do I live?"}
HELD: list[dict[str, Any]] = [
    {"hit": "  paris "},
    {"hit": {"text": "Paris", "among": 1}},
    {"never": "Rome"},
    {"as_of": "2026-02-01", "hit": "Rome", "never": ["Paris"]},
    {"hit": ["Paris", "moved"]},
    {"confidence_above": 0.01},
    {"user_id": "bob", "empty": True, "confidence_below": 0.01},
    {"empty": False},
    {"include_retired": True, "hit": "Rome"},
]
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"hit": "Oslo"}, "'Oslo' is not among the"),
    ({"include_retired": True, "hit": "Paris", "among": 1}, "not among the first 1"),
    ({"never": "Paris"}, "'Paris' must not be a hit, and is hit 1"),
    ({"confidence_below": 0.01}, "not below 0.01"),
    ({"confidence_above": 1}, "not above 1.0"),
    ({"empty": True}, "hits"),
    ({"user_id": "bob", "empty": False}, "there are no hits"),
]


def test_what_holds_passes(store: Path, tmp_path: Path) -> None:
    done = run_tests(store, tmp_path, *(ASK | one for one in HELD))
    assert [one["failures"] for one in next(iter(done.data["files"].values()))] == [[]] * len(HELD)
    assert (done.code, done.data["failed"]) == (0, 0)


@pytest.mark.parametrize(("test", "why"), BROKEN, ids=lambda given: str(given)[:40])
def test_what_does_not_hold_fails_and_says_why(
    store: Path, tmp_path: Path, test: dict[str, Any], why: str
) -> None:
    done = run_tests(store, tmp_path, ASK | test)
    (verdict,) = next(iter(done.data["files"].values()))
    assert (done.code, verdict["passed"]) == (1, False)
    assert why in verdict["failures"][0]


def test_a_memory_can_be_named_by_its_id(store: Path, tmp_path: Path) -> None:
    with worlddb.Memory(store, user_id="ada") as memory:
        ident = memory.recall("Where do I live?")[0].node.id
    assert run_tests(store, tmp_path, ASK | {"hit": {"id": ident.short, "among": 1}}).code == 0
    assert run_tests(store, tmp_path, ASK | {"never": {"id": ident.short}}).code == 1


def test_a_question_that_cannot_be_asked_is_an_error_of_that_test(
    store: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    file = tmp_path / "tests.json"
    tests = [ASK | {"as_of": "soon", "hit": "Paris"}, ASK | {"hit": "Paris", "user_id": "ada"}]
    file.write_text(json.dumps({"tests": tests}))
    done = in_process("test", file, "--db", store, "--junit", report)
    assert done.code == 1
    assert "1 passed, 1 failed" in done.out
    assert ElementTree.parse(report).getroot()[0].get("errors") == "1"


def test_a_run_leaves_the_store_as_it_was(store: Path, tmp_path: Path) -> None:
    with worlddb.open(store) as db:
        seq, faded = db.log()[-1].seq, db.fading(below=1)
    assert run_tests(store, tmp_path, ASK | {"hit": "Paris"}).code == 0
    with worlddb.open(store) as db:
        assert db.log()[-1].seq == seq
        assert [one.recalls for one in db.fading(below=1)] == [one.recalls for one in faded]


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"tests": []},
        {"tests": ["x"]},
        {"tests": [ASK]},
        {"tests": [ASK | {"hits": "Paris"}]},
        {"tests": [ASK | {"hit": 3}]},
        {"tests": [ASK | {"hit": ""}]},
        {"tests": [ASK | {"hit": {"text": "a", "id": "b"}}]},
        {"tests": [ASK | {"hit": "Paris", "among": 0}]},
        {"tests": [ASK | {"confidence_below": 2}]},
        {"tests": [ASK | {"empty": "yes"}]},
        {"tests": [ASK | {"hit": "Paris"}], "colour": "red"},
    ],
    ids=lambda data: json.dumps(data)[:60],
)
def test_a_wrong_file_is_refused(store: Path, tmp_path: Path, data: object) -> None:
    file = tmp_path / "tests.json"
    file.write_text(json.dumps(data))
    done = in_process("test", file, "--db", store)
    assert (done.code, done.out) == (2, "")
    assert "tests.json: " in done.err


def test_yaml_without_its_library_says_what_to_do(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    done = in_process("test", EXAMPLE, "--db", store)
    assert done.code == 2
    assert 'pip install "worlddb[yaml]"' in done.err

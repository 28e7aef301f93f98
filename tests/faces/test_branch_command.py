"""branch, merge and --branch: tried, tested, compared, merged and dropped from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from worlddb import Memory

from .command import Result, in_process


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path, embedder="none") as memory:
        memory.write("I live in London.")
    return path


def command(store: Path, *words: object) -> Result:
    return in_process("--db", store, *words)


def test_a_branch_is_made_written_tested_compared_merged_and_dropped(
    store: Path, tmp_path: Path
) -> None:
    assert command(store, "branch").err.startswith("there are no branches")
    assert command(store, "branch", "create", "try").rows[0].split()[:2] == ["try", "1"]
    assert command(store, "write", "I moved to Paris.", "--branch", "try").code == 0
    tests = tmp_path / "tests.json"
    tests.write_text(json.dumps({"tests": [{"query": "Where do I live?", "hit": "Paris"}]}))
    assert command(store, "test", tests).code == 1
    assert command(store, "test", tests, "--branch", "try").code == 0
    found = command(store, "branch", "diff", "try", "--json").data
    assert "I moved to Paris." in [node["content"] for node in found["nodes"]]
    assert "I moved to Paris." in command(store, "branch", "diff", "try").out
    assert command(store, "merge", "try", "--dry-run").out.startswith("branch try would be merged")
    assert command(store, "test", tests).code == 1
    merged = command(store, "merge", "try", "--drop")
    assert merged.out.startswith("branch try was merged by commit 2")
    assert merged.err.strip() == "to take it back: worlddb undo 2"
    assert command(store, "test", tests).code == 0
    assert command(store, "branch", "--json").data == []


def test_conflicts_are_listed_and_the_exit_code_says_so(store: Path) -> None:
    command(store, "branch", "create", "try")
    command(store, "--branch", "try", "write", "I moved to Paris.")
    command(store, "write", "I moved to Rome.")
    merged = command(store, "merge", "try")
    assert merged.code == 1
    assert "replaced" in merged.out
    assert len(command(store, "conflicts", "--json").data["conflicts"]) == 1
    assert command(store, "merge", "try").out == "branch try: nothing is new\n"


def test_a_branch_is_dropped_only_when_that_is_confirmed(store: Path) -> None:
    command(store, "branch", "create", "try")
    assert "--yes" in command(store, "branch", "drop", "try").err
    assert len(command(store, "branch", "--json").data) == 1
    assert command(store, "branch", "drop", "try", "--yes").code == 0
    assert command(store, "branch", "--json").data == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("branch", "create"), 2),
        (("branch", "list", "try"), 2),
        (("branch", "create", "a/b"), 2),
        (("branch", "drop", "none", "--yes"), 3),
        (("merge", "none"), 3),
        (("merge", "none", "--dry-run", "--drop"), 2),
        (("--branch", "none", "recall", "London"), 3),
        (("--branch", "none", "write", "Lost."), 3),
        (("--branch", "../x", "recall", "London"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_what_cannot_be_meant_is_refused(store: Path, words: tuple[str, ...], code: int) -> None:
    assert command(store, *words).code == code
    assert list(store.parent.iterdir()) == [store]

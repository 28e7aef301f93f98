"""retention: policies from the command line, a dry run, and the question before an erasure."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlddb import Memory

from .command import in_process

DAY = 86_400_000_000


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path, embedder="none", clock=lambda: 1_767_225_600_000_000) as memory:
        memory.write("I live in Rome.", user_id="ada")
    return path


def test_a_policy_is_set_listed_and_applied(store: Path) -> None:
    options = ("--db", store)
    assert in_process("retention", *options).err.startswith("there are no retention policies")
    made = in_process("retention", "set", "--user-id", "ada", "--keep-days", "30", *options)
    assert (made.code, made.rows) == (0, ["user:ada  30         retire"])
    listed = in_process("retention", "--json", *options)
    assert listed.data[0]["keep_days"] == 30
    planned = in_process("retention", "apply", "--dry-run", *options)
    assert (planned.code, planned.rows[0].split()) == (0, ["user:ada", "retire", "1", "0", "0"])
    assert in_process("list", "--user-id", "ada", "--json", *options).data["memories"]
    assert in_process("retention", "apply", *options).code == 0
    assert not in_process("list", "--user-id", "ada", "--json", *options).data["memories"]


def test_an_erasure_by_policy_has_to_be_confirmed(store: Path) -> None:
    options = ("--db", store)
    erase = ("--keep-days", "30", "--then", "erase")
    in_process("retention", "set", "--user-id", "ada", *erase, *options)
    refused = in_process("retention", "apply", *options)
    assert (refused.code, "give --yes" in refused.err) == (2, True)
    done = in_process("retention", "apply", "--yes", "--json", *options)
    assert done.data["erasure"]["cleaned"]


def test_a_hold_refuses_the_command_erase(store: Path) -> None:
    options = ("--db", store)
    in_process("retention", "set", "--user-id", "ada", "--hold", "on", *options)
    listed = in_process("list", "--user-id", "ada", "--json", *options).data
    for what in ([listed["memories"][0]["id"]], ["--scope", "user:ada"]):
        done = in_process("erase", *what, "--yes", *options)
        assert (done.code, "legal hold" in done.err) == (5, True)


@pytest.mark.parametrize(
    "wrong",
    [
        ("list", "--keep-days", "3"),
        ("apply", "--hold", "on"),
        ("set", "--dry-run", "--user-id", "ada"),
        ("set", "--keep-days", "3"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    store: Path, wrong: tuple[str, ...]
) -> None:
    assert in_process("retention", *wrong, "--db", store).code == 2

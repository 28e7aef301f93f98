"""grants: given, listed, revoked and refused from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlddb import Memory

from .command import in_process


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path, embedder="none") as memory:
        memory.write("I live in Rome.", user_id="ada")
    return path


def test_a_grant_is_given_listed_and_revoked(store: Path) -> None:
    options = ("--db", store)
    assert in_process("grants", *options).err.startswith("there are no grants")
    give = ("give", "user:bob", "write", "--user-id", "ada", "--until", "2100-01-01")
    given = in_process("grants", *give, *options)
    assert given.code == 0, given.err
    assert given.rows[0].split()[1:4] == ["user:bob", "write", "user:ada"]
    with Memory(store, embedder="none") as memory:
        written = memory.bound(user_id="bob").write("Buy milk.", user_id="ada")
    [listed] = in_process("grants", "--json", *options).data
    assert listed["until"].startswith("2100-01-01")
    refused = in_process("grants", "refuse", str(written.id), "--user-id", "ada", *options)
    assert refused.code == 0, refused.err
    [refusal] = in_process("grants", "--json", "--user-id", "ada", *options).data
    assert refusal["right"] == "refused"
    assert in_process("grants", "revoke", refusal["id"], *options).code == 0
    assert in_process("grants", "--json", *options).data == []
    assert len(in_process("grants", "--include-ended", "--json", *options).data) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        ("give", "user:bob"),
        ("revoke",),
        ("list", "3f2a"),
        ("list", "--until", "2100-01-01"),
        ("revoke", "3f2a", "--include-ended"),
        ("give", "user:bob", "read"),
        ("give", "user:bob", "own", "--user-id", "ada"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(store: Path, wrong: tuple[str, ...]) -> None:
    assert in_process("grants", *wrong, "--db", store).code == 2

"""`worlddb fading`: a list to decide about, and nothing ends by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlddb import Memory

from .command import in_process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Memory(tmp_path / "memory.db", embedder="none") as memory:
        memory.write("an old thing", at="2020-01-01T00:00:00Z")
        memory.write("a new thing")
    return tmp_path / "memory.db"


def test_what_is_old_and_never_recalled_is_listed_with_the_reasons(path: Path) -> None:
    data = in_process("--db", path, "fading", "--json").data
    assert [one["node"]["content"] for one in data] == ["an old thing"]
    assert "never recalled" in data[0]["because"]
    assert "an old thing" in in_process("--db", path, "fading").out
    assert in_process("--db", path, "list", "--json").data["memories"][-1]["retired"] is False


def test_nothing_below_the_share_is_said_and_a_bad_share_refused(path: Path) -> None:
    done = in_process("--db", path, "fading", "--below", "1e-30")
    assert (done.code, done.out, "no memory has faded" in done.err) == (0, "", True)
    assert in_process("--db", path, "fading", "--below", "x").code == 2

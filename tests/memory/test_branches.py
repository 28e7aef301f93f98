"""Branches of a memory: the same scopes and calls, and nothing of them for bound callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from worlddb import Memory, NotFoundError, RejectedError


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    options: dict[str, Any] = {"embedder": "none", "recluster": "off"}
    with Memory(tmp_path / "memory.db", user_id="ada", actor="tester", **options) as made:
        made.write("I live in London.")
        yield made


def said(memory: Memory) -> set[str]:
    return {one.text for one in memory.list()}


def test_a_branch_has_the_scopes_and_the_actor_of_its_memory(memory: Memory) -> None:
    with memory.branch("try") as trial:
        done = trial.write("Water is wet.")
        assert done.commit is not None
        assert done.commit.actor == "tester"
        assert said(trial) == {"I live in London.", "Water is wet."}
        assert said(memory) == {"I live in London."}
        trial.retire(done.id)
    assert [node.content for node in memory.branch_diff("try").nodes] == ["Water is wet."]
    merged = memory.merge("try")
    assert merged.commit is not None
    assert merged.commit.actor == "tester"
    assert said(memory) == {"I live in London."}  # It was retired before it was merged.
    assert [one.name for one in memory.branches()] == ["try"]
    assert list(memory.drop_branch("try")) == []


def test_closing_a_branch_leaves_the_memory_open(memory: Memory) -> None:
    memory.branch("try").close()
    memory.write("Water is wet.")
    with memory.branch("try", create=False) as trial:
        assert said(trial) == {"I live in London."}


def test_a_consolidation_is_tried_on_a_branch(memory: Memory) -> None:
    memory.write("I like tea.")
    with memory.branch("try") as trial:
        assert trial.consolidate().summaries
        assert not any(node.type == "Summary" for node in memory.db.query().execute().nodes)
        memory.merge("try")
    assert any(node.type == "Summary" for node in memory.db.query().execute().nodes)


@pytest.mark.parametrize(
    "call",
    [
        lambda bound: bound.branches(),
        lambda bound: bound.branch("try"),
        lambda bound: bound.create_branch("new"),
        lambda bound: bound.branch_diff("try"),
        lambda bound: bound.merge("try"),
        lambda bound: bound.merge("none"),
        lambda bound: bound.drop_branch("try"),
    ],
)
def test_a_bound_memory_neither_sees_nor_makes_branches(
    memory: Memory, call: Callable[[Memory], object]
) -> None:
    memory.create_branch("try")
    with pytest.raises(RejectedError, match="a bound caller may not ask"):
        call(memory.bound(user_id="ada"))
    assert len(memory.branches()) == 1


def test_the_memory_of_a_branch_can_be_bound(memory: Memory) -> None:
    memory.write("Bob likes tea.", user_id="bob")
    with memory.branch("try") as trial:
        bound = trial.bound(user_id="ada")
        bound.write("Water is wet.")
        assert "Bob likes tea." not in said(bound)
        with pytest.raises(RejectedError):
            bound.write("Not mine.", user_id="bob")
        with pytest.raises(NotFoundError):
            memory.read(bound.list().memories[0].id)
    assert memory.merge("try").nodes == 1

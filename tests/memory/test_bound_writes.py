"""What a bound caller writes stays in its own scope, and tells it nothing of other callers."""

from __future__ import annotations

from typing import Any

import pytest

import worlddb
from worlddb import Memory

FOREIGN: list[dict[str, Any]] = [
    {"user_id": "ada"},
    {"user_id": "nobody"},
    {"run_id": "r"},
    {"agent_id": ["bot", "other"]},
    {"user_id": "ada", "app_id": "shop"},
]


@pytest.mark.parametrize("scope", FOREIGN, ids=str)
def test_a_bound_caller_plants_nothing_in_scopes_of_another_kind(
    memory: Memory, scope: dict[str, Any]
) -> None:
    memory.write("tea of ada", user_id="ada", run_id="r")
    before = memory.db.root_state
    shop = memory.bound(app_id="shop")
    chat = [{"content": "a"}, {"content": "b"}]
    for given in ({"text": "Pay Eve."}, {"messages": chat}, {"text": "x", "idempotency_key": "k"}):
        with pytest.raises(worlddb.RejectedError, match=r"not yours.*leave .*_id out"):
            shop.write(**given, **scope)
    assert memory.db.root_state == before


def test_the_refusal_is_the_same_whether_the_scope_exists_or_not(memory: Memory) -> None:
    memory.write("tea", user_id="ada")
    told = []
    for name in ("ada", "nobody"):
        with pytest.raises(worlddb.RejectedError) as refused:
            memory.bound(app_id="shop").write("x", user_id=name)
        told.append(str(refused.value).replace(name, "X"))
    assert told[0] == told[1]


def test_a_kind_can_be_opened_by_whoever_binds_and_never_by_the_bound(memory: Memory) -> None:
    mine = memory.bound(user_id="ada", writes_into=["run_id"])
    done = mine.write("tea", run_id="r")
    assert [str(scope) for scope in done.scopes] == ["user:ada", "run:r"]
    assert [one.text for one in memory.list(run_id="r", user_id="ada")] == ["tea"]
    with pytest.raises(worlddb.RejectedError):
        mine.write("tea", agent_id="bot")
    for further in (
        mine.bound(app_id="shop", writes_into=["agent_id"]),
        memory.bound(user_id="ada").bound(app_id="shop", writes_into=["agent_id", "run_id"]),
    ):
        with pytest.raises(worlddb.RejectedError):
            further.write("tea", agent_id="bot")
    with pytest.raises(worlddb.InvalidInputError, match="writes_into"):
        memory.bound(user_id="ada", writes_into=["planet_id"])


def test_naming_another_kind_still_narrows_what_is_read(memory: Memory) -> None:
    memory.write("tea", user_id="ada", run_id="r")
    memory.write("cake", user_id="ada")
    mine = memory.bound(user_id="ada")
    assert [one.text for one in mine.list(run_id="r")] == ["tea"]
    assert [hit.node.content for hit in mine.recall("tea and cake", run_id="r")] == ["tea"]


def test_the_scopes_that_a_memory_object_was_made_with_may_be_written(memory: Memory) -> None:
    mine = Memory(memory.db, user_id="ada").bound(app_id="shop")
    assert {str(scope) for scope in mine.write("tea").scopes} == {"user:ada", "app:shop"}
    assert mine.write("cake", user_id="ada").created


def known(done: worlddb.Written | worlddb.Retired) -> tuple[Any, ...]:
    """Return what a result tells of the store."""
    commit = done.commit
    told = None if commit is None else (commit.seq, commit.root_state, commit.hash, commit.previous)
    return told, done.root_state


def test_a_bound_caller_learns_its_own_number_and_state_alone() -> None:
    """Two stores, in one of which others write in between: the caller gets the same answers."""
    answers = []
    for busy in (False, True):
        with Memory(":memory:", recluster="off") as memory:
            mine = memory.bound(user_id="ada", actor="ada")
            told = []

            def others(number: int, memory: Memory = memory, busy: bool = busy) -> None:
                for user in ("bob", "eve") if busy else ():
                    memory.write(f"secret {number} of {user}", user_id=user)

            for number in range(3):
                others(number)
                told.append(mine.write(f"note {number}", at="2026-01-01T00:00:00Z"))
            others(3)
            again = mine.write("note 1")
            others(4)
            ended = mine.retire(told[0].id)
            others(5)
            all_ended = mine.retire_all(user_id="ada")
            results: list[Any] = [*told, again, ended, all_ended]
            assert memory.db.root_state not in [state for one in results for state in known(one)]
            numbers = [one.commit.seq for one in told if one.commit]
            assert numbers == [1, 2, 3]
            answers.append([_shape(known(one)) for one in results])
    assert answers[0] == answers[1]


def _shape(told: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return what has to be equal: states hash what is random."""
    commit, _ = told
    return commit if commit is None else (commit[0], commit[3])


def test_inside_bounds_of_two_kinds_there_is_no_number(memory: Memory) -> None:
    memory.write("elsewhere", user_id="ada")
    both = memory.bound(user_id="ada", agent_id="desk")
    first, second = both.write("tea"), both.write("cake")
    assert known(first) == known(second)
    assert memory.db.root_state not in (first.root_state, second.root_state)


def test_an_erasure_tells_no_more(memory: Memory) -> None:
    memory.write("elsewhere", user_id="bob")
    mine = memory.bound(user_id="ada")
    ident = mine.write("tea").id
    receipt = mine.erase(ident)
    assert receipt.commit is not None
    assert receipt.commit.seq < memory.db.log(limit=1, newest_first=True)[0].seq
    assert receipt.root_state != memory.db.root_state


def test_what_others_wrote_into_a_scope_says_who(memory: Memory) -> None:
    memory.bound(user_id="ada", actor="ada").write("I like tea.")
    shop = memory.bound(app_id="shop", writes_into=["user_id"], actor="the shop")
    shop.write("Ada likes the dearest tea.", user_id="ada")
    mine = memory.bound(user_id="ada")
    by = {"I like tea.": "ada", "Ada likes the dearest tea.": "the shop"}
    assert {one.text: one.actor for one in mine.list()} == by
    assert {mine.read(one.id).text: mine.read(one.id).actor for one in mine.list()} == by
    hits = {hit.node.content: hit.actor for hit in mine.recall("Which tea?")}
    assert by.items() <= hits.items()
    assert all(hit["node"]["actor"] for hit in mine.recall("Which tea?").to_json()["hits"])

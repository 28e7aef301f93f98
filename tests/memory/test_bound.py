"""Bounds: a memory that is bound to a scope cannot leave it, whatever a call names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import worlddb
from worlddb import Memory


@pytest.fixture
def shared(memory: Memory) -> tuple[Memory, worlddb.Written]:
    memory.write("tea of ada", user_id="ada", app_id="shop")
    return memory, memory.write("tea of bob", user_id="bob", app_id="shop", run_id="r")


REFUSED: list[Callable[[Memory, worlddb.Id], object]] = [
    lambda m, other: m.read(other),
    lambda m, other: m.read(str(other)),
    lambda m, other: m.read(str(other)[:4]),
    lambda m, other: m.read(other, app_id="shop"),
    lambda m, other: m.read(other, user_id="bob"),
    lambda m, other: m.amend(other, "mine"),
    lambda m, other: m.retire(other),
    lambda m, other: m.retire(other, run_id="r"),
    lambda m, other: m.recall("tea", user_id="bob"),
    lambda m, other: m.recall("tea", user_id=["ada", "bob"]),
    lambda m, other: m.list(user_id="bob"),
    lambda m, other: m.write("mine", user_id="bob"),
    lambda m, other: m.retire_all(user_id="bob"),
    lambda m, other: m.purge_scope(user_id="bob", confirm=True),
    lambda m, other: m.purge_scope(app_id="shop", confirm=True),
    lambda m, other: m.bound(user_id="bob"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_anothers_is_refused_and_untouched(
    shared: tuple[Memory, worlddb.Written], number: int
) -> None:
    memory, other = shared
    before = memory.db.root_state
    mine = memory.bound(user_id="ada")
    with pytest.raises((worlddb.RejectedError, worlddb.NotFoundError)):
        REFUSED[number](mine, other.id)
    assert memory.db.root_state == before


def test_calls_within_bounds_see_only_ones_own(shared: tuple[Memory, worlddb.Written]) -> None:
    memory, _ = shared
    mine = memory.bound(user_id="ada")
    for scope in ({}, {"app_id": "shop"}, {"user_id": "ada"}):
        assert [one.text for one in mine.list(**scope)] == ["tea of ada"]  # type: ignore[arg-type]
        assert [hit.node.content for hit in mine.recall("tea", **scope)] == ["tea of ada"]  # type: ignore[arg-type]
    assert len(mine.recall("tea", run_id="r")) == 0
    assert [scope.name for scope in mine.list_scopes()] == ["user:ada", "app:shop"]
    assert len(mine.retire_all(app_id="shop")) == 1
    assert [one.text for one in memory.list(app_id="shop")] == ["tea of bob"]


def test_ids_that_begin_alike_are_not_told_apart_from_what_is_not_there(
    shared: tuple[Memory, worlddb.Written],
) -> None:
    memory, other = shared
    mine = memory.bound(user_id="ada")
    start = str(other.id)[:4]
    absent = "0000" if start != "0000" else "1111"
    with pytest.raises(worlddb.NotFoundError) as hidden:
        mine.read(start)
    with pytest.raises(worlddb.NotFoundError) as missing:
        mine.read(absent)
    assert str(hidden.value).replace(start, "") == str(missing.value).replace(absent, "")


def test_a_shared_memory_does_not_tell_of_others_it_is_shared_with(memory: Memory) -> None:
    done = memory.write("tea", user_id=["ada", "bob"], app_id="shop")
    there = memory.bound(user_id="bob").read(done.id)
    assert [str(scope) for scope in there.scopes] == ["user:bob", "app:shop"]


def test_bounds_only_grow_tighter(memory: Memory) -> None:
    mine = memory.bound(user_id=["ada", "bob"]).bound(run_id="r").bound(user_id="ada")
    assert [str(scope) for scope in mine.write("tea").scopes] == ["user:ada", "run:r"]
    with pytest.raises(worlddb.RejectedError):
        mine.list(user_id="bob")
    with pytest.raises(worlddb.InvalidInputError):
        memory.bound()


def test_amending_does_not_tell_of_others_either(memory: Memory) -> None:
    done = memory.write("tea", user_id=["ada", "bob"])
    new = memory.bound(user_id="bob").amend(done.id, "coffee")
    assert [str(scope) for scope in new.scopes] == ["user:bob"]
    assert [str(scope) for scope in memory.read(new.id).scopes] == ["user:ada", "user:bob"]


def test_a_cursor_tells_nothing_of_what_is_anothers(shared: tuple[Memory, worlddb.Written]) -> None:
    memory, other = shared
    mine = memory.bound(user_id="ada")
    bob = worlddb.ScopeName("user", "bob").id()
    nobody = worlddb.ScopeName("user", "nobody").id()
    for cursor in (other.id, "00" * 32):
        with pytest.raises(worlddb.InvalidInputError, match="cursor"):
            mine.list(cursor=str(cursor))
    for scope in (bob, nobody):
        with pytest.raises(worlddb.InvalidInputError, match="cursor"):
            mine.list_scopes(cursor=str(scope))


def test_erasing_stays_within_bounds(shared: tuple[Memory, worlddb.Written]) -> None:
    memory, other = shared
    mine = memory.bound(user_id="ada")
    with pytest.raises(worlddb.NotFoundError):
        mine.erase(other.id)
    for scope in ({"user_id": "bob"}, {"app_id": "shop"}):
        with pytest.raises(worlddb.RejectedError):
            mine.erase(confirm=True, **scope)  # type: ignore[arg-type]
    with pytest.raises(worlddb.InvalidInputError, match="confirm"):
        mine.erase(user_id="ada")
    assert mine.erase(user_id="ada", confirm="ada").commit is not None
    assert [one.text for one in memory.list(app_id="shop")] == ["tea of bob"]


def test_a_write_lives_in_ones_own_scope_and_compares_with_nobody_elses(memory: Memory) -> None:
    memory.write("I live in Rome.", user_id="bob", metadata={"secret": 1}, source="diary")
    bot = memory.bound(agent_id="bot", writes_into=["user_id"])
    done = bot.write("I live in Rome.", user_id="bob")
    assert done.created
    assert (bot.read(done.id).metadata, bot.read(done.id).provenance) == ({}, ())
    assert memory.db.get(done.id).parent == worlddb.ScopeName("agent", "bot").id()
    assert bot.write("I moved to Paris.", user_id="bob").superseded in ((), (done.id,))
    [first] = memory.list(user_id="bob", limit=50).memories[-1:]
    assert (first.text, first.retired) == ("I live in Rome.", False)
    assert len(bot.list(user_id="bob")) >= 1


def test_who_has_a_name_now_does_not_see_what_was_known_of_the_one_before(memory: Memory) -> None:
    old = memory.write("tea of the first ada", user_id="ada")
    known = memory.read(old.id).known_from
    memory.purge_scope(user_id="ada", confirm="ada")
    memory.write("tea of the second ada", user_id="ada")
    mine = memory.bound(user_id="ada")
    assert len(mine.list(known_at=known)) == 0
    assert len(mine.recall("tea", known_at=known)) == 0
    assert len(memory.list(user_id="ada", known_at=known)) == 1


def names(memory: Memory, **options: Any) -> list[str]:
    return [scope.name for scope in memory.list_scopes(**options)]


def test_a_scope_is_listed_however_long_ago_it_was_written_to(memory: Memory) -> None:
    memory.write("tea of ada", user_id="ada", app_id="shop")
    memory.write("tea of bob", user_id="bob", app_id="shop", run_id="r")
    ada = worlddb.ScopeName("user", "ada").id()
    with memory.db.transaction(bulk=True) as tx:
        tx.create_nodes(
            worlddb.NodeDraft(type="Memory", content=f"note {number}", parent=ada)
            for number in range(10_100)
        )
    memory.write("cake of ada", user_id="ada", run_id="q")
    mine = memory.bound(user_id="ada")
    assert names(mine) == ["user:ada", "app:shop", "run:q"]
    assert names(mine, kind="app") == ["app:shop"]
    first = mine.list_scopes(limit=2)
    assert names(mine, cursor=first.next_cursor) == ["run:q"]


def test_a_scope_is_listed_for_a_chat_and_for_a_turn_of_it(memory: Memory) -> None:
    chat = [{"role": "user", "content": "I like tea"}, {"role": "assistant", "content": "Noted"}]
    memory.write(chat, user_id="ada", app_id="shop")
    memory.write(chat, user_id="bob", app_id="mill")
    assert names(memory.bound(user_id="ada")) == ["user:ada", "app:shop"]
    (session,) = memory.list(user_id="bob").memories
    turn = memory.db.children(session.id)[0]
    with memory.db.transaction() as tx:
        tx.write_edge("contains", worlddb.ScopeName("user", "ada").id(), turn.id)
    assert names(memory.bound(user_id="ada")) == ["user:ada", "app:shop", "app:mill"]


def test_a_scope_is_listed_only_for_memories_that_are_still_there(memory: Memory) -> None:
    done = memory.write("My manager Sarah Chen likes tea", user_id="ada", app_id="shop")
    memory.write("Sarah Chen was here", user_id="ada")
    memory.retire(done.id)
    mine = memory.bound(user_id="ada")
    assert names(mine) == ["user:ada"]
    assert names(mine, include_retired=True) == ["user:ada", "app:shop"]


def test_within_bounds_of_two_kinds_a_text_is_compared_with_what_can_be_seen_alone(
    memory: Memory,
) -> None:
    secret = memory.write("The code is 99.", user_id="ada", metadata={"s": 1}, source="diary")
    both = memory.bound(user_id="ada", agent_id="desk")
    done = both.write("The code is 99.")
    assert done.created
    assert (both.read(done.id).metadata, both.read(done.id).provenance) == ({}, ())
    assert both.write("The  code is 99.").id == done.id
    with pytest.raises(worlddb.NotFoundError):
        both.read(secret.id)


def test_within_bounds_of_two_kinds_a_write_ends_nothing_outside(memory: Memory) -> None:
    home = memory.write("I live in Rome.", user_id="ada")
    both = memory.bound(user_id="ada", agent_id="desk")
    paris = both.write("I moved to Paris.")
    assert paris.superseded == ()
    assert not memory.read(home.id).retired
    assert both.write("I moved to Oslo.").superseded == (paris.id,)
    assert memory.db.check() == []


def test_within_bounds_of_two_kinds_a_key_is_not_told_of_anothers(memory: Memory) -> None:
    memory.write("The code is 99.", user_id="ada", idempotency_key="k")
    both = memory.bound(user_id="ada", agent_id="desk")
    done = both.write("Tea is ready.", idempotency_key="k")
    assert done.created
    assert both.write("Tea is ready.", idempotency_key="k").id == done.id
    with pytest.raises(worlddb.ConflictError):
        both.write("Something else.", idempotency_key="k")


def test_amending_what_lives_with_another_is_done_by_ones_own_names_and_claims(
    memory: Memory,
) -> None:
    rome = memory.write("I live in Rome.", user_id="ada")
    memory.write("My manager Sarah Chen prefers tea.", user_id="ada", source="diary")
    secret = memory.write("The code is 99.", user_id="ada", metadata={"s": 1})
    bonn = memory.write("I live in Bonn.", user_id="bob")
    shared = memory.write("A party with Tom Berg.", user_id=["ada", "bob"])
    bob = memory.bound(user_id="bob")
    new = bob.amend(shared.id, "I moved to Oslo.")
    assert bonn.id in new.superseded
    assert rome.id not in new.superseded
    assert not memory.read(rome.id).retired
    party = bob.amend(new.id, "A party with Tom Berg and Sarah Chen.")
    assert {one.name: one.created for one in party.entities} == {
        "Tom Berg": False,
        "Sarah Chen": True,
    }
    [sarah] = [hit.node for hit in bob.recall("Sarah Chen", types=["Entity"], k=1)]
    assert (sarah.aliases, sarah.provenance) == ((), ())
    last = bob.amend(party.id, "The code is 99.")
    assert last.id != secret.id
    assert bob.read(last.id).metadata == {}
    for user in ("ada", "bob"):
        assert last.id in [one.id for one in memory.list(user_id=user)]
    assert memory.db.get(last.id).parent == worlddb.ScopeName("user", "ada").id()
    assert memory.db.check() == []


def test_what_replaced_a_shared_memory_is_not_told_where_it_cannot_be_seen(memory: Memory) -> None:
    old = memory.write("I live in Rome.", user_id="ada", app_id="shop")
    new = memory.write("I moved to Paris.", user_id="ada")
    assert memory.read(old.id).superseded_by == (new.id,)
    shop = memory.bound(app_id="shop")
    assert shop.read(old.id).superseded_by == ()
    assert [one.superseded_by for one in shop.list(include_retired=True)] == [()]
    with pytest.raises(worlddb.ConflictError, match="was retired") as refused:
        shop.amend(old.id, "I live in Lima.")
    assert new.id.short not in str(refused.value)
    assert len(shop.retire(old.id)) == 0
    with pytest.raises(worlddb.ConflictError, match=new.id.short):
        memory.retire(old.id)


def test_what_others_have_changes_nothing_of_what_a_caller_gets(memory: Memory) -> None:
    """Not the time, not `created`, and nothing that two equal texts have in common."""
    said = {"text": "My PIN is 4831.", "at": "2026-01-01T00:00:00Z"}
    ids = []
    for scope in ({"user_id": "ada"}, {"user_id": "bob"}, {"app_id": "shop", "user_id": "bob"}):
        bound = memory.bound(**scope)
        written = bound.write(**said)  # type: ignore[arg-type]
        node = memory.db.get(written.id)
        assert node.created_at == node.valid_from == datetime(2026, 1, 1, tzinfo=UTC)
        assert (written.created, bound.write(**said).id) == (True, written.id)  # type: ignore[arg-type]
        ids.append(written.id)
    assert len(set(ids)) == 3


def test_the_same_text_at_the_same_time_is_written_any_number_of_times() -> None:
    """By as many users, and by one who takes it back each time, at the same cost."""
    options: dict[str, Any] = {"embedder": "none", "extractor": "verbatim", "recluster": "off"}
    with Memory(":memory:", **options) as memory:
        store = memory.db.engine.store

        def cost(user: str) -> tuple[int, worlddb.Id]:
            before = store.statements
            written = memory.write("Tea is good.", at="2026-01-01T00:00:00Z", user_id=user)
            assert written.created
            return store.statements - before, written.id

        by_others = [cost(f"user {number}")[0] for number in range(1_005)]
        by_one = []
        for _ in range(210):
            statements, ident = cost("one")
            memory.retire(ident)
            by_one.append(statements)
    for costs in (by_others, by_one):
        assert max(costs[2:]) <= costs[2] + 5

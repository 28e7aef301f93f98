"""Retention policies: what is due, what stays, and what a legal hold refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import worlddb
from worlddb import Memory, Written

DAY = 86_400_000_000


class Clock:
    now = 1_767_225_600_000_000  # 2026-01-01 in microseconds.

    def __call__(self) -> int:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += int(days * DAY)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", recluster="off", clock=clock, user_id="ada") as memory:
        yield memory


def texts(memory: Memory, **options: object) -> set[str]:
    return {one.text for one in memory.list(**options)}  # type: ignore[arg-type]


def test_what_is_older_than_its_scope_keeps_it_is_retired(memory: Memory, clock: Clock) -> None:
    old = memory.write("I live in Rome.")
    memory.write("Bob lives in Oslo.", user_id="bob")
    pinned = memory.write("I am allergic to nuts.", pin=True)
    clock.pass_days(20)
    memory.write("I like tea.")
    memory.set_retention(keep_days=30, user_id="ada")
    assert memory.apply_retention().due[0].ids == ()
    clock.pass_days(11)
    seq = memory.db.log()[-1].seq
    planned = memory.apply_retention(dry_run=True)
    assert [(str(one.scope), one.ids, one.pinned) for one in planned.due] == [
        ("user:ada", (old.id,), 1)
    ]
    assert (planned.retired, memory.db.log()[-1].seq) == ((), seq)
    done = memory.apply_retention()
    assert old.id in done.retired
    assert pinned.id not in done.retired
    assert texts(memory) == {"I am allergic to nuts.", "I like tea."}
    assert texts(memory, user_id="bob") == {"Bob lives in Oslo."}
    assert (memory.db.log()[-1].seq, memory.db.log()[-1].actor) == (seq + 1, "retention")
    assert memory.read(old.id).retired
    assert memory.apply_retention().retired == ()


def test_a_session_is_as_young_as_its_last_turn(memory: Memory, clock: Clock) -> None:
    chat = [{"role": "user", "content": f"I live in {place}."} for place in ("Rome", "a tent")]
    memory.write(messages=chat)
    memory.set_retention(keep_days=30, user_id="ada")
    clock.pass_days(25)
    chat.append({"role": "user", "content": "I like tea."})
    memory.write(messages=chat)
    clock.pass_days(25)
    assert memory.apply_retention().due[0].ids == ()
    clock.pass_days(10)
    assert len(memory.apply_retention().due[0].ids) == 1
    assert texts(memory) == set()


def test_a_policy_can_erase_for_good(memory: Memory, clock: Clock) -> None:
    old = memory.write("I live in Rome.")
    memory.retire(old.id)
    memory.set_retention(keep_days=1, then="erase", user_id="ada")
    clock.pass_days(2)
    done = memory.apply_retention()
    assert done.erasure is not None
    assert old.id in done.erasure.ids
    assert memory.db.get(old.id).erased
    assert memory.db.check() == []


def shared(memory: Memory) -> Written:
    memory.write("Bob lives in Oslo.", user_id="bob")
    return memory.write("Ada and Bob share a boat.", user_id=["ada", "bob"])


def test_what_is_only_a_member_lives_elsewhere(memory: Memory, clock: Clock) -> None:
    boat = shared(memory)
    home = memory.read(boat.id).scopes[0]
    member = next(one for one in memory.read(boat.id).scopes if one != home)
    memory.set_retention(keep_days=1, **member.ids())
    clock.pass_days(2)
    assert boat.id not in memory.apply_retention().due[0].ids
    memory.set_retention(keep_days=1, **home.ids())
    assert boat.id in memory.apply_retention(dry_run=True, **home.ids()).due[0].ids


@pytest.mark.parametrize("then", ["retire", "erase"])
@pytest.mark.parametrize(
    ("what", "stays"),
    [
        ("pin", {"kept"}),
        ("keep", {"kept", "other"}),
        ("hold", {"kept", "other"}),
        ("nothing", set()),
    ],
)
def test_what_changes_while_policies_are_applied_counts(
    memory: Memory, clock: Clock, monkeypatch: pytest.MonkeyPatch, then: Any, what: str, stays: Any
) -> None:
    kept, other = memory.write("I live in Rome."), memory.write("I like tea.")
    memory.set_retention(keep_days=30, then=then, user_id="ada")
    clock.pass_days(40)
    real, waits = type(memory.db).transaction, [True]

    def late(db: Any, actor: str = "unknown", **options: Any) -> Any:
        if actor == "retention" and waits.pop():  # After it was looked at what is due.
            waits.append(False)
            if what == "pin":
                memory.pin(kept.id)
            elif what == "keep":
                memory.set_retention(keep_days=0, user_id="ada")
            elif what == "hold":
                memory.set_retention(hold="on", user_id="ada")
        return real(db, actor, **options)

    monkeypatch.setattr(type(memory.db), "transaction", late)
    memory.apply_retention()
    nodes = {"kept": memory.db.get(kept.id), "other": memory.db.get(other.id)}
    assert {name for name, one in nodes.items() if one.valid_to is None and not one.erased} == stays
    if then == "erase":
        assert {name for name, one in nodes.items() if not one.erased} == stays
    assert memory.db.check() == []


def test_under_a_hold_nothing_is_erased(memory: Memory, clock: Clock) -> None:
    mine = memory.write("I live in Rome.")
    boat = shared(memory)
    memory.set_retention(keep_days=1, then="erase", user_id="ada")
    memory.set_retention(hold="on", user_id="bob")
    clock.pass_days(2)
    bob = memory.bound(user_id="bob")
    with pytest.raises(worlddb.RejectedError, match="user:bob is under legal hold"):
        memory.erase(boat.id)
    with pytest.raises(worlddb.RejectedError, match="user:bob is under legal hold"):
        memory.erase(user_id="ada", confirm="ada")  # The boat lives there.
    with pytest.raises(worlddb.RejectedError, match="user:bob is under legal hold"):
        bob.erase(user_id="bob", confirm="bob")
    due = memory.apply_retention(dry_run=True, user_id="ada").due[0]
    assert (due.ids, due.held) == ((mine.id,), 1)
    memory.erase(mine.id)
    memory.set_retention(hold="off", user_id="bob")
    assert boat.id in memory.erase(boat.id).ids


def test_a_hold_does_not_tell_a_bound_caller_who_else_has_a_memory(memory: Memory) -> None:
    home, member = memory.read(shared(memory).id).scopes
    boat = memory.list(**home.ids()).memories[0]
    memory.set_retention(hold="on", **member.ids())
    bound = memory.bound(**home.ids())
    for call in ({"id": boat.id}, {"confirm": home.value, **home.ids()}):
        with pytest.raises(worlddb.RejectedError, match="a memory here is under legal") as told:
            bound.erase(**call)
        assert str(member) not in str(told.value)
    assert memory.read(boat.id).text


def test_a_hold_outlives_a_purge_until_it_is_lifted(memory: Memory) -> None:
    bob = memory.bound(user_id="bob")
    before = bob.write("Bob signed it.")
    held = memory.set_retention(hold="on", keep_days=9, user_id="bob")
    bob.purge_scope(confirm="bob", user_id="bob")
    after = bob.write("Bob signed again.")
    assert memory.retention().policies == (replace(held, keep_days=None),)
    for ident in (before.id, after.id):
        with pytest.raises(worlddb.RejectedError, match="user:bob is under legal hold"):
            memory.erase(ident)
    with pytest.raises(worlddb.RejectedError, match="user:bob is under legal hold"):
        memory.erase(user_id="bob", confirm="bob")
    bob.purge_scope(confirm="bob", user_id="bob")
    with pytest.raises(worlddb.NotFoundError):
        memory.set_retention(hold="on", user_id="bob")
    memory.set_retention(hold="off", user_id="bob")
    assert memory.retention().policies == ()
    assert before.id in memory.erase(before.id).ids


def test_nothing_is_taken_out_of_a_scope_under_hold(memory: Memory) -> None:
    boat = shared(memory)
    memory.set_retention(hold="on", user_id="bob")
    with pytest.raises(worlddb.RejectedError, match="user:bob is under legal hold"):
        memory.bound(user_id="bob").refuse(boat.id)
    (edge,) = memory.db.edges(boat.id, "in", ["contains"])
    with pytest.raises(worlddb.RejectedError, match="or taken out"), memory.db.transaction() as tx:
        tx.delete_edge(edge.id)
    memory.set_retention(hold="off", user_id="bob")
    memory.bound(user_id="bob").refuse(boat.id)
    assert boat.id in memory.erase(boat.id).ids


def test_what_is_left_out_of_a_policy_stays(memory: Memory) -> None:
    memory.write("I live in Rome.")
    assert len(memory.retention()) == 0
    memory.set_retention(hold="on", user_id="ada")
    made = memory.set_retention(keep_days=90, then="erase", user_id="ada")
    assert (made.keep_days, made.then, made.hold) == (90, "erase", True)
    assert memory.retention().policies == (made,)
    ended = memory.set_retention(keep_days=0, user_id="ada")
    assert (ended.keep_days, ended.hold) == (None, True)
    assert memory.apply_retention().due == ()


def test_who_may_set_what(memory: Memory) -> None:
    memory.write("I live in Rome.")
    bound = memory.bound(user_id="ada")
    with pytest.raises(worlddb.RejectedError):
        bound.retention()
    with pytest.raises(worlddb.RejectedError):
        bound.apply_retention()
    with pytest.raises(worlddb.RejectedError):
        bound.set_retention(hold="off", user_id="ada")
    for origin in ("assistant", "tool"):
        other = memory.signed(origin=origin)
        with pytest.raises(worlddb.RejectedError, match="for administrators"):
            other.set_retention(hold="off", user_id="ada")
        with pytest.raises(worlddb.RejectedError, match="for administrators"):
            other.apply_retention()
    with pytest.raises(worlddb.NotFoundError):
        memory.set_retention(keep_days=1, user_id="nobody")
    wrongs: list[dict[str, Any]] = [{}, {"keep_days": -1}, {"then": "burn"}, {"hold": "maybe"}]
    for wrong in wrongs:
        with pytest.raises(worlddb.InvalidInputError):
            memory.set_retention(user_id="ada", **wrong)
    with pytest.raises(worlddb.InvalidInputError):
        memory.set_retention(keep_days=1)


def test_a_hold_is_kept_by_the_engine_for_all_that_an_erasure_would_take(memory: Memory) -> None:
    held = memory.write("Bob signed it.", user_id="bob").id
    shared = memory.write("Ada and Bob met.", app_id="shop").id
    source = memory.write("Ada paid Bob.").id
    with memory.db.transaction() as tx:
        home = memory.db.get(held).parent
        tx.write_edge("contains", home or b"", shared)
        rests = tx.create_node(type="Fact", content="Bob was paid.", parent=home).id
        tx.write_edge("derived_from", rests, source)
    memory.set_retention(hold="on", user_id="bob")
    scope = worlddb.ScopeName("user", "bob").id()
    for ident in (held, shared, source, scope, [memory.write("x").id, held]):
        with pytest.raises(worlddb.RejectedError, match="user:bob is under legal hold"):
            memory.db.erase(ident)
        with (
            pytest.raises(worlddb.RejectedError, match="legal hold"),
            memory.db.transaction() as tx,
        ):
            tx.erase([ident] if isinstance(ident, bytes) else ident)
    memory.set_retention(hold="off", user_id="bob")
    assert {shared, source, rests} <= {
        *memory.db.erase(shared).ids,
        *memory.db.erase(source).ids,
    }

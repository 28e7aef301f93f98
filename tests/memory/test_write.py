"""Writing memories: what a write says it did is what is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import worlddb
from worlddb import InvalidInputError, Memory
from worlddb.index.search import HeldWorlds

CHAT = [
    {"role": "user", "content": "My sister Priya Raman moved to Lisbon."},
    {"role": "assistant", "content": "How nice!"},
    {"role": "user", "content": "How nice!"},
]


def test_a_write_tells_what_it_did(memory: Memory) -> None:
    done = memory.write(
        "My manager Sarah Chen likes tea",
        user_id="ada",
        agent_id="helper",
        source="chat 1",
        metadata={"topic": "tea"},
    )
    assert done.created
    assert [str(scope) for scope in done.scopes] == ["user:ada", "agent:helper"]
    assert ("Sarah Chen", True) in [(one.name, one.created) for one in done.entities]
    assert done.commit is not None
    assert done.root_state == memory.db.root_state == done.commit.root_state
    assert (done.proposals, done.superseded) == ((), ())
    there = memory.read(done.id)
    assert (there.text, there.type, there.retired) == (
        "My manager Sarah Chen likes tea",
        "Memory",
        False,
    )
    assert (there.provenance, there.metadata) == (("chat 1",), {"topic": "tea"})
    assert memory.db.check() == []


def test_a_chat_is_given_as_messages_or_in_the_place_of_the_text(memory: Memory) -> None:
    done = memory.write(messages=CHAT, user_id="ada", idempotency_key="k")
    assert memory.read(done.id).text.startswith("user: My sister Priya Raman moved to Lisbon.\n")
    assert memory.write(CHAT, user_id="ada").id == done.id
    assert memory.write(text=CHAT, user_id="ada", idempotency_key="k").id == done.id
    for wrong in ({}, {"text": "x", "messages": CHAT}):
        with pytest.raises(worlddb.InvalidInputError, match="give either text or messages"):
            memory.write(**wrong)  # type: ignore[arg-type]
    with pytest.raises(worlddb.InvalidInputError, match="messages: give a list"):
        memory.write(messages="I moved")  # type: ignore[arg-type]


def test_what_is_known_is_not_written_twice_but_gains_source_scope_and_metadata(
    memory: Memory,
) -> None:
    first = memory.write("The gate code is 4711", user_id="ada", source="one", metadata={"a": 1})
    again = memory.write(
        "The gate code is 4711", user_id="ada", run_id="r", source="two", metadata={"a": 2, "b": 3}
    )
    assert (again.created, again.id) == (False, first.id)
    there = memory.read(first.id)
    assert there.provenance == ("one", "two")
    assert there.metadata == {"a": 2, "b": 3}
    assert [str(scope) for scope in there.scopes] == ["user:ada", "run:r"]
    assert len(memory.list(user_id="ada")) == 1
    third = memory.write("The gate code is 4711", user_id="ada", run_id="r")
    assert third.commit is None
    assert third.root_state == memory.db.root_state


@pytest.mark.parametrize(
    ("there", "again"),
    [
        ("Tea  is good", "Tea is good"),
        ("Anna met Bob in Oslo.", "\tAnna met\n Bob  in Oslo.\r\n"),
        ("I moved to Rome.", "I\u00a0moved to  Rome."),
        ("Sarah loves the café in Zürich", "Sarah loves the cafe\u0301 in Zu\u0308rich"),
        ("Sarah loves the cafe\u0301 in Zu\u0308rich", "Sarah loves the  café in Zürich\n"),
    ],
)
def test_the_same_text_but_for_white_space_and_how_accents_are_made_is_one_memory(
    memory: Memory, there: str, again: str
) -> None:
    first = memory.write(there, user_id="ada")
    for _ in range(2):
        twice = memory.write(again, user_id="ada", idempotency_key="k")
        assert (twice.id, twice.created, twice.superseded) == (first.id, False, ())
    assert memory.read(first.id).text == there, "as it was written"
    assert [one.text for one in memory.list(user_id="ada")] == [there]
    # It says nothing new, nor at another place of the text.
    edges = [edge for edge in memory.db.edges(first.id) if edge.source == first.id]
    assert {edge.known_from for edge in edges} <= {memory.read(first.id).known_from}
    assert memory.amend(first.id, again, user_id="ada").id == first.id
    assert memory.write(again, user_id="bob").created, "of somebody else it is another"
    assert memory.db.check() == []


def test_of_two_memories_that_say_the_same_the_very_text_is_taken(memory: Memory) -> None:
    scope = memory.write("Tea is good", user_id="ada").scopes[0].id()
    with memory.db.transaction() as tx:
        spaced = tx.create_node(type="Memory", content="Tea  is good", parent=scope).id
    assert memory.write("Tea  is good", user_id="ada").id == spaced
    assert memory.write("Tea  is  good", user_id="ada").id != spaced
    assert not memory.write("tea is good!", user_id="ada").created
    assert memory.write("Tea is GOOD", user_id="ada").created, "letters inside count"


def test_a_message_without_a_time_was_said_when_the_one_before_it_was(memory: Memory) -> None:
    home = memory.write("I live in Rome.", at="2024-01-01T00:00:00Z", user_id="ada")
    old = [
        {"role": "user", "content": "Hello.", "at": "2019-03-02T10:00:00Z"},
        {"role": "assistant", "content": "Where do you live?"},
        {"role": "user", "content": "I moved to Oslo."},
        {"role": "user", "content": "I like it.", "at": "2019-03-05T10:00:00Z"},
        {"role": "assistant", "content": "Fine."},
    ]
    done = memory.write(messages=old, user_id="ada")
    turns = memory.db.children(done.id, include_superseded=True)
    assert [turn.valid_from.day for turn in turns] == [2, 2, 2, 5, 5]
    assert {turn.valid_from.year for turn in turns} == {2019}
    assert memory.read(home.id).superseded_by == (), "an old chat ends nothing of today"
    later = [{"role": "user", "content": "Good morning."}, *old]
    begun = memory.write(messages=later, user_id="ada", at="2018-01-01T00:00:00Z")
    assert memory.read(begun.id).valid_from.year == 2018


def test_a_value_of_metadata_that_comes_back_is_the_latest_again(memory: Memory) -> None:
    for value in (1, 2, 1):
        done = memory.write("The gate code is 4711", metadata={"seen": value})
    assert memory.read(done.id).metadata == {"seen": 1}


def test_a_chat_is_one_memory_of_turns_and_written_twice_still_one(memory: Memory) -> None:
    first = memory.write(CHAT, user_id="ada")
    again = memory.write(CHAT, user_id="ada")
    assert (first.created, again.created, again.id) == (True, False, first.id)
    [there] = memory.list(user_id="ada")
    assert there.type == "Session"
    assert there.text.splitlines() == [
        "user: My sister Priya Raman moved to Lisbon.",
        "assistant: How nice!",
        "user: How nice!",
    ]
    assert len(memory.db.children(first.id)) == 3
    hits = memory.recall("Where does Priya live?", user_id="ada")
    assert hits[0].node.content == CHAT[0]["content"]


def test_the_same_text_of_two_users_is_two_memories(memory: Memory) -> None:
    mine = memory.write("I like tea", user_id="ada", at="2026-01-01T00:00:00Z")
    yours = memory.write("I like tea", user_id="bob", at="2026-01-01T00:00:00Z")
    assert mine.id != yours.id
    assert [one.id for one in memory.list(user_id="bob")] == [yours.id]


def test_names_of_one_user_are_never_used_for_another(memory: Memory) -> None:
    mine = memory.write("Sarah Chen called", user_id="ada")
    yours = memory.write("Sarah Chen called again", user_id="bob")
    assert {one.id for one in mine.entities}.isdisjoint(one.id for one in yours.entities)
    assert all(one.created for one in yours.entities)
    assert yours.proposals == ()


def test_an_idempotency_key_does_a_write_once(memory: Memory) -> None:
    first = memory.write("paid 20 euros", user_id="ada", idempotency_key="order 1")
    memory.retire(first.id)
    again = memory.write("paid 20 euros", user_id="ada", idempotency_key="order 1")
    assert (again.id, again.created, again.commit) == (first.id, False, None)
    other = memory.write("paid 20 euros", user_id="ada", idempotency_key="order 2")
    assert other.id != first.id
    theirs = memory.write("paid 20 euros", user_id="bob", idempotency_key="order 1")
    assert theirs.created
    with pytest.raises(worlddb.ConflictError, match="order 1"):
        memory.write("paid 30 euros", user_id="ada", idempotency_key="order 1")
    assert memory.recall("order", user_id="ada").hits == ()
    assert memory.db.check() == []


def test_a_time_says_when_it_was_true(memory: Memory) -> None:
    done = memory.write("I live in Rome", user_id="ada", at="2020-05-01T00:00:00+02:00")
    assert memory.read(done.id).valid_from.isoformat() == "2020-04-30T22:00:00+00:00"
    assert len(memory.list(user_id="ada", as_of="2019-01-01T00:00:00Z")) == 0
    assert len(memory.list(user_id="ada", as_of="2021-01-01T00:00:00Z")) == 1
    assert len(memory.list(user_id="ada", known_at="2021-01-01T00:00:00Z")) == 0


def test_what_was_written_is_there_after_a_restart_and_scopes_are_found_by_name(
    tmp_path: Path,
) -> None:
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        done = memory.write("I like tea", user_id="ada")
    with Memory(tmp_path / "m.db", embedder="none", user_id="ada") as memory:
        assert memory.read(done.id).text == "I like tea"
        assert [hit.node.id for hit in memory.recall("tea")] == [done.id]
        assert [scope.id for scope in memory.list_scopes()] == [
            worlddb.ScopeName("user", "ada").id()
        ]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda m: m.write(""), "no text"),
        (lambda m: m.write("x", user_id=""), "empty"),
        (lambda m: m.write("x", user_id=" ada"), "white space"),
        (lambda m: m.write("x", user_id="a\nb"), "control"),
        (lambda m: m.write("x", user_id="a\0b"), "NUL"),
        (lambda m: m.write("x", user_id="\ud800"), "surrogate"),
        (lambda m: m.write("x", user_id="a" * 600), "limit"),
        (lambda m: m.write("x", user_id=7), "text"),
        (lambda m: m.write("x", user_id=[]), "1 to"),
        (lambda m: m.write("x", at="2026-01-01T09:30"), "at"),
        (lambda m: m.write("x", metadata=[1]), "mapping"),
        (lambda m: m.write("x", metadata={"a": float("nan")}), "metadata"),
        (lambda m: m.write("x", idempotency_key=" "), "idempotency_key"),
        (lambda m: m.write("x", idempotency_key=""), "idempotency_key"),
        (lambda m: m.write("x", extractor="nosuch"), "nosuch"),
        (lambda m: m.write("x" * (2 << 20)), "limit"),
        (lambda m: m.recall(""), "query"),
        (lambda m: m.recall("x", k=0), "k"),
        (lambda m: m.recall("", user_id="nobody"), "query"),
        (lambda m: m.list(limit=0), "limit"),
        (lambda m: m.list(as_of="2026-01-01T00:00:00"), "as_of"),
        (lambda m: m.recall("x", known_at=7), "known_at"),
        (lambda m: m.list(cursor="nope"), "cursor"),
        (lambda m: m.read("zz"), "hexadecimal"),
        (lambda m: m.read("abc"), "4"),
        (lambda m: m.list_scopes(kind="team"), "kind"),
        (lambda m: m.retire_all(), "scope"),
        (lambda m: m.purge_scope(confirm=True), "scope"),
        (lambda m: m.purge_scope(user_id="ada"), "confirm"),
        (lambda m: m.purge_scope(user_id="ada", confirm="bob"), "confirm"),
        (lambda m: m.purge_scope(user_id="ada", run_id="r", confirm=True), "one scope"),
    ],
)
def test_bad_input_is_refused_with_a_way_out_and_writes_nothing(
    memory: Memory, call: object, told: str
) -> None:
    memory.write("I like tea", user_id="ada")
    before = memory.db.root_state
    with pytest.raises(worlddb.InvalidInputError, match=told):
        call(memory)  # type: ignore[operator]
    assert memory.db.root_state == before


def test_an_argument_that_does_not_exist_is_refused(memory: Memory) -> None:
    with pytest.raises(TypeError, match="team_id"):
        memory.write("x", team_id="a")  # type: ignore[call-arg]


class _NoModel:
    name = "broken"

    def extract(self, messages: object, at: object) -> worlddb.Draft:
        raise worlddb.ProviderError("the model is not there")


def test_a_model_that_fails_loses_nothing_and_the_rest_waits(memory: Memory) -> None:
    done = memory.write("I live in Rome", user_id="ada", extractor=_NoModel())
    assert done.created
    assert done.pending == "the model is not there"
    assert [one.text for one in memory.list(user_id="ada")] == ["I live in Rome"]
    new = memory.amend(done.id, "I live in Oslo", extractor=_NoModel())
    assert {one.id for one in memory.db.pending()} >= {new.id}
    assert memory.write("I like tea", user_id="ada").pending is None


@pytest.mark.parametrize("held_max", [2, 1_000])
def test_what_replaced_a_sentence_comes_before_the_text_that_still_has_it(held_max: int) -> None:
    with Memory(":memory:", recluster="off") as memory:
        memory.db.engine.search._interiors = HeldWorlds(held_max)
        old = memory.write("Hi there! I live in Rome. I have a cat.", user_id="ada")
        for number in range(5):
            memory.write(f"I live for music, part {number}", user_id="ada")
        new = memory.write("Guess what? I moved to Paris. The cat came too.", user_id="ada")
        assert new.superseded
        found = memory.recall("Where do I live with my cat?", user_id="ada", k=4)
        ids = [hit.id for hit in found]
        assert ids.index(new.id) < ids.index(old.id)
        [gone] = found[ids.index(old.id)].outdated
        assert (gone.text, gone.by) == ("I live in Rome.", new.id)
        assert f"no longer so, see {new.id.short}: I live in Rome." in found.to_text()
        then = memory.recall(
            "Where do I live?", user_id="ada", known_at=memory.read(old.id).known_from
        )
        assert all(hit.outdated == () for hit in then)


def test_a_summary_is_left_out_while_a_detail_of_it_has_ended(memory: Memory) -> None:
    memory.write("I live in Rome.", user_id="ada")
    memory.write("I like jazz.", user_id="ada")
    memory.db.consolidate()
    found = memory.recall("Where do I live, in Rome?", user_id="ada")
    assert {hit.node.type for hit in found} == {"Memory", "Summary"}
    memory.write("I moved to Paris.", user_id="ada")
    found = memory.recall("Where do I live, in Rome?", user_id="ada")
    assert not any("Rome" in hit.node.content for hit in found)
    memory.db.consolidate()
    found = memory.recall("Where do I live, in Paris?", user_id="ada")
    assert {hit.node.type for hit in found} == {"Memory", "Summary"}


def test_a_memory_that_many_others_have_too_is_not_written_twice() -> None:
    with worlddb.Memory(":memory:", embedder="none") as memory:
        for number in range(250):
            assert memory.write("I like tea", user_id=f"user {number}").created
        for number in (0, 10, 249):
            assert not memory.write("I like tea", user_id=f"user {number}").created
            assert not memory.write("I  like tea ", user_id=f"user {number}").created


def test_at_the_end_of_time_two_may_still_say_the_same(memory: Memory) -> None:
    last = "9999-12-31T23:59:59.999999+00:00"
    for user in ("ada", "bob", "eve"):
        assert memory.write("I like tea", user_id=user, at=last).created
    chat = [{"role": "user", "content": "ok"}, {"role": "user", "content": "ok"}]
    with pytest.raises(worlddb.InvalidInputError, match="too late"):
        memory.write(messages=chat, user_id="ada", at=last)


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.write("tea", metadata={"n": 10**5_000}),
        lambda memory: memory.consolidate(min_age=10**400),
    ],
    ids=["metadata", "min_age"],
)
def test_a_number_beyond_all_bounds_is_refused(
    memory: Memory, call: Callable[[Memory], object]
) -> None:
    with pytest.raises(InvalidInputError):
        call(memory)

"""Amending and retiring: nothing is edited or deleted, and what ended stays readable."""

from __future__ import annotations

import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import Memory
from worlddb.index.search import HeldWorlds


def _texts(memory: Memory, **options: object) -> set[str]:
    return {one.text for one in memory.list(**options)}  # type: ignore[arg-type]


def test_amending_writes_a_new_memory_that_supersedes_the_old_one(memory: Memory) -> None:
    old = memory.write("I live in Rome", user_id="ada", run_id="r", metadata={"a": 1, "b": 1})
    new = memory.amend(old.id, "I live in Paris", metadata={"b": 2}, source="chat 2")
    assert new.created
    assert new.superseded == (old.id,)
    assert [str(scope) for scope in new.scopes] == ["user:ada", "run:r"]
    before, after = memory.read(old.id), memory.read(new.id)
    assert (before.retired, before.superseded_by) == (True, (new.id,))
    assert before.valid_to == after.valid_from
    assert (after.supersedes, after.metadata) == ((old.id,), {"a": 1, "b": 2})
    for scope in ({"user_id": "ada"}, {"run_id": "r"}):
        assert _texts(memory, **scope) == {"I live in Paris"}
        assert [hit.node.id for hit in memory.recall("live", **scope)] == [new.id]  # type: ignore[arg-type]
    assert _texts(memory, user_id="ada", include_retired=True) == {
        "I live in Rome",
        "I live in Paris",
    }
    found = memory.recall("live", user_id="ada", known_at=before.known_from)
    assert [hit.node.id for hit in found] == [old.id]
    assert memory.db.check() == []


def test_what_has_ended_and_is_written_again_is_a_new_live_memory_also_of_the_same_time(
    memory: Memory,
) -> None:
    said = {"text": "Ada likes tea", "user_id": "ada", "at": "2026-01-01T00:00:00Z"}
    ids = []
    for end in (memory.retire, lambda id: memory.amend(id, "Ada likes milk"), memory.retire, None):
        written = memory.write(**said)  # type: ignore[arg-type]
        assert written.created
        assert not memory.write(**said).created  # type: ignore[arg-type]
        ids.append(written.id)
        assert "Ada likes tea" in _texts(memory, user_id="ada")
        found = [hit.node.id for hit in memory.recall("Who likes tea?", user_id="ada")]
        assert found[0] == written.id
        assert memory.read(written.id).valid_from == memory.read(ids[0]).valid_from
        if end is not None:
            end(written.id)
    assert len(set(ids)) == len(ids)
    assert memory.db.check() == []


def test_a_chat_that_was_retired_and_is_written_again_is_there_again(memory: Memory) -> None:
    chat = [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": "Tea."}]
    at = "2026-01-01T00:00:00Z"
    old = memory.write(chat, user_id="ada", at=at)
    assert memory.write(chat, user_id="ada", at=at).id == old.id
    memory.retire(old.id)
    new = memory.write(chat, user_id="ada", at=at)
    assert new.created
    assert _texts(memory, user_id="ada") == {"user: Tea?\nassistant: Tea."}


def test_what_has_ended_cannot_be_amended_and_the_error_leads_on(memory: Memory) -> None:
    old = memory.write("I live in Rome")
    new = memory.amend(old.id, "I live in Paris")
    for call in (lambda: memory.amend(old.id, "I live in Oslo"), lambda: memory.retire(old.id)):
        with pytest.raises(worlddb.ConflictError, match=new.id.short):
            call()
    memory.retire(new.id)
    with pytest.raises(worlddb.ConflictError, match="retired"):
        memory.amend(new.id, "I live in Oslo")


def test_amending_to_the_same_words_does_nothing(memory: Memory) -> None:
    old = memory.write("I live in Rome")
    again = memory.amend(old.id, " I live  in Rome\n")
    assert (again.id, again.created, again.commit) == (old.id, False, None)


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_amending_to_no_text_is_refused_as_writing_none_is(memory: Memory, blank: str) -> None:
    old = memory.write("I live in Rome")
    before = memory.db.root_state
    with pytest.raises(worlddb.InvalidInputError) as writing:
        memory.write(blank)
    with pytest.raises(worlddb.InvalidInputError) as amending:
        memory.amend(old.id, blank)
    assert str(writing.value) == str(amending.value) == "there is no text to remember"
    assert memory.db.root_state == before
    assert not memory.read(old.id).retired


def test_what_is_said_anew_does_not_begin_before_what_it_supersedes(memory: Memory) -> None:
    began = "2026-03-01T00:00:00+00:00"
    old = memory.write("I live in Rome", at=began)
    before = memory.db.root_state
    with pytest.raises(worlddb.InvalidInputError, match=f"at: .* began at {re.escape(began)}; "):
        memory.amend(old.id, "I live in Paris", at="2026-02-28T23:59:59Z")
    assert memory.db.root_state == before
    new = memory.amend(old.id, "I live in Paris", at=began)
    assert memory.read(old.id).valid_to == memory.read(new.id).valid_from


def test_amending_by_a_clock_that_was_set_back_inverts_no_interval() -> None:
    now = [2_000_000_000_000_000]
    with Memory(":memory:", embedder="none", clock=lambda: now[0]) as memory:
        old = memory.write("I live in Rome")
        now[0] -= 1_000_000_000
        new = memory.amend(old.id, "I live in Paris")
        ended = memory.read(old.id)
        assert ended.valid_to is not None
        assert ended.valid_from <= ended.valid_to == memory.read(new.id).valid_from


def test_a_turn_is_amended_inside_its_session_and_a_session_is_not(memory: Memory) -> None:
    chat = [{"role": "user", "content": "I live in Rome"}, {"role": "user", "content": "Really"}]
    session = memory.write(chat, user_id="ada")
    [turn, _] = memory.db.children(session.id)
    new = memory.amend(turn.id, "I live in Paris with Sarah Chen")
    node = memory.db.get(new.id)
    assert (node.type, node.name, node.parent) == ("Turn", "user", session.id)
    assert {memory.db.get(one.id).parent for one in new.entities} == {
        worlddb.ScopeName("user", "ada").id()
    }
    with pytest.raises(worlddb.ConflictError, match="turns"):
        memory.amend(session.id, "other")


def test_retiring_a_session_retires_its_turns(memory: Memory) -> None:
    chat = [{"role": "user", "content": "tea one"}, {"role": "user", "content": "tea two"}]
    done = memory.write(chat, user_id="ada")
    memory.write("tea three", user_id="ada")
    ended = memory.retire(done.id, user_id="ada")
    assert len(ended) == 3
    assert [hit.node.content for hit in memory.recall("tea", user_id="ada")] == ["tea three"]
    assert len(memory.retire(done.id)) == 0


def test_what_was_derived_from_a_memory_alone_ends_with_it(memory: Memory) -> None:
    one, two = (memory.write(f"tea {name}", user_id="ada").id for name in ("one", "two"))
    home = worlddb.ScopeName("user", "ada").id()
    with memory.db.transaction() as tx:
        made = {
            name: tx.create_node(type=kind, content=f"derived tea {name}", parent=home).id
            for name, kind in (("mine", "Fact"), ("both", "Fact"), ("sum", "Summary"))
        }
        tx.write_edge("derived_from", made["mine"], one)
        tx.write_edge("derived_from", made["both"], one)
        tx.write_edge("derived_from", made["both"], two)
        tx.write_edge("derived_from", made["sum"], two)
        tx.write_edge("derived_from", made["sum"], made["mine"])
    assert set(memory.retire(one).ids) == {one, made["mine"], made["sum"]}
    assert set(memory.retire(two).ids) == {two, made["both"]}


def test_retiring_all_needs_a_scope_and_leaves_other_scopes_alone(memory: Memory) -> None:
    memory.write("tea of both", user_id="ada", run_id="r")
    memory.write("tea of ada", user_id="ada")
    memory.write("tea of bob", user_id="bob", run_id="r")
    assert len(memory.retire_all(user_id="ada", run_id="r", confirm="ada")) == 1
    assert _texts(memory, user_id="ada") == {"tea of ada"}
    assert _texts(memory, run_id="r") == {"tea of bob"}
    assert [scope.name for scope in memory.list_scopes(kind="user")] == ["user:ada", "user:bob"]


def test_a_purged_scope_is_gone_and_begins_anew_and_the_past_stays_readable(
    memory: Memory,
) -> None:
    old = memory.write("Sarah Chen likes tea", user_id="ada")
    known = memory.read(old.id).known_from
    ended = memory.purge_scope(user_id="ada", confirm="ada")
    assert old.id in ended.ids
    assert [str(scope) for scope in ended.scopes] == ["user:ada"]
    assert (len(memory.list(user_id="ada")), len(memory.list_scopes())) == (0, 0)
    assert len(memory.recall("tea", user_id="ada")) == 0
    assert _texts(memory, user_id="ada", known_at=known) == {"Sarah Chen likes tea"}
    new = memory.write("Sarah Chen likes tea", user_id="ada")
    assert new.created
    assert new.id != old.id
    assert all(one.created for one in new.entities)
    assert [scope.retired for scope in memory.list_scopes(include_retired=True)] == [True, False]
    assert _texts(memory, user_id="ada", include_retired=True) == {"Sarah Chen likes tea"}
    assert [one.id for one in memory.list(user_id="ada", include_retired=True)] == [new.id]
    assert len(memory.recall("tea", user_id="ada", include_retired=True)) == 1
    assert memory.purge_scope(user_id="nobody", confirm=True).commit is None
    assert memory.db.check() == []


def test_two_that_amend_one_memory_at_once_do_not_both_win(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        old = memory.write("the price is 1")
        start = threading.Barrier(4)
        done: list[object] = []

        def amend(number: int) -> None:
            start.wait()
            try:
                done.append(memory.amend(old.id, f"the price is {number}"))
            except worlddb.ConflictError as error:
                done.append(error)

        threads = [threading.Thread(target=amend, args=(number,)) for number in range(2, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(one, worlddb.Written) for one in done) == 1
        assert len(memory.list()) == 1


def test_one_key_used_by_many_at_once_is_one_memory(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        start = threading.Barrier(4)
        done: list[worlddb.Written] = []

        def write() -> None:
            start.wait()
            done.append(memory.write("paid 20", user_id="ada", idempotency_key="k"))

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({one.id for one in done}) == 1
        assert sum(one.created for one in done) == 1


def test_a_session_says_what_is_still_so(memory: Memory) -> None:
    chat = [{"role": "user", "content": text} for text in ("one", "two", "three", "four")]
    session = memory.write(chat, user_id="ada")
    turns = memory.db.children(session.id)
    memory.retire(turns[0].id)
    memory.erase(turns[1].id)
    memory.amend(turns[2].id, "drei")
    memory.db.consolidate()
    assert memory.read(session.id).text == "user: four\nuser: drei"
    memory.retire(session.id)
    assert memory.read(session.id).text.splitlines()[0] == "user: one"


def test_a_write_that_met_a_purge_lands_in_the_scope_that_is_there(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        memory.write("first", user_id="ada")
        purged = threading.Event()

        class Slow:
            name = "slow"

            def extract(self, messages: object, at: object) -> worlddb.Draft:
                if not purged.is_set():
                    memory.purge_scope(user_id="ada", confirm="ada")
                    purged.set()
                from worlddb.ingest.extractors import extractor_named

                return extractor_named("verbatim").extract(messages, at)  # type: ignore[arg-type]

        done = memory.write("second", user_id="ada", extractor=Slow())
        assert [one.id for one in memory.list(user_id="ada")] == [done.id]
        memory.write("third", user_id="ada")
        assert _texts(memory, user_id="ada") == {"second", "third"}
        assert memory.db.check() == []


def test_one_word_confirms_one_scope(memory: Memory) -> None:
    memory.write("tea", user_id=["ada", "bob"])
    with pytest.raises(worlddb.InvalidInputError, match="confirm=True"):
        memory.retire_all(user_id=["ada", "bob"], confirm="ada")
    assert len(memory.retire_all(user_id=["ada", "bob"], confirm=True)) == 1


@pytest.mark.parametrize("held_max", [1 << 20, 0], ids=["held", "wide"])
def test_what_had_not_begun_by_then_is_not_among_what_had_ended(held_max: int) -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.db.engine.search._interiors = HeldWorlds(held_max=held_max)
        memory.write("I live in Rome.", user_id="ada", at="2024-01-01T00:00:00Z")
        memory.write("I live in Oslo.", user_id="ada", at="2025-01-01T00:00:00Z")

        def seen(year: int) -> list[int]:
            when: Any = {"as_of": f"{year}-06-01T00:00:00Z", "user_id": "ada"}
            return [
                len(call(include_retired=ended, **when))
                for call in (partial(memory.recall, "Where do I live?"), memory.list)
                for ended in (False, True)
            ]

        assert [seen(year) for year in (2020, 2024, 2025)] == [
            [0, 0, 0, 0],
            [1, 1, 1, 1],
            [1, 2, 1, 2],
        ]

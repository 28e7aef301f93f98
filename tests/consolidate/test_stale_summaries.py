"""A summary never tells as current what has ended since, and leaves young details for later."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

import worlddb
from worlddb import ConflictError, Memory, Node

JANUARY = "2026-01-01T10:00:00Z"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with worlddb.Memory(":memory:", user_id="ada", embedder="hash") as memory:
        yield memory


def summaries(memory: Memory) -> list[Node]:
    return list(memory.db.query().filter_type("Summary").execute().nodes)


def test_a_summary_of_summaries_is_left_out_once_a_detail_was_amended(memory: Memory) -> None:
    talk = [
        {"role": "user", "content": "My locker code is 4711."},
        {"role": "user", "content": "The gym opens at six."},
    ]
    chat = memory.write(messages=talk, at=JANUARY)
    memory.write("I bought a blue bicycle.", at="2026-01-02T10:00:00Z")
    memory.db.consolidate()
    assert any("4711" in hit.node.content for hit in memory.recall("What is my locker code?"))
    turn = next(node for node in memory.db.children(chat.id) if "4711" in node.content)
    memory.amend(turn.id, "My locker code is 9090.")
    found = memory.recall("What is my locker code?")
    assert not any("4711" in hit.node.content for hit in found)
    memory.db.consolidate()
    assert any("9090" in one.content for one in summaries(memory) if one.name == "user:ada")
    assert not any("4711" in one.content for one in summaries(memory))


def test_a_replaced_sentence_is_in_no_summary_old_or_new(memory: Memory) -> None:
    memory.write("I live in Rome. Tom called.", at=JANUARY)
    memory.write("I bought a blue bicycle.", at="2026-01-02T10:00:00Z")
    memory.db.consolidate()
    memory.write("I moved to Paris.", at="2026-02-02T10:00:00Z")

    def told() -> list[str]:
        hits = memory.recall("Where do I live? Tom and the bicycle", k=20)
        return [hit.node.content for hit in hits if hit.node.type == "Summary"]

    assert told() == []
    (change,) = memory.db.consolidate().summaries
    assert change.action == "refreshed"
    (fresh,) = told()
    assert "Rome" not in fresh
    assert "Tom called." in fresh
    assert "Paris" in fresh
    assert memory.db.consolidate().summaries == ()


def test_only_what_is_old_enough_is_summarised_whatever_the_age_of_the_world() -> None:
    now = [1_767_225_600_000_000]

    def clock() -> int:
        now[0] += 1
        return now[0]

    with worlddb.Memory(":memory:", user_id="ada", embedder="none", clock=clock) as memory:
        memory.write("I like tea.")
        memory.write("Tom called.")
        year = timedelta(days=365)
        assert memory.db.consolidate(min_age=year).summaries == ()
        now[0] += 366 * 24 * 3_600_000_000
        memory.write("I like coffee.")
        assert memory.db.consolidate(min_age=year).written == 1
        (made,) = summaries(memory)
        assert "tea" in made.content
        assert "coffee" not in made.content  # A second old.
        assert memory.db.consolidate(min_age=year).summaries == ()
        assert memory.db.consolidate().refreshed == 1
        # What is covered stays covered, also by a run that would find it too young.
        assert memory.db.consolidate(min_age=year).summaries == ()


def test_a_day_is_written_out_once_however_deep_the_summary(memory: Memory) -> None:
    talk = [
        {"role": "user", "content": "Let us plan."},
        {"role": "assistant", "content": "Noted, 3 May."},
    ]
    memory.write(messages=talk, at="2025-11-16T10:00:00Z")
    memory.write("The kettle is blue.", at="2025-11-17T10:00:00Z")
    memory.db.consolidate()
    assert len(summaries(memory)) == 2
    for one in summaries(memory):
        assert one.content.count("[2025-05-03]") == 1
        assert "] [" not in one.content


def test_retiring_what_was_amended_is_refused_also_after_a_summary(memory: Memory) -> None:
    written = memory.write("Ada has a dog called Rex")
    memory.write("Tom has a bike")
    memory.db.consolidate()
    amended = memory.amend(written.id, "Ada has a cat")
    with pytest.raises(ConflictError, match=amended.id.short):
        memory.retire(written.id)
    assert {one.text for one in memory.list()} == {"Ada has a cat", "Tom has a bike"}

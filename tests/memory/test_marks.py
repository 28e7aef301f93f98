"""Tags, pins and ends of memories, by both clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from worlddb import InvalidInputError, Memory
from worlddb.errors import ConflictError

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> int:
        return int(self.time.timestamp() * 1_000_000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Any:
    with Memory(":memory:", embedder="none", recluster="off", clock=clock) as made:
        yield made


def texts(found: Any) -> list[str]:
    return [getattr(one, "node", one).content for one in found]


@pytest.mark.parametrize("end", [{"ttl": "2h"}, {"ttl": 7200}, {"ttl": 2 * HOUR}, {"ttl": "120m"}])
def test_what_has_expired_is_neither_listed_nor_recalled(
    memory: Memory, clock: Clock, end: dict[str, Any]
) -> None:
    memory.write("The guest word is swordfish.", **end)
    memory.write("The door is green.")
    assert len(memory.list()) == 2
    assert texts(memory.recall("guest word")) == ["The guest word is swordfish."]
    clock.time += 3 * HOUR
    assert texts(memory.list()) == ["The door is green."]
    assert not memory.recall("guest word")
    assert texts(memory.recall("guest word", as_of=NOW + HOUR)) == ["The guest word is swordfish."]
    assert len(memory.list(as_of=NOW + HOUR)) == 2
    assert len(memory.list(include_retired=True)) == 2
    # The end was known from the beginning, so what was known then says the same.
    assert not memory.recall("guest word", known_at=NOW + HOUR)


def test_a_chat_ends_with_all_its_turns(memory: Memory, clock: Clock) -> None:
    chat = [{"role": "user", "content": "The code is 1."}, {"role": "assistant", "content": "ok"}]
    memory.write(messages=chat, expires_at=NOW + HOUR)
    assert memory.recall("code")
    clock.time += 2 * HOUR
    assert not memory.recall("code")
    assert not memory.list()


def test_a_memory_that_is_written_again_lasts_as_long_as_the_longer_one(
    memory: Memory, clock: Clock
) -> None:
    short = memory.write("The code is 1.", ttl="1h")
    again = memory.write("The code is 1.", ttl="30m")
    assert (again.id, again.created) == (short.id, False)
    longer = memory.write("The code is 1.", ttl="5h")
    assert longer.id != short.id
    assert texts(memory.list()) == ["The code is 1."]
    clock.time += 2 * HOUR
    forever = memory.write("The code is 1.")
    assert memory.read(forever.id).valid_to is None
    assert memory.write("The code is 1.", ttl="1h").id == forever.id
    assert texts(memory.list()) == ["The code is 1."]


def test_an_amendment_keeps_marks_unless_others_are_given(memory: Memory, clock: Clock) -> None:
    old = memory.write("The code is 1.", ttl="1h", tags=["a"], pin=True)
    new = memory.read(memory.amend(old.id, "The code is 2.").id)
    assert new.valid_to == NOW + HOUR
    assert new.metadata == {"tags": ["a"], "pinned": True}
    clock.time += timedelta(minutes=1)
    later = memory.read(memory.amend(new.id, "The code is 3.", ttl="5h", tags="b").id)
    assert later.valid_to == clock.time + 5 * HOUR
    assert later.metadata["tags"] == ["b"]
    # The same text with another end: sooner is the same memory, later a successor.
    sooner = memory.amend(later.id, "The code is 3.", ttl="1h")
    assert sooner.id == later.id
    assert memory.read(later.id).valid_to == clock.time + HOUR
    assert memory.amend(later.id, "The code is 3.", ttl="9h").id != later.id
    assert texts(memory.list()) == ["The code is 3."]


def test_pins_are_set_and_taken(memory: Memory) -> None:
    done = memory.write("Answer in French.")
    assert memory.pin(done.id).metadata == {"pinned": True}
    assert texts(memory.list(where={"pinned": True})) == ["Answer in French."]
    assert memory.unpin(done.id).metadata == {"pinned": False}
    assert not memory.list(where={"pinned": True})
    memory.retire(done.id)
    with pytest.raises(ConflictError, match="retired"):
        memory.pin(done.id)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"ttl": "soon"}, "30d"),
        ({"ttl": 0}, "30d"),
        ({"ttl": -1}, "30d"),
        ({"ttl": True}, "30d"),
        ({"ttl": "99999999w"}, "30d"),
        ({"ttl": "1h", "expires_at": NOW + HOUR}, "not both"),
        ({"expires_at": NOW - HOUR}, "not after"),
        ({"expires_at": "tomorrow"}, "ISO-8601"),
        ({"tags": [""]}, "tags"),
        ({"tags": 3}, "tags"),
        ({"tags": [f"t{n}" for n in range(101)]}, "100"),
    ],
)
def test_wrong_marks_are_refused(memory: Memory, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        memory.write("The code is 1.", **wrong)
    assert not memory.list()

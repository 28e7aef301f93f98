"""The machine's clock may be wrong: set back, decades ahead, or in 1970 at the start."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from worlddb import Memory, StorageError

SECOND = 1_000_000


def micros(year: int) -> int:
    return int(datetime(year, 6, 1, tzinfo=UTC).timestamp()) * SECOND


def test_what_is_said_after_the_clock_stepped_back_is_the_later_statement() -> None:
    now = [micros(2026)]
    with Memory(":memory:", user_id="ada", clock=lambda: now[0]) as memory:
        first = memory.write("I live in Rome.")
        now[0] -= 5 * SECOND
        second = memory.write("I moved to Paris.")
        assert not memory.read(second.id).retired
        now[0] -= 5 * SECOND
        third = memory.amend(second.id, "I moved to Oslo.")
        assert [one.text for one in memory.list()] == ["I moved to Oslo."]
        assert memory.recall("Where do I live?")[0].node.id == third.id
        # Each of them was true for a while, however short.
        for ended in map(memory.read, (first.id, second.id)):
            assert ended.valid_to is not None
            assert ended.valid_from < ended.valid_to


@pytest.mark.parametrize("ahead", [micros(2070), micros(2126), micros(9999)])
def test_a_clock_that_is_years_ahead_writes_nothing_and_breaks_nothing(ahead: int) -> None:
    now = [micros(2026)]
    with Memory(":memory:", user_id="ada", clock=lambda: now[0]) as memory:
        memory.write("I live in Rome.")
        now[0] = ahead
        with pytest.raises(StorageError, match=r"the clock shows .*Set the machine's clock"):
            memory.write("I moved to Paris.")
        now[0] = micros(2026) + SECOND
        new = memory.write("I moved to Oslo.")
        known = memory.read(new.id).known_from
        assert known == datetime(2026, 6, 1, 0, 0, 1, tzinfo=UTC)
        assert [one.text for one in memory.list(known_at=known)] == ["I moved to Oslo."]
        assert memory.db.check() == []


def test_a_clock_that_is_wrong_at_the_start_can_be_set_right() -> None:
    now = [SECOND]  # 1970: a machine without a battery, before the network is there.
    with Memory(":memory:", user_id="ada", clock=lambda: now[0]) as memory:
        memory.write("I live in Rome.")
        now[0] = micros(2026)
        memory.write("I moved to Paris.")
        now[0] = micros(2030)  # A rest of some years is no mistake.
        new = memory.write("I moved to Oslo.")
        assert memory.read(new.id).known_from.year == 2030
        assert [one.text for one in memory.list()] == ["I moved to Oslo."]

"""What fades and what waits to be read, inside the scopes of a caller."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from worlddb import Draft, Memory
from worlddb.errors import InvalidInputError, ProviderError, RejectedError
from worlddb.memory import listings

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class SilentExtractor:
    """An extractor whose model never answers."""

    name = "silent"

    def extract(self, messages: Any, at: datetime) -> Draft:
        raise ProviderError("the model is down")


def test_what_is_old_and_seldom_recalled_fades(memory: Memory) -> None:
    memory.write("The old code is 11.", user_id="ada", at=LONG_AGO)
    memory.write("The old gate is 22.", user_id="ada", at=LONG_AGO, pin=True)
    memory.write("The new door is 33.", user_id="ada")
    memory.write("Bob's old code is 44.", user_id="bob", at=LONG_AGO)
    memory.write([{"role": "user", "content": "A chat"}, {"content": "of old"}], user_id="ada")
    [faded] = memory.fading(user_id="ada")
    assert faded.memory.text == "The old code is 11."
    assert faded.retention < 0.01
    assert faded.recalls == 0
    assert faded.because.startswith(f"{faded.idle_days:.0f} days old, never recalled, ")
    for _ in range(3):
        memory.recall("What is the old code?", user_id="ada", k=1)
    assert len(memory.fading(user_id="ada")) == 0  # A recall makes it fresh.
    assert "The old code is 11." in [
        one.memory.text for one in memory.fading(below=1, user_id="ada")
    ]
    bound = memory.bound(user_id="bob")
    assert [one.memory.text for one in bound.fading()] == ["Bob's old code is 44."]
    with pytest.raises(RejectedError):
        bound.fading(user_id="ada")
    for wrong in ({"below": 0}, {"limit": 0}, {"limit": 1_001}):
        with pytest.raises(InvalidInputError):
            memory.fading(**wrong)  # type: ignore[arg-type]


def test_the_worst_come_first_and_a_large_scope_is_told(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year in (2022, 2020, 2021, 2019):
        at = datetime(year, 1, 1, tzinfo=UTC)
        memory.write(f"Something of the year {year}.", user_id="ada", at=at)
    page = memory.fading(limit=2, user_id="ada")
    assert [one.memory.text[-5:-1] for one in page] == ["2019", "2020"]
    assert page.is_complete
    monkeypatch.setattr(listings, "LOOKED_AT_ONCE", 1)
    page = memory.fading(limit=2, user_id="ada")
    assert [one.memory.text[-5:-1] for one in page] == ["2019", "2020"]
    monkeypatch.setattr(listings, "LOOKED_AT_MAX", 2)
    assert not memory.fading(user_id="ada").is_complete


def test_what_waits_to_be_read_is_told_to_those_who_may_see_it(memory: Memory) -> None:
    for user in ("ada", "bob"):
        memory.write(f"This is of {user}.", user_id=user, extractor=SilentExtractor())
    memory.write("This was read.", user_id="ada")
    [waiting] = memory.pending(user_id="ada")
    assert (waiting.memory.text, waiting.extractor, waiting.attempts) == (
        "This is of ada.",
        "silent",
        1,
    )
    assert "the model is down" in waiting.error
    page = memory.pending(limit=1, user_id=["ada", "bob"])
    assert (len(page), page.left) == (1, 1)
    assert len(memory.pending()) == 0  # Without a scope: those of the usual user.
    bound = memory.bound(user_id="bob")
    assert [one.memory.text for one in bound.pending()] == ["This is of bob."]
    memory.retire(waiting.memory.id, user_id="ada")
    assert len(memory.pending(user_id="ada")) == 0


def test_a_recall_that_is_not_counted_makes_nothing_fresh(memory: Memory) -> None:
    memory.write("The old code is 11.", user_id="ada", at=LONG_AGO)
    memory.recall("What is the old code?", user_id="ada", counted=False)
    memory.context("What is the old code?", user_id="ada", counted=False)
    [faded] = memory.fading(user_id="ada")
    assert faded.recalls == 0
    memory.context("What is the old code?", user_id="ada")
    assert not len(memory.fading(user_id="ada"))

"""A sentence that was replaced stays told as outdated, whatever becomes of what replaced it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from worlddb import Memory
from worlddb.memory.results import Written
from worlddb.model.address import Id

ROME = "I live in Rome. Tom called."
SENTENCE = "I live in Rome."


def at(month: int) -> str:
    return f"2026-{month:02}-01T00:00:00Z"


def moved(memory: Memory) -> tuple[Written, Written]:
    """Write a longer text, and what replaces a sentence of it; return both."""
    rome = memory.write(ROME, user_id="ada", at=at(1))
    return rome, memory.write("I moved to Oslo.", user_id="ada", at=at(4))


def outdated(memory: Memory, **options: object) -> list[tuple[str, Id | None]]:
    """Return what recall tells to be no longer so in what it finds."""
    found = memory.recall("Where do I live?", user_id="ada", **options)  # type: ignore[arg-type]
    return [(old.text, old.by) for hit in found for old in hit.outdated]


def _replace(memory: Memory, oslo: Written) -> Written | None:
    return memory.write("I moved to Kyiv.", user_id="ada", at=at(6))


def _leave(memory: Memory, oslo: Written) -> Written | None:
    _replace(memory, oslo)
    return memory.write("I no longer live in Kyiv.", user_id="ada", at=at(7))


def _amend(memory: Memory, oslo: Written) -> Written | None:
    return memory.amend(oslo.id, "I moved to Bergen.", at=at(5))


def _retire(memory: Memory, oslo: Written) -> Written | None:
    memory.retire(oslo.id)
    return None


def _erase(memory: Memory, oslo: Written) -> Written | None:
    memory.erase(oslo.id)
    return None


@pytest.mark.parametrize("change", [_replace, _leave, _amend, _retire, _erase])
def test_a_replaced_sentence_stays_outdated_and_names_what_stands_now(
    memory: Memory, change: Callable[[Memory, Written], Written | None]
) -> None:
    _, oslo = moved(memory)
    assert outdated(memory) == [(SENTENCE, oslo.id)]
    newer = change(memory, oslo)
    assert outdated(memory) == [(SENTENCE, newer.id if newer is not None else None)]


def test_what_stands_now_comes_before_the_text_and_a_line_says_where_to_look(
    memory: Memory,
) -> None:
    rome, _ = moved(memory)
    kyiv = memory.write("Kyiv! I moved to Kyiv. Anna called.", user_id="ada", at=at(6))
    found = memory.recall("Where do I live, in Rome? Did Tom call?", user_id="ada")
    ids = [hit.id for hit in found]
    assert ids.index(kyiv.id) < ids.index(rome.id)
    assert f"no longer so, see {kyiv.id.short}: {SENTENCE}" in found.to_text()
    memory.retire(kyiv.id)
    found = memory.recall("Where do I live, in Rome? Did Tom call?", user_id="ada")
    assert f"(no longer so: {SENTENCE})" in found.to_text()


def test_a_sentence_of_a_longer_text_that_was_replaced_itself_does_not_stand_for_another(
    memory: Memory,
) -> None:
    memory.write(ROME, user_id="ada", at=at(1))
    memory.write("I live in Oslo now. Anna called.", user_id="ada", at=at(4))
    kyiv = memory.write("I moved to Kyiv.", user_id="ada", at=at(6))
    told = outdated(memory)
    assert sorted(told) == [("I live in Oslo now.", kyiv.id), (SENTENCE, kyiv.id)]


def test_what_was_said_again_and_stands_is_not_outdated(memory: Memory) -> None:
    moved(memory)
    again = memory.write("I moved back to Rome.", user_id="ada", at=at(8))
    assert outdated(memory) == []
    memory.retire(again.id)
    assert outdated(memory) == [(SENTENCE, None)]


def test_what_was_said_again_after_an_erasure_holds(memory: Memory) -> None:
    _, oslo = moved(memory)
    memory.erase(oslo.id)
    memory.write("I live in Rome, Italy.", user_id="ada", at=at(8))
    assert outdated(memory) == []


def test_another_place_whose_name_has_the_same_word_is_another_place(memory: Memory) -> None:
    memory.write("I live in York. Tom called.", user_id="ada", at=at(1))
    memory.write("I moved to Oslo.", user_id="ada", at=at(4))
    new = memory.write("I moved to New York.", user_id="ada", at=at(6))
    assert outdated(memory) == [("I live in York.", new.id)]


def test_another_fact_of_the_same_text_is_not_outdated(memory: Memory) -> None:
    memory.write("I live in Rome. I work at Google. Tom called.", user_id="ada", at=at(1))
    memory.write("I moved to Oslo.", user_id="ada", at=at(4))
    kyiv = memory.write("I moved to Kyiv.", user_id="ada", at=at(6))
    assert outdated(memory) == [(SENTENCE, kyiv.id)]


def test_turns_of_a_chat_stay_outdated_too(memory: Memory) -> None:
    turns = [("user", ROME, 1), ("assistant", "Noted.", 1), ("user", "I moved to Oslo.", 4)]
    memory.write(
        messages=[{"role": who, "content": text, "at": at(month)} for who, text, month in turns],
        user_id="ada",
    )
    kyiv = memory.write("I moved to Kyiv.", user_id="ada", at=at(6))
    assert outdated(memory) == [(SENTENCE, kyiv.id)]


def test_each_time_has_its_own_answer(memory: Memory) -> None:
    rome, oslo = moved(memory)
    known = memory.read(oslo.id).known_from
    memory.write("I moved to Kyiv.", user_id="ada", at=at(6))
    assert outdated(memory, known_at=known) == [(SENTENCE, oslo.id)]
    assert outdated(memory, known_at=memory.read(rome.id).known_from) == []
    assert outdated(memory, as_of=at(5)) == [(SENTENCE, oslo.id)]
    assert outdated(memory, as_of=at(2)) == []


def test_what_replaced_a_sentence_in_another_scope_is_not_named(memory: Memory) -> None:
    memory.write(ROME, user_id="ada", run_id="one", at=at(1))
    memory.write("I moved to Oslo.", user_id="ada", run_id="two", at=at(4))
    assert outdated(memory, run_id="one") == [(SENTENCE, None)]

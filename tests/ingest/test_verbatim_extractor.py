"""Verbatim: what was said becomes nodes, and nothing is read out of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from worlddb.errors import InvalidInputError
from worlddb.ingest.extractors import CHOICES, DEFAULT, VerbatimExtractor, extractor_named
from worlddb.model.records import Draft, Message

AT = datetime(2023, 5, 3, 12, tzinfo=UTC)


def test_one_message_is_one_memory_with_its_text_and_time() -> None:
    draft = VerbatimExtractor().extract([Message(text="My sister Anna came yesterday.")], AT)
    (memory,) = draft.nodes
    assert (memory.type, memory.name, memory.content) == (
        "Memory",
        "",
        "My sister Anna came yesterday.",
    )
    assert memory.created_at == memory.valid_from == AT
    assert memory.parent is None
    assert not memory.resolvable
    assert draft.edges == ()


def test_a_memory_has_the_time_the_message_says() -> None:
    earlier = AT - timedelta(days=3)
    (memory,) = VerbatimExtractor().extract([Message(text="hi", at=earlier)], AT).nodes
    assert memory.created_at == memory.valid_from == earlier


def test_several_messages_are_the_turns_of_one_session_in_order() -> None:
    early, late = AT - timedelta(minutes=2), AT - timedelta(minutes=1)
    messages = [
        Message(text="Hey Mel!", speaker="Caroline", at=late),
        Message(text="Hi.", speaker="Melanie", at=early),
        Message(text="Bye.", speaker="Caroline"),
    ]
    session, *turns = VerbatimExtractor().extract(messages, AT).nodes
    assert session.type == "Session"
    assert session.created_at == session.valid_from == early
    assert [(turn.type, turn.name, turn.content) for turn in turns] == [
        ("Turn", "Caroline", "Hey Mel!"),
        ("Turn", "Melanie", "Hi."),
        ("Turn", "Caroline", "Bye."),
    ]
    assert [turn.created_at for turn in turns] == [
        time + timedelta(microseconds=index) for index, time in enumerate((late, early, AT))
    ]
    assert [turn.valid_from for turn in turns] == [late, early, AT]
    assert {turn.parent for turn in turns} == {session.key}
    assert len({turn.key for turn in turns}) == 3


def test_no_messages_give_an_empty_draft() -> None:
    for name in CHOICES:
        assert extractor_named(name).extract([], AT) == Draft()


def test_an_extractor_is_found_by_the_name_it_bears() -> None:
    for name in CHOICES:
        assert extractor_named(name).name == name
    assert DEFAULT in CHOICES


@pytest.mark.parametrize("name", ["llm2", "", "RULES"])
def test_an_unknown_name_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(InvalidInputError, match="choose one of verbatim, rules"):
        extractor_named(name)


def test_something_that_is_no_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="give a name, not int"):
        extractor_named(7)  # type: ignore[arg-type]

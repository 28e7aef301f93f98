"""The extractive summarizer: what it quotes, in what order, and that it loses no term."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlddb import InvalidInputError, Message
from worlddb.consolidate.extractive_summarizer import ExtractiveSummarizer, sentences_of

AT = datetime(2023, 5, 3, 12, tzinfo=UTC)  # A Wednesday.


def told(*texts: str, budget: int = 4_000, speaker: str = "user") -> str:
    messages = [
        Message(text=text, speaker=speaker, at=AT + timedelta(days=number))
        for number, text in enumerate(texts)
    ]
    return ExtractiveSummarizer(budget_chars=budget).summarize("title", messages)


def test_what_fits_is_quoted_whole_with_its_day() -> None:
    assert told("I bought a bike for $1,200. Sarah likes it!", "It broke.") == (
        "2023-05-03: I bought a bike for $1,200. Sarah likes it!\n2023-05-04: It broke."
    )


def test_what_was_said_without_a_full_stop_stays_apart() -> None:
    messages = [Message(text=text, at=AT) for text in ("I live in Oslo", "I like tea")]
    assert ExtractiveSummarizer().summarize("", messages) == (
        "2023-05-03: I live in Oslo; I like tea"
    )


def test_days_are_made_plain() -> None:
    assert "last Friday [2023-04-28]" in told("We met last Friday.")
    assert "yesterday [2023-05-02]" in told("I ran 5 km yesterday.")
    assert told("The trip is on 2023-06-01.") == "2023-05-03: The trip is on 2023-06-01."


def test_messages_come_in_the_order_of_time_with_their_speakers() -> None:
    late = Message(text="Second.", speaker="Bob", at=AT)
    early = Message(text="First.", speaker="Ann", at=AT - timedelta(days=1))
    text = ExtractiveSummarizer().summarize("chat", [late, early])
    assert text == "2023-05-02 Ann: First.\n2023-05-03 Bob: Second."


def test_an_equal_sentence_of_one_day_is_told_once() -> None:
    assert told("Thanks. Thanks. Bye.") == "2023-05-03: Thanks. Bye."


def test_a_tight_budget_keeps_the_sentences_that_say_most_and_lists_the_rest() -> None:
    chatter = "Well, that is how it goes and there is not much else that could be said about it. "
    text = told(
        chatter * 2 + "Maria Lopez paid $350 for 12 chairs on 2023-04-01. " + chatter,
        "Does Kofi know? " + "and so on, " * 20 + "said Ines to 3 people.",
        budget=100,
    )
    assert "Maria Lopez paid $350 for 12 chairs on 2023-04-01." in text
    assert "how it goes" not in text
    listed = text.splitlines()[-1]
    assert listed.startswith("Also: ")
    assert "Does Kofi know?" in text
    for term in ("Ines", "3 people"):
        assert term in listed


def test_a_number_inside_another_one_does_not_stand_for_it() -> None:
    long = "It was so and so and so and " * 8
    text = told(f"Ann, Bea and Cid paid $1,515 for 15 tickets. {long} 5 came.", budget=100)
    assert text.splitlines()[-1].endswith("; 5") or "; 5;" in text or "Also: 5" in text


def test_abbreviations_do_not_end_a_sentence() -> None:
    found = sentences_of("Dr. Chen met Mr. Li at 5. Fine.", AT.date(), frozenset())
    assert [it.text for it in found] == ["Dr. Chen met Mr. Li at 5.", "Fine."]


def test_nothing_said_is_the_title() -> None:
    assert ExtractiveSummarizer().summarize("title", []) == "title"


def test_a_budget_without_room_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="budget_chars"):
        ExtractiveSummarizer(budget_chars=10)


_WORDS = """
we met Sarah Chen in Paris on 2024-02-03 and paid $45.50 for 3 hours Tom said IBM owes 17% yesterday
so Berlin . ? ! , maybe €9 12 12,000 km the a was last Friday Ohio
"""
WORDS = st.sampled_from(_WORDS.split())


@settings(derandomize=True, deadline=None, database=None, max_examples=150)
@given(
    st.lists(st.lists(WORDS, max_size=40).map(" ".join), min_size=1, max_size=8),
    st.integers(100, 800),
)
def test_no_name_amount_or_date_is_ever_left_out(texts: list[str], budget: int) -> None:
    text = told(*texts, budget=budget)
    assert text == told(*texts, budget=budget)
    for number, said in enumerate(texts):
        day = (AT + timedelta(days=number)).date()
        for sentence in sentences_of(said, day, frozenset()):
            for term in sentence.terms:
                assert term in text, (term, text)


@settings(derandomize=True, deadline=None, database=None, max_examples=100)
@given(st.lists(st.text(max_size=200), max_size=5), st.integers(100, 300))
def test_any_text_can_be_told(texts: list[str], budget: int) -> None:
    assert isinstance(told(*texts, budget=budget), str)

"""Ranking features: who spoke, what is frame, which days are meant, who tells of themselves."""

from __future__ import annotations

from datetime import date

import pytest

from worlddb.language.ranking_features import (
    DONE,
    NOTHING,
    OWN,
    only_asks,
    spans_of,
    speakers_of,
    telling,
)


@pytest.mark.parametrize(
    ("question", "side"),
    [
        ("What did I buy for my bike?", "user"),
        ("What did you recommend?", "not user"),
        ("Which hotel did you recommend to me?", None),
        ("Can you suggest a hotel for my trip to Miami?", "user"),
        ("I feel stuck with my paintings. Do you have any ideas?", "user"),
        ("Could you please recommend a hotel?", "user"),
        ("Can you remind me what you said?", None),
        ("Can you suggest the hotel again that you told me of?", None),
        ("Can you list the order in which I brought up my plans?", "user"),
        ("Would you summarise the whole project?", "user"),
        ("How long did Alex marinate the ribs?", "user"),
    ],
)
def test_who_is_meant_follows_from_the_pronouns_but_not_from_asking_for_advice(
    question: str, side: str | None
) -> None:
    assert speakers_of(question, "user")[1] == side


def test_names_are_said_also_where_the_question_asks_for_advice() -> None:
    assert "help" in speakers_of("Can you help Ada?", "user")[0]
    assert "ada" in speakers_of("Can you help Ada?", "user")[0]


def test_days_that_are_counted_back_are_told_from_days_that_are_named() -> None:
    asked_on = date(2023, 6, 20)
    spans = spans_of("Was it two weeks ago or on 3 June 2023?", asked_on, [2023])
    assert [(span.first, span.is_relative) for span in spans] == [
        (date(2023, 6, 6), True),
        (date(2023, 6, 3), False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I just finished a 5K run.",
        "Any tips? By the way, I recently bought a red bicycle.",
        "We have never been there, but we\u2019ve finally booked it",
        "I'd already left when she called.",
        "Nice!\nI went to the museum with my niece",
        "WE WON",
    ],
)
def test_what_somebody_did_is_told(text: str) -> None:
    assert telling(text) == DONE


@pytest.mark.parametrize(
    "text", ["My sister lives in Oslo.", "I'm 32. Is that old?", "call me Ada"]
)
def test_what_is_said_of_oneself_counts_less(text: str) -> None:
    assert telling(text) == OWN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Can you recommend running shoes?",
        "What did I tell you about the trip I booked?",
        "That sounds great!",
        "She finished a 5K run.",
        "Here are some ideas:\n1. Oats\n2. Rice",
        "Alibi and Ivy walked home.",
    ],
)
def test_questions_and_what_is_said_of_others_tell_nothing(text: str) -> None:
    assert telling(text) == NOTHING


def test_a_long_text_of_one_sentence_is_read_in_no_time() -> None:
    assert telling("i " * 200_000) == OWN
    assert telling("I just " + "really " * 100_000) == OWN


def test_a_text_only_asks_if_each_of_its_sentences_does() -> None:
    assert only_asks("Do you remember what my agent charges?")
    assert only_asks("What's a good camera? Which lens?\n")
    assert not only_asks("Any tips? I bought a camera.")
    assert not only_asks("I bought a camera.")

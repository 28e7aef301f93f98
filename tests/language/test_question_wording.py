"""Question wording: who spoke, what is frame, how sure its days are, and how common words are."""

from __future__ import annotations

from datetime import date

import pytest

from worlddb.language.ranking_features import spans_of, speakers_of


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

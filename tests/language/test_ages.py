"""Ages: which questions need somebody's age, and which texts say one."""

from __future__ import annotations

import pytest

from worlddb.language.ages import asks_age, says_age


@pytest.mark.parametrize(
    "question",
    [
        "How old am I?",
        "How many years older is my grandma than me?",
        "How many years will I be when my friend Rachel gets married?",
        "Is Tom younger than his sister?",
        "What is Anna's age?",
        "What was the average age of our guests?",
        "At what age did I learn to swim?",
    ],
)
def test_a_question_that_needs_an_age_is_known(question: str) -> None:
    assert asks_age(question)


@pytest.mark.parametrize(
    "question",
    [
        "How many years have I lived in Oslo?",
        "Where is the old bridge?",
        "What did I say about the Bronze Age?",
        "Which page did I stop at?",
        "",
    ],
)
def test_others_are_not(question: str) -> None:
    assert not asks_age(question)


@pytest.mark.parametrize(
    "text",
    [
        "I'm 32, so not too much sugar",
        "I\u2019m 32",
        "She turned 75 last week",
        "My 4-year-old loves it",
        "he was 25 when they met",
        "her 75th birthday",
        "Places for someone in their 30s?",
        "in my late forties",
        "I was born in 1990",
        "Tom, aged 9, and Ann",
    ],
)
def test_a_text_that_says_an_age_is_known(text: str) -> None:
    assert says_age(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm 5 minutes late",
        "It is 20 miles from here",
        "The train is at 9:30",
        "We meet every Tuesday at 10.",
        "I turned left",
        "Chapter 32",
        "It was 20% off",
        "",
    ],
)
def test_other_numbers_are_no_age(text: str) -> None:
    assert not says_age(text)


def test_long_texts_are_looked_through_in_no_time() -> None:
    assert not says_age("i am " * 100_000)
    assert not says_age("7 " * 100_000)
    assert not asks_age("older " + "and " * 100_000)

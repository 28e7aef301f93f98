"""Ages: which questions need somebody's age, and which texts say one."""

from __future__ import annotations

import time

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
        "What is Anna\u2019s age?",
        "Who is older, Tom or Ann?",
        "What are the ages of my children?",
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
        "When did I last play Age of Empires?",
        "How old-fashioned is that hat?",
        "Which backups are older than 30 days?",
        "How many years was I in Berlin?",
        "What did she like when she was younger?",
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
        "Tom is 9.",
        "Grandma's 75",
        "My kids are 5 and 7",
        "She'll be 40 in May",
        "He is turning fifty",
        "75 years of age",
        "my son is 7yo",
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
        "My flat number is 12.",
        "The code is 41.",
        "It was 30 today",
        "Tom is 1990.",
        "Turn 90 degrees left",
        "I was 1,990 miles away",
        "",
    ],
)
def test_other_numbers_are_no_age(text: str) -> None:
    assert not says_age(text)


@pytest.mark.parametrize(
    "text", ["i am ", "7 ", "older and ", "Tom is 7 ", "a7", " in my late "], ids=repr
)
def test_a_text_twice_as_long_takes_about_twice_as_long(text: str) -> None:
    def seconds(times: int) -> float:
        said = text * times + " " * times
        start = time.perf_counter()
        assert not says_age(said)
        asks_age(said)
        return time.perf_counter() - start

    # Were it the square, it would be a hundred times, and not ten.
    assert min(seconds(50_000) for _ in range(3)) < 40 * min(seconds(5_000) for _ in range(3))

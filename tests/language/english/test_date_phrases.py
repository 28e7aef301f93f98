"""Dates: one way to read them, or nothing."""

from __future__ import annotations

from datetime import date

import pytest

from worlddb.language.english.date_phrases import dates_in

WEDNESDAY = date(2023, 5, 3)


def read(text: str, said: date = WEDNESDAY) -> list[tuple[str, str]]:
    return [(text[found.start : found.end], found.name) for found in dates_in(text, said)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("May 3rd, 2023", "2023-05-03"),
        ("May 3 2023", "2023-05-03"),
        ("3 May 2023", "2023-05-03"),
        ("Sept. 5, 2021", "2021-09-05"),
        ("2023-05-03", "2023-05-03"),
        ("2023/05/03", "2023-05-03"),
        ("30/5/2023", "2023-05-30"),
        ("5/30/2023", "2023-05-30"),
        ("30.5.2023", "2023-05-30"),
        ("5/5/2023", "2023-05-05"),
        ("March 2021", "2021-03"),
        ("march of 2021", ""),
        ("October 2021", "2021-10"),
        ("summer of 2021", "2021"),
        ("2023-02-30", ""),
        ("February 30th, 2023", ""),
        ("3/5/2023", ""),
        ("13/13/2023", ""),
        ("2023-05-031", ""),
    ],
)
def test_a_full_date_is_itself_or_nothing(text: str, name: str) -> None:
    expected = [(text, name)] if name else []
    assert read(text) == read(f"so {text} it was") == expected


def test_a_word_before_the_sentence_is_not_its_verb() -> None:
    assert read("Noted: talk to Tobias on Friday.") == []
    assert read("Noted: I talked to Tobias on Friday.") == [("Friday", "2023-04-28")]


@pytest.mark.parametrize(
    ("said", "text", "name"),
    [
        ("2023-05-03", "last Friday", "2023-04-28"),
        ("2023-05-05", "last Friday", "2023-04-28"),
        ("2023-05-06", "last Friday", ""),  # yesterday, or the one before?
        ("2023-05-03", "this past Tuesday", "2023-05-02"),
        ("2023-05-03", "next Tuesday", "2023-05-09"),
        ("2023-05-01", "next Tuesday", ""),  # tomorrow, or in eight days?
        ("2023-05-03", "this Friday", "2023-05-05"),
        ("2023-05-06", "this Friday", ""),
        ("2023-05-03", "this coming Monday", "2023-05-08"),
        ("2023-05-03", "last week", "2023-W17"),
        ("2023-05-07", "last week", ""),  # on a Sunday
        ("2023-01-03", "last week", "2022-W52"),
        ("2023-05-03", "last weekend", "2023-W17"),
        ("2023-05-03", "next weekend", ""),
        ("2023-05-06", "next weekend", "2023-W19"),
        ("2023-05-06", "this weekend", "2023-W18"),
        ("2023-01-31", "last month", "2022-12"),
        ("2023-12-31", "next month", "2024-01"),
        ("2023-05-03", "this year", "2023"),
        ("2023-05-03", "last December", "2022-12"),
        ("2023-05-03", "last March", ""),  # of this year, or of the last?
        ("2023-05-03", "next March", "2024-03"),
        ("2023-05-03", "next June", ""),
        ("2023-05-03", "last summer", "2022"),
        ("2023-10-03", "last summer", "2023"),
        ("2023-05-03", "last night", "2023-05-02"),
        ("2023-05-03", "two days ago", "2023-05-01"),
        ("2023-05-03", "a week ago", "2023-W17"),
        ("2023-01-15", "two months ago", "2022-11"),
        ("2023-05-03", "3 years ago", "2020"),
        ("2023-05-03", "10 years ago", ""),
        ("2023-05-03", "about two days ago", ""),
        ("2023-05-03", "two or three days ago", ""),
        ("2023-05-03", "a few days ago", ""),
        ("2023-05-03", "half a year ago", ""),
        ("2023-05-03", "a year from now", "2024"),
    ],
)
def test_a_relative_date_needs_a_day_on_which_it_can_mean_one_thing(
    said: str, text: str, name: str
) -> None:
    expected = [(text, name)] if name else []
    assert read(f"{text}, I think", date.fromisoformat(said)) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("We moved in March.", "2023-03"),
        ("We moved in October.", "2022-10"),
        ("We will move in January.", "2024-01"),
        ("We will move in March.", ""),  # nearly a year away
        ("We're moving in October.", "2023-10"),
        ("We move in October.", ""),
        ("I was told we will move in October.", ""),
        ("We moved in May.", ""),  # this month, or a year ago?
        ("He left on Monday.", "2023-05-01"),
        ("He'll leave on Monday.", "2023-05-08"),
        ("He left on Wednesday.", ""),
        ("If he left on Monday, fine.", ""),
        ("Every year we went there on May 1st.", ""),
        ("I was there on April 30th.", "2023-04-30"),
        ("I was there on September 30th.", "2022-09-30"),
        ("I was there on June 30th.", ""),  # that would be nearly a year ago
        ("We moved in June.", ""),
        ("I was thinking of going on Thursday.", ""),
        ("I have to train twice a week since March 25th.", "2023-03-25"),
        ("I will be there on June 30th.", "2023-06-30"),
        # Without a verb that tells: the one such day that is less than nine months away.
        ("I'm excited about June 30th.", "2023-06-30"),
        ("My dentist appointment is on June 30th.", "2023-06-30"),
        ("the terrace opens on 1 May", "2023-05-01"),
        ("The cutover is on September 30th.", ""),
        ("My birthday is on June 30th.", ""),
        ("It has been so since January.", "2023-01"),
        ("It must be done by October.", "2023-10"),
    ],
)
def test_a_date_without_a_year_takes_its_side_from_the_verb(text: str, name: str) -> None:
    assert [each for _, each in read(text)] == ([name] if name else [])


@pytest.mark.parametrize(
    "text",
    [
        "May I come? March on! A second, please.",
        "for two weeks, for 3 days, over the last year, in the past month",
        "the last week of school, my last year of college, her last year there",
        "in 2000 steps, since 1999 people came, room 2019, 2023 dollars",
        "recently, some day, one day, the other day, soon, later, these days",
        "on Mondays, every Friday, Friday nights",
        "in June Carter's house, in April's room",
        "leaders of tomorrow, a better tomorrow, as if it was yesterday, today's world",
        "version 2023.05.03, 12:30:45, 1-2-3, 192.168.1.2023, 555-01-2023x",
        "march 5 miles, May 5 people come in, may 3",
    ],
)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize("said", [date.min, date.max, date(1, 1, 7), date(9999, 12, 25)])
def test_at_the_ends_of_the_calendar_nothing_breaks(said: date) -> None:
    text = "yesterday, tomorrow, last week, next month, 50 years ago, this weekend, last summer, "
    text += "two weeks from now, next year, last Friday, next Monday, this past Sunday"
    for found in dates_in(text, said):
        assert found.first <= found.last


def test_first_and_last_day_are_those_of_the_period() -> None:
    text = "2023-05-03, February 2024, in 2019, last week, this weekend, summer of 2021"
    assert [(str(found.first), str(found.last)) for found in dates_in(text, WEDNESDAY)] == [
        ("2023-05-03", "2023-05-03"),
        ("2024-02-01", "2024-02-29"),
        ("2019-01-01", "2019-12-31"),
        ("2023-04-24", "2023-04-30"),
        ("2023-05-06", "2023-05-07"),
        ("2021-06-01", "2021-08-31"),
    ]

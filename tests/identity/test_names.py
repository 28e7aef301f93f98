"""Names: what a name is read into."""

from __future__ import annotations

import pytest

from worlddb.identity.match_values import DEFAULT_SETTINGS
from worlddb.identity.resolver import is_sentence
from worlddb.language.proper_names import read_name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Sarah Chen", "sarah chen"),
        ("  SARAH   chen ", "sarah chen"),
        ("Chen, Sarah", "sarah chen"),
        ("García Márquez, Gabriel", "gabriel garcia marquez"),
        ("Dr. Sarah Chen", "sarah chen"),
        ("Prof. Dr. Hans Meier", "hans meier"),
        ("Jean-Luc Picard", "jean luc picard"),
        ("O'Brien", "obrien"),
        ("J.K. Rowling", "j k rowling"),
        ("A. Turing", "a turing"),
        ("The Beatles", "beatles"),
        ("Johnson & Johnson", "johnson johnson"),
        ("Johnson and Johnson", "johnson johnson"),
        ("Apple Inc.", "apple"),
        ("Toyota Motor Co. Ltd.", "toyota motor"),
        ("Nestlé S.A.", "nestle"),
        ("John Smith Jr.", "john smith"),
        ("Smith, Jr., John", "smith jr john"),
        ("Henry Ford III", "henry ford"),
        ("Super Bowl LVII", "super bowl"),
        ("Jet Li", "jet li"),
        ("JET LI", "jet li"),
        ("St. Petersburg", "saint petersburg"),
        ("Main St.", "main street"),
        ("Александр Петров", "aleksandr petrov"),
        ("Νίκος", "nikos"),
        ("C++", "c++"),
        ("C#", "c#"),
        ("@sarah_chen", "sarah chen"),
        ("my manager", "manager"),
        ("Mr", "mr"),
        ("Inc", "inc"),
        ("王伟", "王伟"),
        ("747", ""),
        ("!!!", ""),
        ("", ""),
    ],
)
def test_a_name_is_read_into_its_words(text: str, words: str) -> None:
    assert read_name(text).words == tuple(words.split())


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("GPT-4", "4"),
        ("GPT4", "4"),
        ("GPT-4o", "4o"),
        ("GPT-3.5", "3.5"),
        ("iPhone 15 Pro", "15"),
        ("Q1 2023", "1 2023"),
        ("v2.0", "2.0"),
        ("1,000 islands", "1000"),
        ("2Pac", "2"),
        ("7-Eleven", "7"),
        ("2024-03-05", "03 05 2024"),
        ("Sarah", ""),
    ],
)
def test_numbers_are_set_apart_from_words(text: str, numbers: str) -> None:
    assert read_name(text).numbers == tuple(numbers.split())


def test_what_stands_around_a_name_is_kept() -> None:
    assert read_name("Dr. Chen").titles == {"dr"}
    assert read_name("Doctor Chen").titles == {"dr"}
    assert (read_name("Mrs. Chen").gender, read_name("Mr Chen").gender) == ("f", "m")
    assert read_name("Dr. Chen").gender == ""
    assert read_name("George Bush Jr.").generation == "jr"
    assert read_name("Henry Ford III").ordinal == "iii"
    assert read_name("Siemens AG").legal == "ag"
    assert read_name("my manager").owner == "my"
    assert read_name("Wendy's").possessed == {"wendys"}


@pytest.mark.parametrize(
    "text",
    [
        "I went to the store yesterday",
        "She likes pizza",
        "The meeting was moved to Friday",
        "What a day! It was great fun.",
        "User likes pizza and is allergic to nuts",
        "one two three four five six seven eight nine ten eleven twelve thirteen",
        "x" * 101,
        "first line of a note\nsecond line of a note",
    ],
)
def test_a_sentence_is_no_name(text: str) -> None:
    assert is_sentence(read_name(text), DEFAULT_SETTINGS)


@pytest.mark.parametrize(
    "text",
    [
        "The World Is Not Enough",
        "Life is Beautiful",
        "Harry Potter and the Prisoner of Azkaban",
        "What We Do in the Shadows",
        "University of California, Berkeley",
        "I, Robot",
        "It",
        "St. Mary's Hospital for Women",
    ],
)
def test_a_title_is_a_name(text: str) -> None:
    assert not is_sentence(read_name(text), DEFAULT_SETTINGS)

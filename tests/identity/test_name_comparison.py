"""Name comparison: which words of two names are one, and in which way."""

from __future__ import annotations

import pytest

from worlddb.identity.name_comparison import Likeness, changes_gender, compare, pair_of
from worlddb.language.proper_names import read_name


def likeness(left: str, right: str) -> Likeness:
    return compare(read_name(left), read_name(right), 0.8)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("smith", "smith", "same"),
        ("youssef", "yusuf", "variant"),
        ("bob", "robert", "nickname"),
        ("bill", "will", "cousins"),
        ("j", "john", "initial"),
        ("shepherd", "sheperd", "typo"),
        ("aym", "amy", "typo"),
        ("qadir", "kadeer", "spoken"),
        ("moammar", "muammar", "sound"),
    ],
)
def test_words_are_one_in_some_way(one: str, other: str, kind: str) -> None:
    pair = pair_of(one, other, 0.8)
    assert pair is not None
    assert pair.kind == kind
    assert 0.7 < pair.score <= 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("john", "jane"),
        ("zhang", "zheng"),
        ("york", "yorker"),
        ("georgia", "georgian"),
        ("ian", "ivan"),
        ("k", "john"),
        ("北京师范", "北京大学"),
    ],
)
def test_other_words_are_no_pair(one: str, other: str) -> None:
    assert pair_of(one, other, 0.8) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paul", "paula"),
        ("mario", "maria"),
        ("daniel", "danielle"),
        ("juan", "juana"),
        ("alexander", "alexandra"),
        ("ivanov", "ivanova"),
        ("zorin", "zorine"),
    ],
)
def test_a_letter_that_changes_the_gender_is_no_slip(one: str, other: str) -> None:
    assert changes_gender(one, other)
    assert pair_of(one, other, 0.8) is None


def test_order_makes_no_difference_but_is_told() -> None:
    found = likeness("Chen Sarah", "Sarah Chen")
    assert found.score == 1
    assert found.turned
    assert not likeness("Sarah Chen", "Sarah Chen").turned


def test_middle_names_are_left_over_inside() -> None:
    found = likeness("John Paul Fletcher", "John Fletcher")
    assert (found.more_left, found.more_right) == (("paul",), ())
    assert found.inside
    assert not likeness("New York Times", "New York").inside


def test_names_with_words_of_their_own_differ() -> None:
    assert likeness("John Smith", "Jane Smith").differs
    assert not likeness("John Smith", "Smith").differs


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Open AI", "OpenAI"),
        ("Delta Air Lines", "Delta Airlines"),
        ("darcie mac gowan", "macgowan darcie"),
    ],
)
def test_a_space_too_many_is_forgiven(one: str, other: str) -> None:
    found = likeness(one, other)
    assert found.score == 1
    assert not found.more_left
    assert not found.more_right


def test_an_initial_is_not_written_together_with_its_neighbour() -> None:
    found = likeness("Michael B. Jordan", "Michael Jordan")
    assert found.more_left == ("b",)
    assert likeness("Mary Ann Kowalski", "Mary Kowalski").more_left == ("ann",)


def test_names_without_words_are_not_alike() -> None:
    assert likeness("747", "737").score == 0
    assert likeness("", "Sarah").pairs == ()

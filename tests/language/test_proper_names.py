"""Proper names: nicknames, spellings, names that are not one another, and how words sound."""

from __future__ import annotations

import pytest

from worlddb.language.proper_names import (
    are_cousins,
    are_two,
    formal_names,
    is_nickname,
    is_variant,
    known,
    sound_code,
    spoken,
)


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("bob", "robert"),
        ("liz", "elizabeth"),
        ("peggy", "margaret"),
        ("sasha", "aleksandr"),
        ("steve", "stephen"),
        ("lizzy", "elizabeth"),
    ],
)
def test_a_nickname_is_known_both_ways_and_in_other_spellings(short: str, full: str) -> None:
    assert is_nickname(short, full)
    assert is_nickname(full, short)


def test_a_nickname_may_be_short_for_several_names() -> None:
    assert {"alexander", "alexandra"} <= formal_names("alex")
    assert formal_names("robert") == frozenset()


def test_two_nicknames_of_one_name_are_cousins() -> None:
    assert are_cousins("bill", "will")
    assert not is_nickname("bill", "will")
    assert not are_cousins("bill", "bob")


def test_spellings_of_one_name_are_variants() -> None:
    assert is_variant("yusuf", "youssef")
    assert is_variant("alexander", "aleksandr")
    assert not is_variant("john", "juan")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mario", "maria"),
        ("john", "jane"),
        ("johnson", "johnston"),
        ("austria", "australia"),
        ("kevin", "kelvin"),
    ],
)
def test_two_well_known_names_are_two(one: str, other: str) -> None:
    assert are_two(one, other)
    assert are_two(other, one)


@pytest.mark.parametrize(("one", "other"), [("john", "john"), ("jon", "john"), ("bob", "robert")])
def test_a_name_and_its_forms_are_not_two(one: str, other: str) -> None:
    assert not are_two(one, other)


def test_the_tables_are_plain_words() -> None:
    tables = known()
    for word in tables.words:
        assert word == word.lower()
        assert word.isalpha(), word
    for name, formal in tables.nicknames.items():
        assert name not in formal, f"{name} is listed as short for itself"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("phillip", "filip"),
        ("knight", "nite"),
        ("wright", "rite"),
        ("beck", "bek"),
        ("schmidt", "shmit"),
        ("catherine", "katherine"),
        ("macdonald", "mcdonald"),
        ("mueller", "muller"),
        ("smith", "smyth"),
        ("kyiv", "kiev"),
    ],
)
def test_spellings_of_one_sound_share_a_code(one: str, other: str) -> None:
    assert sound_code(one) == sound_code(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("phillip", "filip"), ("knott", "not"), ("wray", "ray"), ("mick", "mik"), ("anna", "ana")],
)
def test_digraphs_and_doubled_letters_are_respelled(one: str, other: str) -> None:
    assert spoken(one) == spoken(other)


@pytest.mark.parametrize(
    ("one", "other"), [("smith", "jones"), ("chen", "cohen"), ("mark", "bark"), ("tim", "tom ray")]
)
def test_other_words_have_other_codes(one: str, other: str) -> None:
    assert sound_code(one) != sound_code(other)


def test_a_word_outside_the_alphabet_is_its_own_sound() -> None:
    assert sound_code("王伟") == spoken("王伟") == "王伟"
    assert sound_code("") == spoken("") == ""


def test_a_code_is_short() -> None:
    assert sound_code("wolfeschlegelsteinhausenbergerdorff") == "v4124"

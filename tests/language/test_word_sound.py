"""Sound: how words are respelled and coded."""

from __future__ import annotations

import pytest

from worlddb.language.proper_names import sound_code, spoken


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

"""Keys: what a name is filed under."""

from __future__ import annotations

import pytest

from worlddb.identity.store_resolver import attribute_keys, block_keys


def test_the_keys_of_a_name() -> None:
    assert block_keys("John Smith") == {
        "=john smith", "w:john", "w:smith", "w:johnsmith", "p:j5 s53", "b:joh smi", "i:j s53",
        "i:s j5",
    }  # fmt: skip
    assert block_keys("Philip") == {"=philip", "w:philip", "s:f41", "b:phil"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sarah Chen", "sarah  CHEN"),
        ("Sarah Chen", "Chen Sarah"),
        ("Sarah Chen", "Dr. Sarah Chen"),
        ("J. Smith", "John Smith"),
        ("Bob Miller", "Robert Miller"),
        ("Micheal Jordon", "Michael Jordan"),
        ("dominxic flockhart", "dominic flockhdart"),
        ("Philip", "Filip"),
        ("MacBook", "Mac Book"),
        ("Mohamed Elneny", "Mohammed El Neny"),
        ("Apple Inc.", "Apple"),
        ("Instagram", "Instragram"),
        ("Александр Петров", "Aleksandr Petrov"),
        ("GPT4", "GPT-4"),
        ("Sarah", "Sarah Chen"),
    ],
)
def test_names_that_may_be_one_share_a_key(one: str, other: str) -> None:
    assert block_keys(one) & block_keys(other)


def test_a_common_word_is_not_the_only_way_to_a_name() -> None:
    """Of a name with a slip in one word, a key holds both words."""
    shared = block_keys("Emily Greenn") & block_keys("Emily Green")
    assert any(not key.startswith("w:") for key in shared)


def test_a_nickname_is_filed_under_the_letter_of_the_full_name_too() -> None:
    assert {"i:b m46", "i:r m46"} <= block_keys("Bob Miller")
    assert "i:r m46" in block_keys("Robert Miller")


def test_keys_of_numbered_names_hold_the_numbers() -> None:
    shared = block_keys("iPhone 14") & block_keys("iPhone 15")
    assert shared == {"w:iphone"}


@pytest.mark.parametrize(
    "name",
    ["John Smith", "Bob Miller", "Alex Smith", "Maria del Carmen Ruiz", "University of York"],
)
def test_a_name_has_few_keys(name: str) -> None:
    assert len(block_keys(name)) <= 10


def test_what_is_no_name_has_no_keys_or_one() -> None:
    assert block_keys("") == set()
    assert block_keys("747") == {"=747"}


def test_strong_attributes_have_keys() -> None:
    keys = attribute_keys(
        {"Date of Birth": "1984-05-01", "E-mail": "x", "email": "A@b.org", "city": "Rome"}
    )
    assert keys == {"a:date_of_birth 1984-05-01", "a:email a@b.org"}
    assert attribute_keys({"dob": " "}) == set()

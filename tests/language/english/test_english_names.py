"""How much of what people say the rules write down, and how much of that is right."""

from __future__ import annotations

import pytest

from language.english.name_sentences import CASES, TRAPS, Case
from language.english.scoring import drafted, expected, items

# What is known to be wrong or missed; a change to either is a change in quality, and seen.
WRONG = {("name", "Noisy")}
MISSED = {("name", "Habitat for Humanity"), ("date", "2023-08"), ("name", "Stripe")}


def test_the_set_is_large_and_a_third_of_it_says_nothing() -> None:
    assert len({case.text for case in CASES}) == len(CASES) >= 240
    silent = [case for case in CASES if not expected(case)]
    assert len(silent) >= 70
    assert len(TRAPS) >= 40


def test_what_the_rules_write_down_is_right_and_hardly_anything_is_missed() -> None:
    right = wrong = missed = 0
    for case in CASES:
        found, wanted = items(drafted(case.text)), expected(case)
        right += len(found & wanted)
        wrong += len(found - wanted)
        missed += len(wanted - found)
    assert right / (right + wrong) >= 0.99
    assert right / (right + missed) >= 0.98


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text[:48])
def test_a_sentence_gives_what_a_careful_reader_writes_down(case: Case) -> None:
    found, wanted = items(drafted(case.text)), expected(case)
    assert found - wanted <= WRONG
    assert wanted - found <= MISSED

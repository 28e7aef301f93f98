"""Claim wording: what the words of a claim tell beside its value, by lists in `hedges.txt`."""

from __future__ import annotations

import re

from worlddb.language.word_lists import any_of, words_of


def hedge_pattern(section: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """Return a pattern for the words and phrases of a section of `hedges.txt`."""
    words = words_of("language.english", "hedges.txt", section)
    return re.compile(rf"\b(?:{any_of(words)})\b", flags)


_CHANGE = hedge_pattern("change")
_MOVING = hedge_pattern("moving")


def tells_change(text: str) -> bool:
    """Return whether the words of a claim tell of something that has just become so."""
    return _CHANGE.search(text) is not None


def tells_move(text: str) -> bool:
    """Return whether the words of a claim tell that somebody lives somewhere else than before."""
    return _MOVING.search(text) is not None


def tells_promotion(text: str) -> bool:
    """Return whether the words of a claim tell of a promotion."""
    return "promoted" in text.lower()

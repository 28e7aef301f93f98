"""Preference forms: does a text state a preference or a standing instruction?

    preference_in("I prefer tea to coffee.")                   PREFERENCE
    preference_in("Always give sources when I ask for facts.") ORDER

The forms are data, by language (`preference_words.txt`); `ranking_features.wants_advice` says which
questions they matter to. A standing instruction is a sentence that
opens with its order; a preference is a phrase anywhere in a text.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache

from worlddb.language.ranking_features import PREFERENCE_LIST, phrase_pattern, plain_text
from worlddb.language.text_tokens import words
from worlddb.language.word_forms import sections

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_LETTERS = re.compile(r"\w")


class PreferenceKind(Enum):
    """What kind of wish a text states."""

    ORDER = "a standing instruction: it holds for whatever it does not exclude"
    PREFERENCE = "a preference: it holds for what it is about"


def preference_in(text: str) -> PreferenceKind | None:
    """Return which kind of wish a text states, if any."""
    plain = plain_text(text)
    found = phrase_pattern("prefers").search(plain)
    if phrase_pattern("orders").search(plain):
        for sentence in _SENTENCE.split(plain):
            opening = _LETTERS.search(sentence)
            if opening and phrase_pattern("orders").match(sentence, opening.start()):
                return PreferenceKind.ORDER
    return PreferenceKind.PREFERENCE if found else None


@cache
def preference_signs() -> frozenset[str]:
    """Return tokens at least one of which a text with a preference has, whatever its language."""
    found = set()
    for name, rows in sections("language", PREFERENCE_LIST).items():
        code, _, part = name.partition(" ")
        if part == "signs":
            said = [word for row in rows for word in row]
            # Of a script without spaces the pair of signs that a word begins with is enough.
            found |= {
                words(word)[1 if not word.isascii() and len(words(word)) > 1 else 0]
                for word in said
            }
            if code in ("de", "es", "fr"):
                found |= {words(word, code)[0] for word in said}
    return frozenset(found)

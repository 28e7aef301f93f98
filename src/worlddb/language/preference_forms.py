"""Preference forms: does a text state a preference or a standing instruction; does a question care?

    preference_in("I prefer tea to coffee.")                   PREFERENCE
    preference_in("Always give sources when I ask for facts.") ORDER
    wants_advice("Can you suggest a drink?")                   True
    wants_advice("What did I order last Friday?")              False

The forms are data, by language (`preference_words.txt`). A standing instruction is a sentence that
opens with its order; a preference is a phrase anywhere in a text.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache

from worlddb.language.text_tokens import words
from worlddb.language.word_forms import sections

_LIST = "preference_words.txt"
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_LETTERS = re.compile(r"\w")


class PreferenceKind(Enum):
    """What kind of wish a text states."""

    ORDER = "a standing instruction: it holds for whatever it does not exclude"
    PREFERENCE = "a preference: it holds for what it is about"


def preference_in(text: str) -> PreferenceKind | None:
    """Return which kind of wish a text states, if any."""
    plain = _plain(text)
    found = _pattern("prefers").search(plain)
    if _pattern("orders").search(plain):
        for sentence in _SENTENCE.split(plain):
            opening = _LETTERS.search(sentence)
            if opening and _pattern("orders").match(sentence, opening.start()):
                return PreferenceKind.ORDER
    return PreferenceKind.PREFERENCE if found else None


def wants_advice(question: str) -> bool:
    """Return whether a question asks for advice or a task, not for what was said."""
    plain = _plain(question)
    return bool(_pattern("asks").search(plain)) and not _pattern("recalls").search(plain)


@cache
def preference_signs() -> frozenset[str]:
    """Return tokens at least one of which a text with a preference has, whatever its language."""
    found = set()
    for name, rows in sections("language", _LIST).items():
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


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").lower()


@cache
def _pattern(part: str) -> re.Pattern[str]:
    """Return the pattern of one part of all languages; words of letters stand alone."""
    phrases = sorted(
        {
            phrase
            for name, rows in sections("language", _LIST).items()
            if name.endswith(f" {part}")
            for row in rows
            for phrase in row
        },
        key=lambda phrase: (-len(phrase), phrase),
    )
    spaced = [one for one in phrases if ord(one[-1]) < 0x2E80]
    unspaced = [one for one in phrases if ord(one[-1]) >= 0x2E80]
    whole = "|".join(re.escape(one).replace(r"\ ", r"\s+") for one in spaced)
    return re.compile(rf"\b(?:{whole})\b|{'|'.join(map(re.escape, unspaced))}")

"""Prose: whether a text is English, and which parts of it are running text.

Code, addresses, headings, tables, tags and labels hold capital letters and numbers that mean
something else there. Each becomes as many `BLOT`s, so that offsets stay; nothing else changes.
A text in another language is not read at all: there a capital letter, or a word such as "die",
means something else. In doubt a text is foreign.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache

from worlddb.language.english.english_words import ORDINARY, SMALL, listed
from worlddb.language.english.grammar import BLOT, Patterns

_P = Patterns("prose")


# What is blotted out, and the signs without which it cannot be there: most texts have none of them.
_NO_PROSE = (
    *(("FENCED", ("```", "~~~")), ("CODE", ("`",)), ("LINK", ("://", "www.")), ("HANDLE", ("@",))),
    *(("TAG", ("#",)), ("ELEMENT", ("<",)), ("IDENTIFIER", ("_",)), ("PATH", ("/", "\\"))),
    ("CALL", ("(",)),
)
_HEADING_WORDS_MIN = 3  # fewer capitalised words in a row may be a name alone on its line

_ENGLISH = listed("words", "english")
_FOREIGN = listed("words", "foreign")
_LATIN_MAX = 0x250  # letters beyond are of another script
_READ_MAX = 4_000  # so much of a text tells its language
_SHORT = 10  # in fewer words, an English text may well lack all of the commonest


def reads_as_english(text: str) -> bool:
    """Return whether `text` is in English, surely enough for rules that know nothing else."""
    read = _P.OF_NAMES.sub("", text[:_READ_MAX])
    words = _P.WORD_OR_SHORT_FORM.findall(read.replace("’", "'").lower())
    if not words:
        return False
    if not text.isascii() and sum(ord(word[0]) >= _LATIN_MAX for word in words) * 4 > len(words):
        return False
    english = sum(word in _ENGLISH for word in words)
    foreign = sum(word in _FOREIGN for word in words)
    if foreign >= max(english, 1):
        return False
    if len(words) < _SHORT and not english:
        return sum(word in ORDINARY for word in words) * 3 >= len(words)
    return english * 10 >= len(words)


def plain_prose(text: str, *, note: bool = False) -> str:
    """Return a text masked; in a note of the user "the user" is "I", "the user's" is "my".

    The words are replaced by shorter ones and spaces, so that offsets stay.
    """
    plain = masked(text)
    if not note or "user" not in plain.lower():
        return plain
    plain = _P.POSSESSIVE.sub(lambda match: "my".ljust(len(match[0])), plain)
    return _P.SUBJECT.sub(_as_subject, plain)


def _as_subject(match: re.Match[str]) -> str:
    # Who writes a note in lower case does so with the names in it.
    low = match.start() == 0 and match[0][0].islower()
    return ("i" if low else "I").ljust(len(match[0]))


def masked(text: str) -> str:
    """Return `text` with everything that is not running text blotted out; as long as before."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]"):
        return BLOT * len(text)
    for name, signs in _NO_PROSE:
        if any(sign in text for sign in signs):
            text = getattr(_P, name).sub(_blot, text)
    if _P.DOTTED.search(text) is not None:
        text = _P.ADDRESS.sub(_blot, text)
    if _P.CODE_SIGN.search(text) is not None:
        text = _P.CODE_LINE.sub(_blot, text)
    if "**" in text or "__" in text:
        text = _P.LABEL.sub(_blot, text)
    return _P.LINE.sub(_without_headings, text)


def in_quotes(plain: str, position: int) -> bool:
    """Return whether a place is inside quotation marks: somebody else's words, of another time."""
    places, states = _quoted(plain)
    number = bisect_right(places, position - 1)
    return number > 0 and states[number - 1]


@lru_cache(maxsize=8)
def _quoted(plain: str) -> tuple[list[int], list[bool]]:
    """Return where quotation marks and lines stand in a text, and whether each opens words."""
    places: list[int] = []
    states: list[bool] = []
    straight = curved = False
    for match in _P.QUOTE_OR_LINE.finditer(plain):
        mark = match[0]
        straight = (mark == '"') != straight if mark != "\n" else False
        curved = mark == "“" or (curved and mark == '"')
        places.append(match.start())
        states.append(straight or curved)
    return places, states


def _blot(match: re.Match[str]) -> str:
    return BLOT * (match.end() - match.start())


def _without_headings(match: re.Match[str]) -> str:
    """A line in which every word is capitalised says nothing about any one of them."""
    line = match[0]
    words = 0
    for word in _P.WORD.finditer(line):
        if word[0] not in SMALL:
            if not word[0][0].isupper():
                return line
            words += 1
    ended = line.rstrip().endswith((".", "!", "?", ",", ";"))
    least = _HEADING_WORDS_MIN + 2 * ended
    return BLOT * len(line) if words >= least else line

"""Fold: the form of text in which case, accents and look-alikes make no difference.

`fold` is for search and forgives much: Zürich is zurich, ＡＢＣ is abc, ٤٢ is 42. `folded` is for
names and forgives only what no reader sees.

F1  Text in ASCII folds to its lower case, character by character.
F2  Elsewhere letters, marks, digits, emoji and currency signs are left; apostrophes and hyphens
    become the ASCII ones; what is invisible goes; all else becomes a space.
F3  A character folds together with the marks that follow it and with nothing else. That is what
    lets `aligned` say where each folded character came from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

# Pictures that can be looked for. Lines, boxes and arrows in between are drawing, not words.
EMOJI = "\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001fbff"
CURRENCY = "$€£¥₹"

_TABLE_MAX = 1 << 15
_EMOJI = re.compile(f"[{EMOJI}]")
# Marks that writers leave out or readers ignore: Latin, Greek and Cyrillic accents (the breve
# apart: й is no и), Hebrew points, Arabic vowel signs and the hamza above and below.
_ACCENT = re.compile(
    "[\u0300-\u0305\u0307-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06ed\u20d0-\u20f0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_BREVE = re.compile("(?<![иу])\u0306")
_APOSTROPHES = "\u2018\u2019\u201b\u02b9\u02bb\u02bc\u2032\u00b4"
_HYPHENS = "\u2010\u2011\u2212"
_LETTERS = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h",
}  # fmt: skip
# Compatibility forms that would run into the word before them: 1½ is no 11/2.
_APART = str.maketrans(
    {"½": " 1/2 ", "¼": " 1/4 ", "¾": " 3/4 ", "№": " no ", "™": " ", "℠": " ", "´": "'"}
)


class _Table(dict[int, str]):
    """A table for `str.translate` that learns each character when it is first met."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        found = self._rule(chr(code))
        if len(self) < _TABLE_MAX:
            self[code] = found
        return found


def _plain(char: str) -> str:
    if char.isascii() or char in CURRENCY or char == "\u0306":
        return char
    if char in _APOSTROPHES:
        return "'"
    if char in _HYPHENS:
        return "-"
    if char in _LETTERS or _ACCENT.match(char):
        return _LETTERS.get(char, "")
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Cf":
        return " " if char == "\u200b" else ""
    if category[0] in "LMN" or (category in ("So", "Cn") and _EMOJI.match(char)):
        return char
    return " "


def _visible(char: str) -> str:
    if char in _APOSTROPHES:
        return "'"
    return "" if unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f" else char


_PLAIN = _Table(_plain)
_VISIBLE = _Table(_visible)


def fold(text: str) -> str:
    """Return `text` as search sees it."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", text.translate(_APART)).casefold()
    text = unicodedata.normalize("NFKD", text).translate(_PLAIN)
    if "\u0306" in text:
        text = _BREVE.sub("", text)
    return unicodedata.normalize("NFC", text)


def aligned(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return the folded text, and where in `text` each of its characters starts and ends."""
    whole = fold(text)
    if text.isascii() or (len(whole) == len(text) and "".join(map(_alone, text)) == whole):
        return whole, range(len(text)), range(1, len(text) + 1)
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and _attaches(text[end]):
            end += 1
        part = fold(text[start:end])
        parts.append(part)
        starts += [start] * len(part)
        ends += [end] * len(part)
        start = end
    if "".join(parts) != whole:  # F3 holds for every sequence we know of; be right if it does not
        return whole, [0] * len(whole), [len(text)] * len(whole)
    return whole, starts, ends


@lru_cache(maxsize=1 << 14)
def _attaches(char: str) -> bool:
    """Tell whether a character may change with the one before it.

    Marks do, invisible characters (marks after them meet the ones before) and Hangul vowels.
    """
    first = unicodedata.normalize("NFKD", char)[0]
    category = unicodedata.category(first)
    return category[0] == "M" or category == "Cf" or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=1 << 14)
def _alone(char: str) -> str:
    """Return what a character folds to by itself if that is one character, else nothing."""
    found = fold(char)
    return found if len(found) == 1 else ""


def folded(text: str) -> str:
    """Return the key by which names are compared: equal keys, equal names.

    Compatibility forms, case, white space, invisible characters, curly quotes and the punctuation
    around the name make no difference. Diacritics do (a search is forgiving, an identity is not),
    and so do `+`, `#`, `&`, `@`, `%` and a leading full stop: C++, C#, .NET.
    """
    if text.isascii():
        key = text.lower()
    else:
        key = text
        for _ in range(2):  # folding case may leave a form that is not normal, once
            key = unicodedata.normalize("NFKC", key.translate(_VISIBLE)).casefold()
        key = unicodedata.normalize("NFKC", key)
    key = " ".join(key.split())
    start, end = 0, len(key)
    while start < end and _outer(key[start]) and key[start] != ".":
        start += 1
    while start < end and _outer(key[end - 1]):
        end -= 1
    return key[start:end] or key


def _outer(char: str) -> bool:
    return char == " " or (unicodedata.category(char)[0] == "P" and char not in "#&@%")

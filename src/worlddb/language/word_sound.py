"""Sound: how a word is spoken, roughly, in English ears.

`spoken` respells a word so that spellings of one sound agree (Phillip and Filip, Knight and Nite).
`sound_code` is a Soundex-style key of that: a first letter and up to four digits.
"""

from __future__ import annotations

import re
from functools import lru_cache

CODE_DIGITS_MAX = 4
_CACHE_MAX = 1 << 15

_FIRST = ("kn", "n"), ("wr", "r"), ("gn", "n"), ("ps", "s"), ("pn", "n"), ("wh", "w"), ("mac", "mc")
# In order: what is rewritten first is not seen by what follows. "ç" stands for ch while c is read.
_REWRITES = (
    ("tsch", "ç"), ("tch", "ç"), ("sch", "sh"), ("ch", "ç"), ("ph", "f"), ("ck", "k"),
    ("dge", "j"), ("dj", "j"), ("zh", "j"), ("ght", "t"), ("th", "t"), ("kh", "k"), ("gh", "g"),
    ("ce", "se"), ("ci", "si"), ("cy", "si"), ("qu", "kw"), ("q", "k"), ("c", "k"), ("x", "ks"),
    ("ou", "u"), ("oo", "u"), ("ee", "i"), ("ea", "i"), ("ie", "i"), ("ei", "i"), ("ey", "i"),
    ("ay", "ei"), ("y", "i"), ("z", "s"), ("ae", "a"), ("oe", "o"), ("ue", "u"), ("w", "v"),
)  # fmt: skip
_DOUBLED = re.compile(r"(.)\1+")
_PLAIN = re.compile("[a-z]+")
_DIGITS = str.maketrans(
    {
        **dict.fromkeys("bpfv", "1"),
        **dict.fromkeys("gjkszç", "2"),
        **dict.fromkeys("dt", "3"),
        "l": "4",
        **dict.fromkeys("mn", "5"),
        "r": "6",
        **dict.fromkeys("aeiou", "0"),
        "h": None,
    }
)


@lru_cache(maxsize=_CACHE_MAX)
def spoken(word: str) -> str:
    """Return a word of a-z respelled as it sounds; any other word as it is."""
    if not _PLAIN.fullmatch(word):
        return word
    for written, said in _FIRST:
        if word.startswith(written):
            word = said + word.removeprefix(written)
            break
    for written, said in _REWRITES:
        if written in word:
            word = word.replace(written, said)
    word = _DOUBLED.sub(r"\1", word)
    if len(word) > 2:
        word = word.rstrip("h")
        word = word.removesuffix("e") if len(word) > 3 else word
    return word


@lru_cache(maxsize=_CACHE_MAX)
def sound_code(word: str) -> str:
    """Return the key that words of one sound share: Smith and Smyth are both s53."""
    said = spoken(word)
    if not _PLAIN.fullmatch(word) or not said:
        return word
    first = "a" if said[0] in "aeiou" else "j" if said[:2] in ("ge", "gi") else said[0]
    digits = _DOUBLED.sub(r"\1", said.translate(_DIGITS))
    if digits and digits[0] == said[0].translate(_DIGITS):
        digits = digits[1:]
    return first + digits.replace("0", "")[:CODE_DIGITS_MAX]

"""Name keys: what a name is filed under, so that the few names it may be are found among a million.

A look-up asks for the keys the index stores. A key that finds more names than
`ResolverSettings.key_names_max` says nothing and should be skipped: what is too common to find is
too common to decide. So that a common word does not hide a name, words are also filed in pairs.

    =john smith    the folded name
    w:john         the longest words, and the last two in one: rare words, whatever is beside them
    p:j5 s53       the sounds of the first and the last word: slips in both, in either order
    b:joh smi      how they begin: slips further on that change the sound
    i:j s53        a letter and the sound of the other: initials, nicknames, other first names
    s:f41          the sound of a single word
    a:email …      what tells people apart, of `attribute_keys`
"""

from __future__ import annotations

from collections.abc import Mapping

from worlddb.identity.likelihood import cleaned, strong_of
from worlddb.identity.match_values import DEFAULT_SETTINGS, ResolverSettings
from worlddb.language.person_names import read_name
from worlddb.language.word_sound import sound_code
from worlddb.resolve.known import formal_names

WORDS_MAX = 3
BEGINNING = 3


def block_keys(name: str) -> set[str]:
    """Return the keys of a name."""
    parts = read_name(name)
    if not parts.key:
        return set()
    keys = {f"={parts.key}"}
    words = parts.words
    if not words:
        return keys
    longest = sorted(words, key=lambda word: (-len(word), word))[:WORDS_MAX]
    keys.update(f"w:{word}" for word in longest if len(word) > 1)
    numbers = "".join(f" {number}" for number in parts.numbers)
    if len(words) == 1:
        keys.add(f"s:{sound_code(words[0])}{numbers}")
        keys.add(f"b:{words[0][: BEGINNING + 1]}{numbers}")
        return keys
    first, last = words[0], words[-1]
    keys.add(f"w:{words[-2]}{last}")
    one, other = sound_code(first), sound_code(last)
    keys.add(f"p:{min(one, other)} {max(one, other)}{numbers}")
    begin, end = sorted((first[:BEGINNING], last[:BEGINNING]))
    keys.add(f"b:{begin} {end}{numbers}")
    keys.update(f"i:{letter} {other}{numbers}" for letter in _letters(first))
    keys.update(f"i:{letter} {one}{numbers}" for letter in _letters(last))
    return keys


def _letters(word: str) -> set[str]:
    """Return the letters a word may be shortened to: Bob is B, and R for Robert."""
    return {word[0], *(name[0] for name in formal_names(word))}


def attribute_keys(
    attributes: Mapping[str, str], settings: ResolverSettings = DEFAULT_SETTINGS
) -> set[str]:
    """Return the keys of what tells people apart: day of birth, e-mail, telephone."""
    strong = strong_of(cleaned(attributes), settings)
    return {f"a:{name} {value}" for name, value in strong.items()}

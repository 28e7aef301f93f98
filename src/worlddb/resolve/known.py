"""Known: names that many people bear, their nicknames and spellings, from `known_names.txt`.

What the tables are for: two *different* well-known names are two people, however few letters lie
between them (Mario and Maria, Johnson and Johnston), and two spellings or a nickname are one name,
however many do (Youssef and Yusuf, Bob and Robert).
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from worlddb.language.word_sound import spoken

_CACHE_MAX = 1 << 15


class Known(NamedTuple):
    """The tables: all words are lower case and without accents."""

    given: frozenset[str]
    words: frozenset[str]
    nicknames: dict[str, frozenset[str]]
    sounds: dict[str, frozenset[str]]
    variants: dict[str, frozenset[str]]
    distinct: dict[str, frozenset[str]]


@cache
def known() -> Known:
    """Return the tables."""
    text = files("worlddb.resolve").joinpath("known_names.txt").read_text(encoding="utf-8")
    sections: dict[str, list[list[str]]] = defaultdict(list)
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            sections[section].append(line.replace(":", " ").split())
    formal: dict[str, set[str]] = defaultdict(set)
    for name, *short in sections["nicknames"]:
        for nickname in short:
            formal[nickname].add(name)
    spelled: dict[str, set[str]] = defaultdict(set)
    for nickname, names in formal.items():
        spelled[spoken(nickname)] |= names
    people = ("nicknames", "variants", "given")
    given = frozenset(word for part in people for row in sections[part] for word in row)
    families = ("surnames", "surname variants")
    surnames = frozenset(word for part in families for row in sections[part] for word in row)
    return Known(
        given=given,
        words=given | surnames,
        nicknames={name: frozenset(names) for name, names in formal.items()},
        sounds={sound: frozenset(names) for sound, names in spelled.items()},
        variants=_groups(sections["variants"] + sections["surname variants"]),
        distinct=_groups(sections["distinct"]),
    )


def _groups(rows: list[list[str]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for word in row:
            found[word].update(row)
    return {word: frozenset(words) for word, words in found.items()}


@lru_cache(maxsize=_CACHE_MAX)
def formal_names(word: str) -> frozenset[str]:
    """Return the given names that `word` is short for: Alex is Alexander and Alexandra."""
    tables = known()
    names = tables.nicknames.get(word)
    if names is None and word not in tables.words:
        names = tables.sounds.get(spoken(word))  # a spelling we do not list: Lizzy
    return names or frozenset()


def is_given(word: str) -> bool:
    """Tell whether many people have `word` as a given name."""
    return word in known().given


def is_name(word: str) -> bool:
    """Tell whether many people have `word` as a given name or a surname."""
    return word in known().words


def is_variant(one: str, other: str) -> bool:
    """Tell whether both spell one name."""
    return other in known().variants.get(one, ())


def is_nickname(one: str, other: str) -> bool:
    """Tell whether one is short for the other, or for a spelling of it."""
    ones, others = formal_names(one), formal_names(other)
    if not ones and not others:
        return False
    if other in ones or one in others:
        return True
    spelled = known().variants
    return not (ones.isdisjoint(spelled.get(other, ())) and others.isdisjoint(spelled.get(one, ())))


def are_cousins(one: str, other: str) -> bool:
    """Tell whether both are short for one name: Bill and Will."""
    return not formal_names(one).isdisjoint(formal_names(other))


def are_two(one: str, other: str) -> bool:
    """Tell whether two words are known to name two different people or things."""
    if one == other:
        return False
    tables = known()
    if other in tables.distinct.get(one, ()):
        return True
    if one not in tables.words or other not in tables.words:
        return False
    return not is_variant(one, other) and not is_nickname(one, other)

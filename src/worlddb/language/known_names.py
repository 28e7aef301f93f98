"""Known names: personal names that many people bear, with nicknames and spellings.

The one list of personal names is `known_names.txt`. Two *different* well-known names are two
people, however few letters lie between them (Mario and Maria, Johnson and Johnston). Two spellings,
or a name and its nickname, are one name, however many letters differ (Youssef and Yusuf, Bob and
Robert). A reader of texts takes a known given name for a person.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache, lru_cache
from typing import NamedTuple

from worlddb.language.word_lists import sections
from worlddb.language.word_sound import spoken

_CACHE_MAX = 1 << 15


class Known(NamedTuple):
    """The tables: all words are lower case and without accents.

    `given` names and all `words` of names are compared; `told` are the given names that tell a
    person in a text, of which the `doubtful` are words or places as well.
    """

    given: frozenset[str]
    words: frozenset[str]
    told: frozenset[str]
    doubtful: frozenset[str]
    nicknames: dict[str, frozenset[str]]
    sounds: dict[str, frozenset[str]]
    variants: dict[str, frozenset[str]]
    distinct: dict[str, frozenset[str]]


@cache
def known() -> Known:
    """Return the tables."""
    rows = {
        name: [[word.rstrip(":") for word in row] for row in found]
        for name, found in sections("language", "known_names.txt").items()
    }

    def words(*names: str) -> frozenset[str]:
        return frozenset(word for name in names for row in rows[name] for word in row)

    formal: dict[str, set[str]] = defaultdict(set)
    for name, *short in rows["nicknames"]:
        for nickname in short:
            formal[nickname].add(name)
    spelled: dict[str, set[str]] = defaultdict(set)
    for nickname, names in formal.items():
        spelled[spoken(nickname)] |= names
    given = words("nicknames", "variants", "given")
    return Known(
        given=given,
        words=given | words("surnames", "surname variants"),
        told=given | words("uncompared"),
        doubtful=words("words too"),
        nicknames={name: frozenset(names) for name, names in formal.items()},
        sounds={sound: frozenset(names) for sound, names in spelled.items()},
        variants=_groups(rows["variants"] + rows["surname variants"]),
        distinct=_groups(rows["distinct"]),
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

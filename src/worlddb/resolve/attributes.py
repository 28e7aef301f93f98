"""Attributes: what else is known of two, and what that says about their being one.

A weight is a natural logarithm of odds: 0 says nothing, 3 makes it twenty times as likely. What a
household shares (suburb, street, postcode) is bounded together, for it is shared by several people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from worlddb.language.fold import fold
from worlddb.resolve.compare import edits, jaro_winkler
from worlddb.resolve.settings import ResolverSettings

_BORN_SAME, _BORN_CLOSE, _BORN_YEAR = 7.0, 3.0, 2.0
_IDENTIFIER_SAME, _IDENTIFIER_CLOSE, _IDENTIFIER_OTHER = 9.0, 3.0, -1.0
_SHARED_MAX, _OTHER = 7.0, -0.7
_GENDER_OTHER = -5.0
_GENDER = frozenset({"gender", "sex"})
_ALIKE = 0.9
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Corroboration:
    """What the attributes say: how much, and which agree, nearly agree, differ or forbid."""

    weight: float = 0.0
    strong: bool = False
    agree: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()


NOTHING = Corroboration()


def corroborate(
    left: Mapping[str, str], right: Mapping[str, str], settings: ResolverSettings
) -> Corroboration:
    """Return what the attributes that both have say about their being one.

    Both are as `cleaned` returns them.
    """
    lists: dict[str, list[str]] = {"agree": [], "close": [], "differ": [], "forbid": []}
    weight = shared = 0.0
    for name in sorted(left.keys() & right.keys()):
        one, other = left[name], right[name]
        if name in settings.birth_attributes:
            said, amount = _born(one, other)
            weight += amount
        elif name in settings.identifier_attributes:
            said, amount = _identifier(one, other)
            weight += amount
        else:
            said, amount = _common(name, one, other)
            shared += amount
        lists[said].append(name)
    total = weight + min(shared, _SHARED_MAX)
    strong = agree_strongly(strong_of(left, settings), right, settings)
    return Corroboration(total, strong, *(tuple(names) for names in lists.values()))


def cleaned(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes with names and values folded; empty values are none."""
    found = {}
    for name, value in attributes.items():
        if text := _folded_value(value):
            found[_folded_name(name)] = text
    return found


def strong_of(attributes: Mapping[str, str], settings: ResolverSettings) -> dict[str, str]:
    """Return the birth dates and identifiers among cleaned attributes."""
    names = settings.birth_attributes | settings.identifier_attributes
    return {name: value for name, value in attributes.items() if name in names}


def agree_strongly(
    strong: Mapping[str, str], attributes: Mapping[str, str], settings: ResolverSettings
) -> bool:
    """Tell whether one of the strong attributes is the same among others, as they were given."""
    if not strong:
        return False
    for name, value in attributes.items():
        mine = strong.get(_folded_name(name))
        if mine is not None:
            theirs = _folded_value(value)
            if mine == theirs:
                return True
            if _folded_name(name) in settings.birth_attributes and theirs:
                if _born(mine, theirs)[0] == "agree":
                    return True
    return False


@lru_cache(maxsize=1 << 10)
def _folded_name(name: str) -> str:
    return "_".join(name.casefold().replace("-", " ").split())


def _folded_value(value: str) -> str:
    return " ".join(fold(str(value)).split())


def _born(one: str, other: str) -> tuple[str, float]:
    """Compare days of birth: a slip is forgiven, another day is another person."""
    if one == other:
        return "agree", _BORN_SAME
    first, second = ("".join(_DIGITS.findall(text)) for text in (one, other))
    if len(first) == len(second) == 8:
        if first == second:
            return "agree", _BORN_SAME
        turned = first[:4] + first[6:] + first[4:6]
        if turned == second or edits()(first, second) == 1:
            return "close", _BORN_CLOSE
    elif first and second and (first.startswith(second) or second.startswith(first)):
        return "close", _BORN_YEAR
    return "forbid", 0.0


def _identifier(one: str, other: str) -> tuple[str, float]:
    if one == other:
        return "agree", _IDENTIFIER_SAME
    if min(len(one), len(other)) >= 7 and edits()(one, other) == 1:
        return "close", _IDENTIFIER_CLOSE
    return "differ", _IDENTIFIER_OTHER


def _common(name: str, one: str, other: str) -> tuple[str, float]:
    """Compare what many share: it says the more, the longer it is."""
    letters = min(len(one), len(other))
    amount = 0.7 if letters <= 3 else 2.0 if letters <= 5 else 3.0
    if one == other:
        return "agree", amount
    if letters > 3 and jaro_winkler()(one, other) >= _ALIKE:
        return "close", amount * 0.7
    return "differ", _GENDER_OTHER if name in _GENDER else _OTHER

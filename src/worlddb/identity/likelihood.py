"""The probability that two names refer to one thing, from the names and from attributes.

The odds are those of record linkage. Each pair of words counts by its rarity in the store, less a
loss for the way in which the words match. Attributes add or subtract. Each further name in the
store makes an accidental match more likely.

    log odds = Σ log(names / names with the word) − losses + attributes − log(names)

The formula is for people with several names. Other things seldom share a name by accident, and for
a single name of a person only the other people with that name can be counted.

All weights are natural logarithms of odds: 0 changes nothing, 3 makes a match twenty times as
likely. A doubt is a reason not to act on the names alone. Attributes may outweigh doubts, never
vetoes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from worlddb.identity.match_values import Population, ResolverSettings
from worlddb.identity.name_comparison import Likeness, Pair, edits, jaro_winkler, slip_doubts
from worlddb.language.proper_names import ALSO_WORDS, PLAIN_TITLES, Name, is_given, is_name
from worlddb.language.word_forms import fold

# Weights of attributes. An equal date of birth makes one person 1,000 times as likely (7), an equal
# identifier 8,000 times (9); a slip or a missing day leaves less. Identifiers change now and then.
_BORN_SAME, _BORN_CLOSE, _BORN_YEAR = 7.0, 3.0, 2.0
_IDENTIFIER_SAME, _IDENTIFIER_CLOSE, _IDENTIFIER_OTHER = 9.0, 3.0, -1.0
_SHARED_MAX = 7.0  # a household shares suburb, street and postcode: together no more than a birth
_OTHER = -0.7  # people move: another value halves the odds
_GENDER_OTHER = -5.0  # seldom recorded wrongly
_GENDER = frozenset({"gender", "sex"})
_VALUES_ALIKE = 0.9  # Jaro-Winkler similarity of two spellings of one value
_DIGITS = re.compile(r"\d+")

# What each kind of match takes from the weight of a pair of words.
_LOSS = {
    "same": 0.0, "initial": 0.5, "variant": 1.0, "spoken": 1.5, "typo": 2.0, "nickname": 2.5,
    "cousins": 3.5, "sound": 3.5,
}  # fmt: skip
_INITIAL_MAX = 2.7  # one in fifteen names begins with a given letter
_BOTH_KNOWN = 3.0  # both spellings are words of several names here: hardly a slip
_KNOWN_MIN = 3  # "several names" for the rule above
# What is lost for another order, for each middle name more, for a part of a name, for each two
# words that differ, and for a generation or a title that differs.
_TURNED, _MORE, _PART, _DIFFER, _AROUND = 1.5, 1.0, 2.0, 5.0, 1.5
_CERTAIN = 4.6  # an equal name that nobody else is known to have: 99 in 100
_OTHERS = 2.0  # each other person with the name counts twice: not all of them are in the store
_LOG_ODDS_MAX = 30.0  # exp() stays far from overflow, and the probability is 1 in any case
# How much attributes must add to set a doubt aside.
_LIFTS_PART, _LIFTS_DIFFER = 3.0, 6.0
_PART_DOUBT = "part of a name"


@dataclass(frozen=True, slots=True)
class Corroboration:
    """The result of comparing attributes: a weight, and which agree, nearly agree, differ, forbid.

    `strong` if a date of birth or an identifier agrees.
    """

    weight: float = 0.0
    strong: bool = False
    agree: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()


NO_CORROBORATION = Corroboration()


def corroborate(
    left: Mapping[str, str], right: Mapping[str, str], settings: ResolverSettings
) -> Corroboration:
    """Return the comparison of the attributes that both have; both must be `cleaned`."""
    lists: dict[str, list[str]] = {"agree": [], "close": [], "differ": [], "forbid": []}
    weight = shared = 0.0
    for name in sorted(left.keys() & right.keys()):
        one, other = left[name], right[name]
        if name in settings.birth_attributes:
            said, amount = _compare_births(one, other)
            weight += amount
        elif name in settings.identifier_attributes:
            said, amount = _compare_identifiers(one, other)
            weight += amount
        else:
            said, amount = _compare_shared(name, one, other)
            shared += amount
        lists[said].append(name)
    total = weight + min(shared, _SHARED_MAX)
    strong = agree_strongly(strong_of(left, settings), right, settings)
    return Corroboration(total, strong, *(tuple(names) for names in lists.values()))


def cleaned(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes with normalised names and values; empty values are left out."""
    return {
        _folded_name(name): text
        for name, value in attributes.items()
        if (text := _folded_value(value))
    }


def strong_of(attributes: Mapping[str, str], settings: ResolverSettings) -> dict[str, str]:
    """Return the dates of birth and the identifiers among cleaned attributes."""
    names = settings.birth_attributes | settings.identifier_attributes
    return {name: value for name, value in attributes.items() if name in names}


def agree_strongly(
    strong: Mapping[str, str], attributes: Mapping[str, str], settings: ResolverSettings
) -> bool:
    """Return whether one of the `strong` attributes has the same value among raw `attributes`."""
    if not strong:
        return False
    for name, value in attributes.items():
        mine = strong.get(_folded_name(name))
        if mine is not None:
            theirs = _folded_value(value)
            if mine == theirs:
                return True
            if _folded_name(name) in settings.birth_attributes and theirs:
                if _compare_births(mine, theirs)[0] == "agree":
                    return True
    return False


@lru_cache(maxsize=1 << 10)
def _folded_name(name: str) -> str:
    return "_".join(name.casefold().replace("-", " ").split())


def _folded_value(value: str) -> str:
    return " ".join(fold(str(value)).split())


def _compare_births(one: str, other: str) -> tuple[str, float]:
    """Compare dates of birth: a typing error is forgiven, another date is another person."""
    if one == other:
        return "agree", _BORN_SAME
    first, second = ("".join(_DIGITS.findall(text)) for text in (one, other))
    if len(first) == len(second) == 8:
        if first == second:
            return "agree", _BORN_SAME
        day_and_month_swapped = first[:4] + first[6:] + first[4:6]
        if day_and_month_swapped == second or edits()(first, second) == 1:
            return "close", _BORN_CLOSE
    elif first and second and (first.startswith(second) or second.startswith(first)):
        return "close", _BORN_YEAR
    return "forbid", 0.0


def _compare_identifiers(one: str, other: str) -> tuple[str, float]:
    if one == other:
        return "agree", _IDENTIFIER_SAME
    if min(len(one), len(other)) >= 7 and edits()(one, other) == 1:
        return "close", _IDENTIFIER_CLOSE
    return "differ", _IDENTIFIER_OTHER


def _compare_shared(name: str, one: str, other: str) -> tuple[str, float]:
    """Compare an attribute that many people share; a longer value weighs more."""
    letters = min(len(one), len(other))
    amount = 0.7 if letters <= 3 else 2.0 if letters <= 5 else 3.0
    if one == other:
        return "agree", amount
    if letters > 3 and jaro_winkler()(one, other) >= _VALUES_ALIKE:
        return "close", amount * 0.7
    return "differ", _GENDER_OTHER if name in _GENDER else _OTHER


# -- names -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judgement:
    """The confidence that two names refer to one thing, the doubts, and the evidence."""

    confidence: float
    doubts: tuple[str, ...]
    evidence: dict[str, Any]


def judge(
    left: Name,
    right: Name,
    likeness: Likeness,
    corroboration: Corroboration,
    population: Population,
    settings: ResolverSettings,
    *,
    person: bool,
    first_alone: bool = False,
) -> Judgement:
    """Return how likely two names refer to one thing, and the doubts about it.

    `first_alone` if one name is the first name of the other, as `is_first_alone` says. The people
    who share it are then counted, and the caller checks whether another one is meant.
    """
    log_odds, by_chance = _name_odds(likeness, population, settings, person, first_alone)
    doubts, loss = _doubts(left, right, likeness, person)
    # In a large population counts decide what is a slip; in a small one the form of the word does.
    counted = person and population.names >= settings.names_at_least
    if not likeness.differs:
        doubts += slip_doubts(likeness, population, counted=counted)
    if _outweighs(corroboration, likeness):
        doubts = []
    evidence: dict[str, Any] = {}
    if first_alone:
        doubts = [doubt for doubt in doubts if doubt != _PART_DOUBT]
        evidence["first_name"] = likeness.pairs[0].left
    evidence |= {
        "by_chance": float(f"{by_chance:.2g}"),
        "words": [[pair.left, pair.right, pair.kind] for pair in likeness.pairs],
    }
    return Judgement(probability(log_odds - loss + corroboration.weight), tuple(doubts), evidence)


def is_first_alone(left: Name, right: Name, likeness: Likeness) -> bool:
    """Return whether one name is only the first name of the other: Priya, and Priya Raman.

    "Mr. James" is a last name, Florence may be a town, and María José is one first name.
    """
    short, full = sorted((left, right), key=lambda name: len(name.words))
    if len(short.words) != 1 or len(full.words) == 1 or short.titles or full.legal or full.ordered:
        return False
    first = short.words[0]
    if first != full.words[0] or likeness.kinds != {"same"} or is_given(full.words[-1]):
        return False
    return is_given(first) and first not in ALSO_WORDS


def probability(log_odds: float) -> float:
    """Return the probability of log odds."""
    return 1 / (1 + math.exp(-max(-_LOG_ODDS_MAX, min(log_odds, _LOG_ODDS_MAX))))


def _name_odds(
    likeness: Likeness,
    population: Population,
    settings: ResolverSettings,
    person: bool,
    first_alone: bool,
) -> tuple[float, float]:
    """Return the log odds from the names alone, and how many others may have such a name."""
    pairs = likeness.pairs
    if person and not first_alone and (len(pairs) > 1 or likeness.unpaired):
        weight = sum(_weight(pair, population, settings) for pair in pairs)
        log_chance = math.log(population.names + 1) - weight
        return -log_chance, math.exp(min(log_chance, _LOG_ODDS_MAX))
    loss = sum(_loss(pair, population) for pair in pairs)
    others = max(_holding(pairs[0], population)) - 1 if person and pairs else 0
    others = max(others, 0)
    return _CERTAIN - loss - math.log(1 + _OTHERS * others), float(others)


def _holding(pair: Pair, population: Population) -> tuple[int, int]:
    return population.holding(pair.left), population.holding(pair.right)


def _weight(pair: Pair, population: Population, settings: ResolverSettings) -> float:
    """Return the weight of a pair of words: the fewer names contain them, the more it is."""
    names = population.names + settings.names_at_least
    weight = math.log(names / max(*_holding(pair, population), 1))
    if pair.kind == "initial":
        weight = min(weight, _INITIAL_MAX)
    return max(weight - _loss(pair, population), 0.0)


def _loss(pair: Pair, population: Population) -> float:
    loss = _LOSS[pair.kind]
    if pair.kind in ("typo", "spoken", "sound"):
        if min(_holding(pair, population)) >= _KNOWN_MIN:
            loss += _BOTH_KNOWN
    return loss


def _outweighs(corroboration: Corroboration, likeness: Likeness) -> bool:
    """Return whether attributes outweigh the doubts about the names."""
    if likeness.differs:
        return corroboration.strong and corroboration.weight >= _LIFTS_DIFFER
    several = len(corroboration.agree) + len(corroboration.close) > 1
    return (corroboration.strong or several) and corroboration.weight >= _LIFTS_PART


def _doubts(left: Name, right: Name, likeness: Likeness, person: bool) -> tuple[list[str], float]:
    """Return the doubts about the names, and what they cost."""
    found: list[str] = []
    loss = 0.0
    if likeness.turned:
        loss += _TURNED
        if all(is_given(pair.left) for pair in likeness.pairs):
            found.append("either is a given name")
    more = likeness.unpaired
    if likeness.differs:
        loss += _DIFFER * more / 2
        found.append("words differ")
    elif more:
        # A first and a last name on one side, a middle name between them on the other.
        has_middle = person and likeness.inside and len(likeness.pairs) == 2
        loss += _MORE * more if has_middle else _PART
        if not has_middle:
            found.append(_PART_DOUBT)
    if left.generation != right.generation or left.ordinal != right.ordinal:
        loss += _AROUND
        found.append("generation unknown")
    if left.titles != right.titles and left.titles and right.titles:
        loss += _AROUND
        found.append("titles differ")
    if _may_be_no_title(left, right):
        found.append("perhaps no title")
    if likeness.kinds <= {"initial"}:
        found.append("initials alone")
    return found, loss


def _may_be_no_title(left: Name, right: Name) -> bool:
    """Return whether an apparent title on one side may be a part of the name.

    Captain America is not America; Coach Ramirez is Ramirez.
    """
    titles = left.titles | right.titles
    if (left.titles and right.titles) or not titles or titles & PLAIN_TITLES:
        return False
    return not any(map(is_name, left.words))

"""Slips: when a difference of a letter or two is a slip, and when it may be another name.

A rare spelling beside a common one is a slip; in a store too small to tell, only the slips that
seldom make another name are taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import NamedTuple

from worlddb.identity.match_values import Population
from worlddb.language.person_names import Name
from worlddb.language.word_sound import sound_code, spoken
from worlddb.resolve.known import are_cousins, are_two, is_name, is_nickname, is_variant

_COMMON_MIN = 5
_SHORT_MAX = 5
_LONG_MIN = 9
_FIRM = frozenset({"same", "variant"})
_ALIKE = ("ckq", "sz", "fv", "mn", "dt", "bp", "gj", "iy", "uvw")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_DOUBLED = re.compile(r"(.)\1+")


def _neighbours() -> dict[str, str]:
    found: dict[str, str] = {}
    for row, letters in enumerate(_ROWS):
        for column, letter in enumerate(letters):
            around = [letters[max(column - 1, 0) : column + 2]]
            if row:
                around.append(_ROWS[row - 1][column : column + 2])
            if row + 1 < len(_ROWS):
                around.append(_ROWS[row + 1][max(column - 1, 0) : column + 1])
            found[letter] = "".join(around).replace(letter, "")
    return found


_BESIDE = _neighbours()


def doubts(likeness: Likeness, population: Population, *, counted: bool) -> list[str]:
    """Return what makes it doubtful that unequal words are one.

    `counted` tells that the store holds so many names of people that their confidence, which comes
    from counts, is better than a rule.
    """
    pairs = likeness.pairs
    found = ["sounds alike"] if "sound" in likeness.kinds else []
    if "cousins" in likeness.kinds:
        found.append("two short forms")
    if len(pairs) == 1 and not (likeness.more_left or likeness.more_right):
        return [*found, "one word alone"] if _is_doubtful_alone(pairs[0]) else found
    if counted:
        return found
    weak = [
        pair
        for pair in pairs
        if pair.kind not in _FIRM and not (pair.kind == "typo" and _is_rare_form(pair, population))
    ]
    slips = [pair for pair in weak if pair.kind == "typo"]
    heard = [pair for pair in weak if pair.kind == "spoken"]
    if any(map(_begins_otherwise, slips)):
        found.append("first letters differ")
    if any(map(_is_short, slips + heard)):
        found.append("short words differ")
    if any(map(_is_unlikely, slips)):
        found.append("an unlikely slip")
    if len(weak) == len(pairs):
        found.append("no word the same")
    return found


def _is_rare_form(pair: Pair, population: Population) -> bool:
    """Tell whether many names hold one of the words and none but this the other."""
    counts = population.holding(pair.left), population.holding(pair.right)
    return min(counts) <= 1 and max(counts) >= _COMMON_MIN


def _begins_otherwise(pair: Pair) -> bool:
    """Tell whether the slip is one of the first letter: people seldom miss that one."""
    return pair.left[0] != pair.right[0] and spoken(pair.left)[0] != spoken(pair.right)[0]


def _is_short(pair: Pair) -> bool:
    """Tell whether a letter is another or too many in a short word: Reed, Reid and Red."""
    longest = max(len(pair.left), len(pair.right))
    if sorted(pair.left) == sorted(pair.right):
        return False
    return longest < _SHORT_MAX or (
        longest == _SHORT_MAX and spoken(pair.left) != spoken(pair.right)
    )


def _is_unlikely(pair: Pair) -> bool:
    """Tell whether one letter is another, or one too many, that no finger near it explains.

    Two such letters in a word that is not long are unlikely in any case.
    A letter left out is never unlikely, but of two names we do not know which has lost one: it is
    the longer that is right if it is a name we know, or if we know neither.
    """
    shorter, longer = sorted((pair.left, pair.right), key=len)
    if sorted(shorter) == sorted(longer) or spoken(shorter) == spoken(longer):
        return False
    if edits()(shorter, longer) > 1:
        return len(longer) < _LONG_MIN - 1
    at = next(
        (i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter)
    )
    if len(shorter) == len(longer):
        return not _are_near(shorter[at], longer[at])
    if is_name(longer) or not is_name(shorter):
        return False
    beside = longer[max(at - 1, 0) : at] + longer[at + 1 : at + 2]
    return not any(letter == longer[at] or _are_near(letter, longer[at]) for letter in beside)


def _are_near(one: str, other: str) -> bool:
    """Tell whether two letters lie side by side on the keyboard or sound much alike."""
    return one in _BESIDE.get(other, "") or any(one in group and other in group for group in _ALIKE)


def _is_doubtful_alone(pair: Pair) -> bool:
    """Tell whether a name of one word that is not written the same may be another name."""
    if pair.kind in ("same", "variant", "spoken"):
        return False
    if pair.kind != "typo":
        return True
    one, other = pair.left, pair.right
    if len(one) != len(other) and spoken(one) == spoken(other):
        return False
    return not _is_inner_slip(one, other)


def _is_inner_slip(one: str, other: str) -> bool:
    """Tell whether a letter doubled, swapped, or in a long word too many or too few explains it.

    Another letter in its place does not: that is how Colombia and Columbia differ.
    """
    shorter, longer = sorted((one, other), key=len)
    if shorter[0] != longer[0] or shorter[-1] != longer[-1] or len(shorter) < _SHORT_MAX:
        return False
    if _DOUBLED.sub(r"\1", one) == _DOUBLED.sub(r"\1", other):
        return True
    if len(longer) == len(shorter):
        return sorted(shorter) == sorted(longer)
    return len(longer) >= _LONG_MIN and any(
        longer[:i] + longer[i + 1 :] == shorter for i in range(1, len(longer) - 1)
    )


# Compare: two names word by word, in any order.
#
# Each word of one name is paired with the word of the other that it is most like; a pair says in
# which way the two are one. Words that find no partner are left over on their side.
#
# C1  Comparing is symmetric: the same pairs, the same likeness, whichever name comes first.


_CACHE_MAX = 1 << 16
# How alike a pair is that no string distance tells. `sound` is what is left when letters differ.
_LIKENESS = {
    "variant": 0.97, "nickname": 0.95, "cousins": 0.93, "spoken": 0.94, "initial": 0.93,
}  # fmt: skip
_SOUND = 0.85
_CODE_MIN = 3
# Greek, Cyrillic and Latin letters: scripts where a letter more or less may be a slip.
_ALPHABETS_END = "\u0590"
_SHORT_MAX_COMPARE = 3
_VOWEL_MAX = 7
_VOWELS = frozenset("aeiouy")
_ENDINGS = frozenset({"s", "n", "an", "ian", "er", "ers", "ish", "ese", "ic", "ist", "ism"})
_SWAPPED = 0.9
_JOINED_MIN = 0.95


class Pair(NamedTuple):
    """A word of each name, and in which way they are one."""

    left: str
    right: str
    kind: str
    score: float


class Likeness(NamedTuple):
    """How two names are alike.

    `more_left` and `more_right` are the words without a partner; `inside` tells that they stand
    between others, as middle names do. `turned` tells that the order of the pairs differs.
    """

    score: float
    pairs: tuple[Pair, ...]
    more_left: tuple[str, ...]
    more_right: tuple[str, ...]
    inside: bool
    turned: bool

    @property
    def kinds(self) -> set[str]:
        """The kinds of the pairs."""
        return {pair.kind for pair in self.pairs}

    @property
    def differs(self) -> bool:
        """Whether each name has a word that the other lacks."""
        return bool(self.more_left and self.more_right)


def compare(left: Name, right: Name, word_jaro_winkler: float) -> Likeness:
    """Return how alike the words of two names are."""
    ones, others = left.words, right.words
    found = _aligned(ones, others, word_jaro_winkler)
    if len(ones) == len(others) or not (found.more_left or found.more_right):
        return found
    # A space too many, or one too few: "Mac Gowan", "OpenAI".
    flip = len(ones) < len(others)
    for joined in _written_together(others if flip else ones):
        again = _aligned(*((ones, joined) if flip else (joined, others)), word_jaro_winkler)
        if _unpaired(again) < _unpaired(found) and again.score >= _JOINED_MIN:
            # A letter by itself is an initial, unless the words are then the same.
            if again.score == 1 or not any(len(word) == 1 for word in ones + others):
                found = again
    return found


def look_alike(left: Name, right: Name, likeness: Likeness, word_jaro_winkler: float) -> bool:
    """Tell whether letters have a say in it: words that pair, or nearly, or a script without slips.

    Where they do not, two names may still be other words for one thing.
    """
    if likeness.pairs or max(left.text + right.text) >= _ALPHABETS_END:
        return True
    near = jaro_winkler()
    return any(near(one, other) >= word_jaro_winkler for one in left.words for other in right.words)


def _unpaired(found: Likeness) -> int:
    return len(found.more_left) + len(found.more_right)


def _written_together(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the words with each two neighbours in turn written together."""
    return [(*words[:i], words[i] + words[i + 1], *words[i + 2 :]) for i in range(len(words) - 1)]


def _aligned(left: tuple[str, ...], right: tuple[str, ...], least: float) -> Likeness:
    if left == right:
        pairs = tuple([Pair(word, word, "same", 1.0) for word in left])
        return Likeness(1.0 if pairs else 0.0, pairs, (), (), True, False)
    taken: dict[int, tuple[int, Pair]] = {}
    used: set[int] = set()
    for i, word in enumerate(left):
        if word in right:
            j = right.index(word)
            if j not in used:
                taken[i] = (j, Pair(word, word, "same", 1.0))
                used.add(j)
    if len(taken) < len(left) and len(used) < len(right):
        _pair_others(left, right, least, taken, used)
    if not taken:
        return Likeness(0.0, (), left, right, False, False)
    paired = [taken[i] for i in sorted(taken)]
    order = [j for j, _ in paired]
    pairs = tuple([pair for _, pair in paired])
    more_left = tuple([word for i, word in enumerate(left) if i not in taken])
    more_right = tuple([word for j, word in enumerate(right) if j not in used])
    inside = 0 in taken and len(left) - 1 in taken and 0 in used and len(right) - 1 in used
    # Words on one side only make it a part of a name, not a name less alike.
    differ = (*more_left, *more_right) if more_left and more_right else ()
    score = _score(pairs, differ)
    return Likeness(score, pairs, more_left, more_right, inside, order != sorted(order))


def _pair_others(
    left: tuple[str, ...],
    right: tuple[str, ...],
    least: float,
    taken: dict[int, tuple[int, Pair]],
    used: set[int],
) -> None:
    """Pair the words that are not equal, the likest first."""
    ranked = []
    for i, one in enumerate(left):
        if i not in taken:
            for j, other in enumerate(right):
                if j not in used and (pair := pair_of(one, other, least)) is not None:
                    ranked.append((-pair.score, i + j, i, j, pair))
    ranked.sort(key=itemgetter(0, 1, 2))
    for _, _, i, j, pair in ranked:
        if i not in taken and j not in used:
            taken[i] = (j, pair)
            used.add(j)


def _score(pairs: Sequence[Pair], differ: Sequence[str]) -> float:
    """Return the mean likeness of the words, each counting by its letters."""
    weight = total = 0.0
    for pair in pairs:
        letters = len(pair.left) + len(pair.right)
        weight += letters
        total += letters * pair.score
    return total / (weight + sum(map(len, differ)))


def pair_of(one: str, other: str, least: float) -> Pair | None:
    """Return in which way two words are one, if they are."""
    if one == other:
        return Pair(one, other, "same", 1.0)
    first, second = (one, other) if one <= other else (other, one)
    found = _way(first, second, least)
    return None if found is None else Pair(one, other, *found)


@lru_cache(maxsize=_CACHE_MAX)
def _way(one: str, other: str, least: float) -> tuple[str, float] | None:
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) == 1:
        return ("initial", _LIKENESS["initial"]) if longer[0] == shorter else None
    if is_variant(one, other):
        return "variant", _LIKENESS["variant"]
    if is_nickname(one, other):
        return "nickname", _LIKENESS["nickname"]
    sounds_same = spoken(one) == spoken(other)
    if are_cousins(one, other) and not sounds_same:
        return "cousins", _LIKENESS["cousins"]
    if are_two(one, other) or max(one + other) >= _ALPHABETS_END:
        return None
    if changes_gender(shorter, longer) or _is_derived(shorter, longer):
        return None
    likeness = jaro_winkler()(one, other)
    if sorted(one) == sorted(other):
        likeness = max(likeness, _SWAPPED)
    if likeness >= least and _is_slip(shorter, longer):
        return "typo", max(likeness, _LIKENESS["spoken"]) if sounds_same else likeness
    if sounds_same:
        return "spoken", _LIKENESS["spoken"]
    code = sound_code(one)
    if len(code) >= _CODE_MIN and code == sound_code(other):
        return "sound", min(likeness, _SOUND)
    return None


def _is_slip(shorter: str, longer: str) -> bool:
    """Tell whether few enough letters differ for a slip of the finger."""
    count = edits()(shorter, longer)
    if len(longer) <= _SHORT_MAX_COMPARE:
        return count == 1 and sorted(shorter) == sorted(longer)
    if len(shorter) == len(longer) <= _VOWEL_MAX and count == 1:
        # Another vowel in a short word is another word: Zhang and Zheng, Hansen and Hanson.
        changed = [pair for pair in zip(shorter, longer, strict=True) if pair[0] != pair[1]]
        return len(changed) != 1 or not set(changed[0]) <= _VOWELS
    return count <= 1 + (len(longer) >= 6) + (len(longer) >= 10)


def changes_gender(shorter: str, longer: str) -> bool:
    """Tell whether words differ as a man's and a woman's name do: Paul, Paula; Mario, Maria."""
    if len(shorter) < _SHORT_MAX_COMPARE:
        return False
    if longer.startswith(shorter):
        return longer[len(shorter) :] in ("a", "e", "ia", "ina", "ine", "le", "la", "lle", "ette")
    if len(shorter) == len(longer) and shorter[:-1] == longer[:-1]:
        return {shorter[-1], longer[-1]} <= set("aeo")
    return {shorter[-2:], longer[-2:]} == {"er", "ra"} and shorter[:-2] == longer[:-2]


def _is_derived(shorter: str, longer: str) -> bool:
    """Tell whether one word is made from the other: York and Yorker, Georgia and Georgian."""
    ending = longer[len(shorter) :] if longer.startswith(shorter) else ""
    return ending != shorter[-1] and ending in _ENDINGS


@cache
def jaro_winkler() -> Callable[[str, str], float]:
    """Return the similarity; its library is loaded when it is first needed."""
    from rapidfuzz.distance import JaroWinkler

    return JaroWinkler.similarity


@cache
def edits() -> Callable[[str, str], int]:
    """Return the distance in letters put in, left out, exchanged or swapped with a neighbour."""
    from rapidfuzz.distance import OSA

    return OSA.distance

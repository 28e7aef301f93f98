"""Compare: two names word by word, in any order.

Each word of one name is paired with the word of the other that it is most like; a pair says in
which way the two are one. Words that find no partner are left over on their side.

C1  Comparing is symmetric: the same pairs, the same likeness, whichever name comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import NamedTuple

from worlddb.resolve.known import are_cousins, are_two, is_nickname, is_variant
from worlddb.resolve.names import Name
from worlddb.resolve.sound import sound_code, spoken

_CACHE_MAX = 1 << 16
# How alike a pair is that no string distance tells. `sound` is what is left when letters differ.
_LIKENESS = {
    "variant": 0.97, "nickname": 0.95, "cousins": 0.93, "spoken": 0.94, "initial": 0.93,
}  # fmt: skip
_SOUND = 0.85
_CODE_MIN = 3
# Greek, Cyrillic and Latin letters: scripts where a letter more or less may be a slip.
_ALPHABETS_END = "\u0590"
_SHORT_MAX = 3
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
    if len(longer) <= _SHORT_MAX:
        return count == 1 and sorted(shorter) == sorted(longer)
    if len(shorter) == len(longer) <= _VOWEL_MAX and count == 1:
        # Another vowel in a short word is another word: Zhang and Zheng, Hansen and Hanson.
        changed = [pair for pair in zip(shorter, longer, strict=True) if pair[0] != pair[1]]
        return len(changed) != 1 or not set(changed[0]) <= _VOWELS
    return count <= 1 + (len(longer) >= 6) + (len(longer) >= 10)


def changes_gender(shorter: str, longer: str) -> bool:
    """Tell whether words differ as a man's and a woman's name do: Paul, Paula; Mario, Maria."""
    if len(shorter) < _SHORT_MAX:
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

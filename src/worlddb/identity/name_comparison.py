"""Comparison of two names, word by word and in any order.

Each word of one name is paired with the most similar word of the other name. The kind of a pair
says why both words count as one. Words without a partner are left over on their side.

C1  The comparison is symmetric: swapping the names gives the same pairs and the same score.

`slip_doubts` decides whether a difference of a letter or two is a slip or another name. A rare
spelling beside a common one is a slip. In a store that is too small to count, only slips that
seldom produce another name are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from worlddb.identity.match_values import Population
from worlddb.language.proper_names import (
    Name,
    are_cousins,
    are_two,
    formal_names,
    is_name,
    is_nickname,
    is_variant,
    known,
    sound_code,
    spoken,
)

WORD_PAIRS_CACHED = WORDS_CACHED = 1 << 16  # bounds the memory of a long-lived process
# Similarity of a pair that no string distance can measure.
KIND_SCORES = {
    "variant": 0.97, "nickname": 0.95, "cousins": 0.93, "spoken": 0.94, "initial": 0.93,
}  # fmt: skip
INITIAL = ("initial", KIND_SCORES["initial"])
SOUND_SCORE_MAX = 0.85  # below every other kind: equal sound is the weakest evidence
SWAPPED_SCORE_MIN = 0.9  # swapped letters are the commonest slip of the finger
JOINED_SCORE_MIN = 0.95  # words are joined only if the joined word is nearly the same
SOUND_CODE_MIN = 3  # a shorter sound code fits too many words
TINY_WORD_MAX = 3  # with so few letters, another letter makes another word
VOWEL_WORD_MAX = 7  # up to this length, another vowel makes another word
ALPHABETS_END = "\u0590"
"""Greek, Cyrillic and Latin letters lie before this one: the scripts in which letters can slip."""
_VOWELS = frozenset("aeiouy")
_ENDINGS = frozenset({"s", "n", "an", "ian", "er", "ers", "ish", "ese", "ic", "ist", "ism"})

COMMON_MIN = 5  # a word of so many names is an established spelling
SHORT_WORD_MAX = 5  # up to this length, one letter often makes another name: Reed, Reid
LONG_WORD_MIN = 9  # from this length on, a letter more or less seldom makes another name
_FIRM = frozenset({"same", "variant"})
_SIMILAR_LETTERS = ("ckq", "sz", "fv", "mn", "dt", "bp", "gj", "iy", "uvw")
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_DOUBLED = re.compile(r"(.)\1+")


class Pair(NamedTuple):
    """A word of each name, and the way in which they are one."""

    left: str
    right: str
    kind: str
    score: float


class Likeness(NamedTuple):
    """How two names are alike.

    `more_left` and `more_right` are the words without a partner. `inside`: those words stand
    between others, as middle names do. `turned`: the order of the pairs differs.
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

    @property
    def unequal(self) -> tuple[list[str], list[str]]:
        """The words of each name without an equal partner."""
        pairs = [pair for pair in self.pairs if pair.left != pair.right]
        left = [*self.more_left, *(pair.left for pair in pairs)]
        return left, [*self.more_right, *(pair.right for pair in pairs)]

    @property
    def unpaired(self) -> int:
        """How many words have no partner."""
        return len(self.more_left) + len(self.more_right)


def compare(left: Name, right: Name, word_jaro_winkler: float) -> Likeness:
    """Return how alike the words of two names are."""
    ones, others = left.words, right.words
    found = _aligned(ones, others, word_jaro_winkler)
    if len(ones) == len(others) or not found.unpaired:
        return found
    # A space too many, or one too few: "Mac Gowan", "OpenAI".
    flip = len(ones) < len(others)
    words = others if flip else ones
    for i in range(len(words) - 1):
        joined = (*words[:i], words[i] + words[i + 1], *words[i + 2 :])
        again = _aligned(*((ones, joined) if flip else (joined, others)), word_jaro_winkler)
        if again.unpaired < found.unpaired and again.score >= JOINED_SCORE_MIN:
            # A single letter is an initial, unless joining it makes the words the same.
            if again.score == 1 or not any(len(word) == 1 for word in ones + others):
                found = again
    return found


def may_fit(left: Name, right: Name, word_jaro_winkler: float) -> bool:
    """Tell, at a fraction of the cost, whether `compare` may leave no word over on one side.

    False is certain: the name with fewer words has a word that pairs with nothing in the other.
    """
    ones, others = left.words, right.words
    shorter, longer = (ones, others) if len(ones) <= len(others) else (others, ones)
    for word in shorter:
        if word in longer or _has_partner(word, longer, word_jaro_winkler):
            continue
        if len(shorter) == len(longer):
            return False
        joined = [one + other for one, other in pairwise(longer)]
        if word not in joined and not _has_partner(word, joined, word_jaro_winkler):
            return False
    return True


def _has_partner(word: str, others: Iterable[str], least: float) -> bool:
    if len(word) == 1:
        return any(other[0] == word for other in others)
    near = jaro_winkler()
    listed, said, code, letters = _form(word)
    for other in others:
        if len(other) == 1:
            if other == word[0]:
                return True
            continue
        found = _form(other)
        # Most pairs of words are alike in nothing.
        if (
            listed
            or found[0]
            or said == found[1]
            or code == found[2]
            or letters == found[3]
            or near(word, other) >= least
        ) and _kind_of(word, other, least) is not None:
            return True
    return False


def look_alike(left: Name, right: Name, likeness: Likeness, word_jaro_winkler: float) -> bool:
    """Return whether letters decide: some words pair or nearly pair, or the script has no slips.

    Otherwise the two names may still be different words for one thing.
    """
    if likeness.pairs or max(left.text + right.text) >= ALPHABETS_END:
        return True
    near = jaro_winkler()
    return any(near(one, other) >= word_jaro_winkler for one in left.words for other in right.words)


def _aligned(left: tuple[str, ...], right: tuple[str, ...], least: float) -> Likeness:
    """Pair the words of two names: equal words first, then the most similar ones."""
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
        _pair_unequal(left, right, least, taken, used)
    if not taken:
        return Likeness(0.0, (), left, right, False, False)
    paired = [taken[i] for i in sorted(taken)]
    order = [j for j, _ in paired]
    pairs = tuple([pair for _, pair in paired])
    more_left = tuple([word for i, word in enumerate(left) if i not in taken])
    more_right = tuple([word for j, word in enumerate(right) if j not in used])
    inside = 0 in taken and len(left) - 1 in taken and 0 in used and len(right) - 1 in used
    # Words left over on one side only make it a part of a name; they do not lower the score.
    differ = (*more_left, *more_right) if more_left and more_right else ()
    score = _score(pairs, differ)
    return Likeness(score, pairs, more_left, more_right, inside, order != sorted(order))


def _pair_unequal(
    left: tuple[str, ...],
    right: tuple[str, ...],
    least: float,
    taken: dict[int, tuple[int, Pair]],
    used: set[int],
) -> None:
    """Pair the words that are not equal, the most similar first."""
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
    """Return the mean score of the pairs, weighted by letters."""
    weight = total = 0.0
    for pair in pairs:
        letters = len(pair.left) + len(pair.right)
        weight += letters
        total += letters * pair.score
    return total / (weight + sum(map(len, differ)))


def pair_of(one: str, other: str, least: float) -> Pair | None:
    """Return the pair of two words, or None if they are different words."""
    if one == other:
        return Pair(one, other, "same", 1.0)
    found = _kind_of(one, other, least)
    return None if found is None else Pair(one, other, *found)


WordForm = tuple[bool, str, str, str]
"""What of a word is compared: whether it has variants or full names, its sounds, its letters."""


@lru_cache(maxsize=WORDS_CACHED)
def _form(word: str) -> WordForm:
    listed = word in known().variants or bool(formal_names(word))
    return listed, spoken(word), sound_code(word), "".join(sorted(word))


def _kind_of(one: str, other: str, least: float) -> tuple[str, float] | None:
    """Return the kind and the score of a pair of different words; None if they do not pair."""
    if len(one) == 1 or len(other) == 1:
        return INITIAL if one[0] == other[0] else None
    return (
        _kind_and_score(one, other, least) if one <= other else _kind_and_score(other, one, least)
    )


@lru_cache(maxsize=WORD_PAIRS_CACHED)
def _kind_and_score(one: str, other: str, least: float) -> tuple[str, float] | None:
    shorter, longer = sorted((one, other), key=len)
    if is_variant(one, other):
        return "variant", KIND_SCORES["variant"]
    if is_nickname(one, other):
        return "nickname", KIND_SCORES["nickname"]
    sounds_same = spoken(one) == spoken(other)
    likeness = jaro_winkler()(one, other)
    code = sound_code(one)
    sound = len(code) >= SOUND_CODE_MIN and code == sound_code(other)
    if likeness < least and not sounds_same and not sound and sorted(one) != sorted(other):
        return ("cousins", KIND_SCORES["cousins"]) if are_cousins(one, other) else None
    if are_cousins(one, other) and not sounds_same:
        return "cousins", KIND_SCORES["cousins"]
    if are_two(one, other) or max(one + other) >= ALPHABETS_END:
        return None
    if changes_gender(shorter, longer) or _is_derived(shorter, longer):
        return None
    if sorted(one) == sorted(other):
        likeness = max(likeness, SWAPPED_SCORE_MIN)
    if likeness >= least and _is_slip(shorter, longer):
        return "typo", max(likeness, KIND_SCORES["spoken"]) if sounds_same else likeness
    if sounds_same:
        return "spoken", KIND_SCORES["spoken"]
    if sound:
        return "sound", min(likeness, SOUND_SCORE_MAX)
    return None


def _is_slip(shorter: str, longer: str) -> bool:
    """Return whether few enough letters differ for a typing error."""
    count = edits()(shorter, longer)
    if len(longer) <= TINY_WORD_MAX:
        return count == 1 and sorted(shorter) == sorted(longer)
    if len(shorter) == len(longer) <= VOWEL_WORD_MAX and count == 1:
        # Another vowel in a short word is another word: Zhang and Zheng, Hansen and Hanson.
        changed = [pair for pair in zip(shorter, longer, strict=True) if pair[0] != pair[1]]
        return len(changed) != 1 or not set(changed[0]) <= _VOWELS
    return count <= 1 + (len(longer) >= 6) + (len(longer) >= 10)


def changes_gender(shorter: str, longer: str) -> bool:
    """Return whether words differ as a man's and a woman's name do: Paul, Paula; Mario, Maria."""
    if len(shorter) < TINY_WORD_MAX:
        return False
    if longer.startswith(shorter):
        return longer[len(shorter) :] in ("a", "e", "ia", "ina", "ine", "le", "la", "lle", "ette")
    if len(shorter) == len(longer) and shorter[:-1] == longer[:-1]:
        return {shorter[-1], longer[-1]} <= set("aeo")
    return {shorter[-2:], longer[-2:]} == {"er", "ra"} and shorter[:-2] == longer[:-2]


def _is_derived(shorter: str, longer: str) -> bool:
    """Return whether one word is derived from the other: York and Yorker, Georgia and Georgian."""
    ending = longer[len(shorter) :] if longer.startswith(shorter) else ""
    return ending != shorter[-1] and ending in _ENDINGS


@cache
def jaro_winkler() -> Callable[[str, str], float]:
    """Return the Jaro-Winkler similarity; its library is imported on first use."""
    from rapidfuzz.distance import JaroWinkler

    return JaroWinkler.similarity


@cache
def edits() -> Callable[[str, str], int]:
    """Return the edit distance, in which two swapped neighbours count as one edit."""
    from rapidfuzz.distance import OSA

    return OSA.distance


# -- doubts about slips ----------------------------------------------------------------------------


def _keyboard_neighbours() -> dict[str, str]:
    found: dict[str, str] = {}
    for row, letters in enumerate(_KEYBOARD):
        for column, letter in enumerate(letters):
            around = [letters[max(column - 1, 0) : column + 2]]
            if row:
                around.append(_KEYBOARD[row - 1][column : column + 2])
            if row + 1 < len(_KEYBOARD):
                around.append(_KEYBOARD[row + 1][max(column - 1, 0) : column + 1])
            found[letter] = "".join(around).replace(letter, "")
    return found


_BESIDE = _keyboard_neighbours()


def slip_doubts(likeness: Likeness, population: Population, *, counted: bool) -> list[str]:
    """Return the reasons to doubt that unequal words are one.

    `counted`: the store holds enough names of people for their counts to decide instead of rules.
    """
    pairs = likeness.pairs
    found = ["sounds alike"] if "sound" in likeness.kinds else []
    if "cousins" in likeness.kinds:
        found.append("two short forms")
    if len(pairs) == 1 and not likeness.unpaired:
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
    """Return whether one spelling is common and the other occurs at most once."""
    counts = population.holding(pair.left), population.holding(pair.right)
    return min(counts) <= 1 and max(counts) >= COMMON_MIN


def _begins_otherwise(pair: Pair) -> bool:
    """Return whether the first letters differ: people seldom get the first letter wrong."""
    return pair.left[0] != pair.right[0] and spoken(pair.left)[0] != spoken(pair.right)[0]


def _is_short(pair: Pair) -> bool:
    """Return whether a letter differs in a short word: Reed, Reid and Red."""
    longest = max(len(pair.left), len(pair.right))
    if sorted(pair.left) == sorted(pair.right):
        return False
    return longest < SHORT_WORD_MAX or (
        longest == SHORT_WORD_MAX and spoken(pair.left) != spoken(pair.right)
    )


def _is_unlikely(pair: Pair) -> bool:
    """Return whether no neighbouring key explains a changed or an additional letter.

    Two wrong letters in a word that is not long are always unlikely. A missing letter never is. If
    the shorter word is the only known name of the two, the longer one has a letter too many;
    otherwise the shorter one is taken to miss a letter.
    """
    shorter, longer = sorted((pair.left, pair.right), key=len)
    if sorted(shorter) == sorted(longer) or spoken(shorter) == spoken(longer):
        return False
    if edits()(shorter, longer) > 1:
        return len(longer) < LONG_WORD_MIN - 1
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
    """Return whether two letters are neighbours on the keyboard or sound much alike."""
    return one in _BESIDE.get(other, "") or any(
        one in group and other in group for group in _SIMILAR_LETTERS
    )


def _is_doubtful_alone(pair: Pair) -> bool:
    """Return whether two different names of one word may be two names."""
    if pair.kind in ("same", "variant", "spoken"):
        return False
    if pair.kind != "typo":
        return True
    one, other = pair.left, pair.right
    if len(one) != len(other) and spoken(one) == spoken(other):
        return False
    return not _is_inner_slip(one, other)


def _is_inner_slip(one: str, other: str) -> bool:
    """Return whether a doubled or swapped letter explains it, or in a long word one more or less.

    An exchanged letter does not: Colombia and Columbia are two names.
    """
    shorter, longer = sorted((one, other), key=len)
    if shorter[0] != longer[0] or shorter[-1] != longer[-1] or len(shorter) < SHORT_WORD_MAX:
        return False
    if _DOUBLED.sub(r"\1", one) == _DOUBLED.sub(r"\1", other):
        return True
    if len(longer) == len(shorter):
        return sorted(shorter) == sorted(longer)
    return len(longer) >= LONG_WORD_MIN and any(
        longer[:i] + longer[i + 1 :] == shorter for i in range(1, len(longer) - 1)
    )

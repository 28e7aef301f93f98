"""Slips: when a difference of a letter or two is a slip, and when it may be another name.

A rare spelling beside a common one is a slip; in a store too small to tell, only the slips that
seldom make another name are taken for one.
"""

from __future__ import annotations

import re

from worlddb.resolve.compare import Likeness, Pair, edits
from worlddb.resolve.known import is_name
from worlddb.resolve.sound import spoken
from worlddb.resolve.values import Population

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

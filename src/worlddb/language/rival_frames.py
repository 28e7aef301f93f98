r"""Rival frames: statements with the same words but another value, of which one can be true.

    "The alarm code is 2204."      the same frame
    "The alarm code is 7719 now."  and another value

Two different values prove little: "I ran 5 km" and "I ran 7 km" can both be true. A frame with one
value at a time states a property of one holder. Other frames tell an event, which can happen again,
or an item of a list. Which one it is, is learned: the weights of the signs of a frame are fitted to
hand-written frames in 27 languages (`python -m bench.conflicts --write`). Many signs mean the same
in every language: the place of the value, its kind, the classes of the words beside it. Words and
their endings are signs, too, so more is known of those languages. A frame without known signs is
not a rival of any other, since a false link is worse than a missed one.

Only closed classes of words are known by list (`statement_words.txt`, `single_values.txt`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from importlib.resources import files
from math import fsum
from typing import NamedTuple

from worlddb.language.statement import (
    COPULAS,
    DEFINITE,
    DEICTIC,
    OPEN,
    SELF,
    SPACELESS,
    Statement,
    is_number,
    is_topical,
    word_sequence,
)
from worlddb.language.word_forms import fold, sections, stem, words_of

VALUE_WORDS_MAX = 6  # a longer span is a sentence, not a value
FRAMES_KEPT = 4_096  # frames cached; bounds the memory
COUNT_MAX = 4  # more words before a value tell no more
ENDINGS = 2, 3  # characters at the end of a word
OPENING = 4  # characters at the start of a longer word
SIGN_RUNS = 1, 2, 3  # characters beside a value, in a script without spaces

_listed = partial(words_of, "language", "single_values.txt")


def _tokens(section: str) -> frozenset[str]:
    return frozenset(" ".join(word_sequence(fold(word))) for word in _listed(section))


class _Nouns:
    """Words of one section, found in a sequence of words; a star stands for any ending."""

    def __init__(self, section: str) -> None:
        found = _listed(section)
        starred = {word for word in found if "*" in word}
        plain = {word for word in found - starred if not SPACELESS.search(word)}
        self._signs = frozenset(fold(word) for word in found if SPACELESS.search(word))
        self._words = frozenset(" ".join(word_sequence(fold(word))) for word in plain)
        self._phrases = tuple(sorted(word for word in self._words if " " in word))
        self._starts = tuple(fold(word[:-1]) for word in starred if word.endswith("*"))
        self._ends = tuple(fold(word[1:]) for word in starred if word.startswith("*"))

    def are_in(self, words: Sequence[str]) -> bool:
        """Return whether any of the words, or several in a row, is listed."""
        text = f" {' '.join(words)} "
        return any(
            word in self._words or word.startswith(self._starts) or word.endswith(self._ends)
            for word in words
        ) or any(f" {phrase} " in text for phrase in self._phrases)

    def are_in_signs(self, text: str) -> bool:
        """Return whether a text of a script without spaces has any of them."""
        return any(word in text for word in self._signs)


_NOUNS, _PREDICATES = _Nouns("noun"), _Nouns("predicate")
_OF = frozenset({"of", "de", "del", "di", "da", "do", "von", "van", "des", "du", "della"})
_IS = _tokens("is")
_CLASSES = {
    **{name: _tokens(name) for name in ("are", "was", "last", "they", "once", "lasting", "day")},
    "is": _IS,
    "the": DEFINITE,
    "a": OPEN,
    "self": SELF,
    "deictic": DEICTIC,
    "of": _OF,
}
_PAST = frozenset(
    form
    for row in sections("language", "common_words.txt")["irregular"]
    for form in row[1:]
    if not form.endswith("s")
)
_SIGNS_OWNED = re.compile("[的の]")
_CLOCK = re.compile(r"\d[:.]\d\d$")
_CODE_DIGITS = re.compile(r"\d{4,}")


_NUMBERS = frozenset({"long number", "clock", "number", "numeral"})
"""The kinds of values that are numbers as a whole."""


class RivalFrame(NamedTuple):
    """The common words of two statements before and after their values, and what these are.

    `kind` is that of both values, `group` its class (number, name or word), `endings` are the
    common endings. The values themselves are left out: the judgement on many pairs is the same.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    kind: str
    group: str
    endings: tuple[str, ...]
    is_spaceless: bool
    is_change: bool


def is_rival(old: Statement, new: Statement) -> bool:
    """Return whether two statements have one frame and two values, of which one can be true."""
    frame = frame_of(old, new) if new.is_so else None
    return frame is not None and _takes_one(frame)


def frame_of(old: Statement, new: Statement) -> RivalFrame | None:
    """Return the frame of two statements; None if they have no common words."""
    one, other = old.words, new.words
    least, most = sorted((len(one), len(other)))
    if one == other or most - least > VALUE_WORDS_MAX:
        return None
    prefix = suffix = 0
    for word, same in zip(one, other, strict=False):
        if word != same:
            break
        prefix += 1
    for word, same in zip(reversed(one[prefix:]), reversed(other[prefix:]), strict=False):
        if word != same:
            break
        suffix += 1
    if most - prefix - suffix > VALUE_WORDS_MAX or least == prefix + suffix:
        return None  # Too long, or one of them has no value.
    # With two names, the whole names are the values: Charles Dickens, Charles Darwin. A counted
    # unit is not part of a number: 40 Euro.
    both = old.named & new.named
    counts = is_number(one[prefix]), is_number(one[len(one) - suffix - 1])
    while prefix and not counts[0] and one[prefix - 1] in both:
        prefix -= 1
    while suffix and not counts[1] and one[len(one) - suffix] in both:
        suffix -= 1
    values = one[prefix : len(one) - suffix], other[prefix : len(other) - suffix]
    if max(map(len, values)) > VALUE_WORDS_MAX:
        return None
    if not (COPULAS.isdisjoint(values[0]) and COPULAS.isdisjoint(values[1])):
        return None
    named = values[0][0] in old.named and values[1][0] in new.named
    kinds = _kind_of(values[0], named), _kind_of(values[1], named)
    kind = kinds[0] if kinds[0] == kinds[1] else "mixed"
    if kinds[0] in _NUMBERS and kinds[1] in _NUMBERS:
        group = "number"
    else:
        group = "name" if kind == "name" else "word"
    before, after = one[:prefix], one[len(one) - suffix :]
    spaceless = not old.news.isascii() and SPACELESS.search("".join(one)) is not None
    last, other_last = values[0][-1], values[1][-1]
    endings: tuple[str, ...] = ()
    if last[-min(ENDINGS) :] == other_last[-min(ENDINGS) :] and not spaceless:
        endings = tuple(_ending_of_values(last, other_last))
    return RivalFrame(before, after, kind, group, endings, spaceless, new.is_change)


@lru_cache(FRAMES_KEPT)
def _takes_one(frame: RivalFrame) -> bool:
    weights, enough = _model()
    # An exact sum: the order of a set differs from process to process.
    return fsum(weights.get(sign, 0.0) for sign in frame_signs(frame)) >= enough


@cache
def _model() -> tuple[dict[str, float], float]:
    """Return the weight of each sign, and the sum from which a frame takes one value."""
    path = files("worlddb.language").joinpath("rival_frames.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    return found["weights"], found["enough"]


# -- signs -----------------------------------------------------------------------------------------


def frame_signs(frame: RivalFrame) -> frozenset[str]:
    """Return the signs of a frame; those joined with `|` hold for one kind of value."""
    before, after, group = frame.before, frame.after, frame.group
    found = [f"place {'…' if before else ''}_{'…' if after else ''}"]
    if frame.is_spaceless:
        found += ["no spaces", *_places_of_signs("".join(before), "".join(after))]
        alone = _parts_of_signs("".join(before), "".join(after))
    else:
        found += _classes_of(before, after)
        found += _structure_of(frame, is_number=group == "number")
        alone = (*_words_of(before, after), *frame.endings)
    return frozenset(
        ("all", f"kind {frame.kind}", *found, *(f"{it}|{group}" for it in found), *alone)
    )


@lru_cache(FRAMES_KEPT)
def _kind_of(value: tuple[str, ...], is_name: bool) -> str:
    if all(is_number(word) or word.isnumeric() for word in value):
        if len(value) == 1 and _CODE_DIGITS.fullmatch(value[0]):
            return "long number"
        if _CLOCK.search(value[-1]):
            return "clock"
        has_digit = any(sign.isdigit() for word in value for sign in word)
        return "number" if has_digit else "numeral"
    if any(sign.isdigit() for word in value for sign in word):
        return "code"
    if value[0] in OPEN:
        return "open"
    return "name" if is_name else "word"


def _classes_of(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the classes of the words beside the value, at both ends, and anywhere."""
    beside = {"first": before[:1], "left": before[-1:], "second left": before[-2:-1]}
    beside |= {"right": after[:1], "second right": after[1:2], "last": after[-1:]}
    for place, words in beside.items():
        for word in words:
            yield from (f"{place} is {name}" for name in _classes(word) or ("open class",))
    for side, words in (("before", before), ("after", after)):
        yield from {f"{name} {side}" for word in words for name in _classes(word)}


@lru_cache(FRAMES_KEPT)
def _classes(word: str) -> tuple[str, ...]:
    return tuple(name for name, words in _CLASSES.items() if word in words)


def _structure_of(frame: RivalFrame, *, is_number: bool) -> Iterator[str]:
    before, after = frame.before, frame.after
    yield f"{min(COUNT_MAX, len(before))} before"
    yield f"{min(COUNT_MAX, len(after))} after"
    yield f"{min(COUNT_MAX, sum(map(is_topical, before)))} topical before"
    is_listed = bool(before) and _NOUNS.are_in(_head(before))
    is_beside = before[-1:] and before[-1] in _IS
    is_definite = before[:1] and before[0] in DEFINITE
    signs = {
        "noun": is_listed,
        "noun after": _NOUNS.are_in(after),
        "predicate": _PREDICATES.are_in(before),
        "predicate after": _PREDICATES.are_in(after),
        "noun is": is_listed and not _IS.isdisjoint(before),
        "noun beside is": is_listed and is_beside,
        "the … is": is_definite and is_beside,
        "the noun": is_definite and is_listed,
        "the noun is": is_definite and is_listed and is_beside,
        "self and number": is_number and before[:1] and before[0] in SELF,
        "no copula": not any(_classes(word) for word in before if word not in DEFINITE),
        "is the … after": after[:1] and after[0] in _IS and after[1:2] and after[1] in DEFINITE,
        "owned": before[1:2] == ("s",),
        "the kind of": len(before) > 2 and before[-1] in _OF and before[-3] in DEFINITE,
        "change": frame.is_change,
        "past": _is_past((*before, *after)),
    }
    yield from (name for name, holds in signs.items() if holds)


def _head(before: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a holder without its owners: the soup in "my mother's soup"."""
    owned = [at for at, word in enumerate(before) if word == "s"]
    start = owned[-1] + 1 if owned else 0
    ends = (at for at in range(start + 1, len(before)) if before[at] in _OF)
    end = next(ends, len(before))
    phrase = before[start : end + 2]  # "mot de passe" is one noun.
    return (*before[start:end], *((" ".join(phrase),) if end < len(before) else ()))


def _is_past(words: Sequence[str]) -> bool:
    """Return whether words have a verb in the past, as far as known."""
    return any(word in _PAST or (word.endswith("ed") and stem(word) != word) for word in words)


def _words_of(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the words of a frame, and the beginnings and endings of those of an open class."""
    yield from (f"left {word}" for word in before[-1:])
    yield from (f"right {word}" for word in after[:1])
    for word in (*before, *after):
        yield f"word {word}"
        if not _classes(word):
            yield from (f"-{word[-size:]}" for size in ENDINGS if len(word) > size)
            if len(word) > OPENING:
                yield f"{word[:OPENING]}-"


def _ending_of_values(one: str, other: str) -> Iterator[str]:
    """Yield the common ending of two values, by their last words: a case, in many languages."""
    for size in ENDINGS:
        ending = one[-size:]
        if not ending.isdigit() and len(one) > size < len(other) and other.endswith(ending):
            yield f"values in -{ending}"


# -- scripts without spaces ------------------------------------------------------------------------


def _places_of_signs(before: str, after: str) -> Iterator[str]:
    """Yield the characters beside the value, and whether a known noun is the holder."""
    for size in SIGN_RUNS:
        if len(before) >= size:
            yield f"left {before[-size:]}"
        if len(after) >= size:
            yield f"right {after[:size]}"
    if not after:
        yield "right end"
    if _NOUNS.are_in_signs(_SIGNS_OWNED.split(before)[-1]):
        yield "noun"
    if _PREDICATES.are_in_signs(before):
        yield "predicate"


def _parts_of_signs(before: str, after: str) -> tuple[str, ...]:
    """Return all characters and pairs of characters, and those at both ends."""
    runs = [
        side[at : at + size]
        for side in (before, after)
        for size in (1, 2)
        for at in range(len(side))
    ]
    ends = (
        f"first {before[:1]}",
        f"first {before[:2]}",
        f"last {after[-1:]}",
        f"last {after[-2:]}",
    )
    return (*(f"has {run}" for run in runs), *ends)

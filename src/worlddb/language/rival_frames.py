r"""Rival frames: statements with the same words but another value, of which one can be true.

    "The alarm code is 2204."      the same frame
    "The alarm code is 7719 now."  and another value

Two different values prove little: "I ran 5 km" and "I ran 7 km" can both be true. A false link is
worse than a missed one. So a frame must state the *state* of *one* holder, in a place that takes
*one* value:

R1  A state, not an event, because an event can happen again. A state has a copula beside the value,
    a verb of duration ("costs", "lives at"), an English verb in the present after something
    definite ("The gym closes at"), or no verb ("Kapı kodu 4711"). A past tense is about an earlier
    time.
R2  A number is one value: two numbers belong to two times.
R3  Other places take one value if the holder is a noun with one at a time (a capital, a manager, a
    password), if the predicate takes one (married to, born in), or if a definite holder is
    identified by a name. "Anna is allergic to nuts" takes many, and so does "my hobbies are".
R4  A holder with a unique role is one ("the head chef"); "my friend" is one of several.

Only closed classes of words are known, by list (`statement_words.txt`, `single_values.txt`). A
frame without these words is not a rival of any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
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
from worlddb.language.text_tokens import STOP
from worlddb.language.word_forms import fold, sections, stem, words_of

VALUE_WORDS_MAX = 6  # a longer span is a sentence, not a value
REST_WORDS_MIN = 3  # two common words ("it is") fit any statement
BARE_WORDS_MAX = 4  # words before a value without a verb; more words have one
BARE_AFTER_MAX = 2  # words after such a value: a unit ("thousand lira")
UNIT_SIGNS_MAX = 3  # the same in characters of a script without spaces
SPLITS_KEPT = 4_096  # frames cached; bounds the memory

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
_ONCE, _LASTING = _tokens("once"), _tokens("lasting")
_IS, _ARE, _WAS, _LAST = map(_tokens, ("is", "are", "was", "last"))
_THE, _ARTICLES, _NOBODY = map(_tokens, ("the", "article", "they"))
_ENDINGS = tuple(fold(ending) for ending in _listed("ending"))
_BEING = _IS | _ARE | _WAS | COPULAS
# German capitalises every noun, so a capital does not mark a name there.
_CAPITALS = frozenset({"ist", "bin", "lautet"})
_OF = frozenset({"of", "de", "del", "di", "da", "do", "von", "van", "des", "du", "della"})
_YEAR = re.compile(r"1\d\d\d|20\d\d")
_PAST = frozenset(
    form
    for row in sections("language", "common_words.txt")["irregular"]
    for form in row[1:]
    if not form.endswith("s")
)

_SIGNS_BEFORE = re.compile(r"(?:[是为為叫在は:=]|คือ|เป็น)$")
_SIGNS_AFTER = re.compile(r"(?:です|だ|である|といいます|にあります|さんです|さん)?")
_SIGNS_UNIT = re.compile(
    rf"[^了過过たはをにが]{{0,{UNIT_SIGNS_MAX}}}(?:です|だ|である|にあります)?"
)
_SIGNS_OWNED = re.compile("[的の]")
_SIGNS_EVENT = re.compile("了|过|過|ました|った|んだ$|แล้ว")


class RivalFrame(NamedTuple):
    """The common words of two statements before and after their values, and what these are.

    `counted` tells numbers of any script, of which `numbers` are digits and words for them; `years`
    and `ended` tell numbers of a year's form, and with an ending.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    numbers: bool
    counted: bool
    years: bool
    ended: bool
    named: bool
    is_change: bool


def may_be_rival(old: Statement, new: Statement) -> bool:
    """Return whether two statements begin or end alike; most pairs do not."""
    return old.words[:2] == new.words[:2] or old.words[-2:] == new.words[-2:]


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
    while prefix < least and one[prefix] == other[prefix]:
        prefix += 1
    while suffix < least - prefix and one[-1 - suffix] == other[-1 - suffix]:
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
    if any(word in COPULAS for value in values for word in value):
        return None
    said = (*values[0], *values[1])
    numbers = all(map(is_number, said))
    return RivalFrame(
        before=one[:prefix],
        after=one[len(one) - suffix :],
        numbers=numbers,
        counted=numbers or all(is_number(word) or word.isnumeric() for word in said),
        years=numbers and all(map(_YEAR.fullmatch, said)),
        ended=numbers and all(value[-1].endswith(_ENDINGS) for value in values),
        named=values[0][0] in old.named and values[1][0] in new.named,
        is_change=new.is_change,
    )


@lru_cache(SPLITS_KEPT)
def _takes_one(frame: RivalFrame) -> bool:
    before, after = frame.before, frame.after
    if any(SPACELESS.search(word) for word in (*before, *after)):
        return _takes_one_in_signs(frame)
    if not before:
        return len(after) >= REST_WORDS_MIN and frame.named and _is_role_of_one(after)
    is_listed = _NOUNS.are_in(_head(before))
    if len(before) + len(after) < REST_WORDS_MIN and not is_listed:
        return False
    if before[0] in _NOBODY or before[0] in DEICTIC:
        return False
    if frame.numbers:
        return _takes_one_number(frame, is_listed)
    return _takes_one_value(frame, is_listed)


def _head(before: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a holder without its owners: the soup in "my mother's soup"."""
    owned = [at for at, word in enumerate(before) if word == "s"]
    start = owned[-1] + 1 if owned else 0
    ends = (at for at in range(start + 1, len(before)) if before[at] in _OF)
    end = next(ends, len(before))
    phrase = before[start : end + 2]  # "mot de passe" is one noun.
    return (*before[start:end], *((" ".join(phrase),) if end < len(before) else ()))


# -- numbers ---------------------------------------------------------------------------------------


def _takes_one_number(frame: RivalFrame, is_listed: bool) -> bool:
    before, after = frame.before, frame.after
    if not _WAS.isdisjoint(before):
        return frame.years and not _ONCE.isdisjoint(before)
    if not (any(map(_tells, before)) or before[0] in SELF):
        return False
    if _has_copula_at_end(before) or (after[-1:] and after[-1] in _LAST) or frame.ended:
        return True
    if _is_event((*before, *after)):
        return False
    if not _LASTING.isdisjoint(before[1:]) or before[0] in _THE or _is_owned(before):
        return True
    return is_listed and len(before) <= BARE_WORDS_MAX and len(after) <= BARE_AFTER_MAX


def _is_event(words: Sequence[str]) -> bool:
    """Return whether words without a copula have a verb in the past, as far as known."""
    return any(
        word in _PAST or (word.endswith("ed") and stem(word) != word) for word in words
    ) and _LASTING.isdisjoint(words)


# -- other values ----------------------------------------------------------------------------------


def _takes_one_value(frame: RivalFrame, is_listed: bool) -> bool:
    before, after = frame.before, frame.after
    is_closed = bool(after) and after[-1] in _LAST
    rest = after[:-1] if is_closed else after
    if any(map(_tells, rest)) or (_tells(before[-1]) and not is_closed) or before[-1] in OPEN:
        return False
    if _is_of_one_kind(before):
        return True
    if not _BEING.isdisjoint(before):
        if not _ONCE.isdisjoint(before) or _PREDICATES.are_in(before):
            return sum(map(_tells, before)) > 1
    elif _PREDICATES.are_in(before):
        return True
    if not (is_closed or _has_copula_at_end(before)) or not _ARE.isdisjoint(before):
        return False
    if is_listed:
        return True
    is_definite = before[0] in DEFINITE or _is_owned(before)
    is_name = frame.named and _CAPITALS.isdisjoint(before)
    return is_definite and (is_name or frame.is_change) and any(map(_tells, before))


def _is_of_one_kind(before: Sequence[str]) -> bool:
    """Return whether a lasting value has its kind before it: "in the city of"."""
    if len(before) <= REST_WORDS_MIN or before[-3] != "the" or before[-1] != "of":
        return False
    verb = before[:-3]
    if not (_BEING | _ONCE | _LASTING).isdisjoint(verb):
        return True
    return not _tells(verb[-1]) and not _is_event(verb)  # Not "died in the city of".


def _is_role_of_one(words: Sequence[str]) -> bool:
    """Return whether words name a role that only one can have: "is the head chef"."""
    if words[0] not in _IS or not any(map(_tells, words)):
        return False
    return words[1] in _ARTICLES or (words[1] in DEFINITE and _NOUNS.are_in(words))


def _has_copula_at_end(before: Sequence[str]) -> bool:
    """Return whether a copula in the present precedes a value, with no topic in between."""
    for word in reversed(before):
        if word in _IS or word in _ARE:
            return True
        if word in _WAS or _tells(word):
            return False
    return False


def _is_owned(before: Sequence[str]) -> bool:
    return before[1:2] == ("s",) and before[0] not in DEICTIC  # Mia's


def _tells(word: str) -> bool:
    return word not in _BEING and word not in _LAST and is_topical(word)


# -- scripts without spaces ------------------------------------------------------------------------


def _takes_one_in_signs(frame: RivalFrame) -> bool:
    before, after = "".join(frame.before), "".join(frame.after)
    if _SIGNS_EVENT.search(before) or _SIGNS_EVENT.search(after):
        return False
    is_said = _SIGNS_BEFORE.search(before) is not None
    is_listed = _NOUNS.are_in_signs(_SIGNS_OWNED.split(before)[-1])
    if frame.counted:
        is_measured = _SIGNS_UNIT.fullmatch(after) is not None
        return is_measured and len(before) > 1 and (is_said or is_listed)
    is_single = is_listed or _PREDICATES.are_in_signs(before)
    is_at_end = _SIGNS_AFTER.fullmatch(after) is not None
    return is_at_end and is_said and is_single and STOP.isdisjoint(frame.before)

"""Runs: capitalised words that stand together, and where in a sentence they stand.

    "Thanks, Dr. Maya van der Berg's dog"  ──▶  [Thanks]  [Dr. Maya van der Berg]

A run goes on over one space, a particle ("van der"), an ampersand, and "of" after a word such as
"University". It ends at a possessive, and at a word that is never part of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from worlddb.language.english.english_words import (
    BREEDS,
    GIVEN,
    GIVEN_NAMES,
    NEVER,
    TITLES,
    TITLES_SHORT,
    listed,
)
from worlddb.language.english.grammar import Patterns

_P = Patterns("name_runs")

RUN_WORDS_MAX = 8  # longer runs are headings or shouting

_TRADES = listed("words", "trades")
_INITIALISMS = listed("words", "initialisms")
_OF_HEADS = listed("organisations", "of heads")
_PAIRS = listed("organisations", "pairs")
_OWN_POSSESSIVE = listed("organisations", "possessive")

_DOTTED = TITLES_SHORT | {"st", "mt", "ft"}
_CONTRACTED = frozenset(("m", "ll", "d", "re", "ve"))
_POSSESSED = ("'s ", "’s ", "' ", "’ ")
_BEFORE_NAMES = frozenset(",;%$&")


class NameToken(NamedTuple):
    """A capitalised word, `word` in lower case; `ends`: a name does not go on after it."""

    start: int
    end: int
    word: str
    raised: bool  # all capitals
    ends: bool = False
    possessive: bool = False


class NameRun(NamedTuple):
    """Tokens that may be one name.

    `owned`: they come right after a possessive. `partial`: "of" or "the" binds them to another
    run, so that what they name alone is less than what is meant (Cliffs of Moher).
    """

    tokens: tuple[NameToken, ...]
    owned: bool
    partial: bool


def runs_in(plain: str) -> Iterator[NameRun]:
    """Yield the runs of a masked text, in order, cut at what is never part of a name."""
    run: list[NameToken] = []
    owned = partial = False
    for match in _P.TOKEN.finditer(plain):
        if match[0] == "I":  # the commonest of all, and nobody's name
            if run:
                yield from _pieces(run, owned, partial)
                owned, partial, run = False, False, []
            continue
        token = _token(plain, match)
        if run and not _goes_on(plain, run, token):
            bound = _P.BOUND.fullmatch(plain, run[-1].end, token.start) is not None
            yield from _pieces(run, owned, partial or bound)
            owned = run[-1].possessive and plain[run[-1].end : token.start] in _POSSESSED
            partial, run = bound, []
        run.append(token)
    if run:
        yield from _pieces(run, owned, partial)


def starts_sentence(plain: str, position: int) -> bool:
    """Return whether a word at `position` may have its capital for its place alone."""
    index = position - 1
    if index < 0 or plain[index] != " ":
        return True
    while index >= 0 and plain[index] == " ":
        index -= 1
    if index < 0:
        return True
    before = plain[index]
    if before in "\"”’')":
        inside = plain[index - 1 : index]
        return inside in ".!?" or (before == ")" and inside.isdigit())
    return not (before.isalnum() or before in _BEFORE_NAMES)


def _token(plain: str, match: re.Match[str]) -> NameToken:
    start, end = match.span()
    written = match[0]
    word = written.lower()
    raised = len(written) > 1 and written.isupper() and written[1] != "."
    if not written.isalpha():
        return _marked(plain, start, end, word.replace("’", "'"), raised)
    if plain[end : end + 1] == "." and word in _DOTTED and plain[end + 1 : end + 2] == " ":
        return NameToken(start, end + 1, word, raised)
    if word[-1] == "s":
        if len(written) > 2 and written[:-1].isupper():  # several of what the letters stand for
            return NameToken(start, end, word[:-1], True, True)
        if plain[end : end + 2] in ("' ", "’ "):
            return NameToken(start, end, word, raised, True, True)
    return NameToken(start, end, word, raised)


def _marked(plain: str, start: int, end: int, word: str, raised: bool) -> NameToken:
    """Return the token of a word with an apostrophe, a dot, a hyphen or a digit in it."""
    stem, _, ending = word.rpartition("'")
    if not stem:
        return NameToken(start, end, word, raised)
    raised = len(stem) > 1 and plain[start : start + len(stem)].isupper()
    if ending == "s":
        if word in _OWN_POSSESSIVE or _is_pair(plain, start, end):
            return NameToken(start, end, word, raised)
        return NameToken(start, end - 2, stem, raised, True, True)
    if ending in _CONTRACTED:
        return NameToken(start, end - len(ending) - 1, stem, raised, True)
    return NameToken(start, end, word, raised)


def _is_pair(plain: str, start: int, end: int) -> bool:
    """Return whether a word with 's belongs to a known name with its neighbour: Trader Joe's."""
    near = plain[max(0, start - 24) : end + 24].replace("’", "'").lower()
    return any(pair in near for pair in _PAIRS)


def _goes_on(plain: str, run: list[NameToken], token: NameToken) -> bool:
    last = run[-1]
    if last.ends:
        return False
    if last.word.endswith(".") and len(last.word) == 2:
        # An initial goes on after a given name or another initial; elsewhere it ends a sentence.
        first = run[0].word
        if not (first.endswith(".") or first in GIVEN_NAMES):
            return False
    gap = plain[last.end : token.start]
    if gap == " " or (gap == "" and last.word.endswith(".")):
        return True
    if len(gap) > 12:
        return False
    if _P.OF.fullmatch(gap):
        return last.word in _OF_HEADS
    if _P.NUMBERED.fullmatch(gap):
        return len(run) > 1 and token.word not in GIVEN
    return _P.PARTICLE.fullmatch(gap) is not None


def _pieces(run: list[NameToken], owned: bool, partial: bool) -> Iterator[NameRun]:
    """Cut a run at words that are never part of a name."""
    if len(run) == 1:
        if not _never(run, 0) and run[0].word.removesuffix("s") not in BREEDS:
            yield NameRun(tuple(run), owned, partial)
        return
    piece: list[NameToken] = []
    for index, token in enumerate(run):
        if token.word.removesuffix("s") in BREEDS:  # and what is before is part of it
            piece, owned, partial = [], False, False
        elif _never(run, index):
            if piece:  # Black Friday: less than what is meant
                yield NameRun(tuple(piece), owned, True)
            piece, owned, partial = [], False, False
        else:
            piece.append(token)
    if piece:
        yield NameRun(tuple(piece), owned, partial)


def _never(run: list[NameToken], index: int) -> bool:
    token = run[index]
    last = index + 1 == len(run)
    if token.word in _TRADES and not last:
        return True
    if token.word in NEVER:
        # "Uncle" is nobody, "Uncle Bob" is.
        return token.word not in TITLES or last
    return token.raised and token.word.upper() in _INITIALISMS

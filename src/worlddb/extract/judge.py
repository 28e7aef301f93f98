"""Judge: whether a run of capitalised words is a name, by its words and its place.

J1  A known name is one wherever it stands. A word that is also an ordinary one is a name inside a
    sentence if people bear it ("Will"), or if it is introduced as one ("a dog named Lucky").
J2  Inside a sentence an unknown word with a capital is a name. At the start of one it is *unsure*:
    a name only if it is certain elsewhere.
J3  Ordinary words together are a heading or emphasis, no name, unless they are a known one.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

from worlddb.extract.lexicon.given import GIVEN, GIVEN_PERHAPS
from worlddb.extract.lexicon.known import (
    ACRONYMS,
    BRANDS,
    BRANDS_PERHAPS,
    HEADS,
    NUMBERED,
    OPENERS,
    PHRASES,
    PLACES,
)
from worlddb.extract.lexicon.ordinary import KINDS, ORDINARY, STARTERS, looks_ordinary, of_a_people
from worlddb.extract.lexicon.roles import TITLES, TITLES_SHORT
from worlddb.extract.phrases import LETTERS, explained, initials, introduced
from worlddb.extract.runs import RUN_WORDS_MAX, UPPER, Run, Token, starts_sentence

ACRONYM_MAX = 6
GIVEN_NAMES = GIVEN | GIVEN_PERHAPS
_KNOWN = GIVEN | PLACES | BRANDS

_DETERMINED = re.compile(r"\b(?:the|this|that|of)\s+$", re.IGNORECASE)
_ONE_OF = re.compile(r"\b(?:a|an|another|every|each|some|any)\s+$", re.IGNORECASE)
_EMPLOYED = re.compile(
    r"\b(?:work(?:s|ed|ing)?|job|jobs|intern(?:s|ed|ing|ship)?|stud(?:y|ies|ied|ying)"
    r"|graduated?|joined|joining|hired|employed)\s+(?:at|for|by|from|with)\s+$",
    re.IGNORECASE,
)
_OWNED = re.compile(rf"['’]s? ([{UPPER}]\w*)")
_SHOUTED_AFTER = re.compile(r"[ ,!]+[A-Z]{2,}\b")
_SHOUTED_BEFORE = re.compile(r"\b[A-Z]{2,}[ ,!]+$")
_FORMERLY = re.compile(r"\s*[(,]\s*formerly\b")
_VERSION = re.compile(r"[-\d]")
_DOTTED_PLACES = frozenset(("U.S.", "U.K.", "U.S.A.", "D.C.", "U.N.", "E.U."))
_NUMERALS = frozenset(("ii", "iii", "iv", "vi", "vii", "viii", "ix", "jr", "sr"))
# "British Museum" names one, "Italian Bakery" may not.
_PEOPLE_HEADS = HEADS & {
    *("academy", "airlines", "airways", "association", "bank", "council", "embassy"),
    *("federation", "institute", "library", "museum", "opera", "society", "university"),
} | {"columbia"}


class Verdict(NamedTuple):
    """Where a name is, and whether it is certain and a person's (or a pet's)."""

    start: int
    end: int
    sure: bool
    person: bool


class Scene(NamedTuple):
    """What a run is judged against: the masked text, its words in lower case, who speaks."""

    plain: str
    lower: Set[str]
    speakers: Set[str]

    def ordinary(self, word: str) -> bool:
        """Return whether a word is an ordinary one, here or in general."""
        return looks_ordinary(word) or word in self.lower

    def known(self, word: str) -> bool:
        """Return whether a word is a name wherever it stands."""
        return word in _KNOWN or word in self.speakers


def judged(run: Run, scene: Scene) -> Verdict | None:
    """Return the name in a run, or None if there is none for sure."""
    tokens = run.tokens
    starts = starts_sentence(scene.plain, tokens[0].start)
    if starts and len(tokens) == 1 and tokens[0].word in STARTERS:
        return None
    known = scene.known(tokens[0].word)
    if len(tokens) > RUN_WORDS_MAX or (len(tokens) > 1 and tokens[0].raised and tokens[1].raised):
        return None
    if run.partial and not known:
        return None
    if tokens[-1].possessive and _owns_a_title(tokens[-1], scene):
        return None
    if run.owned and not known and tokens[0].word not in TITLES:
        return None
    tokens = _trimmed(tokens)
    if not tokens:
        return None
    if len(tokens) > 1 and _spelled_out(tokens, scene):
        return Verdict(tokens[0].start, tokens[-1].end, True, False)
    if starts and len(tokens) > 1:
        return _opening(tokens, scene)
    return _inside(tokens, scene) if len(tokens) > 1 else _one(tokens[0], starts, scene)


def _owns_a_title(token: Token, scene: Scene) -> bool:
    """Return whether what is owned may be part of the name: Schindler's List, Sarah's Honda."""
    owned = _OWNED.match(scene.plain, token.end)
    return owned is not None and not scene.known(owned[1].lower())


def _trimmed(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Drop a single initial that no name begins with, and emphasis, at either end."""
    if len(tokens) > 1 and len(tokens[0].word) == 2 and tokens[0].word.endswith("."):
        if not tokens[1].word.endswith("."):
            tokens = tokens[1:]
    while tokens and tokens[0].raised and looks_ordinary(tokens[0].word):
        tokens = tokens[1:]
    while len(tokens) > 1 and (
        tokens[-1].word.endswith(".") or (tokens[-1].raised and looks_ordinary(tokens[-1].word))
    ):
        tokens = tokens[:-1]
    return tokens


def _spelled_out(tokens: tuple[Token, ...], scene: Scene) -> bool:
    """Return whether the letters of the words follow in brackets."""
    letters = LETTERS.match(scene.plain, tokens[-1].end)
    text = scene.plain[tokens[0].start : tokens[-1].end]
    return letters is not None and letters[1] == initials(text)


def _opening(tokens: tuple[Token, ...], scene: Scene) -> Verdict | None:
    """Judge several words at the start of a sentence: is the first one part of the name?"""
    first, second = tokens[0].word, tokens[1].word
    if scene.known(first) or first in TITLES or first in OPENERS or first.endswith("."):
        return _inside(tokens, scene)
    if scene.plain.startswith(" of ", tokens[0].end):
        return _inside(tokens, scene)
    known = scene.known(second) or second in TITLES
    if scene.ordinary(first) or of_a_people(first):
        if not known and first not in STARTERS:
            return None
    elif second not in GIVEN:
        return _inside(tokens, scene)
    rest = tokens[1:]
    return _inside(rest, scene) if len(rest) > 1 else _one(rest[0], False, scene)


def _inside(tokens: tuple[Token, ...], scene: Scene) -> Verdict | None:
    """Judge several words that have their capitals for themselves."""
    words = [token.word for token in tokens]
    start, end = tokens[0].start, tokens[-1].end
    if words[0] in TITLES:
        second = words[1]
        named = second in GIVEN_NAMES or scene.known(second) or second not in ORDINARY
        named |= words[0] in TITLES_SHORT and second not in STARTERS
        return Verdict(start, end, True, True) if named else None
    if any(map(of_a_people, words)):
        return Verdict(start, end, True, False) if words[-1] in _PEOPLE_HEADS else None
    if scene.plain[start:end].lower() in PHRASES:
        return Verdict(start, end, True, False)
    if words[-1] in KINDS or not all(_capital(token, scene) for token in tokens):
        return None
    if all(scene.ordinary(word) or word in _NUMERALS for word in words):
        return None
    named = words[0] in GIVEN_NAMES or words[0].endswith(".")
    person = named and words[0] not in PLACES and words[-1] not in HEADS
    return Verdict(start, end, True, person)


def _capital(token: Token, scene: Scene) -> bool:
    """Return whether all parts of a hyphenated word have capitals: Jean-Luc, not Paris-based."""
    if "-" not in token.word:
        return True
    return all(part[:1].isupper() for part in scene.plain[token.start : token.end].split("-"))


def _one(token: Token, starts: bool, scene: Scene) -> Verdict | None:
    """Judge a single word."""
    word, start, end = token.word, token.start, token.end
    plain = scene.plain
    if _VERSION.split(word)[0] in NUMBERED and _VERSION.search(word):
        return Verdict(start, end, True, False)
    if token.raised or word.endswith("."):
        return _acronym(token, scene)
    if len(word) == 1:
        return Verdict(start, end, True, False) if _FORMERLY.match(plain, end) else None
    if of_a_people(word) or word in TITLES:
        return None
    one_of = _ONE_OF.search(plain, max(0, start - 10), start) is not None
    if scene.known(word) and not (one_of and word in GIVEN):
        person = word in GIVEN or word in scene.speakers
        return Verdict(start, end, True, person and word not in PLACES)
    if word in PHRASES or word in NUMBERED:
        return Verdict(start, end, word in PHRASES or not starts, False)
    if not word.replace("-", "").replace("'", "").isalpha():
        return None
    if starts and word in GIVEN_PERHAPS and explained(plain, end):
        return Verdict(start, end, True, True)
    if not starts and (word in GIVEN_PERHAPS or word in BRANDS_PERHAPS):
        if _DETERMINED.search(plain, max(0, start - 8), start) is None:
            return Verdict(start, end, True, word in GIVEN_PERHAPS)
    if scene.ordinary(word):
        return Verdict(start, end, True, True) if introduced(plain, start) else None
    if word.split("-")[0] in GIVEN_NAMES and "-" in word and _capital(token, scene):
        return Verdict(start, end, True, True)
    if starts:
        sure = explained(plain, end)
        return Verdict(start, end, sure, sure) if len(word) > 2 and word.isalpha() else None
    if "-" in word and (looks_ordinary(word.split("-")[0]) or not _capital(token, scene)):
        return None
    return None if one_of else Verdict(start, end, True, False)


def _acronym(token: Token, scene: Scene) -> Verdict | None:
    """Judge a word in capitals: a known one, or whom somebody works for; else it is emphasis."""
    plain, start, end = scene.plain, token.start, token.end
    written = plain[start:end]
    found = Verdict(start, end, True, False)
    if written.endswith("."):
        return found if written in _DOTTED_PLACES else None
    if _SHOUTED_AFTER.match(plain, end) or _SHOUTED_BEFORE.search(plain, max(0, start - 24), start):
        return None
    if written in ACRONYMS or token.word in BRANDS:
        return found
    if looks_ordinary(token.word) or not 2 <= len(written) <= ACRONYM_MAX:
        return None
    return found if _EMPLOYED.search(plain, max(0, start - 40), start) else None

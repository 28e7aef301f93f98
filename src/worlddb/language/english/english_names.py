"""English names: the names in a text, by their words and their positions.

    text ──▶ titles in quotes ──▶ runs of capitalised words ──▶ judged ──▶ mentions
    "Thanks, Dr. Maya van der Berg's dog"  ──▶  [Thanks]  [Dr. Maya van der Berg]

A run continues over one space, a particle ("van der"), an ampersand, and "of" after a word such as
"University". It ends at a possessive, and at a word that is never part of a name.

J1  A known name is a name in every position. A known name that is also an ordinary word is a name
    inside a sentence if people have it ("Will"), or if it is introduced ("a dog named Lucky").
J2  Inside a sentence an unknown capitalised word is a name. At the start of a sentence it is
    *unsure*: a name only if it is certain elsewhere. So is an ordinary capitalised word inside a
    sentence, and in a text that begins in lower case every word that is not ordinary.
J3  Several ordinary words together are a heading or emphasis, unless they are a known name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import islice
from typing import NamedTuple

from worlddb.language.english.name_roles import explained, initials, introduced, letters_after
from worlddb.language.english.prose import (
    ACRONYMS,
    BLOT,
    BRANDS,
    BREEDS,
    GIVEN,
    GIVEN_NAMES,
    GIVEN_PERHAPS,
    HEADS,
    NEVER,
    ORDINARY,
    PHRASES,
    SMALL,
    STARTERS,
    TITLES,
    TITLES_SHORT,
    Patterns,
    listed,
    looks_ordinary,
    of_a_people,
)
from worlddb.language.language_reader import Mention
from worlddb.language.proper_names import PLACE_NAMES
from worlddb.language.word_forms import fold

_P = Patterns("name_judgement")
_RUNS = Patterns("name_runs")

ACRONYM_MAX = 6  # UNICEF has six letters; longer capitals are emphasis
TITLE_WORDS_MAX = 8  # a longer quotation is speech, not a title
LOWER_NAMES_MAX = 12  # each is looked up; the subject is near the beginning of a message
RUN_WORDS_MAX = 8  # longer runs are headings or shouting
_KNOWN = GIVEN | PLACE_NAMES | BRANDS
_DOTTED_PLACES = frozenset(("U.S.", "U.K.", "U.S.A.", "D.C.", "U.N.", "E.U."))
_NUMERALS = frozenset(("ii", "iii", "iv", "vi", "vii", "viii", "ix", "jr", "sr"))
_PEOPLE_HEADS = listed("organisations", "people heads")
_NUMBERED = listed("organisations", "numbered")
_OPENERS = listed("organisations", "openers")
_BRANDS_PERHAPS = listed("organisations", "brands perhaps")
_KINDS = listed("words", "kinds")
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
    """A capitalised word, `word` in lower case; `ends` if a name does not continue after it."""

    start: int
    end: int
    word: str
    raised: bool  # all capitals
    ends: bool = False
    possessive: bool = False


class NameRun(NamedTuple):
    """Tokens that may be one name.

    `owned` if they follow a possessive directly. `partial` if "of" or "the" binds them to another
    run, so that they are only part of a name (Cliffs of Moher).
    """

    tokens: tuple[NameToken, ...]
    owned: bool
    partial: bool


class Verdict(NamedTuple):
    """The position of a name, and whether it is certain and a person's (or a pet's)."""

    start: int
    end: int
    sure: bool
    person: bool


class Scene(NamedTuple):
    """The context of a run: the masked text, its words in lower case, and the speakers."""

    plain: str
    lower: Set[str]
    speakers: Set[str]

    def ordinary(self, word: str) -> bool:
        """Return whether a word is ordinary, here or in general."""
        return looks_ordinary(word) or word in self.lower

    def known(self, word: str) -> bool:
        """Return whether a word is a name in every position."""
        return word in _KNOWN or word in self.speakers


def mentions_in(text: str, plain: str, speakers: Set[str]) -> list[Mention]:
    """Return the names in `text`, in order; `plain` is the masked text.

    `speakers` are the names of the participants, in lower case: names in every position.
    """
    titles, plain = _titles(plain)
    scene = Scene(plain, frozenset(_P.LOWER.findall(plain)), speakers)
    found = [Mention(start, end, text[start:end], True, False) for start, end in titles]
    for run in runs_in(plain):
        verdict = judged(run, scene)
        if verdict is not None:
            start, end, sure, person = verdict
            if run.tokens[-1].word in _NUMBERED and end == run.tokens[-1].end:
                number = _P.NUMBER_AFTER.match(plain, end)
                end = number.end() if number else end
            found.append(Mention(start, end, text[start:end], sure, person))
    if plain[:1].islower():
        found += islice(_lower_names(plain), LOWER_NAMES_MAX)
    found.sort()
    return found


def _lower_names(plain: str) -> Iterator[Mention]:
    """Yield words in lower case that are not ordinary: the text may not use capitals."""
    for match in _P.LOWER_NAME.finditer(plain):
        if not looks_ordinary(match[0]) and match[0] not in NEVER:
            yield Mention(match.start(), match.end(), match[0], False, False)


def _titles(plain: str) -> tuple[list[tuple[int, int]], str]:
    """Return the positions of titles in quotes, and the text with all such quotes masked.

    Words in a quoted title are capitalised as a title, so none of them alone is a name there.
    """
    found: list[tuple[int, int]] = []

    def blot(match: re.Match[str]) -> str:
        group = 1 if match[1] is not None else 2
        inner = match[group].rstrip(" ,.!?")
        words = [word for word in _P.WORD.findall(inner) if word not in SMALL]
        if not words or not all(word[0].isupper() for word in words):
            return match[0]
        if inner[0].isupper() and len(words) <= TITLE_WORDS_MAX:
            if _P.TITLED.search(plain, max(0, match.start() - 48), match.start()):
                found.append((match.start(group), match.start(group) + len(inner)))
        elif len(words) == 1:
            return match[0]
        return BLOT * len(match[0])

    if any(quote in plain for quote in "\"“'‘"):
        plain = _P.QUOTED.sub(blot, plain)
    return found, plain


def judged(run: NameRun, scene: Scene) -> Verdict | None:
    """Return the name in a run; None if there is no certain one."""
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


def _owns_a_title(token: NameToken, scene: Scene) -> bool:
    """Return whether a possession may be part of the name: Schindler's List, Sarah's Honda."""
    owned = _P.OWNED.match(scene.plain, token.end)
    return owned is not None and not scene.known(owned[1].lower())


def _trimmed(tokens: tuple[NameToken, ...]) -> tuple[NameToken, ...]:
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


def _spelled_out(tokens: tuple[NameToken, ...], scene: Scene) -> bool:
    """Return whether the letters of the words follow in brackets."""
    letters = letters_after(scene.plain, tokens[-1].end)
    text = scene.plain[tokens[0].start : tokens[-1].end]
    return letters is not None and letters[1] == initials(text)


def _opening(tokens: tuple[NameToken, ...], scene: Scene) -> Verdict | None:
    """Judge several words at the start of a sentence: does the name include the first one?"""
    first, second = tokens[0].word, tokens[1].word
    if scene.known(first) or first in TITLES or first in _OPENERS or first.endswith("."):
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


def _inside(tokens: tuple[NameToken, ...], scene: Scene) -> Verdict | None:
    """Judge several words that are not at the start of a sentence."""
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
    if words[-1] in _KINDS or not all(_capital(token, scene) for token in tokens):
        return None
    if all(scene.ordinary(word) or word in _NUMERALS for word in words):
        return None
    named = words[0] in GIVEN_NAMES or words[0].endswith(".")
    person = named and words[0] not in PLACE_NAMES and words[-1] not in HEADS
    return Verdict(start, end, True, person)


def _capital(token: NameToken, scene: Scene) -> bool:
    """Return whether a hyphenated word is one name: Jean-Luc and Ji-woo, not Paris-based."""
    if "-" not in token.word:
        return True
    parts = scene.plain[token.start : token.end].split("-")
    return all(part[:1].isupper() or not looks_ordinary(part) for part in parts)


def _one(token: NameToken, starts: bool, scene: Scene) -> Verdict | None:
    """Judge a single word."""
    word, start, end = token.word, token.start, token.end
    plain = scene.plain
    if _P.VERSION.split(word)[0] in _NUMBERED and _P.VERSION.search(word):
        return Verdict(start, end, True, False)
    if token.raised or word.endswith("."):
        return _acronym(token, scene)
    if len(word) == 1:
        return Verdict(start, end, True, False) if _P.FORMERLY.match(plain, end) else None
    if of_a_people(word) or word in TITLES:
        return None
    one_of = _P.ONE_OF.search(plain, max(0, start - 10), start) is not None
    if scene.known(word) and not (one_of and word in GIVEN):
        person = word in GIVEN or word in scene.speakers
        return Verdict(start, end, True, person and word not in PLACE_NAMES)
    if word in PHRASES or word in _NUMBERED:
        return Verdict(start, end, word in PHRASES or not starts, False)
    if not word.replace("-", "").replace("'", "").isalpha():
        return None
    if starts and word in GIVEN_PERHAPS and explained(plain, end):
        return Verdict(start, end, True, True)
    if not starts and (word in GIVEN_PERHAPS or word in _BRANDS_PERHAPS):
        if _P.DETERMINED.search(plain, max(0, start - 8), start) is None:
            return Verdict(start, end, True, word in GIVEN_PERHAPS)
    if scene.ordinary(word):
        if introduced(plain, start):
            return Verdict(start, end, True, True)
        alone = not (starts or one_of or _P.DETERMINED.search(plain, max(0, start - 8), start))
        return Verdict(start, end, False, False) if alone or token.possessive else None
    if word.split("-")[0] in GIVEN_NAMES and "-" in word and _capital(token, scene):
        return Verdict(start, end, True, True)
    if starts:
        is_explained = explained(plain, end)
        # Without an article, only a name or a mass noun agrees with a verb in -s.
        agrees = _P.AGREES.match(plain, end) is not None
        sure = is_explained or agrees
        return Verdict(start, end, sure, is_explained) if len(word) > 2 and word.isalpha() else None
    if "-" in word and (looks_ordinary(word.split("-")[0]) or not _capital(token, scene)):
        return None
    return None if one_of else Verdict(start, end, True, False)


def _acronym(token: NameToken, scene: Scene) -> Verdict | None:
    """Judge a word in capitals: a known one, or an employer; otherwise it is emphasis."""
    plain, start, end = scene.plain, token.start, token.end
    written = plain[start:end]
    found = Verdict(start, end, True, False)
    if written.endswith("."):
        return found if written in _DOTTED_PLACES else None
    if _P.SHOUTED_AFTER.match(plain, end) or _P.SHOUTED_BEFORE.search(
        plain, max(0, start - 24), start
    ):
        return None
    if written in ACRONYMS or token.word in BRANDS:
        return found
    if looks_ordinary(token.word) or not 2 <= len(written) <= ACRONYM_MAX:
        return None
    return found if _P.EMPLOYED.search(plain, max(0, start - 40), start) else None


def runs_in(plain: str) -> Iterator[NameRun]:
    """Yield the runs of a masked text in order, cut at words that are never part of a name."""
    run: list[NameToken] = []
    owned = partial = False
    for match in _RUNS.TOKEN.finditer(plain):
        if match[0] == "I":  # the commonest of all, and nobody's name
            if run:
                yield from _pieces(run, owned, partial)
                owned, partial, run = False, False, []
            continue
        token = _token(plain, match)
        if run and not _goes_on(plain, run, token):
            bound = _RUNS.BOUND.fullmatch(plain, run[-1].end, token.start) is not None
            yield from _pieces(run, owned, partial or bound)
            owned = run[-1].possessive and plain[run[-1].end : token.start] in _POSSESSED
            partial, run = bound, []
        run.append(token)
    if run:
        yield from _pieces(run, owned, partial)


def starts_sentence(plain: str, position: int) -> bool:
    """Return whether a word at `position` may be capitalised only as the first of a sentence."""
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
    # The lists have no accents. Most words need no more than small letters.
    word = written.lower() if written.isascii() else fold(written)
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
    """Return whether a word with 's and its neighbour are a known name: Trader Joe's."""
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
    if _RUNS.OF.fullmatch(gap):
        return last.word in _OF_HEADS
    if _RUNS.NUMBERED.fullmatch(gap):
        return len(run) > 1 and token.word not in GIVEN
    return _RUNS.PARTICLE.fullmatch(gap) is not None


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
        # "Uncle" alone is nobody, "Uncle Bob" is somebody.
        return token.word not in TITLES or last
    return token.raised and token.word.upper() in _INITIALISMS

"""Claim values: relations with one value at a time, and the values in claims.

    thing_of("phone number")                  ──▶ its relation and kind of value (`relations.txt`)
    ClaimValues(text, prose, mentions).home(9, lower=False) ──▶ "Oslo" in "I live in Oslo."

V1  A mention is a name. A known town is a name even if the word is ordinary (Nice), and in a text
    in lower case.
V2  The object of *moved to* is a place unless it is known as a team, a tool or a company.
V3  A title is the longest run of capitalised words, if the statement ends with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from worlddb.language.english.prose import (
    ACRONYMS,
    BRANDS,
    DOUBTS,
    GIVEN_NAMES,
    HEADS,
    NEVER,
    PHRASES,
    Patterns,
    listed,
    looks_ordinary,
    of_a_people,
)
from worlddb.language.language_reader import Mention
from worlddb.language.proper_names import PLACE_NAMES, TOWNS, places_of
from worlddb.language.word_forms import any_of, sections, words_of

LIVES_IN = "lives in"
WORKS_AT = "works at"
JOB_TITLE = "job title"
AGE = "age"

_P = Patterns("claims")
NAME_WORDS_MAX = 3  # first, middle and last name; more is a sentence
NAME_CHARS_MIN = 3  # "Bi", "HR" are not names
PHONE_DIGITS_MIN = 9  # fewer are the number of a locker or a ticket
_SHOUTED_MIN = 6  # letters; a title in capitals of this length is emphasis

_PERHAPS_A_FIRM = listed("relations", "perhaps a firm")
_STATES = listed("hedges", "states")
_STATE_ENDINGS = tuple(listed("hedges", "state endings"))
_NO_VALUE = listed("hedges", "no value") | DOUBTS
_VALUES_ALIKE = listed("hedges", "values alike")
_NO_VALUE_ENDINGS = tuple(listed("hedges", "no value endings"))
_JOINED_FOR_ELSE = listed("organisations", "joined for else")
_NO_TOWN = BRANDS.union(
    *(listed("organisations", name) for name in ("no town", "brands perhaps", "numbered"))
)


class Thing(NamedTuple):
    """A possession with one value at a time: its relation, and the kind of its value."""

    relation: str
    kind: str


_RELATIONS = sections("language.english", "relations.txt")
THINGS = {
    word: Thing(relation, kind) for kind, relation, *words in _RELATIONS["things"] for word in words
}
PLAIN_KINDS = listed("relations", "favourites plain")
OCCUPATION_NOT = listed("relations", "occupations not")
OCCUPATION_BESIDE = listed("relations", "occupations beside")
HABITS = {"eat": "eating", "drink": "drinking", "smoke": "smoking", "vape": "vaping"}
HABIT_OF = {form: verb for verb, doing in HABITS.items() for form in (verb, f"{verb}s", doing)}
PREFERENCES = {
    (way, thing): (relation, value)
    for relation, value, ways, things in _RELATIONS["preferences"]
    for way in ways.split(",")
    for thing in things.split(",")
}


def thing_of(words: str) -> Thing:
    """Return the possession that words such as "phone number" name."""
    return THINGS[" ".join(words.lower().split())]


def favourite_of(kind: str) -> str:
    """Return the relation of a person to their favourite of a kind."""
    plain = " ".join(kind.lower().split())
    return f"favorite {plain}".replace("colour", "color").replace("flavour", "flavor")


class Frame(NamedTuple):
    """A pattern around a home or an employer, and its meaning.

    It is `over`, or only if "any more" follows (`denied`); otherwise it holds, or only with a
    duration (`lasts`).
    """

    pattern: str
    relation: str
    over: bool = False
    denied: bool = False
    lasts: bool = False


STATES = (
    Frame("LIVES_NO_MORE", LIVES_IN, over=True),
    Frame("WORKS_NO_MORE", WORKS_AT, over=True),
    Frame("LIVES_NOT", LIVES_IN, over=True, denied=True),
    Frame("WORKS_NOT", WORKS_AT, over=True, denied=True),
    Frame("LIVES", LIVES_IN),
    Frame("LIVED", LIVES_IN, lasts=True),
    Frame("WORKS", WORKS_AT),
    Frame("WORKED", WORKS_AT, lasts=True),
)


def _hedges(section: str) -> re.Pattern[str]:
    words = words_of("language.english", "hedges.txt", section)
    return re.compile(rf"\b(?:{any_of(words)})\b", re.IGNORECASE)


_CHANGE = _hedges("change")
_MOVING = _hedges("moving")


def tells_change(text: str) -> bool:
    """Return whether the words of a claim report a recent change."""
    return _CHANGE.search(text) is not None


def tells_move(text: str) -> bool:
    """Return whether the words of a claim report a move to another home."""
    return _MOVING.search(text) is not None


def tells_promotion(text: str) -> bool:
    """Return whether the words of a claim report a promotion."""
    return "promoted" in text.lower()


class ClaimValue(NamedTuple):
    """A value: its words, their end, and whether they are a person's name."""

    text: str
    end: int
    person: bool = False


class ClaimValues:
    """Reads values at positions of one text; `prose` is the masked text."""

    def __init__(self, text: str, prose: str, mentions: Mapping[int, Mention]) -> None:
        self.text = text
        self.prose = prose
        self.mentions = mentions

    def named(self, at: int) -> ClaimValue | None:
        """Return the whole name at a position, without a possessive or hyphenated rest."""
        if self.prose.startswith("the ", at):
            at += 4
        mention = self.mentions.get(at)
        if mention is None or self._goes_on(mention.end):
            return None
        return ClaimValue(mention.text, mention.end, mention.person)

    def home(self, at: int, *, lower: bool) -> ClaimValue | None:
        """Return the name of a home, with the country after its comma.

        With `lower`, a known town may be written without a capital.
        """
        found = self._town(at, lower) or self.named(at)
        if found is None or not fits(LIVES_IN, found):
            return None
        start, end = found.end - len(found.text), found.end
        if self.prose.startswith(", ", end):
            wider = self._town(end + 2, lower) or self.named(end + 2)
            state = _P.STATE.match(self.prose, end + 2)
            if wider is not None and is_place(wider.text):
                end = wider.end
            elif state is not None:
                end = state.end()
        return ClaimValue(self.text[start:end], end)

    def _town(self, at: int, lower: bool) -> ClaimValue | None:
        """Return the known town at a position, with as many words as possible."""
        if self.prose.startswith("the ", at):
            at += 4
        shaped = _P.RIVERSIDE.match(self.prose, at)
        if shaped is not None:
            return ClaimValue(shaped[0], shaped.end())
        match = _P.WORDS.match(self.prose, at)
        if match is None or not (lower or self.prose[at].isupper()):
            return None
        mention = self.mentions.get(at)
        words = match[0].split(" ")
        for size in range(len(words), 0, -1):
            name = " ".join(words[:size]).rstrip(".'’-")
            end = at + len(name)
            if not is_place(name) or self._goes_on(end):
                continue
            # More than the town: "York Minster", "Nice Guys".
            if (mention is not None and mention.end > end) or _P.CAPITAL_NEXT.match(
                self.prose, end
            ):
                return None
            return None if name[0].islower() and looks_ordinary(name) else ClaimValue(name, end)
        return None

    def title(self, at: int) -> ClaimValue | None:
        """Return the title at a position: in quotes, or in capitalised words."""
        quoted = _P.QUOTED.match(self.text, at)
        if quoted is not None:
            return ClaimValue(quoted[1], quoted.end())
        match = _P.TITLE.match(self.prose, at)
        if match is None or (match[0].isupper() and len(match[0]) >= _SHOUTED_MIN):
            return None
        return ClaimValue(self.text[at : match.end()], match.end())

    def plain(self, kind: str, at: int, end: int) -> ClaimValue | None:
        """Return a favourite that is a plain thing: a colour, a dish."""
        value = _P.PLAIN_VALUE.match(self.prose, at, end)
        if kind not in PLAIN_KINDS or value is None:
            return None
        words = value[1].lower().split()
        ended = words[-1].endswith(_NO_VALUE_ENDINGS) and words[-1] not in _VALUES_ALIKE
        if (ended and kind not in ("sport", "workout")) or not _NO_VALUE.isdisjoint(words):
            return None
        return ClaimValue(value[1], value.end())

    def of_thing(self, words: str, at: int) -> ClaimValue | None:
        """Return the value of a possession at a position: a number, a name, a day."""
        kind = thing_of(words).kind
        if kind in ("person", "name"):
            named = self.named(at)
            if named is None or (kind == "person" and not is_one_named(words, named)):
                return None
            return named
        if kind == "title":
            work = _P.A_WORK.match(self.prose, at)
            return ClaimValue(work["work"], work.end()) if work is not None else None
        match = getattr(_P, f"VALUE_{kind}").match(self.text, at)
        if match is None:
            return None
        value = match[match.lastindex or 0]
        if words.lower() == "number" and sum(map(str.isdigit, value)) < PHONE_DIGITS_MIN:
            return None
        plain_word = value.isalpha() and value.islower()  # "my password is secure"
        return None if kind == "token" and plain_word else ClaimValue(value, match.end())

    def firm(self, at: int) -> ClaimValue | None:
        """Return the name of an employer, also an unusual one."""
        found = self.named(at)
        if found is not None:
            return found
        match = _P.FIRM.match(self.prose, at)
        if match is None or self._goes_on(match.end()):
            return None
        if match["number"] is None and match[0].split()[-1].lower() not in HEADS:
            return None
        return ClaimValue(self.text[match.start("firm") : match.end()], match.end())

    def seat(self, at: int) -> int:
        """Return the end of "in London" after the name of a company."""
        found = self.home(at + 4, lower=False) if self.prose.startswith(" in ", at) else None
        return found.end if found is not None and is_place(found.text) else at

    def _goes_on(self, end: int) -> bool:
        return self.prose[end : end + 1] in ("'", "’", "-", "/")


def fits(relation: str, named: ClaimValue) -> bool:
    """Return whether a named place or firm fits a relation: one can live or work there."""
    word = named.text.lower()
    if relation == LIVES_IN:
        return word in TOWNS or not (named.person or word in BRANDS)
    return not named.person and word not in PLACE_NAMES


CITY, STATE, COUNTRY, CONTINENT = range(4)
_WIDTHS = {
    **dict.fromkeys(places_of("states"), STATE),
    **dict.fromkeys(places_of("countries"), COUNTRY),
    **dict.fromkeys(places_of("continents"), CONTINENT),
}
_SPELLINGS = {
    other: usual
    for usual, *others in sections("language", "place_names.txt")["spellings"]
    for other in others
}


def town_of(words: tuple[str, ...]) -> str:
    """Return the usual name of a town with several names, from its words in lower case."""
    name = " ".join(words)
    return _SPELLINGS.get(name, name)


def width_of(words: tuple[str, ...]) -> int:
    """Return the size class of a place, from its words in lower case; a city by default."""
    return _WIDTHS.get(" ".join(words), CITY)


def is_place(text: str) -> bool:
    """Return whether a place is known: a town, a state, a country, or a place in one of them."""
    if _P.RIVERSIDE.fullmatch(text.partition(", ")[0]) is not None:
        return True
    parts = text.lower().replace("’", "'").split(", ")
    return any(part in TOWNS or width_of(tuple(part.split())) for part in parts)


def may_be_town(text: str) -> bool:
    """Return whether a name may be a town's: not a team's, a tool's or a company's."""
    if _P.TOWN.fullmatch(text) is None or text in ACRONYMS:
        return False
    words = text.lower().replace("-", " ").split()
    return len(text) > 2 and _NO_TOWN.isdisjoint((*words, text.lower()))


def may_employ(text: str) -> bool:
    """Return whether one can work for a named organisation that one joined: not a gym."""
    return _JOINED_FOR_ELSE.isdisjoint(text.lower().split())


def is_known_person(name: str) -> bool:
    """Return whether a name has a known first name."""
    return name.lower().split()[0] in GIVEN_NAMES


def is_one_named(role: str, named: ClaimValue) -> bool:
    """Return whether words name the person in a role such as manager or wife.

    False for ordinary words and descriptions, such as "Great" or "Catholic".
    """
    words = named.text.lower().split()
    if words[0] in GIVEN_NAMES or (named.person and len(words) > 1):
        return named.person
    if role.lower() in _PERHAPS_A_FIRM or words[-1] in HEADS or is_place(named.text):
        return False
    return len(words) <= NAME_WORDS_MAX and all(map(_may_name, named.text.split()))


def _may_name(text: str) -> bool:
    """Return whether an unknown word may be part of a person's name."""
    word = text.lower()
    if len(word) < NAME_CHARS_MIN or _P.ONE_NAME.fullmatch(text) is None:
        return False
    if looks_ordinary(word) or of_a_people(word) or word.endswith(_STATE_ENDINGS):
        return False
    return not any(word in words for words in (_STATES, _NO_TOWN, PHRASES, NEVER, TOWNS))

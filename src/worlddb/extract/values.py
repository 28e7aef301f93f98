"""Values: what stands where a claim expects a name, a place, a title or a number.

V1  A name is what the mentions say. A known town is one also where its name is a word (Nice), and
    in lower case where everything is.
V2  What one *moved* to is a place unless it is known as something else: a team, a tool, a company.
V3  A title is every word with a capital, as long as the statement ends with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from worlddb.claims.claim import LIVES_IN
from worlddb.extract import forms
from worlddb.extract.judge import GIVEN_NAMES
from worlddb.extract.lexicon import cities
from worlddb.extract.lexicon import relations as known
from worlddb.extract.lexicon.known import (
    ACRONYMS,
    BRANDS,
    BRANDS_PERHAPS,
    HEADS,
    NUMBERED,
    PHRASES,
    PLACES,
)
from worlddb.extract.lexicon.ordinary import NEVER, looks_ordinary, of_a_people
from worlddb.extract.mentions import Mention
from worlddb.extract.runs import UPPER
from worlddb.model.regions import width_of

_CITIES = PLACES | cities.CITIES
_NO_TOWN = cities.NO_TOWN | BRANDS | BRANDS_PERHAPS | NUMBERED
_STATE = re.compile(r"[A-Z]{2}(?!\w)")
_WORDS = re.compile(r"[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,3}")
_CAPITAL_NEXT = re.compile(rf"\s+[{UPPER}]")
# Stratford-upon-Avon, Aix-en-Provence: nothing but a town is called so.
_RIVERSIDE = re.compile(
    rf"[{UPPER}]\w+(?:-(?:am|an|aux|by|de|der|du|en|im|in|la|le|les|on|sous|sur|the|under|upon))+"
    rf"-[{UPPER}]\w+"
)
_TOWN = re.compile(
    rf"(?:(?:Mc|Mac|[DL]['’])?[{UPPER}][^\W\dA-Z_]+\.?)"
    rf"(?:[ -](?:[{UPPER}][^\W\dA-Z_]+|de|del|la)){{0,3}}"
)
_TITLE = re.compile(
    rf"(?!I\b)[{UPPER}][\w'’&.-]*\w|(?!I\b)[{UPPER}]"  # the first word, and those after it
)
_TITLE_NEXT = re.compile(
    rf":?\s+(?:(?:a|an|and|at|by|de|for|from|in|la|of|on|the|to|vs|with)\s+)*"
    rf"(?:(?!I\b)[{UPPER}][\w'’&-]*|\d{{1,4}}(?!\w))"
)
_QUOTED = re.compile(rf"[\"“]([{UPPER}][^\"“”\n]{{0,60}}?)[.!,]?[\"”]")
# 7-Eleven, 3M; St. Mary's Hospital.
_FIRM = re.compile(
    rf"(?:the\s+)?(?P<firm>(?P<number>\d{{1,3}}-[{UPPER}][^\W\d_]+|3M(?!\w))"
    rf"|(?:(?:St|Mt|Ft|Dr)\.\s+)?[{UPPER}][\w&]*(?:['’]s)?"
    rf"(?:\s+(?:(?:of|the|for)\s+)?[{UPPER}][\w&]*(?:['’]s)?){{1,4}})"
)
_ONE_NAME = re.compile(rf"[{UPPER}][^\W\d_A-Z]+(?:-[{UPPER}][^\W\d_A-Z]+)?")
TITLE_WORDS_MAX = 8
NAME_WORDS_MAX = 3
NAME_CHARS_MIN = 3
PHONE_DIGITS_MIN = 9
_SHOUTED_MIN = 6


class Named(NamedTuple):
    """A name that stands where a value is expected, where it ends, and whether it is a person's."""

    text: str
    start: int
    end: int
    person: bool


class Values:
    """Reads the values of one masked text, at places that a form leads to."""

    def __init__(self, text: str, plain: str, mentions: Mapping[int, Mention]) -> None:
        self.text = text
        self.prose = plain
        self.mentions = mentions

    def named(self, at: int) -> Named | None:
        """Return the name at a place; an article may come first."""
        if self.prose.startswith("the ", at):
            at += 4
        mention = self.mentions.get(at)
        if mention is None or self._goes_on(mention.end):
            return None
        return Named(mention.text, at, mention.end, mention.person)

    def place(self, at: int, *, lower: bool = False) -> Named | None:
        """Return the name of where somebody lives, with the country after its comma.

        With `lower`, a known town may be written without a capital.
        """
        found = self._town(at, lower) or self.named(at)
        if found is None or not fits(LIVES_IN, found):
            return None
        end = found.end
        if self.prose.startswith(", ", end):
            wider = self._town(end + 2, lower) or self.named(end + 2)
            state = _STATE.match(self.prose, end + 2)
            if wider is not None and is_place(wider.text):
                end = wider.end
            elif state is not None:
                end = state.end()
        return Named(self.text[found.start : end], found.start, end, False)

    def _town(self, at: int, lower: bool) -> Named | None:
        """Return the known town at a place, of as many words as possible."""
        if self.prose.startswith("the ", at):
            at += 4
        shaped = _RIVERSIDE.match(self.prose, at)
        match = shaped or _WORDS.match(self.prose, at)
        if match is None or not (lower or self.prose[at].isupper()):
            return None
        if shaped is not None:
            return Named(shaped[0], at, shaped.end(), False)
        mention = self.mentions.get(at)
        words = match[0].split(" ")
        for size in range(len(words), 0, -1):
            name = " ".join(words[:size]).rstrip(".'’-")
            end = at + len(name)
            if not is_place(name) or self._goes_on(end):
                continue
            # More is meant than the town: "York Minster", "Nice Guys".
            if (mention is not None and mention.end > end) or _CAPITAL_NEXT.match(self.prose, end):
                return None
            if name[0].islower() and looks_ordinary(name):
                return None
            return Named(name, at, end, False)
        return None

    def title(self, at: int) -> Named | None:
        """Return the title at a place: in quotes, or words with capitals."""
        quoted = _QUOTED.match(self.text, at)
        if quoted is not None:
            return Named(quoted[1], quoted.start(1), quoted.end(), False)
        match = _TITLE.match(self.prose, at)
        if match is None:
            return None
        end = match.end()
        for _ in range(TITLE_WORDS_MAX):
            following = _TITLE_NEXT.match(self.prose, end)
            if following is None:
                break
            end = following.end()
        text = self.text[at:end]
        if text.isupper() and len(text) >= _SHOUTED_MIN:
            return None
        return Named(text, at, end, False)

    def plain(self, kind: str, at: int, end: int) -> Named | None:
        """Return the favourite of a kind that is a plain thing: a colour, a dish."""
        value = forms.PLAIN_VALUE.match(self.prose, at, end)
        if kind not in forms.PLAIN_KINDS or value is None:
            return None
        words = value[1].lower().split()
        ended = words[-1].endswith(known.NO_VALUE_ENDINGS) and words[-1] not in known.VALUES_ALIKE
        state = ended and kind not in ("sport", "workout")
        if state or (known.NO_VALUE | known.DOUBTS) & set(words):
            return None
        return Named(value[1], at, value.end(), False)

    def of_thing(self, thing: re.Match[str], at: int) -> tuple[int, str] | None:
        """Return where the value of a thing ends that begins at a place, and what it is."""
        kind = forms.KINDS[thing["thing"].lower()]
        if kind in ("person", "name"):
            named = self.named(at)
            if named is None or (kind == "person" and not is_one_named(thing["thing"], named)):
                return None
            return named.end, named.text
        if kind == "title":
            work = forms.A_WORK.match(self.prose, at)
            return (work.end(), work["work"]) if work is not None else None
        match = forms.VALUES[kind].match(self.text, at)
        if match is None:
            return None
        value = match[match.lastindex or 0]
        if thing["thing"].lower() == "number" and sum(map(str.isdigit, value)) < PHONE_DIGITS_MIN:
            return None  # Of a member, a locker, a ticket.
        plain_word = value.isalpha() and value.islower()  # "my password is secure"
        return None if kind == "token" and plain_word else (match.end(), value)

    def firm(self, at: int) -> Named | None:
        """Return the name of whom one works for, also one that no other name is like."""
        found = self.named(at)
        if found is not None:
            return found
        match = _FIRM.match(self.prose, at)
        if match is None or self._goes_on(match.end()):
            return None
        head = match[0].split()[-1].lower()
        if match["number"] is None and head not in HEADS:
            return None
        return Named(self.text[match.start("firm") : match.end()], at, match.end(), False)

    def seat(self, at: int) -> int:
        """Return where "in London" ends after the name of a company."""
        found = self.place(at + 4) if self.prose.startswith(" in ", at) else None
        return found.end if found is not None and is_place(found.text) else at

    def _goes_on(self, end: int) -> bool:
        return self.prose[end : end + 1] in ("'", "’", "-", "/")


def fits(relation: str, named: Named) -> bool:
    """Return whether one can live in what is named, or work there."""
    word = named.text.lower()
    if relation == LIVES_IN:
        return word in _CITIES or not (named.person or word in BRANDS)
    return not named.person and word not in PLACES


def is_place(text: str) -> bool:
    """Return whether a place is known: a town, a state, a country, or one in a known one."""
    if _RIVERSIDE.fullmatch(text.partition(", ")[0]) is not None:
        return True
    parts = text.lower().replace("’", "'").split(", ")
    return any(part in _CITIES or width_of(tuple(part.split())) for part in parts)


def is_one_named(role: str, named: Named) -> bool:
    """Return whether a name is that of somebody's manager or wife, known as a person's or not.

    Not if it is a word, or says how somebody is: no "Great", no "Catholic".
    """
    words = named.text.lower().split()
    if words[0] in GIVEN_NAMES or (named.person and len(words) > 1):
        return named.person
    if role.lower() in known.PERHAPS_A_FIRM or words[-1] in HEADS or is_place(named.text):
        return False
    return len(words) <= NAME_WORDS_MAX and all(map(_may_name, named.text.split()))


def is_known_person(name: str) -> bool:
    """Return whether somebody is known to be called so: by a first name that people have."""
    return name.lower().split()[0] in GIVEN_NAMES


def _may_name(text: str) -> bool:
    """Return whether a word that nobody knows may be a part of somebody's name."""
    word = text.lower()
    if (
        len(word) < NAME_CHARS_MIN
        or _ONE_NAME.fullmatch(text) is None
        or looks_ordinary(word)
        or of_a_people(word)
    ):
        return False
    told = word in known.HOW_ONE_IS or word.endswith(known.HOW_ONE_IS_ENDINGS)
    return not told and word not in _NO_TOWN | PHRASES | NEVER | _CITIES


def may_employ(text: str) -> bool:
    """Return whether one who joined what is named may work there: no gym, and no network."""
    return forms.JOINED_FOR_ELSE.isdisjoint(text.lower().split())


def may_be_town(text: str) -> bool:
    """Return whether a name may be that of a town: not one of a team, a tool or a company."""
    if _TOWN.fullmatch(text) is None or text in ACRONYMS:
        return False
    words = text.lower().replace("-", " ").split()
    return len(text) > 2 and _NO_TOWN.isdisjoint((*words, text.lower()))

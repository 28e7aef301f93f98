"""Claims: which sentences say, without any doubt, what somebody has one of at a time.

    I moved to Oslo last week.        the speaker   lives in       Oslo     since 2023-04-30
    Sarah now works at Kolibri.       Sarah         works at       Kolibri
    My favourite colour is green.     the speaker   favorite color green
    I no longer work at Tern.         the speaker   works at       no longer Tern

C1  A claim is a whole sentence or clause that fits one of a few forms from its first word on:
    what is asked, supposed, planned, quoted, told by another, or was so once, fits none.
C2  What one can have several of is never a claim: places visited, friends, languages, likes.
C3  Two claims of one message that exclude each other are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from worlddb.extract import forms
from worlddb.extract.dates import Dated
from worlddb.extract.lexicon import relations as known
from worlddb.extract.lexicon.known import BRANDS, PLACES
from worlddb.extract.mask import BLOT, in_quotes
from worlddb.extract.mentions import Mention
from worlddb.extract.naming import SPEAKER
from worlddb.extract.statements import Rest, Sentence, is_doubtful, rest_of, sentences_in
from worlddb.model.claims import LIVES_IN, agree
from worlddb.model.regions import width_of

WORKS_AT, JOB_TITLE, AGE = "works at", "job title", "age"
_BLOTTED_END = re.compile(rf"{BLOT}(?=\s|\Z)")
_CITIES = PLACES | known.CITIES
_STATE = re.compile(r"[A-Z]{2}(?!\w)")


class Found(NamedTuple):
    """A claim of the speaker or of a mention (by number), where it stands, and since when."""

    owner: str | int
    relation: str
    value: str
    was: str
    start: int
    end: int
    since: date | None

    @property
    def vague(self) -> bool:
        """Whether it is a place of which nobody knows if it is a district or a country."""
        return self.relation == LIVES_IN and bool(self.value) and not _is_place(self.value)


class _Place(NamedTuple):
    """Where a claim may begin: a sentence, whose it is, and where the words after them begin."""

    sentence: Sentence
    begin: int
    owner: str | int
    at: int


class _Named(NamedTuple):
    """A name that stands where a value is expected, and what of the text belongs to it."""

    mention: Mention
    end: int
    text: str


class _Reader:
    """Reads the claims of one masked text."""

    def __init__(
        self, text: str, plain: str, mentions: Sequence[Mention], dates: Sequence[Dated]
    ) -> None:
        self.text = text
        # A masked address holds the full stop after it.
        self.plain = _BLOTTED_END.sub(lambda match: text[match.start()], plain)
        self.all = mentions
        self.mentions = {each.start: (number, each) for number, each in enumerate(mentions)}
        self.dates = {each.start: each for each in dates}

    def found(self) -> Iterator[Found]:
        """Yield the claims of each sentence, one for each place where one may begin."""
        for sentence in sentences_in(self.plain, self.all):
            if forms.HINT.search(self.plain, sentence.start, sentence.end) is None:
                continue
            for begin in sentence.begins:
                if not in_quotes(self.plain, begin):
                    yield from self._at(sentence, begin)

    def _at(self, sentence: Sentence, begin: int) -> Iterator[Found]:
        who = forms.WHO.match(self.plain, begin, sentence.end)
        whose = forms.WHOSE.match(self.plain, begin, sentence.end)
        number, mention = self.mentions.get(begin, (0, None))
        if who is not None:
            yield from self._doing(_Place(sentence, begin, SPEAKER, who.end()))
        elif whose is not None:
            yield from self._having(_Place(sentence, begin, SPEAKER, whose.end()))
        elif mention is not None and mention.person:
            role = forms.MY_ROLE.match(self.plain, mention.end, sentence.end)
            if role is not None:
                place = _Place(sentence, begin, SPEAKER, role.end())
                value, was = ("", mention.text) if role["gone"] else (mention.text, "")
                yield from self._ended(place, role.end(), relation_of(role["role"]), value, was)
                return
            yield from self._doing(_Place(sentence, begin, number, mention.end))
            owned = forms.POSSESSED.match(self.plain, mention.end, sentence.end)
            if owned is not None:
                yield from self._having(_Place(sentence, begin, number, owned.end()))

    # -- what somebody does ------------------------------------------------------------------------

    def _doing(self, place: _Place) -> Iterator[Found]:
        readers: tuple[Callable[[_Place], Iterator[Found]], ...] = (
            *(self._left, self._residence, self._moving, self._employment, self._joining),
            *(self._switching, self._occupation, self._aging, self._changing),
        )
        for read in readers:
            for found in read(place):
                yield found
                return

    def _left(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.LEFT, place)
        value = self._named(match.end()) if match is not None else None
        if match is None or value is None:
            return
        home = any(match[group] for group in ("home1", "home2", "home3"))
        relation, at = LIVES_IN if home else WORKS_AT, value.end
        over = forms.ANY_MORE.match(self.plain, at, place.sentence.end)
        if match["not"] and over is None:
            return
        at = over.end() if over is not None else at
        if _fits(relation, value.mention):
            yield from self._ended(place, at, relation, "", value.text)

    def _residence(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.LIVES, place)
        lasts = match is None
        match = match or self._match(forms.LIVED, place)
        value = self._place_named(match.end()) if match is not None else None
        if value is not None:
            yield from self._ended(place, value.end, LIVES_IN, value.text, lasts=lasts)

    def _moving(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.MOVED, place)
        if match is None:
            return
        at, was = self._origin(match.end())
        value = self._place_named(at) if at is not None else None
        # One moves to another tool, too: "we moved to Linux".
        if value is not None and (match["surely"] or _is_place(value.text) or _is_place(was)):
            yield from self._ended(place, value.end, LIVES_IN, value.text, was)

    def _origin(self, at: int) -> tuple[int | None, str]:
        """Return where the words after "from A to" begin, and A; None if nothing leads there."""
        was = ""
        start = forms.FROM.match(self.plain, at)
        if start is not None:
            named = self._named(start.end())
            if named is None:
                return None, ""
            at, was = named.end, named.text
        towards = forms.TO.match(self.plain, at)
        return (towards.end() if towards is not None else None), was

    def _employment(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.WORKS, place)
        lasts = match is None
        match = match or self._match(forms.WORKED, place)
        value = self._named(match.end()) if match is not None else None
        if value is not None and _fits(WORKS_AT, value.mention):
            at = self._seat(value.end)
            yield from self._ended(place, at, WORKS_AT, value.text, lasts=lasts)

    def _joining(self, place: _Place) -> Iterator[Found]:
        """Read "I joined Kolibri as a designer"; one joins a gym as well."""
        match = self._match(forms.JOINED, place)
        value = self._named(match.end()) if match is not None else None
        if value is None or not _fits(WORKS_AT, value.mention):
            return
        work = forms.AS_WORK.match(self.plain, value.end, place.sentence.end)
        if work is not None:
            yield from self._ended(place, work.end(), WORKS_AT, value.text)

    def _switching(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.SWITCHED, place)
        at, was = self._origin(match.end()) if match is not None else (None, "")
        value = self._named(at) if at is not None else None
        if value is not None and _fits(WORKS_AT, value.mention):
            yield from self._ended(place, value.end, WORKS_AT, value.text, was)

    def _occupation(self, place: _Place) -> Iterator[Found]:
        # "I'm a nurse now": without "now" one may be many things.
        match = self._match(forms.IS_NOW_WORK, place) or self._match(forms.IS_WORK_NOW, place)
        if match is None or known.OCCUPATION_NOT & set(match["work"].lower().split()):
            return
        end = match.end()
        at = forms.WORK_AT.match(self.plain, end, place.sentence.end)
        where = self._named(at.end()) if at is not None else None
        rest = self._rest(place, where.end if where is not None else end)
        if rest is not None:
            end = end if where is not None else rest.end
            yield Found(
                place.owner, JOB_TITLE, match["work"], "", self._start(place), end, rest.since
            )

    def _aging(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.AGED, place)
        if match is not None:
            yield from self._ended(place, match.end(), AGE, match["age"] or match["turned"])

    def _changing(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.CHANGED, place)
        thing = forms.THING.match(self.plain, match.end()) if match is not None else None
        if thing is not None:
            yield from self._altered(place, thing, thing.end())

    # -- what somebody has -------------------------------------------------------------------------

    def _having(self, place: _Place) -> Iterator[Found]:
        favourite = self._match(forms.FAVOURITE, place)
        if favourite is not None:
            yield from self._favourite(place, favourite)
            return
        thing = self._match(forms.THING, place)
        if thing is None:
            return
        changed = forms.HAS_CHANGED.match(self.plain, thing.end(), place.sentence.end)
        if changed is not None:
            yield from self._altered(place, thing, changed.end())
            return
        joined = forms.IS.match(self.plain, thing.end(), place.sentence.end)
        value = self._value(thing, joined.end()) if joined is not None else None
        if value is not None:
            yield from self._ended(place, value[0], relation_of(thing["thing"]), value[1])

    def _altered(self, place: _Place, thing: re.Match[str], at: int) -> Iterator[Found]:
        """Read the values after "I changed my email" or "my email has changed"."""
        was = ""
        start = forms.FROM.match(self.plain, at, place.sentence.end)
        if start is not None:
            first = self._value(thing, start.end())
            if first is None:
                return
            at, was = first
        towards = forms.TO.match(self.plain, at, place.sentence.end)
        value = self._value(thing, towards.end()) if towards is not None else None
        if value is not None:
            yield from self._ended(place, value[0], relation_of(thing["thing"]), value[1], was)

    def _favourite(self, place: _Place, match: re.Match[str]) -> Iterator[Found]:
        joined = forms.IS.match(self.plain, match.end(), place.sentence.end)
        if joined is None:
            return
        kind = " ".join(match["kind"].lower().split())
        relation = f"favorite {kind}".replace("colour", "color").replace("flavour", "flavor")
        named = self._named(joined.end())
        if named is not None:
            yield from self._ended(place, named.end, relation, named.text)
            return
        value = forms.PLAIN_VALUE.match(self.plain, joined.end(), place.sentence.end)
        if kind not in forms.PLAIN_KINDS or value is None:
            return
        words = value[1].lower().split()
        told = words[-1].endswith(known.NO_VALUE_ENDINGS) and kind not in ("sport", "workout")
        if not told and not (known.NO_VALUE | known.DOUBTS) & set(words):
            yield from self._ended(place, value.end(), relation, value[1])

    # -- values ------------------------------------------------------------------------------------

    def _value(self, thing: re.Match[str], at: int) -> tuple[int, str] | None:
        """Return where the value of a thing ends that begins at a place, and what it is."""
        kind = forms.KINDS[thing["thing"].lower()]
        if kind in ("person", "name"):
            named = self._named(at)
            if named is None or (kind == "person" and not named.mention.person):
                return None
            return named.end, named.text
        if kind == "title":
            work = forms.A_WORK.match(self.plain, at)
            return (work.end(), work["work"]) if work is not None else None
        match = forms.VALUES[kind].match(self.text, at)
        if match is None:
            return None
        value = match[match.lastindex or 0]
        plain_word = value.isalpha() and value.islower()  # "my password is secure"
        return None if kind == "token" and plain_word else (match.end(), value)

    def _named(self, at: int) -> _Named | None:
        """Return the name at a place; an article may come first."""
        if self.plain.startswith("the ", at):
            at += 4
        _, mention = self.mentions.get(at, (0, None))
        if mention is None or self.plain[mention.end : mention.end + 1] in ("'", "’", "-", "/"):
            return None
        return _Named(mention, mention.end, mention.text)

    def _place_named(self, at: int) -> _Named | None:
        """Return the name of where somebody lives, with the country after its comma."""
        found = self._named(at)
        if found is None or not _fits(LIVES_IN, found.mention):
            return None
        mention, end, _ = found
        if self.plain.startswith(", ", end):
            _, wider = self.mentions.get(end + 2, (0, None))
            state = _STATE.match(self.plain, end + 2)
            if wider is not None and _is_place(wider.text):
                end = wider.end
            elif state is not None:
                end = state.end()
        return _Named(mention, end, self.text[mention.start : end])

    def _seat(self, at: int) -> int:
        """Return where "in London" ends after the name of a company."""
        found = self._named(at + 4) if self.plain.startswith(" in ", at) else None
        return found.end if found is not None and _is_place(found.text) else at

    # -- the sentence around -----------------------------------------------------------------------

    def _match(self, pattern: re.Pattern[str], place: _Place) -> re.Match[str] | None:
        return pattern.match(self.plain, place.at, place.sentence.end)

    def _start(self, place: _Place) -> int:
        first = place.begin == place.sentence.begins[0]
        return place.sentence.start if first else place.begin

    def _rest(self, place: _Place, at: int) -> Rest | None:
        sentence = place.sentence
        rest = rest_of(self.plain, at, sentence, self.dates)
        if rest is None:
            return None
        before, after = (
            self.plain[sentence.start : place.begin],
            self.plain[rest.end : sentence.end],
        )
        return None if is_doubtful(before) or is_doubtful(after) else rest

    def _ended(
        self,
        place: _Place,
        at: int,
        relation: str,
        value: str,
        was: str = "",
        *,
        lasts: bool = False,
    ) -> Iterator[Found]:
        """Yield a claim that goes up to `at`, if its sentence ends there or goes on well.

        What `lasts` has to say for how long: who has lived in Rome may have left.
        """
        rest = self._rest(place, at)
        if rest is not None and (rest.lasting or rest.bounded if lasts else not rest.lasting):
            start = self._start(place)
            yield Found(place.owner, relation, value, was, start, rest.end, rest.since)


def _fits(relation: str, mention: Mention) -> bool:
    """Return whether one can live in what is named, or work there."""
    word = mention.text.lower()
    if relation == LIVES_IN:
        return word in PLACES or not (mention.person or word in BRANDS)
    return not mention.person and word not in PLACES


def relation_of(words: str) -> str:
    """Return the one name of a relation that has several."""
    said = " ".join(words.lower().split())
    return known.SAME_RELATION.get(said, said)


def _is_place(text: str) -> bool:
    parts = text.lower().split(", ")
    return any(part in _CITIES or width_of(tuple(part.split())) for part in parts)


def claims_in(
    text: str, plain: str, mentions: Sequence[Mention], dates: Sequence[Dated]
) -> list[Found]:
    """Return the claims of a text, in order; `plain` is the text with what is no prose masked."""
    if forms.HINT.search(plain) is None:
        return []
    found = list(_Reader(text, plain, mentions, dates).found())
    return [one for one in found if not any(_clash(one, other) for other in found)]


def _clash(one: Found, other: Found) -> bool:
    if (one.owner, one.relation) != (other.owner, other.relation):
        return False
    return bool(one.value and other.value) and not agree(one.value, other.value)

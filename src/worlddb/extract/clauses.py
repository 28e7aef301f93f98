"""Clauses: one claim after another, each read from the first word of its clause on.

    I live in Oslo, and I work at Kolibri.      two clauses, each with its subject
    I live in Oslo and work at Kolibri.         two that share one

L1  A clause is read if one of the forms fits it, and if it ends there or goes on in a known way.
L2  What goes on after "and" or "but" with another claim of the same subject is known; what is said
    no longer to be so, or in doubt, lends its subject to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from worlddb.extract import forms
from worlddb.extract.dates import Dated
from worlddb.extract.lexicon import relations as known
from worlddb.extract.lexicon.relations import favourite_of, relation_of
from worlddb.extract.mask import BLOT, in_quotes
from worlddb.extract.mentions import Mention
from worlddb.extract.naming import SPEAKER
from worlddb.extract.statements import (
    Rest,
    Sentence,
    is_doubtful,
    is_passing,
    rest_of,
    sentences_in,
)
from worlddb.extract.values import Named, Values, fits, is_place, may_be_town, may_employ
from worlddb.model.claims import JOB_TITLE, LIVES_IN

WORKS_AT, AGE = "works at", "age"
_BLOTTED_END = re.compile(rf"{BLOT}(?=\s|\Z)")


class Found(NamedTuple):
    """A claim of the speaker or of a mention (by number), where it stands, and since when.

    One that `yields` may be replaced, and replaces nothing itself.
    """

    owner: str | int
    relation: str
    value: str
    was: str
    start: int
    end: int
    since: date | None
    yields: bool = False

    @property
    def vague(self) -> bool:
        """Whether it is a place of which nobody knows if it is a district or a country."""
        return self.relation == LIVES_IN and bool(self.value) and not is_place(self.value)


class _Place(NamedTuple):
    """Where a claim may begin: a sentence, whose it is, and where the words after them begin."""

    sentence: Sentence
    begin: int
    owner: str | int
    at: int


class Clauses:
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
        self.values = Values(text, self.plain, {each.start: each for each in mentions})
        self._read: dict[tuple[str | int, int], list[Found]] = {}

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
            *(self._left, self._quitting, self._residence, self._moving, self._employment),
            *(self._joining, self._switching, self._occupation, self._working, self._aging),
            self._changing,
        )
        for read in readers:
            if found := list(read(place)):
                yield from found
                yield from self._onward(place, found[-1].end)
                return

    def _onward(self, place: _Place, at: int) -> list[Found]:
        """Return what a clause claims that goes on at `at` about the same subject."""
        match = forms.AND.match(self.plain, at, place.sentence.end)
        if match is None or (match["who"] and place.owner != SPEAKER):
            return []
        begin = match.start("who") if match["who"] else match.end()
        while self.plain[begin].isspace():
            begin += 1
        key = place.owner, match.end()
        if key not in self._read:
            self._read[key] = []  # Each clause is read once, however often it is come to.
            onward = _Place(place.sentence, begin, place.owner, match.end())
            self._read[key] = list(self._doing(onward))
        return self._read[key]

    def _left(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.LEFT, place)
        if match is None:
            return
        home = any(match[group] for group in ("home1", "home2", "home3"))
        relation = LIVES_IN if home else WORKS_AT
        value = self._home(place, match.end()) if home else self.values.named(match.end())
        if value is None:
            return
        at = value.end
        over = forms.ANY_MORE.match(self.plain, at, place.sentence.end)
        if match["not"] and over is None:
            return
        at = over.end() if over is not None else at
        if fits(relation, value):
            yield from self._ended(place, at, relation, "", value.text)

    def _quitting(self, place: _Place) -> Iterator[Found]:
        """Read "I quit Tern and joined Ibis": it ends Tern alone; one quits a gym as well."""
        match = self._match(forms.QUIT, place)
        old = self.values.named(match.end()) if match is not None else None
        if match is None or old is None or not fits(WORKS_AT, old):
            return
        onward = forms.AND_JOINED.match(self.plain, old.end, place.sentence.end)
        new = self.values.title(onward.end()) if onward is not None else None
        if onward is not None and onward["for"]:
            new = self.values.named(onward.end())
        if new is None or not fits(WORKS_AT, new):
            if not match["left"]:
                yield from self._ended(place, old.end, WORKS_AT, "", old.text)
            return
        work = forms.AS_WORK.match(self.plain, new.end, place.sentence.end)
        at = work.end() if work is not None else new.end
        for found in self._ended(place, at, WORKS_AT, "", old.text):
            yield found
            if may_employ(old.text) and may_employ(new.text):
                yield found._replace(value=new.text, was="", yields=True)

    def _residence(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.LIVES, place)
        lasts = match is None
        match = match or self._match(forms.LIVED, place)
        value = self._home(place, match.end()) if match is not None else None
        if value is not None:
            yield from self._ended(place, value.end, LIVES_IN, value.text, lasts=lasts)

    def _home(self, place: _Place, at: int) -> Named | None:
        """Return the place at `at`; who writes "i" writes "rome"."""
        return self.values.place(at, lower=self.plain[place.sentence.start].islower())

    def _moving(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.MOVED, place)
        if match is None:
            return
        at, was = self._origin(place, match.end())
        value = self._home(place, at) if at is not None else None
        if value is None:
            return
        # One moves to another tool, too, and a team does: "we moved to Linux".
        sure = match["surely"] or is_place(value.text) or is_place(was)
        alone = place.owner == SPEAKER and self.plain[place.begin] in "iI"
        if sure or (alone and not was and may_be_town(value.text)):
            yield from self._ended(place, value.end, LIVES_IN, value.text, was)

    def _origin(self, place: _Place, at: int) -> tuple[int | None, str]:
        """Return where the words after "from A to" begin, and A; None if nothing leads there."""
        was = ""
        start = forms.FROM.match(self.plain, at)
        if start is not None:
            named = self._home(place, start.end()) or self.values.named(start.end())
            if named is None:
                return None, ""
            at, was = named.end, named.text
        towards = forms.TO.match(self.plain, at)
        return (towards.end() if towards is not None else None), was

    def _employment(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.WORKS, place)
        lasts = match is None
        match = match or self._match(forms.WORKED, place)
        value = self.values.named(match.end()) if match is not None else None
        if value is not None and fits(WORKS_AT, value):
            at = self.values.seat(value.end)
            yield from self._ended(place, at, WORKS_AT, value.text, lasts=lasts)

    def _joining(self, place: _Place) -> Iterator[Found]:
        """Read "I joined Kolibri as a designer"; one joins a gym as well."""
        match = self._match(forms.JOINED, place)
        value = self.values.named(match.end()) if match is not None else None
        if value is None or not fits(WORKS_AT, value):
            return
        work = forms.AS_WORK.match(self.plain, value.end, place.sentence.end)
        if work is not None and known.OCCUPATION_NOT.isdisjoint(work["work"].lower().split()):
            yield from self._ended(place, work.end(), WORKS_AT, value.text)

    def _switching(self, place: _Place) -> Iterator[Found]:
        match = self._match(forms.SWITCHED, place)
        at, was = self._origin(place, match.end()) if match is not None else (None, "")
        value = self.values.named(at) if at is not None else None
        if value is not None and fits(WORKS_AT, value):
            yield from self._ended(place, value.end, WORKS_AT, value.text, was)

    def _occupation(self, place: _Place) -> Iterator[Found]:
        # "I'm a nurse now": without "now" one may be many things.
        match = self._match(forms.IS_NOW_WORK, place) or self._match(forms.IS_WORK_NOW, place)
        if match is None or known.OCCUPATION_NOT & set(match["work"].lower().split()):
            return
        end = match.end()
        at = forms.WORK_AT.match(self.plain, end, place.sentence.end)
        where = self.values.named(at.end()) if at is not None else None
        rest = self._rest(place, where.end if where is not None else end)
        if rest is not None:
            end = end if where is not None else rest.end
            yield Found(
                place.owner, JOB_TITLE, match["work"], "", self._start(place), end, rest.since
            )

    def _working(self, place: _Place) -> Iterator[Found]:
        """Read "I'm a nurse": it ends where one is "now a teacher", and ends nothing."""
        match = self._match(forms.IS_WORK, place)
        if match is None:
            return
        words = match["work"].lower().split()
        if not known.OCCUPATION_NOT.isdisjoint(words) or words[-1] in known.OCCUPATION_BESIDE:
            return
        end = match.end()
        at = forms.WORK_AT.match(self.plain, end, place.sentence.end)
        where = self.values.named(at.end()) if at is not None else None
        at_end = where.end if where is not None else end
        for found in self._ended(place, at_end, JOB_TITLE, match["work"]):
            yield found._replace(yields=True)

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
        mine = forms.WHOSE.match(self.text, place.begin) is not None
        # Who says "my name is" may have several; a note about the user tells the one.
        if thing is None or (mine and relation_of(thing["thing"]) in ("name", "first name")):
            return
        changed = forms.HAS_CHANGED.match(self.plain, thing.end(), place.sentence.end)
        if changed is not None:
            yield from self._altered(place, thing, changed.end())
            return
        joined = forms.IS.match(self.plain, thing.end(), place.sentence.end)
        value = self.values.of_thing(thing, joined.end()) if joined is not None else None
        if value is not None:
            yield from self._ended(place, value[0], relation_of(thing["thing"]), value[1])

    def _altered(self, place: _Place, thing: re.Match[str], at: int) -> Iterator[Found]:
        """Read the values after "I changed my email" or "my email has changed"."""
        was = ""
        start = forms.FROM.match(self.plain, at, place.sentence.end)
        if start is not None:
            first = self.values.of_thing(thing, start.end())
            if first is None:
                return
            at, was = first
        towards = forms.TO.match(self.plain, at, place.sentence.end)
        value = self.values.of_thing(thing, towards.end()) if towards is not None else None
        if value is not None:
            yield from self._ended(place, value[0], relation_of(thing["thing"]), value[1], was)

    def _favourite(self, place: _Place, match: re.Match[str]) -> Iterator[Found]:
        joined = forms.IS.match(self.plain, match.end(), place.sentence.end)
        if joined is None:
            return
        kind, relation = " ".join(match["kind"].lower().split()), favourite_of(match["kind"])
        at, end = joined.end(), place.sentence.end
        read = (self.values.named(at), self.values.title(at), self.values.plain(kind, at, end))
        for named in read:
            if named and (found := list(self._ended(place, named.end, relation, named.text))):
                yield from found
                return

    # -- the sentence around -----------------------------------------------------------------------

    def _match(self, pattern: re.Pattern[str], place: _Place) -> re.Match[str] | None:
        return pattern.match(self.plain, place.at, place.sentence.end)

    def _start(self, place: _Place) -> int:
        first = place.begin == place.sentence.begins[0]
        return place.sentence.start if first else place.begin

    def _rest(self, place: _Place, at: int, relation: str = "") -> Rest | None:
        sentence = place.sentence

        def goes_on(end: int) -> bool:
            also_works = relation == LIVES_IN and forms.AND_WORKS.match(self.plain, end)
            return bool(also_works or self._onward(place, end))

        if relation != AGE and is_passing(self.plain, sentence, place.begin, at):
            return None
        rest = rest_of(self.plain, at, sentence, self.dates, goes_on)
        if rest is None or is_doubtful(self.plain[sentence.start : place.begin]):
            return None
        # A claim that follows has been looked at up to its own end.
        sure = self._onward(place, rest.end) or not is_doubtful(self.plain[rest.end : sentence.end])
        return rest if sure else None

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
        rest = self._rest(place, at, relation if value else "")
        if rest is not None and (rest.lasting or rest.bounded if lasts else not rest.lasting):
            start = self._start(place)
            yield Found(place.owner, relation, value, was, start, rest.end, rest.since)

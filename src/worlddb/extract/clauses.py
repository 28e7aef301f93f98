"""Clauses: one claim after another, each read from the first word of its clause on.

I live in Oslo, and I work at Kolibri.      two clauses, each with its subject
I live in Oslo and work at Kolibri.         two that share one
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from worlddb.claims.claim import JOB_TITLE, LIVES_IN
from worlddb.extract import forms
from worlddb.extract.clause import AGE, Found, Place
from worlddb.extract.having import Having
from worlddb.extract.lexicon import relations as known
from worlddb.extract.lexicon.relations import relation_of
from worlddb.extract.mask import in_quotes
from worlddb.extract.naming import SPEAKER
from worlddb.extract.statements import Sentence, sentences_in
from worlddb.extract.usual import Usual
from worlddb.extract.values import fits, is_place, may_be_town, may_employ

WORKS_AT = "works at"


class Clauses(Having, Usual):
    """Reads the claims of one masked text."""

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
            yield from self._doing(Place(sentence, begin, SPEAKER, who.end()))
        elif whose is not None:
            place = Place(sentence, begin, SPEAKER, whose.end())
            yield from self._meeting(place)
            yield from self._having(place)
        elif mention is not None and mention.person:
            role = forms.MY_ROLE.match(self.plain, mention.end, sentence.end)
            if role is not None:
                place = Place(sentence, begin, SPEAKER, role.end())
                value, was = ("", mention.text) if role["gone"] else (mention.text, "")
                yield from self._ended(place, role.end(), relation_of(role["role"]), value, was)
                return
            yield from self._doing(Place(sentence, begin, number, mention.end))
            owned = forms.POSSESSED.match(self.plain, mention.end, sentence.end)
            if owned is not None:
                yield from self._having(Place(sentence, begin, number, owned.end()))

    # -- what somebody does ------------------------------------------------------------------------

    def _doing(self, place: Place) -> Iterator[Found]:
        readers: tuple[Callable[[Place], Iterator[Found]], ...] = (
            *(
                self._left,
                self._leaving,
                self._quitting,
                self._residence,
                self._moving,
                self._employment,
            ),
            *(self._joining, self._switching, self._occupation, self._working, self._aging),
            *(self._changing, self._habit, self._preferring),
        )
        for read in readers:
            if found := list(read(place)):
                yield from found
                yield from self._onward(place, found[-1].end)
                return

    def _left(self, place: Place) -> Iterator[Found]:
        match = self._match(forms.LEFT, place)
        if match is None:
            return
        home = any(match[group] for group in ("home1", "home2", "home3"))
        relation = LIVES_IN if home else WORKS_AT
        value = self._home(place, match.end()) if home else self.values.firm(match.end())
        if value is None:
            return
        at = value.end
        over = forms.ANY_MORE.match(self.plain, at, place.sentence.end)
        if match["not"] and over is None:
            return
        at = over.end() if over is not None else at
        if fits(relation, value):
            yield from self._ended(place, at, relation, "", value.text)

    def _leaving(self, place: Place) -> Iterator[Found]:
        """Read "I left Rome and now live in Lyon"; who left Rome alone may be back at night."""
        match = self._match(forms.LEFT_TOWN, place)
        old = self._home(place, match.end()) if match is not None else None
        if old is None or not is_place(old.text):
            return
        for number, found in enumerate(self._onward(place, old.end)):
            if number == 0:
                if found.relation != LIVES_IN or not found.value or found.was:
                    return
                found = found._replace(was=old.text, start=self._start(place))
            yield found

    def _quitting(self, place: Place) -> Iterator[Found]:
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

    def _residence(self, place: Place) -> Iterator[Found]:
        match = self._match(forms.LIVES, place)
        lasts = match is None
        match = match or self._match(forms.LIVED, place)
        value = self._home(place, match.end()) if match is not None else None
        if value is not None:
            at, was = self._instead(place, value.end, lambda at: self._home(place, at))
            yield from self._ended(place, at, LIVES_IN, value.text, was, lasts=lasts)

    def _moving(self, place: Place) -> Iterator[Found]:
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

    def _origin(self, place: Place, at: int) -> tuple[int | None, str]:
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

    def _employment(self, place: Place) -> Iterator[Found]:
        match = self._match(forms.WORKS, place)
        lasts = match is None
        match = match or self._match(forms.WORKED, place)
        value = self.values.firm(match.end()) if match is not None else None
        if value is not None and fits(WORKS_AT, value):
            at, was = self._instead(place, self.values.seat(value.end), self.values.firm)
            yield from self._ended(place, at, WORKS_AT, value.text, was, lasts=lasts)

    def _joining(self, place: Place) -> Iterator[Found]:
        """Read "I joined Kolibri as a designer"; one joins a gym as well."""
        match = self._match(forms.JOINED, place)
        value = self.values.named(match.end()) if match is not None else None
        if value is None or not fits(WORKS_AT, value):
            return
        work = forms.AS_WORK.match(self.plain, value.end, place.sentence.end)
        if work is not None and known.OCCUPATION_NOT.isdisjoint(work["work"].lower().split()):
            yield from self._ended(place, work.end(), WORKS_AT, value.text)

    def _switching(self, place: Place) -> Iterator[Found]:
        match = self._match(forms.SWITCHED, place)
        at, was = self._origin(place, match.end()) if match is not None else (None, "")
        value = self.values.named(at) if at is not None else None
        if value is not None and fits(WORKS_AT, value):
            yield from self._ended(place, value.end, WORKS_AT, value.text, was)

    def _occupation(self, place: Place) -> Iterator[Found]:
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

    def _working(self, place: Place) -> Iterator[Found]:
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

    def _aging(self, place: Place) -> Iterator[Found]:
        match = self._match(forms.AGED, place)
        if match is not None:
            yield from self._ended(place, match.end(), AGE, match["age"] or match["turned"])

    def _changing(self, place: Place) -> Iterator[Found]:
        match = self._match(forms.CHANGED, place)
        thing = forms.THING.match(self.plain, match.end()) if match is not None else None
        if thing is not None:
            yield from self._altered(place, thing, thing.end())

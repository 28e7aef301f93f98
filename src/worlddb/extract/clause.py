"""Clause: what is read of one clause, and how the sentence around it goes on.

L1  A clause is read if one of the forms fits it, and if it ends there or goes on in a known way.
L2  What goes on after "and" or "but" with another claim of the same subject is known; what is said
    no longer to be so, or in doubt, lends its subject to nothing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from worlddb.claims.claim import LIVES_IN
from worlddb.extract import forms
from worlddb.extract.dates import Dated
from worlddb.extract.mask import BLOT
from worlddb.extract.mentions import Mention
from worlddb.extract.naming import SPEAKER
from worlddb.extract.statements import (
    Rest,
    Sentence,
    is_doubtful,
    is_doubtful_rest,
    is_passing,
    rest_of,
)
from worlddb.extract.values import Named, Values, is_place

AGE = "age"
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


class Place(NamedTuple):
    """Where a claim may begin: a sentence, whose it is, and where the words after them begin."""

    sentence: Sentence
    begin: int
    owner: str | int
    at: int


class Clause(ABC):
    """Reads what one clause claims, for those who know its forms."""

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

    @abstractmethod
    def _doing(self, place: Place) -> Iterator[Found]:
        """Yield what somebody is said to do: `Clauses` knows all the forms."""

    def _onward(self, place: Place, at: int) -> list[Found]:
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
            onward = Place(place.sentence, begin, place.owner, match.end())
            self._read[key] = list(self._doing(onward))
        return self._read[key]

    def _home(self, place: Place, at: int) -> Named | None:
        """Return the place at `at`; who writes "i" writes "rome"."""
        return self.values.place(at, lower=self.plain[place.sentence.start].islower())

    def _instead(
        self, place: Place, at: int, read: Callable[[int], Named | None]
    ) -> tuple[int, str]:
        """Return where ", not Rome" ends that follows a value, and Rome; else the same place."""
        match = forms.NOT_THAT.match(self.plain, at, place.sentence.end)
        other = read(match.end()) if match is not None else None
        if other is None or self.text[at - len(other.text) : at] == other.text:
            return at, ""  # "I work at Tern, not for Tern" says how.
        over = forms.ANY_MORE.match(self.plain, other.end, place.sentence.end)
        return (over.end() if over is not None else other.end), other.text

    def _match(self, pattern: re.Pattern[str], place: Place) -> re.Match[str] | None:
        return pattern.match(self.plain, place.at, place.sentence.end)

    def _start(self, place: Place) -> int:
        first = place.begin == place.sentence.begins[0]
        return place.sentence.start if first else place.begin

    def _rest(self, place: Place, at: int, relation: str = "") -> Rest | None:
        sentence = place.sentence

        def goes_on(end: int) -> bool:
            also_works = relation == LIVES_IN and forms.AND_WORKS.match(self.plain, end)
            return bool(also_works or self._onward(place, end) or self._gone(end))

        if relation != AGE and is_passing(self.plain, sentence, place.begin, at):
            return None
        rest = rest_of(self.plain, at, sentence, self.dates, goes_on)
        if rest is None or is_doubtful(self.plain[sentence.start : place.begin]):
            return None
        # A claim that follows has been looked at up to its own end.
        rest_of_it = self.plain[rest.end : sentence.end]
        return rest if self._onward(place, rest.end) or not is_doubtful_rest(rest_of_it) else None

    def _gone(self, at: int) -> bool:
        """Return whether somebody else is said to have gone: "My boss is Anna, Tom retired"."""
        comma = forms.COMMA.match(self.plain, at)
        _, other = self.mentions.get(comma.end() if comma is not None else -1, (0, None))
        return (
            other is not None
            and other.person
            and forms.GONE.match(self.plain, other.end) is not None
        )

    def _ended(
        self,
        place: Place,
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

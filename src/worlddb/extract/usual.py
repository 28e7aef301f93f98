"""Usual: what somebody eats, drinks and smokes, how they like it, and when they meet.

    I smoke.                        habit of smoking    smoke     yields
    I quit smoking.                 habit of smoking    no longer smoke
    I prefer dark mode.             preferred mode      dark      yields
    I prefer light mode now.        preferred mode      light
    Our standup is now at 10am.     time of standup     10am

One has many habits and preferences, so each is a relation of its own. Only what says that it has
changed replaces anything: who prefers light mode may prefer it here, until it is "now".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from worlddb.extract import forms
from worlddb.extract.clause import Clause, Found, Place
from worlddb.extract.lexicon import usual as known
from worlddb.extract.lexicon.relations import DOUBTS, NO_VALUE

_NO_OBJECT = DOUBTS | NO_VALUE | known.NO_OBJECT
_WORD = re.compile(r"\s+([a-z]+(?:-[a-z]+)*)(?![\w'’-])")
# "At work, I no longer drink coffee": a frame may be where it holds, and nowhere else.
_NO_FRAME = re.compile(
    r"(?:(?:no|nope|yes|ok|okay|well|so|actually|update|correction|fyi|btw|by the way|and|but)\b"
    r"[\s,:!.—–-]*)*",
    re.IGNORECASE,
)
_SINCE = re.compile(
    r"(?:\s+(?:in|since|back in)\s+(?:[A-Z][a-z]+\s+)?\d{4}"
    r"|\s+(?:a|an|one|two|three|four|five|six|ten|\d{1,2})\s+(?:months?|years?)\s+ago"
    r"|\s+last\s+(?:month|year))?[\s.!]*"
)
_SPARE = re.compile(r"\s|(?<=[ap])\.|(?<=m)\.|[:.]00(?=\s?[ap])")  # 9:00 a.m. is 9am
OBJECT_WORDS_MAX = 2


class Usual(Clause):
    """Reads what follows "I" and "our" about what is usual."""

    def _habit(self, place: Place) -> Iterator[Found]:
        """Read "I eat meat", "I no longer eat meat" and "I stopped eating meat"."""
        gave_up = self._match(forms.GAVE_UP, place)
        match = gave_up or self._match(forms.HABIT, place)
        if match is None or not self._stands_alone(place):
            return
        no_more = match.groupdict().get("not")
        verb = known.HABITS[match["verb"].lower()]
        at, what = self._object(match.end(), place.sentence.end)
        over = forms.ANY_MORE.match(self.plain, at, place.sentence.end)
        rest = self.plain[over.end() if over else at : place.sentence.end].strip(" .!")
        # "I stopped eating", "I stopped drinking last night": for a while.
        if not what and (verb == "eat" or (verb == "drink" and rest)):
            return
        if no_more and over is None:
            return
        relation = " ".join(("habit of", known.DOING[verb], what)).strip()
        value = f"{verb} {what}".strip()
        at = over.end() if over is not None else at
        if not match["ends"] and not no_more:
            if over is None and _SINCE.fullmatch(self.plain, at, place.sentence.end) is not None:
                yield from self._ended(place, at, relation, value)
            return
        # What follows may be all that was given up: "coffee with sugar", "so often".
        if _SINCE.fullmatch(self.plain, at, place.sentence.end) is not None:
            yield from self._ended(place, at, relation, "", value)

    def _stands_alone(self, place: Place) -> bool:
        """Return whether nothing comes before a claim that might narrow it, and it is of one."""
        before = self.plain[place.sentence.start : place.begin]
        ours = self.plain[place.begin : place.begin + 3].lower() == "we "
        return not ours and _NO_FRAME.fullmatch(before) is not None

    def _object(self, at: int, end: int) -> tuple[int, str]:
        """Return where the one or two plain words end that a habit is about, and the words."""
        words: list[str] = []
        while len(words) < OBJECT_WORDS_MAX:
            match = _WORD.match(self.plain, at, end)
            if match is None or match[1] in _NO_OBJECT:
                break
            words.append(match[1])
            at = match.end()
        return at, " ".join(words)

    def _preferring(self, place: Place) -> Iterator[Found]:
        """Read "I prefer light mode now"."""
        match = self._match(forms.PREFERS, place)
        if match is None or not self._stands_alone(place):
            return
        relation, value = known.preferred(match["how"], match["what"])
        if not relation:
            return
        if match["gone"]:
            if _SINCE.fullmatch(self.plain, match.end(), place.sentence.end) is not None:
                yield from self._ended(place, match.end(), relation, "", value)
            return
        after = forms.NOW.match(self.plain, match.end(), place.sentence.end)
        for found in self._ended(place, match.end(), relation, value):
            # "I prefer light mode now, but dark mode at night": one has both.
            if found.end == place.sentence.end:
                yield found._replace(yields=not (match["now"] or after))

    def _meeting(self, place: Place) -> Iterator[Found]:
        """Read "our standup is now at 10am", if no day is told: it may be of that day only."""
        match = self._match(forms.MEETING, place)
        if match is None or self.plain[match.end() : place.sentence.end].strip(" .!"):
            return
        if not self._stands_alone(place):
            return
        what = " ".join(match["what"].lower().replace("-", "").split())
        time = _SPARE.sub("", match["time"].lower())
        for found in self._ended(place, match.end(), f"time of {what}", time):
            yield found._replace(yields=not match["now"])

"""English reader: the entry point of the English pack, and the claims in sentences.

    I moved to Oslo last week.        the speaker   lives in       Oslo     since 2023-04-30
    Sarah now works at Kolibri.       Sarah         works at       Kolibri
    My favourite colour is green.     the speaker   favorite color green
    I no longer work at Tern.         the speaker   works at       no longer Tern
    I live in Oslo and work at Tern.  two claims with one subject

Only claims with one value at a time are read, and only from unambiguous sentences.

C1  A claim is a whole sentence or clause that fits one of a few frames from its first word on, and
    ends there or continues in a known way. Questions, suppositions, plans, quotations, reports of
    others and past states fit none; nor does a text after "Translate this:".
C2  A relation with several values is never a claim: places visited, friends, languages, likes.
C3  A claim that the same message takes back ("Just kidding!") does not count.
C4  Each habit or preference is a relation of its own; only a sentence about a change replaces one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import NamedTuple

from worlddb.language.english import claim_values
from worlddb.language.english.claim_values import (
    AGE,
    JOB_TITLE,
    LIVES_IN,
    WORKS_AT,
    ClaimValue,
    ClaimValues,
    fits,
    is_known_person,
    is_place,
    may_be_town,
    may_employ,
)
from worlddb.language.english.english_names import mentions_in
from worlddb.language.english.name_roles import namings_in, relations_in
from worlddb.language.english.prose import (
    BLOT,
    DOUBTS,
    TITLES,
    ClaimRest,
    ClaimSentence,
    Patterns,
    Withdrawals,
    dates_of,
    in_quotes,
    is_doubtful,
    is_doubtful_rest,
    is_passing,
    listed,
    looks_ordinary,
    plain_prose,
    reads_as_english,
    rest_of,
    sentences_in,
)
from worlddb.language.language_reader import SPEAKER, Dated, Mention, StatedClaim

_P = Patterns("claims")

OBJECT_WORDS_MAX = 2  # "red meat"; longer objects may limit what was given up

_NO_OBJECT = DOUBTS | listed("hedges", "no value") | listed("hedges", "no object")


class ClaimPlace(NamedTuple):
    """A possible start of a claim: its sentence, its owner, and the position after the owner."""

    sentence: ClaimSentence
    begin: int
    owner: str | int
    at: int


def claims_in(
    text: str,
    plain: str,
    mentions: Sequence[Mention],
    dates: Sequence[Dated],
    *,
    note: bool = False,
) -> list[StatedClaim]:
    """Return the claims of a text, in order; `plain` is the masked text.

    In a `note` about the speaker the subject may be left out: "Lives in Oslo".
    """
    if (pasted := _P.PASTED.search(plain)) is not None:
        plain = plain[: pasted.end()] + BLOT * (len(plain) - pasted.end())
    if _P.HINT.search(plain) is None:
        return []
    found = list(dict.fromkeys(ClaimReader(text, plain, mentions, dates).found()))
    if note and _P.BARE.match(plain) is not None:
        found += _without_subject(text, plain, mentions, dates)
    if not found:
        return []
    withdrawals = Withdrawals(text)
    return [one for one in found if not withdrawals.include(max(one.end - 1, 0), one.value)]


def _without_subject(
    text: str, plain: str, mentions: Sequence[Mention], dates: Sequence[Dated]
) -> list[StatedClaim]:
    """Return the claims of a text that is a single statement and begins with its verb."""
    subject = "i " if plain.lstrip()[:1].islower() else "I "
    size = len(subject)
    moved = [each._replace(start=each.start + size, end=each.end + size) for each in mentions]
    days = [each._replace(start=each.start + size, end=each.end + size) for each in dates]
    found = list(ClaimReader(subject + text, subject + plain, moved, days).found())
    whole = found and (found[0].start, found[-1].end) == (0, len(plain.rstrip()) + size)
    single = len(list(sentences_in(subject + plain, moved))) == 1
    # "Moved to Falcon" can be about anything.
    if not whole or not single or any(one.vague for one in found):
        return []
    return [one._replace(start=max(one.start - size, 0), end=one.end - size) for one in found]


class ClaimReader:
    """Reads the claims of one masked text."""

    def __init__(
        self, text: str, plain: str, mentions: Sequence[Mention], dates: Sequence[Dated]
    ) -> None:
        self.text = text
        # A masked address holds the full stop after it.
        self.plain = _P.BLOTTED_END.sub(lambda match: text[match.start()], plain)
        self.all = mentions
        self.mentions = {each.start: (number, each) for number, each in enumerate(mentions)}
        self.dates = {each.start: each for each in dates}
        self.values = ClaimValues(text, self.plain, {each.start: each for each in mentions})
        self._read: dict[tuple[str | int, int], list[StatedClaim]] = {}

    def found(self) -> Iterator[StatedClaim]:
        """Yield the claims of each sentence, from each possible start."""
        for sentence in sentences_in(self.plain, self.all):
            if _P.HINT.search(self.plain, sentence.start, sentence.end) is None:
                continue
            for begin in sentence.begins:
                if not in_quotes(self.plain, begin):
                    yield from self._at(sentence, begin)

    def _at(self, sentence: ClaimSentence, begin: int) -> Iterator[StatedClaim]:
        number, mention = self.mentions.get(begin, (0, None))
        if who := _P.WHO.match(self.plain, begin, sentence.end):
            yield from self._doing(ClaimPlace(sentence, begin, SPEAKER, who.end()))
        elif whose := _P.WHOSE.match(self.plain, begin, sentence.end):
            place = ClaimPlace(sentence, begin, SPEAKER, whose.end())
            yield from self._meeting(place)
            yield from self._having(place)
        elif mention is not None and mention.person:
            role = _P.MY_ROLE.match(self.plain, mention.end, sentence.end)
            if role is not None:
                place = ClaimPlace(sentence, begin, SPEAKER, role.end())
                value, was = ("", mention.text) if role["gone"] else (mention.text, "")
                relation = claim_values.thing_of(role["role"]).relation
                yield from self._ended(place, role.end(), relation, value, was)
                return
            yield from self._doing(ClaimPlace(sentence, begin, number, mention.end))
            owned = _P.POSSESSED.match(self.plain, mention.end, sentence.end)
            if owned is not None:
                yield from self._having(ClaimPlace(sentence, begin, number, owned.end()))

    # -- how a clause begins, ends and goes on ---------------------------------------------------

    def _match(self, pattern: re.Pattern[str], place: ClaimPlace) -> re.Match[str] | None:
        return pattern.match(self.plain, place.at, place.sentence.end)

    def _start(self, place: ClaimPlace) -> int:
        first = place.begin == place.sentence.begins[0]
        return place.sentence.start if first else place.begin

    def _onward(self, place: ClaimPlace, at: int) -> list[StatedClaim]:
        """Return the claims of a clause that continues at `at` with the same subject."""
        match = _P.AND.match(self.plain, at, place.sentence.end)
        if match is None or (match["who"] and place.owner != SPEAKER):
            return []
        begin = match.start("who") if match["who"] else match.end()
        while self.plain[begin].isspace():
            begin += 1
        key = place.owner, match.end()
        if key not in self._read:
            self._read[key] = []  # Each clause is read only once.
            onward = ClaimPlace(place.sentence, begin, place.owner, match.end())
            self._read[key] = list(self._doing(onward))
        return self._read[key]

    def _gone(self, at: int) -> bool:
        """Return whether another person is said to have left: "My boss is Anna, Tom retired"."""
        comma = _P.COMMA.match(self.plain, at)
        _, other = self.mentions.get(comma.end() if comma is not None else -1, (0, None))
        if other is None or not other.person:
            return False
        return _P.GONE.match(self.plain, other.end) is not None

    def _rest(self, place: ClaimPlace, at: int, relation: str = "") -> ClaimRest | None:
        sentence = place.sentence

        def goes_on(end: int) -> bool:
            also_works = relation == LIVES_IN and _P.AND_WORKS.match(self.plain, end)
            return bool(also_works or self._onward(place, end) or self._gone(end))

        if relation != AGE and is_passing(self.plain, sentence, place.begin, at):
            return None
        rest = rest_of(self.plain, at, sentence, self.dates, goes_on)
        if rest is None or is_doubtful(self.plain[sentence.start : place.begin]):
            return None
        # A following claim has been read up to its own end.
        rest_of_it = self.plain[rest.end : sentence.end]
        return rest if self._onward(place, rest.end) or not is_doubtful_rest(rest_of_it) else None

    def _ended(
        self,
        place: ClaimPlace,
        at: int,
        relation: str,
        value: str,
        was: str = "",
        *,
        lasts: bool = False,
        yields: bool = False,
    ) -> Iterator[StatedClaim]:
        """Yield a claim that ends at `at`, if its sentence ends there or continues in a known way.

        A claim that `lasts` needs a duration: "I have lived in Rome" may be over.
        """
        rest = self._rest(place, at, relation if value else "")
        if rest is None or not (rest.lasting or rest.bounded if lasts else not rest.lasting):
            return
        vague = relation == LIVES_IN and bool(value) and not is_place(value)
        start = self._start(place)
        yield StatedClaim(
            place.owner, relation, value, was, start, rest.end, rest.since, yields, vague
        )

    def _value(self, place: ClaimPlace, relation: str, at: int) -> ClaimValue | None:
        """Return the home or employer at a position, in lower case if the writer uses it ("i")."""
        if relation == LIVES_IN:
            return self.values.home(at, lower=self.plain[place.sentence.start].islower())
        found = self.values.firm(at)
        return found if found is not None and fits(WORKS_AT, found) else None

    def _origin(
        self, place: ClaimPlace, at: int, read: Callable[[int], ClaimValue | None]
    ) -> tuple[int | None, str]:
        """Return the position after "from A to", and A; None if the text there is different."""
        was = ""
        start = _P.FROM.match(self.plain, at, place.sentence.end)
        if start is not None:
            named = read(start.end())
            if named is None:
                return None, ""
            at, was = named.end, named.text
        towards = _P.TO.match(self.plain, at, place.sentence.end)
        return (towards.end() if towards is not None else None), was

    def _instead(
        self, place: ClaimPlace, at: int, read: Callable[[int], ClaimValue | None]
    ) -> tuple[int, str]:
        """Return the end of ", not Rome" after a value, and Rome; otherwise the same position."""
        match = _P.NOT_THAT.match(self.plain, at, place.sentence.end)
        other = read(match.end()) if match is not None else None
        if other is None or self.text[at - len(other.text) : at] == other.text:
            return at, ""  # "I work at Tern, not for Tern" is about how.
        over = _P.ANY_MORE.match(self.plain, other.end, place.sentence.end)
        return (over.end() if over is not None else other.end), other.text

    # -- what somebody does ----------------------------------------------------------------------

    def _doing(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        for read in (
            *(self._leaving, self._state, self._moving, self._joining, self._occupation),
            *(self._aging, self._changing, self._habit, self._preferring),
        ):
            if found := list(read(place)):
                yield from found
                yield from self._onward(place, found[-1].end)
                return

    def _leaving(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "I left Rome and now live in Lyon", "I quit Tern", "I left Tern and joined Ibis".

        To leave Rome alone may be a trip. To quit ends that work alone, because one also quits, and
        joins, a gym.
        """
        left = self._match(_P.LEFT, place)
        match = left or self._match(_P.QUIT, place)
        if match is None:
            return
        home = self._value(place, LIVES_IN, match.end()) if left else None
        if home is not None and is_place(home.text):
            onward = self._onward(place, home.end)
            first = onward[0] if onward else None
            if first is not None and first.relation == LIVES_IN and first.value and not first.was:
                yield first._replace(was=home.text, start=self._start(place))
                yield from onward[1:]
            return
        old = self.values.named(match.end())
        if old is None or not fits(WORKS_AT, old):
            return
        onward_to = _P.AND_JOINED.match(self.plain, old.end, place.sentence.end)
        new = None
        if onward_to is not None:
            at = onward_to.end()
            new = self.values.named(at) if onward_to["for"] else self.values.title(at)
        if new is None or not fits(WORKS_AT, new):
            if not left:
                yield from self._ended(place, old.end, WORKS_AT, "", old.text)
            return
        work = _P.AS_WORK.match(self.plain, new.end, place.sentence.end)
        at = work.end() if work is not None else new.end
        for found in self._ended(place, at, WORKS_AT, "", old.text):
            yield found
            if may_employ(old.text) and may_employ(new.text):
                yield found._replace(value=new.text, was="", yields=True)

    def _state(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "I live in Rome", "I've worked at Tern since 2020", "I no longer live in Rome"."""
        for frame in claim_values.STATES:
            match = self._match(getattr(_P, frame.pattern), place)
            read = partial(self._value, place, frame.relation)
            value = read(match.end()) if match is not None else None
            if value is None:
                continue
            if not frame.over:
                end = self.values.seat(value.end) if frame.relation == WORKS_AT else value.end
                at, was = self._instead(place, end, read)
                yield from self._ended(
                    place, at, frame.relation, value.text, was, lasts=frame.lasts
                )
                return
            over = _P.ANY_MORE.match(self.plain, value.end, place.sentence.end)
            if over is not None or not frame.denied:
                at = over.end() if over is not None else value.end
                yield from self._ended(place, at, frame.relation, "", value.text)

    def _moving(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "I moved from Rome to Oslo" and "I switched jobs from Tern to Ibis"."""
        moved = self._match(_P.MOVED, place)
        match = moved or self._match(_P.SWITCHED, place)
        if match is None:
            return
        relation = LIVES_IN if moved else WORKS_AT
        read = partial(self._value, place, relation)
        at, was = self._origin(place, match.end(), lambda at: read(at) or self.values.named(at))
        value = read(at) if at is not None else None
        if value is None:
            return
        # One also moves to another tool, and so does a team: "we moved to Linux".
        sure = match is not moved or "relocated" in match[0].lower()
        sure = sure or is_place(value.text) or is_place(was)
        alone = place.owner == SPEAKER and self.plain[place.begin] in "iI"
        if sure or (alone and not was and may_be_town(value.text)):
            yield from self._ended(place, value.end, relation, value.text, was)

    def _joining(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "I joined Kolibri as a designer"; without a role it may be a gym."""
        match = self._match(_P.JOINED, place)
        value = self.values.named(match.end()) if match is not None else None
        if value is None or not fits(WORKS_AT, value):
            return
        work = _P.AS_WORK.match(self.plain, value.end, place.sentence.end)
        if work is not None and claim_values.OCCUPATION_NOT.isdisjoint(
            work["work"].lower().split()
        ):
            yield from self._ended(place, work.end(), WORKS_AT, value.text)

    def _occupation(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "I'm now a nurse"; "I'm a nurse" ends nothing, because one may be several things."""
        changed = self._match(_P.IS_NOW_WORK, place)
        match = changed or self._match(_P.IS_WORK, place)
        yields = changed is None and match is not None and not match["now"]
        if match is None or (yields and match["one"] is None):
            return
        words = match["work"].lower().split()
        beside = yields and words[-1] in claim_values.OCCUPATION_BESIDE
        if beside or not claim_values.OCCUPATION_NOT.isdisjoint(words):
            return
        at = _P.WORK_AT.match(self.plain, match.end(), place.sentence.end)
        where = self.values.named(at.end()) if at is not None else None
        end = where.end if where is not None else match.end()
        for found in self._ended(place, end, JOB_TITLE, match["work"], yields=yields):
            # "I am now a nurse at Tern" may share its subject with the next clause.
            yield found._replace(end=match.end()) if where is not None and not yields else found

    def _aging(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        match = self._match(_P.AGED, place)
        if match is not None:
            yield from self._ended(place, match.end(), AGE, match["age"] or match["turned"])

    def _changing(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        match = self._match(_P.CHANGED, place)
        thing = _P.THING.match(self.plain, match.end()) if match is not None else None
        if thing is not None:
            yield from self._altered(place, thing["thing"], thing.end())

    # -- what is usual -----------------------------------------------------------------------------

    def _habit(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "I eat meat", "I no longer eat meat" and "I stopped eating meat"."""
        match = self._match(_P.GAVE_UP, place) or self._match(_P.HABIT, place)
        if match is None or not self._stands_alone(place):
            return
        verb = claim_values.HABIT_OF[match["verb"].lower()]
        at, what = self._object(match.end(), place.sentence.end)
        over = _P.ANY_MORE.match(self.plain, at, place.sentence.end)
        at = over.end() if over is not None else at
        rest = self.plain[at : place.sentence.end].strip(" .!")
        # "I stopped eating", "I stopped drinking last night": only for a while.
        if not what and (verb == "eat" or (verb == "drink" and rest)):
            return
        ends = bool(match["ends"] or match["not"])
        if (match["not"] or not ends) and (over is None) == ends:
            return
        if _P.SINCE.fullmatch(self.plain, at, place.sentence.end) is None:
            return
        relation = " ".join(("habit of", claim_values.HABITS[verb], what)).strip()
        value = f"{verb} {what}".strip()
        yield from self._ended(place, at, relation, *(("", value) if ends else (value, "")))

    def _stands_alone(self, place: ClaimPlace) -> bool:
        """Return whether nothing before a claim narrows it, and it is about one person."""
        before = self.plain[place.sentence.start : place.begin]
        ours = self.plain[place.begin : place.begin + 3].lower() == "we "
        return not ours and _P.NO_FRAME.fullmatch(before) is not None

    def _object(self, at: int, end: int) -> tuple[int, str]:
        """Return the end of the one or two plain words that a habit is about, and the words."""
        words: list[str] = []
        while len(words) < OBJECT_WORDS_MAX:
            match = _P.OBJECT_WORD.match(self.plain, at, end)
            if match is None or match[1] in _NO_OBJECT:
                break
            words.append(match[1])
            at = match.end()
        return at, " ".join(words)

    def _preferring(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "I prefer light mode now"."""
        match = self._match(_P.PREFERS, place)
        if match is None or not self._stands_alone(place):
            return
        preferred = claim_values.PREFERENCES.get((match["how"].lower(), match["what"].lower()))
        if preferred is None:
            return
        relation, value = preferred
        end = place.sentence.end
        if match["gone"]:
            if _P.SINCE.fullmatch(self.plain, match.end(), end) is not None:
                yield from self._ended(place, match.end(), relation, "", value)
            return
        now = match["now"] or _P.NOW.match(self.plain, match.end(), end)
        for found in self._ended(place, match.end(), relation, value, yields=not now):
            # "I prefer light mode now, but dark mode at night": both are preferences.
            if found.end == end:
                yield found

    def _meeting(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read "our standup is now at 10am" if no day is told: it may be for that day only."""
        match = self._match(_P.MEETING, place)
        if match is None or self.plain[match.end() : place.sentence.end].strip(" .!"):
            return
        if self._stands_alone(place):
            what = " ".join(match["what"].lower().replace("-", "").split())
            time = _P.SPARE.sub("", match["time"].lower())
            yields = not match["now"]
            yield from self._ended(place, match.end(), f"time of {what}", time, yields=yields)

    # -- what somebody has -------------------------------------------------------------------------

    def _having(self, place: ClaimPlace) -> Iterator[StatedClaim]:
        """Read the clause after "my" or "Sarah's"."""
        favourite = self._match(_P.FAVOURITE, place)
        if favourite is not None:
            yield from self._favourite(place, favourite)
            return
        home = self._match(_P.HOME_NOW, place)
        town = self._value(place, LIVES_IN, home.end()) if home is not None else None
        if town is not None:
            if is_place(town.text):  # A home may also be in escrow.
                yield from self._ended(place, town.end, LIVES_IN, town.text)
            return
        match = self._match(_P.THING, place)
        if match is None:
            return
        words, thing = match["thing"], claim_values.thing_of(match["thing"])
        # The speaker may have several names; a note about the user has the one.
        mine = _P.WHOSE.match(self.text, place.begin) is not None
        if mine and thing.relation in ("name", "first name"):
            return
        changed = _P.HAS_CHANGED.match(self.plain, match.end(), place.sentence.end)
        if changed is not None:
            yield from self._altered(place, words, changed.end())
            return
        person = thing.kind == "person"
        name_of = _P.NAME_OF.match(self.plain, match.end()) if person else None
        end = name_of.end() if name_of is not None else match.end()
        joined = _P.IS.match(self.plain, end, place.sentence.end)
        value = self.values.of_thing(words, joined.end()) if joined is not None else None
        if joined is None or value is None:
            return
        at, was = self._instead(place, value.end, lambda at: self.values.of_thing(words, at))
        for found in self._ended(place, at, thing.relation, value.text, was):
            # "My wife is Igbo": an unknown word needs more evidence.
            unknown = person and not (was or name_of or is_known_person(value.text))
            unsure = unknown and _P.NEW.search(self.plain, found.start, found.end) is None
            # "My manager there is Ruth": at one of perhaps several places.
            yield found._replace(yields=unsure or bool(joined["there"]))

    def _altered(self, place: ClaimPlace, words: str, at: int) -> Iterator[StatedClaim]:
        """Read the value after "I changed my email" or "my email has changed"."""
        start, was = self._origin(place, at, lambda at: self.values.of_thing(words, at))
        value = self.values.of_thing(words, start) if start is not None else None
        if value is not None:
            relation = claim_values.thing_of(words).relation
            yield from self._ended(place, value.end, relation, value.text, was)

    def _favourite(self, place: ClaimPlace, match: re.Match[str]) -> Iterator[StatedClaim]:
        joined = _P.IS.match(self.plain, match.end(), place.sentence.end)
        if joined is None:
            return
        kind, at = " ".join(match["kind"].lower().split()), joined.end()
        for named in (
            self.values.named(at),
            self.values.title(at),
            self.values.plain(kind, at, place.sentence.end),
        ):
            relation = claim_values.favourite_of(kind)
            if named and (found := list(self._ended(place, named.end, relation, named.text))):
                yield from found
                return


class EnglishReader:
    """Reads English texts; see `LanguageReader` for the methods."""

    titles: Set[str] = TITLES
    is_ordinary = staticmethod(looks_ordinary)
    reads = staticmethod(reads_as_english)
    plain = staticmethod(plain_prose)
    mentions = staticmethod(mentions_in)
    namings = staticmethod(namings_in)
    dates = staticmethod(dates_of)
    relations = staticmethod(relations_in)
    claims = staticmethod(claims_in)

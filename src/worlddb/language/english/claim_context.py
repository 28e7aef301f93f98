"""Claim context: the sentences of a text, and whether what surrounds a claim leaves it standing.

    "Actually, I now live in Oslo, and I love it."     I live in Rome. Just kidding!
     opening   ╰─── the claim ───╯╰── the rest ──╯      ╰─ the claim ─╯╰ withdrawal ─╯

A sentence that asks, supposes, reports, plans, or says "sometimes" states nothing that is surely so
now; nor does one whose words go on in a way that is not known here. The words that decide are in
`hedges.txt`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import dropwhile
from typing import NamedTuple

from worlddb.language.english.english_words import listed
from worlddb.language.english.grammar import BLOT, Patterns
from worlddb.language.language_reader import Dated, Mention

_P = Patterns("claim_context")

SENTENCE_CHARS_MAX = 400  # longer ones are lists or lack their full stops

DOUBTS = listed("hedges", "doubts")
_FELT = listed("hedges", "felt")
_REMARKS = _FELT | listed("hedges", "remarks")


class ClaimSentence(NamedTuple):
    """A sentence from `start` to `end` of a masked text, and where claims may begin in it."""

    start: int
    end: int
    begins: tuple[int, ...]


class ClaimRest(NamedTuple):
    """How a claim ends: where, since when; whether it says for how long, and "since"."""

    end: int
    since: date | None
    lasting: bool
    bounded: bool


def sentences_in(plain: str, mentions: Sequence[Mention]) -> Iterator[ClaimSentence]:
    """Yield the sentences of a masked text; a full stop in a name does not end one."""
    inside = {place for each in mentions for place in range(each.start, each.end)}
    start = 0
    for match in _P.ENDS.finditer(plain):
        stop = match.start()
        if stop in inside and match.end() - 1 in inside:
            continue
        if match[0] == "." and _P.SHORTENED.search(plain, max(0, stop - 8), stop):
            if _P.SOMETHING.search(plain, match.end()) is not None:
                continue
        yield from _sentence(plain, start, match.end())
        start = match.end()
    yield from _sentence(plain, start, len(plain))


def _sentence(plain: str, start: int, end: int) -> Iterator[ClaimSentence]:
    while start < end and plain[start].isspace():
        start += 1
    while end > start and plain[end - 1].isspace():
        end -= 1
    if not 6 <= end - start <= SENTENCE_CHARS_MAX or "?" in plain[start:end]:
        return
    opening = _P.OPENING.match(plain, start, end)
    begin = opening.end() if opening else start
    later = list(_P.LATER.finditer(plain, begin, end))
    if later and _P.FRAME.match(plain, begin, later[0].end()):
        # "As a child, I moved to Rome, but I live in Oslo now."
        later = list(dropwhile(lambda match: "but" not in match[0], later))
    yield ClaimSentence(start, end, (begin, *(match.end() for match in later)))


def is_doubtful(plain: str) -> bool:
    """Return whether words around a claim make it anything but what is so now."""
    if BLOT in plain or '"' in plain or "“" in plain or _P.NEGATED.search(plain):
        return True
    if _P.CONDITION.match(plain) or _P.PHRASES.search(plain) or _P.FOR_A_TIME.search(plain):
        return True
    # A capital makes a name of it: May, Will. But not of a first word before a comma: Sometimes.
    plain = _P.FIRST_WORD.sub(lambda match: match[0].lower(), plain)
    return not DOUBTS.isdisjoint(_P.WORDS.findall(_P.MADE.sub(" ", plain).replace("’", "'")))


def is_doubtful_rest(plain: str) -> bool:
    """Return whether what follows a claim makes it anything but what is so now."""
    # What others do not do says nothing of who they are: "My boss is Anna, she never answers".
    if _P.OTHERS_DO.match(plain) is not None:
        plain = _P.NOT_DOING.sub(" ", plain)
    return _P.UNDOING.search(plain) is not None or is_doubtful(plain)


def is_passing(plain: str, sentence: ClaimSentence, begin: int, at: int) -> bool:
    """Return whether a claim from `begin` to `at` is told of a short time, or of what is beside."""
    before = plain[sentence.start : begin]
    framed = _P.SUBJECT.search(before) is None  # "On weekdays, …", and no clause of its own
    if framed and _P.ELSEWHERE.match(before) is not None:
        return True
    if _P.EVENT.search(plain, begin, at) is not None:
        return False
    if framed and _P.PASSING.search(before) is not None:
        return True
    # "As a lecturer, on Fridays" is still about the lecturer; "and I ski on Sundays" is not.
    beside = _P.AS.match(plain, at, sentence.end) is not None
    stop = None if beside else _P.CLAUSE_END.search(plain, at, sentence.end)
    end = sentence.end if stop is None else stop.start()
    return bool(_P.PASSING.search(plain, at, end) or _P.BESIDE.match(plain, at, end))


def sounds_passing(quote: str) -> bool:
    """Return whether words of which no more is known may be about a short time only."""
    if _P.EVENT.search(quote) is not None:
        return False
    return bool(_P.PASSING.search(quote) or _P.BESIDE.search(quote))


def is_over(plain: str) -> bool:
    """Return whether words say that something is no longer so, and nothing more doubtful."""
    return _P.OVER.search(plain) is not None and not is_doubtful(_P.OVER.sub(" ", plain))


def rest_of(
    plain: str,
    at: int,
    sentence: ClaimSentence,
    dates: Mapping[int, Dated],
    goes_on: Callable[[int], bool],
) -> ClaimRest | None:
    """Return how a claim ends that goes up to `at`; None if it goes on in an unknown way.

    `goes_on` says whether the caller knows how it does.
    """
    since: date | None = None
    lasting = bounded = False
    end = sentence.end
    while True:
        if match := _P.AROUND.match(plain, at, end):
            at = match.end()
            continue
        if match := _P.LASTING.match(plain, at, end):
            at, lasting = match.end(), True
            continue
        match = _P.DATED.match(plain, at, end)
        if match is not None and (dated := dates.get(match.end())) is not None:
            since = dated.last
            bounded |= "since" in plain[at : dated.start]
            at = dated.end
        elif match := _P.PAST.match(plain, at, end):
            at = match.end()
        else:
            break
    if _P.FULL_STOP.match(plain, at, end):
        return ClaimRest(end, since, lasting, bounded)
    if _P.GOES_ON.match(plain, at, end) or _is_remark(plain, at, end) or goes_on(at):
        return ClaimRest(at, since, lasting, bounded)
    return None


def _is_remark(plain: str, at: int, end: int) -> bool:
    """Return whether a sentence ends with how it feels: "I moved to Oslo, tired but happy"."""
    match = _P.REMARK.match(plain, at, end)
    if match is None:
        return False
    words = match["remark"].replace("’", "'").split()
    felt = False
    for number, word in enumerate(words):
        named = word[:1].isupper() and number and words[number - 1].lower() in _BY_NAMES
        named |= word[:1].isupper() and number > 1 and words[number - 1][:1].isupper()
        if word.lower().rstrip(",") not in _REMARKS and not named:
            return False
        felt |= word.lower().rstrip(",") in _FELT
    return felt


_BY_NAMES = frozenset(("by", "near", "off", "on", "with"))


class Withdrawals:
    """Which sentences of a text take back what was claimed before them.

    A slip ("Wait no, that's Tom's") takes back the claim right before it, a confession ("Just
    kidding!") all that was said.
    """

    def __init__(self, text: str) -> None:
        text = text.replace("’", "'")
        self._text = text
        self._ends: list[int] = []
        self._starts: list[int] = []
        self._confessed = -1
        for end in _P.ENDS.finditer(text):
            start = _P.SOMETHING.search(text, end.end())
            if start is None:
                break
            self._ends.append(end.start())
            self._starts.append(start.start())
            if _P.CONFESSION.match(text, start.start()) is not None:
                self._confessed = end.start()

    def include(self, at: int, value: str) -> bool:
        """Return whether a claim of `value` that goes up to `at` is taken back."""
        if at <= self._confessed:
            return True
        number = bisect_left(self._ends, at)
        if number == len(self._ends):
            return False
        start = self._starts[number]
        if _P.WITHDRAWAL.match(self._text, start) is not None:
            return True
        denied = _P.NOT_NAMED.match(self._text, start)
        return denied is not None and denied[1] in value

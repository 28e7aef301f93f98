"""Statements: the sentences of a text, and what surrounds the words of a claim in one.

    "Actually, I now live in Oslo, and I love it."
     opening   ╰─── the claim ───╯╰── the rest ──╯

A sentence that asks, supposes, reports, plans, or says "sometimes" states nothing that is surely so
now; nor does one whose words go on in a way that is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import dropwhile
from typing import NamedTuple

from worlddb.extract.dates import Dated
from worlddb.extract.lexicon.relations import DOUBTFUL_PHRASES, DOUBTS
from worlddb.extract.lexicon.remarks import HARMLESS, MARKS, UNDOING
from worlddb.extract.mask import BLOT
from worlddb.extract.mentions import Mention

SENTENCE_CHARS_MAX = 400

_ENDS = re.compile(r"[.!?…]+[\"”’')\]]*(?=\s|\Z)|\n+")
_SHORTENED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|st|mt|ft|prof|jr|sr|vs|no|inc|ltd|co|corp|e\.g|i\.e|a\.m|p\.m|approx"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)|\b[A-Z])$",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:[-*•]\s+)?(?:(?:hi|hello|hey|oh|yes|yeah|yep|no|nope|ok|okay|well|so|actually|update|fyi|btw"
    r"|by the way|good news|great news|big news|guess what|note|and|but|anyway|just so you know"
    r"|for the record|correction|reminder|currently|now|nowadays|these days|today|yesterday|finally"
    r"|last (?:week|month|year)|recently|as of (?:today|now)"
    r"|(?:please )?(?:remember|note)(?: that)?|thanks|sure|right|it['’]s official)"
    r"(?:\s+(?:there|everyone|all|[A-Z][a-z]+(?=[,!])))?\s*[,:!.—–-]*\s+){0,3}",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"[,;]\s+(?:(?:and|but|so)\s+)?(?=(?:I|I['’][a-z]+|we|we['’][a-z]+|my|our)\s)"
    r"|\sso\s+(?=(?:my|our)\s+new\s)"
)
# What begins like this is told of another time, by another, or of no time at all.
_FRAME = re.compile(
    r"(?:in(?!\s+(?:other|related|fact|short|the\s+(?:last|past))\b)|during|while|after|before|until"
    r"|once|back|growing\s+up|according|originally|initially|as\s+an?|for\s+(?:an?|some|many|years)"
    r"|at\s+(?:first|(?:the|that)\s+time|school|college|university)"
    r"|(?:[\w-]+\s+){0,3}(?:years|decades)\s+(?:ago|before|earlier))\b[^;]*,\s+\Z"
    r"|[^;]*:\s[^;]*,\s+(?:and\s+|but\s+|so\s+)?\Z",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[a-z]+(?:[-'][a-z]+)*")
_NEGATED = re.compile(r"n['’]t\b|\bno longer\b|\?")
_OVER = re.compile(
    r"\bno longer\b|(?:\b(?:do|does|is|am|are) not|n['’]t)\b(?=.*\bany ?(?:more|longer)\b)"
)
_MADE = re.compile(r"\b(?:was|were) (?=(?:promoted|hired|appointed|transferred|elected)\b)")
_PHRASES = re.compile(rf"\b(?:{DOUBTFUL_PHRASES})\b")

_AROUND = re.compile(
    r",?\s+(?:now|currently|these days|right now|at the moment|again|finally|officially|recently"
    r"|actually|by the way|btw|tbh|fyi"
    r"|lately|just now|today|as of (?:today|now)|earlier this (?:week|month|year)"
    r"|(?:a few|some|several|a couple of|one|two|three) (?:days|weeks|months|week|month|day) ago"
    r"|this (?:week|month|year|morning|spring|summer|fall|autumn|winter))\b"
)
# A date that can be read in two ways says at least that it is past: "last week", on a Sunday.
_PAST = re.compile(
    r",?\s+(?:last (?:night|week|weekend|month|year|spring|summer|fall|autumn|winter"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:a|an) (?:day|week|month|year) ago)\b",
    re.IGNORECASE,
)
_DATED = re.compile(
    r",?\s+(?:(?:back\s+)?(?:in|on|since|as of|from|starting|effective)\s+)?"
    r"(?:(?:early|late|mid)[ -])?(?:the\s+)?"
)
_LASTING = re.compile(
    r"\s+for\s+(?:(?:about|almost|over|nearly|more than|the (?:last|past))\s+)*"
    r"(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|many|several|a few|\d{1,2})?\s*"
    r"(?:years?|months?|weeks?|decades?)(?:\s+and\s+(?:a\s+half|\w+\s+months?))?(?:\s+now)?\b"
)
_FULL_STOP = re.compile(rf"\s*[.!…]*(?:\s*(?:{MARKS}))*[\"”']?\s*\Z")
# What else is said; not one more of the same: "I work for Kolibri and the BBC".
_THEY = r"(?:he|she|they)(?:['’]?(?:s|re|ll|ve|d))?"
_GOES_ON = re.compile(
    r",\s+(?:the\s+)?old\s+(?:one|number|address|email)\s+is\b"
    rf"|,\s+(?:{HARMLESS})(?=\s*[.!…]*(?:\s*(?:{MARKS}))*\s*\Z)"
    r"|\s*(?:[;—–]|\s-)\s*(?:it|it['’]s|[Ii]|[Ii]['’][a-z]+|we|we['’][a-z]+)\b"
    r"|(?:\s*[,;:(—–]|\s+-)?\s+(?:and\s+(?:[Ii]|[Ii]['’][a-z]+|we|we['’][a-z]+|it|it['’]s|he|she|they"
    r"|love|like|am|have|my\s+\w+\s+(?:is|are|has|loves|likes|works|lives))"
    r"|but|so|because|where|which|with|as|thanks\s+to|though|although|after"
    r"|for\s+(?:work|school|love|family|a\s+new\s+job|the\s+job|my\s+(?:new\s+)?(?:job|work|partner"
    r"|wife|husband|family))|to\s+(?:be|live|work|start|study|help))\b"
    r"(?!\s+(?:also|at|in|part|occasionally|before|previously|sometimes)\b)"
)

# A state that is told of so short a time may pass: "I'm based in Berlin this week". What happened
# in that time has happened: "I moved to Berlin this week".
_EVENT = re.compile(
    r"\b(?:moved|relocated|started|began|joined|switched|changed|updated|promoted|turned|quit"
    r"|resigned|left|stopped|gave up|given up|become|no longer|any ?(?:more|longer))\b",
    re.IGNORECASE,
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PASSING = re.compile(
    r"(?<!as of )(?<!since )(?<!starting )(?<!from )(?<!earlier )\b(?:today|tonight|this (?:week"
    r"|weekend|month|year|quarter|term|semester|season|morning|afternoon|evening|spring|summer"
    r"|fall|autumn|winter))\b"
    rf"|\b{_DAY}s\b|\b(?:on|every|each|next|this) {_DAY}\b"
    r"|\b(?:weekdays|weekends|mornings|afternoons|evenings|nights)\b"
    r"|\b(?:times?|days?|hours?|nights?|once|twice) (?:a|per|every|each) (?:week|month|year)\b",
    re.IGNORECASE,
)
# How one works somewhere beside one's work.
_BESIDE = re.compile(
    r",?\s+as\b.*\b(?:volunteer(?:s|ing)?|guest|adjunct|visiting|contractor|freelancer?|substitute"
    r"|seasonal|honorary|mentor|advis[eo]r|trustee|board member|on the side|pro bono|side job)\b",
    re.IGNORECASE,
)
_AS = re.compile(r",?\s+as\s+(?!of\b)")
_SUBJECT = re.compile(r"\b(?:I|we|We|my|My|our|Our)\b")
_ELSEWHERE = re.compile(
    r"(?:tomorrow|next \w+|soon|on (?:paper|weekdays|weekends|" + _DAY + r"s)|part[- ]time"
    r"|(?:every|each|some|most) \w+|at (?:work|home|night)|previously|formerly|temporarily"
    r"|for now|in theory|legally|officially)\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,;:—–(]|\s(?:and|but|because|so|where|which|though|although)\s")


class Sentence(NamedTuple):
    """A sentence from `start` to `end` of a masked text, where claims may begin in it."""

    start: int
    end: int
    begins: tuple[int, ...]


class Rest(NamedTuple):
    """How a claim ends: where, since when; whether it says for how long, and "since"."""

    end: int
    since: date | None
    lasting: bool
    bounded: bool


def sentences_in(plain: str, mentions: Sequence[Mention]) -> Iterator[Sentence]:
    """Yield the sentences of a masked text; a full stop in a name does not end one."""
    inside = {place for each in mentions for place in range(each.start, each.end)}
    start = 0
    for match in _ENDS.finditer(plain):
        stop = match.start()
        if stop in inside and match.end() - 1 in inside:
            continue
        if match[0] == "." and _SHORTENED.search(plain, max(0, stop - 8), stop):
            if plain[match.end() :].strip():
                continue
        yield from _sentence(plain, start, match.end())
        start = match.end()
    yield from _sentence(plain, start, len(plain))


def _sentence(plain: str, start: int, end: int) -> Iterator[Sentence]:
    while start < end and plain[start].isspace():
        start += 1
    while end > start and plain[end - 1].isspace():
        end -= 1
    if not 6 <= end - start <= SENTENCE_CHARS_MAX or "?" in plain[start:end]:
        return
    opening = _OPENING.match(plain, start, end)
    begin = opening.end() if opening else start
    later = list(_LATER.finditer(plain, begin, end))
    if later and _FRAME.match(plain, begin, later[0].end()):
        # "As a child, I moved to Rome, but I live in Oslo now."
        later = list(dropwhile(lambda match: "but" not in match[0], later))
    yield Sentence(start, end, (begin, *(match.end() for match in later)))


# What somebody does not do says nothing of who they are: "My boss is Anna, she never answers".
_THEY_DO = re.compile(rf"[,;—–-]*\s+(?:(?:and|but)\s+)?{_THEY}\s(?!.*\byet\b)")
_NOT_DOING = re.compile(r"\bnever\b|\b(?:do|does|did|ca|can|wo|has|have)(?:n['’]t|\s+not)\b")
_UNDOING = re.compile(UNDOING)
_FIRST_WORD = re.compile(r"\A\s*[A-Z][a-z-]+(?=,)")


def is_doubtful(plain: str) -> bool:
    """Return whether words around a claim make it anything but what is so now."""
    if BLOT in plain or '"' in plain or "“" in plain or _NEGATED.search(plain):
        return True
    # A capital makes a name of it: May, Will. But not of a first word before a comma: Sometimes.
    plain = _FIRST_WORD.sub(lambda match: match[0].lower(), plain)
    words = _WORDS.findall(_MADE.sub(" ", plain).replace("’", "'"))
    first = plain.lstrip()[:24].lower()
    if first.startswith(("if ", "when ", "maybe ", "perhaps ", "imagine ", "suppose ")):
        return True
    return not DOUBTS.isdisjoint(words) or _PHRASES.search(plain) is not None


def is_doubtful_rest(plain: str) -> bool:
    """Return whether what follows a claim makes it anything but what is so now."""
    if _UNDOING.search(plain) is not None:
        return True
    if _THEY_DO.match(plain) is not None:
        plain = _NOT_DOING.sub(" ", plain)
    return is_doubtful(plain)


def is_passing(plain: str, sentence: Sentence, begin: int, at: int) -> bool:
    """Return whether a claim from `begin` to `at` is told of a short time, or of what is beside."""
    before = plain[sentence.start : begin]
    # A frame, and no clause of its own: "On weekdays, …", "On paper, …".
    if _SUBJECT.search(before) is None and _ELSEWHERE.match(before) is not None:
        return True
    if _EVENT.search(plain, begin, at) is not None:
        return False
    if _SUBJECT.search(before) is None and _PASSING.search(before) is not None:
        return True
    # "As a lecturer, on Fridays" is still about the lecturer; "and I ski on Sundays" is not.
    beside = _AS.match(plain, at, sentence.end) is not None
    stop = None if beside else _CLAUSE_END.search(plain, at, sentence.end)
    end = sentence.end if stop is None else stop.start()
    return bool(_PASSING.search(plain, at, end) or _BESIDE.match(plain, at, end))


def sounds_passing(quote: str) -> bool:
    """Return whether words of which no more is known may be about a short time only."""
    if _EVENT.search(quote) is not None:
        return False
    return bool(_PASSING.search(quote) or _BESIDE.search(quote))


def is_over(plain: str) -> bool:
    """Return whether words say that something is no longer so, and nothing more doubtful."""
    return _OVER.search(plain) is not None and not is_doubtful(_OVER.sub(" ", plain))


def rest_of(
    plain: str,
    at: int,
    sentence: Sentence,
    dates: Mapping[int, Dated],
    goes_on: Callable[[int], bool],
) -> Rest | None:
    """Return how a claim ends that goes up to `at`; None if it goes on in an unknown way.

    `goes_on` says whether the caller knows how it does.
    """
    since: date | None = None
    lasting = bounded = False
    end = sentence.end
    while True:
        match = _AROUND.match(plain, at, end)
        if match is not None:
            at = match.end()
            continue
        match = _LASTING.match(plain, at, end)
        if match is not None:
            at, lasting = match.end(), True
            continue
        match = _DATED.match(plain, at, end)
        dated = dates.get(match.end()) if match is not None else None
        if dated is None:
            match = _PAST.match(plain, at, end)
            if match is None:
                break
            at = match.end()
            continue
        since = dated.last
        bounded |= "since" in plain[at : dated.start]
        at = dated.end
    if _FULL_STOP.match(plain, at, end):
        return Rest(end, since, lasting, bounded)
    if _GOES_ON.match(plain, at, end) or goes_on(at):
        return Rest(at, since, lasting, bounded)
    return None

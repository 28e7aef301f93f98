"""Dates: which days, weeks, months and years a text surely speaks of, seen from when it was said.

    "we met last Friday"  ──(said on 2023-05-03)──▶  2023-04-28

Not for questions: there a vague date is a welcome hint (worlddb.language.dates), here it would be
a fact. So there must be one way to read it: "in March" needs a verb that says whether it is past,
"next Friday" a day on which it cannot mean this week's, and "a few days ago" is nothing. A length
of time ("for two weeks") is no date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from worlddb.extract import periods
from worlddb.extract.lexicon.ordinary import STARTERS
from worlddb.extract.mask import in_quotes
from worlddb.extract.periods import Moment, Period
from worlddb.language.dates import MONTHS, NUMBERS, WEEKDAYS

_SHORT = "jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
_MONTH = rf"(?:(?:{'|'.join(MONTHS)})\b|(?:{_SHORT})\b\.?)"
_WEEKDAY = rf"(?:{'|'.join(WEEKDAYS)})\b"
_COUNT = rf"(?:\d{{1,2}}|{'|'.join(word for word in NUMBERS if word not in periods.VAGUE)})"
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"[12]\d{3}"
_STOP = r"(?![\w-]|[/.:,]\d|\s?%)"
_PART = r"(?:(?:early|late|mid)[ -])?"

# Tried in this order at each place. The date itself is the group, what leads to it is before; the
# group closes last, so that it is the match's `lastgroup`.
_GRAMMAR = {
    "iso": r"(?P<iso>\d{4}-\d{2}-\d{2})(?![\d-])",
    "slashed": r"(?P<slashed>\d{4}/\d{1,2}/\d{1,2})(?![\d/])",
    "numeric": r"(?P<numeric>\d{1,2}(?P<sign>[/.-])\d{1,2}(?P=sign)\d{4})(?![\d/-])",
    "day_month": rf"(?:the )?(?P<day_month>{_NTH} (?:of )?{_MONTH}(?:,? (?:of )?{_YEAR})?){_STOP}",
    "month_day": rf"(?P<month_day>{_MONTH} (?:the )?{_NTH}(?:,? (?:of )?{_YEAR})?){_STOP}",
    "month_year": rf"(?P<month_year>{_MONTH},? (?:of )?{_YEAR}){_STOP}",
    "season_year": rf"(?P<season_year>(?:spring|summer|fall|autumn) (?:of )?{_YEAR}){_STOP}",
    "turned": rf"(?P<turned>(?:last|next|this(?: past| coming)?) (?:{_WEEKDAY}|{_MONTH}|(?:weekend"
    r"|week|month|year|night|morning|afternoon|evening|spring|summer|fall|autumn)\b))(?![\w-])",
    "month": rf"(?:in|since|until|till|by|during) {_PART}"
    rf"(?P<month>{_MONTH}){_STOP}(?!,? (?:of )?\d)",
    "weekday": rf"(?:on|see you(?: on)?) (?P<weekday>{_WEEKDAY}){_STOP}",
    "year": r"(?:in|since|until|till|by|before|after|during|year|class of|early|late|mid) "
    rf"{_PART}(?P<year>{_YEAR}){_STOP}",
    "ago": rf"(?P<ago>{_COUNT} (?:days?|weeks?|months?|years?) (?:ago|from (?:now|today)))\b",
    "near": r"(?P<near>the day (?:before yesterday|after tomorrow)|yesterday|today|tonight"
    r"|tomorrow)\b",
}
_DATE = re.compile(rf"(?<![\w/.-])(?:{'|'.join(_GRAMMAR.values())})")
# A quick look: no date is without one of these.
_HINT = re.compile(
    rf"\d|day|night|morrow|\b(?:last|next|this|ago|from|in|since|by)\b|{'|'.join(MONTHS)}"
)
_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}

# Not dates although they look like it: "the last week of", "of yesterday", "about two weeks ago".
_NOT_BEFORE = {
    "turned": re.compile(
        r"\b(?:the|my|our|his|their|your|its|very|first|past|whole|entire|every)\s+$"
    ),
    "ago": re.compile(
        r"(?:[-–—.]|\b(?:about|around|almost|nearly|over|roughly|approximately|maybe|like|some|than"
        r"|least|or|half|and|to|probably|perhaps|another|every)\s+)$"
    ),
    "near": re.compile(r"\b(?:of|better|brighter|a|like|as if|no)\s+(?:(?:just|only|it was)\s+)*$"),
}
# Seen from the day they were said on, which for a quotation is not known.
_RELATIVE = frozenset(("turned", "month", "weekday", "ago", "near", "day_month", "month_day"))
# Hers, unless it is a day: "her last year", but "I saw her last Friday".
_HERS = re.compile(rf"\bher (?:last|next|this) (?!{_WEEKDAY}|night)")
_NOT_AFTER = {
    "turned": re.compile(r"\s+of\b|\s+(?:by|after)\s+(?:year|week|month)\b"),
    "near": re.compile(
        r"['’]s\s+(?:world|society|age|generation|youth|economy|market|leaders|kids)"
    ),
    "weekday": re.compile(
        rf"\s+(?:night|morning|evening|afternoon)s\b|['’]s|,?\s+(?:the\s+\d|{_MONTH}|\d)"
    ),
    "month": re.compile(r"['’]s\b"),
    "month_day": re.compile(
        r"\s*(?:people|persons|times|miles|km|days|weeks|months|years|hours|minutes|dollars|am|pm"
        r"|of\s+(?:us|them|you)|guests|kids|students|pages|laps)\b"
    ),
}
_NEXT_WORD = re.compile(r"\s+([a-z']+)")


class Dated(NamedTuple):
    """A date at `start` to `end` of a text, and the days it spans, first and last."""

    start: int
    end: int
    name: str
    first: date
    last: date


def dates_in(plain: str, said: date) -> Iterator[Dated]:
    """Yield the dates of a masked text that was said on a day, in order."""
    low = plain.lower()
    if len(low) != len(plain):  # A few capitals are longer in lower case.
        low = plain.translate(_ASCII_LOWER)
    if _HINT.search(low) is None:
        return
    for match in _DATE.finditer(low):
        kind = match.lastgroup or ""
        start, end = match.span(kind)
        before, after = _NOT_BEFORE.get(kind), _NOT_AFTER.get(kind)
        if before is not None and before.search(low, max(0, start - 24), start):
            continue
        if kind in _RELATIVE and in_quotes(plain, start):
            continue
        if kind == "turned" and _HERS.search(low, max(0, start - 4), end):
            continue
        if after is not None and after.match(low, end):
            continue
        moment = Moment(low, plain, start, end, match.start(), said)
        period = _period(kind, moment)
        if period is not None:
            end -= plain[end - 1] == "."
            yield Dated(start, end, *period)


def _period(kind: str, moment: Moment) -> Period | None:
    try:
        if kind == "year":
            return _year(moment)
        return periods.READERS[kind](moment)
    except (ValueError, OverflowError):
        return None  # No such day, or one beyond the calendar.


def _year(moment: Moment) -> Period | None:
    """A number after "in" is a year if nothing is counted with it: "in 2000 steps"."""
    year = int(moment.text)
    following = _NEXT_WORD.match(moment.low, moment.end)
    if not 1900 <= year <= 2100 or (following and following[1] not in STARTERS):
        return None
    return periods.year(year)

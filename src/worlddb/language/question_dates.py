"""Question dates: which days a question speaks of, as intervals with a tolerance.

A small grammar for English, on purpose: "three weeks ago", "last Friday", "in the past month",
"May 2023", "the 3rd of June". A question's date is a hint about when something was said or
happened, never a filter: people are wrong about dates, and so are we.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {word: number for number, word in enumerate(_COUNTED.split())}
NUMBERS |= {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 4}
_YEAR = "january february march april may june july august september october november december"
MONTHS = _YEAR.split()
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNIT_DAYS = {"day": 1.0, "week": 7.0, "weekend": 7.0, "month": 30.4, "year": 365.25}
_VAGUE = frozenset({"few", "several"})
_BACK_MAX = 36_500

_COUNT = rf"(\d{{1,4}}|{'|'.join(NUMBERS)})"
_UNIT = rf"({'|'.join(_UNIT_DAYS)})s?"
_AGO = re.compile(rf"\b(?:a\s+)?{_COUNT}\s+(?:of\s+)?{_UNIT}\s+ago\b", re.IGNORECASE)
_PAST = re.compile(
    rf"\b(?:past|last|previous)\s+(?:(?:a\s+)?{_COUNT}\s+(?:of\s+)?)?{_UNIT}\b", re.IGNORECASE
)
_LAST_DAY = re.compile(rf"\b(?:last|past|on)\s+({'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
_YESTERDAY = re.compile(r"\byesterday\b", re.IGNORECASE)
_TODAY = re.compile(r"(?<!before )\btoday\b", re.IGNORECASE)
_IN_MONTH = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?({'|'.join(MONTHS)})\b"
    r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(\d{4}))?",
    re.IGNORECASE,
)
_IN_MAY = re.compile(r"\b(?:in|of|since|during|until)\s+may\b", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")


class DaySpan(NamedTuple):
    """Days that are meant, from the first to the last, and how far off still counts.

    `is_relative` if they were counted back from the day of the question.
    """

    first: date
    last: date
    tolerance_days: float
    is_relative: bool = False


def spans_of(question: str, asked_on: date, years: Sequence[int]) -> list[DaySpan]:
    """Return the days a question speaks of, seen from the day it is asked on.

    A month without a year may be that of any of `years`.
    """

    def back(days: float) -> date:
        # Not before the calendar begins, whatever number somebody wrote.
        days = min(days, _BACK_MAX, asked_on.toordinal() - 1)
        return asked_on - timedelta(days=round(days))

    return [
        *(span._replace(is_relative=True) for span in _relative(question, asked_on, back)),
        *_absolute(question, years),
    ]


def _relative(question: str, asked_on: date, back: Callable[[float], date]) -> Iterator[DaySpan]:
    for match in _AGO.finditer(question):
        unit = _UNIT_DAYS[match[2].lower()]
        day = back(_number(match[1]) * unit)
        if match[1].lower() in _VAGUE:
            yield DaySpan(day, day, unit)
        else:
            yield DaySpan(day, day, max(1.0, unit * (0.43 if unit <= 7 else 0.35)))
    for match in _LAST_DAY.finditer(question):
        passed = (asked_on.weekday() - WEEKDAYS.index(match[1].lower()) - 1) % 7 + 1
        yield DaySpan(back(passed), back(passed), 1.0)
    if _YESTERDAY.search(question):
        yield DaySpan(back(1), back(1), 1.0)
    if _TODAY.search(question):
        yield DaySpan(asked_on, asked_on, 1.0)
    for match in _PAST.finditer(question):
        unit = _UNIT_DAYS[match[2].lower()]
        # "Last week" is loosely used: up to two weeks back.
        length = unit * (_number(match[1]) if match[1] else 2)
        yield DaySpan(back(length), asked_on, max(1.0, 0.15 * length))


def _absolute(question: str, years: Sequence[int]) -> Iterator[DaySpan]:
    for match in _ISO.finditer(question):
        yield from _day(int(match[1]), int(match[2]), int(match[3]))
    for match in _IN_MONTH.finditer(question):
        month = MONTHS.index(match[2].lower()) + 1
        day = match[1] or match[3]
        if month == 5 and not day and not match[4] and not _IN_MAY.search(question):
            continue  # "May I …"
        for year in [int(match[4])] if match[4] else years:
            if day:
                yield from _day(year, month, int(day))
            elif 1 <= year < 9999:
                end = date(year + month // 12, month % 12 + 1, 1)
                # What happened at the end of a month is often told at the beginning of the next.
                yield DaySpan(date(year, month, 1), end + timedelta(days=2), 4.0)


def _day(year: int, month: int, day: int) -> Iterator[DaySpan]:
    try:
        found = date(year, month, day)
        yield DaySpan(found, found + timedelta(days=3), 2.0)
    except (ValueError, OverflowError):
        return  # No such day: the question says something else with these numbers.


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NUMBERS[text.lower()]

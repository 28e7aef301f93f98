"""Date phrases: the days, weeks, months and years in a text, relative to when it was said.

    "we met last Friday"  ──(said on 2023-05-03)──▶  2023-04-28

A date read here becomes a fact, so it must have only one reading. "In March" needs a verb with a
tense, "next Friday" a day on which it cannot mean this week's, and "a few days ago" is not read. A
duration ("for two weeks") is not a date. Questions are read by `ranking_features`, where a vague
date is a useful hint.

A `Period` is a day, a week, a month, a season or a year: a name with a first and a last day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import NamedTuple

from worlddb.language.english.prose import STARTERS, Patterns, hinted_dates, in_quotes
from worlddb.language.language_reader import Dated
from worlddb.language.text_tokens import MONTHS, NUMBERS, WEEKDAYS

_P = Patterns("date_phrases")


# Relative to the day of the text; unknown for a quotation.
_RELATIVE = frozenset(("turned", "month", "weekday", "ago", "near", "day_month", "month_day"))
_NOT_BEFORE = frozenset(("turned", "ago", "near"))
_NOT_AFTER = frozenset(("turned", "near", "weekday", "month", "month_day"))

SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9}
# These are also ordinary words, so they need a capital or a number beside them.
_WORDS_TOO = frozenset((3, 5))
_NAMES_TOO = frozenset((4, 5, 6, 8))
_ROUND_MIN = 10  # from here on, multiples of five are mostly approximate
_AGO_MAX = 60
_UNSAID_DAYS_MAX = 270  # for a day nearly a year away, people say the year
_DAY = timedelta(days=1)
PAST = "past"
FUTURE = "future"
_ENDS = ".!?\n\x00"
SENTENCE_CHARS_MAX = 400  # characters around a date that are searched for its tense


class DateMoment(NamedTuple):
    """A date during reading: its words, its place, and the day of the text."""

    low: str
    plain: str
    start: int
    end: int
    begin: int  # start of the words before it
    said: date

    @property
    def text(self) -> str:
        """The words of the date, in lower case."""
        return self.low[self.start : self.end]

    @property
    def lead(self) -> str:
        """The words before it that the grammar requires: "in", "since", "see you"."""
        return self.low[self.begin : self.start].strip()

    def tense(self) -> str | None:
        """Return the tense of the sentence around it."""
        return tense_around(self.low, self.start, self.end)

    def is_repeated(self) -> bool:
        """Return whether the sentence is about repeated events or a condition."""
        return _P.REPEATED.search(_sentence_around(self.low, self.start, self.end)) is not None


def dates_in(plain: str, said: date, low: str | None = None) -> list[Dated]:
    """Return the dates of a masked text that was said on a day, in order.

    `low` is the result of `hinted_dates` for the text, if it was called before.
    """
    low = hinted_dates(plain) if low is None else low
    return [] if low is None else list(_dates(low, plain, said))


def _dates(low: str, plain: str, said: date) -> Iterator[Dated]:
    for match in _P.DATE.finditer(low):
        kind = match.lastgroup or ""
        start, end = match.span(kind)
        if kind in _NOT_BEFORE:
            if getattr(_P, f"BEFORE_{kind}").search(low, max(0, start - 24), start):
                continue
        if kind in _RELATIVE and in_quotes(plain, start):
            continue
        if kind == "turned" and _P.HERS.search(low, max(0, start - 4), end):
            continue
        if kind in _NOT_AFTER and getattr(_P, f"AFTER_{kind}").match(low, end):
            continue
        moment = DateMoment(low, plain, start, end, match.start(), said)
        period = _period(kind, moment)
        if period is not None:
            end -= plain[end - 1] == "."
            yield Dated(start, end, *period)


def _period(kind: str, moment: DateMoment) -> Period | None:
    try:
        return _READERS[kind](moment)
    except (ValueError, OverflowError):
        return None  # No such day, or one beyond the calendar.


def _year_alone(moment: DateMoment) -> Period | None:
    """Read a number after "in" as a year, unless it counts something: "in 2000 steps"."""
    number = int(moment.text)
    following = _P.NEXT_WORD.match(moment.low, moment.end)
    if not 1900 <= number <= 2100 or (following and following[1] not in STARTERS):
        return None
    return year(number)


def tense_around(low: str, start: int, end: int) -> str | None:
    """Return the tense of the sentence around a date in a text in lower case; None if unsure.

    A repeated event and a condition have no tense here, because they name no single day.
    """
    sentence = _sentence_around(low, start, end)
    if _P.REPEATED.search(sentence) is not None:
        return None
    future = _P.FUTURE_TENSE.search(sentence) is not None
    past = _P.PAST_TENSE.search(_P.STATE.sub(" ", _P.REMARK.sub("", sentence))) is not None
    if past == future:
        return None
    return PAST if past else FUTURE


def _sentence_around(low: str, start: int, end: int) -> str:
    first = max(low.rfind(mark, max(0, start - SENTENCE_CHARS_MAX), start) for mark in _ENDS) + 1
    marks = (low.find(mark, end, end + SENTENCE_CHARS_MAX) for mark in _ENDS)
    last = min(
        (mark for mark in marks if mark >= 0), default=min(len(low), end + SENTENCE_CHARS_MAX)
    )
    return low[max(first, start - SENTENCE_CHARS_MAX) : last]


def _numeric(moment: DateMoment) -> Period | None:
    first, second, year_ = map(int, moment.text.replace(".", "/").replace("-", "/").split("/"))
    if first <= 12 and second <= 12 and first != second:
        return None  # Day and month cannot be distinguished.
    return day(date(year_, *((first, second) if second > 12 else (second, first))))


def _spelled(moment: DateMoment) -> Period | None:
    """Read "May 3rd, 2023", "the 3rd of May", "May 2023"."""
    number, written = _month_of(moment)
    digits = [word.strip(",") for word in moment.text.split() if word[0].isdigit()]
    years = [int(word) for word in digits if len(word) == 4 and word.isdigit()]
    days = [word for word in digits if not (len(word) == 4 and word.isdigit())]
    ordinal = any(not word.isdigit() for word in days)
    if not written and (number in _WORDS_TOO or not (ordinal or years)):
        return None
    if not days:
        return month(years[0], number)
    nth = int(days[0].rstrip("stndrh"))
    if years:
        return day(date(years[0], number, nth))
    tense = PAST if moment.low.endswith("since ", 0, moment.start) else moment.tense()
    if tense is None:
        return None if moment.is_repeated() else _nearest_day(number, nth, moment.said)
    found = date(moment.said.year, number, nth)
    if tense == PAST and found > moment.said:
        found = date(found.year - 1, number, nth)
    if tense == FUTURE and found < moment.said:
        found = date(found.year + 1, number, nth)
    return _near_enough(day(found), moment.said)


def _nearest_day(number: int, nth: int, said: date) -> Period | None:
    """Return the last or the next such day if only one is near enough to omit its year."""
    around = (day(date(said.year + step, number, nth)) for step in (-1, 0, 1))
    near = [one for one in around if _near_enough(one, said) is not None]
    return near[0] if len(near) == 1 else None


def _month_of(moment: DateMoment) -> tuple[int, bool]:
    """Return the number of the month in the words, and whether it has its capital."""
    for word in moment.text.replace(",", " ").split():
        for index, name in enumerate(MONTHS):
            if word == name or (word.strip(".")[:3] == name[:3] and len(word.strip(".")) <= 4):
                at = moment.low.index(word, moment.start)
                return index + 1, moment.plain[at].isupper()
    raise ValueError(f"no month in {moment.text!r}")


def _season_year(moment: DateMoment) -> Period:
    words = moment.text.split()
    return season(int(words[-1]), SEASONS[words[0]])


def _month_alone(moment: DateMoment) -> Period | None:
    """Read "in March": the last or the next one, by the tense of the sentence."""
    number, written = _month_of(moment)
    if not written and (number in _WORDS_TOO or number in _NAMES_TOO):
        return None
    lead = moment.lead.split()[0]
    following = moment.plain[moment.end : moment.end + 2]
    if number in _NAMES_TOO and (lead != "in" or following[1:].isupper()):
        if following[:1].isspace() and not moment.plain[moment.end :].startswith(" I "):
            return None
    tense = {"since": PAST, "until": FUTURE, "till": FUTURE, "by": FUTURE}.get(lead)
    tense = tense or moment.tense()
    said = moment.said
    if tense is None or number == said.month:
        return None
    step = -(number > said.month) if tense == PAST else number < said.month
    return _near_enough(month(said.year + step, number), said)


def _near_enough(found: Period, said: date) -> Period | None:
    return found if abs((found.first - said).days) <= _UNSAID_DAYS_MAX else None


def _weekday_alone(moment: DateMoment) -> Period | None:
    ahead = (WEEKDAYS.index(moment.text) - moment.said.weekday()) % 7
    tense = FUTURE if moment.lead.startswith("see you") else moment.tense()
    if tense is None or not ahead:
        return None
    return day(moment.said + (ahead if tense == FUTURE else ahead - 7) * _DAY)


def _ago(moment: DateMoment) -> Period | None:
    count, unit, *back = moment.text.split()
    number = NUMBERS[count] if count in NUMBERS else int(count)
    if number > _AGO_MAX or (number >= _ROUND_MIN and number % 5 == 0):
        return None
    step = -number if back == ["ago"] else number
    said = moment.said
    if unit.startswith("day"):
        return day(said + step * _DAY)
    if unit.startswith("week"):
        return week(said + 7 * step * _DAY)
    if unit.startswith("month"):
        return month(said.year, said.month + step)
    return year(said.year + step)


def _near(moment: DateMoment) -> Period:
    steps = {"yesterday": -1, "tomorrow": 1, "today": 0, "tonight": 0}
    first, *rest = moment.text.split()
    if rest:  # The day before yesterday, the day after tomorrow.
        return day(moment.said + (-2 if rest[-1] == "yesterday" else 2) * _DAY)
    return day(moment.said + steps[first] * _DAY)


def _turned(moment: DateMoment) -> Period | None:
    """Read last, next or this: Friday, March, week, year, summer, night."""
    *turn, unit = moment.text.split()
    kind = turn[-1] if turn[-1] in ("past", "coming") else turn[0]
    said = moment.said
    if unit in WEEKDAYS:
        return _turned_weekday(kind, WEEKDAYS.index(unit), said)
    if unit in ("night", "evening", "morning", "afternoon"):
        if kind == "this" and unit != "night":
            return day(said)
        return day(said - _DAY) if kind == "last" and unit in ("night", "evening") else None
    if unit in SEASONS:
        return _turned_season(kind, SEASONS[unit], said)
    if unit == "weekend":
        return _turned_weekend(kind, moment)
    step = {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 1}[kind]
    if unit == "week":
        # For some people the week begins on Sunday.
        return None if said.weekday() == 6 else week(said + 7 * step * _DAY)
    if unit == "month":
        return month(said.year, said.month + step)
    if unit == "year":
        return year(said.year + step)
    return _turned_month(kind, moment)


def _turned_weekday(kind: str, weekday: int, said: date) -> Period | None:
    ahead = (weekday - said.weekday()) % 7
    back = 7 - ahead
    if kind in ("last", "past"):
        # The day before is "yesterday"; "last" may then mean a week earlier.
        return None if kind == "last" and back == 1 else day(said - back * _DAY)
    if kind == "coming":
        return day(said + (ahead or 7) * _DAY)
    this_week = said.weekday() <= weekday
    if kind == "this":
        return day(said + ahead * _DAY) if this_week else None
    # For some people "next" means this week's day; after that day it is unambiguous.
    return None if said.weekday() < weekday else day(said + (ahead or 7) * _DAY)


def _turned_weekend(kind: str, moment: DateMoment) -> Period | None:
    said = moment.said
    at_weekend = said.weekday() >= 5
    if kind in ("last", "past"):
        return weekend(said - 7 * _DAY)
    if kind == "next":
        return weekend(said + 7 * _DAY) if at_weekend else None
    if not at_weekend and moment.tense() == PAST:
        return None
    return weekend(said)


def _turned_month(kind: str, moment: DateMoment) -> Period | None:
    number, written = _month_of(moment)
    said = moment.said
    if not written and number in _WORDS_TOO:
        return None
    if kind == "this":
        return month(said.year, number)
    if kind == "past":
        return month(said.year - (number >= said.month), number)
    if kind == "coming":
        return month(said.year + (number <= said.month), number)
    # "Last March" in May and "next March" in January are ambiguous.
    if kind == "last":
        return month(said.year - 1, number) if number >= said.month else None
    return month(said.year + 1, number) if number <= said.month else None


def _turned_season(kind: str, number: int, said: date) -> Period | None:
    present = season(said.year, number)
    if kind == "this":
        return present
    if kind in ("last", "past"):
        if said <= present.last:
            return season(said.year - 1, number)
        return present if said.month - present.last.month <= 4 else None
    return season(said.year + 1, number) if said >= present.first else None


_READERS: dict[str, Callable[[DateMoment], Period | None]] = {
    "iso": lambda moment: day(date.fromisoformat(moment.text)),
    "slashed": lambda moment: day(date(*map(int, moment.text.split("/")))),
    **{"numeric": _numeric, "season_year": _season_year, "turned": _turned, "ago": _ago},
    **dict.fromkeys(("day_month", "month_day", "month_year"), _spelled),
    **{"month": _month_alone, "weekday": _weekday_alone, "near": _near, "year": _year_alone},
}


_ONE_DAY = timedelta(days=1)


class Period(NamedTuple):
    """A day, a week, a month or a year: its name, its first and its last day."""

    name: str
    first: date
    last: date


def day(found: date) -> Period:
    """Return one day."""
    return Period(found.isoformat(), found, found)


def week(found: date) -> Period:
    """Return the week of a day, from Monday to Sunday."""
    monday = found - found.weekday() * _ONE_DAY
    number = monday.isocalendar()
    return Period(f"{number.year:04}-W{number.week:02}", monday, monday + 6 * _ONE_DAY)


def weekend(found: date) -> Period:
    """Return Saturday and Sunday of a day's week, under the name of that week."""
    whole = week(found)
    return Period(whole.name, whole.last - _ONE_DAY, whole.last)


def month(year_: int, number: int) -> Period:
    """Return a month; numbers below 1 and above 12 are in the years around."""
    year_, number = year_ + (number - 1) // 12, (number - 1) % 12 + 1
    first = date(year_, number, 1)
    return Period(f"{year_:04}-{number:02}", first, _before_month(year_, number + 1))


def year(number: int) -> Period:
    """Return a year."""
    return Period(f"{number:04}", date(number, 1, 1), date(number, 12, 31))


def season(year_: int, number: int) -> Period:
    """Return three months of a year, under the name of that year."""
    return Period(f"{year_:04}", date(year_, number, 1), _before_month(year_, number + 3))


def _before_month(year_: int, number: int) -> date:
    if number > 12:
        return date(year_, 12, 31)
    return date(year_, number, 1) - _ONE_DAY

"""Periods: from the words of a date to the days they mean, or to None in doubt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from worlddb.extract.tense import FUTURE, PAST, tense_around
from worlddb.language.dates import MONTHS, NUMBERS, WEEKDAYS

VAGUE = frozenset(("couple", "few", "several", "zero"))
SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9}
# As names and verbs they need their capital, or a number beside them.
_WORDS_TOO = frozenset((3, 5))
_NAMES_TOO = frozenset((4, 5, 6, 8))
_ROUND_MIN = 10
_AGO_YEARS_MAX = 60
_UNSAID_DAYS_MAX = 270
_DAY = timedelta(days=1)


class Period(NamedTuple):
    """A day, a week, a month or a year: its name, its first and its last day."""

    name: str
    first: date
    last: date


class Moment(NamedTuple):
    """A date as it stands in a text: what is read, and against what."""

    low: str
    plain: str
    start: int
    end: int
    begin: int  # where the words that lead to it begin
    said: date

    @property
    def text(self) -> str:
        """The words of the date, in lower case."""
        return self.low[self.start : self.end]

    @property
    def lead(self) -> str:
        """The words before it that the grammar wanted: "in", "since", "see you"."""
        return self.low[self.begin : self.start].strip()

    def tense(self) -> str | None:
        """Return the tense of the sentence around it."""
        return tense_around(self.low, self.start, self.end)


def day(found: date) -> Period:
    """Return one day."""
    return Period(found.isoformat(), found, found)


def week(found: date) -> Period:
    """Return the week of a day, from Monday to Sunday."""
    monday = found - found.weekday() * _DAY
    number = monday.isocalendar()
    return Period(f"{number.year:04}-W{number.week:02}", monday, monday + 6 * _DAY)


def weekend(found: date) -> Period:
    """Return Saturday and Sunday of a day's week, under the name of that week."""
    whole = week(found)
    return Period(whole.name, whole.last - _DAY, whole.last)


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
    return date(year_, number, 1) - _DAY


def _iso(moment: Moment) -> Period:
    return day(date.fromisoformat(moment.text))


def _slashed(moment: Moment) -> Period:
    return day(date(*map(int, moment.text.split("/"))))


def _numeric(moment: Moment) -> Period | None:
    first, second, year_ = map(int, moment.text.replace(".", "/").replace("-", "/").split("/"))
    if first <= 12 and second <= 12 and first != second:
        return None  # Day and month are told apart by nothing.
    return day(date(year_, *((first, second) if second > 12 else (second, first))))


def _spelled(moment: Moment) -> Period | None:
    """May 3rd, 2023; the 3rd of May; May 2023."""
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
        return None
    found = date(moment.said.year, number, nth)
    if tense == PAST and found > moment.said:
        found = date(found.year - 1, number, nth)
    if tense == FUTURE and found < moment.said:
        found = date(found.year + 1, number, nth)
    return _near_enough(day(found), moment.said)


def _month_of(moment: Moment) -> tuple[int, bool]:
    """Return the number of the month that the words name, and whether it has its capital."""
    for word in moment.text.replace(",", " ").split():
        for index, name in enumerate(MONTHS):
            if word == name or (word.strip(".")[:3] == name[:3] and len(word.strip(".")) <= 4):
                at = moment.low.index(word, moment.start)
                return index + 1, moment.plain[at].isupper()
    raise ValueError(f"no month in {moment.text!r}")


def _season_year(moment: Moment) -> Period:
    words = moment.text.split()
    return season(int(words[-1]), SEASONS[words[0]])


def _month_alone(moment: Moment) -> Period | None:
    """In March: the last one or the next, as the sentence says."""
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
    """Who means a day that is nearly a year away says so; else the year may be another."""
    return found if abs((found.first - said).days) <= _UNSAID_DAYS_MAX else None


def _weekday_alone(moment: Moment) -> Period | None:
    ahead = (WEEKDAYS.index(moment.text) - moment.said.weekday()) % 7
    tense = FUTURE if moment.lead.startswith("see you") else moment.tense()
    if tense is None or not ahead:
        return None
    return day(moment.said + (ahead if tense == FUTURE else ahead - 7) * _DAY)


def _ago(moment: Moment) -> Period | None:
    count, unit, *back = moment.text.split()
    number = NUMBERS[count] if count in NUMBERS else int(count)
    if number >= _ROUND_MIN and number % 5 == 0:
        return None  # Round numbers are mostly not meant to the day.
    if number > _AGO_YEARS_MAX:
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


def _near(moment: Moment) -> Period:
    steps = {"yesterday": -1, "tomorrow": 1, "today": 0, "tonight": 0}
    first, *rest = moment.text.split()
    if rest:  # The day before yesterday, the day after tomorrow.
        return day(moment.said + (-2 if rest[-1] == "yesterday" else 2) * _DAY)
    return day(moment.said + steps[first] * _DAY)


def _turned(moment: Moment) -> Period | None:
    """Last, next or this: Friday, March, week, year, summer, night."""
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
        # For some the week begins on Sunday.
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
        # The day before is "yesterday"; who says "last" may mean the one before.
        return None if kind == "last" and back == 1 else day(said - back * _DAY)
    if kind == "coming":
        return day(said + (ahead or 7) * _DAY)
    this_week = said.weekday() <= weekday
    if kind == "this":
        return day(said + ahead * _DAY) if this_week else None
    # "Next" means this week's day for some; it is certain when that has passed.
    return None if said.weekday() < weekday else day(said + (ahead or 7) * _DAY)


def _turned_weekend(kind: str, moment: Moment) -> Period | None:
    said = moment.said
    at_weekend = said.weekday() >= 5
    if kind in ("last", "past"):
        return weekend(said - 7 * _DAY)
    if kind == "next":
        return weekend(said + 7 * _DAY) if at_weekend else None
    if not at_weekend and moment.tense() == PAST:
        return None
    return weekend(said)


def _turned_month(kind: str, moment: Moment) -> Period | None:
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
    # "Last March" in May and "next March" in January can each be one of two.
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


READERS: dict[str, Callable[[Moment], Period | None]] = {
    "iso": _iso,
    "slashed": _slashed,
    "numeric": _numeric,
    "day_month": _spelled,
    "month_day": _spelled,
    "month_year": _spelled,
    "season_year": _season_year,
    "turned": _turned,
    "month": _month_alone,
    "weekday": _weekday_alone,
    "ago": _ago,
    "near": _near,
}

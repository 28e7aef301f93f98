"""Calendar periods: days, weeks, months, seasons and years as names with a first and a last day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

_DAY = timedelta(days=1)


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

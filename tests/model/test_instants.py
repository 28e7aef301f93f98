"""Instants: aware times in, integer microseconds inside, aware UTC times out."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlddb import InvalidInputError
from worlddb.model.inputs import from_micros, to_micros

EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


@settings(deadline=None, derandomize=True, database=None)
@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)),
    st.integers(-14 * 60, 14 * 60),
)
def test_a_time_comes_back_as_the_same_moment_in_utc(naive: datetime, minutes: int) -> None:
    given_time = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    micros = to_micros(given_time, "t")
    assert from_micros(micros) == given_time
    assert from_micros(micros).tzinfo is UTC
    assert to_micros(given_time.isoformat(), "t") == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000001+00:00", 1),
        ("1969-12-31T23:59:59.999999Z", -1),
        (" 1970-01-01T01:00:00+01:00 ", 0),
        ("1970-01-01", 0),
        (" 1970-01-02 ", 86_400_000_000),
        ("19700101T000000Z", 0),
        ("0001-01-01T00:00:00+00:00", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999+00:00", 253_402_300_799_999_999),
    ],
)
def test_iso_text_is_read_to_the_microsecond(text: str, micros: int) -> None:
    assert to_micros(text, "t") == micros


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " ",
        "yesterday",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "1770000000",
        "2026-01-01T25:00:00Z",
        "2026-01-01T00:00:00+99:00",
        "\0",
        "２０２６-01-01T00:00:00Z",
        "\ud800",
    ],
)
def test_text_that_is_no_time_is_refused_with_an_example(bad: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^valid_from: .*2026-01-31T09:30:00\+00:00"):
        to_micros(bad, "valid_from")


@pytest.mark.parametrize(
    "bad",
    ["2026-01-31T09:30:00", "2026-W05-6", datetime(2026, 1, 31), datetime.min],
)
def test_a_time_without_a_zone_is_refused_and_told_how_to_get_one(bad: datetime | str) -> None:
    way_out = "as in 2026-01-31T09:30:00Z" if isinstance(bad, str) else "tzinfo=UTC"
    with pytest.raises(InvalidInputError, match=rf"^known: .*time zone.*{way_out}"):
        to_micros(bad, "known")


@pytest.mark.parametrize("bad", [None, 0, 1.5, True, date(2026, 1, 1), time(1), b"2026", [], {}])
def test_what_is_no_time_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^at: give a datetime or ISO-8601 text"):
        to_micros(bad, "at")


def test_the_first_and_the_last_moment_can_be_said() -> None:
    assert from_micros(to_micros(EARLIEST, "t")) == EARLIEST
    assert from_micros(to_micros(LATEST, "t")) == LATEST


@pytest.mark.parametrize(
    "bad",
    [
        datetime.min.replace(tzinfo=EAST),
        datetime.max.replace(tzinfo=WEST),
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59.999999-00:01",
    ],
)
def test_a_time_that_utc_cannot_say_is_refused_and_not_kept(bad: datetime | str) -> None:
    """It could be written as a number, and then no reader could ever show it."""
    with pytest.raises(InvalidInputError, match=r"^valid_from: "):
        to_micros(bad, "valid_from")

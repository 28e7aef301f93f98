"""Instants: aware datetimes outside, integer microseconds UTC inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from worlddb.errors import InvalidInputError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

MICROS_MIN = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
MICROS_MAX = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND

Instant = datetime | str


def to_micros(value: datetime | str, field: str) -> int:
    """Return `value` as microseconds since 1970 UTC.

    Raises:
        InvalidInputError: not a time, or one without an offset from UTC.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidInputError(
                f"{field}: {value!r} is not ISO-8601; write 2026-01-31T09:30:00+00:00"
            ) from None
    if not isinstance(value, datetime):
        raise InvalidInputError(f"{field}: give a datetime or ISO-8601 text, not {type(value)!r}")
    if value.utcoffset() is None:
        raise InvalidInputError(
            f"{field}: {value.isoformat()} has no time zone; add one, e.g. +00:00 or tzinfo=UTC"
        )
    micros = (value - EPOCH) // MICROSECOND
    if not MICROS_MIN <= micros <= MICROS_MAX:
        raise InvalidInputError(f"{field}: {value.isoformat()} is outside the years 1 to 9999 UTC")
    return micros


def from_micros(micros: int) -> datetime:
    """Return microseconds since 1970 as an aware UTC datetime."""
    return EPOCH + timedelta(microseconds=micros)

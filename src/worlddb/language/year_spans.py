"""Year spans: the years that a text speaks of, as pairs of a first and a last year.

    "editor from 1940 to 1960, and again in 1985"  ──▶  (1940, 1960), (1985, 1985)

A number of four digits from 1000 to 2099 is taken for a year unless it is part of a longer number.
Two of them with a dash, "to", "and" or "until" between them are a span; "1998–present" has no end
and "1990-95" stays in its century. What a question asks for is one span over all its years: "from
March 1993 to May 1994". Taking a number for a year by mistake costs little, since nothing is
filtered by it.
"""

from __future__ import annotations

import re

NO_END = 9999  # of a span that goes on

_YEAR = r"(?:1\d|20)\d\d"
_NOW = "present|today|now"
_SPAN = re.compile(
    rf"(?<![\d.,])({_YEAR})(?!\d|[.,]\d)"
    rf"(?:\s?[-–—]\s?({_YEAR}|\d\d|{_NOW})(?![\w-])"
    r"|\s(?:to|and|until|till|through)\s(?:[a-z]{3,9}\.?\s)?(?:\d\d?\s?,\s?)?"
    rf"({_YEAR}|{_NOW})(?!\w))?",
    re.IGNORECASE,
)


def year_spans(text: str) -> list[tuple[int, int]]:
    """Return the years and spans of years that a text names, in order."""
    spans: list[tuple[int, int]] = []
    for match in _SPAN.finditer(text):
        first, end = int(match[1]), match[2] or match[3]
        last = first
        if end is not None:
            century = first // 100 * 100 if len(end) < len(match[1]) else 0
            last = NO_END if end.isalpha() else century + int(end)
        spans.append((first, last) if last >= first else (first, first))
    return spans


def asked_years(question: str) -> tuple[int, int] | None:
    """Return the span over all years that a question names; None if it names none."""
    spans = year_spans(question)
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

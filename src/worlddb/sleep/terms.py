"""Terms: the names, amounts and dates of a text, as a summary has to keep them.

Wider than what the extractor takes: there a wrong name becomes a node, here a word too many costs a
word. So every name counts, sure or not, and every number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from datetime import date
from typing import NamedTuple

from worlddb.extract.dates import Dated, dates_in
from worlddb.extract.mask import masked
from worlddb.extract.mentions import mentions_in

_UNITS = (
    r"%|percent|(?:US )?dollars?|bucks|cents?|euros?|pounds?|yen|francs?|hours?|hrs?|minutes?|mins?"
    r"|seconds?|days?|weeks?|months?|years?|km|kilometers?|kilometres?|miles?|meters?|metres?|cm|mm"
    r"|feet|ft|inch(?:es)?|kg|kilos?|kilograms?|grams?|lbs?|ounces?|oz|liters?|litres?|ml|gb|mb|tb"
    r"|people|guests|times|pages|steps|points?|calories|degrees|million|billion|thousand|k|am|pm"
)
_AMOUNT = re.compile(
    rf"(?:[$€£¥₹]\s?|\b(?:USD|EUR|GBP|CHF)\s)?(?<![\w.,])\d+(?:[.,:]\d+)*(?:\s?(?:{_UNITS})\b)?",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"(?<![\w'’.])[^\W\d_a-z][\w'’&-]*\w(?:\s+[^\W\d_a-z][\w'’&-]*\w)*")
_STOP = re.compile(r"[.!?…]+[\"”’')\]]*(?=\s|\Z)|\n+")
_NOT_AN_END = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Mt)|\b[A-Z])\.$"
)


class Sentence(NamedTuple):
    """A sentence, with dates in it made plain, and the terms that must not get lost."""

    text: str
    terms: tuple[str, ...]
    is_question: bool


def sentences_of(text: str, said: date, speakers: Set[str]) -> list[Sentence]:
    """Return a text sentence by sentence; `said` is the day that "yesterday" is seen from."""
    plain = masked(text)
    dates = list(dates_in(plain, said))
    names = {(it.start, it.end) for it in mentions_in(text, plain, speakers)}
    found = []
    for start, end in _bounds(text):
        stretch = text[start:end]
        if not stretch.strip():
            continue
        inside = [it for it in dates if start <= it.start and it.end <= end]
        told = _plain_dates(text, start, end, inside)
        terms = dict.fromkeys(
            " ".join(text[low:high].split())
            for low, high in sorted(names)
            if start <= low and high <= end
        )
        terms.update(dict.fromkeys(it.name for it in inside))
        terms.update(dict.fromkeys(_further(text, start, end, inside)))
        found.append(Sentence(told, tuple(terms), stretch.rstrip().endswith("?")))
    return found


def _bounds(text: str) -> Iterator[tuple[int, int]]:
    """Yield where sentences begin and end; an abbreviation does not end one."""
    begin = 0
    for stop in _STOP.finditer(text):
        if stop[0] == "." and _NOT_AN_END.search(text, begin, stop.end()):
            continue
        yield begin, stop.end()
        begin = stop.end()
    yield begin, len(text)


def _plain_dates(text: str, start: int, end: int, dates: list[Dated]) -> str:
    """Return a stretch on one line, with the day beside each date that does not say it."""
    parts = []
    at = start
    for item in dates:
        parts.append(text[at : item.end])
        if item.name not in text[item.start : item.end]:
            parts.append(f" [{item.name}]")
        at = item.end
    parts.append(text[at:end])
    return " ".join("".join(parts).split())


def _further(text: str, start: int, end: int, dates: list[Dated]) -> Iterator[str]:
    """Yield amounts, and capitalised words inside a sentence that no rule took for a name."""
    for match in _AMOUNT.finditer(text, start, end):
        if not any(it.start <= match.start() and match.end() <= it.end for it in dates):
            yield " ".join(match[0].split())
    first = len(text[start:end]) - len(text[start:end].lstrip())
    for match in _CAPITALISED.finditer(text, start, end):
        if match.start() > start + first and len(match[0]) > 1:
            yield " ".join(match[0].split())

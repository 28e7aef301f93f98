"""Extractive summarizer: the default. It quotes sentences in the order of time and keeps all terms.

    messages ──▶ sentences with their terms ──▶ those that fit ──▶ the terms of the others

A term is a name, an amount or a date. More words count as terms here than the extractor accepts as
names: there a wrong name becomes a node, here it only takes space.

E1  Every name, amount and date of the messages is in the summary, whatever the budget.
E2  Sentences are whole and in the order of time; equal ones are quoted once.
E3  Equal messages give equal summaries: no model, no clock, no randomness.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import UTC, date, datetime
from typing import NamedTuple

from worlddb.language.english.date_phrases import dates_in
from worlddb.language.english.english_names import mentions_in
from worlddb.language.english.prose import masked
from worlddb.language.language_reader import Dated
from worlddb.model.inputs import check_integer
from worlddb.model.records import Message

BUDGET_CHARS = 4_000
"""About 1,000 tokens, so that a recall of several summaries still fits a prompt."""
BUDGET_CHARS_MIN = 100  # Room for one sentence.
QUOTE_OVERHEAD_CHARS = 20
"""Added to the length when terms per character are compared, so that a bare name does not win."""
_SENTENCE_ENDS = (".", "!", "?", "…", ":", ";", ",", '"', "”", ")")
_UNNAMED_SPEAKERS = frozenset(("", "user", "human", "me"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
_PLAIN_DATE = re.compile(r"\s*\[\d{4}[^\]]*\]")
_NOT_AN_END = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Mt)|\b[A-Z])\.$"
)


class QuotedSentence(NamedTuple):
    """A sentence with its dates written out, and the terms that must not be lost."""

    text: str
    terms: tuple[str, ...]
    is_question: bool


class _Quote(NamedTuple):
    """A sentence with its speaker, its day and its position among all sentences."""

    position: int
    day: str
    speaker: str
    sentence: QuotedSentence

    @property
    def cost(self) -> int:
        """About how many characters it takes in the summary."""
        return len(self.sentence.text) + 1


class ExtractiveSummarizer:
    """Quotes as many sentences as fit `budget_chars`, and lists the terms of the others.

    The list may exceed the budget: no name, amount or date is ever left out.

    Raises:
        InvalidInputError: the budget is below 100 characters.
    """

    name = "extractive"

    def __init__(self, *, budget_chars: int = BUDGET_CHARS) -> None:
        self.budget_chars = check_integer(budget_chars, "budget_chars", BUDGET_CHARS_MIN)

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of what was said in the world named `title`."""
        quotes = _sentences(messages)
        total = sum(item.cost for item in quotes)
        chosen = quotes if total <= self.budget_chars else _best(quotes, self.budget_chars)
        lines = _lines(chosen)
        missing = _missing(quotes, chosen)
        if missing:
            lines.append(f"Also: {'; '.join(missing)}")
        return "\n".join(lines) or title


def _sentences(messages: Sequence[Message]) -> list[_Quote]:
    """Return every sentence once, in the order of time."""
    ordered = sorted(enumerate(messages), key=lambda it: (it[1].at or _EPOCH, it[0]))
    speakers = frozenset(
        message.speaker.casefold() for message in messages if message.speaker[:1].isupper()
    )
    found: list[_Quote] = []
    seen: set[tuple[str, str, str]] = set()
    for _, message in ordered:
        day = "" if message.at is None else message.at.astimezone(UTC).date().isoformat()
        speaker = "" if message.speaker.casefold() in _UNNAMED_SPEAKERS else message.speaker
        said = (message.at or _EPOCH).astimezone(UTC).date()
        for sentence in sentences_of(message.text, said, speakers):
            key = day, speaker, sentence.text
            if key not in seen:
                seen.add(key)
                found.append(_Quote(len(found), day, speaker, sentence))
    return found


def _best(quotes: Iterable[_Quote], budget: int) -> list[_Quote]:
    """Return the sentences with the most terms for their length that fit, in the order of time.

    Statements come before questions.
    """
    left = budget
    chosen = []
    order = sorted(
        quotes,
        key=lambda it: (
            it.sentence.is_question,
            -len(it.sentence.terms) / (QUOTE_OVERHEAD_CHARS + it.cost),
            it.position,
        ),
    )
    for item in order:
        if item.cost <= left:
            chosen.append(item)
            left -= item.cost
    return sorted(chosen)


def _lines(quotes: Iterable[_Quote]) -> list[str]:
    """Return sentences as lines, one line for each run of one day and speaker."""
    lines: list[str] = []
    last: tuple[str, str] | None = None
    for item in quotes:
        head = item.day, item.speaker
        if head != last:
            lead = f"{item.day} {item.speaker}".strip()
            lines.append(f"{lead}: {item.sentence.text}" if lead else item.sentence.text)
            last = head
        else:
            ended = lines[-1].endswith(_SENTENCE_ENDS)
            lines[-1] += f"{' ' if ended else '; '}{item.sentence.text}"
    return lines


def _missing(quotes: Iterable[_Quote], chosen: Iterable[_Quote]) -> list[str]:
    """Return the terms, days and speakers that the chosen sentences lack, in order."""
    there = {"", *(term for item in chosen for term in _terms(item))}
    terms = dict.fromkeys(term for item in quotes for term in _terms(item))
    return [term for term in terms if term not in there]


def _terms(item: _Quote) -> tuple[str, ...]:
    return item.day, item.speaker, *item.sentence.terms


# -- sentences and their terms ---------------------------------------------------------------------


def sentences_of(text: str, said: date, speakers: Set[str]) -> list[QuotedSentence]:
    """Return the sentences of a text; `said` is the day that "yesterday" refers to."""
    plain = masked(text)
    dates = list(dates_in(plain, said))
    names = {(it.start, it.end) for it in mentions_in(text, plain, speakers)}
    found = []
    for start, end in _bounds(text):
        stretch = text[start:end]
        if not stretch.strip():
            continue
        inside = [it for it in dates if start <= it.start and it.end <= end]
        quoted = _plain_dates(text, start, end, inside)
        terms = dict.fromkeys(
            " ".join(text[low:high].split())
            for low, high in sorted(names)
            if start <= low and high <= end
        )
        terms.update(dict.fromkeys(it.name for it in inside))
        terms.update(dict.fromkeys(_further(text, start, end, inside)))
        found.append(QuotedSentence(quoted, tuple(terms), stretch.rstrip().endswith("?")))
    return found


def _bounds(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence; an abbreviation does not end one."""
    begin = 0
    for stop in _STOP.finditer(text):
        if stop[0] == "." and _NOT_AN_END.search(text, begin, stop.end()):
            continue
        yield begin, stop.end()
        begin = stop.end()
    yield begin, len(text)


def _plain_dates(text: str, start: int, end: int, dates: list[Dated]) -> str:
    """Return a sentence on one line, with the date in brackets after words like "yesterday"."""
    parts = []
    at = start
    for item in dates:
        parts.append(text[at : item.end])
        # A summary of summaries reads days that were written out already.
        if item.name not in text[item.start : item.end] and not _PLAIN_DATE.match(text, item.end):
            parts.append(f" [{item.name}]")
        at = item.end
    parts.append(text[at:end])
    return " ".join("".join(parts).split())


def _further(text: str, start: int, end: int, dates: list[Dated]) -> Iterator[str]:
    """Yield amounts, and capitalised words inside a sentence that are not a known name."""
    for match in _AMOUNT.finditer(text, start, end):
        if not any(it.start <= match.start() and match.end() <= it.end for it in dates):
            yield " ".join(match[0].split())
    first = len(text[start:end]) - len(text[start:end].lstrip())
    for match in _CAPITALISED.finditer(text, start, end):
        if match.start() > start + first and len(match[0]) > 1:
            yield " ".join(match[0].split())

"""Extractive: the default summarizer. It quotes, in the order of time, and loses no term.

    messages ──▶ sentences with their terms ──▶ those that fit ──▶ the terms of the others

E1  Every name, amount and date of the messages is in the summary, whatever the budget.
E2  Sentences are whole, in the order of time; equal ones are told once.
E3  Equal messages give equal summaries: no model, no clock, no chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from worlddb.model.drafts import Message
from worlddb.model.inputs import check_whole
from worlddb.sleep.terms import Sentence, sentences_of

BUDGET_CHARS = 4_000
CHARS_MIN = 100
ENDS = (".", "!", "?", "…", ":", ";", ",", '"', "”", ")")
_NAMELESS = frozenset(("", "user", "human", "me"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Told(NamedTuple):
    """A sentence with who said it, and when, and its place in the whole."""

    place: int
    day: str
    speaker: str
    sentence: Sentence

    @property
    def cost(self) -> int:
        """About how many characters it takes, with its share of the line it stands in."""
        return len(self.sentence.text) + 1


class ExtractiveSummarizer:
    """Quotes what was said, as much as fits `budget_chars`, and lists the terms of the rest.

    A longer list of terms goes beyond the budget: no name, amount or date is ever left out.

    Raises:
        InvalidInputError: a budget of less than 100 characters.
    """

    name = "extractive"

    def __init__(self, *, budget_chars: int = BUDGET_CHARS) -> None:
        self.budget_chars = check_whole(budget_chars, "budget_chars", CHARS_MIN)

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of what was said in the world that `title` names."""
        told = _sentences(messages)
        total = sum(item.cost for item in told)
        chosen = told if total <= self.budget_chars else _best(told, self.budget_chars)
        lines = _lines(chosen)
        missing = _missing(told, chosen)
        if missing:
            lines.append(f"Also: {'; '.join(missing)}")
        return "\n".join(lines) or title


def _sentences(messages: Sequence[Message]) -> list[_Told]:
    """Return every sentence once, in the order of time."""
    ordered = sorted(enumerate(messages), key=lambda it: (it[1].at or _EPOCH, it[0]))
    speakers = frozenset(
        message.speaker.casefold() for message in messages if message.speaker[:1].isupper()
    )
    found: list[_Told] = []
    seen: set[tuple[str, str, str]] = set()
    for _, message in ordered:
        day = "" if message.at is None else message.at.astimezone(UTC).date().isoformat()
        speaker = "" if message.speaker.casefold() in _NAMELESS else message.speaker
        said = (message.at or _EPOCH).astimezone(UTC).date()
        for sentence in sentences_of(message.text, said, speakers):
            key = day, speaker, sentence.text
            if key not in seen:
                seen.add(key)
                found.append(_Told(len(found), day, speaker, sentence))
    return found


def _best(told: Iterable[_Told], budget: int) -> list[_Told]:
    """Return the sentences that say most in the budget, in the order of time.

    One after the other, the one with the most terms for its length; statements before questions.
    """
    left = budget
    chosen = []
    order = sorted(
        told,
        key=lambda it: (
            it.sentence.is_question,
            -len(it.sentence.terms) / (20 + it.cost),
            it.place,
        ),
    )
    for item in order:
        if item.cost <= left:
            chosen.append(item)
            left -= item.cost
    return sorted(chosen)


def _lines(told: Iterable[_Told]) -> list[str]:
    """Return sentences as lines, one for each time and speaker."""
    lines: list[str] = []
    last: tuple[str, str] | None = None
    for item in told:
        head = item.day, item.speaker
        if head != last:
            lead = f"{item.day} {item.speaker}".strip()
            lines.append(f"{lead}: {item.sentence.text}" if lead else item.sentence.text)
            last = head
        else:
            ended = lines[-1].endswith(ENDS)
            lines[-1] += f"{' ' if ended else '; '}{item.sentence.text}"
    return lines


def _missing(told: Iterable[_Told], chosen: Iterable[_Told]) -> list[str]:
    """Return the terms, days and speakers that the chosen sentences leave out, in order."""
    there = {term for item in chosen for term in _terms(item)}
    return [
        term
        for term in dict.fromkeys(term for item in told for term in _terms(item))
        if term and term not in there
    ]


def _terms(item: _Told) -> tuple[str, ...]:
    return item.day, item.speaker, *item.sentence.terms

"""Plan: which questions of a file are asked, chosen before the first of them is.

One pass over the file sees every question and how long its conversation is; with `limit` alone it
ends at the last that is asked. `sample` takes some of each category, as many as its share (at least
one while there is room), by a seed; a larger sample holds every smaller one of the same seed.
`limit` takes the first. Both keep the order of the file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from worlddb.evaluate.cases import ADVERSARIAL, Asked, Case
from worlddb.evaluate.retrieval import is_measured
from worlddb.evaluate.settings import RunSettings
from worlddb.read.hits import tokens_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A question, by the places of its conversation in the file and of itself in that."""

    id: str
    case: int
    place: int
    category: str
    tokens: int
    """About how many its conversation has."""
    sessions: int
    turn_tokens: float
    """About how many one turn of it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The questions of a run, and how many there were to choose from."""

    questions: list[Planned]
    found: int | None
    """Those of the file that this kind of run can ask; None if not all of it was read."""
    sample: int | None = None
    limit: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether there are, or may be, questions that were not chosen."""
        return self.found is None or len(self.questions) < self.found

    @property
    def told(self) -> str:
        """Which questions these are, in words."""
        count = len(self.questions)
        if not self.is_part:
            return f"all {count} of the file"
        if self.found is None:
            return f"the first {count} of the file, which may have more (--limit {self.limit})"
        if self.sample is None or self.sample >= self.found:
            return f"the first {count} of the {self.found} of the file (--limit {self.limit})"
        drawn = f"a sample of {self.sample} of the {self.found} of the file (--sample)"
        return drawn if count == self.sample else f"the first {count} (--limit) of {drawn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A conversation, and which of its questions to ask."""

    number: int
    case: Case
    wanted: tuple[int, ...]


def survey(
    cases: Iterable[Case],
    settings: RunSettings,
    *,
    limit: int | None = None,
    on_found: Callable[[int], None] = lambda found: None,
) -> list[Planned]:
    """Return every question of a file that the settings can ask, or the first so many of them."""
    found: list[Planned] = []
    for number, case in enumerate(cases):
        turns = [turn for session in case.sessions for turn in session.turns]
        tokens = sum(tokens_of(turn.speaker) + tokens_of(turn.text) for turn in turns)
        found += [
            Planned(
                id=question.id,
                case=number,
                place=place,
                category=question.category,
                tokens=tokens,
                sessions=len(case.sessions),
                turn_tokens=tokens / max(len(turns), 1),
            )
            for place, question in enumerate(case.questions)
            if can_ask(question, settings)
        ]
        on_found(len(found))
        if limit is not None and len(found) >= limit:
            break
    return found


def can_ask(question: Asked, settings: RunSettings) -> bool:
    """Return whether a run of this kind has something to say about a question."""
    if not settings.asks_model:
        return is_measured(question)
    return settings.adversarial or question.category != ADVERSARIAL


def choose(
    found: Sequence[Planned], *, sample: int | None, limit: int | None, seed: int
) -> list[Planned]:
    """Return the questions to ask, in the order of the file."""
    chosen = list(found)
    if sample is not None and sample < len(chosen):
        kept = set(islice(_drawn(chosen, seed), sample))
        chosen = [one for number, one in enumerate(chosen) if number in kept]
    return chosen[:limit]


def _drawn(found: Sequence[Planned], seed: int) -> Iterator[int]:
    """Yield the places of all questions in the order in which samples take them.

    First one of each category, the largest first; then always of the one that is the furthest
    behind its share. A sample is the beginning of this, so a larger one holds every smaller one.
    """
    groups: dict[str, list[int]] = {}
    for number, one in enumerate(found):
        groups.setdefault(one.category, []).append(number)
    names = sorted(groups, key=lambda name: (-len(groups[name]), name))
    dice = random.Random(seed)
    for name in names:
        dice.shuffle(groups[name])
    taken = dict.fromkeys(names, 0)
    for count in range(1, len(found) + 1):
        behind = {
            name: len(groups[name]) * count - taken[name] * len(found)
            for name in names
            if taken[name] < len(groups[name])
        }
        name = names[count - 1] if count <= len(names) else max(behind, key=behind.__getitem__)
        yield groups[name][taken[name]]
        taken[name] += 1


def works_of(cases: Iterable[Case], chosen: Iterable[Planned]) -> Iterator[Work]:
    """Yield the conversations that hold chosen questions."""
    wanted: dict[int, list[int]] = {}
    for one in chosen:
        wanted.setdefault(one.case, []).append(one.place)
    if not wanted:
        return
    last = max(wanted)
    for number, case in enumerate(cases):
        if number in wanted:
            yield Work(number=number, case=case, wanted=tuple(wanted[number]))
        if number == last:
            return

"""Plan: which questions of a file are asked, chosen before the first of them is.

One pass over the file sees every question and how long its conversation is; with `limit` alone it
ends at the last that is asked. `sample` takes some of each category, as many as its share (at least
one while there is room), by a seed; `limit` takes the first. Both keep the order of the file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

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
        groups: dict[str, list[int]] = {}
        for number, one in enumerate(chosen):
            groups.setdefault(one.category, []).append(number)
        dice = random.Random(seed)
        kept: set[int] = set()
        for name, count in _shares({name: len(group) for name, group in groups.items()}, sample):
            kept.update(dice.sample(groups[name], count))
        chosen = [one for number, one in enumerate(chosen) if number in kept]
    return chosen[:limit]


def _shares(sizes: dict[str, int], wanted: int) -> list[tuple[str, int]]:
    """Return how many to take of each: its share rounded down, then the largest remainders.

    As long as there are as many as names, each gets one, if need be from the largest.
    """
    total = sum(sizes.values())
    names = sorted(sizes)
    least = int(wanted >= len(names))
    taken = {name: max(wanted * sizes[name] // total, least) for name in names}
    while sum(taken.values()) > wanted:
        taken[max(names, key=lambda name: taken[name])] -= 1
    first = sorted(names, key=lambda name: (taken[name] > 0, -(wanted * sizes[name] % total), name))
    for name in first[: wanted - sum(taken.values())]:
        taken[name] += 1
    return [(name, taken[name]) for name in names]


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

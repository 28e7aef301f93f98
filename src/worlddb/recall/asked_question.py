"""An asked question: its options, and the questions that it consists of.

    "Where does Lena work? And when is the fair?"  ──▶  the whole, and two questions
    the order of each                              ──▶  one order, in which they take turns

One sum of words would give all places to the question that more texts speak of. So each question of
several is answered by itself, and so is the whole, because a question may rest on the one before
("And who was with me?"). The first answers of all come first, then the second, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from worlddb.errors import InvalidInputError
from worlddb.index.ranking_numbers import SCALARS
from worlddb.model.inputs import (
    Instant,
    check_fraction,
    check_integer,
    check_names,
    encode_text,
    to_micros,
)
from worlddb.model.records import NOW, AsOf
from worlddb.recall.hit_order import Ranking
from worlddb.recall.ranker import Scores, Weights, check_weight

LANES = ("text", "vector", "graph")
QUESTION_BYTES_MAX = 1 << 16  # Long enough for a pasted page; every word of it costs time.
QUESTIONS_MAX = 4  # in one; a text with more is a pasted page, and each costs the time of a recall
_END = re.compile(r"[?؟]+(?=\s|$)|？+(?![”’」』\"'])")
"""The end of a question that is not quoted; the full-width mark needs no space behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How lanes are run, and how their results become one order.

    `weights` names the lanes that run and how much each counts; `depth` is how many nodes a lane
    may rank; `c` is the constant of reciprocal rank fusion. `weighing` says how the hits are
    weighed in the end; without it they are ordered by the fused ranks alone. With `recency`, of
    weighed hits that answer alike the later one is first. With `worlds`, a world that matches
    better than anything inside it is a hit, too. With `preferences`, what the asker prefers or
    always wants has places among the first hits of a question that asks for advice or a task. With
    `classes`, what was accepted as the same is one.
    """

    c: int = SCALARS.fusion_c
    depth: int = SCALARS.lane_depth
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(LANES, 1.0))
    weighing: Weights | None = field(default_factory=Weights)
    recency: bool = True
    worlds: bool = True
    preferences: bool = True
    classes: bool = True

    def __post_init__(self) -> None:
        check_integer(self.c, "c", 0)
        check_integer(self.depth, "depth", 1)
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise InvalidInputError(f"weights: give some of {', '.join(LANES)} a number")
        for lane, weight in self.weights.items():
            if lane not in LANES:
                raise InvalidInputError(f"unknown lane {lane!r}; use {', '.join(LANES)}")
            check_weight(weight, lane)
        if self.weighing is not None and not isinstance(self.weighing, Weights):
            raise InvalidInputError(
                f"weighing: give worlddb.Weights(…) or None, not {self.weighing!r}"
            )


DEFAULT_SETTINGS = RecallSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its options; `question_of` checks them. It may be names alone."""

    text: str
    names: tuple[str, ...] = ()
    k: int = 10
    max_tokens: int | None = None
    min_confidence: float | None = None
    as_of: AsOf = NOW
    types: tuple[str, ...] | None = None
    include_ended: bool = False
    explain: bool = True
    at: Instant | None = None
    settings: RecallSettings = DEFAULT_SETTINGS

    @property
    def is_names(self) -> bool:
        """Whether it has names and no text."""
        return bool(self.names) and not self.text.strip()


def question_of(text: str, *, names: str | Sequence[str] | None = None, **options: Any) -> Question:
    """Return a question after checking every option.

    Raises:
        InvalidInputError: it is empty or too long, or an option is wrong.
    """
    plain = text.replace("\0", " ") if isinstance(text, str) else text
    encode_text(plain, "question", QUESTION_BYTES_MAX)
    said = () if names is None else check_names(names, "names")
    if not (text.strip() or said):
        raise InvalidInputError("question: give at least one word, or names")
    question = Question(text=plain, names=said, **options)
    check_integer(question.k, "k", 1)
    if question.max_tokens is not None:
        check_integer(question.max_tokens, "max_tokens", 1)
    check_fraction(question.min_confidence, "min_confidence")
    if question.at is not None:
        to_micros(question.at, "at")
    settings = question.settings
    if not isinstance(settings, RecallSettings):
        raise InvalidInputError(
            f"settings: give worlddb.RecallSettings(…), not {question.settings!r}"
        )
    return question


def questions_in(text: str) -> list[str]:
    """Return the questions of a text that asks several, each with what was said before it.

    Empty if it asks one or none, and if it asks too many.
    """
    ends = [match.end() for match in _END.finditer(text)]
    if not 1 < len(ends) <= QUESTIONS_MAX:
        return []
    ends[-1] = len(text)  # What is said last belongs to the last question.
    starts = [0, *ends[:-1]]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def taking_turns(rankings: Sequence[Ranking]) -> Ranking:
    """Return one ranking in which the hits of several take turns; the first is of the whole.

    A hit has the score by which it got its place, moved so that scores follow the order; the part
    `turn` says how far. Lanes and fused ranks are those of the whole.
    """
    whole, *others = rankings
    if not others:
        return whole
    rows = list(dict.fromkeys(row for ranking in rankings for row in ranking.rows))
    place = {row: at for at, row in enumerate(rows)}
    places = [np.array([place[row] for row in it.rows], dtype=np.intp) for it in rankings]
    names = dict.fromkeys(name for it in rankings for name in it.parts)
    parts = {name: np.zeros(len(rows)) for name in (*names, "turn")}
    scores: dict[int, float] = {}
    levels = [whole.scores[at] for at in whole.order]
    for rank, turn in enumerate(zip_longest(*(it.order for it in rankings))):
        level = levels[rank] if rank < len(levels) else levels[-1] + len(levels) - rank - 1.0
        below = levels[rank + 1] if rank + 1 < len(levels) else level - 1.0
        for number, at in enumerate(turn):
            if at is None or (new := int(places[number][at])) in scores:
                continue
            own = rankings[number]
            scores[new] = level + (below - level) * number / len(rankings)
            for name, values in own.parts.items():
                parts[name][new] = values[at]
            parts["turn"][new] = scores[new] - own.scores[at]
    stated = np.zeros(len(rows), dtype=np.bool_)
    for own, to in zip(rankings, places, strict=True):
        stated[to] |= False if own.stated is None else own.stated

    def lane(name: str) -> Scores:
        values = np.zeros(len(rows))
        for own, to in reversed(list(zip(rankings, places, strict=True))):
            values[to] = own.lanes.get(name, 0.0)
        return values

    return replace(
        whole,
        order=list(scores),
        rows=rows,
        scores=scores,
        fused={int(places[0][at]): value for at, value in whole.fused.items()},
        ranks={name: places[0][list(it)].tolist() for name, it in whole.ranks.items()},
        lanes={name: lane(name) for name in whole.lanes},
        parts=parts,
        ways={row: way for own in reversed(rankings) for row, way in own.ways.items()},
        names={row: names for own in reversed(rankings) for row, names in own.names.items()},
        stated=stated,
    )

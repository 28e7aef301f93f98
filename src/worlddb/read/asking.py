"""Asking: a question with its options, checked, and how lanes are run and fused for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.model.instant import Instant, to_micros
from worlddb.model.limits import check_whole, encode_text
from worlddb.model.values import NOW, AsOf
from worlddb.read.weigh import Weights, check_weight

Worlds = bytes | str | Sequence[bytes | str]
LANES = ("text", "vector", "graph")
QUESTION_BYTES_MAX = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How lanes are run and fused.

    `weights` names the lanes that run and how much each counts; `depth` is how many nodes each may
    rank; `c` is the constant of reciprocal rank fusion. `weighing` says how the hits are ordered at
    last; without it, by the fused ranks alone.
    """

    c: int = 60
    depth: int = 100
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(LANES, 1.0))
    weighing: Weights | None = field(default_factory=Weights)

    def __post_init__(self) -> None:
        check_whole(self.c, "c", 0)
        check_whole(self.depth, "depth", 1)
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
    """A checked question, as the faces give it."""

    text: str
    k: int = 10
    max_tokens: int | None = None
    as_of: AsOf = NOW
    types: tuple[str, ...] | None = None
    include_superseded: bool = False
    explain: bool = True
    at: Instant | None = None
    settings: RecallSettings = DEFAULT_SETTINGS


def question_of(text: str, **options: Any) -> Question:
    """Return a question whose every part was checked.

    Raises:
        InvalidInputError: it is empty or too long, or an option is wrong.
    """
    plain = text.replace("\0", " ") if isinstance(text, str) else text
    encode_text(plain, "question", QUESTION_BYTES_MAX)
    if not text.strip():
        raise InvalidInputError("question: give at least one word")
    asked = Question(text=plain, **options)
    check_whole(asked.k, "k", 1)
    if asked.max_tokens is not None:
        check_whole(asked.max_tokens, "max_tokens", 1)
    if asked.at is not None:
        to_micros(asked.at, "at")
    if not isinstance(asked.settings, RecallSettings):
        raise InvalidInputError(f"settings: give worlddb.RecallSettings(…), not {asked.settings!r}")
    return asked

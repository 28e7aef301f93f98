"""Retention: how present a memory still is, by its age, recalls and links.

    retention = 2 ^ (−idle ÷ (half_life × strength))
    strength  = 1 + recall_gain × ln(1 + recalls) + link_gain × ln(1 + links)

*Idle* is the time since the memory was made or last recalled, whichever is later. So a recall has
two effects: the memory is fresh again, and it fades more slowly from then on. Retention is a number
from 0 to 1 that ranks and proposes; nothing is ever removed because of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from worlddb.errors import InvalidInputError

DAY_MICROS = 86_400_000_000  # 24 × 60 × 60 s in microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How memories fade: the half-life of one without recalls and links, and the gain of each."""

    half_life_days: float = 30.0
    recall_gain: float = 1.0
    link_gain: float = 0.25

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            least = 1e-6 if name == "half_life_days" else 0
            if not is_number or not least <= value < math.inf:
                raise InvalidInputError(
                    f"{name}: give a number from {least:g} on, not {value!r:.40}"
                )


def strength(recalls: int, links: int, settings: RetentionSettings) -> float:
    """Return the factor by which recalls and links lengthen the half-life."""
    return (
        1.0
        + settings.recall_gain * math.log1p(max(0, recalls))
        + settings.link_gain * math.log1p(max(0, links))
    )


def retention(
    created_at: int,
    last: int | None,
    recalls: int,
    links: int,
    now: int,
    settings: RetentionSettings,
) -> float:
    """Return the retention of a memory, from 0 to 1; times are in microseconds."""
    idle_days = idle_micros(created_at, last, now) / DAY_MICROS
    return math.exp2(-idle_days / (settings.half_life_days * strength(recalls, links, settings)))


def idle_micros(created_at: int, last: int | None, now: int) -> int:
    """Return the time since a memory was made or last recalled, in microseconds."""
    return max(0, now - max(created_at, created_at if last is None else last))

"""Thinning: `make test` tries a part of what exhaustive tests can try, `make fuzz` all of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

DEEP = os.environ.get("WORLDDB_FUZZ") == "deep"


def some(items: Iterable[T], every: int, start: int = 0) -> list[T]:
    """Return all items where tests run deep, else every nth, always the same and at least one."""
    found = list(items)
    return found if DEEP else found[start % every :: every] or found[:1]


def examples(deep: int, everyday: int) -> int:
    """Return how many random examples a property is tried with."""
    return deep if DEEP else everyday

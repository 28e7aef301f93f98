"""Pending: what waits for extraction, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from worlddb.model.id import Id
from worlddb.model.values import Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Plain):
    """A memory or a session whose extraction waits: since when, for which extractor, and why."""

    id: Id
    extractor: str
    error: str
    attempts: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Plain):
    """What a run over the queue did: `done`, `failed` with the reason, and how many are `left`.

    `dropped` were retired meanwhile, so there was nothing to extract any more.
    """

    done: tuple[Id, ...] = ()
    failed: tuple[Pending, ...] = ()
    dropped: tuple[Id, ...] = ()
    left: int = 0

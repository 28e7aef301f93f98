"""Inbox pages: memories that fade, and memories that wait to be read, inside some scopes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from typing import Any

from worlddb.consolidate.fading_report import check_fading, fading_of
from worlddb.ingest.extraction_queue import queue_entries
from worlddb.memory.memory_marks import PINNED
from worlddb.memory.reads import PAGE_MAX, TURNS_LISTED, MemoryReader
from worlddb.memory.results import Page, Remembered
from worlddb.memory.scope_view import filtered_view, page
from worlddb.model.inputs import check_whole, to_micros
from worlddb.model.records import WHOLES, Plain
from worlddb.model.retention_curve import RetentionSettings, retention
from worlddb.store.rows import RecallRow

LOOKED_AT_ONCE = 1_000  # Bounds the memory of one database call.
LOOKED_AT_MAX = 100_000  # Some seconds of reading; a larger scope is told as such.


@dataclass(frozen=True, slots=True, kw_only=True)
class FadingMemory(Plain):
    """A memory with a low retention, and why, in figures and in words (`because`)."""

    memory: Remembered
    retention: float
    idle_days: float
    recalls: int
    links: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FadingPage(Page[FadingMemory]):
    """Memories that fade, the worst first. Without `is_complete` only the latest were looked at."""

    memories: tuple[FadingMemory, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMemory(Plain):
    """A memory that is written and not read yet: for which extractor it waits, why, since when."""

    memory: Remembered
    extractor: str
    error: str
    attempts: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPage(Page[PendingMemory]):
    """Memories that wait to be read, the next first; `left` counts those beyond the limit."""

    memories: tuple[PendingMemory, ...]
    left: int


def fading_page(
    reader: MemoryReader, limit: int, below: float, scope: Mapping[str, Any]
) -> FadingPage:
    """Return the memories that are kept worst; see `Memory.fading`."""
    check_whole(limit, "limit", 1, PAGE_MAX)
    check_fading(limit, below)
    engine, settings = reader.db.engine, RetentionSettings()
    engine.recalls.flush()
    # Of a session its turns are recalled, so its own count would say nothing.
    where = {"$not": {PINNED: True}, "type": {"$nin": [*WHOLES]}}
    with reader.scopes.viewing(reader.scopes.groups(scope)) as view:
        now, chosen = to_micros(view.moment.now, "now"), filtered_view(engine, view, where)
        lowest: list[tuple[float, int, RecallRow]] = []
        looked_at, rows = 0, page(chosen, None, LOOKED_AT_ONCE)
        while rows and looked_at < LOOKED_AT_MAX:
            for item in view.reader.sweep.recalls(rows):
                kept = retention(
                    item.created_at, item.last, item.recalls, item.links, now, settings
                )
                if kept < below:
                    lowest.append((kept, item.row, item))
            lowest = nsmallest(limit, lowest)
            looked_at += len(rows)
            rows = page(chosen, rows[-1], LOOKED_AT_ONCE)
        found = reader.remembered(view, [row for _, row, _ in lowest], TURNS_LISTED)
        nodes = view.reader.nodes([row for _, row, _ in lowest])
    told = [fading_of(nodes[row], kept, item, now, settings) for kept, row, item in lowest]
    return FadingPage(
        memories=tuple(
            FadingMemory(
                memory=memory,
                retention=one.retention,
                idle_days=one.idle_days,
                recalls=one.recalls,
                links=one.links,
                because=one.because,
            )
            for memory, one in zip(found, told, strict=True)
        ),
        is_complete=not rows,
    )


def pending_page(reader: MemoryReader, limit: int, scope: Mapping[str, Any]) -> PendingPage:
    """Return the memories that wait to be read; see `Memory.pending`."""
    check_whole(limit, "limit", 1, PAGE_MAX)
    with reader.scopes.viewing(reader.scopes.groups(scope)) as view:
        queue = [entry.pending for entry in queue_entries(view.reader)]
        rows = {row: one for one in queue if (row := view.reader.node_row(one.id)) is not None}
        seen = view.keep(rows)
        inside = [row for row in rows if row in seen]
        found = reader.remembered(view, inside[:limit], TURNS_LISTED)
    waiting = [rows[row] for row in inside[:limit]]
    return PendingPage(
        memories=tuple(
            PendingMemory(
                memory=memory,
                extractor=one.extractor,
                error=one.error,
                attempts=one.attempts,
                since=one.since,
            )
            for memory, one in zip(found, waiting, strict=True)
        ),
        left=max(0, len(inside) - limit),
    )

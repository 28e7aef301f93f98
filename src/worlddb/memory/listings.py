"""Listings by page: fading memories, memories that wait to be read, the content of a world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from typing import Any

from worlddb.consolidate.fading_report import check_fading, fading_of
from worlddb.ingest.extraction_queue import queue_entries
from worlddb.memory.memory_marks import PINNED
from worlddb.memory.reads import PAGE_MAX, TURNS_LISTED, MemoryReader
from worlddb.memory.results import Page, Remembered
from worlddb.memory.scope_view import CHUNK, filtered_view, find_inside, page
from worlddb.model.address import Id
from worlddb.model.inputs import Instant, check_whole, to_micros
from worlddb.model.records import WHOLES, Node, Plain
from worlddb.model.retention_curve import RetentionSettings, retention
from worlddb.store.rows import RecallRow
from worlddb.view.visibility import NOWHERE, View

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


LAST = (1 << 63) - 1  # Above every row.
COUNTED_MAX = 100_000  # Counting more takes longer than a reader waits; "or more" says enough.


@dataclass(frozen=True, slots=True, kw_only=True)
class Interior(Plain):
    """What lives in a world, or is a member of it, the newest first.

    `next_cursor` gets the next page. Nodes of one type come in the order in which they were made.
    `size` counts the nodes in the world, ended ones too, up to 100,000; `sizes` does so for each of
    `nodes`. It is None where a caller sees only a part of the world.
    """

    world: Id | None
    size: int | None
    nodes: tuple[Node, ...]
    sizes: tuple[int, ...]
    next_cursor: str | None

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


def interior_page(
    reader: MemoryReader,
    id: bytes | str | None,
    *,
    type: str | None,
    limit: int,
    cursor: str | None,
    as_of: Instant | None,
    known_at: Instant | None,
    scope: Mapping[str, Any],
) -> Interior:
    """Return a page of what lives in a world; see `Memory.interior`."""
    check_whole(limit, "limit", 1, PAGE_MAX)
    scopes = reader.scopes
    groups = scopes.groups(scope)
    with scopes.viewing(groups, as_of=as_of, known_at=known_at) as view:
        world = view.worlds[0] if id is None else _world(view, id)
        if world == NOWHERE:
            return Interior(world=None, size=0, nodes=(), sizes=(), next_cursor=None)
        rows = _rows(view, world, type, reader.place(view, cursor), limit + 1)
        held = view.reader.nodes(rows[:limit], view.moment.known)
        nodes = tuple(held[row] for row in rows[:limit])
        whole = not view.within
        found = Interior(
            world=Id(view.reader.world(world).id),
            size=_size(view, world) if whole else None,
            nodes=nodes,
            sizes=tuple(_size(view, row) if whole else 0 for row in rows[:limit]),
            next_cursor=str(nodes[-1].id) if len(rows) > limit else None,
        )
    reader.note("interior", groups, "", (node.id for node in nodes))
    return found


def _world(view: View, id: bytes | str) -> int:
    """Return the row of a world that can be seen, or of one of the scopes themselves."""
    own = {str(Id(view.reader.world(row).id)): row for row in view.worlds if row != NOWHERE}
    given = id if isinstance(id, str) else id.hex()
    return own[given] if given in own else find_inside(view, id)[0]


def _rows(view: View, world: int, type: str | None, place: int | None, most: int) -> list[int]:
    """Return up to `most` rows that can be seen in a world, in the order of a page."""
    found: list[int] = []
    while len(found) < most:
        if type is None:
            rows = _latest(view, world, LAST if place is None else place, CHUNK)
        else:
            rows = view.reader.placed.typed(world, type, "", place or 0, CHUNK)
        if not rows:
            break
        place, seen = rows[-1], view.keep(rows)
        found += [row for row in rows if row in seen]
    return found[:most]


def _latest(view: View, world: int, before: int, most: int) -> list[int]:
    """Return children and members of a world below a row, the newest first."""
    reader, known = view.reader, view.moment.known
    if known is None:
        now = to_micros(view.moment.now, "now")
        return reader.placed.latest([world], before, now, most)
    members = reader.edges_at([world], "out", ("contains",), known)
    rows = {*reader.children(world, known), *(item.target for item in members)}
    return sorted((row for row in rows if row < before), reverse=True)[:most]


def _size(view: View, world: int) -> int:
    return len(_latest(view, world, LAST, COUNTED_MAX))

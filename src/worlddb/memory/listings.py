"""Listings by page: scopes, the interior of a world, fading and pending memories, reads.

These are calls of `Memory`, as functions of a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nsmallest
from itertools import chain
from typing import TypeAlias, Unpack

from worlddb.audit.read_audit import reads as audited_reads
from worlddb.consolidate.fading_report import check_fading, fading_of
from worlddb.errors import InvalidInputError
from worlddb.ingest.extraction_queue import queue_entries
from worlddb.memory.memory_marks import PINNED
from worlddb.memory.reads import (
    PAGE_MAX,
    TURNS_LISTED,
    MemoryReader,
    granted,
    no_cursor,
    row_of_cursor,
)
from worlddb.memory.results import Page, ReadPage, Remembered, Scope, ScopePage
from worlddb.memory.scope_view import CHUNK, CallerScopes, filtered_view, find_inside, page
from worlddb.model.address import Id
from worlddb.model.inputs import (
    KINDS,
    SCOPE,
    Instant,
    Plain,
    ScopeIds,
    ScopeKind,
    check_choice,
    check_integer,
    groups_of,
    scope_named,
    to_micros,
)
from worlddb.model.records import WHOLES, Node
from worlddb.model.retention_curve import RetentionSettings, retention
from worlddb.store.rows import ROOT_ROW, RecallRow
from worlddb.view.visibility import NOWHERE, Moment, View

LOOKED_AT_ONCE = 1_000  # Bounds the memory of one database call.
LOOKED_AT_MAX = 100_000  # Some seconds of reading; for a larger scope the page says so.


@dataclass(frozen=True, slots=True, kw_only=True)
class FadingMemory(Plain):
    """A memory with a low retention, and the reason, in figures and in words (`because`)."""

    memory: Remembered
    retention: float
    idle_days: float
    recalls: int
    links: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FadingPage(Page[FadingMemory]):
    """Fading memories, the lowest retention first; without `is_complete`, of the latest only."""

    memories: tuple[FadingMemory, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMemory(Plain):
    """A memory with a pending extraction: its extractor, the reason, and since when."""

    memory: Remembered
    extractor: str
    error: str
    attempts: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPage(Page[PendingMemory]):
    """Memories with a pending extraction, the next first; `left` counts those beyond the limit."""

    memories: tuple[PendingMemory, ...]
    left: int


def fading(
    reader: MemoryReader, *, below: float = 0.25, limit: int = 50, **scope: Unpack[ScopeIds]
) -> FadingPage:
    """Return fading memories, the lowest retention first: old, seldom recalled, hardly linked.

    Retention falls from 1 towards 0 after a memory was written or last recalled. Pinned memories do
    not fade. This is a report: nothing is retired because of it.

    Raises:
        InvalidInputError: an argument is wrong.
        RejectedError: the scope is outside the bounds of this memory.
    """
    check_integer(limit, "limit", 1, PAGE_MAX)
    check_fading(limit, below)
    engine, settings = reader.db.engine, RetentionSettings()
    engine.recalls.flush()
    # Recalls of a session are counted on its turns, so its own count means nothing.
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


def pending(reader: MemoryReader, *, limit: int = 50, **scope: Unpack[ScopeIds]) -> PendingPage:
    """Return memories whose extraction is pending: the text is long, or a model failed.

    The text is stored and recalled; names and facts come later. See `db.extract_pending`.

    Raises:
        InvalidInputError: an argument is wrong.
        RejectedError: the scope is outside the bounds of this memory.
    """
    check_integer(limit, "limit", 1, PAGE_MAX)
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
COUNTED_MAX = 100_000  # Counting more takes too long; "or more" is enough.


@dataclass(frozen=True, slots=True, kw_only=True)
class Interior(Plain):
    """The nodes that live in a world or are its members, the newest first.

    `next_cursor` gets the next page. Nodes of one type are in the order of writing. `size` is the
    number of nodes in the world, ended ones included, up to 100,000; `sizes` are those of `nodes`.
    It is None if a caller sees only a part of the world.
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


@granted
def interior(
    reader: MemoryReader,
    id: bytes | str | None = None,
    *,
    type: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
    as_of: Instant | None = None,
    known_at: Instant | None = None,
    **scope: Unpack[ScopeIds],
) -> Interior:
    """Return a page of the nodes in a world, with the size of each.

    `id` is a visible world; by default the first scope. With `type` only nodes of that type, such
    as "Entity".

    Raises:
        InvalidInputError: an argument is wrong.
        NotFoundError: there is no such world here.
        RejectedError: the scope is outside the bounds of this memory.
    """
    check_integer(limit, "limit", 1, PAGE_MAX)
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
    """Return the row of a visible world, or of one of the scopes themselves."""
    own = {str(Id(view.reader.world(row).id)): row for row in view.worlds if row != NOWHERE}
    given = id if isinstance(id, str) else id.hex()
    return own[given] if given in own else find_inside(view, id)[0]


def _rows(view: View, world: int, type: str | None, place: int | None, most: int) -> list[int]:
    """Return up to `most` visible rows in a world, in the order of a page."""
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


# Scopes.

GENERATIONS_MAX = 1_000_000  # Purges of one scope; a later creation time is not a scope's.
IsOwn: TypeAlias = Callable[[int, Node], bool]
"""Whether a node, by its row, is a scope that may be listed."""


def list_scopes(
    reader: MemoryReader,
    *,
    kind: ScopeKind | None = None,
    limit: int = 100,
    cursor: str | None = None,
    include_retired: bool = False,
) -> ScopePage:
    """Return the users, agents, apps and runs, the oldest first, a page at a time.

    Raises:
        InvalidInputError: no such kind, or an argument is wrong.
    """
    scopes = reader.scopes
    check_integer(limit, "limit", 1, PAGE_MAX)
    if kind is not None:
        check_choice(kind, "kind", KINDS)
    with scopes.viewing(scopes.bounds, ended=include_retired) as view:
        is_own = _own_scopes(scopes, view)
        if scopes.bounds:
            return _bound_scopes(scopes, view, kind, limit, cursor, is_own)
        after = 0 if cursor is None else row_of_cursor(view.reader, cursor)
        rows = _scope_rows(view, kind, after, limit + 1, is_own)
        nodes = view.reader.nodes(rows)
        found = tuple(_scope(nodes[row], view.moment) for row in rows[:limit])
    more = len(rows) > limit
    return ScopePage(scopes=found, next_cursor=str(found[-1].id) if more else None)


def _bound_scopes(
    scopes: CallerScopes,
    view: View,
    kind: ScopeKind | None,
    limit: int,
    cursor: str | None,
    is_own: IsOwn,
) -> ScopePage:
    """Return a page of the scopes of a bound caller, as old as its own memories there.

    The time and order of creation of these scopes may be the doing of other callers.
    """
    reader = view.reader
    nodes = reader.nodes(_scope_rows(view, kind, 0, reader.head().nodes, is_own))
    # Inside bounds of two kinds the caller owns no whole scope.
    own = set(map(str, scopes.bounds[0])) if len(scopes.bounds) == 1 else set()
    listed: list[Scope] = []
    for row, node in nodes.items():
        found = _scope(node, view.moment)
        if node.name in own:
            listed.append(found)
        elif first := page(_in_both(view, row), None, reader.head().nodes)[-1:]:
            since = reader.nodes(first)[first[0]].known_from
            listed.append(replace(found, known_from=since))
    listed.sort(key=lambda one: (one.known_from, one.name not in own, one.name))
    places = {str(one.id): at for at, one in enumerate(listed, 1)}
    if cursor is not None and cursor not in places:
        raise no_cursor(cursor)
    start = places.get(cursor or "", 0)
    shown = tuple(listed[start : start + limit])
    more = len(listed) > start + limit
    return ScopePage(scopes=shown, next_cursor=str(shown[-1].id) if more else None)


def _scope_rows(
    view: View, kind: ScopeKind | None, after: int, most: int, is_own: IsOwn
) -> list[int]:
    """Return the rows of scopes that the caller may list, the oldest first."""
    reader, start = view.reader, "" if kind is None else f"{kind}:"
    found: list[int] = []
    while rows := reader.placed.typed(ROOT_ROW, SCOPE, start, after, PAGE_MAX):
        after = rows[-1]
        for row, node in sorted(reader.nodes(rows).items()):
            if (view.include_ended or view.moment.holds(node)) and is_own(row, node):
                found.append(row)
                if len(found) == most:
                    return found
    return found


def _own_scopes(scopes: CallerScopes, view: View) -> IsOwn:
    """Return a test for the scopes that the caller may list.

    A bound caller may list the scopes that have a memory inside its bounds.
    """
    if not scopes.bounds:
        return lambda row, node: _is_scope(node)
    reader, groups = view.reader, (view.worlds, *view.within)
    before, now = reader.head().nodes + 1, to_micros(view.moment.now, "now")
    inside = reader.placed.latest(set(chain(*groups)), before, now, before)
    # Most scopes have none of these memories. A turn belongs to the scope of its session.
    held = reader.placed.holders(inside)
    held |= reader.placed.holders(held)
    own = {str(scope) for group in scopes.bounds for scope in group}

    def is_own(row: int, node: Node) -> bool:
        if not _is_scope(node):
            return False
        if node.name in own:
            return True
        if row not in held or not scopes.may_name(scope_named(node.name)):
            return False
        return bool(page(_in_both(view, row), None, 1))

    return is_own


def _in_both(view: View, row: int) -> View:
    """Return the part of a view that is inside a further scope."""
    return View(
        view.reader,
        view.moment,
        worlds=view.worlds,
        within=[*view.within, [row]],
        members=view.members,
        include_ended=view.include_ended,
    )


def _is_scope(node: Node) -> bool:
    """Return whether a node is a scope, and not a caller's node that looks like one."""
    try:
        name = scope_named(node.name)
    except InvalidInputError:
        return False
    generation = to_micros(node.created_at, "created_at")
    return 0 <= generation < GENERATIONS_MAX and node.id == name.id(generation)


def _scope(node: Node, moment: Moment) -> Scope:
    name = scope_named(node.name)
    return Scope(
        id=node.id,
        kind=name.kind,
        value=name.value,
        name=node.name,
        known_from=node.known_from,
        retired=not moment.holds(node),
    )


def reads(reader: MemoryReader, *, limit: int = 100, **scope: Unpack[ScopeIds]) -> ReadPage:
    """Return the recorded reads, the latest first: of all scopes, or of named ones.

    Only a store that was opened with `audit_reads=True` records reads.

    Raises:
        InvalidInputError: a scope is badly named, or the limit is not a number from 1 to 1,000.
        RejectedError: this memory is bound; the record is for administrators.
        StorageError: the record cannot be read.
    """
    reader.scopes.refuse_bound("the record of reads")
    check_integer(limit, "limit", 1, PAGE_MAX)
    named = {str(name) for group in groups_of(scope) for name in group}
    entries = audited_reads(reader.db.engine.store)
    found = [one for one in entries if not named or named.intersection(one.scopes)]
    return ReadPage(reads=tuple(found[::-1][:limit]), left=max(0, len(found) - limit))

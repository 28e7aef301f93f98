"""World interior: what lives in a world, a page at a time, with the size of each world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from worlddb.memory.reads import PAGE_MAX, MemoryReader
from worlddb.memory.scope_view import CHUNK, find_inside
from worlddb.model.address import Id
from worlddb.model.inputs import Instant, check_whole, to_micros
from worlddb.model.records import Node, Plain
from worlddb.view.visibility import NOWHERE, View

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

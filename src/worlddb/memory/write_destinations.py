"""Where a write goes: the scopes that it names, or the place of the memory that it amends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worlddb.errors import ConflictError
from worlddb.ingest.chat_growth import ChatMovedError, Growth, begun_alone, growth_of
from worlddb.ingest.extractors import SESSION as CHAT_KEY
from worlddb.ingest.write_request import Target, find_key
from worlddb.memory.scope_view import CallerScopes, find_memory, generations, successors
from worlddb.model.address import Id
from worlddb.model.drafts import Message
from worlddb.model.inputs import to_micros
from worlddb.model.records import NOW, WHOLES, Groups, Node, ScopeName
from worlddb.store.interface import Reader
from worlddb.view.visibility import View, moment_of

AROUND = "around"
"""The key by which a draft means the world that an amended memory lies in."""


@dataclass(frozen=True, slots=True)
class ScopeDestination:
    """Scopes by name: they are made if they are new, and looked for again if one was purged."""

    scopes: tuple[ScopeName, ...]
    bounds: Groups
    key: str | None
    digest: str
    chat: tuple[Message, ...] = ()
    growth: Growth | None = None
    caller: CallerScopes | None = None
    strangers: tuple[ScopeName, ...] = ()

    def granted(self, reader: Reader) -> list[ScopeName]:
        """Return the scopes that only a grant opens, if it still stands on this snapshot."""
        if self.caller is None or not self.strangers:
            return []
        from worlddb.memory.scope_grants import admitted

        now = max(self.caller.clock(), reader.head().time)
        return admitted(reader, self.caller, self.strangers, now)

    def grown(self, reader: Reader, now: int) -> Growth | None:
        """Return which session of the scopes a chat continues, and what is new in it."""
        worlds = self._worlds(reader) if self.chat else []
        return growth_of(reader, worlds, now, self.chat) if worlds else None

    def begun(self, reader: Reader, now: int, metadata: Mapping[str, Any]) -> Id | None:
        """Return the memory that the first message of a new chat was written as, alone."""
        worlds = self._worlds(reader) if len(self.chat) > 1 and self.growth is None else []
        return begun_alone(reader, worlds, now, self.chat[0], metadata) if worlds else None

    def _worlds(self, reader: Reader) -> list[int]:
        """Return the worlds of the scopes; none if one of them is new."""
        rows = [_world(reader, name)[2] for name in self.scopes]
        return [] if None in rows else [row for row in rows if row is not None]

    def goes_on(self, messages: Sequence[Message]) -> bool:
        """Return whether one message is the begin or the next turn of a chat that has a name."""
        has_run = any(name.kind == "run" for name in self.scopes)
        is_named = has_run or messages[0].id is not None
        return bool(self.chat) and (self.growth is not None or is_named)

    def locate(self, reader: Reader) -> Target:
        """Return where the scopes are on this snapshot."""
        worlds = {name: _world(reader, name) for name in self.scopes}
        home, _, row = worlds[self.scopes[0]]
        within = _further_bounds(reader, self.bounds, home)
        key = written = None
        if self.key is not None:
            bounds = [world for group in within for world in group]
            key, written = find_key(reader, self.key, home, row, self.digest, bounds)
        others = tuple(world for world, _, _ in worlds.values() if world != home)
        # By a grant only the memory is seen there, not the names in it; and it is a memory of its
        # own, so that no text which is trusted more elsewhere takes its place.
        guests = [worlds[name][0] for name in self.granted(reader)]
        anchors = {} if self.growth is None else {CHAT_KEY: self.growth.session}
        if self.chat and self.grown(reader, reader.head().time) != self.growth:
            raise ChatMovedError("another writer continued this chat; write it again")
        return Target(
            commit=reader.head().seq,
            home=home,
            home_row=row,
            scopes={name: number for name, (_, number, row) in worlds.items() if row is None},
            memberships=others,
            name_worlds=tuple(world for world in others if world not in guests),
            within=[*within, *([world] for world in guests)],
            anchors=anchors,
            key=key,
            written=written,
            is_shared=self.scopes[0].kind in ("agent", "app"),
        )


@dataclass(frozen=True, slots=True)
class AmendDestination:
    """Wherever a memory lies that is amended."""

    memory: Id
    caller: CallerScopes
    reach: Groups

    def locate(self, reader: Reader) -> Target:
        """Return the worlds of the memory on this snapshot."""
        moment = moment_of(reader, NOW, self.caller.clock())
        view = self.caller.view(reader, self.reach, moment, ended=True)
        row, old = find_memory(view, self.memory)
        refuse_ended(view, row, old)
        lives, around, others = _homes(view, row)
        home = _own_home(view, self.caller.bounds, row, lives)
        guests: set[Id] = set()
        if self.caller.bounds and others:
            from worlddb.memory.scope_grants import guest_worlds

            now = to_micros(moment.now, "now")
            guests, closed = guest_worlds(reader, self.caller, others, now)
            others = [world for world in others if world not in closed]
        return Target(
            commit=reader.head().seq,
            home=home,
            home_row=reader.node_row(home),
            memberships=tuple(others),
            name_worlds=tuple(one for one in (lives, *others) if one not in {home, *guests}),
            within=_further_bounds(reader, self.caller.bounds, home),
            anchors={AROUND: around},
        )


def _world(reader: Reader, scope: ScopeName) -> tuple[Id, int, int | None]:
    """Return a scope's present world: its id, its generation, and its row if it is made."""
    rows = generations(reader, scope)
    if not rows or reader.closed_by(rows[-1:]):
        return scope.id(len(rows)), len(rows), None
    generation = len(rows) - 1
    return scope.id(generation), generation, rows[-1]


def _further_bounds(reader: Reader, bounds: Groups, home: Id) -> list[list[Id]]:
    """Return the worlds of those bounds that the home is not one of."""
    groups = [[_world(reader, name)[0] for name in group] for group in bounds]
    return [group for group in groups if home not in group]


def _own_home(view: View, bounds: Groups, row: int, home: Id) -> Id:
    """Return where the names in a text about a memory belong: never outside the bounds.

    A shared memory may live with another user, whose names and claims are not the caller's.
    """
    reader = view.reader
    own = [_world(reader, name)[0] for group in bounds for name in group]
    if not own or home in own:
        return home
    rows = {number: world for world in own if (number := reader.node_row(world)) is not None}
    return next(rows[number] for number in rows if view.keep_inside({row}, [number]))


def _homes(view: View, row: int) -> tuple[Id, Id, list[Id]]:
    """Return where names in a memory's text belong, the world it lies in, and its other worlds."""
    reader, moment = view.reader, view.moment
    parent = reader.parents([row])[row]
    assert parent is not None
    around = reader.world(parent)
    above = (
        around
        if around.type not in WHOLES or around.parent is None
        else reader.world(around.parent)
    )
    holders = reader.edges_at([row], "in", ("contains",))
    others = [item.edge.source for item in holders if moment.holds(item.edge)]
    return Id(above.id), Id(around.id), others


def refuse_ended(view: View, row: int, node: Node, whole: bool = False) -> None:
    """Refuse to amend what has ended, or what is more than one text; with `whole`, it may be.

    Raises:
        ConflictError: the memory has ended, or it is a session or a document.
    """
    if node.type in WHOLES and not whole:
        part, kind = WHOLES[node.type].lower(), node.type.lower()
        raise ConflictError(f"{node.id.short} is a whole {kind}; amend one of its {part}s")
    if view.moment.holds(node):
        return
    by = ", ".join(ident.short for ident in successors(view, row))
    reason = f"was superseded by {by}; amend that one" if by else "was retired; write a new memory"
    raise ConflictError(f"memory {node.id.short} {reason}")

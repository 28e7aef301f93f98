"""Scope grants: who outside a scope may read it or write into it.

    Grant, in user:bob ──refers_to──▶ user:ada         "user:ada may read user:bob"

A grant is a memory of the scope that it opens. So it is journalled, both clocks apply to it, it can
expire, and revoking it is retiring it. Only this module writes the edge that makes a text a grant.
The edge leads to the present scope of a name: a later scope with a purged name has no grants.

The grants that are valid now decide what a caller may see, whatever time a question is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Unpack

from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, RejectedError
from worlddb.memory.endings import check_confirmed
from worlddb.memory.results import Page, Retired
from worlddb.memory.scope_view import (
    CallerScopes,
    by_kind,
    find_memory,
    generations,
    refuse_untrusted,
)
from worlddb.model.address import Id, content_key
from worlddb.model.inputs import (
    SCOPE,
    Groups,
    Instant,
    Plain,
    ScopeIds,
    ScopeKind,
    ScopeName,
    born,
    check_choice,
    from_micros,
    groups_of,
    scope_named,
    to_micros,
)
from worlddb.model.records import Node
from worlddb.model.text_safety import Origin
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.world_db import WorldDB
from worlddb.write.transaction import Transaction

GRANT = "Grant"
Right = Literal["read", "write", "refused"]
TEXTS: dict[Right, str] = {
    "read": "{} may read {}",
    "write": "{} may write into {}",
    "refused": "{} may not write into {}",
}
RIGHT = "grant"  # The metadata key of the right, on a grant's edge.
ALIKE_MAX = 8  # Grants with one text; only the last can be valid.
SCOPES_PER_READ = 1_000  # Bounds the memory of one read.
EVERY_GRANT = 1 << 31  # Above the number of nodes of any scope.
ALWAYS = 0  # Before the end of any grant.
BY_GRANT: Origin = "tool"
"""What comes from another scope is at best trusted as what strangers may have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(Plain):
    """A right of one scope (`to`) in another one, and its expiry; None for no end.

    The right is read or write; "refused" means that the scope accepts nothing from them. `actor`
    gave it. It has `ended` if it was revoked or has expired.
    """

    id: Id
    to: ScopeName
    right: Right
    scope: ScopeName
    since: datetime
    until: datetime | None
    actor: str
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants(Page[Grant]):
    """Grants, in the order they were given."""

    grants: tuple[Grant, ...]


def _world(reader: Reader, scope: ScopeName) -> list[int]:
    """Return the row of a scope if it exists and was not purged."""
    rows = generations(reader, scope)[-1:]
    return [] if reader.closed_by(rows) else rows


def standing_grants(
    reader: Reader, scope: ScopeName, to: Iterable[ScopeName], right: Right, now: int
) -> list[Id]:
    """Return the valid grants of a right to any of some scopes."""
    callers = {row for one in to for row in _world(reader, one)}
    texts = {TEXTS[right].format(one, scope) for one in to}
    # First by references to the caller, so that the time does not show whether a scope exists.
    told = reader.edges_at(sorted(callers), "in", ("refers_to",)) if callers else []
    if not any(body.content in texts for body in reader.bodies({one.source for one in told})):
        return []
    worlds = _world(reader, scope)
    if not worlds:
        return []
    keys = [content_key(GRANT, "", text, worlds[0]) for text in sorted(texts)]
    rows = reader.alike(keys, now, ALIKE_MAX)
    edges = reader.edges_at(rows, "out", ("refers_to",))
    meant = {
        item.source
        for item in edges
        if item.target in callers and item.edge.metadata.get(RIGHT) == right
    }
    return [
        Id(body.id)
        for body in reader.bodies(sorted(meant))
        if body.type == GRANT and body.parent == worlds[0] and body.content in texts
    ]


def opened_bounds(
    reader: Reader, bounds: Groups, named: Mapping[ScopeKind, Sequence[ScopeName]], now: int
) -> Groups:
    """Return the bounds of a read that names scopes: its own, or scopes opened by grants.

    A granted scope replaces the bound that it was granted to, if the call names no scope of that
    kind. Bounds of other kinds apply as before.
    """
    own = by_kind(bounds)
    opened: dict[ScopeKind, tuple[ScopeName, ...]] = dict(own)
    for kind, group in named.items():
        strangers = set(group) - set(own.get(kind, ()))
        holders = [kind] if kind in own else [one for one in own if one not in named]
        for holder in holders if strangers else ():
            if all(standing_grants(reader, one, own[holder], "read", now) for one in strangers):
                opened.pop(holder, None)
                opened[kind] = tuple(group)
                break
    return tuple(opened.values())


def granted_strangers(
    reader: Reader, caller: CallerScopes, strangers: Iterable[ScopeName], now: int
) -> list[ScopeName]:
    """Return those scopes outside the bounds that the caller may write into by a grant.

    The others are of kinds that the caller's token or bounds allow (`writes_into`).

    Raises:
        RejectedError: one is not open to the caller, whether it exists or not.
    """
    own = by_kind(caller.bounds)
    granted: list[ScopeName] = []
    for scope in strangers:
        holders = [own[scope.kind]] if scope.kind in own else list(own.values())
        to = [one for group in holders for one in group]
        is_open = scope.kind in caller.writes_into and scope.kind not in own
        if standing_grants(reader, scope, to, "write", now):
            granted.append(scope)
        elif not is_open or standing_grants(reader, scope, to, "refused", now):
            raise RejectedError(
                f"{scope} is not yours, so you may not write into it; leave {scope.kind}_id out, "
                "or ask its owner for a grant"
            )
    return granted


def guest_worlds(
    reader: Reader, caller: CallerScopes, worlds: Iterable[Id], now: int
) -> tuple[set[Id], set[Id]]:
    """Return the scopes opened to a bound caller by a valid grant, and by an ended one."""
    opened: set[Id] = set()
    ended: set[Id] = set()
    to = [one for group in caller.bounds for one in group]
    for world in worlds if to else ():
        row = reader.node_row(world)
        scope = None if row is None else _scope_name(reader, [row])
        if (
            scope is not None
            and scope not in to
            and standing_grants(reader, scope, to, "write", ALWAYS)
        ):
            opened.add(world)
            if not standing_grants(reader, scope, to, "write", now):
                ended.add(world)
    return opened, ended


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantKeeper:
    """Gives, lists and revokes the grants of scopes that a caller has in bounds."""

    db: WorldDB
    scopes: CallerScopes
    actor: str
    origin: Origin | None = None

    def grant(
        self,
        to: str,
        right: Literal["read", "write"],
        *,
        until: Instant | None = None,
        confirm: str | bool | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Grant:
        """Let callers of another scope, such as "user:bob", read or write in one.

        The grant is a memory of that scope. It opens recall, context, list, read and query to
        callers who name the scope, or lets them write into it: their memories live in their own
        scope, are members of this one, and are trusted like a tool. It ends when it is revoked, or
        at `until`. A new grant of the same right replaces the old one. `confirm`, if given, must be
        True or the scope's value.

        Raises:
            InvalidInputError: no such right or scope, not exactly one scope, or `until` is over.
            RejectedError: the scope is not the caller's as a whole, or the caller is not trusted
                in full.
            StorageError, ConflictError: the store cannot be written.
        """
        check_choice(right, "right", ("read", "write"))
        named, receiver = self.scopes.own_scope(scope, "grant"), scope_named(to)
        if confirm is not None:
            check_confirmed(confirm, [named], "grant")
        if named == receiver:
            raise InvalidInputError(f"to: {named} needs no grant for itself; name another scope")
        if until is not None and to_micros(until, "until") <= self.db.engine.clock():
            raise InvalidInputError("until: give a time that is still to come")
        with self.db.transaction(self.actor, origin=self.origin) as tx:
            refuse_untrusted(tx.reader, self.origin, named)
            return replace(self._given(tx, named, receiver, right, until), actor=self.actor)

    def _given(
        self,
        tx: Transaction,
        scope: ScopeName,
        to: ScopeName,
        right: Right,
        until: Instant | None = None,
    ) -> Grant:
        home, receiver = (ensure_scope(tx, one) for one in (scope, to))
        other: dict[Right, tuple[Right, ...]] = {"read": (), "write": ("refused",)}
        for old in (right, *other.get(right, ("write",))):
            for ident in standing_grants(tx.reader, scope, [to], old, self._now(tx.reader)):
                tx.retire(ident)
        text = TEXTS[right].format(to, scope)
        node = tx.create_node(type=GRANT, content=text, parent=home, valid_to=until)
        tx.write_edge("refers_to", node.id, receiver, metadata={RIGHT: right})
        row = tx.reader.node_row(node.id)
        assert row is not None
        return next(self._grants(tx.reader, [row]))

    def grants(self, *, include_ended: bool = False, **scope: Unpack[ScopeIds]) -> Grants:
        """Return the grants that scopes have given or received; by default all visible ones.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: the scope is outside the bounds of this memory.
        """
        named = [one for group in groups_of(scope) for one in group]
        if self.scopes.bounds:
            self.scopes.reach(scope)
            named = named or [one for group in self.scopes.bounds for one in group]
        with self.db.engine.store.read() as reader:
            rows: set[int] = set()
            for some in [named] if named else _all_scopes(reader):
                worlds = [row for one in some for row in _world(reader, one)]
                edges = reader.edges_at(worlds, "in", ("refers_to",))
                rows |= {item.source for item in edges}
                # A caller bound by two kinds owns no scope as a whole, so none can be granted.
                for world in worlds if len(self.scopes.bounds) < 2 and named else ():
                    rows.update(reader.placed.typed(world, GRANT, "", 0, EVERY_GRANT))
            found = tuple(self._grants(reader, sorted(rows)))
        return Grants(grants=tuple(one for one in found if include_ended or not one.ended))

    def revoke(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Grant:
        """End a grant, or a refusal, that the caller's scope has given; both stay readable.

        Raises:
            InvalidInputError, NotFoundError: there is no such grant here.
            RejectedError: the scope is outside the bounds, or the caller is not trusted in full.
            StorageError, ConflictError: the store cannot be written.
        """
        reach = self.scopes.reach(scope)
        with self.db.transaction(self.actor, origin=self.origin) as tx:
            with self.scopes.viewing(reach, ended=True) as view:
                row, node = find_memory(view, id)
                found = list(self._grants(view.reader, [row]))
            if not found or len(self.scopes.bounds) > 1:
                raise NotFoundError(f"no grant here has the id {node.id}; list the grants")
            refuse_untrusted(tx.reader, self.origin, found[0].scope)
            ended = tx.retire(node.id)
        return replace(found[0], until=ended.valid_to, ended=True)

    def refuse(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Retired:
        """Remove a memory of another writer from a scope, and accept no more of them.

        The memory stays in the scope that it lives in. The writer's grants to write here end, and a
        refusal replaces them, until it is revoked or another grant is given.

        Raises:
            InvalidInputError: not an id, or not exactly one scope.
            NotFoundError: there is no such memory here.
            ConflictError: the memory lives in this scope; or the store is busy.
            RejectedError: the scope is not the caller's as a whole, or the caller is not trusted
                in full.
            StorageError: the store cannot be written.
        """
        named = self.scopes.own_scope(scope, "refuse")
        with self.db.transaction(self.actor, origin=self.origin) as tx:
            refuse_untrusted(tx.reader, self.origin, named)
            with self.scopes.viewing(((named,),), ended=True) as view:
                row, node = find_memory(view, id)
            world, above = _world(tx.reader, named)[0], _ways_up(tx.reader, row)
            if world in above:
                raise ConflictError(f"{node.id.short} lives in {named}; to end it, retire it")
            for item in tx.reader.edges_at(above, "in", ("contains",)):
                if item.source == world:
                    tx.delete_edge(item.edge.id)
            writer = _scope_name(tx.reader, above)
            if writer is not None:
                self._given(tx, named, writer, "refused")
        commit, root = self.scopes.own_commit(tx.commit, named)
        return Retired(ids=(node.id,), scopes=(named,), commit=commit, root_state=root)

    def _now(self, reader: Reader) -> int:
        return max(self.db.engine.clock(), reader.head().time)

    def _grants(self, reader: Reader, rows: Sequence[int]) -> Iterator[Grant]:
        """Yield the grants among some nodes."""
        now = from_micros(self._now(reader))
        nodes = reader.nodes(rows)
        edges = reader.edges_at(rows, "out", ("refers_to",))
        for item in edges:
            node, right = nodes[item.source], item.edge.metadata.get(RIGHT)
            if node.type != GRANT or right not in TEXTS:
                continue
            scope, to = _parent_scope(reader, node), _scope_name(reader, [item.target])
            if scope is None or to is None:
                continue  # One of them was erased.
            yield Grant(
                id=node.id,
                to=to,
                right=right,
                scope=scope,
                since=node.valid_from,
                until=node.valid_to,
                actor=node.actor,
                ended=node.valid_to is not None and node.valid_to <= now,
            )


def ensure_scope(tx: Transaction, named: ScopeName) -> Id:
    """Return the world of a scope; it is created if needed."""
    if rows := _world(tx.reader, named):
        return Id(tx.reader.world(rows[0]).id)
    generation = len(generations(tx.reader, named))
    return tx.create_node(type=SCOPE, name=str(named), created_at=born(generation)).id


def _all_scopes(reader: Reader) -> Iterator[list[ScopeName]]:
    after = 0
    while rows := reader.placed.typed(ROOT_ROW, SCOPE, "", after, SCOPES_PER_READ):
        after = rows[-1]
        yield [one for row in rows if (one := _scope_name(reader, [row])) is not None]


def _ways_up(reader: Reader, row: int) -> list[int]:
    """Return a node and the worlds around it, up to the scope that it lives in."""
    found = [row]
    while (parent := reader.parents(found[-1:])[found[-1]]) not in (None, ROOT_ROW):
        assert parent is not None
        found.append(parent)
    return found


def _parent_scope(reader: Reader, node: Node) -> ScopeName | None:
    row = None if node.parent is None else reader.node_row(node.parent)
    return None if row is None else _scope_name(reader, [row])


def _scope_name(reader: Reader, rows: Sequence[int]) -> ScopeName | None:
    """Return the name of the last of some worlds, if it is a scope."""
    world = reader.world(rows[-1])
    try:
        return scope_named(world.name) if world.type == SCOPE else None
    except InvalidInputError:  # A caller's node with a scope's type.
        return None

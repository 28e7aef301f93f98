"""Scope view: from the scope ids of a call to the memories that the caller can see.

A *memory* is a node with content, or a session whose turns have content. Scopes are given by kind:
a visible memory is inside a scope of each kind. For a caller, invisible nodes do not exist: they
are not counted, not found by a prefix of an id, and answered like unknown ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from worlddb.engine import Engine
from worlddb.errors import InvalidInputError, NotFoundError, RejectedError
from worlddb.ingest.write_request import KEY
from worlddb.model.address import EMPTY, ID_BYTES, Id, parse_prefix
from worlddb.model.conditions import condition_of
from worlddb.model.inputs import (
    KINDS,
    SCOPE,
    SCOPES_CACHED,
    Groups,
    Instant,
    ScopeKind,
    ScopeName,
    groups_of,
    scope_id,
    scope_named,
    to_micros,
)
from worlddb.model.records import WHOLES, AsOf, Change, Commit, Node
from worlddb.model.text_safety import FULL, Origin, trust_level
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, BodyRow, ListedOnly
from worlddb.view.node_filters import TrustLevels
from worlddb.view.visibility import NOWHERE, Moment, View, accepted_class, is_answer, moment_of

DEFAULT_USER = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerScopes:
    """The default scopes of a caller, and its bounds.

    `usual` are defaults for calls that name no scope of that kind; `bounds` apply to every call. A
    bound caller may write into scopes of further kinds only if `writes_into` has the kind, because
    readers of those scopes would read its memories.
    """

    store: Store
    clock: Callable[[], int]
    usual: Groups = ()
    bounds: Groups = ()
    writes_into: frozenset[str] = frozenset()

    def groups(self, given: Mapping[str, Any]) -> Groups:
        """Return the scopes of a call, by kind: the named ones, else defaults, inside the bounds.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: a scope is outside the bounds.
        """
        if all(value is None or isinstance(value, str) for value in given.values()):
            return _chosen_groups(self.usual, self.bounds, tuple(given.items()))
        return _inside_bounds(self.usual, self.bounds, groups_of(given))

    def with_grants(self, given: Mapping[str, Any]) -> CallerScopes:
        """Return the scopes of a read: the caller's own, or named ones that grants open.

        Only grants that are valid now count, whatever time the question is about.
        """
        if not self.bounds:
            return self
        own, named = by_kind(self.bounds), by_kind(groups_of(given))
        if all(set(group) <= set(own.get(kind, ())) for kind, group in named.items()):
            return self
        from worlddb.memory.scope_grants import opened_bounds

        with self.store.read() as reader:
            now = max(self.clock(), reader.head().time)
            bounds = opened_bounds(reader, self.bounds, named, now)
        if bounds == self.bounds:
            return self
        lost = own.keys() - by_kind(bounds).keys()
        usual = tuple(group for group in self.usual if group[0].kind not in lost)
        return replace(self, bounds=bounds, usual=usual)

    def refuse_bound(self, what: str) -> None:
        """Refuse a bound caller a call on the whole store.

        Raises:
            RejectedError: the caller is bound.
        """
        if self.bounds:
            raise RejectedError(f"{what} is about the whole store; a bound caller may not ask")

    def strangers(self, given: Mapping[str, Any]) -> tuple[ScopeName, ...]:
        """Return the scopes outside the bounds that a call names."""
        if not self.bounds:
            return ()
        allowed = {scope for group in (*self.bounds, *self.usual) for scope in group}
        named = (scope for group in groups_of(given) for scope in group)
        return tuple(scope for scope in named if scope not in allowed)

    def written_scopes(self, given: Mapping[str, Any]) -> Groups:
        """Return the scopes that a write goes into, as `groups` does.

        A memory written by a grant lives in a scope of the caller.

        Raises:
            RejectedError: a scope is outside the bounds, whether it exists or not.
        """
        if not (strangers := self.strangers(given)):
            return self.groups(given)
        from worlddb.memory.scope_grants import granted_strangers

        with self.store.read() as reader:
            granted_strangers(reader, self, strangers, max(self.clock(), reader.head().time))
        kinds = by_kind(self.bounds)
        foreign = tuple(scope for scope in strangers if scope.kind in kinds)
        groups = self.own_scopes(given)
        return (*groups, foreign) if foreign else groups

    def own_scopes(self, given: Mapping[str, Any]) -> Groups:
        """Return the caller's own scopes of a call, without scopes that only a grant opens."""
        strangers, kinds = self.strangers(given), by_kind(self.bounds)
        if not any(scope.kind in kinds for scope in strangers):
            return self.groups(given)
        kept: dict[str, list[str]] = {}
        for group in groups_of(given):
            for one in group:
                if one not in strangers or one.kind not in kinds:
                    kept.setdefault(f"{one.kind}_id", []).append(one.value)
        return self.groups(kept)

    def own_scope(self, given: Mapping[str, Any], what: str) -> ScopeName:
        """Return the one scope of a call, if the caller owns it as a whole.

        Raises:
            InvalidInputError: not exactly one scope is named.
            RejectedError: it is not the caller's own.
        """
        named = one_scope(given, what, self.bounds)
        # Inside bounds of two kinds the caller owns no whole scope: others write there, too.
        if self.bounds and (len(self.bounds) > 1 or named not in self.bounds[0]):
            raise RejectedError(f"{named} is not yours; a bound caller decides on its own scope")
        return named

    def own_commit(
        self, commit: Commit | None, home: ScopeName | None = None
    ) -> tuple[Commit | None, Id]:
        """Return a commit and the root's state as the caller may see them.

        A bound caller gets the number and the state of its own scope (`home`, else the first of its
        bounds), because those of the store would tell when others write. The intersection of two
        scopes is not a world, so it has no number and no state.
        """
        if not self.bounds and commit is not None:
            return commit, commit.root_state
        with self.store.read() as reader:
            if not self.bounds:
                return None, Id(reader.head().root_state)
            own = home or self.bounds[0][0]
            rows = generations(reader, own)[-1:] if len(self.bounds) == 1 else []
            number, state = 0, Id(EMPTY)
            if rows:
                number, world = reader.state_count(rows[0]), reader.world(rows[0])
                state = Id(world.id if world.state is None else world.state)
        if commit is not None:
            commit = replace(
                commit,
                seq=number,
                root_state=state,
                hash=state,
                previous=Id(EMPTY),
                changes=commit.changes and self._own_changes(commit),
            )
        return commit, state

    def _own_changes(self, commit: Commit) -> tuple[Change, ...]:
        """Return the changes of a commit inside the bounds."""
        from worlddb.memory.scope_sight import sees_change

        with self.viewing(self.bounds, ended=True) as view:
            return tuple(change for change in commit.changes if sees_change(view, change))

    def reach(self, given: Mapping[str, Any]) -> Groups:
        """Return the scopes that must contain a memory named by its id.

        These are the scopes that the call names, and the bounds. Default scopes do not limit a call
        with an id.
        """
        named = by_kind(groups_of(given)) or by_kind(self.bounds)
        return self.groups(given) if named else ()

    def named(self, given: Mapping[str, Any], what: str) -> Groups:
        """Return the scopes of a call that ends memories; it must name one.

        Raises:
            InvalidInputError: the call names no scope.
        """
        if not groups_of(given):
            raise InvalidInputError(f"{what}: name the scope: user_id, agent_id, app_id or run_id")
        return self.groups(given)

    def bound(self, more: Groups, writes_into: Iterable[str] = ()) -> CallerScopes:
        """Return these scopes with further bounds; a bound caller adds no kinds to write into."""
        opened = frozenset(kind.removesuffix("_id") for kind in writes_into)
        if strange := sorted(opened - set(KINDS)):
            known = ", ".join(f"{kind}_id" for kind in KINDS)
            raise InvalidInputError(f"writes_into {strange[0]!r:.40}: use some of {known}")
        if self.bounds:
            opened &= self.writes_into
        kinds = {group[0].kind for group in more}
        kept = (group for group in self.bounds if group[0].kind not in kinds)
        return replace(self, bounds=(*more, *kept), writes_into=opened)

    def may_name(self, scope: ScopeName) -> bool:
        """Return whether a bound caller may see the name of a scope."""
        for group in self.bounds:
            if group[0].kind == scope.kind:
                return scope in group
        return True

    @contextmanager
    def viewing(
        self,
        groups: Groups,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        ended: bool = False,
    ) -> Iterator[View]:
        """Yield the visible part of scopes, on one snapshot.

        Raises:
            InvalidInputError: a time without a zone, or no time at all.
        """
        for name, time in (("as_of", as_of), ("known_at", known_at)):
            if time is not None:
                to_micros(time, name)
        with self.store.read() as reader:
            moment = moment_of(reader, AsOf(valid=as_of, known=known_at), self.clock())
            yield self.view(reader, groups, moment, ended)

    def view(self, reader: Reader, groups: Groups, moment: Moment, ended: bool = False) -> View:
        """Return the visible part of scopes; without scopes, of the store."""
        return view_of(reader, groups, moment, ended, present=bool(self.bounds))


def one_scope(given: Mapping[str, Any], what: str, usual: Groups = ()) -> ScopeName:
    """Return the one scope that the call `what` names, or else the one default scope.

    Raises:
        InvalidInputError: there is not exactly one.
    """
    named = [name for group in groups_of(given) or usual for name in group]
    if len(named) != 1:
        raise InvalidInputError(f"{what}: name one scope: user_id, agent_id, app_id or run_id")
    return named[0]


@lru_cache(maxsize=SCOPES_CACHED)
def _chosen_groups(usual: Groups, bounds: Groups, given: tuple[tuple[str, Any], ...]) -> Groups:
    """Return the scopes of a call that names each kind by one text, as most calls do."""
    return _inside_bounds(usual, bounds, groups_of(dict(given)))


def _inside_bounds(usual: Groups, bounds: Groups, given: Groups) -> Groups:
    """Return the scopes of a call, by kind, as `CallerScopes.groups` says."""
    allowed = by_kind(bounds)
    chosen = by_kind(usual) | allowed | by_kind(given)
    for kind, own in allowed.items():
        for scope in set(chosen[kind]) - set(own):
            raise RejectedError(f"{scope} is not yours; leave {kind}_id out")
    if not chosen:
        chosen = by_kind(groups_of({"user_id": DEFAULT_USER}))
    # The caller's own kinds first: names are resolved and texts compared in the first scope,
    # which must be the caller's own.
    order = [*(kind for kind in KINDS if kind in allowed), *KINDS]
    return tuple(chosen[kind] for kind in dict.fromkeys(order) if kind in chosen)


def by_kind(groups: Groups) -> dict[ScopeKind, tuple[ScopeName, ...]]:
    """Return scopes by their kind."""
    return {group[0].kind: group for group in groups}


LIKE_MAX = 1_000  # Ids with one prefix; with more the prefix is too short anyway.
FEW_MAX = 4_096  # Rows of a filter that are read at once instead of page by page.
CHUNK = 500  # Rows per read while a page is filled; pages are seldom longer.
SHOWN = 3  # Ids in an error, to show which digits are missing.


def is_memory(body: BodyRow) -> bool:
    """Return whether a node is a memory, not only a name."""
    if body.type in WHOLES:
        return bool(body.name or body.content)  # Else it was erased.
    return is_answer(body) and body.type not in (KEY, SCOPE)


def generations(reader: Reader, scope: ScopeName, known: int | None = None) -> list[int]:
    """Return the rows of a scope, the present one last."""
    rows: list[int] = []
    while (row := reader.node_row(scope_id(scope, len(rows)))) is not None:
        rows.append(row)
    return rows if known is None else sorted(reader.parents(rows, known))


def world_of(reader: Reader, scope: ScopeName) -> tuple[Id, int, int | None]:
    """Return a scope's present world: its id, its generation, and its row if it exists."""
    rows = generations(reader, scope)
    if not rows or reader.closed_by(rows[-1:]):
        return scope.id(len(rows)), len(rows), None
    generation = len(rows) - 1
    return scope.id(generation), generation, rows[-1]


def further_bounds(reader: Reader, bounds: Groups, home: Id) -> list[list[Id]]:
    """Return the worlds of the bounds that do not include the home."""
    groups = [[world_of(reader, name)[0] for name in group] for group in bounds]
    return [group for group in groups if home not in group]


def present_rows(
    reader: Reader, scope: ScopeName, known: int | None, present: bool = False
) -> list[int]:
    """Return the row of a scope as of commit `known`, if it existed.

    For a purged and recreated scope, the last one known then; with `present` the last one of all,
    because the name may belong to somebody else now.
    """
    if not present:
        return generations(reader, scope, known)[-1:]
    last = generations(reader, scope)[-1:]
    return last if known is None else sorted(reader.parents(last, known))


def scope_rows(
    reader: Reader, groups: Groups, known: int | None, present: bool = False
) -> list[list[int]]:
    """Return the rows of scopes, by kind; a kind without existing scopes has no rows."""
    return [
        [row for scope in group for row in present_rows(reader, scope, known, present)]
        for group in groups
    ]


def successors(view: View, row: int) -> list[Id]:
    """Return the memories that supersede one and are inside the same scopes."""
    found = view.reader.edges_at([row], "in", ("supersedes",))
    seen = view.keep_world(item.source for item in found)
    return [item.edge.source for item in found if item.source in seen]


def view_of(
    reader: Reader, groups: Groups, moment: Moment, ended: bool, *, present: bool = False
) -> View:
    """Return the visible part of scopes; without scopes, of the store."""
    rows = scope_rows(reader, groups, moment.known, present)
    inside = [group or [NOWHERE] for group in rows]
    worlds = inside[0] if inside else [ROOT_ROW]
    return View(reader, moment, worlds=worlds, within=inside[1:], members=True, include_ended=ended)


def find_memory(view: View, given: bytes | str) -> tuple[int, Node]:
    """Return a visible memory by its id, or by a prefix that is unique among visible ones.

    Raises:
        InvalidInputError: not an id, or the start of several.
        NotFoundError: there is no such memory here.
    """
    return _find(view, given, is_memory, "memory")


def find_inside(view: View, given: bytes | str) -> tuple[int, Node]:
    """Return a visible node, a memory or a name, as `find_memory` does."""
    return _find(view, given, lambda body: True, "memory or name")


def find_named(view: View, meant: View, given: bytes | str) -> int:
    """Return the row of a node by its id, as `find_inside`, or by a name in the call's scopes.

    Raises:
        InvalidInputError: the start of several ids, a name of several, or both.
        NotFoundError: nothing here has such an id or name.
    """
    prefix = ""
    with suppress(InvalidInputError):
        prefix = parse_prefix(given) if isinstance(given, str) else ""
    if not isinstance(given, str) or len(prefix) == 2 * ID_BYTES:
        return find_inside(view, given)[0]
    from worlddb.recall.store_lanes import borne_by

    named = borne_by(meant, given)
    with suppress(NotFoundError):
        named |= {find_inside(view, given)[0]} if prefix else set()
    if not named:
        raise NotFoundError(f"no memory or name here is {given!r:.80}; recall it to find others")
    reader = view.reader
    if not named <= accepted_class(reader, {min(named)}, view.moment, inside=view.keep_world):
        some = ", ".join(Id(body.id).short for body in reader.bodies(sorted(named)[:SHOWN]))
        raise InvalidInputError(f"{given!r:.80} may mean several ({some}); give an id")
    return min(named)


def _find(
    view: View, given: bytes | str, is_wanted: Callable[[BodyRow], bool], what: str
) -> tuple[int, Node]:
    reader = view.reader
    rows = [row for ident in ids_like(reader, given, "nodes") if (row := reader.node_row(ident))]
    seen = view.keep(rows)
    found = [body for body in reader.bodies(sorted(seen), view.moment.known) if is_wanted(body)]
    shown = given.hex() if isinstance(given, bytes) else given
    if not found:
        raise NotFoundError(f"no {what} here has the id {shown:.64}; list them to see their ids")
    if len(found) > 1:
        some = ", ".join(Id(body.id).short for body in found[:SHOWN])
        raise InvalidInputError(f"{shown!r} is the start of several ids ({some}, …); give more")
    row = found[0].row
    return row, reader.nodes([row], view.moment.known)[row]


def ids_like(reader: Reader, given: bytes | str, table: str) -> list[Id]:
    """Return the ids in `table` (nodes or edges) that equal an id, or begin with a prefix.

    Raises:
        InvalidInputError: it is not an id, or too short.
    """
    if isinstance(given, bytes):
        return [given if isinstance(given, Id) else Id(given)]
    if not isinstance(given, str):
        raise InvalidInputError(f"{given!r:.100} is not an id; give an Id or hex text")
    prefix = parse_prefix(given)
    if len(prefix) == 2 * ID_BYTES:
        return [Id(prefix)]
    return reader.ids_like(table, prefix, LIKE_MAX)


def filtered_view(engine: Engine, view: View, where: Mapping[str, Any] | None) -> View:
    """Return a view that is limited to the nodes that match a filter.

    Raises:
        InvalidInputError: the filter is wrong.
    """
    if where is not None:
        view.where = engine.search.row_filter(view.reader, condition_of(where), view.moment.known)
    return view


def page(
    view: View, before: int | None, most: int, types: Sequence[str] | None = None
) -> list[int]:
    """Return the rows of up to `most` memories directly inside the first scopes, latest first.

    With `types`, those of these types alone.

    Summaries and facts that were derived from memories are found by recall; they are not listed.
    """
    reader, moment = view.reader, view.moment
    last = _newest(view) + 1 if before is None else min(before, _newest(view) + 1)
    only = _listed_only(view, types)
    found: list[int] = []
    few = None if view.where is None else view.where.few(FEW_MAX)
    worlds = _smallest(view, last, only) if few is None else view.worlds
    is_last = few is not None
    while len(found) < most:
        if few is None:
            rows = reader.placed.candidates(worlds, last, CHUNK, only)
            is_last = len(rows) < CHUNK
        else:
            rows = _directly_in(view, view.worlds, few, last)
        if not rows:
            break
        last = rows[-1]
        if few is None and (moment.known is not None or moment.valid is not None):
            rows = _directly_in(view, worlds, rows, rows[0] + 1)
        seen = view.keep(rows)
        memories = [
            body.row
            for body in reader.bodies(sorted(seen), moment.known)
            if is_memory(body) and (types is None or body.type in types)
        ]
        derived = reader.edges_at(memories, "out", ("derived_from",), moment.known)
        found += sorted(set(memories) - {item.source for item in derived}, reverse=True)
        if is_last:
            break
    return found[:most]


def _newest(view: View) -> int:
    """Return the highest row of a node at the known time."""
    head, known = view.reader.head(), view.moment.known
    if known is None or known >= head.seq:
        return head.nodes
    return next((one.nodes for one in view.reader.commits(known - 1, 1, False)), 0)


def _listed_only(view: View, types: Sequence[str] | None) -> ListedOnly:
    """Return the conditions of a page that the store can apply without reading the nodes."""
    moment = view.moment
    return ListedOnly(
        at=to_micros(moment.now if moment.valid is None else moment.valid, "valid"),
        begun=moment.valid is not None,
        lasting=not view.include_ended,
        known=moment.known,
        types=None if types is None else tuple(types),
    )


def _directly_in(view: View, worlds: Sequence[int], rows: Iterable[int], before: int) -> list[int]:
    """Return the rows below `before` that are directly in worlds, latest first."""
    holders = _holders(view.reader, (row for row in rows if row < before), view.moment)
    wanted = set(worlds)
    return sorted((row for row, held in holders.items() if held & wanted), reverse=True)


def _smallest(view: View, before: int, only: ListedOnly) -> Sequence[int]:
    """Return the group of worlds to scan: one that fits into a single chunk, if there is one.

    Listed memories are directly in it, so only scopes themselves qualify.
    """
    for group in (view.worlds, *view.within) if view.within else ():
        if len(view.reader.placed.candidates(group, before, CHUNK, only)) < CHUNK:
            return group
    return view.worlds


def inside_memories(reader: Reader, rows: Iterable[int]) -> set[int]:
    """Return the rows of memories and of everything that lives inside them."""
    found = set(rows)
    frontier = list(found)
    while frontier:
        frontier = [child for child in reader.children_of(frontier) if child not in found]
        found.update(frontier)
    return found


def scopes_of(reader: Reader, rows: Sequence[int], moment: Moment) -> dict[int, list[ScopeName]]:
    """Return the scopes that memories, or their sessions, are directly in."""
    found: dict[int, list[ScopeName]] = {row: [] for row in rows}
    above: dict[int, set[int]] = {row: {row} for row in rows}
    for _ in range(2):
        holders = _holders(reader, {one for held in above.values() for one in held}, moment)
        above = {
            row: {holder for one in held for holder in holders.get(one, ())}
            for row, held in above.items()
        }
        bodies = {body.row: body for body in reader.bodies(sorted(set().union(*above.values())))}
        for row, held in above.items():
            scopes = {holder for holder in held if bodies[holder].type == SCOPE}
            for holder in sorted(scopes):
                with suppress(InvalidInputError):  # A caller's node with a scope's type.
                    found[row].append(scope_named(bodies[holder].name))
            above[row] = held - scopes
    return {row: sorted(set(names), key=_order) for row, names in found.items()}


def _order(scope: ScopeName) -> tuple[int, str]:
    return KINDS.index(scope.kind), scope.value


def _holders(reader: Reader, rows: Iterable[int], moment: Moment) -> dict[int, set[int]]:
    """Return the worlds that rows are directly inside of."""
    wanted = list(rows)
    found = {
        row: {parent}
        for row, parent in reader.parents(wanted, moment.known).items()
        if parent is not None
    }
    for item in reader.edges_at(wanted, "in", ("contains",), moment.known):
        if moment.holds(item.edge):
            found.setdefault(item.target, set()).add(item.source)
    return found


def refuse_untrusted(
    reader: Reader, origin: Origin | None, scope: ScopeName | None, what: str = "decide that"
) -> None:
    """Refuse a caller whose origin a scope, or the whole store, does not trust in full.

    Raises:
        RejectedError: it does not.
    """
    if origin is None:
        return
    rows = [] if scope is None else generations(reader, scope)[-1:]
    world = Id(reader.world(rows[0] if rows else ROOT_ROW).id)
    if trust_level((origin,), TrustLevels(reader).settings(world)) < FULL:
        raise RejectedError(f"only a caller who is trusted in full may {what}")

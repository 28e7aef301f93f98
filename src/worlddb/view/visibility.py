"""Visibility: the one place that decides what a reader can see.

Three questions decide it, and every query, lane and face asks them here:

    when    `Moment`: the (valid, known) pair that a question is asked at
    where   `interior`, `inside`: what is inside a world
    what    `View`: both of them, and whether nodes that have ended are shown

Known time becomes a commit number: what the engine believed after that commit. Valid time stays a
time; without one, a node or an edge counts unless it has ended by now.

The interior of a world are its children, its members (by `contains`), and theirs, all the way down.
The world itself is not in its interior. `interior` walks down, `inside` walks up from candidates;
both follow the same two relations, so they cannot disagree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from worlddb.errors import InvalidInputError
from worlddb.model.address import ROOT_ID
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.records import AsOf, Edge, Node, Query
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, BodyRow

BEFORE_EVERYTHING = -1
"""The commit number of a known time before the first commit: nothing was known."""
NOWHERE = 0
"""A row that no node has: inside it nothing is seen."""
MEMBERSHIP = ("contains",)
NAME_TYPES = frozenset({"Entity", "Topic", "Scope", "Session", "Date", "Key"})
"""Types whose nodes, as long as they are only a name, lead to answers and are no answers."""


class Moment(NamedTuple):
    """When a question is asked."""

    now: datetime
    valid: datetime | None
    known: int | None

    def holds(self, thing: Node | Edge) -> bool:
        """Return whether a node or an edge is true at this moment.

        Without a valid time only what has ended is left out: what begins later is still a fact.
        """
        ends = thing.valid_to
        if self.valid is None:
            return ends is None or ends > self.now
        return thing.valid_from <= self.valid and (ends is None or self.valid < ends)

    def shows(self, thing: Node | Edge, include_ended: bool) -> bool:
        """Return whether it is true at this moment or, with `include_ended`, was true before.

        What had not begun by the valid time asked for is never shown.
        """
        if not include_ended:
            return self.holds(thing)
        return self.valid is None or thing.valid_from <= self.valid


def wall_clock() -> int:
    """Return the machine's time in microseconds since 1970."""
    return time.time_ns() // 1000


def moment_of(reader: Reader, as_of: AsOf, now: int) -> Moment:
    """Return the moment that `as_of` names in this snapshot.

    Raises:
        InvalidInputError: a time without a zone, or no time at all.
    """
    if not isinstance(as_of, AsOf):
        raise InvalidInputError(f"as_of: give AsOf(valid=…, known=…), not {as_of!r:.100}")
    # After the clock stepped back, now is still not before the last commit.
    now = max(now, reader.head().time)
    known = None
    if as_of.known is not None:
        found = reader.commit_at(to_micros(as_of.known, "known"))
        known = BEFORE_EVERYTHING if found is None else found
    valid = None
    if as_of.valid is not None:
        valid = from_micros(to_micros(as_of.valid, "valid"))
    return Moment(from_micros(now), valid, known)


def interior(reader: Reader, world: int, moment: Moment, members: bool) -> set[int]:
    """Return the rows of everything inside `world`."""
    found = interior_up_to(reader, [world], moment, members, None)
    assert found is not None
    return found


def interior_up_to(
    reader: Reader,
    worlds: Iterable[int],
    moment: Moment,
    members: bool,
    most: int | None,
    on_member: Callable[[Edge], None] = lambda edge: None,
) -> set[int] | None:
    """Return the rows of everything inside any of `worlds`; None if that is more than `most`."""
    seen: set[int] = set()
    starts = set(worlds)
    frontier = starts
    while frontier:
        below: set[int] = set()
        if moment.known is None:
            below.update(reader.children_of(frontier))
        else:
            for row in frontier:
                below.update(reader.children(row, moment.known))
        if members:
            found = reader.edges_at(frontier, "out", MEMBERSHIP, moment.known)
            for item in found:
                if moment.holds(item.edge):
                    on_member(item.edge)
                    below.add(item.target)
        frontier = below - seen
        seen |= frontier
        if most is not None and len(seen) > most:
            return None
    # A world is not inside itself, but may be inside another of the given ones.
    return seen if len(starts) > 1 else seen - starts


def inside(
    reader: Reader, world: int, rows: Iterable[int], moment: Moment, members: bool
) -> set[int]:
    """Return those of `rows` that are inside `world`."""
    candidates = set(rows) - {world}
    if world == ROOT_ROW:
        return candidates  # Every node but the root lives in it.
    above: dict[int, set[int]] = {}
    frontier = set(candidates)
    while frontier:
        for row in frontier:
            above.setdefault(row, set())
        for row, parent in reader.parents(frontier, moment.known).items():
            if parent is not None:
                above[row].add(parent)
        if members:
            for item in reader.edges_at(frontier, "in", MEMBERSHIP, moment.known):
                if moment.holds(item.edge):
                    above[item.target].add(item.source)
        reached = {parent for row in frontier for parent in above[row]}
        frontier = reached - above.keys() - {world}
    return _descendants_of(world, above) & candidates


def _descendants_of(world: int, above: dict[int, set[int]]) -> set[int]:
    """Return the rows from which `world` is reached by going up."""
    below: dict[int, set[int]] = {}
    for row, holders in above.items():
        for holder in holders:
            below.setdefault(holder, set()).add(row)
    found: set[int] = set()
    frontier = {world}
    while frontier:
        frontier = {row for holder in frontier for row in below.get(holder, ())} - found
        found |= frontier
    return found


def is_name_only(body: BodyRow) -> bool:
    """Return whether a node is only a name that leads to other nodes."""
    return bool(body.name) and not body.content and body.type in NAME_TYPES


def is_answer(body: BodyRow, names: bool = False) -> bool:
    """Return whether a node has something to say; with `names`, its name alone will do."""
    return bool(body.content or body.name) and (names or not is_name_only(body))


class View:
    """What can be seen inside any of some worlds at a moment.

    `members` says whether members of a world count as inside, `include_ended` whether nodes that
    have ended are seen. With `within`, a node must also be inside one world of each of those
    groups. `types` leaves the nodes of these types alone, `answers` those that have something to
    say; a node that is only a name is an answer where its type is asked for.
    """

    def __init__(
        self,
        reader: Reader,
        moment: Moment,
        *,
        worlds: Sequence[int],
        members: bool,
        include_ended: bool,
        types: Iterable[str] | None = None,
        answers: bool = False,
        within: Sequence[Sequence[int]] = (),
    ) -> None:
        self.reader = reader
        self.moment = moment
        self.worlds = worlds
        self.members = members
        self.include_ended = include_ended
        self.types = None if types is None else frozenset(types)
        self.answers = answers
        self.within = within

    def beginning_with(self, number: int) -> View:
        """Return the same view with group `number` of its groups of worlds as the first."""
        groups = [self.worlds, *self.within]
        first = groups.pop(number)
        return View(
            self.reader,
            self.moment,
            worlds=first,
            members=self.members,
            include_ended=self.include_ended,
            types=self.types,
            answers=self.answers,
            within=groups,
        )

    def keep_world(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows that are inside, whatever their validity."""
        wanted = set(rows)
        for group in (self.worlds, *self.within):
            wanted = self.keep_inside(wanted, group)
        return wanted

    def keep_inside(self, rows: set[int], worlds: Sequence[int]) -> set[int]:
        """Return those of some rows that are inside any of `worlds`."""
        seen: set[int] = set()
        for world in worlds:
            seen |= inside(self.reader, world, rows, self.moment, self.members)
        return seen

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows that can be seen."""
        return self.keep_time(self.keep_world(rows))

    def keep_time(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows that hold at the moment, wherever they are."""
        now = to_micros(self.moment.now, "now")
        valid = None if self.moment.valid is None else to_micros(self.moment.valid, "valid")
        kept = set()
        for body in self.reader.bodies(rows, self.moment.known):
            if self.types is not None and body.type not in self.types:
                continue
            if self.answers and not is_answer(body, names=self.types is not None):
                continue
            if valid is not None and body.valid_from > valid:
                continue  # Not begun: also hidden where ended nodes are included.
            if not self.include_ended and body.valid_to is not None:
                if body.valid_to <= (now if valid is None else valid):
                    continue
            kept.add(body.row)
        return kept


def rewrite(reader: Reader, registry: Registry, query: Query, moment: Moment) -> Query:
    """Return the query as the handlers of the edge types in its world want it read."""
    worlds = [bytes(query.world or ROOT_ID)]
    row = reader.node_row(worlds[0])
    while row is not None and row != ROOT_ROW:
        row = reader.parents([row], moment.known).get(row)
        if row is not None:
            worlds.append(reader.world(row).id)
    for handler in registry.visible(worlds):
        query = handler.on_query_rewrite(query)
        if handler.pierces:
            query = replace(query, pierces=query.pierces | {handler.type})
    return query


def includes_ended(query: Query, moment: Moment) -> bool:
    """Return whether a rewritten query shows nodes that have ended by the moment."""
    return query.include_superseded or not (query.hides_ended or moment.valid is not None)

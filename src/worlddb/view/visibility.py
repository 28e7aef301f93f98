"""Visibility: the one place that decides what a reader can see.

Every query, lane and face asks this file three questions:

    when    `Moment`: the (valid, known) pair that a question is asked at
    where   `interior`, `inside`: what is inside a world
    what    `View`: when and where together, and whether ended nodes are visible

A known time becomes a commit number: the state that the engine believed after that commit. A valid
time stays a time; without one, everything that has not ended by now is visible.

Single nodes and edges are looked up here, too, so that an id finds only what is visible. An id is
an `Id`, 32 bytes, 64 hex digits, or a unique prefix of at least 4 digits. `accepted_class` returns
the nodes that were accepted as the same.

The interior of a world is its children, its members (by `contains`), and theirs, all the way down.
The world itself is not in its interior. `interior` walks down, `inside` walks up from candidates;
both follow the same two relations, so they cannot disagree.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, get_args

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.model.address import ID_BYTES, ROOT_ID, Id, parse_prefix
from worlddb.model.inputs import check_direction, check_words, from_micros, to_micros
from worlddb.model.records import (
    AsOf,
    Conflict,
    Direction,
    Edge,
    Identity,
    Node,
    Proposal,
    ProposalStatus,
    Query,
)
from worlddb.ontology.registry import Registration, Registry
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, BodyRow, ConflictRow, ProposalRow

if TYPE_CHECKING:
    from worlddb.view.node_filters import RowJudge

BEFORE_EVERYTHING = -1
"""The commit number of a known time before the first commit: nothing was known."""
NOWHERE = 0
"""A row that no node has; nothing is inside it."""
Parents = Mapping[int, int | None]  # The row of the world that each row lives in.
MEMBERSHIP = ("contains",)
NAME_TYPES = frozenset(
    {"Entity", "Topic", "Scope", "Session", "Document", "Date", "Key", "Folder", "File", "Version"}
)
"""Types whose nodes, if they have only a name, lead to answers and are not answers themselves."""


class Moment(NamedTuple):
    """The time of a question: the present, and the valid time and the commit asked for."""

    now: datetime
    valid: datetime | None
    known: int | None

    def holds(self, thing: Node | Edge) -> bool:
        """Return whether a node or an edge is valid at this moment.

        Without a valid time, only what has ended is excluded; a fact that begins later counts, but
        a membership that begins later does not.
        """
        ends = thing.valid_to
        if self.valid is None:
            if isinstance(thing, Edge) and thing.type in MEMBERSHIP and thing.valid_from > self.now:
                return False
            return ends is None or ends > self.now
        return thing.valid_from <= self.valid and (ends is None or self.valid < ends)

    def shows(self, thing: Node | Edge, include_ended: bool) -> bool:
        """Return whether it is valid at this moment or, with `include_ended`, was valid before.

        What begins after the requested valid time is never shown.
        """
        if not include_ended:
            return self.holds(thing)
        return self.valid is None or thing.valid_from <= self.valid


def wall_clock() -> int:
    """Return the machine's time in microseconds since 1970."""
    return time.time_ns() // 1000


def moment_of(reader: Reader, as_of: AsOf, now: int) -> Moment:
    """Return the moment that `as_of` names in this snapshot."""
    if not isinstance(as_of, AsOf):
        raise InvalidInputError(f"as_of: give AsOf(valid=…, known=…), not {as_of!r:.100}")
    # If the clock stepped back, now must still not be before the last known commit.
    last, known = reader.head().time, None
    if as_of.known is not None:
        found = reader.commit_at(known_at := to_micros(as_of.known, "known"))
        known, last = BEFORE_EVERYTHING if found is None else found, min(last, known_at)
    now = max(now, last)
    valid = None if as_of.valid is None else from_micros(to_micros(as_of.valid, "valid"))
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
    """Return the rows of everything inside any of `worlds`; None if there are more than `most`.

    `on_member` is called for every membership on the way, also for one of another time.
    """
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
                on_member(item.edge)
                if moment.holds(item.edge):
                    below.add(item.target)
        frontier = below - seen
        seen |= frontier
        if most is not None and len(seen) > most:
            return None
    # A world is not inside itself, but it may be inside another of the given worlds.
    return seen if len(starts) > 1 else seen - starts


def inside(
    reader: Reader,
    world: int,
    rows: Iterable[int],
    moment: Moment,
    members: bool,
    parents: Parents | None = None,
    outsiders: set[int] | None = None,
) -> set[int]:
    """Return those of `rows` that are inside `world`.

    `parents` are the parents of the rows, if the caller has them. `outsiders` are rows known to be
    outside; rows found to be outside are added to it. If it is given, memberships of any time
    count.
    """
    candidates = set(rows) - {world}
    if world == ROOT_ROW:
        return candidates  # Every node but the root lives in it.
    if parents is None:
        parents = reader.parents(candidates, moment.known)
    # Most candidates live in the world itself; the others are followed upwards.
    children = {row for row in candidates if parents.get(row) == world}
    frontier = rest = candidates - children
    above: dict[int, set[int]] = {}
    is_reached = False
    while frontier:
        if frontier is not rest:
            parents = reader.parents(frontier, moment.known)
        for row in frontier:
            parent = parents.get(row)
            above[row] = set() if parent is None else {parent}
        if members:
            for item in reader.edges_at(frontier, "in", MEMBERSHIP, moment.known):
                if outsiders is not None or moment.holds(item.edge):
                    above[item.target].add(item.source)
        reached = {parent for row in frontier for parent in above[row]}
        is_reached |= world in reached
        # Nothing is around the root.
        frontier = reached.difference(above, (world, ROOT_ROW), outsiders or ())
    below = _descendants_of(world, above) if is_reached else set()
    if outsiders is not None:
        outsiders.update(above.keys() - below)
    return children | (below & rest)


def _descendants_of(world: int, above: dict[int, set[int]]) -> set[int]:
    """Return the rows from which `world` is reached by going up, from child to world."""
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
    """Return whether a node has only a name."""
    return bool(body.name) and not body.content and body.type in NAME_TYPES


def is_answer(body: BodyRow, names: bool = False) -> bool:
    """Return whether a node can be an answer: it has text or, with `names`, a name."""
    return bool(body.content or body.name) and (names or not is_name_only(body))


class View:
    """The nodes that are visible inside some worlds at a moment.

    `members` says whether members of a world count as inside, `include_ended` whether ended nodes
    are visible. With `within`, a node must also be inside one world of each of these groups.
    `types` keeps only nodes of these types and `instances`, `chosen` only the rows that it returns,
    `answers` only nodes with text (a node with only a name is an answer if its type is asked for).
    `where` filters the hits, not the names that lead to them.
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
        instances: Iterable[int] = (),
        chosen: Callable[[set[int]], set[int]] | None = None,
        answers: bool = False,
        within: Sequence[Sequence[int]] = (),
        where: RowJudge | None = None,
    ) -> None:
        self.reader = reader
        self.where = where
        self.moment = moment
        self.worlds = worlds
        self.members = members
        self.include_ended = include_ended
        self.types = None if types is None else frozenset(types)
        self.instances = frozenset(instances)
        self.chosen = chosen
        self.answers = answers
        self.within = within

    def beginning_with(self, number: int) -> View:
        """Return the same view with group `number` of its groups of worlds first."""
        groups = [self.worlds, *self.within]
        view = copy(self)
        view.worlds, view.within = groups.pop(number), groups
        return view

    def keep_world(self, rows: Iterable[int], parents: Parents | None = None) -> set[int]:
        """Return the rows that are inside, whatever their validity."""
        wanted = set(rows)
        for group in (self.worlds, *self.within):
            wanted = self.keep_inside(wanted, group, parents)
        return wanted

    def keep_inside(
        self, rows: set[int], worlds: Sequence[int], parents: Parents | None = None
    ) -> set[int]:
        """Return the rows that are inside any of `worlds`."""
        about = self.moment, self.members, parents
        return set[int]().union(*(inside(self.reader, world, rows, *about) for world in worlds))

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return the rows that are visible."""
        if self.where is not None:
            rows = self.where.keep(rows)
        return self.keep_time(self.keep_world(rows))

    def keep_bodies(self, bodies: Sequence[BodyRow]) -> set[int]:
        """Return the rows of the visible nodes, given their bodies at this view's commit."""
        parents = {body.row: body.parent for body in bodies}
        rows = parents if self.where is None else self.where.keep(parents)
        wanted = self.keep_world(rows, parents)
        return self._holding(body for body in bodies if body.row in wanted)

    def keep_time_of(self, rows: Iterable[int]) -> set[int]:
        """Return the rows that are inside and valid at the moment, whatever their type."""
        wanted = self.keep_world(rows)
        nodes = self.reader.nodes(wanted, self.moment.known)
        shown = {row for row, it in nodes.items() if self.moment.shows(it, self.include_ended)}
        return shown if self.chosen is None else self.chosen(shown)

    def keep_time(self, rows: Iterable[int]) -> set[int]:
        """Return the rows that are valid at the moment, in any world."""
        return self._holding(self.reader.bodies(rows, self.moment.known))

    def _holding(self, bodies: Iterable[BodyRow]) -> set[int]:
        now = to_micros(self.moment.now, "now")
        valid = None if self.moment.valid is None else to_micros(self.moment.valid, "valid")
        kept = set()
        for body in bodies:
            if self.types is not None and body.type not in self.types:
                if body.row not in self.instances:
                    continue
            if self.answers and not is_answer(body, names=self.types is not None):
                continue
            if valid is not None and body.valid_from > valid:
                continue  # Not begun yet: hidden even if ended nodes are included.
            if not self.include_ended and body.valid_to is not None:
                if body.valid_to <= (now if valid is None else valid):
                    continue
            kept.add(body.row)
        return kept if self.chosen is None else self.chosen(kept)


def registrations(reader: Reader) -> list[Registration]:
    """Return the custom edge types that the store has recorded."""
    return [Registration.of(row) for row in reader.registrations()]


def follow_registrations(registry: Registry, reader: Reader) -> None:
    """Add the edge types recorded up to the reader's commit to a registry.

    A reader of an earlier snapshot removes nothing. A writer sees the last commit, even after a
    restore from a backup.
    """
    seq = reader.head().seq
    if registry.recorded_at < seq or (reader.is_uncommitted and registry.recorded_at != seq):
        registry.record(reader.registrations())
        registry.recorded_at = seq


def rewrite(reader: Reader, registry: Registry, query: Query, moment: Moment) -> Query:
    """Return the query as rewritten by the handlers of the edge types in its world.

    Raises:
        ProviderError: a handler failed, or returned something other than a query.
    """
    follow_registrations(registry, reader)
    if registry.is_flat:  # Only the root has handlers of its own.
        return registry.rewritten(query, [ROOT_ID])
    worlds = [bytes(query.world or ROOT_ID)]
    row = ROOT_ROW if query.world is None else reader.node_row(worlds[0])
    while row is not None and row != ROOT_ROW:
        row = reader.parents([row], moment.known).get(row)
        if row is not None:
            worlds.append(reader.world(row).id)
    return registry.rewritten(query, worlds)


def includes_ended(query: Query, moment: Moment) -> bool:
    """Return whether a rewritten query shows nodes that have ended by the moment."""
    return query.include_superseded or not (query.hides_ended or moment.valid is not None)


# -- one node, one edge, one class -----------------------------------------------------------------

Worlds = bytes | str | Sequence[bytes | str]
"""One or several worlds, by id or prefix."""
AMBIGUOUS_SHOWN = 3
"""Ids named in the error for an ambiguous prefix: enough to see which digits are missing."""
CHILDREN_AT_ONCE = 1_000
"""Children read per statement: a large world is listed without being held in memory."""


def whole_id(reader: Reader, given: bytes | str, table: str) -> Id:
    """Return the id that `given` stands for among nodes or edges (`table`).

    A whole id is returned unchanged, also if no node or edge has it.
    """
    if isinstance(given, bytes):
        return given if isinstance(given, Id) else Id(given)
    if not isinstance(given, str):
        raise InvalidInputError(f"{given!r} is not an id; give an Id or hex text")
    prefix = parse_prefix(given)
    if len(prefix) == 2 * ID_BYTES:
        return Id(prefix)
    found = reader.ids_like(table, prefix, AMBIGUOUS_SHOWN)
    if not found:
        what = table.removesuffix("s")
        raise NotFoundError(f"no {what} has an id that begins with {given!r}")
    if len(found) > 1:
        some = ", ".join(ident.short for ident in found)
        raise InvalidInputError(f"{given!r} is the start of several ids ({some}, …); give more")
    return found[0]


def find(reader: Reader, given: bytes | str, table: str) -> int:
    """Return the row of a node or an edge (`table`) from an id or a unique prefix.

    Raises:
        InvalidInputError: not an id, too short, or an ambiguous prefix.
        NotFoundError: no node or edge has this id.
    """
    ident = whole_id(reader, given, table)
    row = reader.node_row(ident) if table == "nodes" else reader.edge_row(ident)
    if row is None:
        raise NotFoundError(f"no {table.removesuffix('s')} has the id {ident}")
    return row


def find_worlds(reader: Reader, scope: Worlds) -> list[int]:
    """Return the rows of one or several worlds from their ids or prefixes.

    Raises:
        InvalidInputError: not an id, or an empty list.
        NotFoundError: there is no such world.
    """
    if not isinstance(scope, Iterable) or isinstance(scope, Mapping):
        raise InvalidInputError(f"scope: give the id of a world, or several, not {scope!r:.100}")
    given = [scope] if isinstance(scope, bytes | str) else list(scope)
    if not given:
        raise InvalidInputError("scope: give a world or several, or leave it out")
    return sorted({find(reader, one, "nodes") for one in given})


def find_node(reader: Reader, given: bytes | str, moment: Moment) -> tuple[int, Node]:
    """Return the row of a node, and the node as of a moment.

    A node that has ended is found, unless the moment names a valid time.

    Raises:
        InvalidInputError: not an id.
        NotFoundError: no such node, or not at that moment.
    """
    row = find(reader, given, "nodes")
    node = reader.nodes([row], moment.known).get(row)
    if node is None:
        raise NotFoundError(
            f"node {whole_id(reader, given, 'nodes').short} was not known at that time"
        )
    if moment.valid is not None and not moment.holds(node):
        raise NotFoundError(f"node {node.id.short} was not valid at {moment.valid.isoformat()}")
    return row, node


def children(
    reader: Reader, given: bytes | str, moment: Moment, include_ended: bool
) -> Iterator[Node]:
    """Yield a world's children in the order they were written."""
    row, _ = find_node(reader, given, moment._replace(valid=None))
    rows = reader.children(row, moment.known)
    for start in range(0, len(rows), CHILDREN_AT_ONCE):
        some = rows[start : start + CHILDREN_AT_ONCE]
        nodes = reader.nodes(some, moment.known)
        for child in some:
            if moment.shows(nodes[child], include_ended):
                yield nodes[child]


def edges(
    reader: Reader,
    given: bytes | str,
    moment: Moment,
    *,
    direction: Direction,
    types: Iterable[str] | None,
    include_ended: bool,
) -> list[Edge]:
    """Return the edges at a node, in the order they were written."""
    check_direction(direction)
    row, _ = find_node(reader, given, moment._replace(valid=None))
    chosen = None if types is None else check_words(types, "types")
    found = reader.edges_at([row], direction, chosen, moment.known)
    return [item.edge for item in found if moment.shows(item.edge, include_ended)]


def accepted_class(
    reader: Reader,
    rows: Iterable[int],
    moment: Moment,
    without: int | None = None,
    inside: Callable[[set[int]], set[int]] | None = None,
) -> set[int]:
    """Return `rows` and everything that was accepted as the same as one of them, transitively.

    The merge that the edge in row `without` proposes does not count. Nodes for which `inside` is
    false are left out and not followed.
    """
    seen = set(rows)
    frontier = set(seen)
    while frontier:
        found = reader.proposals("accepted", frontier, moment.known)
        ends = {row for item in found if item.edge != without for row in (item.low, item.high)}
        frontier = ends - seen if inside is None else inside(ends - seen)
        seen |= frontier
    return seen


def proposals(reader: Reader, status: ProposalStatus | None, moment: Moment) -> list[Proposal]:
    """Return merge proposals in the order they were staged."""
    if status is not None and status not in get_args(ProposalStatus):
        statuses = ", ".join(get_args(ProposalStatus))
        raise InvalidInputError(f"status {status!r}: use one of {statuses}, or None for all")
    rows = reader.proposals(status, None, moment.known)
    staged = {item.row: item.edge for item in reader.edges(row.edge for row in rows)}
    return [
        proposal_value(row, edge.id, edge.source, edge.target)
        for row in rows
        for edge in (staged[row.edge],)
    ]


def proposal_value(row: ProposalRow, edge: Id, left: Id, right: Id) -> Proposal:
    """Return a stored proposal as the public value; `edge` is the edge that staged it."""
    return Proposal(
        edge=edge,
        left=left,
        right=right,
        status=row.status,
        tier=row.tier,
        score=row.score,
        evidence=json.loads(row.evidence),
    )


def conflicts(reader: Reader, moment: Moment, include_settled: bool) -> list[Conflict]:
    """Return the conflicts at the moment; with `include_settled`, also settled ones."""
    rows = reader.conflicts(None, moment.known)
    rows = rows if include_settled else open_conflicts(reader, rows, moment)
    return conflict_values(reader, rows)


def open_conflicts(
    reader: Reader, rows: Iterable[ConflictRow], moment: Moment, include_ended: bool = False
) -> list[ConflictRow]:
    """Return the conflicts that are not settled and whose sides are both valid at the moment."""
    unsettled = [row for row in rows if row.gone is None]
    sides = {side for row in unsettled for side in (row.low, row.high)}
    nodes = reader.nodes(sides, moment.known) if sides else {}
    live = {row for row, node in nodes.items() if moment.shows(node, include_ended)}
    return [row for row in unsettled if {row.low, row.high} <= live]


def conflict_values(reader: Reader, rows: list[ConflictRow]) -> list[Conflict]:
    """Return stored conflicts as public values."""
    flagged = {item.row: item.edge for item in reader.edges(row.edge for row in rows)}
    return [
        Conflict(
            edge=edge.id,
            left=edge.source,
            right=edge.target,
            reason=row.reason,
            settled=row.gone is not None,
        )
        for row in rows
        for edge in (flagged[row.edge],)
    ]


def export_identity(
    reader: Reader,
    row: int,
    moment: Moment,
    inside: Callable[[set[int]], set[int]] | None = None,
) -> Identity:
    """Return the accepted class of a node with the union of its members' names and sources."""
    rows = accepted_class(reader, {row}, moment, inside=inside)
    nodes = [node for _, node in sorted(reader.nodes(rows, moment.known).items())]
    ids = {node.id for node in nodes}
    names = [name for node in nodes for name in (node.name, *node.aliases) if name]
    sources = [source for node in nodes for source in node.provenance]
    merges = proposals(reader, "accepted", moment)
    return Identity(
        ids=tuple(node.id for node in nodes),
        nodes=tuple(nodes),
        names=tuple(dict.fromkeys(names)),
        provenance=tuple(dict.fromkeys(sources)),
        merges=tuple(merge for merge in merges if merge.left in ids),
    )

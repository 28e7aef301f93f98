"""Pipeline: runs a query: rewrite by the edge types, start set, steps, answer.

Sets of rows are passed from step to step; nodes are read once for the filters and kept.

P1  A step acts on the set before it. `in_world`, `as_of` and `include_superseded` apply from their
    place on; the edge types of the new world rewrite the query again. If the only `as_of` is the
    last step, it applies to the whole query, because nothing follows it.
P2  The start set is made when the first step that walks or counts needs it. So the steps before
    that one describe the start set, too: a filter there applies at the time asked for.
P3  A start set is complete, or the answer says how it was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from worlddb.errors import NotFoundError, ProviderError
from worlddb.index.search import Search
from worlddb.model.address import Id
from worlddb.model.inputs import Plain
from worlddb.model.records import (
    Conflict,
    Direction,
    Edge,
    Node,
    Op,
    Query,
    node_line,
    predecessor_notes,
)
from worlddb.ontology.registry import Registry
from worlddb.query.start_set import StartSet, find_rows
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, EdgeRow
from worlddb.view.node_filters import filtered
from worlddb.view.summary_view import DERIVED, SUMMARY, stale_summaries, summary_view, uncovered
from worlddb.view.visibility import (
    Moment,
    View,
    accepted_class,
    conflict_values,
    includes_ended,
    inside,
    interior,
    interior_up_to,
    moment_of,
    open_conflicts,
    rewrite,
)

if TYPE_CHECKING:
    import networkx as nx


# Subgraph: the answer to a query, shaped like the data.


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph(Plain):
    """The answer to a query, shaped like the data.

    It has the nodes that the query ends at, the edges that it followed, and the open conflicts of
    the nodes. `cut` says how the start set was cut; None if it was complete.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    cut: str | None = None

    @property
    def ids(self) -> set[Id]:
        """The ids of the nodes."""
        return {node.id for node in self.nodes}

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def to_json(self) -> dict[str, Any]:
        """Return nodes, edges and conflicts as plain JSON data."""
        return self.to_dict()

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return a directed multigraph: nodes by hex id, edges by hex id as their key.

        Raises:
            ProviderError: networkx is not installed.
        """
        try:
            import networkx
        except ImportError as error:
            raise ProviderError(
                'networkx is not installed; run: pip install "worlddb[networkx]"'
            ) from error
        graph: nx.MultiDiGraph[str] = networkx.MultiDiGraph()
        for node in self.nodes:
            graph.add_node(str(node.id), **node.to_dict())
        for edge in self.edges:
            ends = (str(edge.source), str(edge.target))
            graph.add_edge(*ends, key=str(edge.id), **edge.to_dict())
        graph.graph["conflicts"] = [conflict.to_dict() for conflict in self.conflicts]
        return graph

    def to_text(self) -> str:
        """Return the nodes as lines for a prompt, with times, replaced nodes and conflicts.

        If the start set was cut, a last line says so.
        """
        against: dict[Id, list[Id]] = {}
        for conflict in self.conflicts:
            if not conflict.settled:
                against.setdefault(conflict.left, []).append(conflict.right)
                against.setdefault(conflict.right, []).append(conflict.left)
        order = predecessor_notes(self.edges)
        lines = [
            node_line(node, against.get(node.id, []), order.get(node.id, ())) for node in self.nodes
        ]
        return "\n".join(lines if self.cut is None else [*lines, f"({self.cut})"])


# Pipeline.

SETTINGS = frozenset({"in_world", "as_of", "include_superseded"})
"""Steps that change world, time or visibility for the steps after them."""
FILTERS = frozenset({"filter_type", "filter_time", "where"})
"""Steps that test one node at a time."""
WALKS = frozenset({"traverse", "where_connected", "limit"})
"""Steps that walk from the set before them or count it, so the set must exist."""
Bounds = tuple[tuple[bytes, ...], ...]
"""Groups of worlds: everything read must be inside one world of each group."""


def start_length(query: Query) -> int:
    """Return how many of a query's steps describe its start set."""
    return next((at for at, op in enumerate(query.ops) if op.kind in WALKS), len(query.ops))


def settled(query: Query) -> Query:
    """Return a query with the settings of its start set in its own fields."""
    times = [op for op in query.ops if op.kind == "as_of"]
    if len(times) == 1 and query.ops[-1] is times[0]:
        query = replace(query, ops=(*times, *query.ops[:-1]))
    for op in query.ops[: start_length(query)]:
        if op.kind in SETTINGS:
            query = applied(query, op)
    prefers = any(op.kind == "prefer_summaries" and op.on for op in query.ops)
    return query if query.prefer_summaries == prefers else replace(query, prefer_summaries=prefers)


def applied(query: Query, op: Op) -> Query:
    """Return a query with one setting changed."""
    if op.kind == "in_world":
        return replace(query, world=op.id)
    if op.kind == "as_of":
        return replace(query, as_of=op.as_of)
    return replace(query, include_superseded=op.on)


def execute(
    reader: Reader,
    registry: Registry,
    search: Search,
    query: Query,
    now: int,
    bounds: Bounds = (),
) -> Subgraph:
    """Answer a query on one snapshot.

    Raises:
        NotFoundError: a seed, a world or a connected node does not exist at that time.
        ProviderError: the rewrite of an edge handler failed.
    """
    return Execution(reader, registry, search, settled(query), now, bounds).answer()


class Execution:
    """One query on one snapshot: its present settings, and the nodes read so far."""

    def __init__(
        self,
        reader: Reader,
        registry: Registry,
        search: Search,
        query: Query,
        now: int,
        bounds: Bounds,
    ) -> None:
        self.reader = reader
        self.registry = registry
        self.search = search
        self.now = now
        found = [[reader.node_row(world) for world in group] for group in bounds]
        self.bounds = [[row for row in group if row is not None] for group in found]
        self.plain = query
        self._look()
        self.ops = self.query.ops
        self.edges: dict[int, Edge] = {}
        self.rank: dict[int, int] = {}
        self.cut: str | None = None

    def _look(self) -> None:
        """Apply the present settings of the query: moment, world and edge types."""
        self.moment: Moment = moment_of(self.reader, self.plain.as_of, self.now)
        self.nodes: dict[int, Node] = {}
        self.query = rewrite(self.reader, self.registry, self.plain, self.moment)
        self.world = ROOT_ROW if self.query.world is None else self._row(self.query.world)
        self.has_classes = self.query.follows_classes and self.reader.has_proposals()

    def groups(self) -> list[list[int]]:
        """Return groups of worlds; a node must be inside one world of each group."""
        if self.bounds and self.query.world is None:
            return self.bounds
        return [[self.world], *self.bounds]

    def answer(self) -> Subgraph:
        """Make the start set, run the steps, and return the result."""
        head = start_length(self.query)
        steps = [op for op in self.ops[:head] if op.kind not in SETTINGS]
        switches = [op for op in steps if op.kind == "prefer_summaries"]
        steps = [op for op in steps if op not in switches[:-1]]  # The last switch decides.
        summarised = self._summary_first(steps[0]) if steps else None
        found = self._started(self.ops[:head]) if summarised is None else summarised
        for op in (*steps[summarised is not None :], *self.ops[head:]):
            found = self._step(found, op)
        shown = self._ordered(found)[: self.query.limit]
        return Subgraph(
            nodes=tuple(self.nodes[row] for row in shown),
            edges=tuple(self.edges[row] for row in sorted(self.edges)),
            conflicts=tuple(self._conflicts(shown)),
            cut=self.cut,
        )

    def _step(self, rows: set[int], op: Op) -> set[int]:
        """Return the set after one step."""
        if op.kind in SETTINGS:
            self.plain = applied(self.plain, op)
            self._look()
            return self._inside(rows) if op.kind == "in_world" else rows
        if op.kind in FILTERS:
            nodes = self._read(rows)
            worlds = self.groups()[0]
            return filtered(self.reader, self.query, self.moment, worlds, nodes, op)
        if op.kind == "limit":
            return set(self._ordered(rows)[: op.count])
        if op.kind == "prefer_summaries":
            return self._with_summaries(rows) if op.on else rows
        return self._traverse(rows, op) if op.kind == "traverse" else self._connected(rows, op)

    def _ordered(self, rows: set[int]) -> list[int]:
        """Return the valid rows in the order of the answer.

        The best match first, or by time; ties by id. After a traversal there is no best match.
        """
        nodes = self._read(rows)
        key: Callable[[int], tuple[Any, ...]] = lambda row: (nodes[row].id,)  # noqa: E731
        if self.rank:
            rank, last = self.rank, len(self.rank)
            key = lambda row: (rank.get(row, last), nodes[row].id)  # noqa: E731
        elif self.query.orders_by_time:
            key = lambda row: (nodes[row].valid_from, nodes[row].id)  # noqa: E731
        return sorted(nodes, key=key)

    def _conflicts(self, shown: list[int]) -> list[Conflict]:
        """Return the open conflicts of the answer; both sides must be visible from here."""
        if not self.query.shows_conflicts:
            return []
        found = self.reader.conflicts(shown, self.moment.known)
        include_ended = self.query.include_superseded
        rows = open_conflicts(self.reader, found, self.moment, include_ended)
        seen = self._inside({side for row in rows for side in (row.low, row.high)})
        return conflict_values(self.reader, [row for row in rows if {row.low, row.high} <= seen])

    # -- the start set -----------------------------------------------------------------------------

    def _started(self, head: Iterable[Op]) -> set[int]:
        """Return the start rows: seeds before text before vector, else everything visible."""
        query = self.query
        if query.seeds:
            # A node named by id is a valid start even if it has ended or not begun: "what replaced
            # this?" starts at the replaced node. The answer is filtered at the end.
            rows = self._inside(self._classes({self._row(ident) for ident in query.seeds}))
        elif query.text is not None or query.vector is not None:
            found = self._found()
            self.cut = found.cut
            self.rank = {row: number for number, row in enumerate(found.rows)}
            rows = self._within(set(found.rows))
        else:
            members, worlds = query.widens_to_members, self.groups()[0]
            rows = interior_up_to(self.reader, worlds, self.moment, members, None) or set()
            rows = set(self._read(self._within(rows)))
        for op in head:
            if op.kind == "in_world" and op.id is not None and op.id != query.world:
                world = self._row(op.id)
                rows = inside(self.reader, world, rows, self.moment, query.widens_to_members)
        return rows

    def _summary_first(self, first: Op) -> set[int] | None:
        """Return a world read through its summaries; None if the query asks for something else.

        The edges from summaries to details are not part of it: a caller follows them to read on.
        """
        query = self.query
        if first.kind != "prefer_summaries" or not first.on or self.bounds:
            return None
        worlds = {op.id for op in self.ops[: start_length(query)] if op.kind == "in_world"}
        is_found = query.text is not None or query.vector is not None
        if not query.summary_edges or query.seeds or is_found or len(worlds) > 1:
            return None
        if self.moment.known is not None:
            rows = self._with_summaries(self._started(()))
            self.edges.clear()
            return rows
        usual = query.hides_ended and not query.include_superseded and self.moment.valid is None
        if usual and query.widens_to_members and query.summary_edges == {DERIVED}:
            found = summary_view(self.reader, self.world, self.moment)
            if found is not None:
                return found
        rows = interior(self.reader, self.world, self.moment, query.widens_to_members)
        types = sorted(query.summary_edges)
        return uncovered(self.reader, rows, types, self.moment, self._read)

    def _found(self) -> StartSet:
        """Return the visible nodes that match the text or are nearest the vector, best first."""
        worlds, *within = self.groups()
        view = View(
            self.reader,
            self.moment,
            worlds=worlds,
            within=within,
            members=self.query.widens_to_members,
            include_ended=includes_ended(self.query, self.moment),
        )
        text, vector, match = self.query.text, self.query.vector, self.query.match
        most = None
        if self.ops and self.ops[-1].kind == "limit" and not self.bounds:
            if all(op.kind in SETTINGS for op in self.ops[:-1]):
                most = self.ops[-1].count  # No later step removes any.
        return find_rows(self.search, view, text=text, match=match, vector=vector, most=most)

    def _row(self, ident: bytes) -> int:
        row, known = self.reader.node_row(ident), self.moment.known
        if row is None or (known is not None and not self.reader.parents([row], known)):
            raise NotFoundError(f"no node has the id {ident.hex()} at that time")
        if self.bounds and not self._within({row}) and all(row not in it for it in self.bounds):
            raise NotFoundError(f"no node has the id {ident.hex()} at that time")
        return row

    # -- what may be seen --------------------------------------------------------------------------

    def _inside(self, rows: Iterable[int]) -> set[int]:
        """Return the rows inside the query's world; all rows if it has none."""
        found = set(rows)
        if self.query.world is not None:
            members = self.query.widens_to_members
            found = inside(self.reader, self.world, found, self.moment, members)
        return self._within(found)

    def _within(self, rows: set[int]) -> set[int]:
        """Return the rows inside the bounds of the caller."""
        for group in self.bounds:
            members = self.query.widens_to_members
            kept = [inside(self.reader, world, rows, self.moment, members) for world in group]
            rows = set().union(*kept)
        return rows

    def _seen(self, rows: Iterable[int]) -> set[int]:
        return set(self._read(self._inside(rows)))

    def _read(self, rows: Iterable[int]) -> dict[int, Node]:
        """Return the nodes of `rows` that are valid at the moment."""
        wanted = set(rows)
        missing = wanted - self.nodes.keys()
        self.nodes.update(self.reader.nodes(missing, self.moment.known))
        found = {row: self.nodes[row] for row in wanted if row in self.nodes}
        if self.moment.valid is None and not self.query.hides_ended:
            return found
        include_ended = self.query.include_superseded
        return {row: node for row, node in found.items() if self.moment.shows(node, include_ended)}

    def _classes(self, rows: set[int]) -> set[int]:
        """Return rows with all visible nodes that were accepted as the same."""
        if not self.has_classes or not rows:
            return rows
        # Nodes outside the bounds of a caller neither count nor lead to other nodes.
        inside = self._within if self.bounds else None
        return rows | self._inside(accepted_class(self.reader, rows, self.moment, inside=inside))

    # -- walking -----------------------------------------------------------------------------------

    def _traverse(self, rows: set[int], op: Op) -> set[int]:
        """Follow edges hop by hop; only a piercing edge may leave the query's world."""
        self.rank = {}
        reached: set[int] = set()
        frontier = self._classes(rows)
        walked: dict[int, EdgeRow] = {}
        for _ in range(op.hops):
            ends: dict[int, bool] = {}
            found = self.reader.edges_at(frontier, op.direction, op.types, self.moment.known)
            for item in found:
                if not self._counts(item.edge):
                    continue
                walked[item.row] = item
                free = item.edge.type in self.query.pierces
                for end in _far_ends(item, frontier, op.direction):
                    ends[end] = ends.get(end, False) or free
            free_ends = self._within({end for end, free in ends.items() if free})
            seen = set(self._read(self._inside(ends.keys() - free_ends) | free_ends))
            frontier = self._classes(seen) - reached
            reached |= seen
            if not frontier:
                break
        ends_seen = self._classes(rows) | self._classes(reached)
        self._show(item for item in walked.values() if {item.source, item.target} <= ends_seen)
        return reached

    def _counts(self, edge: Edge) -> bool:
        """Return whether an edge is valid at the moment, or ended edges were asked for."""
        return self.moment.shows(edge, self.query.include_superseded)

    def _show(self, items: Iterable[EdgeRow]) -> None:
        """Add edges to the answer."""
        self.edges.update((item.row, item.edge) for item in items)

    def _connected(self, rows: set[int], op: Op) -> set[int]:
        """Keep the rows with an edge to or from the named node; merged nodes count as one.

        As in a traversal, only a piercing edge may leave the query's world.
        """
        assert op.id is not None
        others = self._classes({self._row(op.id)})
        if not self.query.pierces.issuperset(op.types):
            others = self._inside(others)
        turned: Direction = _TURNED[op.direction]
        kept: set[int] = set()
        for item in self.reader.edges_at(others, turned, op.types, self.moment.known):
            if self._counts(item.edge):
                ends = self._classes(_far_ends(item, others, turned)) & rows
                if ends:
                    kept |= ends
                    self._show([item])
        return kept

    def _with_summaries(self, rows: set[int]) -> set[int]:
        """Replace details by the summaries derived from them, and those by their own summaries.

        A stale summary is replaced by its details that are still valid.
        """
        types = tuple(sorted(self.query.summary_edges))
        stale = self._stale(rows)
        left = self.reader.edges_at(stale, "out", types, self.moment.known) if stale else ()
        rows = (rows - stale) | self._seen({item.target for item in left})
        todo = set(rows)
        while todo and types:
            found = [
                item
                for item in self.reader.edges_at(todo, "in", types, self.moment.known)
                if self.moment.holds(item.edge)
            ]
            seen = self._seen({item.source for item in found})
            summaries = {row for row in seen if self.nodes[row].type == SUMMARY}
            summaries -= self._stale(summaries)
            used = [item for item in found if item.source in summaries]
            self._show(used)
            rows = (rows - {item.target for item in used}) | summaries
            todo = summaries
        return rows

    def _stale(self, rows: set[int]) -> set[int]:
        """Return the stale summaries, unless ended nodes were asked for."""
        if self.query.include_superseded:
            return set()
        return stale_summaries(self.reader, self._read(rows), self.moment)


_TURNED: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


def _far_ends(item: EdgeRow, near: set[int], direction: Direction) -> set[int]:
    """Return the ends of an edge that are reached from `near` by following it in `direction`."""
    ends = set()
    if direction != "in" and item.source in near:
        ends.add(item.target)
    if direction != "out" and item.target in near:
        ends.add(item.source)
    return ends

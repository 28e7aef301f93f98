"""Pipeline: the life of a query: rewrite by the ontology, start, run the steps, show the answer.

Rows in, rows out, until the very end: nodes are read once for the filters and kept for the answer.

A world can be read *summary first*, without reading what its summaries stand for:

    is there one summary of everything in here, and has nothing changed since?  ──yes──▶ that one
        └─no──▶ what is directly inside, the same of each world there, less what is summarised

A summary that stands for everything inside its world says so among its sources. The world's state
witnesses its whole interior, so the time of its last change tells whether the summary still does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from worlddb.errors import NotFoundError, ProviderError
from worlddb.index.search import Search
from worlddb.model.address import Id
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.records import Conflict, Direction, Edge, Node, Op, Plain, Query, node_line
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, EdgeRow, InsideRow
from worlddb.view.visibility import (
    Moment,
    View,
    accepted_class,
    conflict_values,
    includes_ended,
    inside,
    interior,
    moment_of,
    open_conflicts,
    rewrite,
)

if TYPE_CHECKING:
    import networkx as nx


SUMMARY = "Summary"
DERIVED = "derived_from"
WHOLE = "summary of everything inside, depth "
"""The source of a summary that stands for its whole world, before the depth of summaries in it."""
DEPTH_DIGITS_MAX = 4
"""Longer numbers are no depth: a source is free text that anybody may have written."""
START_MAX = 100
"""How many nodes a search by text or vector starts from, unless the limit is higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph(Plain):
    """The answer to a query, shaped like the data.

    It has the nodes that the query ends at, the edges that it followed, and the open conflicts of
    the nodes.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

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
        """Return the nodes as lines for a prompt: when, what, and what speaks against it."""
        against: dict[Id, list[Id]] = {}
        for conflict in self.conflicts:
            if not conflict.settled:
                against.setdefault(conflict.left, []).append(conflict.right)
                against.setdefault(conflict.right, []).append(conflict.left)
        return "\n".join(node_line(node, against.get(node.id, [])) for node in self.nodes)


def whole_summaries(reader: Reader, worlds: Iterable[int], now: int) -> dict[int, tuple[int, int]]:
    """Return the summary that stands for everything in a world now, and its depth, by world.

    Worlds without one are left out. The last child tells: whatever came later is not in it.
    """
    found = {}
    for world, row, source in reader.sweep.wholes(worlds, WHOLE, now):
        digits = source.removeprefix(WHOLE)
        depth = int(digits) if digits.isdecimal() and len(digits) <= DEPTH_DIGITS_MAX else 0
        if depth and _stands(reader, row, depth, now):
            found[world] = row, depth
    return found


def _stands(reader: Reader, row: int, depth: int, now: int) -> bool:
    """Return whether all summaries in a summary hold: closing one of them changes no state."""
    below = [row]
    for _ in range(depth - 1):
        found = reader.sweep.summaries_below(below)
        if any(ends is not None and ends <= now for _, ends in found):
            return False
        below = [inner for inner, _ in found]
    return True


def summary_view(reader: Reader, world: int, now: int) -> set[int] | None:
    """Return what is inside a world now that no summary there was derived from.

    Worlds that one summary stands for are not entered; that summary covers nothing outside them.
    None if there are members: one may be covered where it lives, in a world that was not entered.
    What has ended may be among the rows.
    """
    whole = whole_summaries(reader, [world], now)
    if whole:
        return {whole[world][0]}
    seen: set[int] = set()
    stand_ins: set[int] = set()
    summaries: set[int] = set()
    frontier = {world}
    while frontier:
        entered: dict[int, InsideRow] = {}
        for item in reader.sweep.inside(frontier):
            if item.is_member:
                return None
            entered[item.row] = item
        seen |= entered.keys()
        summaries |= {
            item.row
            for item in entered.values()
            if item.type == SUMMARY and (item.valid_to is None or item.valid_to > now)
        }
        worlds = [item.row for item in entered.values() if item.has_interior]
        whole = whole_summaries(reader, worlds, now) if worlds else {}
        stand_ins |= {row for row, _ in whole.values()}
        frontier = entered.keys() - whole.keys()
    seen |= stand_ins
    covers = reader.sweep.covers(summaries - stand_ins, (DERIVED,))
    covered = {item.target for item in covers if item.valid_to is None or item.valid_to > now}
    return seen - covered


def uncovered(
    reader: Reader,
    rows: set[int],
    types: Sequence[str],
    moment: Moment,
    read: Callable[[Iterable[int]], dict[int, Node]],
) -> set[int]:
    """Return those of `rows` that no summary among them was derived from.

    `read` returns the nodes of rows as far as they can be seen at the moment.
    """
    at = to_micros(moment.now if moment.valid is None else moment.valid, "valid")
    covers = [
        item
        for item in reader.sweep.covers(rows, types)
        if (item.valid_to is None or item.valid_to > at)
        and (moment.valid is None or item.valid_from <= at)
    ]
    nodes = read({item.source for item in covers})
    summaries = {row for row, node in nodes.items() if node.type == SUMMARY}
    return rows - {item.target for item in covers if item.source in summaries}


def execute(reader: Reader, registry: Registry, search: Search, query: Query, now: int) -> Subgraph:
    """Answer a query on one snapshot.

    Raises:
        NotFoundError: a seed, a world or a connected node does not exist at that time.
    """
    moment = moment_of(reader, query.as_of, now)
    query = rewrite(reader, registry, query, moment)
    return _Execution(reader, search, query, moment).answer()


class _Execution:
    """One query on one snapshot: the rewritten query, and what was read so far."""

    def __init__(self, reader: Reader, search: Search, query: Query, moment: Moment) -> None:
        self.reader = reader
        self.search = search
        self.query = query
        self.moment = moment
        self.world = ROOT_ROW if query.world is None else self._row(query.world)
        self.nodes: dict[int, Node] = {}
        self.edges: dict[int, Edge] = {}
        self.has_classes = query.follows_classes and reader.has_proposals()

    def answer(self) -> Subgraph:
        summarised = self._summary_first()
        start = self._seed() if summarised is None else sorted(summarised)
        steps: dict[str, Callable[[set[int], Op], set[int]]] = {
            "traverse": self._traverse,
            "filter_type": self._filter_type,
            "filter_time": self._filter_time,
            "where_connected": self._where_connected,
        }
        found = set(start)
        for op in self.query.ops:
            found = steps[op.kind](found, op)
        if self.query.summary_edges and summarised is None:
            found = self._with_summaries(found)
        nodes = self._read(found)
        shown = sorted(nodes, key=self._order(start))[: self.query.limit]
        return Subgraph(
            nodes=tuple(nodes[row] for row in shown),
            edges=tuple(self.edges[row] for row in sorted(self.edges)),
            conflicts=tuple(self._conflicts(shown)),
        )

    def _order(self, start: list[int]) -> Callable[[int], tuple[Any, ...]]:
        """Return how answers are ordered: best match, or time, and always by id at last."""
        nodes = self.nodes
        found_by_rank = self.query.text is not None or self.query.vector is not None
        # Filters leave the best first; after a traversal nobody knows what is best.
        goes_on = any(op.kind == "traverse" for op in self.query.ops)
        if found_by_rank and not self.query.seeds and not goes_on:
            rank = {row: number for number, row in enumerate(start)}
            return lambda row: (rank.get(row, len(rank)), nodes[row].id)
        if self.query.orders_by_time:
            return lambda row: (nodes[row].valid_from, nodes[row].id)
        return lambda row: (nodes[row].id,)

    def _conflicts(self, shown: list[int]) -> list[Conflict]:
        """Return the open conflicts of the shown nodes; both sides must be visible from here."""
        if not self.query.shows_conflicts:
            return []
        found = self.reader.conflicts(shown, self.moment.known)
        include_ended = self.query.include_superseded
        rows = open_conflicts(self.reader, found, self.moment, include_ended)
        seen = self._inside({side for row in rows for side in (row.low, row.high)})
        return conflict_values(self.reader, [row for row in rows if {row.low, row.high} <= seen])

    # -- the start set -----------------------------------------------------------------------------

    def _seed(self) -> list[int]:
        """Return the start rows: seeds before text before vector; without any all that is seen."""
        if self.query.seeds:
            # A node named by id can be started from, also when it has ended or not begun: "what
            # replaced this?" starts at what was replaced. The answer is filtered at the end.
            rows = self._classes({self._row(ident) for ident in self.query.seeds})
            return sorted(self._inside(rows))
        if self.query.text is not None or self.query.vector is not None:
            return self._found()
        rows = interior(self.reader, self.world, self.moment, self.query.widens_to_members)
        return sorted(self._seen(rows))

    def _summary_first(self) -> set[int] | None:
        """Return a whole world read summary first; None if that is not what is asked.

        The edges to what summaries stand for are not part of it: they are the way down.
        """
        query = self.query
        if not query.summary_edges or query.ops or query.seeds:
            return None
        if query.text is not None or query.vector is not None:
            return None
        if self.moment.known is not None:
            rows = self._with_summaries(set(self._seed()))
            self.edges.clear()
            return rows
        usual = query.hides_ended and not query.include_superseded and self.moment.valid is None
        if usual and query.widens_to_members and query.summary_edges == {DERIVED}:
            found = summary_view(self.reader, self.world, to_micros(self.moment.now, "now"))
            if found is not None:
                return found
        rows = interior(self.reader, self.world, self.moment, query.widens_to_members)
        types = sorted(query.summary_edges)
        return uncovered(self.reader, rows, types, self.moment, self._read)

    def _found(self) -> list[int]:
        """Return what can be seen and matches the text, or is nearest the vector, best first."""
        from worlddb.query.start_set import find_rows

        view = View(
            self.reader,
            self.moment,
            worlds=[self.world],
            members=self.query.widens_to_members,
            include_ended=includes_ended(self.query, self.moment),
        )
        text, vector, match = self.query.text, self.query.vector, self.query.match
        most = max(START_MAX, self.query.limit or 0)
        if self.query.limit is not None and not self.query.ops and not self.query.summary_edges:
            most = self.query.limit  # Nothing further can take any of them away.
        return find_rows(self.search, view, text=text, match=match, vector=vector, most=most)

    def _row(self, ident: bytes) -> int:
        row = self.reader.node_row(ident)
        if row is None or not self.reader.parents([row], self.moment.known):
            raise NotFoundError(f"no node has the id {ident.hex()} at that time")
        return row

    # -- what may be seen --------------------------------------------------------------------------

    def _inside(self, rows: Iterable[int]) -> set[int]:
        """Return the rows inside the query's world; outside any world everything is."""
        if self.query.world is None:
            return set(rows)
        return inside(self.reader, self.world, rows, self.moment, self.query.widens_to_members)

    def _seen(self, rows: Iterable[int]) -> set[int]:
        return set(self._read(self._inside(rows)))

    def _read(self, rows: Iterable[int]) -> dict[int, Node]:
        """Return the nodes of `rows` that hold at the moment."""
        wanted = set(rows)
        missing = wanted - self.nodes.keys()
        self.nodes.update(self.reader.nodes(missing, self.moment.known))
        found = {row: self.nodes[row] for row in wanted if row in self.nodes}
        if self.moment.valid is None and not self.query.hides_ended:
            return found
        include_ended = self.query.include_superseded
        return {row: node for row, node in found.items() if self.moment.shows(node, include_ended)}

    def _classes(self, rows: set[int]) -> set[int]:
        """Return rows with everything accepted as the same that can be seen from here."""
        if not self.has_classes or not rows:
            return rows
        return rows | self._inside(accepted_class(self.reader, rows, self.moment))

    # -- ops ---------------------------------------------------------------------------------------

    def _traverse(self, rows: set[int], op: Op) -> set[int]:
        """Follow edges hop by hop; only a piercing edge may end outside the query's world."""
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
            free_ends = {end for end, free in ends.items() if free}
            seen = set(self._read(self._inside(ends.keys() - free_ends) | free_ends))
            frontier = self._classes(seen) - reached
            reached |= seen
            if not frontier:
                break
        ends_seen = self._classes(rows) | self._classes(reached)
        self._show(item for item in walked.values() if {item.source, item.target} <= ends_seen)
        return reached

    def _counts(self, edge: Edge) -> bool:
        """Return whether an edge holds at the moment, or ended ones were asked for."""
        return self.moment.shows(edge, self.query.include_superseded)

    def _show(self, items: Iterable[EdgeRow]) -> None:
        """Add edges to the answer."""
        self.edges.update((item.row, item.edge) for item in items)

    def _filter_type(self, rows: set[int], op: Op) -> set[int]:
        nodes = self._read(rows)
        wanted = set(op.types)
        if not self.query.type_edges:
            return {row for row, node in nodes.items() if node.type in wanted}
        types = self._type_rows(wanted)
        names = wanted | {node.name for node in self.reader.nodes(types).values()}
        kept = {row for row, node in nodes.items() if node.type in names}
        rest = rows - kept
        if types and rest and "instance_of" in self.query.type_edges:
            for item in self.reader.edges_at(rest, "out", ("instance_of",), self.moment.known):
                if item.target in types and self._counts(item.edge):
                    kept.add(item.source)
        return kept

    def _type_rows(self, names: set[str]) -> set[int]:
        """Return the rows of the nodes that stand for these types, and of their subtypes."""
        found = self._types_seen(self.reader.rows_named(names))
        frontier = set(found)
        while frontier and "subtype_of" in self.query.type_edges:
            edges = self.reader.edges_at(frontier, "in", ("subtype_of",), self.moment.known)
            below = {item.source for item in edges if self._counts(item.edge)}
            frontier = self._types_seen(below) - found
            found |= frontier
        return found

    def _types_seen(self, rows: Iterable[int]) -> set[int]:
        """Return the type nodes that hold here: inside this world, or in a world around it."""
        wanted = set(rows)
        around = {ROOT_ROW}
        row: int | None = self.world
        while row is not None:
            around.add(row)
            row = self.reader.parents([row], self.moment.known).get(row)
        homes = self.reader.parents(wanted, self.moment.known)
        return self._inside(wanted) | {row for row, home in homes.items() if home in around}

    def _filter_time(self, rows: set[int], op: Op) -> set[int]:
        start = None if op.start is None else from_micros(to_micros(op.start, "start"))
        end = None if op.end is None else from_micros(to_micros(op.end, "end"))
        return {row for row, node in self._read(rows).items() if _overlaps(node, start, end)}

    def _where_connected(self, rows: set[int], op: Op) -> set[int]:
        """Keep the rows with an edge to or from the named node.

        As in a traversal, only a piercing edge may end outside the query's world.
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
        """Replace details by the summaries that were derived from them, and those by theirs."""
        types = tuple(sorted(self.query.summary_edges))
        todo = set(rows)
        while todo:
            found = [
                item
                for item in self.reader.edges_at(todo, "in", types, self.moment.known)
                if self.moment.holds(item.edge)
            ]
            seen = self._seen({item.source for item in found})
            summaries = {row for row in seen if self.nodes[row].type == SUMMARY}
            used = [item for item in found if item.source in summaries]
            self._show(used)
            rows = (rows - {item.target for item in used}) | summaries
            todo = summaries
        return rows


_TURNED: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


def _far_ends(item: EdgeRow, near: set[int], direction: Direction) -> set[int]:
    """Return the ends of an edge that are reached from `near` by following it in `direction`."""
    ends = set()
    if direction != "in" and item.source in near:
        ends.add(item.target)
    if direction != "out" and item.target in near:
        ends.add(item.source)
    return ends


def _overlaps(node: Node, start: datetime | None, end: datetime | None) -> bool:
    if node.valid_to is not None and (
        node.valid_to <= node.valid_from or (start is not None and node.valid_to <= start)
    ):
        return False
    return end is None or node.valid_from < end

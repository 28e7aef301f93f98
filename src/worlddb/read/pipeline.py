"""Pipeline: the life of a read. Rewrite by the ontology, seed, run the ops, show what is visible.

Rows in, rows out, until the very end: nodes are read once for the filters and kept for the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from worlddb.errors import NotFoundError
from worlddb.model.address import ROOT_ID
from worlddb.model.instant import from_micros, to_micros
from worlddb.model.query import Op, Query
from worlddb.model.values import Edge, Node
from worlddb.ontology.registry import Registry
from worlddb.read.identity import accepted_class, conflicts
from worlddb.read.moment import Moment, moment_of
from worlddb.read.subgraph import Subgraph
from worlddb.read.visible import inside, interior
from worlddb.store.protocol import ROOT_ROW, Reader

TEXT_SEEDS_MAX = 100
_WORD = re.compile(r"\w+", re.UNICODE)


def execute(reader: Reader, registry: Registry, query: Query, now: int) -> Subgraph:
    """Answer a query on one snapshot.

    Raises:
        NotFoundError: a seed, a world or a connected node does not exist at that time.
    """
    moment = moment_of(reader, query.as_of, now)
    query = rewrite(reader, registry, query, moment)
    return _Run(reader, query, moment).answer()


def rewrite(reader: Reader, registry: Registry, query: Query, moment: Moment) -> Query:
    """Let every edge type that holds in the query's world say how it wants to be read."""
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


class _Run:
    """One execution: the snapshot, the rewritten query, and what was read so far."""

    def __init__(self, reader: Reader, query: Query, moment: Moment) -> None:
        self.reader = reader
        self.query = query
        self.moment = moment
        self.world = ROOT_ROW if query.world is None else self._row(query.world)
        self.nodes: dict[int, Node] = {}
        self.edges: dict[int, Edge] = {}
        self.has_classes = query.follows_classes and reader.has_proposals()

    def answer(self) -> Subgraph:
        rows = self._seed()
        ordered = self.query.text is not None and not self.query.seeds and not self.query.ops
        steps: dict[str, Callable[[set[int], Op], set[int]]] = {
            "traverse": self._traverse,
            "filter_type": self._filter_type,
            "filter_time": self._filter_time,
            "where_connected": self._where_connected,
        }
        found = set(rows)
        for op in self.query.ops:
            found = steps[op.kind](found, op)
        if self.query.summary_edges:
            found = self._with_summaries(found)
        nodes = self._read(found)
        if ordered:
            shown = [nodes[row] for row in rows if row in nodes]
        elif self.query.orders_by_time:
            shown = sorted(nodes.values(), key=lambda node: (node.valid_from, node.id))
        else:
            shown = sorted(nodes.values(), key=lambda node: node.id)
        shown = shown[: self.query.limit]
        ids = {node.id for node in shown}
        spoken = conflicts(self.reader, nodes, self.moment) if self.query.shows_conflicts else []
        return Subgraph(
            nodes=tuple(shown),
            edges=tuple(self.edges[row] for row in sorted(self.edges)),
            conflicts=tuple(
                item for item in spoken if not item.settled and {item.left, item.right} & ids
            ),
        )

    # -- the start set -----------------------------------------------------------------------------

    def _seed(self) -> list[int]:
        """Return the start rows: seeds before text, and without either all that is visible."""
        if self.query.seeds:
            # A node named by id is a place to start from, also when it has ended or not begun:
            # "what replaced this?" starts at what was replaced. The answer is filtered at the end.
            rows = self._classes({self._row(ident) for ident in self.query.seeds})
            return sorted(self._inside(rows))
        if self.query.text is not None:
            words = _WORD.findall(self.query.text)
            if not words:
                return []
            any_word = " OR ".join(f'"{word}"' for word in words)
            rows_found = self.reader.match_text(any_word, TEXT_SEEDS_MAX)
            seen = self._seen(rows_found)
            return [row for row in rows_found if row in seen]
        rows = interior(self.reader, self.world, self.moment, self.query.widens_to_members)
        return sorted(self._seen(rows))

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
        if self.moment.valid is None and not self.query.hides_closed:
            return found
        if self.query.include_superseded:
            return found
        return {row: node for row, node in found.items() if self.moment.holds(node)}

    def _classes(self, rows: set[int]) -> set[int]:
        """Return rows with everything accepted as the same, where the ontology says so."""
        if not self.has_classes:
            return rows
        return accepted_class(self.reader, rows, self.moment)

    # -- ops ---------------------------------------------------------------------------------------

    def _traverse(self, rows: set[int], op: Op) -> set[int]:
        reached: set[int] = set()
        frontier = self._classes(rows)
        for _ in range(op.hops):
            found: dict[int, set[int]] = {}
            for item in self.reader.edges_at(frontier, op.direction, op.types, self.moment.known):
                if not self.query.include_superseded and not self.moment.holds(item.edge):
                    continue
                ends = {item.source, item.target} - frontier or {item.target, item.source}
                if op.direction != "both":
                    ends = {item.target if op.direction == "out" else item.source}
                self.edges[item.row] = item.edge
                pierces = item.edge.type in self.query.pierces
                for end in ends:
                    found.setdefault(end, set()).add(1 if pierces else 0)
            free = {row for row, ways in found.items() if 1 in ways}
            ends_seen = set(self._read(self._inside(found.keys() - free) | free))
            frontier = self._classes(ends_seen) - reached if ends_seen else set()
            reached |= ends_seen
            if not frontier:
                break
        self._drop_loose_edges(rows | reached)
        return reached

    def _drop_loose_edges(self, rows: set[int]) -> None:
        """Forget the edges whose far end cannot be seen; they were walked, not shown."""
        shown = self.reader.nodes(self._classes(rows), self.moment.known)
        ids = {node.id for node in shown.values()}
        self.edges = {
            row: edge
            for row, edge in self.edges.items()
            if edge.source in ids and edge.target in ids
        }

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
                if item.target in types and self.moment.holds(item.edge):
                    kept.add(item.source)
        return kept

    def _type_rows(self, names: set[str]) -> set[int]:
        """Return the rows of the nodes that stand for these types, and of their subtypes."""
        found = self._inside_or_root(self.reader.rows_named(names))
        frontier = set(found)
        while frontier and "subtype_of" in self.query.type_edges:
            edges = self.reader.edges_at(frontier, "in", ("subtype_of",), self.moment.known)
            frontier = {item.source for item in edges if self.moment.holds(item.edge)} - found
            found |= frontier
        return found

    def _inside_or_root(self, rows: Iterable[int]) -> set[int]:
        """Return rows visible in the query's world; type nodes may also live in the root world."""
        wanted = set(rows)
        parents = self.reader.parents(wanted, self.moment.known)
        return self._inside(wanted) | {row for row, up in parents.items() if up == ROOT_ROW}

    def _filter_time(self, rows: set[int], op: Op) -> set[int]:
        start = None if op.start is None else from_micros(to_micros(op.start, "start"))
        end = None if op.end is None else from_micros(to_micros(op.end, "end"))
        return {row for row, node in self._read(rows).items() if _overlaps(node, start, end)}

    def _where_connected(self, rows: set[int], op: Op) -> set[int]:
        assert op.id is not None
        others = self._classes({self._row(op.id)})
        turned = {"out": "in", "in": "out", "both": "both"}[op.direction]
        kept = set()
        for item in self.reader.edges_at(others, turned, op.types, self.moment.known):  # type: ignore[arg-type]
            if self.query.include_superseded or self.moment.holds(item.edge):
                ends = {"out": {item.source}, "in": {item.target}}.get(
                    op.direction, {item.source, item.target}
                )
                self.edges[item.row] = item.edge
                kept |= ends
        return rows & kept

    def _with_summaries(self, rows: set[int]) -> set[int]:
        """Replace details by the summaries that were derived from them."""
        types = tuple(sorted(self.query.summary_edges))
        found = [
            item
            for item in self.reader.edges_at(rows, "in", types, self.moment.known)
            if self.moment.holds(item.edge)
        ]
        seen = self._seen({item.source for item in found})
        summaries = {row for row in seen if self.nodes[row].type == "Summary"}
        covered = {item.target for item in found if item.source in summaries}
        self.edges.update((item.row, item.edge) for item in found if item.source in summaries)
        return (rows - covered) | summaries


def _overlaps(node: Node, start: datetime | None, end: datetime | None) -> bool:
    if node.valid_to is not None and (
        node.valid_to <= node.valid_from or (start is not None and node.valid_to <= start)
    ):
        return False
    return end is None or node.valid_from < end

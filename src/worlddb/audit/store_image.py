"""Store image: what `check` keeps in memory of a store, and the problems found so far.

Every table is read once. Later stages compare with what earlier ones have kept here, so the file
is not read again. Texts are not kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from worlddb.audit.history import Erasures
from worlddb.model.address import Id
from worlddb.model.inputs import premises_of
from worlddb.model.records import Change, Problem
from worlddb.store.rows import CommitRow, EdgeScan, NodeScan

PROBLEMS_KEPT_MAX = 1_000
"""Problems beyond this are not recorded: every row of a large store may be damaged."""


class NodeImage(NamedTuple):
    """A node without its texts; `born` is the commit that wrote it."""

    row: int
    id: bytes
    parent: int | None
    created_at: int
    valid_from: int
    valid_to: int | None
    born: int
    blind: bytes


class EdgeImage(NamedTuple):
    """An edge without its metadata; `gone` is the commit that deleted it."""

    id: bytes
    source: int
    target: int
    world: int
    valid_to: int | None
    born: int
    gone: int | None


class StoreImage:
    """The rows of a store without their texts. Nodes and edges are keyed by row number."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.nodes: dict[int, NodeImage] = {}
        self.node_rows: dict[bytes, int] = {}
        self.states: dict[int, bytes] = {}
        """The states of worlds that have or had an interior."""
        self.edges: dict[int, EdgeImage] = {}
        self.edge_rows: dict[bytes, int] = {}
        self.premises: dict[int, list[Id]] = {}
        """The premises of inferred edges."""
        self.notes: list[tuple[int, bytes, int]] = []
        """Row, journal record and commit of each note."""
        self.history: dict[tuple[str, int], list[tuple[int, Any]]] = {}
        """For each field of a row that ever changed: the commits, and the values before them."""
        self.commits: list[CommitRow] = []
        self.changes: list[tuple[int, Change]] = []
        self.erasures = Erasures(set(), set(), set())

    def report(self, place: str, message: str) -> None:
        """Add a problem."""
        if len(self.problems) < PROBLEMS_KEPT_MAX:
            self.problems.append(Problem(place=place, message=message))

    def add_node(self, node: NodeScan) -> None:
        """Keep a node without its texts."""
        if node.id in self.node_rows:
            self.report(label_of("node", node.id), "it is stored twice")
        self.node_rows[node.id] = node.row
        times = node.created_at, node.valid_from, node.valid_to
        self.nodes[node.row] = NodeImage(
            node.row, node.id, node.parent, *times, node.born, node.blind
        )
        if node.state is not None:
            self.states[node.row] = node.state

    def add_edge(self, edge: EdgeScan) -> None:
        """Keep an edge without its metadata, except the premises of an inferred edge."""
        if edge.id in self.edge_rows:
            self.report(label_of("edge", edge.id), "it is stored twice")
        self.edge_rows[edge.id] = edge.row
        self.edges[edge.row] = EdgeImage(
            edge.id, edge.source, edge.target, edge.world, edge.valid_to, edge.born, edge.gone
        )
        if '"inferred":true' in edge.metadata:
            self.premises[edge.row] = premises_of(edge.metadata)

    def first_value(self, field: str, row: int, present: Any) -> Any:
        """Return what a field was when its row was written; `present` if it never changed."""
        past = self.history.get((field, row))
        return past[0][1] if past else present


def label_of(kind: str, ident: bytes) -> str:
    """Return how a problem names a node or an edge."""
    return f"{kind} {ident.hex()[:12]}"

"""Rows: what `check` keeps of the tables while it goes through them, and what it has found."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from worlddb.model.address import Id
from worlddb.model.inputs import premises_of
from worlddb.model.journal import decode_changes, has_erased
from worlddb.model.records import Change, Problem
from worlddb.store.protocol import CommitRow, EdgeScan, NodeScan, Reader


class Rows:
    """The store in memory, without its texts."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.node_ids: dict[int, bytes] = {}
        self.node_rows: dict[bytes, int] = {}
        self.parents: dict[int, int | None] = {}
        self.states: dict[int, bytes] = {}
        self.node_born: dict[int, int] = {}
        self.node_valid_from: dict[int, int] = {}
        self.node_valid_to: dict[int, int | None] = {}
        self.edge_ids: dict[int, bytes] = {}
        self.edge_rows: dict[bytes, int] = {}
        self.edge_ends: dict[int, tuple[int, int]] = {}
        self.edge_worlds: dict[int, int] = {}
        self.edge_born: dict[int, int] = {}
        self.edge_gone: dict[int, int] = {}
        self.edge_valid_to: dict[int, int | None] = {}
        self.inferred: dict[int, list[Id]] = {}
        self.notes: list[tuple[int, bytes, int]] = []
        self.history: dict[tuple[str, int], list[tuple[int, Any]]] = {}
        self.commits: list[CommitRow] = []
        self.changes: list[tuple[int, Change]] = []
        self.erased: set[bytes] = set()
        self.erased_edges: set[bytes] = set()
        self.erased_commits: set[int] = set()
        self.blank: set[int] = set()

    def report(self, place: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(place=place, message=message))

    def add_node(self, node: NodeScan) -> None:
        """Keep what later stages need of a node."""
        if node.id in self.node_rows:
            self.report(f"node {node.id.hex()[:12]}", "it is there twice")
        self.node_ids[node.row] = node.id
        self.node_rows[node.id] = node.row
        self.parents[node.row] = node.parent
        if node.state is not None:
            self.states[node.row] = node.state
        self.node_born[node.row] = node.born
        self.node_valid_from[node.row] = node.valid_from
        self.node_valid_to[node.row] = node.valid_to

    def add_edge(self, edge: EdgeScan) -> None:
        """Keep what later stages need of an edge."""
        if edge.id in self.edge_rows:
            self.report(f"edge {edge.id.hex()[:12]}", "it is there twice")
        self.edge_ids[edge.row] = edge.id
        self.edge_rows[edge.id] = edge.row
        self.edge_ends[edge.row] = (edge.source, edge.target)
        self.edge_worlds[edge.row] = edge.world
        self.edge_born[edge.row] = edge.born
        self.edge_valid_to[edge.row] = edge.valid_to
        if '"inferred":true' in edge.metadata:
            self.inferred[edge.row] = premises_of(edge.metadata)
        if edge.gone is not None:
            self.edge_gone[edge.row] = edge.gone

    def load_erased(self, reader: Reader) -> None:
        """Keep what the journal says was erased: nodes, edges' metadata, parts of commits."""
        for commit in reader.commits(-1, None, False):
            if not has_erased(commit.changes):
                continue
            for change in decode_changes(commit.changes):
                if change.kind == "erase":
                    self.erased.add(bytes(change.id))
                    self.erased_edges.update(map(bytes.fromhex, change.detail.get("edges", ())))
                    self.erased_commits.update(change.detail.get("commits", ()))

    def load_history(self, reader: Reader) -> None:
        """Keep what each projection said before each change."""
        found: defaultdict[tuple[str, int], list[tuple[int, Any]]] = defaultdict(list)
        for field, row, seq, was in reader.scan.history():
            found[field, row].append((seq, was))
        self.history = dict(found)

    def first(self, field: str, row: int, present: Any) -> Any:
        """Return what a projection said at birth."""
        past = self.history.get((field, row))
        return past[0][1] if past else present

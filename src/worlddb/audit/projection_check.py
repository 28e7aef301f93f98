"""Projection check: recomputes from journal, nodes and edges everything that follows from them.

`check_projections` replays the journal's changes. The result must equal the tables of validity,
parents, deletions, proposals, conflicts and registrations.

`check_sets` computes the state of every world, and the pages of its sets, from nodes and edges.
While set changes wait to be written into pages, the pages are those of an earlier commit. Then the
pages must be consistent and hold the states of that commit, and the pages with the waiting changes
applied must hold the present set.

`StoreImage` is the part of a store that `check` keeps in memory, with the problems found so far.
Every table is read once; later stages compare with the image. Texts are not kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from typing import Any, NamedTuple

from worlddb.audit.history import Erasures
from worlddb.index.set_pages import WIDTH, digest_and_pages, members_of, merge
from worlddb.model.address import ERASED, ROOT_ID, Id, erased_state, node_address
from worlddb.model.inputs import premises_of
from worlddb.model.records import Change, Problem
from worlddb.store.interface import Reader
from worlddb.store.rows import (
    CHILDREN,
    EDGES,
    ROOT_ROW,
    CommitRow,
    ConflictScan,
    EdgeScan,
    NodeScan,
    ProposalScan,
)

PROBLEMS_KEPT_MAX = 1_000
"""Problems recorded at most: every row of a large store may be damaged."""


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
        """Return the value of a field when its row was written; `present` if it never changed."""
        past = self.history.get((field, row))
        return past[0][1] if past else present


def label_of(kind: str, ident: bytes) -> str:
    """Return the label of a node or an edge in a problem."""
    return f"{kind} {ident.hex()[:12]}"


NOT_AS_JOURNALED = "it is not what the journal says"

PageBodies = dict[str, tuple[int, bytes]]


class _JournalReplay:
    """The projections computed from the journal alone."""

    def __init__(self, image: StoreImage) -> None:
        self.image = image
        self.now: dict[tuple[str, int], Any] = {}
        self.history: dict[tuple[str, int], list[tuple[int, Any]]] = {}
        self.gone: dict[int, int] = {}
        self.proposals: dict[int, ProposalScan] = {}
        self.conflicts: dict[int, ConflictScan] = {}
        self.registrations: dict[tuple[int, str], tuple[str, int, int]] = {}

    def play(self, seq: int, change: Change) -> None:
        """Repeat one change of commit `seq`."""
        image, detail, kind = self.image, change.detail, change.kind
        if kind in ("erase", "undo", "merge"):
            return
        if kind in ("close_node", "place", "register"):
            self._play_on_node(seq, change, image.node_rows[change.id])
            return
        row = image.edge_rows[change.id]
        edge = image.edges[row]
        low, high = sorted((edge.source, edge.target))
        if kind == "close_edge":
            before = image.first_value("edge.valid_to", row, edge.valid_to)
            self._set("edge.valid_to", row, seq, detail["valid_to"], before)
        elif kind == "delete_edge":
            self.gone[row] = seq
        elif kind == "propose":
            staged = detail["tier"], detail["score"], detail["evidence"]
            self.proposals[row] = ProposalScan(row, low, high, "pending", *staged, seq)
        elif kind == "decide":
            proposal, status = self.proposals[row], detail["status"]
            self._set("proposal.status", row, seq, status, proposal.status)
            self.proposals[row] = proposal._replace(status=status)
        elif kind == "flag":
            self.conflicts[row] = ConflictScan(row, low, high, detail["reason"], seq, None)
        elif kind == "settle":
            self.conflicts[row] = self.conflicts[row]._replace(gone=seq)
        else:
            image.report(f"commit {seq}", f"it has an unknown change {kind!r}")

    def _play_on_node(self, seq: int, change: Change, row: int) -> None:
        image, detail = self.image, change.detail
        if change.kind == "close_node":
            before = image.first_value("node.valid_to", row, image.nodes[row].valid_to)
            self._set("node.valid_to", row, seq, detail["valid_to"], before)
        elif change.kind == "place":
            before = image.first_value("node.parent", row, image.nodes[row].parent)
            world = image.node_rows[bytes.fromhex(detail["world"])]
            self._set("node.parent", row, seq, world, before)
        else:
            registered = detail["version"], int(detail["functional"]), seq
            self.registrations[row, detail["type"]] = registered

    def _set(self, field: str, row: int, seq: int, value: Any, before: Any) -> None:
        """Set a field. History keeps one entry for each commit: the value before that commit."""
        was = self.now.get((field, row), before)
        past = self.history.setdefault((field, row), [])
        if not past or past[-1][0] != seq:
            past.append((seq, was))
        self.now[field, row] = value


def check_projections(reader: Reader, image: StoreImage) -> None:
    """Report every projection that differs from the journal."""
    replay = _JournalReplay(image)
    for seq, change in image.changes:
        replay.play(seq, change)
    _compare_fields(image, replay)
    for row, edge in image.edges.items():
        if edge.gone != replay.gone.get(row):
            image.report(f"edge row {row}", "its deletion is not what the journal says")
    scan = reader.scan
    _compare_table(image, "proposal", replay.proposals, {it.edge: it for it in scan.proposals()})
    _compare_table(image, "conflict", replay.conflicts, {it.edge: it for it in scan.conflicts()})
    premises = {
        (image.edge_rows[premise], row): True
        for row, needed in image.premises.items()
        for premise in needed
        if image.edge_rows.get(premise, row) < row
    }
    _compare_table(image, "premise", premises, dict.fromkeys(scan.premises(), True))
    registered = {(world, type_): tuple(rest) for world, type_, *rest in scan.registrations()}
    _compare_table(image, "registration", replay.registrations, registered)


def _compare_fields(image: StoreImage, replay: _JournalReplay) -> None:
    """Compare validity, parents and statuses, present and past."""
    for key in image.history.keys() | replay.history.keys():
        field, row = key
        if field != "node.state" and image.history.get(key) != replay.history.get(key):
            image.report(f"history of {field} row {row}", NOT_AS_JOURNALED)
    for (field, row), value in replay.now.items():
        table, _, column = field.partition(".")
        if table == "proposal":
            continue  # Compared with its own table.
        stored_row = image.nodes[row] if table == "node" else image.edges[row]
        if getattr(stored_row, column) != value:
            image.report(f"{field} row {row}", NOT_AS_JOURNALED)
    for node in image.nodes.values():
        if node.parent is not None and node.parent not in image.nodes:
            image.report(label_of("node", node.id), "its parent does not exist")


def _compare_table(
    image: StoreImage, what: str, expected: Mapping[Any, Any], stored: Mapping[Any, Any]
) -> None:
    for key in expected.keys() | stored.keys():
        if expected.get(key) != stored.get(key):
            image.report(f"{what} {key}", NOT_AS_JOURNALED)


# -- states and the pages of sets ------------------------------------------------------------------


def check_sets(reader: Reader, image: StoreImage) -> None:
    """Report every state and page that does not follow from nodes and edges."""
    children: defaultdict[int, list[NodeImage]] = defaultdict(list)
    for node in image.nodes.values():
        if node.parent is not None:
            children[node.parent].append(node)
    edges: defaultdict[int, list[bytes]] = defaultdict(list)
    for edge in image.edges.values():
        if edge.gone is None:
            edges[edge.world].append(edge.id)
    pages = _StoredPages(reader, image)
    states: dict[int, bytes] = {}
    for world in _inside_out(image, children.keys() | edges.keys() | image.states.keys()):
        members = sorted(node.id + states.get(node.row, node.id) for node in children[world])
        digests = []
        for kind, content in ((CHILDREN, members), (EDGES, sorted(edges[world]))):
            digest, expected = digest_and_pages(content)
            digests.append(digest)
            pages.check(world, kind, content, expected)
        if world not in image.nodes:
            image.report(f"world row {world}", "it does not exist")
            continue
        ident = image.nodes[world].id
        states[world] = _state_of(reader, world, digests)
        if image.states.get(world, ident) != states[world]:
            image.report(label_of("node", ident), "its interior does not hash to its state")
    pages.report_unused()
    root = states.get(ROOT_ROW, ROOT_ID)
    if image.commits and root != image.commits[-1].root_state:
        image.report("root", "its state is not the one of the last commit")


def _state_of(reader: Reader, row: int, digests: list[bytes]) -> bytes:
    world = reader.world(row)
    if world.created_at == ERASED:
        return erased_state(world.id, *digests)
    fields = (world.type, world.name.encode(), world.content.encode(), world.created_at)
    children, edges = digests
    return node_address(*fields, children, edges, world.blind)


class _StoredPages:
    """The set pages in the file, and the changes that wait to be written into them."""

    def __init__(self, reader: Reader, image: StoreImage) -> None:
        changes = reader.waiting()
        self._image = image
        self._waiting = merge(changes)
        self._written = changes[0].seq - 1 if changes else None
        self._stored = {
            key: {path: (fork, body) for _, _, path, fork, body in group}
            for key, group in groupby(reader.scan.pages(), key=lambda page: page[:2])
        }
        if not {change.seq for change in changes} <= {commit.seq for commit in image.commits}:
            image.report("waiting", "it has changes of a commit that does not exist")

    def check(self, world: int, kind: int, content: list[bytes], expected: PageBodies) -> None:
        """Report a set whose pages, with their waiting changes, do not hold `content`."""
        stored = self._stored.pop((world, kind), {})
        waiting = self._waiting.pop((world, kind), None)
        place = _pages_label(world, kind)
        if waiting is None:
            if stored != expected:
                self._image.report(place, "they do not hold its set")
            return
        put, dropped = waiting
        leaves = [members_of(body, WIDTH[kind]) for fork, body in stored.values() if not fork]
        held = {member[:32]: member for leaf in leaves for member in leaf}
        fits = digest_and_pages(sorted(held.values()))[1] == stored
        if not fits or (kind == CHILDREN and not all(map(self._was_current, held.values()))):
            self._image.report(place, "they do not fit together")
        held.update((member[:32], member) for member in put)
        if sorted(member for ident, member in held.items() if ident not in dropped) != content:
            self._image.report(place, "with the waiting changes they do not hold its set")

    def _was_current(self, member: bytes) -> bool:
        """Return whether a child's state is the one it had when its page was written."""
        row = self._image.node_rows.get(member[:32])
        if row is None or self._written is None:
            return False
        state = self._image.states.get(row)
        for seq, was in reversed(self._image.history.get(("node.state", row), [])):
            if seq > self._written:
                state = was
        return member[32:] == (state or member[:32])

    def report_unused(self) -> None:
        """Report pages and waiting additions of sets that have no members."""
        # A waiting removal alone is harmless: a move there and back leaves one.
        added = {key for key, (put, _) in self._waiting.items() if put}
        for world, kind in self._stored.keys() | added:
            self._image.report(_pages_label(world, kind), "they belong to no set")


def _pages_label(world: int, kind: int) -> str:
    return f"pages of world row {world}, kind {kind}"


def _inside_out(image: StoreImage, worlds: set[int]) -> list[int]:
    """Return worlds and their parents, each after all worlds inside it."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for world in worlds:
        node = image.nodes.get(world)
        sorter.add(world)
        if node is not None and node.parent is not None:
            sorter.add(node.parent, world)
    try:
        sorter.prepare()
    except CycleError:  # The rest of the graph can still be sorted.
        image.report("nodes", "some worlds contain each other in a cycle")
    ordered: list[int] = []
    while sorter.is_active() and (ready := sorter.get_ready()):
        ordered += ready
        sorter.done(*ready)
    return ordered

"""What the engine asks of a store, whatever database is below.

A store hands out *sessions*. A reader sees one snapshot and is never blocked by a writer; a writer
is alone, sees its own writes, and lands whole or not at all. Rows are the store's own integer
handles: small, ordered by writing, never shown to a user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from worlddb.model.address import Id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Commit, Direction, Edge, Node, ProposalStatus, decode_changes
from worlddb.store.sweep import Sweep

ROOT_ROW = 1
CHILDREN, EDGES = 0, 1
"""The two sets of a world that have a digest."""


class Head(NamedTuple):
    """The last commit, and the highest row of each kind that it left."""

    seq: int
    time: int
    hash: bytes
    root_state: bytes
    nodes: int
    edges: int
    notes: int


class CommitRow(NamedTuple):
    """A row of the journal."""

    seq: int
    time: int
    actor: str
    root_state: bytes
    hash: bytes
    nodes: int
    edges: int
    notes: int
    changes: str


def to_commit(row: CommitRow, before: CommitRow | Head) -> Commit:
    """Return a journal row as the public value; `before` is the commit it follows."""
    return Commit(
        seq=row.seq,
        time=from_micros(row.time),
        actor=row.actor,
        root_state=Id(row.root_state),
        hash=Id(row.hash),
        previous=Id(before.hash),
        nodes=row.nodes - before.nodes,
        edges=row.edges - before.edges,
        changes=decode_changes(row.changes),
    )


class EdgeRow(NamedTuple):
    """An edge with the handles a traversal needs beside the public value."""

    row: int
    source: int
    target: int
    world: int
    edge: Edge


class ProposalRow(NamedTuple):
    """A staged merge."""

    edge: int
    low: int
    high: int
    status: ProposalStatus
    tier: str
    score: float
    evidence: str


class ConflictRow(NamedTuple):
    """A recorded conflict; `gone` is the commit that settled it."""

    edge: int
    low: int
    high: int
    reason: str
    gone: int | None


class SetChange(NamedTuple):
    """What a commit put into a set of a world, and the addresses that it dropped from it."""

    seq: int
    world: int
    kind: int
    put: list[bytes]
    drop: list[bytes]


class World(NamedTuple):
    """What it takes to hash a world again."""

    row: int
    id: bytes
    state: bytes | None
    type: str
    name: str
    content: str
    created_at: int
    parent: int | None


class NewNode(NamedTuple):
    """A node to insert; `key` is the start of its id as a number (`model.address.short_key`)."""

    row: int
    key: int
    id: bytes
    type: str
    name: str
    content: str
    created_at: int
    parent: int | None
    valid_from: int
    valid_to: int | None
    born: int


class NodePlace(NamedTuple):
    """Where a node is: its row, the row of the world it lives in, and when its validity begins."""

    row: int
    world: int
    valid_from: int


class NewEdge(NamedTuple):
    """An edge to insert; `world` is the world its source lives in, `metadata` is JSON."""

    row: int
    key: int
    id: bytes
    type: str
    source: int
    target: int
    world: int
    valid_from: int
    valid_to: int | None
    metadata: str
    generation: int
    born: int


class NodeScan(NamedTuple):
    """A node's row as it stands."""

    row: int
    key: int
    id: bytes
    state: bytes | None
    type: str
    name: str
    content: str
    created_at: int
    parent: int | None
    valid_from: int
    valid_to: int | None
    born: int


class EdgeScan(NamedTuple):
    """An edge's row as it stands."""

    row: int
    key: int
    id: bytes
    type: str
    source: int
    target: int
    world: int
    valid_from: int
    valid_to: int | None
    metadata: str
    generation: int
    born: int
    gone: int | None


class ModelRow(NamedTuple):
    """An embedder that the store has vectors of, and how far they have come."""

    number: int
    id: str
    dim: int
    active: int
    pooling: str
    embedded: int
    composed: int
    seq: int


class PoolRow(NamedTuple):
    """The running sums of a composed world, and its effective vector."""

    node: int
    children: int
    weight: float
    total: bytes
    vector: bytes


class BodyRow(NamedTuple):
    """What search needs of a node."""

    row: int
    id: bytes
    type: str
    parent: int | None
    name: str
    content: str
    valid_from: int
    valid_to: int | None


class Derived(Protocol):
    """Embeddings: read in any session, written inside `Store.derive`."""

    def models(self) -> list[ModelRow]: ...
    def add_model(self, ident: str, dim: int, pooling: str) -> ModelRow: ...
    def activate(self, number: int) -> None: ...
    def set_embedded(self, number: int, node: int) -> None: ...
    def set_composed(self, number: int, node: int, seq: int) -> None: ...
    def start_pools(self, number: int, pooling: str) -> None: ...
    def vectors(self, number: int, nodes: list[int]) -> list[tuple[int, bytes]]: ...
    def vectors_after(self, number: int, node: int, seq: int) -> Iterator[tuple[int, bytes]]: ...
    def pools(self, number: int, nodes: list[int]) -> list[PoolRow]: ...
    def put_vectors(self, number: int, items: Iterable[tuple[int, bytes]]) -> None: ...
    def tokens(self, number: int, nodes: list[int]) -> list[tuple[int, bytes]]: ...
    def without_tokens(self, number: int, after: int, most: int) -> list[int]: ...
    def put_tokens(self, number: int, items: Iterable[tuple[int, bytes]]) -> None: ...
    def put_pools(self, number: int, pools: Iterable[PoolRow], seq: int) -> None: ...
    def all_vectors(self) -> Iterator[tuple[int, int, bytes]]: ...
    def all_tokens(self) -> Iterator[tuple[int, int, int]]: ...
    def all_pools(self) -> Iterator[tuple[int, int, PoolRow]]: ...


class Lookups(Protocol):
    """Nodes by keys of their names and contents: read anywhere, written inside `Store.derive`."""

    def reached(self) -> tuple[int, int]: ...
    def set_reached(self, node: int, note: int) -> None: ...
    def is_begun(self) -> bool: ...
    def moved(self) -> list[int]: ...
    def names(self, world: int) -> int: ...
    def add_names(self, names: Mapping[int, int]) -> None: ...
    def put(self, rows: Iterable[tuple[int, int]]) -> None: ...
    def find(self, keys: Sequence[int], most: int) -> dict[int, list[int]]: ...
    def count(self, key: int) -> int: ...
    def attributes(self, nodes: Sequence[int]) -> list[tuple[int, dict[str, str]]]: ...
    def attributes_after(self, note: int) -> list[tuple[int, dict[str, str]]]: ...


class Placed(Protocol):
    """What lies directly inside worlds, a page at a time, as of now."""

    def ended(self, rows: Iterable[int], at: int) -> set[int]: ...
    def holders(self, rows: Iterable[int]) -> set[int]: ...
    def latest(self, worlds: Iterable[int], before: int, now: int, most: int) -> list[int]: ...
    def typed(self, world: int, type_: str, start: str, after: int, most: int) -> list[int]: ...


class Texts(Protocol):
    """The full-text index; words come analysed."""

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]: ...
    def match(self, words: Sequence[str], most: int) -> list[tuple[int, float]]: ...
    def match_all(
        self, words: Sequence[str], phrase: bool, most: int
    ) -> list[tuple[int, float]]: ...
    def latest(self, words: Sequence[str], most: int) -> list[int]: ...
    def named(self, words: str) -> list[int]: ...
    def average_length(self) -> float: ...


class Scan(Protocol):
    """Whole tables in the order of their rows, for `check` and `export`."""

    def nodes(self, first: int = 0, last: int | None = None) -> Iterator[NodeScan]: ...
    def edges(self, first: int = 0, last: int | None = None) -> Iterator[EdgeScan]: ...
    def notes(
        self, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[int, int, str, str, int]]: ...
    def history(self) -> Iterator[tuple[str, int, int, Any]]: ...
    def pages(self) -> Iterator[tuple[int, int, str, int, bytes]]: ...
    def proposals(self) -> Iterator[tuple[Any, ...]]: ...
    def conflicts(self) -> Iterator[tuple[Any, ...]]: ...
    def registrations(self) -> Iterator[tuple[int, str, str, int, int]]: ...
    def premises(self) -> Iterator[tuple[int, int]]: ...
    def schema_problems(self) -> list[str]: ...
    def text_problems(self) -> list[str]: ...


class Reader(Protocol):
    """One snapshot. `known` is a commit number: the answer is as of that commit (None: now)."""

    @property
    def scan(self) -> Scan: ...
    @property
    def derived(self) -> Derived: ...
    @property
    def lookups(self) -> Lookups: ...
    @property
    def placed(self) -> Placed: ...
    @property
    def sweep(self) -> Sweep: ...
    @property
    def texts(self) -> Texts: ...
    @property
    def is_uncommitted(self) -> bool: ...
    def head(self) -> Head: ...
    def commit_at(self, time: int) -> int | None: ...
    def commits(self, after: int, limit: int | None, newest_first: bool) -> list[CommitRow]: ...
    def node_row(self, ident: bytes) -> int | None: ...
    def edge_row(self, ident: bytes) -> int | None: ...
    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]: ...
    def nodes(self, rows: Iterable[int], known: int | None = None) -> dict[int, Node]: ...
    def rows_named(self, names: Iterable[str]) -> list[int]: ...
    def world(self, row: int) -> World: ...
    def worlds(self, rows: Iterable[int]) -> dict[int, World]: ...
    def children(
        self, row: int, known: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[int]: ...
    def children_of(self, rows: Iterable[int]) -> list[int]: ...
    def parents(self, rows: Iterable[int], known: int | None = None) -> dict[int, int | None]: ...
    def bodies(self, rows: Iterable[int], known: int | None = None) -> Iterator[BodyRow]: ...
    def aliases(self, rows: Iterable[int], known: int | None = None) -> list[tuple[int, str]]: ...
    def rows_aliased(self, name: str) -> list[int]: ...
    def aliases_after(self, note: int) -> list[tuple[int, str]]: ...
    def closed_by(self, rows: Iterable[int], known: int | None = None) -> set[int]: ...
    def edges_at(
        self,
        rows: Iterable[int],
        direction: Direction,
        types: Iterable[str] | None = None,
        known: int | None = None,
    ) -> list[EdgeRow]: ...
    def edges(self, rows: Iterable[int], known: int | None = None) -> list[EdgeRow]: ...
    def edges_between(
        self, first: int, last: int, known: int | None = None, types: Iterable[str] | None = None
    ) -> list[EdgeRow]: ...
    def page(self, world: int, kind: int, path: str) -> tuple[bool, bytes] | None: ...
    def waiting(self) -> list[SetChange]: ...
    def proposals(
        self, status: str | None = None, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ProposalRow]: ...
    def has_proposals(self) -> bool: ...
    def conflicts(
        self, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ConflictRow]: ...
    def registrations(self) -> list[tuple[bytes, str, str, bool]]: ...


class Writer(Reader, Protocol):
    """The one write transaction: a reader of its own writes, and the raw inserts.

    Only the write room uses it; there is no other way to an edge row.
    """

    seq: int
    time: int

    def lookup(self, idents: Sequence[bytes]) -> dict[bytes, NodePlace]: ...
    def insert_nodes(self, rows: Iterable[Sequence[Any]]) -> None: ...
    def insert_texts(self, rows: Iterable[tuple[int, str, str]]) -> None: ...
    def insert_edges(self, rows: Iterable[Sequence[Any]]) -> None: ...
    def insert_notes(self, rows: Iterable[Sequence[Any]]) -> None: ...
    def insert_premises(self, rows: Iterable[tuple[int, int]]) -> None: ...
    def resting_on(self, edge: int) -> list[int]: ...
    def was_moved(self, row: int) -> bool: ...
    def has_note(self, node: int, kind: str, text: str) -> bool: ...
    def set_valid_to(self, kind: str, row: int, valid_to: int) -> None: ...
    def set_parent(self, row: int, parent: int) -> list[bytes]: ...
    def set_states(self, rows: Sequence[tuple[int, bytes | None, bytes]]) -> None: ...
    def delete_edge(self, row: int) -> None: ...
    def unseen(self) -> list[SetChange]: ...
    def put_pages(
        self, world: int, kind: int, pages: Mapping[str, tuple[int, bytes] | None]
    ) -> None: ...
    def keep_changes(self, changes: Sequence[SetChange]) -> None: ...
    def write_pages(self) -> None: ...
    def put_proposal(self, row: ProposalRow) -> None: ...
    def set_status(self, edge: int, status: str) -> None: ...
    def put_conflict(self, row: ConflictRow) -> None: ...
    def settle_conflict(self, edge: int) -> None: ...
    def put_registration(self, world: int, type_: str, version: str, functional: bool) -> None: ...
    @property
    def is_deferred(self) -> bool: ...
    def defer_indexes(self) -> None: ...
    def analyse_texts(self, pool: Executor) -> None: ...
    def build_indexes(self) -> None: ...
    def is_erased(self, row: int) -> bool: ...
    def born(self, row: int) -> int: ...
    def erase_nodes(self, rows: list[int]) -> set[int]: ...
    def erase_edges(self, rows: list[int]) -> list[tuple[int, bytes]]: ...
    def erase_staged(self, rows: list[int]) -> set[int]: ...
    def erase_derived(self, rows: list[int]) -> None: ...
    def insert_commit(self, row: CommitRow) -> None: ...


class Store(Protocol):
    """A file, a server, or memory."""

    path: str
    read_only: bool

    def read(self) -> AbstractContextManager[Reader]: ...
    def snapshot(self) -> AbstractContextManager[Reader]: ...
    def using(self) -> AbstractContextManager[None]: ...
    def translating(self) -> AbstractContextManager[None]: ...
    def write(self) -> AbstractContextManager[Writer]: ...
    def derive(self, patience_s: float | None = None) -> AbstractContextManager[Reader]: ...
    def mend(self) -> bool: ...
    def refuse_lost(self) -> None: ...
    def verify(self) -> list[str]: ...
    def clean(self) -> bool: ...
    def backup(self, path: str) -> None: ...
    def close(self) -> None: ...

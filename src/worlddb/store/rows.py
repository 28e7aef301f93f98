"""Rows: what a store returns and takes, with a name for every field.

A *row number* (`row`, `node`, `edge`, `world`, …) is the store's own handle: a small integer,
assigned in the order of writing, never shown to a user. A *sequence number* (`seq`, `born`, `gone`)
is a commit number. Times are microseconds UTC; an open end is None. Ids, states and hashes are 32
bytes.

The first rows, the root world and commit 0, are the same in every store (`root_node`,
`first_commit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from blake3 import blake3

from worlddb.model.address import (
    GENESIS,
    ROOT_ID,
    ROOT_NAME,
    ROOT_TYPE,
    commit_hash,
    node_record,
    short_key,
    state_digest,
)
from worlddb.model.records import Edge, ProposalStatus

ROOT_ROW = 1  # The row of the root world, the same in every store.
CHILDREN, EDGES = 0, 1  # The two sets of a world that have a digest.


# -- the journal -----------------------------------------------------------------------------------


class Head(NamedTuple):
    """The last commit, and the highest row of each table after it."""

    seq: int
    time: int
    hash: bytes
    root_state: bytes
    nodes: int
    edges: int
    notes: int


class ListedOnly(NamedTuple):
    """The conditions on a listing that the store itself can check: times and types.

    `at` is a valid time: with `begun`, nodes that begin later are left out, with `lasting` those
    that have ended by then. `known` is the commit whose parents count, None for the present.
    """

    at: int
    begun: bool
    lasting: bool
    known: int | None
    types: tuple[str, ...] | None


class NodeTraits(NamedTuple):
    """The immutable fields of a node for the columns of filters; `speaker` only of a turn."""

    row: int
    type: str
    valid_from: int
    speaker: str


class CommitRow(NamedTuple):
    """A commit: `nodes`, `edges`, `notes` are the highest rows after it; `changes` is JSON."""

    seq: int
    time: int
    actor: str
    root_state: bytes
    hash: bytes
    nodes: int
    edges: int
    notes: int
    changes: str
    blind: bytes = b""


class HistoryRow(NamedTuple):
    """The value of a field (`node.parent`, `edge.valid_to`, …) before commit `seq` changed it."""

    field: str
    row: int
    seq: int
    was: Any


# -- nodes -----------------------------------------------------------------------------------------


class NewNode(NamedTuple):
    """A node to insert.

    `key` is the start of its id as a number (`short_key` of `model.address`); `content_key` is its
    key in the content index, None if erased.
    """

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
    blind: bytes
    content_key: int | None


class NodeScan(NamedTuple):
    """A node exactly as stored; `state` is None while the node has no interior."""

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
    blind: bytes
    content_key: int | None


class BodyRow(NamedTuple):
    """The part of a node that search and name resolution read."""

    row: int
    id: bytes
    type: str
    parent: int | None
    name: str
    content: str
    valid_from: int
    valid_to: int | None


class World(NamedTuple):
    """The part of a node that its state is hashed from."""

    row: int
    id: bytes
    state: bytes | None
    type: str
    name: str
    content: str
    created_at: int
    parent: int | None
    blind: bytes = b""


class NodePlace(NamedTuple):
    """The row and the world of a node; when its validity begins, and its blind."""

    row: int
    world: int
    valid_from: int
    blind: bytes = b""


class StateChange(NamedTuple):
    """A world's new state and the one before it."""

    row: int
    before: bytes | None
    state: bytes


class NewText(NamedTuple):
    """The text of a node, to be indexed."""

    row: int
    name: str
    content: str


class NoteRow(NamedTuple):
    """An alias, source or metadata (JSON) of a node, by `kind`; an empty text was erased."""

    row: int
    node: int
    kind: str
    text: str
    born: int


class AliasRow(NamedTuple):
    """A further name of a node."""

    node: int
    alias: str


class AttributesRow(NamedTuple):
    """Attributes of a node as one note stated them."""

    node: int
    attributes: Mapping[str, str]


# -- edges and what handlers recorded --------------------------------------------------------------


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


class EdgeScan(NamedTuple):
    """An edge exactly as stored; `gone` is the commit that deleted it."""

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


class EdgeRow(NamedTuple):
    """An edge as the public value, with the rows that a traversal follows."""

    row: int
    source: int
    target: int
    world: int
    edge: Edge


class ErasedEdge(NamedTuple):
    """An edge whose metadata lost texts."""

    row: int
    id: bytes


class PremiseRow(NamedTuple):
    """An inferred edge, and one of the edges that it was inferred from."""

    premise: int
    edge: int


class ProposalRow(NamedTuple):
    """A proposed merge of the nodes `low` < `high`, made by the edge `edge`; evidence is JSON."""

    edge: int
    low: int
    high: int
    status: ProposalStatus
    tier: str
    score: float
    evidence: str


class ProposalScan(NamedTuple):
    """A proposal exactly as stored."""

    edge: int
    low: int
    high: int
    status: str
    tier: str
    score: float
    evidence: str
    born: int


class ConflictRow(NamedTuple):
    """A recorded conflict of the nodes `low` < `high`; `gone` is the commit that settled it."""

    edge: int
    low: int
    high: int
    reason: str
    gone: int | None


class ConflictScan(NamedTuple):
    """A conflict exactly as stored."""

    edge: int
    low: int
    high: int
    reason: str
    born: int
    gone: int | None


class RegistrationRow(NamedTuple):
    """A custom edge type of the world with the id `world`."""

    world: bytes
    type: str
    version: str
    functional: bool


class RegistrationScan(NamedTuple):
    """A custom edge type exactly as stored; `world` is a row."""

    world: int
    type: str
    version: str
    functional: int
    born: int


# -- digests of sets -------------------------------------------------------------------------------


class SetPage(NamedTuple):
    """One page of a set's tree: a fork has digests of pages below it, a leaf has members."""

    is_fork: bool
    body: bytes


class PageRow(NamedTuple):
    """A page exactly as stored; `kind` is CHILDREN or EDGES, `path` the nibbles that lead to it."""

    world: int
    kind: int
    path: str
    fork: int
    body: bytes


class SetChange(NamedTuple):
    """The members that a commit added to a set of a world, and the ids that it removed."""

    seq: int
    world: int
    kind: int
    put: list[bytes]
    drop: list[bytes]


# -- derived: text index, lookups, embeddings ------------------------------------------------------


class TextHit(NamedTuple):
    """A node with the words; a higher score is a better match."""

    row: int
    score: float


class LookupsReached(NamedTuple):
    """The last node and the last note that the lookup index has."""

    node: int
    note: int


class ModelRow(NamedTuple):
    """An embedding model of the store.

    Nodes up to row `embedded` have a vector; nodes up to `composed` count in the vectors of their
    worlds, as of commit `seq`.
    """

    number: int
    id: str
    dim: int
    active: int
    pooling: str
    embedded: int
    composed: int
    seq: int


class VectorRow(NamedTuple):
    """The vector of a node, or the vectors of its words one after the other."""

    node: int
    vector: bytes


class PoolRow(NamedTuple):
    """The running sums of a composed world, and the vector they give."""

    node: int
    children: int
    weight: float
    total: bytes
    vector: bytes


class StoredVector(NamedTuple):
    """A content vector with its model."""

    model: int
    node: int
    vector: bytes


class StoredTokens(NamedTuple):
    """The size in bytes of a node's word vectors under a model."""

    model: int
    node: int
    bytes: int


class StoredPool(NamedTuple):
    """A pool with its model and the commit it was composed at."""

    model: int
    seq: int
    pool: PoolRow


# -- whole worlds, for the consolidator ------------------------------------------------------------


class InsideRow(NamedTuple):
    """A node directly inside a world: it lives there, or is a member until `member_to`."""

    world: int
    row: int
    type: str
    has_content: int
    has_name: int
    has_interior: int
    born: int
    created_at: int
    valid_to: int | None
    is_member: int
    member_to: int | None


class CoverRow(NamedTuple):
    """An edge without its id, type and metadata."""

    row: int
    source: int
    target: int
    valid_from: int
    valid_to: int | None


class ReferenceRow(NamedTuple):
    """An edge as it is stored, without its type: `metadata` is JSON, times are numbers."""

    row: int
    id: bytes
    source: int
    target: int
    valid_from: int
    valid_to: int | None
    metadata: str


class ClaimEdge(NamedTuple):
    """The edge of a claim, and the times of the node that states it; without the values.

    `topic` is the place of its text among those that were searched. The texts are parts of its
    metadata: `since` and `told` begin with that value and go on, `stands_for` is the id of a node.
    """

    row: int
    source: int
    topic: int
    valid_from: int
    said: int
    ends: int | None
    since: str
    told: str
    stands_for: str


class CauseRow(NamedTuple):
    """An edge of a type that is read as a whole; `inferred` is its metadata if it is inferred."""

    row: int
    id: bytes
    source: int
    target: int
    world: int
    valid_from: int
    valid_to: int | None
    inferred: str | None
    gone: int | None


class RecallRow(NamedTuple):
    """The figures that a retention score is computed from."""

    row: int
    created_at: int
    recalls: int
    last: int | None
    links: int


class SummaryRow(NamedTuple):
    """A summary in a world, and when its validity ends."""

    world: int
    row: int
    valid_to: int | None


class WholeSummary(NamedTuple):
    """A summary of a whole world, and the source that encodes its depth."""

    world: int
    summary: int
    source: str


class SummaryEnd(NamedTuple):
    """A summary, and when its validity ends."""

    row: int
    valid_to: int | None


FIRST_ACTOR = "worlddb"
ROOT_TEXT = NewText(ROOT_ROW, ROOT_NAME, "")


def root_node() -> NewNode:
    """Return the row of the root world."""
    return NewNode(
        *(ROOT_ROW, short_key(ROOT_ID), ROOT_ID, ROOT_TYPE, ROOT_NAME, "", 0, None, 0, None),
        born=0,
        blind=b"",
        content_key=None,
    )


def first_commit() -> CommitRow:
    """Return the row of commit 0."""
    nothing = blake3().digest()
    digests = {
        "nodes": blake3(node_record(ROOT_ID, GENESIS, 0, None)).digest(),
        "edges": nothing,
        "notes": nothing,
        "states": state_digest(()),
    }
    hash_ = commit_hash(GENESIS, 0, 0, FIRST_ACTOR, ROOT_ID, digests, "[]")
    return CommitRow(0, 0, FIRST_ACTOR, ROOT_ID, hash_, ROOT_ROW, 0, 0, changes="[]")


KEPT_METADATA = ("inferred", "premises")


def without_texts(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that an edge keeps when an end is erased: ids that inference needs."""
    return {key: metadata[key] for key in KEPT_METADATA if key in metadata}

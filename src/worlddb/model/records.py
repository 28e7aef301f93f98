"""The values that go in and come out: nodes, edges, commits, and when a question is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from worlddb.model.address import Id
from worlddb.model.inputs import Instant

Direction = Literal["out", "in", "both"]
ProposalStatus = Literal["pending", "accepted", "rejected", "withdrawn"]


def _plain(value: Any) -> Any:
    if isinstance(value, Id):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.to_dict() if hasattr(value, "to_dict") else value


class Plain:
    """Gives a frozen value its JSON form: ids as hex, times as ISO-8601."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON data."""
        names: Sequence[str] = type(self).__dataclass_fields__  # type: ignore[attr-defined]
        return {name: _plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Plain):
    """A world as the store knows it at the asked time.

    `id` is its birth address and never changes; `state` is the address of its present interior. Of
    what was `erased` only the type, the validity and the id are left.
    """

    id: Id
    state: Id
    type: str
    name: str
    content: str
    created_at: datetime
    parent: Id | None
    valid_from: datetime
    valid_to: datetime | None
    known_from: datetime
    known_to: datetime | None = None
    aliases: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    erased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge(Plain):
    """A typed, directed edge with both clocks. `known_to` is set once it was deleted."""

    id: Id
    type: str
    source: Id
    target: Id
    valid_from: datetime
    valid_to: datetime | None
    known_from: datetime
    known_to: datetime | None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraft:
    """What `create_nodes` needs to make a node; the same words as `create_node`."""

    type: str
    name: str = ""
    content: str = ""
    parent: bytes | str | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    created_at: Instant | None = None
    source: str | Sequence[str] | None = None
    aliases: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDraft:
    """What `write_edges` needs to write an edge; the same words as `write_edge`."""

    source: bytes | str
    target: bytes | str
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """When a question is asked: what was true at `valid`, as far as was known at `known`.

    `None` means now on the known axis; on the valid axis it means "not ended by now".
    """

    valid: Instant | None = None
    known: Instant | None = None


NOW = AsOf()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Plain):
    """One recorded effect of a commit, beyond the nodes and edges it added."""

    kind: str
    id: Id
    detail: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Plain):
    """One transaction: who, when, what it changed, and the root's state after it.

    `nodes` and `edges` count what it added (read them with `diff`); `changes` lists the rest.
    `hash` covers all of it and `previous`, so one commit's hash vouches for the whole past.
    """

    seq: int
    time: datetime
    actor: str
    root_state: Id
    hash: Id
    previous: Id
    nodes: int
    edges: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff(Plain):
    """What happened between two commits: nodes and edges added, and every other change."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(Plain):
    """Two nodes that cannot both be right; both stay until somebody settles it."""

    edge: Id
    left: Id
    right: Id
    reason: str
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Plain):
    """A staged `same_as`: the engine believes two nodes are one, and asks."""

    edge: Id
    left: Id
    right: Id
    status: ProposalStatus
    tier: str
    score: float
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity(Plain):
    """Everything that was accepted as one: its nodes, all their names, and where they come from."""

    ids: tuple[Id, ...]
    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    provenance: tuple[str, ...]
    merges: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Plain):
    """Something `check` found wrong: where it is, and what does not fit."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def node_line(node: Node, against: Sequence[Id]) -> str:
    """Return a node as one line for a prompt."""
    since = node.valid_from.date().isoformat()
    until = f" to {node.valid_to.date().isoformat()}" if node.valid_to else ""
    text = (
        f"{node.name}: {node.content}" if node.name and node.content else node.name or node.content
    )
    text = " ".join(text.split())  # One node, one line, whatever its content pretends to be.
    conflict = (
        f" (contradicted by {', '.join(other.short for other in against)})" if against else ""
    )
    return f"[{since}{until}] {node.type} {node.id.short} {text}{conflict}"


# Query: a question as plain data, before it is planned and run.
#
# The upper half is what the caller asked. The lower half are switches that only edge handlers turn,
# in `on_query_rewrite`: a store whose ontology lacks a type does not get that type's behaviour.


TextMatch = Literal["any", "all", "phrase"]
OpKind = Literal["traverse", "filter_type", "filter_time", "where_connected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One step of the pipeline; which fields count depends on `kind`."""

    kind: OpKind
    types: tuple[str, ...] = ()
    direction: Direction = "out"
    hops: int = 1
    id: Id | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A start set, the steps over it, and how the ontology says to read it."""

    seeds: tuple[Id, ...] = ()
    text: str | None = None
    match: TextMatch = "any"
    vector: tuple[float, ...] | None = None
    ops: tuple[Op, ...] = ()
    world: Id | None = None
    as_of: AsOf = NOW
    include_superseded: bool = False
    prefer_summaries: bool = False
    limit: int | None = None

    hides_closed: bool = False
    widens_to_members: bool = False
    follows_classes: bool = False
    shows_conflicts: bool = False
    orders_by_time: bool = False
    pierces: frozenset[str] = frozenset()
    type_edges: frozenset[str] = frozenset()
    summary_edges: frozenset[str] = frozenset()

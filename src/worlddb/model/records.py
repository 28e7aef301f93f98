"""Records: the public values: nodes, edges, commits, a query as plain data, and drafts.

All are frozen. `to_dict` returns the JSON form of those that a caller gets.

A draft is what an extractor reads in a text, before names are resolved and anything is written. It
refers to its own nodes by `key`, which has no meaning outside it. Everything read from the text has
the spans it was read from. `Pending` and `Extracted` are for texts whose extraction waits; a
`Summarizer` takes the same messages as an `Extractor`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol

from worlddb.errors import InvalidInputError
from worlddb.model.address import Id
from worlddb.model.inputs import SCOPE, Instant, Plain, made_fast, said_by
from worlddb.model.text_safety import FULL, Origin, least_trusted, trust_level, visible

if TYPE_CHECKING:
    from worlddb.model.conditions import Condition

Direction = Literal["out", "in", "both"]
ProposalStatus = Literal["pending", "accepted", "rejected", "withdrawn"]
TextMatch = Literal["any", "all", "phrase"]
OpKind = Literal[
    "traverse",
    "filter_type",
    "filter_time",
    "where",
    "where_connected",
    "in_world",
    "as_of",
    "include_superseded",
    "prefer_summaries",
    "limit",
]


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Plain):
    """A world as of the requested time.

    `id` is its birth address and never changes; `state` is the address of its present interior. An
    `erased` node has only its id, type and validity. `actor` signed the commit that wrote it; empty
    until that commit. `origins` are who brought in the texts it rests on; empty if that was the
    user alone.
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
    actor: str = field(default="", compare=False)
    origins: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """The origin of the node; of several, the one furthest from the user."""
        return least_trusted(self.origins)


@made_fast
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


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraft:
    """A node to create with `create_nodes`; the same names as the arguments of `create_node`."""

    type: str
    name: str = ""
    content: str = ""
    parent: bytes | str | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    created_at: Instant | None = None
    source: str | Sequence[str] | None = None
    aliases: Sequence[str] = ()
    origins: Sequence[str] = ()


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDraft:
    """An edge to write with `write_edges`; the same names as the arguments of `write_edge`."""

    source: bytes | str
    target: bytes | str
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """The time of a question: what was true at `valid`, as far as was known at `known`.

    None means now for `known`; for `valid` it means "not ended by now".
    """

    valid: Instant | None = None
    known: Instant | None = None


NOW = AsOf()


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Plain):
    """One recorded effect of a commit, beyond the nodes and edges it added."""

    kind: str
    id: Id
    detail: Mapping[str, Any] = field(default_factory=dict, hash=False)


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Plain):
    """One transaction: who, when, what it changed, and the root's state after it.

    `nodes` and `edges` count what it added (read them with `diff`); `changes` lists the rest.
    `hash` covers all of it and `previous`, so the hash of one commit vouches for all commits before
    it.
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
    """What changed between two commits: nodes and edges added, other changes; `cut` if more."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    changes: tuple[Change, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Plain):
    """A branch of a store: its path, and the commit (`fork`, `hash`) that it was forked from.

    `size_bytes` is the disk space it uses; `id` distinguishes it from earlier branches of its name.
    """

    id: str
    name: str
    path: str
    fork: int
    hash: Id
    created_at: datetime
    actor: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches(Plain):
    """The branches of a store, by name."""

    branches: tuple[Branch, ...]

    def __iter__(self) -> Iterator[Branch]:
        return iter(self.branches)

    def __len__(self) -> int:
        return len(self.branches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(Plain):
    """Two nodes that cannot both be right; both stay until the conflict is settled."""

    edge: Id
    left: Id
    right: Id
    reason: str
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Plain):
    """A staged `same_as`: two nodes that may be one, for somebody to decide."""

    edge: Id
    left: Id
    right: Id
    status: ProposalStatus
    tier: str
    score: float
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity(Plain):
    """An accepted class: its nodes, all their names and sources, and the merges that made it."""

    ids: tuple[Id, ...]
    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    provenance: tuple[str, ...]
    merges: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Plain):
    """A problem that `check` found: its place, and a message."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


ORDERED = {"precedes": "after", "causes": "caused by"}
"""Edge types that order nodes, and the words for them at the target."""


def predecessor_notes(edges: Iterable[Edge]) -> dict[Id, list[str]]:
    """Return for each node the notes about nodes that precede or cause it."""
    told: dict[Id, list[str]] = {}
    for edge in edges:
        if edge.type in ORDERED:
            told.setdefault(edge.target, []).append(f"{ORDERED[edge.type]} {edge.source.short}")
    return told


def node_line(node: Node, against: Sequence[Id], order: Sequence[str] = ()) -> str:
    """Return a node as one line for a prompt, with its conflicts and its predecessors."""
    since = node.valid_from.date().isoformat()
    until = f" to {node.valid_to.date().isoformat()}" if node.valid_to else ""
    name = said_by(node.name) if node.type == "Turn" else node.name
    text = f"{name}: {node.content}" if name and node.content else name or node.content
    # One node, one line, whatever characters its content has.
    text = visible(" ".join(text.split())) + origin_note(node)
    conflict = (
        f" (contradicted by {', '.join(other.short for other in against)})" if against else ""
    )
    after = f" ({', '.join(order)})" if order else ""
    return f"[{since}{until}] {node.type} {node.id.short} {text}{after}{conflict}"


def origin_note(node: Node) -> str:
    """Return a note on the origin of a node, if that origin is not fully trusted by default."""
    return "" if trust_level(node.origins) == FULL else f" (from {node.origin})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One step of the pipeline; `kind` decides which fields are used."""

    kind: OpKind
    types: tuple[str, ...] = ()
    direction: Direction = "out"
    hops: int = 1
    id: Id | None = None
    start: Instant | None = None
    end: Instant | None = None
    where: Condition | None = None
    as_of: AsOf = NOW
    on: bool = True
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query before it runs: start set, steps and settings.

    `ops` are all steps. `world`, `as_of` and `include_superseded` are the settings at the present
    step: a query that enters another world is rewritten there again.

    The fields from `hides_ended` on are set only by edge handlers, in `on_query_rewrite`: a store
    without an edge type does not get the behaviour of that type.
    """

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

    hides_ended: bool = False
    widens_to_members: bool = False
    follows_classes: bool = False
    shows_conflicts: bool = False
    orders_by_time: bool = False
    pierces: frozenset[str] = frozenset()
    type_edges: frozenset[str] = frozenset()
    summary_edges: frozenset[str] = frozenset()


_QUERY_FIELDS = tuple(one.name for one in fields(Query))
_values_of = attrgetter(*_QUERY_FIELDS)


def with_fields(query: Query, **changes: Any) -> Query:
    """Return a query with other values, as `dataclasses.replace` does in twice the time."""
    return Query(**(dict(zip(_QUERY_FIELDS, _values_of(query), strict=True)) | changes))


def encode_changes(changes: Sequence[Change]) -> str:
    """Return changes as the JSON text that is stored and hashed."""
    if not changes:
        return "[]"
    rows = [[change.kind, str(change.id), change.detail] for change in changes]
    return json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def decode_changes(text: str) -> tuple[Change, ...]:
    """Return the changes from their JSON text."""
    if text == "[]":
        return ()
    return tuple(
        Change(kind=kind, id=Id(ident), detail=detail) for kind, ident, detail in json.loads(text)
    )


def has_erased(changes: str) -> bool:
    """Return whether a commit erased something, without parsing its changes."""
    return '["erase",' in changes


WHOLES = {"Session": "Turn", "Document": "Passage"}
"""Types of worlds that are one memory, and the types of the parts with its text."""
DOCUMENT = "document"
"""The speaker of a document: nobody, so "I" in a document is unknown."""
NOT_NAMED = frozenset({"World", SCOPE, "Session", "Turn", "Passage"})
"""Types whose name is a speaker, an owner or a heading, not the name of the node."""
NAME_CHARS_MAX = 120  # a longer name is a sentence; the resolver reads no more than 100 letters


# -- drafts ----------------------------------------------------------------------------------------

ATTRIBUTE = "attribute:"
"""Prefix of the metadata key of a node's attribute."""
RELATION_TYPES = ("contradicts", "causes", "precedes", "instance_of", "subtype_of", "implies")
"""The edge types that a text may state between two nodes. An edge that is refused is left out."""


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Plain):
    """A text by a speaker, with its time and the message's id, if known.

    `origin` is who brought the text in, for example a tool; None for the user.
    """

    text: str
    speaker: str = "user"
    at: datetime | None = None
    id: str | None = None
    origin: Origin | None = None


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Plain):
    """The evidence: characters `start` to `end` of a message's text."""

    message: int
    start: int
    end: int
    text: str


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class DraftNode(Plain):
    """A node to write. If it is `resolvable`, it may be a node that exists already.

    `attributes` (a birth date, a city) help to distinguish people with one name. They are kept in
    the node's metadata, as `attribute:city`, and compared when the name occurs again. A node that
    is `known_only` may not be a name at all: it counts only if the store has a node of exactly that
    name.
    """

    key: str
    type: str
    name: str = ""
    content: str = ""
    parent: str | None = None
    aliases: tuple[str, ...] = ()
    created_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    resolvable: bool = False
    known_only: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    spans: tuple[Span, ...] = ()


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEdge(Plain):
    """An edge between two nodes of the draft.

    It is valid from `valid_from` until `valid_to`. Without `valid_from` it begins when the text was
    said, also between entities that are older.
    """

    type: str
    source: str
    target: str
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    spans: tuple[Span, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@made_fast
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Plain):
    """Nodes and edges to write; `aliases` are more names of its nodes, by their keys.

    `left_out` lists the relations that the extractor was given and did not draft, with reasons.

    Raises:
        InvalidInputError: aliases of a node that is not in the draft.
    """

    nodes: tuple[DraftNode, ...] = ()
    edges: tuple[DraftEdge, ...] = ()
    aliases: Mapping[str, str | Sequence[str]] = field(default_factory=dict, hash=False)
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that aliases belong to nodes of this draft."""
        if not isinstance(self.aliases, Mapping):
            raise InvalidInputError(
                f"aliases: give a mapping from keys of nodes to names, not {self.aliases!r:.100}"
            )
        known = {node.key for node in self.nodes} if self.aliases else ()
        unknown = sorted(map(str, self.aliases.keys() - known)) if self.aliases else ()
        if unknown:
            raise InvalidInputError(
                f"aliases: no node of the draft has the key {unknown[0]!r:.100}; "
                "name the key of a DraftNode"
            )

    def merged(self) -> Draft:
        """Return the same draft with all aliases in their nodes."""
        if not self.aliases:
            return self
        return replace(self, nodes=tuple(map(self._with_aliases, self.nodes)), aliases={})

    def _with_aliases(self, node: DraftNode) -> DraftNode:
        more = self.aliases.get(node.key, ())
        names = (*node.aliases, *((more,) if isinstance(more, str) else more))
        return replace(node, aliases=tuple(dict.fromkeys(names)))


def to_metadata(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes as metadata; empty ones are left out."""
    return {
        f"{ATTRIBUTE}{name}": str(value) for name, value in attributes.items() if str(value).strip()
    }


def from_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes among a node's metadata."""
    return {
        name.removeprefix(ATTRIBUTE): str(value)
        for name, value in metadata.items()
        if name.startswith(ATTRIBUTE)
    }


class Extractor(Protocol):
    """Turns messages into a draft. It adds nothing that the text does not say."""

    name: str

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is the time of messages without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Plain):
    """A memory or session whose extraction waits: for which extractor, why, and since when."""

    id: Id
    extractor: str
    error: str
    attempts: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Plain):
    """The result of a run over the queue of pending extractions.

    It has what was `done`, what `failed` with the reason, and how many are `left`. Memories in
    `dropped` had been retired meanwhile. `left_out` lists the relations that were not written.
    """

    done: tuple[Id, ...] = ()
    failed: tuple[Pending, ...] = ()
    dropped: tuple[Id, ...] = ()
    left: int = 0
    left_out: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Summarizes messages in a few words. It never runs inside a transaction."""

    name: str

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of what was said in the world that `title` names."""

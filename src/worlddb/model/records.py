"""Records: the public values, and how the journal hashes them.

Nodes, edges, commits and scopes; drafts; a query as plain data. All are frozen. `to_dict` returns
the JSON form of those that a caller gets.

The journal chains commits by hash:

    commit = blake3( field("worlddb.commit.2") ‖ field(previous commit) ‖ field(int(seq))
                     ‖ field(int(time)) ‖ field(actor) ‖ field(root state)
                     ‖ field(nodes) ‖ field(edges) ‖ field(notes) ‖ field(states) ‖ field(changes)
                     ‖ field(blind) )

Not here: `field`, `int` and the addresses (`model/address.py`); all bytes of the hash are explained
in docs/concepts/format.md.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from blake3 import blake3

from worlddb.errors import InvalidInputError
from worlddb.model.address import Id, encode_field, node_address, pack_int
from worlddb.model.inputs import Instant, encode_text, from_micros
from worlddb.model.origin import FULL, least_trusted, trust_level
from worlddb.model.text_safety import visible

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

GENESIS = Id(bytes(32))
"""The hash that the first commit has as its predecessor."""
NO_INT = b"\0"
"""The encoding of an absent integer; precomputed, because most records have one."""
_COMMIT = encode_field(b"worlddb.commit.1")
_BLIND_COMMIT = encode_field(b"worlddb.commit.2")


_AS_THEY_ARE = frozenset((str, int, float, bool, type(None)))


def _plain(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
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
        found = {name: getattr(self, name) for name in names}
        for name, value in found.items():
            if type(value) not in _AS_THEY_ARE:  # Most fields need no conversion.
                found[name] = _plain(value)
        return found


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


def optional_int(value: int | None) -> bytes:
    """Return an integer that may be absent, in an unambiguous encoding."""
    return NO_INT if value is None else b"\1" + pack_int(value)


def node_record(ident: bytes, parent: bytes, valid_from: int, valid_to: int | None) -> bytes:
    """Return the birth record of a node: its parent and its first validity."""
    end = NO_INT if valid_to is None else optional_int(valid_to)
    return b"".join((ident, parent, pack_int(valid_from), end))


def edge_record(ident: bytes, valid_to: int | None) -> bytes:
    """Return the birth record of an edge; the rest of the edge is in its address."""
    return ident + (NO_INT if valid_to is None else optional_int(valid_to))


def note_record(node: bytes, kind: str, text: str) -> bytes:
    """Return the record of a note (alias, source, …) of a node."""
    return node + encode_field(kind.encode()) + encode_field(text.encode())


def state_digest(states: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the digest of the (id, new state) pairs of a commit."""
    hasher = blake3()
    for ident, state in sorted(states):
        hasher.update(ident + state)
    return hasher.digest()


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


def commit_hash(
    previous: bytes,
    seq: int,
    time: int,
    actor: str,
    root_state: bytes,
    digests: Mapping[str, Any],
    changes: str,
    blind: bytes = b"",
) -> bytes:
    """Return a commit's hash; `digests` has nodes, edges, notes and states."""
    parts = (
        previous,
        pack_int(seq),
        pack_int(time),
        actor.encode(),
        root_state,
        digests["nodes"],
        digests["edges"],
        digests["notes"],
        digests["states"],
        changes.encode(),
    )
    fields = b"".join(map(encode_field, (*parts, blind) if blind else parts))
    return blake3((_BLIND_COMMIT if blind else _COMMIT) + fields).digest()


# -- scopes ----------------------------------------------------------------------------------------

ScopeKind = Literal["user", "agent", "app", "run"]
KINDS: tuple[ScopeKind, ...] = ("user", "agent", "app", "run")
"""From the longest-lived to the shortest; a memory lives in the first kind that a call names."""
SCOPE = "Scope"
WHOLES = {"Session": "Turn", "Document": "Passage"}
"""Types of worlds that are one memory, and the types of the parts with its text."""
DOCUMENT = "document"
"""The speaker of a document: nobody, so "I" in a document is unknown."""
NOT_NAMED = frozenset({"World", SCOPE, "Session", "Turn", "Passage"})
"""Types whose name is a speaker, an owner or a heading, not the name of the node."""
NAME_CHARS_MAX = 120  # a longer name is a sentence; the resolver reads no more than 100 letters
VALUE_BYTES_MAX = 512
"""Bytes; longer than any id or address of a user. It becomes the name of a node."""
VALUES_MAX = 100
"""Scopes of one kind that a call may name; each costs a look-up."""

Ids = str | Sequence[str] | None


SCOPES_CACHED = 4_096
"""Scopes whose ids are cached: the callers of a busy server, at 200 bytes each."""


class ScopeIds(TypedDict, total=False):
    """The arguments that name scopes: one value of a kind, or several."""

    user_id: Ids
    agent_id: Ids
    app_id: Ids
    run_id: Ids


@dataclass(frozen=True, slots=True, order=True)
class ScopeName(Plain):
    """A scope: its kind and its value, written `user:ada`."""

    kind: ScopeKind
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"

    def ids(self) -> ScopeIds:
        """Return the argument that names only this scope."""
        ids: ScopeIds = {f"{self.kind}_id": self.value}  # type: ignore[misc]
        return ids

    def id(self, generation: int = 0) -> Id:
        """Return the id of this scope's node."""
        return scope_id(self, generation)


@lru_cache(maxsize=SCOPES_CACHED)
def scope_id(scope: ScopeName, generation: int = 0) -> Id:
    """Return the id of a scope's node."""
    return Id(node_address(SCOPE, str(scope).encode(), b"", generation))


Groups = tuple[tuple[ScopeName, ...], ...]
"""Scopes by kind. A memory must be inside one scope of every group."""


def born(generation: int) -> datetime:
    """Return the time of creation of the scopes of a generation."""
    return from_micros(generation)


def scope_named(name: str) -> ScopeName:
    """Return a scope from the name of its node."""
    kind, colon, value = name.partition(":") if isinstance(name, str) else ("", "", "")
    for scope_kind in KINDS:
        if kind == scope_kind and colon:
            return _scope(scope_kind, value)
    raise InvalidInputError(
        f"{name!r:.100} is not a scope; write it as user:ada, with one of {KINDS}"
    )


def groups_of(given: Mapping[str, Any]) -> Groups:
    """Return the scopes that `user_id=…, agent_id=…, app_id=…, run_id=…` name, by kind."""
    unknown = sorted(given.keys() - {f"{kind}_id" for kind in KINDS})
    if unknown:
        raise TypeError(
            f"unknown argument {unknown[0]!r}; name scopes by user_id, agent_id, app_id, run_id"
        )
    groups = []
    for kind in KINDS:
        values = given.get(f"{kind}_id")
        if values is None:
            continue
        listed = [values] if isinstance(values, str) else values
        if isinstance(listed, Mapping | bytes) or not isinstance(listed, Iterable):
            raise InvalidInputError(f"{kind}_id: give text or a list of texts, not {values!r:.100}")
        names = tuple(sorted({_scope(kind, value) for value in listed}))
        if not 0 < len(names) <= VALUES_MAX:
            raise InvalidInputError(f"{kind}_id: give 1 to {VALUES_MAX} values, or leave it out")
        groups.append(names)
    return tuple(groups)


def _scope(kind: ScopeKind, value: str) -> ScopeName:
    encode_text(value, f"{kind}_id", VALUE_BYTES_MAX)
    # Two spellings of one letter would make two users that look the same.
    value = unicodedata.normalize("NFC", value)
    if not value or value != value.strip():
        raise InvalidInputError(
            f"{kind}_id: {value!r:.100} is empty or has white space around it; give it without"
        )
    if not value.isprintable():
        raise InvalidInputError(f"{kind}_id: {value!r:.100} has control characters; remove them")
    return ScopeName(kind, value)


APP = "app"
_OF_APP = frozenset({"system", "developer"})


def said_by(speaker: str) -> str:
    """Return the speaker to store and show for a text.

    The roles of an app's own instructions are not speakers: a model that reads "system: …" among
    its memories may follow the text as an instruction.
    """
    # By its letters: "[System]:" and "sys\u200btem" look the same to a model.
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", speaker))
    return APP if "".join(letters).casefold() in _OF_APP else speaker

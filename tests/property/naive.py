"""Naive: what the engine promises, said once more in plain dicts, with no cleverness at all.

A `World` is everything that is known after one commit. It is copied whole before each commit, so
"as it was known then" is simply an older copy. Addresses and digests are worked out here from
their definition alone, again and again from nothing; nothing is shared with the engine but `Id`.

Errors are the engine's own classes, raised for the same reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from blake3 import blake3

from worlddb import (
    Conflict,
    ConflictError,
    Edge,
    Id,
    InvalidInputError,
    Node,
    NotFoundError,
    Proposal,
    RejectedError,
)
from worlddb.model.records import ProposalStatus

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(micros: int) -> datetime:
    """Return microseconds since 1970 as a datetime."""
    return EPOCH + timedelta(microseconds=micros)


def maybe_at(micros: int | None) -> datetime | None:
    """Return an optional instant."""
    return None if micros is None else at(micros)


# -- addresses, from their definition --------------------------------------------------------------


def _field(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _int(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def _hash(*fields: bytes) -> Id:
    return Id(blake3(b"".join(map(_field, fields))).digest())


def naive_digest(members: Iterable[bytes], depth: int = 0) -> bytes:
    """Return the digest of a set of members, by its definition."""
    found = sorted(set(members))
    if len(found) <= 64:
        width = len(found[0]) if found else 0
        head = _field(b"worlddb.bucket.1") + width.to_bytes(4, "big")
        return blake3(head + b"".join(found)).digest()
    parts = [
        naive_digest([member for member in found if member.hex()[depth] == digit], depth + 1)
        for digit in "0123456789abcdef"
    ]
    return blake3(_field(b"worlddb.fork.1") + b"".join(parts)).digest()


def naive_node_address(
    type_: str,
    name: str,
    content: str,
    created_at: int,
    children: Iterable[bytes] = (),
    edges: Iterable[bytes] = (),
    blind: bytes = b"",
) -> Id:
    """Return the address of a node over an interior; of a node without a blind as in format 1."""
    return _hash(
        b"worlddb.node.2" if blind else b"worlddb.node.1",
        type_.encode(),
        name.encode(),
        content.encode(),
        naive_digest(children),
        naive_digest(edges),
        _int(created_at),
        *([blind] if blind else []),
    )


def naive_edge_address(
    type_: str,
    source: bytes,
    target: bytes,
    valid_from: int,
    metadata: str,
    generation: int,
    blind: bytes = b"",
) -> Id:
    """Return the address of an edge; `blind` are the blinds of both ends if it has metadata."""
    return _hash(
        b"worlddb.edge.2" if blind else b"worlddb.edge.1",
        type_.encode(),
        source,
        target,
        _int(valid_from),
        metadata.encode(),
        _int(generation),
        *([blind] if blind else []),
    )


ROOT = naive_node_address("World", "root", "", 0)

ACYCLIC = ("implies", "derived_from", "subtype_of", "causes", "precedes")
DECISIONS: dict[ProposalStatus, tuple[ProposalStatus, ...]] = {
    "pending": ("accepted", "rejected"),
    "accepted": ("pending",),
    "rejected": (),
    "withdrawn": (),
}


# -- rows ------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class NaiveNode:
    """A node and everything that may change about it."""

    id: Id
    type: str
    name: str
    content: str
    created_at: int
    parent: Id | None
    valid_from: int
    valid_to: int | None
    known_from: int
    blind: bytes = b""
    born_in: Id | None = None
    aliases: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class NaiveEdge:
    """An edge; `gone` once it was deleted."""

    id: Id
    type: str
    source: Id
    target: Id
    valid_from: int
    valid_to: int | None
    known_from: int
    metadata: dict[str, Any]
    gone: bool = False


@dataclass(kw_only=True)
class World:
    """Everything that is known after one commit, in the order of writing."""

    time: int = 0
    nodes: dict[Id, NaiveNode] = field(default_factory=dict)
    edges: dict[Id, NaiveEdge] = field(default_factory=dict)
    proposals: dict[Id, Proposal] = field(default_factory=dict)
    conflicts: dict[Id, Conflict] = field(default_factory=dict)
    placed: set[Id] = field(default_factory=set)
    """The nodes that a `contains` took out of the root world; the others live where born."""
    effects: int = 0
    """How much the open transaction has done; nothing means no commit."""

    @classmethod
    def empty(cls) -> World:
        """Return the world of a new store: the root and nothing in it."""
        root = NaiveNode(
            id=ROOT,
            type="World",
            name="root",
            content="",
            created_at=0,
            parent=None,
            valid_from=0,
            valid_to=None,
            known_from=0,
        )
        return cls(nodes={ROOT: root})

    def begin(self, clock: int) -> World:
        """Return a copy to be changed by a transaction that begins when the clock shows `clock`."""
        draft = deepcopy(self)
        draft.time = max(clock, self.time + 1)
        draft.effects = 0
        return draft

    # -- nodes -------------------------------------------------------------------------------------

    def create(
        self,
        type_: str,
        name: str,
        content: str,
        *,
        blind: bytes,
        parent: Id | None = None,
        created_at: int | None = None,
        valid_from: int | None = None,
        valid_to: int | None = None,
        aliases: tuple[str, ...] = (),
        sources: tuple[str, ...] = (),
    ) -> Id:
        """Create a node; a live one of the same fields, time and world is the same node."""
        born = self.time if created_at is None else created_at
        starts = born if valid_from is None else valid_from
        if valid_to is not None and valid_to < starts:
            raise InvalidInputError("ends before it begins")
        ident = naive_node_address(type_, name, content, born, blind=blind)
        twins = [
            node.id
            for node in self.nodes.values()
            if (node.type, node.name, node.content, node.created_at) == (type_, name, content, born)
            and (node.born_in == ROOT if parent is None else node.parent == parent)
            and (node.valid_to is None or node.valid_to > self.time or node.valid_to == valid_to)
        ]
        if created_at is not None and twins:
            ident = twins[-1]
        else:
            self.nodes[ident] = NaiveNode(
                id=ident,
                type=type_,
                name=name,
                content=content,
                created_at=born,
                blind=blind,
                parent=parent or ROOT,
                born_in=parent or ROOT,
                valid_from=born if valid_from is None else valid_from,
                valid_to=valid_to,
                known_from=self.time,
            )
            self.effects += 1
        self.note(ident, aliases, sources)
        return ident

    def note(self, ident: Id, aliases: tuple[str, ...], sources: tuple[str, ...]) -> None:
        """Add aliases and sources that the node has not yet."""
        node = self.nodes[ident]
        for have, new in ((node.aliases, aliases), (node.sources, sources)):
            for text in new:
                if text not in have:
                    have.append(text)
                    self.effects += 1

    def close(self, thing: NaiveNode | NaiveEdge, moment: int) -> None:
        """End a validity; it only tightens."""
        if thing.valid_to is None or moment < thing.valid_to:
            thing.valid_to = moment
            self.effects += 1

    def retire(self, ident: Id, moment: int | None) -> None:
        """End a node, by default now."""
        self.close(self.nodes[ident], self.time if moment is None else moment)

    # -- edges -------------------------------------------------------------------------------------

    def write(
        self,
        type_: str,
        source: Id,
        target: Id,
        *,
        valid_from: int | None = None,
        valid_to: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Id:
        """Write an edge and do what its type says."""
        starts = self.nodes[source].valid_from if valid_from is None else valid_from
        if valid_to is not None and valid_to < starts:
            raise InvalidInputError("ends before it begins")
        metadata = metadata or {}
        text = json.dumps(metadata, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        generation = 0
        said = type_, source, target, starts, text
        blind = self.nodes[source].blind + self.nodes[target].blind if metadata else b""
        ident = naive_edge_address(*said, generation, blind)
        while ident in self.edges:
            if not self.edges[ident].gone:
                return ident
            generation += 1
            ident = naive_edge_address(*said, generation, blind)
        edge = NaiveEdge(
            id=ident,
            type=type_,
            source=source,
            target=target,
            valid_from=starts,
            valid_to=valid_to,
            known_from=self.time,
            metadata=metadata,
        )
        self._refuse(edge)
        self.edges[ident] = edge
        self.effects += 1
        self._follow(edge)
        return ident

    def _refuse(self, edge: NaiveEdge) -> None:
        """Raise if the edge may not be."""
        circular = edge.source == edge.target
        if edge.type in ("supersedes", *ACYCLIC):
            circular = circular or self._reaches(edge.target, edge.source, edge.type)
        if edge.type == "contains":
            circular = edge.source == edge.target or edge.target in self._holders(edge.source)
        if edge.type in ("refers_to", "renews"):
            circular = False
        if circular:
            raise RejectedError("circular")
        if edge.type in ("causes", "precedes"):
            ends = self.nodes[edge.source], self.nodes[edge.target]
            if ends[1].valid_from < ends[0].valid_from:
                raise RejectedError("before its cause")

    def _reaches(self, start: Id, goal: Id, type_: str) -> bool:
        seen = {start}
        while True:
            below = {e.target for e in self.live((type_,)) if e.source in seen}
            if below <= seen:
                return goal in seen
            seen |= below

    def _holders(self, ident: Id) -> set[Id]:
        """Return every world that holds a node, as parent or by membership, all the way up."""
        seen: set[Id] = set()
        frontier = {ident}
        while frontier:
            above = {e.source for e in self.live(("contains",)) if e.target in frontier}
            for row in frontier:
                parent = self.nodes[row].parent
                above |= set() if parent is None else {parent}
            frontier = above - seen
            seen |= above
        return seen

    def _follow(self, edge: NaiveEdge) -> None:
        """Do what an edge that was just written means for the others."""
        if edge.type == "supersedes":
            ended = {edge.target}
            while ended:
                for ident in ended:
                    self.close(self.nodes[ident], edge.valid_from)
                ended = {node.id for node in self.nodes.values() if node.parent in ended}
        elif edge.type == "derived_from":
            detail = self.nodes[edge.target]
            if detail.type != "Summary":
                self.note(edge.source, (), tuple(detail.sources))
        elif edge.type == "contains":
            is_free = self.nodes[edge.target].parent == ROOT and edge.source != ROOT
            if is_free and self._is_home(edge, edge.target):
                self.nodes[edge.target].parent = edge.source
                self.placed.add(edge.target)
        elif edge.type == "contradicts":
            self.conflicts[edge.id] = Conflict(
                edge=edge.id,
                left=edge.source,
                right=edge.target,
                reason=str(edge.metadata.get("reason", "")),
                settled=False,
            )
        elif edge.type == "same_as":
            self._propose(edge)
        elif edge.type == "renews":
            for other in self.live(("renews",)):
                if other.source == edge.source and other.id != edge.id:
                    self.close(other, edge.valid_from)

    def _is_home(self, edge: NaiveEdge, node: Id) -> bool:
        """Return whether an edge says where a node lives: it holds now, without an end."""
        return edge.target == node and edge.valid_to is None and edge.valid_from <= self.time

    def _propose(self, edge: NaiveEdge) -> None:
        evidence = dict(edge.metadata)
        tier = str(evidence.pop("tier", "given"))
        score = float(evidence.pop("score", 1.0))
        for old in reversed(self._proposals_of(edge)):
            if old.status == "withdrawn":
                continue
            if old.status != "rejected" or (old.tier, old.evidence) == (tier, evidence):
                return
        self.proposals[edge.id] = Proposal(
            edge=edge.id,
            left=edge.source,
            right=edge.target,
            status="pending",
            tier=tier,
            score=score,
            evidence=evidence,
        )

    def _proposals_of(self, edge: NaiveEdge) -> list[Proposal]:
        """Return the proposals of an edge's unordered pair, oldest first."""
        pair = {edge.source, edge.target}
        return [item for item in self.proposals.values() if {item.left, item.right} == pair]

    def delete(self, ident: Id) -> None:
        """Delete an edge and do what its type says about that."""
        edge = self.edges[ident]
        if edge.gone:
            raise NotFoundError("deleted already")
        edge.gone = True
        self.effects += 1
        if edge.type == "contains" and edge.target in self.placed:
            held = {e.source for e in self.live(("contains",)) if self._is_home(e, edge.target)}
            # It lives where it was put for as long as any edge says so.
            if self.nodes[edge.target].parent == edge.source and edge.source not in held:
                self.placed.discard(edge.target)
                self.nodes[edge.target].parent = ROOT
        elif edge.type == "contradicts":
            conflict = self.conflicts[ident]
            self.conflicts[ident] = _with(conflict, settled=True)
        elif edge.type == "same_as" and ident in self.proposals:
            if self.proposals[ident].status in ("pending", "accepted"):
                self.proposals[ident] = _with(self.proposals[ident], status="withdrawn")
                pair = {edge.source, edge.target}
                for other in self.live(("same_as",)):
                    if {other.source, other.target} == pair:
                        self._propose(other)
                        break

    def decide(self, ident: Id, status: ProposalStatus) -> None:
        """Accept, reject or reopen the proposal an edge staged, or else the newest of its pair."""
        edge = self.edges[ident]
        near = self._proposals_of(edge) if edge.type == "same_as" else []
        staged = self.proposals.get(ident) or next(reversed(near), None)
        if staged is None:
            raise NotFoundError("no proposal")
        if staged.status == status and status != "pending":
            return
        if status not in DECISIONS[staged.status]:
            raise ConflictError("decided already")
        self.proposals[staged.edge] = _with(staged, status=status)
        self.effects += 1

    # -- reading -----------------------------------------------------------------------------------

    def live(self, types: Iterable[str] | None = None) -> list[NaiveEdge]:
        """Return the edges that are not deleted."""
        wanted = None if types is None else set(types)
        return [
            edge
            for edge in self.edges.values()
            if not edge.gone and (wanted is None or edge.type in wanted)
        ]

    def validities(self) -> dict[Id, tuple[int, int | None]]:
        """Return when each node and each edge begins and ends."""
        found = {node.id: (node.valid_from, node.valid_to) for node in self.nodes.values()}
        return found | {edge.id: (edge.valid_from, edge.valid_to) for edge in self.edges.values()}

    def states(self) -> dict[Id, Id]:
        """Return every node's state, hashed from its whole interior, children first."""
        children: dict[Id | None, list[Id]] = {}
        for node in self.nodes.values():
            children.setdefault(node.parent, []).append(node.id)
        interior: dict[Id, list[Id]] = {}
        for edge in self.live():
            interior.setdefault(self.nodes[edge.source].parent or ROOT, []).append(edge.id)
        states: dict[Id, Id] = {}

        def state(ident: Id) -> Id:
            node = self.nodes[ident]
            states[ident] = naive_node_address(
                node.type,
                node.name,
                node.content,
                node.created_at,
                [child + state(child) for child in children.get(ident, ())],
                interior.get(ident, ()),
                node.blind,
            )
            return states[ident]

        state(ROOT)
        return states

    def node_values(self) -> dict[Id, Node]:
        """Return every node as the public value the engine has to return."""
        states = self.states()
        return {
            node.id: Node(
                id=node.id,
                state=states[node.id],
                type=node.type,
                name=node.name,
                content=node.content,
                created_at=at(node.created_at),
                parent=node.parent,
                valid_from=at(node.valid_from),
                valid_to=maybe_at(node.valid_to),
                known_from=at(node.known_from),
                aliases=tuple(node.aliases),
                provenance=tuple(node.sources),
            )
            for node in self.nodes.values()
        }

    def edge_values(self) -> dict[Id, Edge]:
        """Return every edge that is not deleted as the public value."""
        return {
            edge.id: Edge(
                id=edge.id,
                type=edge.type,
                source=edge.source,
                target=edge.target,
                valid_from=at(edge.valid_from),
                valid_to=maybe_at(edge.valid_to),
                known_from=at(edge.known_from),
                known_to=None,
                metadata=edge.metadata,
            )
            for edge in self.live()
        }

    def same_as(self, idents: Iterable[Id], inside: set[Id] | None = None) -> set[Id]:
        """Return `idents` and all accepted as the same, transitively, by way of `inside`."""
        seen = set(idents)
        while True:
            more = {
                end
                for item in self.proposals.values()
                if item.status == "accepted" and {item.left, item.right} & seen
                for end in (item.left, item.right)
                if inside is None or end in inside
            }
            if more <= seen:
                return seen
            seen |= more


def _with(value: Any, **changes: Any) -> Any:
    """Return a frozen value with some fields changed."""
    names = type(value).__dataclass_fields__
    return type(value)(**{**{name: getattr(value, name) for name in names}, **changes})

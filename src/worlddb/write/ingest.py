"""Ingest: from a draft and its verdicts to nodes and edges, inside one transaction.

An exact match of the same type in the same world is the node itself: it is used again. Any other
match is a guess: the drafted node is written, and a `same_as` edge proposes the merge with its
evidence. Nothing is ever merged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from worlddb.errors import ConflictError
from worlddb.model.drafts import Draft, DraftNode, to_metadata
from worlddb.model.id import Id
from worlddb.model.values import Node
from worlddb.write.transaction import Transaction

NUDGES_MAX = 1_000
NUDGE = timedelta(milliseconds=10)
"""More than the microseconds by which an extractor keeps equal turns of one chat apart."""
LATEST = datetime.max.replace(tzinfo=UTC) - NUDGES_MAX * NUDGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A node that a drafted one may be the same as, and why."""

    id: Id
    tier: str
    score: float
    evidence: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the drafted nodes, by their keys."""

    ids: dict[str, Id] = field(default_factory=dict)
    created: list[Id] = field(default_factory=list)
    reused: list[Id] = field(default_factory=list)
    proposed: list[Id] = field(default_factory=list)


def write_draft(
    tx: Transaction,
    draft: Draft,
    *,
    world: Id,
    known: Mapping[str, Id],
    guesses: Mapping[str, Sequence[Guess]],
    source: str | Sequence[str] | None,
    places: Mapping[str, Id] = MappingProxyType({}),
) -> Outcome:
    """Write a draft into `world`; `known` are the drafted nodes that are there already.

    `places` are worlds that the draft does not make, by the keys it calls them.
    """
    outcome = Outcome(ids=dict(places))
    for node in draft.nodes:
        if node.key in known:
            _use_again(tx, node, known[node.key], outcome, source)
        else:
            _create(tx, node, world, outcome, source)
    for node in draft.nodes:
        for guess in guesses.get(node.key, ()):
            propose(tx, outcome.ids[node.key], guess, outcome)
    for edge in draft.edges:
        ends = outcome.ids[edge.source], outcome.ids[edge.target]
        if ends[0] != ends[1]:
            tx.write_edge(edge.type, *ends, metadata=edge.metadata)
    return outcome


def propose(tx: Transaction, ident: Id, guess: Guess, outcome: Outcome) -> None:
    """Propose that two nodes are the same."""
    evidence = {"tier": guess.tier, "score": guess.score, **guess.evidence}
    edge = tx.write_edge("same_as", ident, guess.id, metadata=evidence)
    outcome.proposed.append(edge.id)


def _use_again(
    tx: Transaction,
    node: DraftNode,
    ident: Id,
    outcome: Outcome,
    source: str | Sequence[str] | None,
) -> None:
    outcome.ids[node.key] = ident
    outcome.reused.append(ident)
    if node.aliases:
        tx.add_aliases(ident, node.aliases)
    if source is not None:
        tx.add_source(ident, source)
    _keep_attributes(tx, node, ident)


def _create(
    tx: Transaction,
    node: DraftNode,
    world: Id,
    outcome: Outcome,
    source: str | Sequence[str] | None,
) -> None:
    parent = world if node.parent is None else outcome.ids[node.parent]
    found = made(tx, node, parent, source)
    outcome.ids[node.key] = found.id
    # What has ended is not looked for, but of the same time it is the same node all the same.
    (outcome.created if found.known_from == tx.now else outcome.reused).append(found.id)
    _keep_attributes(tx, node, found.id)


def _keep_attributes(tx: Transaction, node: DraftNode, ident: Id) -> None:
    if kept := to_metadata(node.attributes):
        tx.add_metadata(ident, kept)


def made(tx: Transaction, node: DraftNode, parent: Id, source: str | Sequence[str] | None) -> Node:
    """Create a node, a little later if another world has the very same one."""
    created_at = node.created_at
    step = -NUDGE if created_at is not None and created_at > LATEST else NUDGE
    for _ in range(NUDGES_MAX):
        try:
            return tx.create_node(
                type=node.type,
                name=node.name,
                content=node.content,
                parent=parent,
                aliases=node.aliases,
                created_at=created_at,
                valid_from=node.valid_from,
                valid_to=node.valid_to,
                source=source,
            )
        except ConflictError:
            if created_at is None:
                raise
            created_at += step
    raise ConflictError(f"{node.type} {node.name!r:.60}: exists {NUDGES_MAX} times in other worlds")

"""Apply: carry out the plan of one write, inside one transaction, from top to bottom.

An exact match of the same type in the same world is the node itself, which is used again. Any other
match is a guess: the drafted node is written, and a `same_as` edge proposes the merge with its
evidence. Nothing is merged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from worlddb.claims.claim import CLAIM_EDGE, FACT, Standing
from worlddb.claims.supersession import Supersession, supersessions
from worlddb.errors import ConflictError
from worlddb.index.name_index import NameIndex
from worlddb.ingest.extraction_queue import put_into_queue, remove_from_queue
from worlddb.ingest.plan import Guess, Plan
from worlddb.model.address import Id
from worlddb.model.drafts import DraftNode, to_metadata
from worlddb.model.records import Node
from worlddb.model.scopes import SCOPE, born
from worlddb.write.transaction import Transaction

EVIDENCE_CHARS_MAX = 1_000  # Enough for the sentence that says so; metadata is not for whole texts.
NUDGES_MAX = 1_000  # After that many equal nodes of one time the caller gets an error.
NUDGE = timedelta(milliseconds=10)
"""More than the microseconds by which an extractor keeps equal turns of one chat apart."""
LATEST = datetime.max.replace(tzinfo=UTC) - NUDGES_MAX * NUDGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the drafted nodes, by their keys."""

    ids: dict[str, Id] = field(default_factory=dict)
    created: list[Id] = field(default_factory=list)
    reused: list[Id] = field(default_factory=list)
    proposed: list[Id] = field(default_factory=list)


def apply(tx: Transaction, plan: Plan, names: NameIndex) -> Outcome:
    """Carry out a plan; the order of the steps is the order of this function."""
    request, target, draft = plan.request, plan.target, plan.request.draft
    outcome = Outcome(ids=dict(target.anchors))
    if target.written is not None:
        return outcome  # The same idempotency key was used before: nothing is written.
    if request.queue_edges:
        remove_from_queue(tx, request.queue_edges)
    for scope, generation in target.scopes.items():
        tx.create_node(type=SCOPE, name=str(scope), created_at=born(generation))
    _write_nodes(tx, plan, outcome)
    for node in draft.nodes:
        for guess in plan.guesses.get(node.key, ()):
            propose(tx, outcome.ids[node.key], guess, outcome)
    for edge in draft.edges:
        ends = outcome.ids[edge.source], outcome.ids[edge.target]
        if ends[0] != ends[1]:
            tx.write_edge(edge.type, *ends, metadata=edge.metadata)
    for ended in _superseded(plan, outcome):
        _end(tx, ended)
    _join(tx, plan, outcome)
    memory = outcome.ids.get(request.memory)
    if memory is not None:
        if request.metadata:
            tx.add_metadata(memory, request.metadata)
        if request.replaces is not None:
            tx.write_edge("supersedes", memory, request.replaces)
        if target.key is not None:
            target.key.write(tx, memory)
        if request.waiting is not None:
            put_into_queue(tx, memory, request.waiting)
    tx.derive(names.take_in)
    return outcome


def _write_nodes(tx: Transaction, plan: Plan, outcome: Outcome) -> None:
    """Write the drafted nodes that are new; add sources and aliases to the others."""
    source = plan.request.source
    for node in plan.request.draft.nodes:
        if node.key in plan.known:
            ident = outcome.ids[node.key] = plan.known[node.key]
            outcome.reused.append(ident)
            if node.aliases:
                tx.add_aliases(ident, node.aliases)
            if source is not None:
                tx.add_source(ident, source)
        else:
            parent = plan.target.home if node.parent is None else outcome.ids[node.parent]
            found = create_distinct(tx, node, parent, source)
            ident = outcome.ids[node.key] = found.id
            # A node that has ended is not looked for; with the same time it is the same node.
            (outcome.created if found.known_from == tx.now else outcome.reused).append(ident)
        if kept := to_metadata(node.attributes):
            tx.add_metadata(ident, kept)


def _join(tx: Transaction, plan: Plan, outcome: Outcome) -> None:
    """Make the memory, and the names it mentions, members of further worlds."""
    target, nodes = plan.target, plan.request.draft.nodes
    for world in target.memberships:
        tx.write_edge("contains", world, outcome.ids[plan.request.memory])
    for world in target.name_worlds:
        for node in nodes:
            if node.parent is None and node.key != plan.request.memory:
                tx.write_edge("contains", world, outcome.ids[node.key])


def _superseded(plan: Plan, outcome: Outcome) -> list[Supersession]:
    """Return what the claims of the draft end, now that its nodes have ids."""
    if not plan.claims:
        return []
    return supersessions(
        plan.claims,
        plan.standing,
        nodes={node.key: node for node in plan.request.draft.nodes},
        ids=outcome.ids,
        home=plan.target.home,
        now=plan.moment.now,
        spared=plan.request.replaces,
    )


def propose(tx: Transaction, ident: Id, guess: Guess, outcome: Outcome) -> None:
    """Propose that two nodes are the same."""
    evidence = {"tier": guess.tier, "score": guess.score, **guess.evidence}
    edge = tx.write_edge("same_as", ident, guess.id, metadata=evidence)
    outcome.proposed.append(edge.id)


def create_distinct(
    tx: Transaction, node: DraftNode, parent: Id, source: str | Sequence[str] | None
) -> Node:
    """Create a node; a little later in time if another world has the very same node."""
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


def _end(tx: Transaction, ended: Supersession) -> None:
    """Write that a claim is superseded by another."""
    old, by = ended.old, ended.by
    target = _separate_fact(tx, old) if old.apart else old.carrier
    said: dict[str, Any] = {"relation": by.relation, "was": old.value or f"not {old.was}"}
    if by.value:
        said["now"] = by.value
    said["evidence"] = ended.evidence[:EVIDENCE_CHARS_MAX]
    tx.write_edge("supersedes", by.carrier, target, valid_from=ended.at, metadata=said)


def _separate_fact(tx: Transaction, old: Standing) -> Id:
    """Make a fact of the sentence that states a claim in a longer text; return its id."""
    drafted = DraftNode(
        key="", type=FACT, content=old.text, created_at=old.said, valid_from=old.began
    )
    fact = create_distinct(tx, drafted, old.world, None).id
    said: dict[str, Any] = {"relation": old.relation, "functional": True}
    said |= {"value": old.value} if old.value else {}
    said |= {"was": old.was} if old.was else {}
    tx.write_edge("derived_from", fact, old.carrier, metadata={"evidence": "quote"})
    tx.write_edge(CLAIM_EDGE, fact, old.subject, metadata={**said, "stands_for": str(old.carrier)})
    for world in old.members:
        tx.write_edge("contains", world, fact)
    return fact

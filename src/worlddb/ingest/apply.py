"""Apply: carry out the plan of one write, inside one transaction, from top to bottom.

An exact match of the same type in the same world is the node itself, which is used again. Any other
match is a guess: the drafted node is written, and a `same_as` edge proposes the merge with its
evidence. Nothing is merged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from worlddb.claims.claim import CLAIM_EDGE, FACT, Standing
from worlddb.claims.supersession import Supersession, supersessions
from worlddb.errors import ConflictError, InvalidInputError
from worlddb.index.name_index import NameIndex
from worlddb.ingest.extraction_queue import put_into_queue, remove_from_queue
from worlddb.ingest.plan import Guess, Plan
from worlddb.model.address import Id
from worlddb.model.drafts import DraftNode, to_metadata
from worlddb.model.records import EdgeDraft, NodeDraft
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
    for type_, edges in groupby(draft.edges, key=lambda edge: edge.type):
        ends = ((outcome.ids[edge.source], outcome.ids[edge.target], edge) for edge in edges)
        tx.write_edges(
            type_,
            [
                EdgeDraft(source=source, target=target, metadata=edge.metadata)
                for source, target, edge in ends
                if source != target
            ],
        )
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
    source, nodes = plan.request.source, plan.request.draft.nodes
    outcome.ids.update((node.key, plan.known[node.key]) for node in nodes if node.key in plan.known)
    left = [node for node in nodes if node.key not in plan.known]
    while left:
        # A node is written before the nodes inside it.
        batch = [node for node in left if node.parent is None or node.parent in outcome.ids]
        if not batch:
            raise InvalidInputError(
                f"draft: node {left[0].key!r:.60} has the parent {left[0].parent!r:.60}, which the "
                "draft does not have"
            )
        worlds = [
            plan.target.home if node.parent is None else outcome.ids[node.parent] for node in batch
        ]
        ids = _create_nodes(tx, batch, worlds, source)
        outcome.ids.update((node.key, ident) for node, ident in zip(batch, ids, strict=True))
        left = [node for node in left if node.key not in outcome.ids]
    for node in nodes:
        known = plan.known.get(node.key)
        ident = outcome.ids[node.key]
        if known is not None and node.aliases:
            tx.add_aliases(ident, node.aliases)
        if known is not None and source is not None:
            tx.add_source(ident, source)
        # A node that has ended is not looked for; with the same time it is the same node.
        (outcome.created if known is None and tx.is_new(ident) else outcome.reused).append(ident)
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


def _create_nodes(
    tx: Transaction,
    nodes: Sequence[DraftNode],
    worlds: Sequence[Id],
    source: str | Sequence[str] | None,
) -> list[Id]:
    """Create nodes in their worlds; a little later in time where another world has the very node."""
    drafts = [
        NodeDraft(
            type=node.type,
            name=node.name,
            content=node.content,
            parent=world,
            aliases=node.aliases,
            created_at=node.created_at,
            valid_from=node.valid_from,
            valid_to=node.valid_to,
            source=source,
        )
        for node, world in zip(nodes, worlds, strict=True)
    ]
    try:
        return tx.create_nodes(drafts)
    except ConflictError:
        return [_create_distinct(tx, draft) for draft in drafts]


def _create_distinct(tx: Transaction, draft: NodeDraft) -> Id:
    created_at = draft.created_at
    step = -NUDGE if isinstance(created_at, datetime) and created_at > LATEST else NUDGE
    for _ in range(NUDGES_MAX):
        try:
            return tx.create_nodes([replace(draft, created_at=created_at)])[0]
        except ConflictError:
            if not isinstance(created_at, datetime):
                raise
            created_at += step
    raise ConflictError(
        f"{draft.type} {draft.name!r:.60}: exists {NUDGES_MAX} times in other worlds"
    )


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
    fact = _create_nodes(tx, [drafted], [old.world], None)[0]
    said: dict[str, Any] = {"relation": old.relation, "functional": True}
    said |= {"value": old.value} if old.value else {}
    said |= {"was": old.was} if old.was else {}
    tx.write_edge("derived_from", fact, old.carrier, metadata={"evidence": "quote"})
    tx.write_edge(CLAIM_EDGE, fact, old.subject, metadata={**said, "stands_for": str(old.carrier)})
    for world in old.members:
        tx.write_edge("contains", world, fact)
    return fact

"""Plan: the effects of one write, computed on one snapshot, then carried out in one transaction.

    WriteRequest ──prepare(reader)──▶ WritePlan ──apply(tx)──▶ Outcome

The plan says which drafted nodes are in the store already (`known`), which others they may be the
same as (`guesses`), and which claims the draft may end (`standing`). A plan has no side effects.
`commit` is the commit that the plan was made on: if another writer has committed since, the plan is
prepared again inside the transaction.

An exact match of the same type in the same world is the node itself, which is reused. Any other
match is a guess: the drafted node is written, and a `same_as` edge proposes the merge with its
evidence. Nothing is merged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from worlddb.claims.claim import Claim
from worlddb.claims.claim_edges import Stood, stood_before
from worlddb.claims.claim_ends import (
    REASON,
    Rivals,
    Supersession,
    end_claim,
    functional_claims,
    named_subjects,
    rivals,
    supersessions,
)
from worlddb.errors import InvalidInputError, RejectedError
from worlddb.identity.match_values import Match
from worlddb.identity.store_resolver import StoreResolver, resolver_in
from worlddb.index.name_index import STATED, NameIndex
from worlddb.ingest.draft_parts import (
    Origins,
    add_metadata,
    not_ended,
    not_trusted,
    replaced_memories,
    same_parts,
    with_echoes,
    with_origin,
    with_repeats,
    without_quarantined,
    without_unknown,
)
from worlddb.ingest.extraction_queue import MEMORY, put_into_queue, remove_from_queue
from worlddb.ingest.extractors import turn_key
from worlddb.ingest.write_request import NOTHING, Target, WriteRequest
from worlddb.model.address import Id
from worlddb.model.inputs import SCOPE, born
from worlddb.model.records import (
    RELATION_TYPES,
    Draft,
    DraftEdge,
    DraftNode,
    EdgeDraft,
    NodeDraft,
    to_metadata,
)
from worlddb.store.interface import Reader
from worlddb.view.visibility import Moment, accepted_class
from worlddb.write.transaction import Transaction

TIER = "tier"
"""Metadata key of an edge to a reused name: the tier that found the name."""
SHARED_SCOPES = ("agent:", "app:")
"""Kinds of scopes with several speakers, in which "I" is nobody in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A node that a drafted node may be the same as, with the evidence."""

    id: Id
    tier: str
    score: float
    evidence: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """The plan of one write.

    `asked` is the original request; `request` has a draft without words that turned out not to be
    names. `tiers` has the tier that found each reused name; `linked` are the indexes of drafted
    edges that are in the store already. `replaced` are memories that drafted ones replace.
    `doubtful` are the keys of drafted nodes that are not fully trusted.
    """

    asked: WriteRequest
    request: WriteRequest
    commit: int
    target: Target
    moment: Moment
    known: Mapping[str, Id]
    tiers: Mapping[str, str]
    linked: frozenset[int]
    replaced: Mapping[str, Id]
    guesses: Mapping[str, Sequence[Guess]]
    claims: Sequence[Claim]
    standing: Stood
    rivals: Sequence[Rivals] = ()
    doubtful: frozenset[str] = frozenset()


def prepare(
    reader: Reader, request: WriteRequest, now: int, before: WritePlan | None = None
) -> WritePlan:
    """Return the plan of a write on one snapshot.

    `before` is a plan that another commit has overtaken: its proposals are kept, no tiebreaker is
    asked again, and nodes that it found are kept if they are still visible.
    """
    asked, target, head = request, request.target, reader.head()
    if target.commit != head.seq:
        target = request.destination.locate(reader)
    tiebreaker = None if before is not None else request.tiebreaker
    resolver = resolver_in(
        reader, target.home_row, now, request.resolver, tiebreaker, within=target.within
    )
    if request.origins and not request.released:
        if target.home_row is not None:
            heard = with_repeats(reader, request.draft, request.origins, resolver.keep_inside)
            request = replace(request, origins=heard)
        request = without_quarantined(reader, request, target.home)
    at, text = request.unsaid or (None, "")
    unsaid = text if at == head.seq else None
    known, guesses, tiers = resolved_nodes(resolver, request.draft, target.home_row, unsaid)
    said_before = any(not node.resolvable and node.key in known for node in request.draft.nodes)
    replaced = (
        replaced_memories(reader, request.draft, known, request.origins) if said_before else {}
    )
    if any(node.known_only for node in request.draft.nodes):
        request = replace(request, draft=without_unknown(request.draft, known))
    if before is not None:
        seen = resolver.seen(before.known.values())
        known |= {key: ident for key, ident in before.known.items() if ident in seen}
        guesses = dict(before.guesses)
    moment = resolver.view.moment
    row, stood = target.home_row, Stood()
    claims = functional_claims(request.draft) if request.supersede else []
    if claims and row is not None:
        if _shared(reader, row) if target.is_shared is None else target.is_shared:
            claims = named_subjects(claims, request.draft)
        there = {**known, **target.anchors}
        drafted, about = request.draft.nodes, (target.home, moment, resolver.keep_said)
        repeats = bool(request.origins)
        stood = stood_before(reader, claims, drafted, there, *about, repeats=repeats)
    doubtful: frozenset[str] = frozenset()
    if request.origins:
        origins = with_echoes(reader, request.origins, claims, stood, known)
        doubtful = not_trusted(reader, origins, target.home)
        request = replace(request, origins=origins)
    said = [node for node in request.draft.nodes if node.type in STATED]
    return WritePlan(
        asked=asked,
        request=request,
        commit=head.seq,
        target=target,
        moment=moment,
        known=known,
        tiers=tiers,
        linked=_linked(reader, request.draft, known),
        replaced=replaced,
        guesses=guesses,
        claims=claims,
        standing=stood,
        rivals=rivals(reader, said, known, row, now, resolver.said.keep_bodies)
        if row is not None
        else (),
        doubtful=doubtful,
    )


def _linked(reader: Reader, draft: Draft, known: Mapping[str, Id]) -> frozenset[int]:
    """Return the indexes of drafted edges that are in the store, compared without their tier."""
    both = [
        (at, edge)
        for at, edge in enumerate(draft.edges)
        if edge.source in known and edge.target in known
    ]
    rows = {reader.node_row(known[edge.source]) for _, edge in both} - {None}
    if not rows:
        return frozenset()
    there: dict[tuple[str, Id, Id], list[dict[str, Any]]] = {}
    for item in reader.edges_at(sorted(row for row in rows if row), "out"):
        held = item.edge
        said = {key: value for key, value in held.metadata.items() if key != TIER}
        there.setdefault((held.type, held.source, held.target), []).append(said)
    return frozenset(
        at
        for at, edge in both
        if edge.metadata in there.get((edge.type, known[edge.source], known[edge.target]), ())
    )


def _shared(reader: Reader, row: int) -> bool:
    """Return whether a world is the scope of an agent or an app."""
    world = reader.world(row)
    return world.type == SCOPE and world.name.startswith(SHARED_SCOPES)


def resolved_nodes(
    resolver: StoreResolver, draft: Draft, row: int | None, unsaid: str | None = None
) -> tuple[dict[str, Id], dict[str, Sequence[Guess]], dict[str, str]]:
    """Return the drafted nodes that are in the store, and the candidates of the others.

    The third part is the tier that found each reused name. `unsaid` is a text that no memory has.
    """
    known: dict[str, Id] = {}
    guesses: dict[str, Sequence[Guess]] = {}
    tiers: dict[str, str] = {}
    if row is None:
        return known, guesses, tiers  # A world that does not exist yet is empty.
    resolver.fetch([node for node in draft.nodes if node.resolvable])
    for node in draft.nodes:
        if node.resolvable:
            matches = resolver.matches(node)
            same, maybe = reuse_or_guesses(resolver, matches, home=row)
            if same is not None:
                known[node.key] = same
                tiers[node.key] = next(match.tier for match in matches if match.reuses)
            elif not node.known_only:
                guesses[node.key] = maybe
        elif node.parent is None and (node.type, node.name, node.content) != (MEMORY, "", unsaid):
            found = resolver.same_content(node, row)
            if found is not None:
                known[node.key] = resolver.ident(found)
                known.update(same_parts(resolver, draft, node.key, found))
    return known, guesses, tiers


def reuse_or_guesses(
    resolver: StoreResolver, matches: Sequence[Match], home: int | None = None
) -> tuple[Id | None, list[Guess]]:
    """Return the node to reuse, or the guesses to propose.

    Several nodes of the same name count as one only if they were accepted as one. Nodes that live
    at `home` come before nodes that are only members there.
    """
    reader, view = resolver.reader, resolver.view
    same = sorted(int(str(match.option.key)) for match in matches if match.reuses)
    if home is not None and len(same) > 1:
        same = [body.row for body in reader.bodies(same) if body.parent == home] or same
    if len(same) > 1:
        accepted = accepted_class(reader, same[:1], view.moment, inside=view.keep_world)
        same = same if accepted.issuperset(same) else []
    if same:
        return resolver.ident(same[0]), []
    return None, [
        Guess(
            id=resolver.ident(int(str(match.option.key))),
            tier=match.tier,
            score=round(match.confidence, 4),
            evidence={"compared": list(match.compared), **match.evidence},
        )
        for match in matches
        if match.reuses or match.proposes
    ]


# -- apply -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a plan: the nodes by their keys in the draft, and the relations left out."""

    ids: dict[str, Id] = field(default_factory=dict)
    created: list[Id] = field(default_factory=list)
    reused: list[Id] = field(default_factory=list)
    proposed: list[Id] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


Relation = tuple[str, str, str]
"""The type of a drafted edge and the keys of its ends."""


class RefusedRelationError(RejectedError):
    """A handler refused an edge that the text states; the write is tried again without it."""

    def __init__(self, relation: Relation, refused: RejectedError) -> None:
        super().__init__(refused.reason, edge_type=refused.edge_type)
        self.relation = relation


def apply(
    tx: Transaction, plan: WritePlan, names: NameIndex, refused: Mapping[Relation, str] = NOTHING
) -> Outcome:
    """Carry out a plan; this function is the order of its steps.

    The relations in `refused` are left out; another refusal raises `RefusedRelationError`.
    """
    request, target, draft = plan.request, plan.target, plan.request.draft
    outcome = Outcome(ids=dict(target.anchors))
    if target.written is not None:
        return outcome  # The idempotency key was used before: nothing is written.
    if request.queue_edges:
        remove_from_queue(tx, request.queue_edges)
    guessed = (guess.id for guesses in plan.guesses.values() for guess in guesses)
    tx.expect([target.home, *plan.known.values(), *guessed])
    for scope, generation in target.scopes.items():
        tx.create_node(type=SCOPE, name=str(scope), created_at=born(generation))
    _write_nodes(tx, plan, outcome)
    for node in draft.nodes:
        for guess in plan.guesses.get(node.key, ()):
            propose(tx, outcome.ids[node.key], guess, outcome)
    _write_edges(tx, plan, outcome, refused)
    apart: dict[tuple[Id, str], Id] = {}
    ends = _superseded(plan, outcome)
    for ended in ends:
        if not end_claim(tx, ended, apart):
            outcome.left_out.append(not_ended(ended.by.relation, ended.old.carrier))
    _link_rivals(tx, plan, outcome, {ended.old.carrier for ended in ends})
    _join(tx, plan, outcome)
    memory = outcome.ids.get(request.memory)
    if memory is not None:
        if request.metadata and _is_own(tx, plan, request.memory):
            add_metadata(tx, draft, request.memory, request.metadata, outcome.ids)
        if (old := plan.replaced.get(request.memory)) is not None:
            tx.write_edge("supersedes", memory, old)
        if request.replaces is not None:
            edge = tx.write_edge("supersedes", memory, request.replaces)
            if edge.known_to is not None:
                outcome.left_out.append(not_ended("amend", request.replaces))
        if target.key is not None:
            target.key.write(tx, memory)
        if request.waiting is not None:
            put_into_queue(tx, memory, request.waiting)
    if request.parts is not None:
        request.parts.write(tx, outcome.ids)
    tx.derive(names.take_in)
    return outcome


def _write_nodes(tx: Transaction, plan: WritePlan, outcome: Outcome) -> None:
    """Write the drafted nodes that are new; add sources and aliases to the others."""
    source, nodes, origins = plan.request.source, plan.request.draft.nodes, plan.request.origins
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
        ids = _create_nodes(tx, batch, worlds, source, origins)
        outcome.ids.update((node.key, ident) for node, ident in zip(batch, ids, strict=True))
        left = [node for node in left if node.key not in outcome.ids]
    for node in nodes:
        known = plan.known.get(node.key)
        ident = outcome.ids[node.key]
        if not _is_own(tx, plan, node.key):
            outcome.reused.append(ident)
            continue
        if known is not None and node.aliases:
            tx.add_aliases(ident, node.aliases)
        if known is not None and source is not None:
            tx.add_source(ident, source)
        (outcome.created if known is None and tx.is_new(ident) else outcome.reused).append(ident)
        if kept := to_metadata(node.attributes):
            tx.add_metadata(ident, kept)


def _is_own(tx: Transaction, plan: WritePlan, key: str) -> bool:
    """Return whether a write may add to a node: it is new, or not more trusted than the write."""
    known = plan.known.get(key)
    if known is None or key not in plan.doubtful:
        return True
    return tx.yields(known, plan.request.origins[key])


def _write_edges(
    tx: Transaction, plan: WritePlan, outcome: Outcome, refused: Mapping[Relation, str]
) -> None:
    """Write the drafted edges that are new, one by one, because each may be refused."""
    draft, ids = plan.request.draft, outcome.ids
    entities = {node.key for node in draft.nodes if node.resolvable}
    named = {node.key: node.name or node.content for node in draft.nodes}
    new = [edge for at, edge in enumerate(draft.edges) if at not in plan.linked]
    for type_, edges in groupby(new, key=lambda edge: edge.type):
        drafts: list[EdgeDraft] = []
        for edge in edges:
            relation = (type_, edge.source, edge.target)
            if relation in refused:
                ends = [f"{named.get(end, end):.60}" for end in (edge.source, edge.target)]
                outcome.left_out.append(f"{ends[0]} {type_} {ends[1]}: {refused[relation]}")
                continue
            if plan.request.origins and edge.source in entities:
                edge = with_origin(edge, plan.request.origins, plan.request.memory)
            drafted = _edge_draft(tx, plan, edge, edge.source in entities, ids)
            if drafted.source == drafted.target:
                continue
            drafts.append(drafted)
            if type_ in RELATION_TYPES:
                try:
                    tx.write_edges(type_, [drafts.pop()])
                except RejectedError as error:
                    raise RefusedRelationError(relation, error) from error
        tx.write_edges(type_, drafts)


def _edge_draft(
    tx: Transaction, plan: WritePlan, edge: DraftEdge, of_entity: bool, ids: Mapping[str, Id]
) -> EdgeDraft:
    """Return a drafted edge between written nodes.

    An edge from a text begins with the text. An edge from an entity begins when the text that
    states it was said, because the entity may be older. An edge from a new text to a reused name
    has the tier that found the name.
    """
    source, begins, metadata = ids[edge.source], edge.valid_from, edge.metadata
    if begins is None and of_entity:
        turn = ids.get(turn_key(edge.spans[0].message)) if edge.spans else None
        stating = turn or ids.get(plan.request.memory)
        begins = None if stating is None else tx.begin_of(stating)
        if begins is not None and edge.valid_to is not None:
            begins = min(begins, edge.valid_to)
    tier = plan.tiers.get(edge.target)
    if tier is not None and tx.is_new(source):
        metadata = {**metadata, TIER: tier}
    return EdgeDraft(
        source=source,
        target=ids[edge.target],
        valid_from=begins,
        valid_to=edge.valid_to,
        metadata=metadata,
    )


def _join(tx: Transaction, plan: WritePlan, outcome: Outcome) -> None:
    """Make the memory, and the names it mentions, members of further worlds."""
    target, nodes = plan.target, plan.request.draft.nodes
    for world in target.memberships:
        tx.write_edge("contains", world, outcome.ids[plan.request.memory])
    for world in target.name_worlds:
        for node in nodes:
            if node.parent is None and node.key != plan.request.memory:
                tx.write_edge("contains", world, outcome.ids[node.key])


def _superseded(plan: WritePlan, outcome: Outcome) -> list[Supersession]:
    """Return the claims that the draft ends, now that its nodes have ids."""
    if not plan.claims:
        return []
    ending = partial(
        supersessions,
        stood=plan.standing,
        nodes={node.key: node for node in plan.request.draft.nodes},
        ids=outcome.ids,
        home=plan.target.home,
        now=plan.moment.now,
        spared=plan.request.replaces,
    )
    trusted = [claim for claim in plan.claims if claim.fact not in plan.doubtful]
    ended = ending(trusted)
    if len(trusted) == len(plan.claims):
        return ended
    # A less trusted text must not replace what this write ends for another reason.
    done = {one.old.key for one in ended}
    return [*ended, *(one for one in ending(plan.claims) if one.old.key not in done)]


def _link_rivals(tx: Transaction, plan: WritePlan, outcome: Outcome, ended: set[Id]) -> None:
    """Link texts with the same words and another value, unless one of them has just ended."""
    for pair in plan.rivals:
        newer, older = (outcome.ids[end] if isinstance(end, str) else end for end in pair)
        if newer != older and ended.isdisjoint((newer, older)) and older != plan.request.replaces:
            tx.write_edge("contradicts", newer, older, metadata={"reason": REASON})


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
    origins: Origins = NOTHING,
) -> list[Id]:
    """Create nodes in their worlds; the plan has found those that exist already."""
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
            origins=origins.get(node.key, ()),
        )
        for node, world in zip(nodes, worlds, strict=True)
    ]
    return tx.create_nodes(drafts, reuse=False)

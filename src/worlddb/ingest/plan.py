"""Plan: what one write will do, worked out on one snapshot before anything is locked.

    WriteRequest ──prepare(reader)──▶ Plan ──apply(tx)──▶ Outcome

The plan says which drafted nodes are in the store already (`known`), which others they may be the
same as (`guesses`), and which standing claims the draft may end (`standing`). A plan has no side
effects. `commit` names the commit that the plan was made on: if another writer has committed since,
the plan is prepared again inside the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from worlddb.claims.claim import Claim
from worlddb.claims.claim_lookup import carriers, standing_claims
from worlddb.claims.supersession import Stood, functional_claims, named_subjects
from worlddb.identity.match_values import ResolverSettings, Tiebreaker, Verdict, acted_on
from worlddb.identity.store_resolver import StoreResolver, resolver_in
from worlddb.ingest.extraction_queue import Waiting
from worlddb.ingest.idempotency import WriteKey
from worlddb.model.address import Id
from worlddb.model.drafts import Draft
from worlddb.model.records import NOW
from worlddb.model.scopes import SCOPE, ScopeName
from worlddb.store.interface import Reader
from worlddb.view.lookup import accepted_class
from worlddb.view.visibility import Moment, moment_of

NOTHING: Mapping[Any, Any] = MappingProxyType({})
SHARED_SCOPES = ("agent:", "app:")
"""In the scope of an agent or an app, "I" may be anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a write goes, as one snapshot has it.

    `home` is the world of the draft's nodes; `home_row` is its row, None if it is still to be made.
    `scopes` are those to be made, each with its generation. The memory becomes a member of `memberships`, the names of `name_worlds`. Texts are
    compared with, and end, only what is also inside one of each group of `within`. `anchors` are
    nodes of the store that the draft refers to by key. `commit` is the commit of the snapshot. `written` is the memory that was written
    with the same idempotency key.
    """

    commit: int
    home: Id
    home_row: int | None
    scopes: Mapping[ScopeName, int] = field(default_factory=lambda: NOTHING)
    memberships: tuple[Id, ...] = ()
    name_worlds: tuple[Id, ...] = ()
    within: Sequence[Sequence[Id]] = ()
    anchors: Mapping[str, Id] = field(default_factory=lambda: NOTHING)
    key: WriteKey | None = None
    written: Id | None = None


class Destination(Protocol):
    """Says where a write goes. It is asked again if another writer commits first."""

    def locate(self, reader: Reader) -> Target:
        """Return the target on this snapshot.

        Raises:
            ConflictError, NotFoundError: the place of the write has ended.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorldDestination:
    """A world that exists, and always will: nothing to look for again."""

    target: Target

    def locate(self, reader: Reader) -> Target:
        """Return the target."""
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """Everything that one write is asked to do, before the store is looked at.

    `memory` is the key of the drafted node that is the memory. `target` is what the destination was
    when the draft was made. `replaces` is the memory that the draft amends. `queue_edges` are the entries of the extraction
    queue that this write settles. `waiting` says that the model's part of the extraction is still
    to be done.
    """

    draft: Draft
    memory: str
    destination: Destination
    target: Target
    actor: str
    source: str | Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    waiting: Waiting | None = None
    supersede: bool = True
    replaces: Id | None = None
    queue_edges: tuple[Id, ...] = ()
    resolver: ResolverSettings | None = None
    tiebreaker: Tiebreaker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A node that a drafted node may be the same as, with the evidence."""

    id: Id
    tier: str
    score: float
    evidence: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one write will do."""

    request: WriteRequest
    commit: int
    target: Target
    moment: Moment
    known: Mapping[str, Id]
    guesses: Mapping[str, Sequence[Guess]]
    claims: Sequence[Claim]
    standing: Stood


def prepare(reader: Reader, request: WriteRequest, now: int, before: Plan | None = None) -> Plan:
    """Return the plan of a write on one snapshot.

    With `before`, a plan that another commit has overtaken, the proposals of that plan are kept, no
    tiebreaker is asked again, and what it found is kept if it can still be seen.
    """
    target, head = request.target, reader.head()
    if target.commit != head.seq:
        target = request.destination.locate(reader)
    tiebreaker = None if before is not None else request.tiebreaker
    resolver = resolver_in(
        reader, target.home_row, now, request.resolver, tiebreaker, within=target.within
    )
    known, guesses = resolved(resolver, request.draft, target.home_row)
    if before is not None:
        seen = resolver.seen(before.known.values())
        known |= {key: ident for key, ident in before.known.items() if ident in seen}
        guesses = dict(before.guesses)
    moment = moment_of(reader, NOW, now)
    claims: list[Claim] = []
    stood = Stood()
    if request.supersede:
        row = target.home_row
        claims = functional_claims(request.draft)
        if claims and row is not None and _shared(reader, row):
            claims = named_subjects(claims, request.draft)
        if claims and row is not None:
            stood = _standing(reader, claims, {**known, **target.anchors}, target, moment, resolver)
    return Plan(
        request=request,
        commit=head.seq,
        target=target,
        moment=moment,
        known=known,
        guesses=guesses,
        claims=claims,
        standing=stood,
    )


def _standing(
    reader: Reader,
    claims: Iterable[Claim],
    known: Mapping[str, Id],
    target: Target,
    moment: Moment,
    resolver: StoreResolver,
) -> Stood:
    """Return what the store says about the subjects of claims; `known` are its nodes by key."""
    wanted: dict[Id, set[str]] = {}
    for claim in claims:
        if claim.subject in known:
            wanted.setdefault(known[claim.subject], set()).add(claim.relation)
    stating = [known[claim.fact] for claim in claims if claim.fact in known]
    return Stood(
        claims=standing_claims(reader, wanted, target.home, moment, resolver.keep_said),
        nodes=carriers(reader, stating),
    )


def _shared(reader: Reader, row: int) -> bool:
    """Return whether a world is the scope of an agent or an app."""
    world = reader.world(row)
    return world.type == SCOPE and world.name.startswith(SHARED_SCOPES)


def resolved(
    resolver: StoreResolver, draft: Draft, row: int | None
) -> tuple[dict[str, Id], dict[str, Sequence[Guess]]]:
    """Return which drafted nodes are in the store, and what the others may be the same as."""
    known: dict[str, Id] = {}
    guesses: dict[str, Sequence[Guess]] = {}
    if row is None:
        return known, guesses  # A world that is still to be made holds nothing.
    resolver.fetch([node for node in draft.nodes if node.resolvable])
    for node in draft.nodes:
        if node.resolvable:
            same, maybe = judged(resolver, resolver.verdict(node), home=row)
            if same is not None:
                known[node.key] = same
            else:
                guesses[node.key] = maybe
        elif node.parent is None:
            found = resolver.same_content(node, row)
            if found is not None:
                known[node.key] = resolver.ident(found)
                known.update(_same_parts(resolver, draft, node.key, found))
    return known, guesses


def _same_parts(resolver: StoreResolver, draft: Draft, key: str, row: int) -> dict[str, Id]:
    """Return which drafted children of a node that is in the store are in the store, too."""
    drafted = [node for node in draft.nodes if node.parent == key]
    if not drafted:
        return {}
    reader = resolver.reader
    left = list(reader.bodies(reader.children_of([row])))
    known: dict[str, Id] = {}
    for node in drafted:
        for body in left:
            if (body.type, body.name, body.content) == (node.type, node.name, node.content):
                known[node.key] = Id(body.id)
                left.remove(body)
                break
    return known


def judged(
    resolver: StoreResolver, verdict: Verdict, home: int | None = None
) -> tuple[Id | None, list[Guess]]:
    """Return the node to use again, or the guesses to propose.

    Several nodes of the same name count as one only if they were accepted as one. Nodes that live
    at `home` come before nodes that are only members there.
    """
    reader = resolver.reader
    same = sorted(int(str(match.option.key)) for match in verdict.matches if match.reuses)
    if home is not None and len(same) > 1:
        same = [body.row for body in reader.bodies(same) if body.parent == home] or same
    if same and (
        len(same) == 1 or set(same) <= accepted_class(reader, same[:1], resolver.view.moment)
    ):
        return resolver.ident(same[0]), []
    return None, [
        Guess(
            id=resolver.ident(int(str(match.option.key))),
            tier=match.tier,
            score=round(match.confidence, 4),
            evidence={"compared": list(match.compared), **match.evidence},
        )
        for match in acted_on(verdict)
    ]

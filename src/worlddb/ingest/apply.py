"""Ingest: from a draft and its verdicts to nodes and edges, inside one transaction.

An exact match of the same type in the same world is the node itself: it is used again. Any other
match is a guess: the drafted node is written, and a `same_as` edge proposes the merge with its
evidence. Nothing is ever merged here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from worlddb.claims.claim import (
    CLAIM_EDGE,
    FACT,
    Claim,
    Standing,
    claims_of,
    replaces,
    tells_change,
)
from worlddb.errors import ConflictError
from worlddb.model.address import Id
from worlddb.model.drafts import Draft, DraftNode, to_metadata
from worlddb.model.records import Node
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


# Superseding: what a draft claims ends what was claimed before, and cannot hold together with it.
#
# claims of a draft ──▶ those of one subject and relation, with another value ──▶ supersedes
#
# S1  Only functional claims that quote the text they were read from replace anything, and only
# functional claims are replaced: a new city visited ends no other.
# S2  The later word ends the earlier one where it begins, in whatever order they are written. What
# claims to have begun before the earlier word, or lies ahead, ends nothing; unless it is news,
# and the earlier word told of no change itself: then that ends when the later one was said.
# S3  A node that says other things too is never superseded. The sentence alone becomes a `Fact` that
# is derived from it, and that fact is superseded.


EVIDENCE_CHARS_MAX = 1_000
NEWS_MAX = timedelta(days=31)
"""What began longer ago is told as history: "I moved to Oslo in 2010"."""
UNNAMED = frozenset(("user", "human", "me", "assistant", "agent", "bot", "ai", "unknown"))
"""Speakers that are called by what they do: in a world of many people, nobody in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """What the store said before a draft was written.

    The claims that stand about its subjects, and those nodes that it claims with and has already.
    """

    claims: Mapping[Id, Sequence[Standing]] = field(default_factory=lambda: MappingProxyType({}))
    nodes: Mapping[Id, Node] = field(default_factory=lambda: MappingProxyType({}))


def functional_claims(draft: Draft, *, named: bool = False) -> list[Claim]:
    """Return the claims that can replace others: functional ones with evidence.

    With `named`, only those about somebody who has a name.
    """
    found = [claim for claim in claims_of(draft) if claim.functional and claim.evidence]
    if not named or not found:
        return found
    names = {node.key: node.name.casefold() for node in draft.nodes}
    return [claim for claim in found if names.get(claim.subject, "") not in UNNAMED]


def supersede(
    tx: Transaction,
    draft: Draft,
    outcome: Outcome,
    claims: Sequence[Claim],
    stood: Stood,
    *,
    home: Id,
    now: datetime,
    spared: Collection[Id] = (),
) -> list[Id]:
    """Write `supersedes` for the claims of a draft that was just written; return what it ended.

    Nodes in `spared` are left as they are: the caller ends them itself.
    """
    nodes = {node.key: node for node in draft.nodes}
    standing = {subject: list(found) for subject, found in stood.claims.items()}
    written: set[Id] = set()
    ended: list[Id] = []
    for claim in claims:
        new = _standing(claim, nodes.get(claim.fact), outcome, stood, home, now)
        if new is None or new.began > new.said:
            continue
        others = standing.setdefault(new.subject, [])
        if any(other.key == new.key for other in others):
            continue
        for old in [one for one in others if one.carrier not in spared and _fits(one)]:
            tied = old.said == new.said and old.carrier in written
            if not tied and _follows(new, old):
                ended.append(_end(tx, old, by=new, evidence=_quoted(claim)))
                others.remove(old)
        later = [one for one in others if one.said > new.said and _follows(one, new)]
        if later and _fits(new):
            first = min(later, key=lambda one: (_ends_at(new, one), bytes(one.carrier)))
            ended.append(_end(tx, new, by=first, evidence=first.text))
        else:
            others.append(new)
        written.add(new.carrier)
    return ended


def _fits(old: Standing) -> bool:
    """Return whether it is known which words would be superseded."""
    return bool(old.text) or not old.apart


def _follows(new: Standing, old: Standing) -> bool:
    """Return whether a claim is the later word on what another says."""
    if new.carrier == old.carrier or new.said < old.said:
        return False
    return (new.began >= old.began or _is_news(new, old)) and replaces(new, old)


def _is_news(new: Standing, old: Standing) -> bool:
    """Return whether a claim tells of a change that the other had only not heard of yet.

    "I moved yesterday", said an hour after "I live in Rome"; but not after "I moved to Rome".
    """
    state = old.began == old.said and not tells_change(old.text)
    return state and new.said > old.began and new.said - new.began <= NEWS_MAX


def _ends_at(old: Standing, by: Standing) -> datetime:
    """Return when a claim ends that another follows: never before what states it began."""
    begins = old.began if old.apart else old.valid_from
    return by.began if by.began >= begins else max(by.said, begins)


def _standing(
    claim: Claim,
    node: DraftNode | None,
    outcome: Outcome,
    stood: Stood,
    home: Id,
    now: datetime,
) -> Standing | None:
    """Return a drafted claim as one that stands; None if what states it has ended already."""
    carrier = outcome.ids[claim.fact]
    known = stood.nodes.get(carrier)
    if known is not None:
        if known.valid_to is not None and known.valid_to <= now:
            return None
        said, began, type_, content = known.created_at, known.valid_from, known.type, known.content
        world = known.parent or home
    elif node is not None:
        said = node.created_at or now
        began, type_, content = node.valid_from or said, node.type, node.content
        world = home if node.parent is None else outcome.ids[node.parent]
    else:
        return None
    valid_from = began
    if claim.since is not None:
        began = min(claim.since, said)
    return Standing(
        carrier=carrier,
        subject=outcome.ids[claim.subject],
        relation=claim.relation,
        value=claim.value,
        was=claim.was,
        began=began,
        said=said,
        valid_from=valid_from,
        text=claim.text or (content if type_ == FACT else ""),
        apart=type_ != FACT and content.strip() != claim.text.strip(),
        world=world,
        vague=claim.vague,
    )


def _end(tx: Transaction, old: Standing, *, by: Standing, evidence: str) -> Id:
    """Write that a claim is superseded; return the node that ended."""
    target = _apart(tx, old) if old.apart else old.carrier
    said: dict[str, Any] = {"relation": by.relation, "was": old.value or f"not {old.was}"}
    if by.value:
        said["now"] = by.value
    said["evidence"] = evidence[:EVIDENCE_CHARS_MAX]
    tx.write_edge("supersedes", by.carrier, target, valid_from=_ends_at(old, by), metadata=said)
    return target


def _apart(tx: Transaction, old: Standing) -> Id:
    """Make a fact of the sentence that states a claim in a longer text; return its id."""
    drafted = DraftNode(
        key="", type=FACT, content=old.text, created_at=old.said, valid_from=old.began
    )
    fact = made(tx, drafted, old.world, None).id
    said: dict[str, Any] = {"relation": old.relation, "functional": True}
    said |= {"value": old.value} if old.value else {}
    said |= {"was": old.was} if old.was else {}
    tx.write_edge("derived_from", fact, old.carrier, metadata={"evidence": "quote"})
    tx.write_edge(CLAIM_EDGE, fact, old.subject, metadata={**said, "stands_for": str(old.carrier)})
    for world in old.members:
        tx.write_edge("contains", world, fact)
    return fact


def _quoted(claim: Claim) -> str:
    return claim.text or claim.evidence[0].text

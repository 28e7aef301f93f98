"""Claim lookup: which functional claims stand about somebody, and which of them a draft ends.

A claim is on the `refers_to` edge from the node that states it (its *carrier*) to its subject. So
one look at a subject, and at the nodes accepted as the same, finds every claim about it.

    claims of a draft, standing claims of the same subject and relation ──▶ Supersession, …

S1  Only functional claims that quote the text they were read from replace anything, and only
    functional claims are replaced: a visit to another city ends no earlier visit.
S2  The later statement ends the earlier one at the time when the later one begins, in whatever
    order they are written. A claim that began before the earlier statement, or lies in the future,
    ends nothing. The exception is news: a change within the last month, told after a statement that
    told of no change itself. Then the earlier claim ends when the later one was said.
S3  A node that says other things, too, is never superseded. The sentence alone becomes a `Fact`
    that is derived from the node, and that fact is superseded (`Standing.apart`).

Reads and decides only: `ingest/plan.py` writes what is decided here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from worlddb.claims.claim import (
    CLAIM_EDGE,
    FACT,
    Claim,
    Claimed,
    Standing,
    claimed,
    claims_of,
    replaces,
    tells_change,
)
from worlddb.model.address import Id
from worlddb.model.drafts import Draft, DraftNode
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.store.rows import EdgeRow
from worlddb.view.visibility import Moment, accepted_class

SESSION = "Session"


def standing_claims(
    reader: Reader,
    wanted: Mapping[Id, Collection[str]],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]] = set,
) -> dict[Id, list[Standing]]:
    """Return the functional claims that stand now, by subject; `wanted` has the relations of each.

    Only carriers that live in the world `home` itself, or in a session there, count: members of
    `home` live in other worlds. `keep` returns the rows that the caller may see.
    """
    found: dict[Id, list[Standing]] = {}
    for subject, relations in wanted.items():
        row = reader.node_row(subject)
        if row is None:
            continue
        same = accepted_class(reader, [row], moment) if reader.has_proposals() else {row}
        found[subject] = _standing(reader, _about(reader, same, relations), home, moment, keep)
    return found


def _about(
    reader: Reader, subjects: Collection[int], relations: Collection[str]
) -> list[tuple[EdgeRow, Claimed]]:
    """Return the functional claims about subjects of some relations, as of now."""
    # There may be many claims about a user: the store picks those of these relations.
    texts = [f'"relation":{json.dumps(word, ensure_ascii=False)}' for word in sorted(relations)]
    return _functional(reader.edges(reader.sweep.saying(sorted(subjects), CLAIM_EDGE, texts)))


def _moved(edges: Iterable[tuple[EdgeRow, Claimed]]) -> set[tuple[str, str, str]]:
    """Return the claims of longer texts that became facts of their own when they were replaced."""
    return {(said.stands_for, said.relation, said.value) for _, said in edges if said.stands_for}


def _functional(edges: Iterable[EdgeRow]) -> list[tuple[EdgeRow, Claimed]]:
    claims = ((item, claimed(item.edge.metadata)) for item in edges)
    return [(item, claim) for item, claim in claims if claim is not None and claim.functional]


def _standing(
    reader: Reader,
    edges: list[tuple[EdgeRow, Claimed]],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]],
) -> list[Standing]:
    nodes = reader.nodes({item.source for item, _ in edges})
    live = {row for row, node in nodes.items() if moment.holds(node) and not node.erased}
    placed = keep(_lives_in(reader, {row: nodes[row] for row in live}, home))
    members = _members(reader, placed, moment)
    moved = _moved(edges)
    found = []
    for item, said in edges:
        if item.source not in placed or not moment.holds(item.edge):
            continue
        node = nodes[item.source]
        if (str(node.id), said.relation, said.value) in moved:
            continue
        memberships = tuple(members.get(item.source, ()))
        found.append(_standing_claim(node, item.edge.target, said, memberships))
    return found


def _standing_claim(node: Node, subject: Id, said: Claimed, members: tuple[Id, ...]) -> Standing:
    began = node.valid_from if said.since is None else min(said.since, node.created_at)
    assert node.parent is not None
    return Standing(
        carrier=node.id,
        subject=subject,
        relation=said.relation,
        value=said.value,
        was=said.was,
        began=began,
        said=node.created_at,
        valid_from=node.valid_from,
        text=said.text or (node.content if node.type == FACT else ""),
        apart=node.type != FACT and node.content.strip() != said.text.strip(),
        world=node.parent,
        members=members,
        vague=said.vague,
    )


def _lives_in(reader: Reader, nodes: Mapping[int, Node], home: Id) -> set[int]:
    """Return which nodes live in a world itself, or in a session of it."""
    sessions: dict[Id, bool] = {}
    found = set()
    for row, node in nodes.items():
        parent = node.parent
        if parent is None:
            continue
        if parent != home and parent not in sessions:
            number = reader.node_row(parent)
            around = reader.nodes([number])[number] if number is not None else None
            sessions[parent] = (
                around is not None and around.type == SESSION and around.parent == home
            )
        if parent == home or sessions[parent]:
            found.add(row)
    return found


def _members(reader: Reader, rows: Iterable[int], moment: Moment) -> dict[int, list[Id]]:
    """Return the further worlds that nodes are members of."""
    found: dict[int, list[Id]] = {}
    for item in reader.edges_at(sorted(rows), "in", ("contains",)):
        if moment.holds(item.edge):
            found.setdefault(item.target, []).append(item.edge.source)
    return found


def stated(
    reader: Reader, subjects: Collection[int], relations: Collection[str], moment: Moment
) -> list[tuple[EdgeRow, Claimed]]:
    """Return the claims about subjects at a moment, also those that something is no longer so.

    A sentence of a longer text that was replaced is no claim of that text any more.
    """
    if moment.known is None:
        found = _about(reader, subjects, relations)
    else:
        found = _functional(reader.edges_at(sorted(subjects), "in", (CLAIM_EDGE,), moment.known))
    claims = [(item, claim) for item, claim in found if claim.relation in relations]
    moved = _moved(claims)
    return [
        (item, claim)
        for item, claim in claims
        if moment.holds(item.edge)
        and (str(item.edge.source), claim.relation, claim.value) not in moved
    ]


def carriers(reader: Reader, ids: Iterable[Id]) -> dict[Id, Node]:
    """Return the nodes among `ids` that exist already, by id."""
    rows = [row for ident in ids if (row := reader.node_row(ident)) is not None]
    return {node.id: node for node in reader.nodes(rows).values()}


# -- what a draft ends -----------------------------------------------------------------------------

NEWS_MAX = timedelta(days=31)
"""What began longer ago is told as history: "I moved to Oslo in 2010"."""
UNNAMED = frozenset(("user", "human", "me", "assistant", "agent", "bot", "ai", "unknown"))
"""Speakers named by their role: in a world of many people, nobody in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """What the store said before the draft was written.

    `claims` are the standing claims about the subjects of the draft. `nodes` are the nodes that
    state claims of the draft and are in the store already.
    """

    claims: Mapping[Id, Sequence[Standing]] = field(default_factory=lambda: MappingProxyType({}))
    nodes: Mapping[Id, Node] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """One claim that ends, the claim that ends it, from when on, and the words that say so."""

    old: Standing
    by: Standing
    at: datetime
    evidence: str


def functional_claims(draft: Draft) -> list[Claim]:
    """Return the claims that can replace others: functional ones with evidence."""
    return [claim for claim in claims_of(draft) if claim.functional and claim.evidence]


def named_subjects(claims: Sequence[Claim], draft: Draft) -> list[Claim]:
    """Return the claims about subjects that have a name of their own."""
    names = {node.key: node.name.casefold() for node in draft.nodes}
    return [claim for claim in claims if names.get(claim.subject, "") not in UNNAMED]


def supersessions(
    claims: Sequence[Claim],
    stood: Stood,
    *,
    nodes: Mapping[str, DraftNode],
    ids: Mapping[str, Id],
    home: Id,
    now: datetime,
    spared: Id | None = None,
) -> list[Supersession]:
    """Return what the claims of a draft end, in the order of the claims.

    `ids` are the nodes of the draft by key, as written. The node `spared` is left as it is: the
    caller ends that node itself. Claims are compared with claims of one subject and relation only,
    each statement of a node once, so the cost grows with the text and not with its square.
    """
    standing: dict[tuple[Id, str], _Statements] = {}
    for subject, found in stood.claims.items():
        for old in found:
            standing.setdefault((subject, old.relation), _Statements()).add(old)
    written: set[Id] = set()
    ended: list[Supersession] = []
    for claim in claims:
        new = _as_standing(claim, nodes.get(claim.fact), ids, stood, home, now)
        if new is None or new.began > new.said:
            continue
        others = standing.setdefault((new.subject, new.relation), _Statements())
        if new.key in others.keys:
            continue
        for old in others.of_others(new.carrier):
            tied = old.said == new.said and old.carrier in written
            if old.carrier != spared and _is_quotable(old) and not tied and _follows(new, old):
                ended.append(_ended(old, by=new, evidence=claim.text or claim.evidence[0].text))
                others.remove(old)
        later = [one for one in others.of_others(new.carrier) if one.said > new.said]
        later = [one for one in later if _follows(one, new)]
        if later and _is_quotable(new):
            first = min(later, key=lambda one: (_ends_at(new, one), bytes(one.carrier)))
            ended.append(_ended(new, by=first, evidence=first.text))
        else:
            others.add(new)
        written.add(new.carrier)
    return ended


class _Statements:
    """What stands about one subject and relation, by the node that states it."""

    def __init__(self) -> None:
        self.keys: set[tuple[Id, str, tuple[str, ...]]] = set()
        self._by_carrier: dict[Id, list[Standing]] = {}

    def add(self, claim: Standing) -> None:
        self.keys.add(claim.key)
        self._by_carrier.setdefault(claim.carrier, []).append(claim)

    def remove(self, claim: Standing) -> None:
        self.keys.discard(claim.key)
        self._by_carrier[claim.carrier].remove(claim)

    def of_others(self, carrier: Id) -> list[Standing]:
        """Return what other nodes state: a node never ends what it says itself."""
        parts = (found for one, found in self._by_carrier.items() if one != carrier)
        return [claim for found in parts for claim in found]


def _ended(old: Standing, *, by: Standing, evidence: str) -> Supersession:
    return Supersession(old=old, by=by, at=_ends_at(old, by), evidence=evidence)


def _is_quotable(old: Standing) -> bool:
    """Return whether it is known which words would be superseded."""
    return bool(old.text) or not old.apart


def _follows(new: Standing, old: Standing) -> bool:
    """Return whether a claim is the later statement about what another says."""
    if new.carrier == old.carrier or new.said < old.said:
        return False
    return (new.began >= old.began or _is_news(new, old)) and replaces(new, old)


def _is_news(new: Standing, old: Standing) -> bool:
    """Return whether a claim tells of a change that the earlier statement did not know yet.

    "I moved yesterday", said an hour after "I live in Rome"; but not after "I moved to Rome".
    """
    state = old.began == old.said and not tells_change(old.text)
    return state and new.said > old.began and new.said - new.began <= NEWS_MAX


def _ends_at(old: Standing, by: Standing) -> datetime:
    """Return when a claim ends that another follows: never before its node began."""
    begins = old.began if old.apart else old.valid_from
    return by.began if by.began >= begins else max(by.said, begins)


def _as_standing(
    claim: Claim,
    node: DraftNode | None,
    ids: Mapping[str, Id],
    stood: Stood,
    home: Id,
    now: datetime,
) -> Standing | None:
    """Return a drafted claim as a standing one; None if the node that states it has ended."""
    carrier = ids[claim.fact]
    known = stood.nodes.get(carrier)
    if known is not None:
        if known.valid_to is not None and known.valid_to <= now:
            return None
        said, began, type_, content = known.created_at, known.valid_from, known.type, known.content
        world = known.parent or home
    elif node is not None:
        said = node.created_at or now
        began, type_, content = node.valid_from or said, node.type, node.content
        world = home if node.parent is None else ids[node.parent]
    else:
        return None
    valid_from = began
    if claim.since is not None:
        began = min(claim.since, said)
    return Standing(
        carrier=carrier,
        subject=ids[claim.subject],
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

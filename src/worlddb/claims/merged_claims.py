"""Merged claims: the claims that end when two subjects are merged, and how a split restores them.

A claim that ends by a merge ends as a `Fact`, and the `supersedes` edge names both subjects
(`THROUGH`). The text that states the claim stays as it is: the fact was made for the merge and
quotes the text, so removing fact and edge restores everything. If the claim was a fact of the
extractor, a successor restores it. Claims that exclude each other and have no order in time become
a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from worlddb.claims.claim import CLAIM_EDGE, FACT, STANDS_FOR, Standing, replaces
from worlddb.claims.claim_lookup import Supersession, claims_about, follow_up
from worlddb.model.address import Id
from worlddb.model.records import Node, NodeDraft
from worlddb.ontology.edge_types import LESS_TRUSTED
from worlddb.store.interface import Reader
from worlddb.store.rows import EdgeRow
from worlddb.view.visibility import Moment, accepted_class
from worlddb.write.revival import EdgeCopy
from worlddb.write.transaction import Transaction

THROUGH = "through"
"""Metadata key of an edge that is valid only while the two subjects it names are merged."""


EVIDENCE_CHARS_MAX = 1_000  # enough for the sentence; metadata is not for whole texts


class Reconciliation(NamedTuple):
    """What a merge does to the claims of both sides."""

    ended: list[Supersession]
    conflicts: list[tuple[Standing, Standing]]


class Crossing(NamedTuple):
    """What exists only through a merge: edges, facts made for it, and facts that it ended.

    `ends` are the claims that stay ended after the merge is undone; `handed_on` are supersessions
    by a fact that was made for the merge, each with the text that the fact quotes.
    """

    edges: tuple[EdgeRow, ...] = ()
    made: tuple[Node, ...] = ()
    ended: tuple[int, ...] = ()
    ends: tuple[Supersession, ...] = ()
    handed_on: tuple[tuple[Id, EdgeRow], ...] = ()


def sides(reader: Reader, merge: EdgeRow, moment: Moment) -> tuple[set[int], set[int]]:
    """Return the classes of both ends of a `same_as` edge, as if that edge were not accepted."""
    left = accepted_class(reader, [merge.source], moment, without=merge.row)
    if merge.target in left:
        return left, left
    return left, accepted_class(reader, [merge.target], moment, without=merge.row)


def reconciliation(
    reader: Reader, left: Collection[int], right: Collection[int], moment: Moment
) -> Reconciliation:
    """Return the claims that end, and the conflicts, when two classes of subjects become one.

    Claims are compared inside one world at a time: a user's claims say nothing about another's.
    """
    ended: list[Supersession] = []
    conflicts: list[tuple[Standing, Standing]] = []
    homes = {row: parent for row, parent in reader.parents({*left, *right}).items() if parent}
    for world in sorted(set(homes.values())):
        home = Id(reader.world(world).id)
        here = claims_about(reader, left, home, moment)
        there = claims_about(reader, right, home, moment)
        for own, others in ((here, there), (there, here)):
            found = (follow_up(old, others) for old in own)
            ended += [end for end in found if end is not None]
        open_ends = {end.old.key for end in ended}
        conflicts += [
            (one, other)
            for one in here
            for other in there
            if one.ends is None and other.ends is None
            if not {one.key, other.key} & open_ends and replaces(one, other)
        ]
    return Reconciliation(ended, conflicts)


def crossing(reader: Reader, merge: EdgeRow, moment: Moment) -> Crossing:
    """Return what exists only through the merge by a `same_as` edge."""
    left, right = sides(reader, merge, moment)
    if left == right:
        return Crossing()  # Another accepted merge still joins the two.
    claims = reader.edges_at(sorted(left | right), "in", (CLAIM_EDGE,))
    carriers = sorted({item.source for item in claims})
    near = reader.edges_at(carriers, "both", ("supersedes", "contradicts"))
    edges = {item.row: item for item in near if _crosses(reader, item, left, right)}
    facts = {item.target for item in edges.values() if item.edge.type == "supersedes"}
    quotes = {item.source for item in claims if STANDS_FOR in item.edge.metadata} & facts
    around = reader.edges_at(sorted(quotes), "both") if quotes else []
    onward = tuple(handed_on(reader, around, quotes, edges))
    edges |= {item.row: item for item in around if item.edge.type != "contains"}
    return Crossing(
        edges=tuple(item for _, item in sorted(edges.items())),
        made=tuple(reader.nodes(quotes).values()),
        ended=tuple(sorted(facts - quotes)),
        ends=tuple(_own_ends(reader, (left, right), facts, quotes, moment)),
        handed_on=onward,
    )


def handed_on(
    reader: Reader, around: Iterable[EdgeRow], quotes: set[int], gone: Collection[int]
) -> Iterator[tuple[Id, EdgeRow]]:
    """Yield the supersessions by quoting facts that stay, with the texts that the facts quote."""
    around = list(around)
    quoted = {item.source: item.edge.target for item in around if item.edge.type == "derived_from"}
    for item in around:
        ends = item.edge.type == "supersedes" and item.source in quoted
        if ends and item.row not in gone and item.target not in quotes:
            yield quoted[item.source], item


def _crosses(reader: Reader, item: EdgeRow, left: set[int], right: set[int]) -> bool:
    through = item.edge.metadata.get(THROUGH)
    ends = {reader.node_row(Id(one)) for one in through} if isinstance(through, list) else set()
    return bool(ends & left and ends & right)


def _own_ends(
    reader: Reader,
    parts: tuple[set[int], set[int]],
    facts: set[int],
    quotes: set[int],
    moment: Moment,
) -> Iterator[Supersession]:
    """Yield the claims that stay ended after a merge is undone: their own side ended them, too."""
    nodes = reader.nodes(facts)
    ids = {node.id for node in nodes.values()}
    quoted = {
        nodes[item.source].id: item.target
        for item in reader.edges_at(sorted(quotes), "out", ("derived_from",))
    }
    texts = reader.nodes(quoted.values())
    homes = sorted({node.parent for node in nodes.values() if node.parent is not None})
    for side, home in product(parts, homes):
        claims = claims_about(reader, side, home, moment)
        again = [replace(claim, ends=None) if claim.carrier in ids else claim for claim in claims]
        again = [
            _said_by(claim, texts[quoted[claim.carrier]]) if claim.carrier in quoted else claim
            for claim in again
        ]
        for claim, said in zip(claims, again, strict=True):
            others = [other for other in again if other is not said]
            end = follow_up(said, others) if claim.carrier in ids else None
            if end is not None:
                yield end


def _said_by(claim: Standing, text: Node) -> Standing:
    """Return the claim quoted by a fact as a claim of the quoted text."""
    return replace(
        claim,
        carrier=text.id,
        valid_from=text.valid_from,
        apart=text.type != FACT and text.content.strip() != claim.text.strip(),
        of_fact=text.type == FACT,
    )


# -- ends ------------------------------------------------------------------------------------------


def end_claim(tx: Transaction, ended: Supersession, apart: dict[tuple[Id, str], Id]) -> bool:
    """Write that a claim supersedes another; `apart` are the facts made for that so far.

    If the older claim is more trusted, write a contradiction instead and return False.
    """
    old, by = ended.old, ended.by
    if tx.outranks(old.carrier, by.carrier):
        reason = {"reason": LESS_TRUSTED}
        tx.write_edge("contradicts", by.carrier, old.carrier, metadata=reason)
        return False
    target, sentence = old.carrier, (old.carrier, old.text)
    if old.apart:
        target = apart[sentence] = apart.get(sentence) or _separate_fact(tx, old)
    said: dict[str, Any] = {"relation": by.relation, "was": old.value or f"not {old.was}"}
    if by.value:
        said["now"] = by.value
    said["evidence"] = ended.evidence[:EVIDENCE_CHARS_MAX]
    if old.subject != by.subject:
        said[THROUGH] = [str(old.subject), str(by.subject)]
    tx.write_edge("supersedes", by.carrier, target, valid_from=ended.at, metadata=said)
    return True


def _separate_fact(tx: Transaction, old: Standing) -> Id:
    """Create a fact for the sentence of a longer text that states a claim; return its id."""
    drafted = NodeDraft(
        type=FACT,
        content=old.text,
        parent=old.world,
        created_at=old.said,
        valid_from=old.began,
    )
    fact = tx.create_nodes([drafted], reuse=False)[0]
    said: dict[str, Any] = {"relation": old.relation, "functional": True}
    said |= {"value": old.value} if old.value else {}
    said |= {"was": old.was} if old.was else {}
    tx.write_edge("derived_from", fact, old.carrier, metadata={"evidence": "quote"})
    tx.write_edge(CLAIM_EDGE, fact, old.subject, metadata={**said, "stands_for": str(old.carrier)})
    for world in old.members:
        tx.write_edge("contains", world, fact)
    return fact


def end_again(tx: Transaction, ends: Iterable[Supersession], successors: Mapping[Id, Id]) -> None:
    """Write the ends that stay after a merge is undone, between the successors of their texts."""
    apart: dict[tuple[Id, str], Id] = {}
    for end in ends:
        old, by = (
            replace(claim, carrier=successors.get(claim.carrier, claim.carrier))
            for claim in (end.old, end.by)
        )
        end_claim(tx, replace(end, old=old, by=by), apart)


def by_text(given: tuple[Id, EdgeRow]) -> EdgeCopy:
    """Return a supersession by a quoting fact as one by the text that it quotes."""
    text, item = given
    return EdgeCopy(edge=replace(item.edge, source=text), valid_to=item.edge.valid_to)

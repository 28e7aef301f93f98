"""Merged claims: the claims that end when two subjects are merged, and how a split restores them.

A claim that ends by a merge ends as a `Fact`, and the `supersedes` edge names both subjects
(`THROUGH`). The text that states the claim stays as it is: the fact was made for the merge and
quotes the text, so removing fact and edge restores everything. If the claim was a fact of the
extractor, a successor restores it. Claims that exclude each other and have no order in time become
a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from worlddb.claims.claim import CLAIM_EDGE, FACT, STANDS_FOR, Standing, replaces
from worlddb.claims.claim_lookup import Supersession, claims_about, follow_up
from worlddb.model.address import Id
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.store.rows import EdgeRow
from worlddb.view.visibility import Moment, accepted_class

THROUGH = "through"
"""Metadata key of an edge that is valid only while the two subjects it names are merged."""


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
    by_text = tuple(handed_on(reader, around, quotes, edges))
    edges |= {item.row: item for item in around if item.edge.type != "contains"}
    return Crossing(
        edges=tuple(item for _, item in sorted(edges.items())),
        made=tuple(reader.nodes(quotes).values()),
        ended=tuple(sorted(facts - quotes)),
        ends=tuple(_own_ends(reader, (left, right), facts, quotes, moment)),
        handed_on=by_text,
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

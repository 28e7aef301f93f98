"""Hits: what recall returns, and why each of them is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from worlddb.claims.claim import CLAIM_EDGE, Claimed, claimed, value_key
from worlddb.claims.standing import stated
from worlddb.language.snippet import Snippet, snippet
from worlddb.model.address import Id
from worlddb.model.inputs import to_micros
from worlddb.model.records import Conflict, Node, Plain, node_line
from worlddb.store.interface import Reader
from worlddb.view.equivalence import accepted_class
from worlddb.view.visibility import Moment

CHARS_PER_TOKEN = 4


def tokens_of(text: str) -> int:
    """Return about how many tokens a model counts in a text: a quarter of its characters."""
    return -(-len(text) // CHARS_PER_TOKEN)


def tokens_in(node: Node) -> int:
    """Return about how many tokens a node's name and content take in a prompt."""
    return tokens_of(node.name) + tokens_of(node.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRank(Plain):
    """Where one lane ranked a node (1 is first), with the lane's own score."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated(Plain):
    """A sentence of a hit that is no longer so: until when it was, and what stands in its place.

    `by` is None if nothing does that can be seen from here: it was retired or erased since.
    """

    text: str
    until: datetime | None
    by: Id | None

    @property
    def why(self) -> str:
        """That it is no longer so, and where to look instead."""
        return "no longer so" if self.by is None else f"no longer so, see {self.by.short}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Plain):
    """A remembered node, its place in every lane, and what speaks against it.

    `score` is what hits are ordered by, except that what replaced a sentence of a hit (`outdated`)
    comes before it; `weighed` are the parts that it is the sum of, by the names of `Weights`;
    `fused` is the reciprocal rank fusion of the lanes alone. Its validity and
    provenance are the node's.
    """

    node: Node
    score: float
    fused: float
    lanes: Mapping[str, LaneRank] = field(default_factory=dict, hash=False)
    weighed: Mapping[str, float] = field(default_factory=dict, hash=False)
    conflicts: tuple[Conflict, ...] = ()
    outdated: tuple[Outdated, ...] = ()
    tokens: int = 0

    @property
    def id(self) -> Id:
        """The id of the node."""
        return self.node.id

    @property
    def valid_from(self) -> datetime:
        """Since when it is true."""
        return self.node.valid_from

    @property
    def valid_to(self) -> datetime | None:
        """Until when it was true; None if it still is."""
        return self.node.valid_to

    @property
    def provenance(self) -> tuple[str, ...]:
        """Where it comes from."""
        return self.node.provenance

    @property
    def text(self) -> str:
        """The hit as a line for a prompt: when, what, and what speaks against it."""
        sides = {side for conflict in self.conflicts for side in (conflict.left, conflict.right)}
        line = node_line(self.node, sorted(sides - {self.node.id}))
        gone = (f" ({old.why}: {old.text})" for old in self.outdated)
        return line + " ".join("".join(gone).split("\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Plain):
    """The answer to a question: hits, best first."""

    question: str
    hits: tuple[Hit, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the hits, best first."""
        return tuple(hit.node for hit in self.hits)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The open conflicts of all hits, each once."""
        found = {conflict.edge: conflict for hit in self.hits for conflict in hit.conflicts}
        return tuple(found.values())

    def snippet(self, hit: Hit, *, width: int = 160) -> Snippet:
        """Return the part of a hit's text that answers best, with the matched words marked.

        Raises:
            InvalidInputError: the width is not a positive number.
        """
        return snippet(hit.node.content or hit.node.name, self.question, width=width)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON data."""
        return self.to_dict()

    def to_text(self) -> str:
        """Return the hits as lines for a prompt, best first."""
        return "\n".join(hit.text for hit in self.hits)


# Outdated: what of the found is no longer so, though it has not ended itself.
#
# A longer text stays when one sentence of it is replaced; the sentence has ended as a fact that was
# derived from it. Then the text is still found, but what replaced the sentence comes before it. A
# summary says what its details said: with one of them ended it is left out until it is made anew.
#
# O1  What was replaced stays outdated, whatever becomes of what replaced it: that may be replaced,
# amended, retired or erased in turn. It is no longer outdated once it was said again and stands.
# O2  It is told to be replaced by what says it now, if that can be seen from here; else by nothing.


SUMMARY, FACT = "Summary", "Fact"


Keep = Callable[[Iterable[int]], set[int]]
"""What says which rows can be seen from here, whatever their time."""


class Replaced(NamedTuple):
    """A sentence that has ended, and the row of what says it now, if anything seen here does."""

    row: int | None
    told: Outdated


class _Stated(NamedTuple):
    """A claim that stands, and the row and the node that state it."""

    row: int
    node: Node
    said: Claimed


def stale_summaries(reader: Reader, nodes: Mapping[int, Node], moment: Moment) -> set[int]:
    """Return the rows of those summaries of which a detail has ended."""
    summaries = [row for row, node in nodes.items() if node.type == SUMMARY]
    if not summaries:
        return set()
    details: dict[int, set[int]] = {}
    for item in reader.edges_at(summaries, "out", ("derived_from",), moment.known):
        details.setdefault(item.source, set()).add(item.target)
    ended = _ended(reader, {row for found in details.values() for row in found}, moment)
    return {row for row, found in details.items() if found & ended}


def _ended(reader: Reader, rows: set[int], moment: Moment) -> set[int]:
    """Return those rows whose validity is over at the moment."""
    at = to_micros(moment.valid or moment.now, "at")
    if moment.known is None:
        return reader.placed.ended(rows, at)
    bodies = reader.bodies(sorted(rows), moment.known)
    return {body.row for body in bodies if body.valid_to is not None and body.valid_to <= at}


def replaced(
    reader: Reader, rows: Iterable[int], moment: Moment, keep: Keep
) -> dict[int, list[Replaced]]:
    """Return by row the sentences that something has replaced since."""
    parts: dict[int, list[int]] = {}
    for item in reader.edges_at(rows, "in", ("derived_from",), moment.known):
        parts.setdefault(item.source, []).append(item.target)
    if not parts:
        return {}
    at = moment.valid or moment.now
    facts = {
        row: node
        for row, node in reader.nodes(parts, moment.known).items()
        if node.type == FACT and node.valid_to is not None and node.valid_to <= at
    }
    newer: dict[int, set[int]] = {}
    for item in reader.edges_at(facts, "in", ("supersedes",), moment.known) if facts else ():
        newer.setdefault(item.target, set()).add(item.source)
    if not newer:
        return {}
    standing = _standing(reader, newer, moment, keep)
    direct = _seen(reader, {row for found in newer.values() for row in found}, moment, keep)
    found: dict[int, list[Replaced]] = {}
    for fact in sorted(newer):
        own, others = standing.get(fact, ((), ()))
        if _said_again(facts[fact], own, others):
            continue
        since = facts[fact].created_at
        now = {one.row: one.node for one in others if one.node.created_at >= since}
        by = _best({row: direct[row] for row in newer[fact] & direct.keys()}, now)
        told = Outdated(
            text=facts[fact].content, until=facts[fact].valid_to, by=by[1].id if by else None
        )
        for row in parts[fact]:
            found.setdefault(row, []).append(Replaced(by[0] if by else None, told))
    return found


def _best(direct: Mapping[int, Node], standing: Mapping[int, Node]) -> tuple[int, Node] | None:
    """Return what stands in the place of a sentence, of what replaced it and what is said now."""
    both = {row: node for row, node in direct.items() if row in standing}
    for choice in (both, standing, direct):
        if choice:
            return max(choice.items(), key=lambda one: (one[1].created_at, bytes(one[1].id)))
    return None


def _said_again(fact: Node, own: Iterable[Claimed], others: Iterable[_Stated]) -> bool:
    """Return whether what had ended was said anew, and stands."""
    assert fact.valid_to is not None
    later = [one.said for one in others if one.node.created_at >= fact.valid_to]
    return any(_says(said, mine) for said in later for mine in own)


def _standing(
    reader: Reader, facts: Iterable[int], moment: Moment, keep: Keep
) -> dict[int, tuple[list[Claimed], list[_Stated]]]:
    """Return of each fact what it claims, and what is claimed now of the same kind.

    Much is said about a user: each subject is looked at once, whatever the number of facts.
    """
    claims: dict[int, list[tuple[int, Claimed]]] = {}
    relations: dict[int, set[str]] = {}
    for item in reader.edges_at(sorted(facts), "out", (CLAIM_EDGE,), moment.known):
        said = claimed(item.edge.metadata)
        if said is not None:
            claims.setdefault(item.source, []).append((item.target, said))
            relations.setdefault(item.target, set()).add(said.relation)
    classes = reader.has_proposals()
    stands: dict[int, list[_Stated]] = {}
    for subject, wanted in relations.items():
        same = accepted_class(reader, [subject], moment) if classes else {subject}
        told = stated(reader, same, wanted, moment)
        seen = _seen(reader, {item.source for item, _ in told}, moment, keep)
        stands[subject] = [
            _Stated(item.source, seen[item.source], said)
            for item, said in told
            if item.source in seen
        ]
    return {
        fact: (
            [said for _, said in own],
            [
                one
                for subject, said in own
                for one in stands[subject]
                if one.said.relation == said.relation
            ],
        )
        for fact, own in claims.items()
    }


def _seen(reader: Reader, rows: set[int], moment: Moment, keep: Keep) -> dict[int, Node]:
    """Return those nodes that hold and can be seen from here."""
    found = reader.nodes(keep(rows), moment.known)
    return {row: node for row, node in found.items() if moment.holds(node) and not node.erased}


def _says(one: Claimed, other: Claimed) -> bool:
    """Return whether two claims are one: Rome is "Rome, Italy"; York and New York are two."""
    if one.relation != other.relation or bool(one.value) != bool(other.value):
        return False
    first, second = (value_key((each.value or each.was).partition(",")[0]) for each in (one, other))
    return first == second


def in_order(
    order: Sequence[int],
    rows: Sequence[int],
    outdated: Mapping[int, Sequence[Replaced]],
    stale: set[int],
) -> list[int]:
    """Return places with what replaced a sentence right before the text that still has it."""
    if not outdated and not stale:
        return list(order)
    place_of = {row: place for place, row in enumerate(rows)}
    kept = [place for place in order if rows[place] not in stale]
    for place in [place for place in kept if rows[place] in outdated]:
        for newer in outdated[rows[place]]:
            better = None if newer.row is None else place_of.get(newer.row)
            if better is None or rows[better] in stale:
                continue
            at = kept.index(place)
            if better not in kept[:at]:
                if better in kept:
                    kept.remove(better)
                kept.insert(at, better)
    return kept

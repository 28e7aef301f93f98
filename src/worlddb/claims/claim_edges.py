"""Claim edges: the claims that a store has, and those of them that new claims can change.

A claim is on the `refers_to` edge from the node that states it (its *carrier*) to its subject. The
claims about a user may be thousands, and every one that a later claim has ended stays. So a write
reads a narrow row of each, and in full only those beside its own claims in time:

    topics of a draft ──standing──▶ ClaimEdge, … ──neighbours──▶ edges, nodes ──▶ Standing, …

E1  What is read is all that a `TimeLine` would look at if it had every claim: the claims that hold,
    and `COMPARED_MAX` of those that end, begin and were said next after each new claim.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worlddb.claims.claim import (
    CLAIM_EDGE,
    COMPARED_MAX,
    FACT,
    STANDS_FOR,
    Claim,
    Claimed,
    Standing,
    adds_up,
    relation_words,
    value_key,
)
from worlddb.errors import CorruptionError
from worlddb.index.ranking_numbers import SCALARS
from worlddb.model.address import Id
from worlddb.model.inputs import to_micros
from worlddb.model.records import DraftNode, Node
from worlddb.store.interface import Reader
from worlddb.store.rows import ClaimEdge, EdgeRow, ReferenceRow
from worlddb.view.visibility import NOWHERE, Moment, accepted_class, inside

SESSION = "Session"
TARGETS_KEPT = 512  # nodes whose references are kept for the next questions about a world
FOREVER = (1 << 63) - 1  # after every time that can be stored
BEFORE_ALL = -(1 << 62)  # a time before every time that can be stored
_VALUE = '"value":'
_JSON = json.JSONDecoder()


def claimed(metadata: Mapping[str, Any]) -> Claimed | None:
    """Return the claim in the metadata of an edge; None if there is none."""
    relation, value, was = (_text(metadata, name) for name in ("relation", "value", "was"))
    relation = relation_words(relation)
    if not relation or not (value or was):
        return None
    functional = metadata.get("functional") is True and not adds_up(relation)
    return Claimed(
        relation,
        value,
        functional,
        was,
        _day(_text(metadata, "since")),
        _text(metadata, "text"),
        _text(metadata, STANDS_FOR),
        metadata.get("vague") is True,
    )


def _text(metadata: Mapping[str, Any], name: str) -> str:
    value = metadata.get(name)
    return value if isinstance(value, str) else ""


def _day(text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        return None


@dataclass(slots=True)
class NewClaims:
    """The claims of a draft about one relation of one subject.

    `times` are when each begins and when it was said. If one is `stored`, the store has a node that
    states it. With `repeats`, older claims of the same value count, too: their texts may be less
    trusted.
    """

    values: set[str] = field(default_factory=set)
    times: set[tuple[int, int]] = field(default_factory=set)
    stored: bool = False
    repeats: bool = False

    @property
    def only_value(self) -> str:
        """The value that every claim states, if claims of the same value can be left out."""
        is_one = len(self.values) == 1 and not (self.repeats or self.stored)
        return next(iter(self.values)) if is_one else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """The state of the store before the draft is written.

    `claims` are the claims about the subjects of the draft, `nodes` the nodes of the draft that
    state claims and are in the store already.
    """

    claims: Mapping[Id, Sequence[Standing]] = field(default_factory=lambda: MappingProxyType({}))
    nodes: Mapping[Id, Node] = field(default_factory=lambda: MappingProxyType({}))


def stood_before(
    reader: Reader,
    claims: Sequence[Claim],
    nodes: Iterable[DraftNode],
    known: Mapping[str, Id],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]],
    *,
    repeats: bool,
) -> Stood:
    """Return the stored claims that a draft's claims may change, and the nodes that state them.

    `known` are the drafted nodes that are in the store, by key. `keep` returns the rows that the
    caller may see; for `repeats` see `NewClaims`.
    """
    drafted = {node.key: node for node in nodes}
    stating = carriers(reader, [known[claim.fact] for claim in claims if claim.fact in known])
    wanted: dict[Id, dict[str, NewClaims]] = {}
    for claim in claims:
        if claim.subject not in known:
            continue
        topics = wanted.setdefault(known[claim.subject], {})
        new = topics.setdefault(claim.relation, NewClaims(repeats=repeats))
        new.values.add(claim.value)
        there = stating.get(known[claim.fact]) if claim.fact in known else None
        new.stored |= there is not None
        node = drafted.get(claim.fact)
        said = there.created_at if there else (node and node.created_at) or moment.now
        begins = there.valid_from if there else (node and node.valid_from) or said
        begins = begins if claim.since is None else min(claim.since, said)
        new.times.add((to_micros(begins, "valid_from"), to_micros(said, "created_at")))
    return Stood(claims=standing_claims(reader, wanted, home, moment, keep), nodes=stating)


def standing_claims(
    reader: Reader,
    wanted: Mapping[Id, Mapping[str, NewClaims]],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]] = set,
) -> dict[Id, list[Standing]]:
    """Return the functional claims about each subject that new claims may change.

    These are claims that hold now, and those that later claims have ended, but no retired or
    amended ones. Only carriers that live in the world `home`, or in a session there, count; members
    of `home` live in other worlds.
    """
    found: dict[Id, list[Standing]] = {}
    classes, world = reader.has_proposals(), reader.node_row(home) or NOWHERE

    def keep_names(rows: set[int]) -> set[int]:
        return inside(reader, world, rows, moment, members=True)

    for subject, topics in wanted.items():
        row = reader.node_row(subject)
        if row is None:
            continue
        same = accepted_class(reader, [row], moment, inside=keep_names) if classes else {row}
        there = _claim_edges(reader, same, topics)
        most = COMPARED_MAX
        while True:
            near, is_cut = _neighbours(there, topics, most)
            edges = functional(reader.edges(near))
            found[subject] = as_standing_claims(reader, edges, home, moment, keep, there)
            left_out = len(near) - len(found[subject])
            if not is_cut or most - left_out >= COMPARED_MAX:
                break
            most = max(2 * most, COMPARED_MAX + left_out)
    return found


def _claim_edges(
    reader: Reader, subjects: Collection[int], topics: Mapping[str, NewClaims]
) -> list[ClaimEdge]:
    """Return the narrow rows of claims about subjects; `topic` is the place in `topics`."""
    said = {
        member_text("relation", word): member_text("value", new.only_value) * bool(new.only_value)
        for word, new in topics.items()
    }
    times = [time for new in topics.values() for time in new.times]
    if any(new.repeats for new in topics.values()) or not times:
        after = (BEFORE_ALL, BEFORE_ALL)
    else:
        after = min(begins for begins, _ in times), min(said for _, said in times)
    return reader.sweep.standing(sorted(subjects), CLAIM_EDGE, said, after)


def _neighbours(
    there: Sequence[ClaimEdge], topics: Mapping[str, NewClaims], most: int
) -> tuple[list[int], bool]:
    """Return the edges beside new claims, by row, and whether some were left out."""
    near: set[int] = set()
    is_cut = False
    for topic, new in enumerate(topics.values()):
        rows = [edge for edge in there if edge.topic == topic]
        near.update(edge.row for edge in rows if edge.ends is None)
        if new.repeats:
            same = {value_key(value) for value in new.values}
            near.update(edge.row for edge in rows if value_key(_value_of(edge)) in same)
        lines = (
            sorted((edge.ends, edge.row) for edge in rows if edge.ends is not None),
            sorted((_began(edge), edge.row) for edge in rows),
            sorted((edge.said, edge.row) for edge in rows),
        )
        for begins, said in new.times:
            for line, time in zip(lines, (begins, begins, said), strict=True):
                first = bisect(line, time, key=itemgetter(0))
                near.update(row for _, row in line[first : first + most])
                is_cut |= len(line) - first > most
    return sorted(near), is_cut


def _began(edge: ClaimEdge) -> int:
    """Return when a claim began, as `Standing.began` does."""
    since = _day(edge.since.partition('"')[0]) if edge.since else None
    return edge.valid_from if since is None else min(to_micros(since, "since"), edge.said)


def _value_of(edge: ClaimEdge) -> str:
    """Return the value of a claim from the JSON text that begins with it; empty without one."""
    is_there = edge.told.startswith(_VALUE)
    return str(_JSON.raw_decode(edge.told, len(_VALUE))[0]) if is_there else ""


def functional_about(
    reader: Reader,
    subjects: Collection[int],
    relations: Collection[str],
) -> list[tuple[EdgeRow, Claimed]]:
    """Return the functional claims about subjects, with some relations, as of now."""
    # There may be many claims about a user, so the store selects by relation.
    texts = [member_text("relation", word) for word in sorted(relations)]
    return functional(reader.edges(reader.sweep.saying(sorted(subjects), CLAIM_EDGE, texts)))


def member_text(name: str, text: str) -> str:
    """Return a member of metadata as it is stored."""
    return f'"{name}":{json.dumps(text, ensure_ascii=False)}'


def moved_claims(edges: Iterable[tuple[EdgeRow, Claimed]]) -> set[tuple[str, str, str]]:
    """Return the claims of longer texts that became facts of their own when replaced."""
    return {(said.stands_for, said.relation, said.value) for _, said in edges if said.stands_for}


def functional(edges: Iterable[EdgeRow]) -> list[tuple[EdgeRow, Claimed]]:
    """Return the edges that state functional claims, with the claims."""
    claims = ((item, claimed(item.edge.metadata)) for item in edges)
    return [(item, claim) for item, claim in claims if claim is not None and claim.functional]


def stated(
    reader: Reader, subjects: Collection[int], relations: Collection[str], moment: Moment
) -> list[tuple[EdgeRow, Claimed]]:
    """Return the claims about subjects at a moment, also claims that something is no longer true.

    A replaced sentence of a longer text is no longer a claim of that text.
    """
    if moment.known is None:
        found = functional_about(reader, subjects, relations)
    else:
        found = functional(reader.edges_at(sorted(subjects), "in", (CLAIM_EDGE,), moment.known))
    claims = [(item, claim) for item, claim in found if claim.relation in relations]
    moved = moved_claims(claims)
    return [
        (item, claim)
        for item, claim in claims
        if moment.holds(item.edge)
        and (str(item.edge.source), claim.relation, claim.value) not in moved
    ]


def as_standing_claims(
    reader: Reader,
    edges: list[tuple[EdgeRow, Claimed]],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]],
    others: Iterable[ClaimEdge] = (),
) -> list[Standing]:
    """Return claims as `Standing`; `others` may stand for a text that states one of them."""
    nodes = reader.nodes({item.source for item, _ in edges})
    nodes = {row: node for row, node in nodes.items() if not node.erased}
    live = {row for row, node in nodes.items() if moment.holds(node)}
    ended = _ended_by_claims(reader, {row: nodes[row] for row in nodes.keys() - live})
    placed = keep(_lives_in(reader, {row: nodes[row] for row in live | ended.keys()}, home))
    members = _members(reader, placed, moment)
    moved = moved_claims(edges)
    told = {str(node.id) for node in nodes.values() if node.type != FACT}
    read = {item.row for item, _ in edges}
    rows = [one.row for one in others if one.stands_for in told and one.row not in read]
    moved |= moved_claims(functional(reader.edges(rows)))
    found = []
    for item, said in edges:
        if item.source not in placed or not (item.source in ended or moment.holds(item.edge)):
            continue
        if item.source in ended and said.relation not in ended[item.source]:
            continue
        node = nodes[item.source]
        if (str(node.id), said.relation, said.value) in moved:
            continue
        memberships = tuple(members.get(item.source, ()))
        found.append(_standing_claim(node, item.edge.target, said, memberships))
    return found


def _ended_by_claims(reader: Reader, nodes: Mapping[int, Node]) -> dict[int, set[str]]:
    """Return the nodes that a later claim has ended, with the relations of the later claims."""
    rows = [row for row, node in nodes.items() if node.valid_to and node.valid_to > node.valid_from]
    found: dict[int, set[str]] = {}
    for item in reader.edges_at(sorted(rows), "in", ("supersedes",)) if rows else ():
        relation = item.edge.metadata.get("relation")
        if isinstance(relation, str):
            found.setdefault(item.target, set()).add(relation)
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
        ends=node.valid_to,
        of_fact=node.type == FACT,
    )


def _lives_in(reader: Reader, nodes: Mapping[int, Node], home: Id) -> set[int]:
    """Return the nodes that live in a world itself, or in a session of it."""
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


def carriers(reader: Reader, ids: Iterable[Id]) -> dict[Id, Node]:
    """Return the nodes among `ids` that exist already, by id."""
    rows = [row for ident in ids if (row := reader.node_row(ident)) is not None]
    return {node.id: node for node in reader.nodes(rows).values()}


# -- references ------------------------------------------------------------------------------------

REFERENCES = (CLAIM_EDGE,)
ROLE, ABOUT, MENTIONS = "role", "about", "mentions"
ABOUT_METADATA = ('"role":"about"',)


def relation_in(metadata: Mapping[str, Any]) -> str:
    """Return how a text refers to an entity, by its edge: a claim's relation, else its role."""
    relation = metadata.get("relation")
    if isinstance(relation, str) and relation:
        return relation
    return ABOUT if metadata.get(ROLE) == ABOUT else MENTIONS


def relation_of(item: ReferenceRow) -> str:
    """Return the same from a row: the metadata of most references need not be parsed."""
    said = item.metadata
    try:
        if "relation" not in said and said.count("{") == 1:
            return ABOUT if ABOUT_METADATA[0] in said else MENTIONS
        return relation_in(json.loads(said))
    except (ValueError, TypeError, AttributeError) as error:
        raise _unreadable(error) from None


def said_relation(item: ReferenceRow) -> Any:
    """Return the relation that the metadata of an edge name; None if they name none."""
    try:
        return json.loads(item.metadata).get("relation") if "relation" in item.metadata else None
    except (ValueError, AttributeError) as error:
        raise _unreadable(error) from None


def as_stored(item: EdgeRow) -> ReferenceRow:
    """Return an edge of the past in the form in which those of the present are read."""
    edge = item.edge
    begins = to_micros(edge.valid_from, "valid_from")
    ends = None if edge.valid_to is None else to_micros(edge.valid_to, "valid_to")
    said = json.dumps(edge.metadata, separators=(",", ":"))
    return ReferenceRow(item.row, edge.id, item.source, item.target, begins, ends, said)


def valid_references(found: Sequence[ReferenceRow], moment: Moment) -> list[ReferenceRow]:
    """Return the references that are valid at a moment, by the rule of `Moment.holds`."""
    at = to_micros(moment.now if moment.valid is None else moment.valid, "valid")
    began = None if moment.valid is None else at
    try:
        return [
            item
            for item in found
            if (item.valid_to is None or item.valid_to > at)
            and (began is None or item.valid_from <= began)
        ]
    except TypeError as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> CorruptionError:
    return CorruptionError(
        f"an edge cannot be read ({error}); `worlddb check` lists all damage; restore a backup"
    )


class ArrivingEdges:
    """The present references to one node whose metadata hold a text, by row; see `References`."""

    __slots__ = ("_spans", "numbers", "seen")

    def __init__(self) -> None:
        self.numbers = array("q")
        self.seen = -1  # The last edge of the store that was looked at; an empty store has none.
        self._spans: NDArray[np.int64] = np.zeros((0, 3), dtype=np.int64)

    def spans(self, reader: Reader) -> NDArray[np.int64]:
        """Return the source of each, and since when and until when it is valid."""
        new = self.numbers[len(self._spans) :]
        if new:
            rows = [
                (it.source, it.valid_from, FOREVER if it.valid_to is None else it.valid_to)
                for it in reader.sweep.references(new)
            ]
            try:
                self._spans = np.concatenate((self._spans, np.array(rows, dtype=np.int64)))
            except (TypeError, ValueError, OverflowError) as error:
                raise _unreadable(error) from None
        return self._spans


KeptReferences = dict[tuple[int, tuple[str, ...]], ArrivingEdges]


class References:
    """The references to nodes on one snapshot; of the present ones, each is read once.

    `inside` returns the nodes among some that are inside the view. `kept` are those that earlier
    questions about the same world have read, by target and texts; none was closed or deleted since.
    With `newest`, the newest references of a node with too many are read.
    """

    def __init__(
        self,
        reader: Reader,
        moment: Moment,
        inside: Callable[[Iterable[int]], set[int]],
        kept: KeptReferences,
    ) -> None:
        self.newest = False
        self._reader = reader
        self._moment = moment
        self._inside = inside
        self._kept = kept
        self._edges: dict[int, ReferenceRow] = {}

    def hubs(
        self, entities: Collection[int], keep: Callable[[Iterable[int]], set[int]]
    ) -> set[int]:
        """Return entities that too many texts are about, without reading all of these texts."""
        moment, most, hubs = self._moment, SCALARS.hub_max, set[int]()
        if moment.known is not None:
            return hubs
        at = to_micros(moment.now if moment.valid is None else moment.valid, "valid")
        for entity, found in self._saying(entities, ABOUT_METADATA).items():
            if not most < len(found.numbers) <= SCALARS.references_max:
                continue
            sources, begins, ends = found.spans(self._reader).T
            holds = (ends > at) & ((begins <= at) | (moment.valid is None))
            kept: set[int] = set()
            for end in range(len(sources), 0, -most):
                newer = slice(max(0, end - most), end)
                kept |= keep(set(sources[newer][holds[newer]].tolist()))
                if len(kept) > most:
                    hubs.add(entity)
                    break
        return hubs

    def arriving(self, rows: Collection[int], said: tuple[str, ...]) -> list[ReferenceRow]:
        """Return the references to nodes whose metadata hold a text; none of hubs.

        The store picks the edges: a name may be mentioned a hundred thousand times, and be what
        three texts are about.
        """
        reader, moment = self._reader, self._moment
        targets = sorted(rows)
        numbers: Sequence[int] = ()
        if moment.known is None:
            each = self._saying(targets, said).values()
            numbers = self._from_inside(sorted(number for it in each for number in it.numbers))
            found = self._edges_of(numbers) if len(numbers) <= SCALARS.references_max else None
        else:
            then = reader.edges_at(targets, "in", REFERENCES, moment.known)
            inside = self._inside({item.source for item in then})
            found = [
                item
                for item in map(as_stored, then)
                if item.source in inside and any(text in item.metadata for text in said)
            ]
            found = found if len(found) <= SCALARS.references_max or self.newest else None
        if found is None and self.newest:
            found = self._edges_of(numbers[-SCALARS.references_max :])
        if found is None:  # One of them is a hub, or each is known well.
            alone = targets if len(targets) > 1 else []
            return [item for one in alone for item in self.arriving({one}, said)]
        return valid_references(found, moment)

    def _saying(self, rows: Collection[int], said: tuple[str, ...]) -> dict[int, ArrivingEdges]:
        """Return the present edges into each node whose metadata hold a text."""
        kept, last = self._kept, self._reader.head().edges
        found = {row: kept.get((row, said)) or ArrivingEdges() for row in rows}
        behind: dict[int, list[int]] = {}
        for row, edges in found.items():
            if edges.seen < last:
                behind.setdefault(edges.seen, []).append(row)
        for seen, some in behind.items():
            new = self._reader.sweep.saying_of(some, REFERENCES[0], said, seen)
            for row in some:
                numbers = found[row].numbers + array("q", new.get(row, ()))
                found[row].numbers, found[row].seen = numbers, last
        if len(kept) > TARGETS_KEPT:
            kept.clear()
        few = (row for row, it in found.items() if len(it.numbers) <= SCALARS.references_max)
        kept.update(((row, said), found[row]) for row in few)
        return found

    def _edges_of(self, numbers: Sequence[int]) -> list[ReferenceRow]:
        """Return edges of the present by row."""
        if new := [number for number in numbers if number not in self._edges]:
            self._edges.update((item.row, item) for item in self._reader.sweep.references(new))
        return [self._edges[number] for number in numbers]

    def _from_inside(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return edges that come from inside the view, the newest, one more than are read.

        References that a caller cannot see must not make a node a hub for that caller.
        """
        most = SCALARS.references_max + 1
        if len(numbers) < most:
            return numbers
        kept: list[int] = []
        for end in range(len(numbers), 0, -most):
            found = self._edges_of(numbers[max(0, end - most) : end])
            inside = self._inside({item.source for item in found})
            kept[:0] = [item.row for item in found if item.source in inside]
            if len(kept) >= most:
                break
        return kept[-most:]

"""Claim ends: the claims of a draft, what they end, rivals, and what a merge of subjects ends.

    claims of a draft, claims of the same subject and relation so far ──▶ Supersession, …

S1  Only functional claims with a quotation of their text replace others, and only functional claims
    are replaced: a visit to another city ends no earlier visit.
S2  The claims of one relation are one time line. Each ends when the next one begins, whatever the
    order of writing: a claim written late is ended by the claim that follows it in time, and may
    move the end of the claim before it to an earlier time. The later statement follows if its claim
    began later or at the same time. Two exceptions. News: a change within the last month, stated
    after a claim that stated no change, ends that claim at the time of the statement. History: a
    late statement about an earlier time ends at the date of a dated change. A claim that begins in
    the future ends nothing.
S3  A node that says other things, too, is never superseded. Its sentence becomes a `Fact` derived
    from the node, and that fact is superseded (`Standing.apart`). The same applies to every text if
    its two subjects are one only by an accepted merge.

*Rivals* are found without a grammar: two live texts with the same words and another value.

    "The budget is 40k."   ◀──contradicts──   "The budget is 60k."

Neither text says that the other is over, so nothing ends: the two are linked, and recall shows
both. A text is stored in the name index by its opening words, so a look-up costs one SQL statement.

F1  A text is linked with its neighbours in time only. A series of a thousand values has a thousand
    links.
F2  Only texts of one speaker in one world, or in sessions of that world, are compared.

A claim that ends by a merge of two subjects ends as a `Fact`, and the `supersedes` edge names both
subjects (`THROUGH`). The text that states the claim stays as it is: the fact was made for the merge
and quotes the text, so removing fact and edge restores everything. If the claim was a fact of the
extractor, a successor restores it. Claims that exclude each other and have no order in time become
a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

from worlddb.claims.claim import (
    CLAIM_EDGE,
    FACT,
    STANDS_FOR,
    Claim,
    Standing,
    TimeLine,
    replaces,
    tells_change,
)
from worlddb.claims.claim_edges import (
    Stood,
    as_standing_claims,
    claimed,
    functional,
)
from worlddb.index.name_index import STATED, frame_numbers, speaker_name
from worlddb.language.rival_frames import is_rival
from worlddb.language.statement import Statement, statement_of
from worlddb.model.address import Id, trusted_id
from worlddb.model.inputs import to_micros
from worlddb.model.records import Draft, DraftNode, Node, NodeDraft
from worlddb.ontology.edge_types import LESS_TRUSTED
from worlddb.store.interface import Reader
from worlddb.store.rows import BodyRow, EdgeRow
from worlddb.view.visibility import Moment, accepted_class
from worlddb.write.revival import EdgeCopy
from worlddb.write.transaction import Transaction


def claims_of(draft: Draft) -> Iterator[Claim]:
    """Yield the claims of a draft in the order of its edges, without those that `yields` marks."""
    for edge in draft.edges:
        said = claimed(edge.metadata) if edge.type == CLAIM_EDGE else None
        if said is not None and edge.metadata.get("yields") is not True:
            yield Claim(
                fact=edge.source,
                subject=edge.target,
                relation=said.relation,
                value=said.value,
                functional=said.functional,
                evidence=edge.spans,
                was=said.was,
                since=said.since,
                text=said.text,
                vague=said.vague,
            )


# -- what a draft ends -----------------------------------------------------------------------------

NEWS_MAX = timedelta(days=31)
"""A change further in the past is history, not news: "I moved to Oslo in 2010"."""
UNNAMED = frozenset(("user", "human", "me", "assistant", "agent", "bot", "ai", "unknown"))
"""Speakers named by their role: in a world of many people, these mean nobody in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """A claim that ends, the claim that ends it, the time of the end, and the evidence."""

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
    """Return the claims that a draft's claims end, in the order of the draft.

    `ids` are the nodes of the draft by key, as written. The node `spared` is left alone, because
    the caller ends it. Only claims of one subject and relation are compared, each statement of a
    node once, with a bounded number of others (`TimeLine`); so the cost is linear in the text.
    """
    standing: dict[tuple[Id, str], TimeLine] = {}
    for subject, found in stood.claims.items():
        for old in found:
            standing.setdefault((subject, old.relation), TimeLine()).add(old)
    written: set[Id] = set()
    ended: list[Supersession] = []
    for claim in claims:
        new = _as_standing(claim, nodes.get(claim.fact), ids, stood, home, now)
        if new is None or new.began > new.said:
            continue
        others = standing.setdefault((new.subject, new.relation), TimeLine())
        if new.key in others.keys:
            continue
        for number, old in others.replaced_by(new):
            is_later = old.said != new.said or old.carrier not in written
            if old.carrier != spared and _is_quotable(old) and _follows(new, old, is_later):
                end = _ended(old, by=new, evidence=claim.text or claim.evidence[0].text)
                if old.ends is None or end.at < old.ends:
                    ended.append(end)
                    others.end(number, end.at)
        first = follow_up(new, others.later_than(new))
        if first is not None:
            ended.append(first)
            new = replace(new, ends=first.at)
        others.add(new)
        written.add(new.carrier)
    return ended


def follow_up(old: Standing, others: Iterable[Standing]) -> Supersession | None:
    """Return the end of a claim by the first of `others` that follows it; None if none does."""
    following = [one for one in others if _is_quotable(old) and _follows(one, old, False)]
    ends = [_ended(old, by=one, evidence=one.text) for one in following]
    first = min(ends, key=lambda end: (end.at, bytes(end.by.carrier)), default=None)
    return first if first and (old.ends is None or first.at < old.ends) else None


def claims_about(
    reader: Reader, subjects: Collection[int], home: Id, moment: Moment
) -> list[Standing]:
    """Return all functional claims about subjects stated in a world, as one time line."""
    edges = functional(reader.edges_at(sorted(subjects), "in", (CLAIM_EDGE,)))
    return as_standing_claims(reader, edges, home, moment, set)


def _ended(old: Standing, *, by: Standing, evidence: str) -> Supersession:
    at = _ends_at(old, by)
    if by.said < old.said and at < old.valid_from:
        # A late statement about an earlier time: the sentence has ended, but its text is new.
        old = replace(old, apart=True)
    if old.subject != by.subject and not old.of_fact:
        # The subjects are one only by an accepted merge; undoing it must find the text unchanged.
        old = replace(old, apart=True)
    return Supersession(old=old, by=by, at=at, evidence=evidence)


def _is_quotable(old: Standing) -> bool:
    """Return whether the wording of the superseded claim is known."""
    return bool(old.text) or not old.apart


def _follows(new: Standing, old: Standing, written_later: bool) -> bool:
    """Return whether a claim comes after another on the time line and replaces it."""
    if new.carrier == old.carrier or not replaces(new, old):
        return False
    if new.said > old.said:
        return new.began >= old.began or _is_news(new, old)
    if new.said < old.said:
        return old.began < new.began < new.said  # The text of `new` dates the change.
    return new.began > old.began or (written_later and new.began == old.began)


def _is_news(new: Standing, old: Standing) -> bool:
    """Return whether a claim reports a change that the earlier statement could not know yet.

    "I moved yesterday", said an hour after "I live in Rome"; but not after "I moved to Rome".
    """
    state = old.began == old.said and not tells_change(old.text)
    return state and new.said > old.began and new.said - new.began <= NEWS_MAX


def _ends_at(old: Standing, by: Standing) -> datetime:
    """Return when a claim ends that another one follows: never before its node began."""
    begins = old.began if old.apart or by.said < old.said else old.valid_from
    return by.began if by.began >= begins else max(by.said, begins)


def _as_standing(
    claim: Claim,
    node: DraftNode | None,
    ids: Mapping[str, Id],
    stood: Stood,
    home: Id,
    now: datetime,
) -> Standing | None:
    """Return a drafted claim as a `Standing`; None if the node that states it has ended."""
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
        of_fact=type_ == FACT,
    )


# -- rivals ----------------------------------------------------------------------------------------

FOUND_MAX = 8  # texts of one key that are compared, newest first; the neighbours are among them
REASON = "the same words with another value"


class Rivals(NamedTuple):
    """Two texts of one frame, each a drafted node by key or a node of the store by id."""

    newer: str | Id
    older: str | Id


class _FramedText(NamedTuple):
    """A text with a statement, and when it was said."""

    text: str | Id
    said: Statement
    at: tuple[int, int]
    keys: frozenset[int]


_time_of = attrgetter("at")


def rivals(
    reader: Reader,
    nodes: Sequence[DraftNode],
    known: Mapping[str, Id],
    world: int,
    now: int,
    keep: Callable[[Sequence[BodyRow]], set[int]],
) -> list[Rivals]:
    """Return the rivals of drafted texts, among themselves and with texts of a world.

    `known` are the drafted nodes that are in the store already. `keep` returns the rows of nodes
    that are live and that the caller may see.
    """
    drafted = list(_drafted(nodes, known, world, now))
    keys = sorted({key for one in drafted for key in one.keys})
    if not keys:
        return []
    rows_of = reader.lookups.find(keys, FOUND_MAX)
    there: dict[int, list[_FramedText]] = {}
    rows = {row for found in rows_of.values() for row in found}
    bodies = list(reader.bodies(sorted(rows))) if rows else []
    kept = keep(bodies) if bodies else set()
    for body in bodies:
        said = statement_of(body.content) if body.row in kept else None
        if said is not None:
            stated = _FramedText(trusted_id(body.id), said, (body.valid_from, 0), frozenset())
            there[body.row] = [stated]
    by_key = {
        key: [one for row in found for one in there.get(row, ())] for key, found in rows_of.items()
    }
    pairs: dict[Rivals, None] = {}
    for one in drafted:
        others = {other.text: other for key in sorted(one.keys) for other in by_key[key]}
        pairs.update(dict.fromkeys(_neighbours(one, others.values())))
        for key in one.keys:
            by_key[key].append(one)
    return list(pairs)


def _drafted(
    nodes: Iterable[DraftNode], known: Collection[str], world: int, now: int
) -> Iterable[_FramedText]:
    for number, node in enumerate(nodes):
        if node.type not in STATED or node.key in known or node.resolvable:
            continue
        said = statement_of(node.content)
        if said is not None:
            begins = node.valid_from or node.created_at
            at = now if begins is None else to_micros(begins, "valid_from")
            keys = frame_numbers(node.content, speaker_name(node.type, node.name), world)
            yield _FramedText(node.key, said, (at, number + 1), frozenset(keys))


def _neighbours(one: _FramedText, others: Iterable[_FramedText]) -> Iterable[Rivals]:
    """Yield the last rival before a text, and the first one after it."""
    found = sorted(others, key=_time_of)
    for other in reversed(found):
        if other.at < one.at and is_rival(other.said, one.said):
            yield Rivals(one.text, other.text)
            break
    for other in found:
        if other.at > one.at and is_rival(one.said, other.said):
            yield Rivals(other.text, one.text)
            break


# -- merges of subjects --------------------------------------------------------------------------

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
    """Return the ends and conflicts that exist only because of the merge by a `same_as` edge."""
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

"""Hits: what recall returns, and how a ranking becomes hits that explain themselves.

A hit may be *outdated* in part. A longer text stays when one sentence of it is replaced; that
sentence has ended as a fact that was derived from the text. The text is still found, but what
replaced the sentence comes before it. A summary says what its details said: once one of them has
ended, the summary is left out until it is made anew.

O1  What was replaced stays outdated, whatever becomes of its replacement: that may be replaced,
    amended, retired or erased in turn. It is no longer outdated once it was said again and stands.
O2  A hit names what says it now as its replacement, if that can be seen from here; else nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from worlddb.claims.claim import CLAIM_EDGE, Claimed, value_key
from worlddb.claims.claim_edges import claimed, stated
from worlddb.language.snippet import Snippet, snippet
from worlddb.model.address import Id
from worlddb.model.inputs import Plain
from worlddb.model.records import (
    ORDERED,
    Conflict,
    Edge,
    Node,
    node_line,
    origin_note,
    predecessor_notes,
)
from worlddb.model.text_safety import FULL, TRUSTS, least_trusted, unconfirmed
from worlddb.recall.activation import PathStep, paths_of
from worlddb.recall.confidence import (
    HITS_READ,
    AskedWords,
    HitSignals,
    among_answers,
    confidences,
    signals_of,
    with_recency,
)
from worlddb.recall.hit_order import HITS_COMPARED_MAX, Ranking, newer_first
from worlddb.store.interface import Reader
from worlddb.view.node_filters import TrustLevels
from worlddb.view.summary_view import FACT, SUMMARY, stale_summaries, world_summaries
from worlddb.view.visibility import Moment, View, accepted_class, conflict_values, open_conflicts

CHARS_PER_TOKEN = 4
"""Characters per token of English text, on average over the tokenizers of today's models."""
SPARE_HITS = 10
"""Hits that are read beyond those asked for: stale summaries among them are left out."""


def tokens_of(text: str) -> int:
    """Return about how many tokens a model counts in a text.

    A quarter of its characters; a sign outside ASCII takes one more for each further byte.
    """
    further = 0 if text.isascii() else len(text.encode("utf-8", "replace")) - len(text)
    return further - (-len(text) // CHARS_PER_TOKEN)


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
    """A sentence of a hit that is no longer so: until when it was, and what replaced it.

    `by` is None if no replacement can be seen from here: it was retired or erased since.
    """

    text: str
    until: datetime | None
    by: Id | None

    @property
    def why(self) -> str:
        """That it is no longer so, and where to look instead."""
        return "no longer so" if self.by is None else f"no longer so, see {self.by.short}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaybeOutdated(Plain):
    """A later memory that may have replaced a hit: which one, and since when it says so."""

    by: Id
    since: datetime

    @property
    def why(self) -> str:
        """That something later says otherwise, and where to look."""
        return f"maybe outdated by {self.by.short} of {self.since:%Y-%m-%d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Plain):
    """A remembered node, its rank in every lane, and what speaks against it.

    `score` is what hits are ordered by, with two exceptions: what replaced a sentence of a hit
    (`outdated`), or may have replaced the hit (`maybe_outdated`), comes before the hit. `weighed`
    has the parts that `score` is the sum of, by the names of `Weights`; `fused` is the reciprocal
    rank fusion of the lanes alone. `path` says how the graph lane came here, from a name in the
    question or from another hit; empty if it did not. `order` are the `precedes` and `causes` edges
    that lead to the node. `summary` is that of a node that is only a name: a session, a topic, a
    person. `trust` is that of the text, the summary's included, by the settings of its scope.
    `confidence` is the probability that the hit holds an answer.
    """

    node: Node
    score: float
    fused: float
    lanes: Mapping[str, LaneRank] = field(default_factory=dict, hash=False)
    weighed: Mapping[str, float] = field(default_factory=dict, hash=False)
    conflicts: tuple[Conflict, ...] = ()
    outdated: tuple[Outdated, ...] = ()
    path: tuple[PathStep, ...] = ()
    maybe_outdated: tuple[MaybeOutdated, ...] = ()
    order: tuple[Edge, ...] = ()
    summary: Node | None = None
    trust: str = "full"
    tokens: int = 0
    confidence: float = 0.0

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
    def origin(self) -> str:
        """Who brought the text in; of several, the one furthest from the user."""
        return least_trusted((*self.node.origins, *(self.summary.origins if self.summary else ())))

    @property
    def said(self) -> str:
        """The text for a prompt; if it is not trusted in full, in quotes with its origin."""
        text = self.node.content or self.node.name
        return text if self.trust == "full" else unconfirmed(self.origin, text)

    @property
    def actor(self) -> str:
        """Who signed the commit that wrote it."""
        return self.node.actor

    @property
    def text(self) -> str:
        """The hit as a line for a prompt: when, what, and what speaks against it."""
        sides = {side for conflict in self.conflicts for side in (conflict.left, conflict.right)}
        order = predecessor_notes(self.order).get(self.node.id, ())
        line = node_line(self.node, sorted(sides - {self.node.id}), order)
        if self.summary is not None:
            line += ": " + " ".join(self.summary.content.split()) + origin_note(self.summary)
        gone = "".join(f" ({old.why}: {old.text})" for old in self.outdated)
        doubts = "".join(f" ({doubt.why})" for doubt in self.maybe_outdated)
        return line + " ".join((gone + doubts).split("\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Plain):
    """The answer to a question: hits, best first.

    `confidence` is the probability that an answer is among the hits (before `min_confidence` leaves
    some out), 0 if nothing was found; `signals` are the numbers behind it, by name. Where a server
    embeds in the background, `unembedded` among them says how many of the newest visible nodes were
    searched without a vector. `receipt` is the signed receipt, if one was asked for.
    """

    question: str
    hits: tuple[Hit, ...] = ()
    confidence: float = 0.0
    signals: Mapping[str, float] = field(default_factory=dict, hash=False)
    receipt: Mapping[str, Any] | None = field(default=None, hash=False)

    def without(self, unembedded: int) -> Recall:
        """Return the same answer, which says how many nodes had no vector yet."""
        if not unembedded:
            return self
        return replace(self, signals={**self.signals, "unembedded": float(unembedded)})

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the hits, best first."""
        return tuple(hit.node for hit in self.hits)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The open conflicts of all hits, each once."""
        return tuple({one.edge: one for hit in self.hits for one in hit.conflicts}.values())

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


def hits_of(
    ranking: Ranking,
    view: View,
    *,
    question: str | None,
    asked: AskedWords,
    k: int,
    max_tokens: int | None,
    explain: bool,
    with_conflicts: bool,
) -> Recall:
    """Return the first `k` of a ranking as hits; with `max_tokens`, those that fit into them.

    With the `question`, later answers to it come before older ones, where hits were weighed.
    """
    rows, order = ranking.rows, ranking.order
    compared = question if ranking.parts and not view.include_ended else None
    looked = len(order) if max_tokens is not None else max(k + SPARE_HITS, HITS_COMPARED_MAX)
    best = list(order[:looked])
    nodes = view.reader.nodes([rows[at] for at in best], view.moment.known)
    outdated, stale = _outdated(view, nodes)
    best = in_order(best, rows, outdated, stale)
    nodes |= view.reader.nodes({rows[at] for at in best} - nodes.keys(), view.moment.known)
    trusts = _trust_levels(view, nodes)
    best, newest, chances = newer_first(best, rows, nodes, compared, trusts)
    newest = {old: new for old, new in newest.items() if old not in outdated}
    summaries = _summaries(view, nodes)
    levels = trusts, _trust_levels(view, summaries)
    tokens = {
        row: tokens_in(node) + (tokens_of(summaries[row].content) if row in summaries else 0)
        for row, node in nodes.items()
    }
    there = [at for at in best if rows[at] in nodes]
    chosen = _fitting(there, rows, tokens, k, max_tokens)
    # The confidence of a hit must not depend on how many are asked for.
    looked_at = _fitting(there, rows, tokens, max(k, HITS_READ), max_tokens)
    looked_at += _older(looked_at, there, rows, chances)
    signals, sure, own, chances = _confidence(ranking, nodes, looked_at, asked, chances)
    doubted = {old: new for old, new in newest.items() if (old, new) in chances}
    ranks, parts = (_numbered(ranking.ranks), ranking.parts) if explain else ({}, {})
    conflicts = _conflicts(view, [rows[at] for at in chosen]) if with_conflicts else {}
    paths = paths_of(view, [rows[at] for at in chosen], ranking.ways, nodes) if explain else {}
    earlier = _order(view, [rows[at] for at in chosen])
    hits = tuple(
        Hit(
            node=nodes[rows[at]],
            score=ranking.scores.get(at, 0.0),
            fused=ranking.fused.get(at, 0.0),
            lanes={
                lane: LaneRank(rank=found[at], score=float(ranking.lanes[lane][at]))
                for lane, found in ranks.items()
                if at in found
            },
            weighed={
                part: float(values[at]) for part, values in parts.items() if at in ranking.scores
            },
            conflicts=tuple(conflicts.get(rows[at], ())),
            outdated=tuple(dict.fromkeys(old.sentence for old in outdated.get(rows[at], ()))),
            path=paths.get(rows[at], ()),
            maybe_outdated=_maybe_outdated(nodes, doubted.get(rows[at])),
            order=tuple(earlier.get(rows[at], ())),
            summary=summaries.get(rows[at]),
            trust=TRUSTS[min(found.get(rows[at], FULL) for found in levels)],
            tokens=tokens[rows[at]],
            confidence=confidence,
        )
        for at, confidence in zip(chosen, own, strict=False)
    )
    signs = signals.whole if explain else {}
    return Recall(question=question or "", hits=hits, confidence=sure, signals=signs)


def _summaries(view: View, nodes: Mapping[int, Node]) -> dict[int, Node]:
    """Return the current summaries of the nodes that are only names."""
    if not any(node.name and not node.content for node in nodes.values()):
        return {}
    return world_summaries(view.reader, nodes, view.moment)


def _trust_levels(view: View, nodes: Mapping[int, Node]) -> dict[int, int]:
    """Return the trust levels of the nodes with an origin; the others have full trust."""
    if not any(node.origins for node in nodes.values()):
        return {}
    levels = TrustLevels(view.reader, view.moment.known)
    return {row: levels.of(node) for row, node in nodes.items() if node.origins}


def _confidence(
    ranking: Ranking,
    nodes: Mapping[int, Node],
    places: Sequence[int],
    asked: AskedWords,
    chances: Mapping[tuple[int, int], float],
) -> tuple[HitSignals, float, list[float], dict[tuple[int, int], float]]:
    """Return the signals of the hits at some places, and the confidence of recall and hits.

    The last value has, by pair, the chance that a later hit replaces an older answer; pairs whose
    older hit is no answer are left out.
    """
    rows = [ranking.rows[at] for at in places]
    signals = _signals(ranking, nodes, rows, places, asked)
    sure, own = confidences(signals)
    answered = among_answers(own, rows, chances)
    return signals, sure, with_recency(own, rows, answered), answered


def _signals(
    ranking: Ranking,
    nodes: Mapping[int, Node],
    rows: Sequence[int],
    places: Sequence[int],
    asked: AskedWords,
) -> HitSignals:
    """Return the signals of the hits at some places."""
    texts = [(nodes[row].name, nodes[row].content) for row in rows]
    noted = ranking.lanes, ranking.stated, ranking.lead, *ranking.senses
    names = [ranking.names.get(row, ()) for row in rows]
    raised = ranking.parts.get("preference", ())
    wishes = [at < len(raised) and bool(raised[at] > 0) for at in places]
    return signals_of(asked, rows, texts, places, *noted, names, wishes)


def _numbered(ranks: Mapping[str, Sequence[int]]) -> dict[str, dict[int, int]]:
    """Return the rank of each position in each lane."""
    return {lane: {at: rank for rank, at in enumerate(it, 1)} for lane, it in ranks.items()}


def _older(
    looked_at: Sequence[int],
    there: Sequence[int],
    rows: Sequence[int],
    chances: Mapping[tuple[int, int], float],
) -> list[int]:
    """Return further positions, up to the last hit that a hit at some positions may replace."""
    first = {rows[at] for at in looked_at}
    older = {old for old, new in chances if new in first}
    last = max((n for n, at in enumerate(there) if rows[at] in older), default=0)
    return [at for at in there[: last + 1] if at not in looked_at]


def _fitting(
    best: Sequence[int],
    rows: Sequence[int],
    tokens: Mapping[int, int],
    k: int,
    max_tokens: int | None,
) -> list[int]:
    """Return the first `k` positions; with `max_tokens`, of those that fit into them together."""
    chosen: list[int] = []
    left = max_tokens
    for at in best:
        if len(chosen) == k:
            break
        if left is not None:
            if tokens[rows[at]] > left:
                continue
            left -= tokens[rows[at]]
        chosen.append(at)
    return chosen


def _maybe_outdated(nodes: Mapping[int, Node], by: int | None) -> tuple[MaybeOutdated, ...]:
    """Return the later memory, given by row, that may have replaced a hit."""
    return () if by is None else (MaybeOutdated(by=nodes[by].id, since=nodes[by].valid_from),)


def _outdated(view: View, nodes: Mapping[int, Node]) -> tuple[dict[int, list[Replaced]], set[int]]:
    """Return the replaced sentences of nodes, and the rows of stale summaries."""
    if not nodes or view.include_ended:
        return {}, set()
    has_summaries = any(node.type == SUMMARY for node in nodes.values())
    stale = stale_summaries(view.reader, nodes, view.moment) if has_summaries else set()
    fresh = nodes.keys() - stale
    return replaced(view.reader, fresh, view.moment, view.keep_world), stale


def _order(view: View, rows: Sequence[int]) -> dict[int, list[Edge]]:
    """Return the visible edges that say what precedes or causes each row."""
    found = view.reader.edges_at(rows, "in", tuple(ORDERED), view.moment.known) if rows else []
    live = [item for item in found if view.moment.shows(item.edge, view.include_ended)]
    seen = view.keep_world({item.source for item in live}) if live else set()
    order: dict[int, list[Edge]] = {}
    for item in live:
        if item.source in seen:
            order.setdefault(item.target, []).append(item.edge)
    return order


def _conflicts(view: View, rows: Sequence[int]) -> dict[int, list[Conflict]]:
    """Return the open conflicts of each row; both sides must be visible from here."""
    found = view.reader.conflicts(rows, view.moment.known)
    if not found:
        return {}
    found = open_conflicts(view.reader, found, view.moment, view.include_ended)
    seen = view.keep_world({side for row in found for side in (row.low, row.high)})
    kept = [row for row in found if {row.low, row.high} <= seen]
    conflicts: dict[int, list[Conflict]] = {}
    for row, value in zip(kept, conflict_values(view.reader, kept), strict=True):
        for side in (row.low, row.high):
            conflicts.setdefault(side, []).append(value)
    return conflicts


Keep = Callable[[Iterable[int]], set[int]]
"""Returns the visible rows among some, whatever their validity."""


class Replaced(NamedTuple):
    """A sentence that has ended, and the row of its replacement, if that can be seen from here."""

    row: int | None
    sentence: Outdated


class _Stated(NamedTuple):
    """A claim that stands, and the row and the node that state it."""

    row: int
    node: Node
    said: Claimed


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
        row_of_best, best = by or (None, None)
        sentence = Outdated(
            text=facts[fact].content, until=facts[fact].valid_to, by=best.id if best else None
        )
        for row in parts[fact]:
            found.setdefault(row, []).append(Replaced(row_of_best, sentence))
    return found


def _best(direct: Mapping[int, Node], standing: Mapping[int, Node]) -> tuple[int, Node] | None:
    """Return the row and node that replace a sentence, the newest if there are several.

    A `direct` successor that is also `standing` comes first, then what stands, then a successor.
    """
    both = {row: node for row, node in direct.items() if row in standing}
    for choice in (both, standing, direct):
        if choice:
            row = max(choice, key=lambda row: (choice[row].created_at, bytes(choice[row].id)))
            return row, choice[row]
    return None


def _said_again(fact: Node, own: Iterable[Claimed], others: Iterable[_Stated]) -> bool:
    """Return whether an ended statement was made again and stands."""
    assert fact.valid_to is not None
    later = [one.said for one in others if one.node.created_at >= fact.valid_to]
    return any(_says(said, mine) for said in later for mine in own)


def _standing(
    reader: Reader, facts: Iterable[int], moment: Moment, keep: Keep
) -> dict[int, tuple[list[Claimed], list[_Stated]]]:
    """Return for each fact its claims, and the standing claims with the same relation.

    Many facts may be about one user, so each subject is read once.
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
        same = accepted_class(reader, [subject], moment, inside=keep) if classes else {subject}
        statements = stated(reader, same, wanted, moment)
        seen = _seen(reader, {item.source for item, _ in statements}, moment, keep)
        stands[subject] = [
            _Stated(item.source, seen[item.source], said)
            for item, said in statements
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
    """Return the nodes among `rows` that hold now and are visible."""
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
    """Return positions with each replacement right before the text that has the old sentence."""
    if not outdated and not stale:
        return list(order)
    position_of = {row: at for at, row in enumerate(rows)}
    kept = [at for at in order if rows[at] not in stale]
    for old in [at for at in kept if rows[at] in outdated]:
        for newer in outdated[rows[old]]:
            better = None if newer.row is None else position_of.get(newer.row)
            if better is None or rows[better] in stale:
                continue
            before = kept.index(old)
            if better not in kept[:before]:
                if better in kept:
                    kept.remove(better)
                kept.insert(before, better)
    return kept

"""Hit order: newer before older answers, whole worlds among the hits, wishes, several questions.

*Recency.* Of two hits that answer the question alike, the later one comes first:

    hits in their order ──▶ pairs of an older and a newer answer ──▶ newer before older, and told so

Two hits answer alike if they are one frame with two values ("The code is 2204", "The code is
7719"; `language/statement.py`), or if the later one likely answers the question anew
(`answer_network.py`), in the company of all hits that are compared. Both stay. The older hit
says which hit may have replaced it, and the later one is as sure as the older one was.

N1  Only texts of one speaker in one place are compared: another user's alarm has another code.
N2  A question for an earlier time ("What was my old code?") is answered in the order of the ranker.
N3  What is more trusted comes before what is less trusted, however late that was said.

*World hits.* A session, a topic or a person is a hit of its own when the whole is what matches. A
node that is only a name leads to answers and is none. But a question may be about the whole: its
composed vector, or the mean of what is inside, is then nearer to the question than the vector of
anything inside. Such a world is put right before the best of what it holds. The hit brings the
summary of the world along, if it has one that still holds.

*Wishes.* "Always give sources when I ask for facts." shares hardly a word with the questions it is
meant for. So if a question asks for advice or a task (`ranking_features.wants_advice`), the asker's
texts that state a preference or a standing instruction are looked up. The nearest preferences get
at least ranks 3 and 7, and the nearest instructions ranks 4 and 5. The forms are data, by language
(`preference_words.txt`). An instruction is a sentence that begins with its order; a preference is a
phrase anywhere in a text.

*Several questions* in one text take turns (`taking_turns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import cache, lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.index.held_world import HeldWorld, VectorRows
from worlddb.index.vectors import Vectors
from worlddb.language.ranking_features import PREFERENCE_LIST, phrase_pattern, plain_text
from worlddb.language.rival_frames import is_rival
from worlddb.language.statement import Statement, asked_of, statement_of
from worlddb.language.text_tokens import words
from worlddb.language.word_forms import sections
from worlddb.model.records import Node
from worlddb.model.text_safety import FULL
from worlddb.recall.answer_network import enough, new_answers
from worlddb.recall.ranker import Candidates, Scores, Weighed, standing_out
from worlddb.store.rows import ROOT_ROW
from worlddb.view.summary_view import SUMMARY, world_summaries
from worlddb.view.visibility import MEMBERSHIP, View, is_name_only

if TYPE_CHECKING:
    from worlddb.recall.activation import Way
    from worlddb.recall.confidence import Lacking

HITS_COMPARED_MAX = 20  # An update may rank low; with 40, none more is found (blind pairs).
ANSWERS_MAX = 3
"""Hits taken for answers, which a later one in other words may replace. With more, fewer updates
come first, and first places are lost to what is no update (LoCoMo, MemDaily)."""
RIVALS_KEPT = 16_384  # pairs of texts cached: a caller asks again of the same few hits
TRUSTED_ENOUGH = 0.3
"""How likely a more trusted answer is one anew, to come first: if it is not, little is lost."""
TURN = "Turn"
SAID = frozenset({"Memory", TURN, "Fact"})
"""Types of nodes that state something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Candidates in their order, and what explains it; by position in `rows` where not said.

    `scores` are what `order` follows, `parts` what these are the sum of, by name. `ranks` are the
    positions that each lane found, best first, and `lanes` the scores of each lane. `ways` are how
    the graph lane came to a node, by row, and `names` the names in the question that lead straight
    there. `stated` marks what states exactly what is asked for.
    `lead` is that of `Weighed`, `senses` are those of the embedder (`Vectors`).
    """

    order: Sequence[int]
    rows: Sequence[int]
    scores: Mapping[int, float]
    fused: Mapping[int, float]
    ranks: Mapping[str, Sequence[int]]
    lanes: Mapping[str, Scores]
    parts: Mapping[str, Scores]
    ways: Mapping[int, Way] = field(default_factory=dict)
    names: Mapping[int, Set[str]] = field(default_factory=dict)
    stated: NDArray[np.bool_] | None = None
    lead: float | None = None
    senses: tuple[Lacking | None, float | None] = (None, None)


def names_ranking(rows: Sequence[int], found: Candidates) -> Ranking:
    """Return the ranking of texts by names alone; of equal scores the newest text comes first."""
    gains, starts = found.lanes["graph"], found.starts
    reached = np.flatnonzero(gains > 0).tolist()
    order = sorted(reached, key=lambda at: (-gains[at], -starts[at], -rows[at]))
    scores = {at: float(gains[at]) for at in order}
    return Ranking(
        order=order,
        rows=rows,
        scores=scores,
        fused=scores,
        ranks={"graph": order},
        lanes=found.explained,
        parts={},
        ways={} if found.graph is None else found.graph.ways,
    )


class _Answer(NamedTuple):
    """A hit that states something: where in the order, since when, who says it where, and what.

    `trust` is the level of the node.
    """

    at: int
    since: tuple[datetime, int]
    speaker: tuple[object, ...]
    text: str
    said: Statement
    trust: int


class Recency(NamedTuple):
    """Positions with newer answers before older ones, and which row may have replaced which.

    `newest` is by the older row; `chances` are by the older and the newer row.
    """

    order: list[int]
    newest: dict[int, int]
    chances: dict[tuple[int, int], float]


def newer_first(
    order: Sequence[int],
    rows: Sequence[int],
    nodes: Mapping[int, Node],
    question: str | None,
    trust: Mapping[int, int],
) -> Recency:
    """Return the order with newer answers before older ones, and the newest rival of each older.

    `order` are positions in `rows`, best first; without a question it stays. `trust` is by row,
    without the rows that are trusted in full.
    """
    found = Recency(list(order), {}, {})
    if question is None or asked_of(question) is None or len(order) < 2:
        return found
    ranked = _answers(order[:HITS_COMPARED_MAX], rows, nodes, trust)
    if len(ranked) < 2:
        return found
    chances = _replacements(question, ranked)
    place = found.order
    for new in sorted(ranked, key=lambda it: (it.trust, it.since)):
        older = [old for old in ranked if (old.at, new.at) in chances]
        if not older:
            continue
        for old in older:
            if old.since < new.since:
                found.newest[rows[old.at]] = rows[new.at]
            found.chances[rows[old.at], rows[new.at]] = chances[old.at, new.at]
        first = min(place.index(old.at) for old in older)
        if place.index(new.at) > first:
            place.remove(new.at)
            place.insert(first, new.at)
    return found


def _answers(
    positions: Sequence[int],
    rows: Sequence[int],
    nodes: Mapping[int, Node],
    trust: Mapping[int, int],
) -> list[_Answer]:
    answers = []
    for at in positions:
        node = nodes.get(rows[at])
        said = statement_of(node.content) if node is not None and node.type in SAID else None
        if node is not None and said is not None:
            # Turns of several chats are compared if one person says them.
            speaker = (TURN, node.name) if node.type == TURN else (node.parent,)
            since = node.valid_from, rows[at]
            level = trust.get(rows[at], FULL)
            answers.append(_Answer(at, since, speaker, node.content, said, level))
    return answers


def _age(answer: _Answer) -> tuple[int, tuple[datetime, int]]:
    """Return what a later answer has more of: trust, then time."""
    return answer.trust, answer.since


@lru_cache(RIVALS_KEPT)
def _are_rivals(old: str, new: str) -> bool:
    """Return whether two statements have one frame and two values, of which one can be true."""
    one, other = statement_of(old), statement_of(new)
    return one is not None and other is not None and is_rival(one, other)


def _alike(ranked: Sequence[_Answer], part: slice) -> dict[tuple[str, ...], list[int]]:
    """Return the answers with the same words in some part, as rivals open or close alike."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number, answer in enumerate(ranked):
        found.setdefault(answer.said.words[part], []).append(number)
    return found


def _replacements(question: str, ranked: Sequence[_Answer]) -> dict[tuple[int, int], float]:
    """Return which answer may have replaced which, by position, and how likely that is.

    What is one frame is compared among all; other words only with the first few, which are taken
    for answers. Of many pairs of turns some always look like an update, so a turn in other words
    must itself be among the first few; a memory may rank lower.
    """
    found: dict[tuple[int, int], float] = {}
    pairs: list[tuple[int, int]] = []
    speakers = [it.speaker for it in ranked]
    places = {key: place for place, key in enumerate(sorted({_age(it) for it in ranked}))}
    ages = [places[_age(it)] for it in ranked]
    opening, closing = _alike(ranked, slice(2)), _alike(ranked, slice(-2, None))
    for number, old in enumerate(ranked):
        age, speaker = ages[number], speakers[number]
        alike = {*opening[old.said.words[:2]], *closing[old.said.words[-2:]]}
        for place in range(len(ranked)) if number < ANSWERS_MAX else sorted(alike):
            new = ranked[place]
            if ages[place] <= age or speakers[place] != speaker or new.text == old.text:
                continue
            may_be = place in alike and old.said.may_be_rival(new.said)
            if may_be and _are_rivals(old.text, new.text):
                found[old.at, new.at] = 1.0
            elif number < ANSWERS_MAX and (place < ANSWERS_MAX or speaker[0] != TURN):
                pairs.append((number, place))
    chances = new_answers(question, [it.text for it in ranked], pairs) if pairs else {}
    best: dict[int, float] = {}
    for (number, _), chance in chances.items():
        best[number] = max(chance, best.get(number, 0.0))
    for (number, place), chance in chances.items():
        old, new = ranked[number], ranked[place]
        least = enough() if new.trust == old.trust else TRUSTED_ENOUGH
        if chance >= least and chance == best[number]:
            found[old.at, new.at] = chance
    return found


WORLDS_MAX = 2
"""Worlds among the hits of one recall: each takes the place of a text, and the rest is inside."""
MEMBERS_MAX = 1_000
"""Nodes inside a world that is read from the store: a larger one is too much to be one hit."""
INSIDE_MIN = 2  # A world of one text says no more than the text.
NEVER_HITS = frozenset({"Scope", "Date", "Key"})
"""Types that hold or mark other nodes, and that nobody asks for."""


class WorldMembers(NamedTuple):
    """What is inside the worlds that hold the first hits, and how vectors of rows are read.

    Only worlds that are only a name: others are hits by themselves.
    """

    inside: Mapping[int, Sequence[int]]
    vectors: Callable[[list[int]], NDArray[np.float32]]


def with_worlds(
    ranking: Ranking, worlds: WorldMembers, vector: NDArray[np.float32], view: View
) -> Ranking:
    """Return a ranking with the worlds that match better than anything inside them.

    A name like "chat 86ee" says nothing: by the mean of what is inside, only a world with a summary
    to tell is a hit.
    """
    if not worlds.inside:
        return ranking
    nodes = view.reader.nodes(worlds.inside, view.moment.known)
    told = world_summaries(view.reader, nodes, view.moment)
    better = []
    for row, members in sorted(worlds.inside.items()):
        matrix = worlds.vectors([row, *members])
        whole, *parts = VectorRows(matrix, np.arange(len(matrix))).of(vector).tolist()
        mean = matrix[1:].mean(axis=0)
        length = float(np.linalg.norm(mean))
        near = max(whole, float(mean @ vector) / length if length and row in told else 0.0)
        if near > max(0.0, *parts):
            better.append((-near, row))
    for _, row in sorted(better)[:WORLDS_MAX]:
        ranking = _with_world(ranking, row, worlds.inside[row])
    return ranking


def held_members(
    interior: HeldWorld, view: View, matrix: NDArray[np.float32], rows: Sequence[int]
) -> WorldMembers:
    """Return the worlds that hold some rows of an interior that is held in memory."""
    place = interior.place
    around = {interior.parents[place[row]] for row in rows}
    if interior.nests:
        around |= _holders(view, rows)
    doors = {row for row in around & place.keys() if interior.doors[place[row]]}
    named = {row for row in doors if interior.types[place[row]] not in NEVER_HITS}
    found: dict[int, list[int]] = {row: [] for row in (view.keep_time_of(named) if named else ())}
    if found:
        live = interior.seen(view.moment, ended=view.include_ended) & interior.are_answers()
        every = np.frombuffer(interior.parents, dtype=np.int64)
        for row in found:
            held = np.flatnonzero((every == row) & live).tolist()
            found[row] = [interior.rows[at] for at in held if interior.types[at] != SUMMARY]
        for row, member in _members(view, found):
            at = place.get(member)
            if at is not None and live[at] and member not in found[row]:
                found[row].append(member)
    return WorldMembers(_large_enough(found), lambda some: matrix[[place[row] for row in some]])


def stored_members(view: View, vectors: Vectors, rows: Sequence[int]) -> WorldMembers:
    """Return the worlds that hold some rows, read from the store."""
    found: dict[int, list[int]] = {row: [] for row in _named_worlds(view, rows)}
    reader, known = view.reader, view.moment.known
    for row in found:
        found[row] = reader.children(row, known, limit=MEMBERS_MAX + 1)
    for row, member in _members(view, found):
        found[row].append(member)
    small = {row: set(it) for row, it in found.items() if len(it) <= MEMBERS_MAX}
    kept = view.keep(set().union(*small.values())) if small else set()
    bodies = reader.bodies(sorted(kept), known)
    said = {body.row for body in bodies if body.type != SUMMARY}
    inside = {row: sorted(it & said) for row, it in small.items()}
    return WorldMembers(_large_enough(inside), lambda some: vectors.load(reader, some))


def _large_enough(inside: Mapping[int, list[int]]) -> dict[int, list[int]]:
    return {row: members for row, members in inside.items() if len(members) >= INSIDE_MIN}


def _members(view: View, worlds: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the worlds and their members at the moment."""
    rows = sorted(worlds)
    for item in view.reader.edges_at(rows, "out", MEMBERSHIP, view.moment.known) if rows else ():
        if view.moment.holds(item.edge):
            yield item.source, item.target


def _named_worlds(view: View, rows: Sequence[int]) -> set[int]:
    """Return the worlds around some rows that are only a name and can be seen."""
    reader, moment = view.reader, view.moment
    around = {up for up in reader.parents(rows, moment.known).values() if up is not None}
    holders = (around | _holders(view, rows)) - {ROOT_ROW}
    bodies = reader.bodies(sorted(holders), moment.known)
    named = {body.row for body in bodies if is_name_only(body) and body.type not in NEVER_HITS}
    return view.keep_time_of(named) if named else named


def _holders(view: View, rows: Sequence[int]) -> set[int]:
    """Return the worlds that some rows are members of."""
    found = view.reader.edges_at(rows, "in", MEMBERSHIP, view.moment.known)
    return {item.source for item in found if view.moment.holds(item.edge)}


def _with_world(ranking: Ranking, row: int, inside: Iterable[int]) -> Ranking:
    """Return a ranking with a world before the first of what it holds, and with its score."""
    held = set(inside)
    order = list(ranking.order)
    at = next((at for at, one in enumerate(order) if ranking.rows[one] in held), len(order))
    best = order[at] if at < len(order) else order[-1]
    new = len(ranking.rows)
    order.insert(at, new)
    return replace(
        ranking,
        order=order,
        rows=[*ranking.rows, row],
        scores={**ranking.scores, new: ranking.scores.get(best, 0.0)},
        parts={part: np.append(values, values[best]) for part, values in ranking.parts.items()},
    )


def taking_turns(rankings: Sequence[Ranking]) -> Ranking:
    """Return one ranking in which the hits of several take turns; the first is of the whole.

    A hit has the score by which it got its place, moved so that scores follow the order; the part
    `turn` says how far. Lanes and fused ranks are those of the whole.
    """
    whole, *others = rankings
    if not others:
        return whole
    rows = list(dict.fromkeys(row for ranking in rankings for row in ranking.rows))
    place = {row: at for at, row in enumerate(rows)}
    places = [np.array([place[row] for row in it.rows], dtype=np.intp) for it in rankings]
    names = dict.fromkeys(name for it in rankings for name in it.parts)
    parts = {name: np.zeros(len(rows)) for name in (*names, "turn")}
    scores: dict[int, float] = {}
    levels = [whole.scores[at] for at in whole.order]
    for rank, turn in enumerate(zip_longest(*(it.order for it in rankings))):
        level = levels[rank] if rank < len(levels) else levels[-1] + len(levels) - rank - 1.0
        below = levels[rank + 1] if rank + 1 < len(levels) else level - 1.0
        for number, at in enumerate(turn):
            if at is None or (new := int(places[number][at])) in scores:
                continue
            own = rankings[number]
            scores[new] = level + (below - level) * number / len(rankings)
            for name, values in own.parts.items():
                parts[name][new] = values[at]
            parts["turn"][new] = scores[new] - own.scores[at]
    stated = np.zeros(len(rows), dtype=np.bool_)
    for own, to in zip(rankings, places, strict=True):
        stated[to] |= False if own.stated is None else own.stated

    def lane(name: str) -> Scores:
        values = np.zeros(len(rows))
        for own, to in reversed(list(zip(rankings, places, strict=True))):
            values[to] = own.lanes.get(name, 0.0)
        return values

    return replace(
        whole,
        order=list(scores),
        rows=rows,
        scores=scores,
        fused={int(places[0][at]): value for at, value in whole.fused.items()},
        ranks={name: places[0][list(it)].tolist() for name, it in whole.ranks.items()},
        lanes={name: lane(name) for name in whole.lanes},
        parts=parts,
        ways={row: way for own in reversed(rankings) for row, way in own.ways.items()},
        names={row: names for own in reversed(rankings) for row, names in own.names.items()},
        stated=stated,
    )


_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_LETTERS = re.compile(r"\w")


class PreferenceKind(Enum):
    """What kind of wish a text states."""

    ORDER = "a standing instruction: it holds for whatever it does not exclude"
    PREFERENCE = "a preference: it holds for what it is about"


def preference_in(text: str) -> PreferenceKind | None:
    """Return which kind of wish a text states, if any."""
    plain = plain_text(text)
    found = phrase_pattern("prefers").search(plain)
    if phrase_pattern("orders").search(plain):
        for sentence in _SENTENCE.split(plain):
            opening = _LETTERS.search(sentence)
            if opening and phrase_pattern("orders").match(sentence, opening.start()):
                return PreferenceKind.ORDER
    return PreferenceKind.PREFERENCE if found else None


@cache
def preference_signs() -> frozenset[str]:
    """Return tokens; a text with a preference has at least one of them, whatever its language."""
    found = set()
    for name, rows in sections("language", PREFERENCE_LIST).items():
        code, _, part = name.partition(" ")
        if part == "signs":
            said = [word for row in rows for word in row]
            # Of a script without spaces the pair of signs that a word begins with is enough.
            found |= {
                words(word)[1 if not word.isascii() and len(words(word)) > 1 else 0]
                for word in said
            }
            if code in ("de", "es", "fr"):
                found |= {words(word, code)[0] for word in said}
    return frozenset(found)


PLACES = {
    PreferenceKind.PREFERENCE: ((2, 0.5), (6, 0.5)),
    PreferenceKind.ORDER: ((3, -1.0), (4, -0.5)),
}
"""Where wishes go at the latest, counted from 0, and how near they must be: the two best hits stay
first. Nearness is in standard deviations from the mean. A preference that is farther has another
topic. A standing instruction seldom has the words of a task ("format code"), and there are few."""
READ_MAX = 60  # texts with a sign of a preference that are read, the nearest to the question first
COMPANY = 50  # candidates assumed at least: among three, one always stands out

Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""Reads the contents at some places."""


def with_preferences(
    weighed: Weighed, found: Candidates, signed: NDArray[np.bool_] | None, texts: Texts, asker: str
) -> Weighed:
    """Return the scores with the nearest preferences lifted.

    `signed` marks the candidates with a sign of a preference, if they are known.
    """
    near = _nearness(found)
    own = np.array([speaker in ("", asker.casefold()) for speaker in found.speakers])[found.spoken]
    likely = np.flatnonzero(own & (True if signed is None else signed))
    likely = likely[np.argsort(-near[likely], kind="stable")][:READ_MAX]
    wanted = _chosen(near, texts(likely.tolist()), likely.tolist())
    if not wanted:
        return weighed
    lift = np.zeros(len(near))
    others = np.sort(np.delete(weighed.scores, list(wanted.values())))[::-1]
    for number, (place, at) in enumerate(sorted(wanted.items())):
        before = place - number  # Of the others so many stay before it.
        if before < len(others):
            above = others[before - 1] if before else others[0] + 1.0
            lift[at] = max(0.0, (above + others[before]) / 2 - weighed.scores[at])
    parts = {**weighed.parts, "preference": lift}
    return weighed._replace(scores=weighed.scores + lift, parts=parts)


def _chosen(near: Scores, texts: Mapping[int, str], likely: Sequence[int]) -> dict[int, int]:
    """Return which candidate gets each of the places, the nearest first."""
    left = {kind: list(places) for kind, places in PLACES.items()}
    found: dict[int, int] = {}
    for at in likely:
        kind = preference_in(texts.get(at, ""))
        if kind is not None and left[kind] and near[at] > left[kind][0][1]:
            found[left[kind].pop(0)[0]] = at
    return found


def _nearness(found: Candidates) -> Scores:
    """Return how far each candidate stands out by meaning and by words."""
    lanes = [found.lanes[name] for name in ("vector", "text") if name in found.lanes]
    if not lanes:
        return np.zeros(len(found.parents))
    near: Scores = np.mean([standing_out(lane, 0.0, COMPANY) for lane in lanes], axis=0)
    return near

"""Asking: a question with its options, checked, and how lanes are run and fused for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worlddb.errors import InvalidInputError
from worlddb.index.held_world import (
    HeldWorld,
    Scores,
    VectorRows,
    forms_of,
    ranked,
    speaker_of,
    text_scores,
)
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.search import Search
from worlddb.index.vectors import Tokens
from worlddb.language.question_wording import question_parts
from worlddb.language.text_tokens import asked
from worlddb.model.address import Id
from worlddb.model.inputs import (
    Instant,
    check_whole,
    check_words,
    encode_text,
    from_micros,
    to_micros,
)
from worlddb.model.records import NOW, AsOf, Conflict, Node, Query
from worlddb.ontology.registry import Registry
from worlddb.recall.hits import (
    Hit,
    LaneRank,
    Recall,
    Replaced,
    in_order,
    replaced,
    stale_summaries,
    tokens_in,
)
from worlddb.recall.lanes import Closely, claimed_places, graph_scores, store_graph
from worlddb.recall.ranker import (
    Candidates,
    Weights,
    check_weight,
    turns_before,
    weigh,
    with_retention,
)
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW
from worlddb.view.equivalence import conflict_values
from worlddb.view.lookup import find
from worlddb.view.visibility import View, moment_of, rewrite, shows_ended

Worlds = bytes | str | Sequence[bytes | str]
LANES = ("text", "vector", "graph")
QUESTION_BYTES_MAX = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How lanes are run and fused.

    `weights` names the lanes that run and how much each counts; `depth` is how many nodes each may
    rank; `c` is the constant of reciprocal rank fusion. `weighing` says how the hits are ordered at
    last; without it, by the fused ranks alone.
    """

    c: int = SCALARS.fusion_c
    depth: int = SCALARS.lane_depth
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(LANES, 1.0))
    weighing: Weights | None = field(default_factory=Weights)

    def __post_init__(self) -> None:
        check_whole(self.c, "c", 0)
        check_whole(self.depth, "depth", 1)
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise InvalidInputError(f"weights: give some of {', '.join(LANES)} a number")
        for lane, weight in self.weights.items():
            if lane not in LANES:
                raise InvalidInputError(f"unknown lane {lane!r}; use {', '.join(LANES)}")
            check_weight(weight, lane)
        if self.weighing is not None and not isinstance(self.weighing, Weights):
            raise InvalidInputError(
                f"weighing: give worlddb.Weights(…) or None, not {self.weighing!r}"
            )


DEFAULT_SETTINGS = RecallSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A checked question, as the faces give it."""

    text: str
    k: int = 10
    max_tokens: int | None = None
    as_of: AsOf = NOW
    types: tuple[str, ...] | None = None
    include_superseded: bool = False
    explain: bool = True
    at: Instant | None = None
    settings: RecallSettings = DEFAULT_SETTINGS


def question_of(text: str, **options: Any) -> Question:
    """Return a question whose every part was checked.

    Raises:
        InvalidInputError: it is empty or too long, or an option is wrong.
    """
    plain = text.replace("\0", " ") if isinstance(text, str) else text
    encode_text(plain, "question", QUESTION_BYTES_MAX)
    if not text.strip():
        raise InvalidInputError("question: give at least one word")
    asked = Question(text=plain, **options)
    check_whole(asked.k, "k", 1)
    if asked.max_tokens is not None:
        check_whole(asked.max_tokens, "max_tokens", 1)
    if asked.at is not None:
        to_micros(asked.at, "at")
    if not isinstance(asked.settings, RecallSettings):
        raise InvalidInputError(f"settings: give worlddb.RecallSettings(…), not {asked.settings!r}")
    return asked


# Recall: the life of a question. Every lane ranks what can be seen, ranks are fused, hits explain.
#
# question ──▶ interior ──▶ text, vector, graph lanes ──▶ fused by rank ──▶ hits
#
# No lane is chosen by the kind of question: each ranks its best, and agreement wins.


SKIPPED_TIMES = 4
SPARE = 10
"""How many more hits are looked at than are asked for: summaries among them may be stale."""


class Recaller:
    """Answers one question on one snapshot."""

    def __init__(
        self,
        search: Search,
        view: View,
        query: Query,
        question: Question,
        tokens: Tokens | None = None,
    ) -> None:
        self.tokens = tokens
        self.search = search
        self.view = view
        self.reader = view.reader
        self.moment = view.moment
        self.query = query
        self.question = question

    def answer(self, vector: NDArray[np.float32] | None) -> Recall:
        """Run the lanes over what can be seen, fuse their ranks, weigh, and explain."""
        allowed = self._narrow()
        view = self.view
        with self.search.interior(self.reader, view.worlds, self.moment, view.members) as interior:
            if interior is None:
                rows, ids, found = self._wide_candidates(vector)
            else:
                vector = self._drawn(interior, vector)
                rows, ids, found = self._candidates(interior, vector, allowed)
            if not rows or not found.lanes:
                return Recall(question=self.question.text)
            depth = self.question.settings.depth
            ranks = {lane: ranked(scores, ids, depth) for lane, scores in found.lanes.items()}
            fused = fuse(ranks, self.question.settings)
            weighing = self.question.settings.weighing
            found = with_retention(found, self.reader, rows, self.moment, weighing)
            if found.retained is not None:
                ranks["retention"] = ranked(found.retained, ids, len(ids))
            order, scores, parts = self._ordered(ids, found, vector, fused)
        return self._recall(order, rows, scores, fused, ranks, found.explained, parts)

    def _ordered(
        self,
        ids: Sequence[bytes],
        found: Candidates,
        vector: NDArray[np.float32] | None,
        fused: Mapping[int, float],
    ) -> tuple[list[int], Mapping[int, float], Mapping[str, Scores]]:
        """Return the places of candidates, best first, the scores that say so, and their parts."""
        settings = self.question.settings
        if settings.weighing is not None:
            weighed = weigh(found, self.question.text, vector, self._asked_at(), settings.weighing)
            matched = weighed.matched(found.lanes)
            # Above zero, as `ranked` wants it; the order is the same.
            raised = np.where(matched, weighed.scores - weighed.scores.min() + 1.0, 0.0)
            order = ranked(raised, ids, self._most())
            return order, {place: float(weighed.scores[place]) for place in order}, weighed.parts
        return sorted(fused, key=lambda place: (-fused[place], ids[place])), fused, {}

    def _most(self) -> int:
        """Return how many hits to order: some more than asked for, because some are left out."""
        k = self.question.k
        if self.question.max_tokens is None:
            return k + SPARE
        return SKIPPED_TIMES * k + self.question.settings.depth

    def _asked_at(self) -> datetime:
        """Return when the question is asked, for "last week" and the like."""
        if self.question.at is not None:
            return from_micros(to_micros(self.question.at, "at"))
        return self.moment.valid or self.moment.now

    def _drawn(
        self, interior: HeldWorld, vector: NDArray[np.float32] | None
    ) -> NDArray[np.float32] | None:
        """Return the question's vector, its words weighed by how rare they are here, if it can."""
        if vector is None:
            return None
        rarity, top = interior.text.rarity, interior.text.rarity_max
        return self.search.vectors().ask_weighed(
            question_parts(
                self.question.text,
                lambda word: rarity(word) or top,
                top,
                frame_weight=SCALARS.frame_weight,
                rarity_power=SCALARS.rarity_power,
            ),
            vector,
        )

    def _narrow(self) -> list[NDArray[np.int64] | None]:
        """Look inside the smallest group of worlds first; return the rows inside the others.

        Done before the interior is held: two threads must not wait for each other's.
        """
        if not self.view.within:
            return []
        groups = (self.view.worlds, *self.view.within)
        rows = [self._rows_inside(group) for group in groups]
        sizes = [np.inf if found is None else len(found) for found in rows]
        first = int(np.argmin(sizes))
        self.view = self.view.beginning_with(first)
        return [*rows[:first], *rows[first + 1 :]]

    def _rows_inside(self, worlds: Sequence[int]) -> NDArray[np.int64] | None:
        """Return the rows inside any of `worlds`; None if they are too many to be held."""
        members = self.view.members
        with self.search.interior(self.reader, worlds, self.moment, members) as interior:
            return None if interior is None else np.array(interior.rows, dtype=np.int64)

    def _closely(self, rows: Sequence[int]) -> Closely | None:
        """Return what reads candidates word by word, if the embedder can."""
        if self.tokens is None:
            return None
        return Closely(self.tokens, self.reader, self.search.vectors(), rows)

    def _candidates(
        self,
        interior: HeldWorld,
        vector: NDArray[np.float32] | None,
        allowed: Sequence[NDArray[np.int64] | None],
    ) -> tuple[list[int], list[bytes], Candidates]:
        """Score everything in an interior that is held in memory."""
        view, text, settings = self.view, self.question.text, self.question.settings
        weights = settings.weights
        seen = interior.seen(self.moment, ended=view.ended, types=view.types)
        seen &= interior.are_answers(doors=view.types is not None)
        for group, rows_inside in zip(view.within, allowed, strict=True):
            if rows_inside is None:
                kept = view.keep_inside(set(interior.rows), group)
                rows_inside = np.fromiter(kept, np.int64, len(kept))
            seen &= np.isin(np.frombuffer(interior.rows, dtype=np.int64), rows_inside)
        places = np.flatnonzero(seen)
        lanes: dict[str, Scores] = {}
        cosines = None
        if weights.get("text"):
            lanes["text"] = text_scores(interior, text)[places]
        if vector is not None:
            cosines = VectorRows(interior.vectors(self.reader, self.search.vectors()), places)
            lanes["vector"] = cosines.of(vector)
        claims: list[int] = []
        if weights.get("graph"):
            classes = self.query.follows_classes
            asker = Weights().asker if settings.weighing is None else settings.weighing.asker
            claims = claimed_places(interior, self.reader, self.moment, text, asker, classes)
            lanes["graph"] = graph_scores(
                interior, self.reader, self.moment, text, classes, seen, claims
            )[places]
        chosen = places.tolist()
        rows = [interior.rows[place] for place in chosen]
        parents = interior.chosen(interior.parents, places)
        spoken = interior.chosen(interior.spoken, places)
        found = Candidates(
            lanes=lanes,
            cosines=cosines,
            closely=self._closely(rows),
            parents=parents,
            starts=interior.chosen(interior.starts, places),
            speakers=list(interior.speakers),
            spoken=spoken,
            before=turns_before(parents, spoken != interior.speakers.get("", -1)),
            forms=interior.chosen_forms(places),
            claims=np.isin(places, claims) if claims else None,
        )
        return rows, [interior.ids[place] for place in chosen], found

    def _wide_candidates(
        self, vector: NDArray[np.float32] | None
    ) -> tuple[list[int], list[bytes], Candidates]:
        """Gather the best of each lane through the indexes of the whole store."""
        view, text, settings = self.view, self.question.text, self.question.settings
        wide = self.search.wide()
        depth = min(max(settings.depth, self.question.k), self.reader.head().nodes)
        found: dict[str, dict[int, float]] = {}
        if settings.weights.get("text"):
            found["text"] = dict(wide.text(self.reader, asked(text), view.keep, depth))
        if vector is not None:
            nearest = wide.nearest(self.reader, self.search.vectors(), vector, view.keep, depth)
            found["vector"] = dict(nearest)
        if settings.weights.get("graph"):
            classes = self.query.follows_classes
            found["graph"] = dict(store_graph(wide, view, text, classes, depth))
        rows = sorted({row for lane in found.values() for row in lane})
        bodies = list(self.reader.bodies(rows, self.moment.known))
        lanes = {
            lane: np.array([scored.get(row, 0.0) for row in rows]) for lane, scored in found.items()
        }
        cosines = None
        if vector is not None:
            matrix = self.search.vectors().load(self.reader, rows)
            cosines = VectorRows(matrix, np.arange(len(rows)))
            lanes["vector"] = cosines.of(vector)
        speakers = [speaker_of(body) for body in bodies]
        numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(speakers))}
        candidates = Candidates(
            lanes=lanes,
            cosines=cosines,
            closely=self._closely(rows),
            parents=np.array([body.parent or 0 for body in bodies], dtype=np.int64),
            starts=np.array([body.valid_from for body in bodies], dtype=np.int64),
            speakers=list(numbers),
            spoken=np.array([numbers[speaker] for speaker in speakers], dtype=np.int64),
            # Of a conversation only some turns are here: what was said before is not known.
            before=np.full(len(rows), -1, dtype=np.intp),
            forms=forms_of(bodies),
        )
        return rows, [body.id for body in bodies], candidates

    def _recall(
        self,
        order: Sequence[int],
        rows: Sequence[int],
        scores: Mapping[int, float],
        fused: Mapping[int, float],
        ranks: Mapping[str, Sequence[int]],
        lanes: Mapping[str, Scores],
        parts: Mapping[str, Scores],
    ) -> Recall:
        """Return places as hits, as many as were asked for and the budget of tokens allows."""
        question = self.question
        best = list(order) if question.max_tokens is not None else list(order[: question.k + SPARE])
        nodes = self.reader.nodes([rows[place] for place in best], self.moment.known)
        outdated, stale = self._outdated(nodes)
        best = in_order(best, rows, outdated, stale)
        newer = {rows[place] for place in best} - nodes.keys()
        nodes |= self.reader.nodes(newer, self.moment.known)
        places: list[int] = []
        left = question.max_tokens
        for place in best:
            node = nodes.get(rows[place])
            if node is None or len(places) == question.k:
                continue
            if left is not None:
                if tokens_in(node) > left:
                    continue
                left -= tokens_in(node)
            places.append(place)
        shown = {
            lane: {place: rank for rank, place in enumerate(found, 1)}
            for lane, found in ranks.items()
        }
        conflicts = self._conflicts([rows[place] for place in places])
        hits = []
        for place in places:
            explained = {
                lane: LaneRank(rank=found[place], score=float(lanes[lane][place]))
                for lane, found in shown.items()
                if place in found and question.explain
            }
            node = nodes[rows[place]]
            weighed = {part: float(values[place]) for part, values in parts.items()}
            hits.append(
                Hit(
                    node=node,
                    score=scores.get(place, 0.0),
                    fused=fused.get(place, 0.0),
                    lanes=explained,
                    weighed=weighed if question.explain and place in scores else {},
                    conflicts=tuple(conflicts.get(rows[place], ())),
                    outdated=tuple(old.told for old in outdated.get(rows[place], ())),
                    tokens=tokens_in(node),
                )
            )
        return Recall(question=question.text, hits=tuple(hits))

    def _outdated(self, nodes: Mapping[int, Node]) -> tuple[dict[int, list[Replaced]], set[int]]:
        """Return what was replaced in nodes, and the summaries that are not to be shown."""
        if not nodes or self.view.ended:
            return {}, set()
        stale = stale_summaries(self.reader, nodes, self.moment)
        fresh = nodes.keys() - stale
        return replaced(self.reader, fresh, self.moment, self.view.keep_world), stale

    def _conflicts(self, rows: Sequence[int]) -> dict[int, list[Conflict]]:
        """Return the open conflicts of each row; both sides must be visible from here."""
        if not self.query.shows_conflicts:
            return {}
        found = [row for row in self.reader.conflicts(rows, self.moment.known) if row.gone is None]
        sides = {side for row in found for side in (row.low, row.high)}
        seen = self.view.keep_world(sides)
        kept = [row for row in found if {row.low, row.high} <= seen]
        conflicts: dict[int, list[Conflict]] = {}
        for row, value in zip(kept, conflict_values(self.reader, kept), strict=True):
            for side in (row.low, row.high):
                conflicts.setdefault(side, []).append(value)
        return conflicts


def fuse(ranks: Mapping[str, Sequence[int]], settings: RecallSettings) -> dict[int, float]:
    """Return the reciprocal rank fusion of ranked lists."""
    fused: dict[int, float] = {}
    for lane, places in ranks.items():
        weight = settings.weights[lane]
        for rank, place in enumerate(places, 1):
            fused[place] = fused.get(place, 0.0) + weight / (settings.c + rank)
    return fused


def recall(
    store: Store,
    registry: Registry,
    search: Search,
    now: int,
    text: str,
    *,
    scope: Worlds | None,
    within: Sequence[Worlds],
    settings: RecallSettings | None,
    types: Sequence[str] | None,
    **options: Any,
) -> Recall:
    """Answer a question; see `WorldDB.recall`."""
    chosen = None if types is None else check_words(types, "types")
    settings = DEFAULT_SETTINGS if settings is None else settings
    question = question_of(text, types=chosen, settings=settings, **options)
    by_meaning = search.has_vectors and question.settings.weights.get("vector", 0) > 0
    vector = tokens = None
    if by_meaning:
        search.vectors().catch_up()
        vector = search.vectors().ask(question.text)
        if settings.weighing is not None and settings.weighing.late:
            tokens = search.vectors().ask_tokens(question.text)
    with store.read() as reader:
        moment = moment_of(reader, question.as_of, now)
        worlds = [ROOT_ROW] if scope is None else _scopes(reader, scope)
        inner = None if scope is None or len(worlds) > 1 else Id(reader.world(worlds[0]).id)
        query = rewrite(reader, registry, Query(world=inner), moment)
        view = View(
            reader,
            moment,
            worlds=worlds,
            members=query.widens_to_members,
            ended=question.include_superseded or shows_ended(query, moment),
            types=question.types,
            answers=True,
            within=[_scopes(reader, group) for group in within],
        )
        return Recaller(search, view, query, question, tokens).answer(vector)


def _scopes(reader: Reader, scope: Worlds) -> list[int]:
    if not isinstance(scope, Iterable) or isinstance(scope, Mapping):
        raise InvalidInputError(f"scope: give the id of a world, or several, not {scope!r:.100}")
    given = [scope] if isinstance(scope, bytes | str) else list(scope)
    if not given:
        raise InvalidInputError("scope: give a world or several, or leave it out")
    return sorted({find(reader, one, "nodes") for one in given})

"""Recaller: the life of a question, from its options to its hits.

    question ──▶ what can be seen ──▶ lanes ──▶ fused by rank, weighed ──▶ hits

    text     BM25 over names and contents
    vector   cosine of effective vectors
    graph    the names said in the question → their accepted classes → texts about them; what it
             asks about somebody ("Where do I live?") → the claim that states it now; and the best
             texts of all lanes → what they mention → texts about that (`activation`)

No lane is chosen by the kind of question: each lane ranks what it finds, and agreement wins. A
world that fits into memory is scored as a whole (`HeldWorld`); of a larger one, each lane gathers
its best candidates through the indexes of the store (`StoreLanes`). A *position* is the index of a
candidate in the arrays of one question.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worlddb.index.bm25 import SaidWords, SimilarWords, said_words
from worlddb.index.held_world import (
    HeldWorld,
    Scores,
    VectorRows,
    ranked,
    text_cover,
    text_scores,
)
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.search import Search
from worlddb.index.vectors import TokenReader, Tokens
from worlddb.language.ranking_features import asked_years, wants_advice
from worlddb.language.text_tokens import asked
from worlddb.model.conditions import condition_of
from worlddb.model.inputs import check_words, from_micros, to_micros
from worlddb.model.records import Query
from worlddb.model.retention_curve import retention
from worlddb.ontology.registry import Registry
from worlddb.recall.activation import GraphLane, Spreading
from worlddb.recall.confidence import AskedWords
from worlddb.recall.hit_order import (
    HITS_COMPARED_MAX,
    Ranking,
    WorldMembers,
    held_members,
    names_ranking,
    preference_signs,
    stored_members,
    taking_turns,
    with_preferences,
    with_worlds,
)
from worlddb.recall.hits import SPARE_HITS, Recall, hits_of
from worlddb.recall.question import (
    DEFAULT_SETTINGS,
    HeldNames,
    KnownNames,
    Question,
    RecallSettings,
    held_question,
    question_of,
    question_query,
    questions_in,
    seen_question,
    stored_question,
    words_asked,
)
from worlddb.recall.ranker import (
    Candidates,
    Weighed,
    Weights,
    first_of_worlds,
    fuse,
    like_the_best,
    spread,
    turns_before,
    weigh,
)
from worlddb.recall.store_lanes import StoreLanes
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import Moment, View, Worlds, find_worlds

Vector = NDArray[np.float32]
ROWS_AT_ONCE = 1_000  # SQLite takes far more parameters, but memory stays small
SKIPPED_TIMES = 4
"""With a budget of tokens, hits that do not fit are skipped. So this many times `k` are read."""


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
        self.held: Container[int] | None = None
        """The rows inside the worlds that are held in memory, if they are."""
        self._matrix: NDArray[np.float32] | None = None
        """The vectors of the world in memory, once they were read for this question."""

    def answer(
        self, vector: Vector | None, apart: Sequence[tuple[Recaller, Vector | None]] = ()
    ) -> Recall:
        """Run the lanes over the visible nodes, fuse their ranks, weigh and explain the hits.

        `apart` are recallers of the single questions, if the text asks several.
        """
        rows_within = self._narrow()
        view = self.view
        with self.search.interior(self.reader, view.worlds, self.moment, view.members) as interior:
            within = None
            if interior is not None:
                self.held = interior.place
                if vector is not None and view.within:
                    interior.vectors(self.reader, self.search.vectors())  # The worlds keep them.
                interior, within = interior.narrowed(view, rows_within)
            said, vector = self._seen(interior, vector)
            ranking = self._ranking(interior, within, said, vector)
            if ranking is None:
                return self._answered(None)
            if apart:
                others = []
                for recaller, asked in apart:
                    recaller.view = view
                    others.append(
                        recaller._ranking(interior, within, *recaller._seen(interior, asked))
                    )
                ranking = taking_turns([ranking, *(it for it in others if it is not None)])
            is_plain = view.types is None and view.where is None and not self.question.is_names
            if vector is not None and self.question.settings.worlds and is_plain:
                ranking = with_worlds(ranking, self._worlds_around(interior, ranking), vector, view)
            if interior is not None:
                first = [ranking.rows[at] for at in ranking.order]
                said = replace(said, held=interior.saying(said.forms, first))
        return self._answered(ranking, said)

    def _seen(
        self, interior: HeldWorld | None, vector: Vector | None
    ) -> tuple[AskedWords, Vector | None]:
        """Return the words and the vector of the question, weighed by their rarity here."""
        view, text = self.view, self.question.text
        said = words_asked(self.search, view, interior, text or " ".join(self.question.names))
        if interior is None:
            return said, stored_question(self.search, view, text, vector)
        return said, held_question(self.search, interior, text, vector)

    def _ranking(
        self,
        interior: HeldWorld | None,
        within: NDArray[np.bool_] | None,
        said: AskedWords,
        vector: Vector | None,
    ) -> Ranking | None:
        """Return the candidates of the question in their order; None if there are none."""
        text, weighing = self.question.text, self.question.settings.weighing
        if interior is None or within is None:
            lanes = StoreLanes(
                search=self.search,
                view=self.view,
                question=self.question,
                graph=self._graph,
                token_reader=self._token_reader,
            )
            rows, ids, found = lanes.candidates(vector)
        else:
            rows, ids, found = self._candidates(interior, vector, within)
        if not rows or not found.lanes:
            return None
        if self.question.is_names:
            return names_ranking(rows, found)
        found = _with_retention(found, self.reader, rows, self.moment, weighing)
        weighed = None
        if vector is not None:
            similar = self._synonyms(said, interior, rows)
            is_whole = self.search.vectors().reads_whole
            found = replace(found, synonyms=similar, reads_whole=is_whole)
        if weighing is None:
            found = self._spread_ranks(ids, found)
        else:
            is_read = vector is not None and self.search.vectors().reads(text)
            texts, read = partial(self._texts, rows), found
            if not is_read:
                read = _without_vectors(found, text, interior, rows, texts)
            weighed = weigh(read, text, self._asked_at(), weighing)
            if self.question.settings.preferences and wants_advice(text):
                signs = preference_signs()
                signed = None if interior is None else np.isin(rows, interior.having(signs))
                weighed = with_preferences(weighed, found, signed, texts, weighing.asker)
            found = found.with_graph(weighed.lanes)
        ranks = self._ranks(ids, found)
        fused = fuse(ranks, self.question.settings.weights, self.question.settings.c)
        if found.retained is not None:
            ranks["retention"] = ranked(found.retained, ids, len(ids))
        order, scores, parts = self._ordered(ids, found, weighed, fused)
        return Ranking(
            order=order,
            rows=rows,
            scores=scores,
            fused=fused,
            ranks=ranks,
            lanes=found.explained,
            parts=parts,
            ways={} if found.graph is None else found.graph.ways,
            names={} if found.graph is None else found.graph.names,
            stated=found.claims,
            lead=None if weighed is None else weighed.lead,
            senses=(None, None) if vector is None else self.search.vectors().senses(text),
        )

    def _texts(self, rows: Sequence[int], places: Sequence[int]) -> dict[int, str]:
        """Return the contents at some places of the candidates."""
        place = {rows[at]: at for at in places}
        bodies = self.reader.bodies(sorted(place), self.moment.known)
        return {place[body.row]: body.content for body in bodies}

    def _synonyms(
        self, asked: AskedWords, interior: HeldWorld | None, rows: Sequence[int]
    ) -> SimilarWords | None:
        """Return the comparison of single words, if the embedder has nothing better."""
        embed = self.search.vectors().word_vectors(self.question.text)
        if embed is None or self.tokens is not None:
            return None

        def said(places: Sequence[int]) -> tuple[SaidWords, Sequence[int]]:
            if interior is not None:
                numbers = [interior.place[rows[at]] for at in places]
                return interior.said_at(self.reader, numbers), numbers
            texts = self._texts(rows, places)
            return said_words(texts.get(at, "") for at in places), range(len(places))

        return SimilarWords(asked.weights, embed, said)

    def _answered(self, ranking: Ranking | None, said: AskedWords | None = None) -> Recall:
        """Return the first candidates of a ranking as hits, each with its reasons."""
        question = self.question
        asked_for = question.text if not question.is_names else ", ".join(question.names)
        if ranking is None or said is None:
            return Recall(question=asked_for)
        found = hits_of(
            ranking,
            self.view,
            question=question.text if question.settings.recency else None,
            asked=said,
            k=question.k,
            max_tokens=question.max_tokens,
            explain=question.explain,
            with_conflicts=self.query.shows_conflicts,
        )
        kept = tuple(it for it in found.hits if it.confidence >= (question.min_confidence or 0.0))
        return replace(found, question=asked_for, hits=kept)

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return the visible rows; most others are outside the worlds that are held."""
        held = self.held
        return self.view.keep(rows if held is None else [row for row in rows if row in held])

    def _ranks(self, ids: Sequence[bytes], found: Candidates) -> dict[str, list[int]]:
        """Return the places that each lane found, best first."""
        depth = self.question.settings.depth
        return {lane: ranked(scores, ids, depth) for lane, scores in found.lanes.items()}

    def _spread_ranks(self, ids: Sequence[bytes], found: Candidates) -> Candidates:
        """Return the candidates with graph scores spread from their fused ranks; the best is 1."""
        settings = self.question.settings
        fused = fuse(self._ranks(ids, found), settings.weights, settings.c)
        if found.graph is None or not fused:
            return found
        first = np.zeros(len(ids))
        first[list(fused)] = np.array(list(fused.values())) / max(fused.values())
        gained = spread(first, found.graph, Weights().spread, SCALARS)
        return found.with_graph({"graph": found.lanes["graph"] + gained})

    def _worlds_around(self, interior: HeldWorld | None, ranking: Ranking) -> WorldMembers:
        """Return the worlds that hold the first hits."""
        rows = [ranking.rows[at] for at in ranking.order[: self.question.k]]
        if interior is None or self._matrix is None:
            return stored_members(self.view, self.search.vectors(), rows)
        return held_members(interior, self.view, self._matrix, rows)

    def _ordered(
        self,
        ids: Sequence[bytes],
        found: Candidates,
        weighed: Weighed | None,
        fused: Mapping[int, float],
    ) -> tuple[list[int], Mapping[int, float], Mapping[str, Scores]]:
        """Return the places of candidates, best first, their scores, and the parts of these."""
        if weighed is None:
            return sorted(fused, key=lambda at: (-fused[at], ids[at])), fused, {}
        raised = weighed.scores - weighed.scores.min() + 1.0  # Above zero, as `ranked` wants it.
        raised = np.where(weighed.matched(found.lanes), raised, 0.0)
        order = ranked(raised, ids, self._most())
        return order, {at: float(weighed.scores[at]) for at in order}, weighed.parts

    def _most(self) -> int:
        """Return how many hits to order: more than asked for, because some will be left out."""
        k = self.question.k
        if self.question.max_tokens is None:
            return max(k + SPARE_HITS, HITS_COMPARED_MAX)
        return SKIPPED_TIMES * k + self.question.settings.depth

    def _asked_at(self) -> datetime:
        """Return when the question is asked, which "last week" counts from."""
        if self.question.at is not None:
            return from_micros(to_micros(self.question.at, "at"))
        return self.moment.valid or self.moment.now

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

    def _token_reader(self, rows: Sequence[int]) -> TokenReader | None:
        """Return the reader of candidates' words, if the embedder keeps words apart."""
        if self.tokens is None:
            return None
        return TokenReader(self.tokens, self.reader, self.search.vectors(), rows)

    def _candidates(
        self, interior: HeldWorld, vector: Vector | None, within: NDArray[np.bool_]
    ) -> tuple[list[int], Sequence[bytes], Candidates]:
        """Score everything in an interior that is held in memory."""
        view, text, settings = self.view, self.question.text, self.question.settings
        weights = settings.weights
        seen = interior.seen(
            self.moment, ended=view.include_ended, types=view.types, instances=view.instances
        )
        seen &= interior.are_answers(doors=view.types is not None)
        seen &= within
        if view.where is not None:
            seen &= view.where.mask(np.frombuffer(interior.rows, dtype=np.int64))
        if view.chosen is not None:
            kept = view.chosen({interior.rows[at] for at in np.flatnonzero(seen).tolist()})
            seen[:] = False
            seen[[interior.place[row] for row in kept]] = True
        positions = np.flatnonzero(seen)
        lanes: dict[str, Scores] = {}
        cosines = None
        if weights.get("text"):
            lanes["text"] = text_scores(interior, text)[positions]
        if vector is not None:
            self._matrix = interior.vectors(self.reader, self.search.vectors())
            cosines = VectorRows(self._matrix, positions)
            lanes["vector"] = cosines.of(vector)
        numbers = np.frombuffer(interior.rows, dtype=np.int64)[positions]
        rows, forms = numbers.tolist(), interior.chosen_forms(positions)
        cover = text_cover(interior, text, positions, forms)
        graph = None
        if weights.get("graph"):
            graph = self._graph(HeldNames(interior, seen, within if view.within else None))
            lanes["graph"] = graph.lane(rows, numbers)
        parents = interior.chosen(interior.parents, positions)
        spoken = interior.chosen(interior.spoken, positions)
        before = turns_before(parents, spoken != interior.speakers.get("", -1))
        found = Candidates(
            lanes=lanes,
            closely=self._token_reader(rows),
            parents=parents,
            starts=interior.chosen(interior.starts, positions),
            speakers=list(interior.speakers),
            spoken=spoken,
            before=before,
            forms=forms,
            cover=cover.shares if "text" in lanes else None,
            around=cover.around(parents, before) if "text" in lanes else None,
            named=None if graph is None else graph.meant(cover),
            alike=like_the_best(lanes, parents, cosines),
            years=interior.chosen_years(self.reader, positions) if asked_years(text) else None,
            claims=None if graph is None else graph.claiming(rows),
            graph=graph,
        )
        return rows, interior.chosen_ids(positions), found

    def _graph(self, names: KnownNames) -> GraphLane:
        """Return the graph lane: what the names in the question lead to."""
        weighing = self.question.settings.weighing or Weights()
        classes = self.query.follows_classes and self.question.settings.classes
        spreading = Spreading(names, self.reader, self.moment, classes)
        said = self.question.text, self.question.names
        return GraphLane(spreading, *said, weighing.asker, weighing.graph)


def _with_retention(
    found: Candidates, reader: Reader, rows: Sequence[int], moment: Moment, weights: Weights | None
) -> Candidates:
    """Return the candidates with their retention, if it has a weight."""
    if weights is None or not weights.retention:
        return found
    now = to_micros(moment.now, "now")
    kept: dict[int, float] = {}
    for start in range(0, len(rows), ROWS_AT_ONCE):
        for item in reader.sweep.recalls(rows[start : start + ROWS_AT_ONCE]):
            kept[item.row] = retention(
                item.created_at, item.last, item.recalls, item.links, now, weights.fading
            )
    return replace(found, retained=np.array([kept[row] for row in rows]))


def _without_vectors(
    found: Candidates,
    question: str,
    interior: HeldWorld | None,
    rows: Sequence[int],
    texts: Callable[[Sequence[int]], Mapping[int, str]],
) -> Candidates:
    """Return the candidates of an embedder that cannot read the question, without their vectors.

    Words stand for meaning: a candidate is like the best ones by the words that it shares with one
    of them and that the question does not have. So "the one who lives in Ulm" leads from "My cousin
    lives in Ulm" to "My cousin paints". Where no word is found, the vectors stay. `texts` reads the
    contents at some places of the candidates, whose rows are `rows`.
    """
    by_words = found.lanes.get("text")
    if by_words is None or not by_words.any():
        return found
    lanes = {lane: scores for lane, scores in found.lanes.items() if lane != "vector"}
    alike: Scores | None = None
    first = first_of_worlds(lanes, found.parents) if interior is not None else []
    best = [at for at in first if by_words[at] > 0]
    if interior is not None and best:
        said = {*asked(question, interior.languages)}
        places = [interior.place[row] for row in rows]
        most = by_words.max()
        shares = [
            interior.text.coverage(
                {word: 1.0 for word in asked(text, interior.languages) if word not in said}
            )[places]
            * (by_words[at] / most)
            for at, text in texts(best).items()
        ]
        alike = np.max(shares, axis=0)
    return replace(found, lanes=lanes, closely=None, alike=alike, reads_whole=False)


def recall(
    registry: Registry,
    search: Search,
    now: int,
    text: str,
    *,
    scope: Worlds | None,
    within: Sequence[Worlds],
    settings: RecallSettings | None,
    types: Sequence[str] | None,
    where: Mapping[str, Any] | None = None,
    **options: Any,
) -> Recall:
    """Answer a question; see `WorldDB.recall`."""
    chosen = None if types is None else check_words(types, "types")
    condition = None if where is None else condition_of(where)
    settings = DEFAULT_SETTINGS if settings is None else settings
    question = question_of(text, types=chosen, settings=settings, **options)
    if question.is_names:
        question = replace(question, settings=replace(settings, weights={"graph": 1.0}))
    by_meaning = search.has_vectors and question.settings.weights.get("vector", 0) > 0
    vector = tokens = None
    if by_meaning:
        vector = search.vectors().ask(question.text)
        if settings.weighing is not None and settings.weighing.late:
            tokens = search.vectors().ask_tokens(question.text)
    with search.snapshot(by_meaning=by_meaning) as reader:
        worlds = [ROOT_ROW] if scope is None else find_worlds(reader, scope)
        groups = [find_worlds(reader, group) for group in within]
        asked_for = question_query(
            question.text, question.types, question.as_of, question.include_ended, question.k
        )
        query, view = seen_question(reader, registry, asked_for, worlds, groups, now)
        if condition is not None:
            view.where = search.row_filter(reader, condition, view.moment.known)
        if query.text != question.text and vector is not None:
            vector, tokens = search.vectors().ask(query.text or ""), None
        k = question.k if query.limit is None else min(question.k, query.limit)
        question = replace(question, text=query.text or "", k=k)
        recaller = Recaller(search, view, query, question, tokens)
        apart = []
        for part in questions_in(question.text) if settings.weighing is not None else ():
            asked = search.vectors().ask(part) if by_meaning else None
            words = None if tokens is None else search.vectors().ask_tokens(part)
            apart.append(
                (Recaller(search, view, query, replace(question, text=part), words), asked)
            )
        found = recaller.answer(vector, apart)
        return found.without(search.unembedded(reader, recaller.keep) if by_meaning else 0)

"""The ranker: one score per candidate, from everything that is known about it.

    lanes, words, speakers, days, turns around ──▶ Σ weight × feature ──▶ score and its parts

Each feature is a share from 0 to 1, or a score standardised over the candidates (`standing_out`),
so no feature depends on an embedder's scale or a world's size. No feature depends on the weight of
another, so weights can be fitted from the parts of hits (`worlddb eval fit`). No language model
takes part, nothing is random, and every number stands in `index/ranking.json` with its origin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from worlddb.errors import InvalidInputError
from worlddb.index.held_world import VectorRows
from worlddb.index.ranking_numbers import SCALARS, WEIGHTS, RankingScalars
from worlddb.language.ranking_features import (
    ASKS,
    CHARS,
    DONE,
    TELLING,
    asked_years,
    spans_of,
    speakers_of,
)
from worlddb.model.inputs import from_micros
from worlddb.model.retention_curve import RetentionSettings

if TYPE_CHECKING:
    from worlddb.recall.activation import Way

Scores = NDArray[np.float64]
DAY_MICROS = 86_400_000_000  # 24 hours.
YEARS_MAX = 200  # a store that spans more holds a mistyped date; every year costs a regex
SPREAD_MIN = 1e-9  # below this, scores differ by rounding alone
FAR_KNOWN = 10  # so many texts that are not answers tell their usual cosine; of fewer, it may be 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each feature counts; 0 leaves it out. `ranking.json` explains every default."""

    vector: float = WEIGHTS["vector"]
    late: float = WEIGHTS["late"]
    text: float = WEIGHTS["text"]
    cover: float = WEIGHTS["cover"]
    """The share of the question's words that a text has, rare words counting more."""
    around: float = WEIGHTS["around"]
    """The share of the question's words that are said in a turn or near it."""
    synonyms: float = WEIGHTS["synonyms"]
    """How well each word of the question is met by the word of a text that is most like it."""
    graph: float = WEIGHTS["graph"]
    spread: float = WEIGHTS["spread"]
    """The share of its score that a good text passes on to the texts about what it mentions."""
    speaker: float = WEIGHTS["speaker"]
    world: float = WEIGHTS["world"]
    opening: float = WEIGHTS["opening"]
    """A turn that opens a topic is ahead of one that follows a similar turn."""
    reply: float = WEIGHTS["reply"]
    """The words of the turn before count for a turn, which may answer it."""
    following: float = WEIGHTS["following"]
    """How near the turn after is to the question: it takes up what the turn says."""
    feedback: float = WEIGHTS["feedback"]
    """How near a text is to the best texts of several worlds: these may share its topic."""
    telling: float = WEIGHTS["telling"]
    """A turn that says something about its speaker is ahead of one that only asks."""
    date: float = WEIGHTS["date"]
    claim: float = WEIGHTS["claim"]
    """How far a text that states what is asked for is lifted: 1 puts it above all others."""
    asker: str = "user"
    """The speaker name under which the turns of the one who asks are stored."""
    retention: float = WEIGHTS["retention"]
    """How much it counts that a memory is fresh or often recalled; 0 by default."""
    fading: RetentionSettings = field(default_factory=RetentionSettings)

    def __post_init__(self) -> None:
        others = ("asker", "fading")
        for name in (item.name for item in fields(self) if item.name not in others):
            check_weight(getattr(self, name), name)
        if not isinstance(self.asker, str):
            raise InvalidInputError(f"asker: give a name, not {self.asker!r:.100}")
        if not isinstance(self.fading, RetentionSettings):
            raise InvalidInputError(f"fading: give RetentionSettings(…), not {self.fading!r:.100}")


def check_weight(value: Any, what: str) -> None:
    """Check that a weight is a number of at least 0.

    Raises:
        InvalidInputError: it is something else.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise InvalidInputError(f"weight of {what}: give a number from 0 on, not {value!r:.40}")


class WordReader(Protocol):
    """Compares candidates with the question word by word."""

    def read(self, places: Sequence[int]) -> Scores:
        """Return how well each of some candidates answers the question."""


class TextGraph(Protocol):
    """Leads from texts to the texts about what these mention."""

    @property
    def ways(self) -> Mapping[int, Way]:
        """How each text was reached, by row."""

    @property
    def names(self) -> Mapping[int, Set[str]]:
        """The names in the question that lead straight to each text, by row."""

    def passed_on(self, given: Mapping[int, float]) -> Mapping[int, float]:
        """Return the score that each candidate gets from some candidates; both by place."""


class Company(NamedTuple):
    """A sample to compare candidates with, where not all nodes of a world are candidates.

    `lanes` has the scores of a sample of all nodes that could be answers, and `total` is about how
    many such nodes there are.
    """

    total: int
    lanes: Mapping[str, Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What is ranked. Each array has one entry per candidate, in the order of writing.

    `speakers` are names of speakers, and `spoken` has the number of each candidate's speaker.
    `before` is the place of the turn before: the candidate's own place if it is the first, and -1
    if it is not a turn of a conversation. `forms` has one row per candidate, see `Form`. `claims`
    marks the candidates that state what is asked for. `cover` is the share of the question's words
    that a candidate has, `around` of those said in it or near it. `named` is what names give it, by
    how much it says of the question. `alike` is how near it is to the best ones, see
    `like_the_best`. `years` has a row for each span of years in a candidate's text: its place, the
    first and the last year; None if the question names no year. Without `company`, all nodes of a
    world are candidates. `reads_whole` if the embedder reads texts as wholes, not by their words.
    """

    lanes: Mapping[str, Scores]
    closely: WordReader | None
    parents: NDArray[np.int64]
    starts: NDArray[np.int64]
    speakers: Sequence[str]
    spoken: NDArray[np.int64]
    before: NDArray[np.intp]
    forms: NDArray[np.int64]
    claims: NDArray[np.bool_] | None = None
    cover: Scores | None = None
    around: Scores | None = None
    named: Scores | None = None
    alike: Scores | None = None
    years: NDArray[np.int64] | None = None
    retained: Scores | None = None
    synonyms: WordReader | None = None
    graph: TextGraph | None = None
    company: Company | None = None
    reads_whole: bool = False

    def with_graph(self, lanes: Mapping[str, Scores]) -> Candidates:
        """Return the candidates with the last scores of the graph lane, if there is one."""
        last = {name: scores for name, scores in lanes.items() if name == "graph"}
        return replace(self, lanes={**self.lanes, **last})

    @property
    def explained(self) -> Mapping[str, Scores]:
        """The scores that a hit shows: those of the lanes, and its retention."""
        if self.retained is None:
            return self.lanes
        return {**self.lanes, "retention": self.retained}


def best_places(scores: Scores, count: int) -> NDArray[np.intp]:
    """Return the places of the best `count` scores, best first; of equal ones the first."""
    if count >= len(scores):
        return np.argsort(-scores, kind="stable")
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")[:count]]


def first_of_worlds(lanes: Mapping[str, Scores], parents: NDArray[np.int64]) -> list[int]:
    """Return the places of the best candidates, one of each of some worlds, by fused ranks.

    The ranks are those of the lanes, so no weight takes part. Empty with one or two worlds, where
    the first candidate would only confirm itself.
    """
    if SCALARS.feedback_worlds > 1 and (parents == parents[:1]).all():
        return []  # Of one world, as most candidates are: nothing need be ranked.
    fused = np.zeros(len(parents))
    for scores in (lanes[lane] for lane in ("text", "vector") if lane in lanes):
        rank = np.empty(len(parents))
        rank[np.argsort(-scores, kind="stable")] = np.arange(len(parents))
        fused += 1 / (SCALARS.fusion_c + 1 + rank)
    order = best_places(fused, SCALARS.feedback_depth)
    first = np.sort(np.unique(parents[order], return_index=True)[1])
    wanted = SCALARS.feedback_worlds
    return order[first[:wanted]].tolist() if len(first) >= wanted else []


def like_the_best(
    lanes: Mapping[str, Scores], parents: NDArray[np.int64], cosines: VectorRows | None
) -> Scores | None:
    """Return how near each candidate is to the best ones of some worlds; None without such."""
    best = first_of_worlds(lanes, parents) if cosines is not None else []
    return cosines.of(cosines.mean(best)) if cosines is not None and best else None


def turns_before(parents: NDArray[np.int64], is_turn: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the place of the turn before each turn in its world; see `Candidates.before`."""
    before = np.full(len(parents), -1, dtype=np.intp)
    turns = np.flatnonzero(is_turn)
    turns = turns[np.argsort(parents[turns], kind="stable")]
    if len(turns):
        is_first = np.r_[True, parents[turns][1:] != parents[turns][:-1]]
        before[turns] = np.where(is_first, turns, np.r_[turns[:1], turns[:-1]])
    return before


class Weighed(NamedTuple):
    """The final score of each candidate, its parts by feature, and the last scores of the lanes.

    `usual` is the score of a node like most others. `lead` is how far the best text of a speaker
    whom the question names is ahead of all others, -1 to 1. None if it names no speaker.
    """

    scores: Scores
    parts: Mapping[str, Scores]
    lanes: Mapping[str, Scores]
    usual: float
    lead: float | None = None

    def with_spread(self, gained: Scores, weight: float) -> Weighed:
        """Return the scores with what candidates gained; the graph lane has found them, too."""
        before = self.lanes.get("graph", np.zeros(len(gained)))
        lane = before + gained / (weight or 1.0)
        parts = {**self.parts, "spread": gained}
        lanes = {**self.lanes, "graph": lane}
        return self._replace(scores=self.scores + gained, parts=parts, lanes=lanes)

    def with_synonyms(self, best: Sequence[int], met: Scores) -> Weighed:
        """Return the scores with what the best candidates gain by similar words."""
        gained = np.full(len(self.scores), met.min())
        gained[best] = met
        parts = {**self.parts, "synonyms": gained}
        scores, usual = self.scores + gained, self.usual + float(met.min())
        return self._replace(scores=scores, parts=parts, usual=usual)

    def matched(self, lanes: Mapping[str, Scores]) -> NDArray[np.bool_]:
        """Return which candidates were found at all: by one of `lanes`, or word by word."""
        read = [self.parts["late"]] if "late" in self.parts else []
        found: NDArray[np.bool_] = np.any(np.stack([*lanes.values(), *read]) > 0, axis=0)
        return found


def weigh(
    found: Candidates,
    question: str,
    asked_at: datetime,
    weights: Weights,
    scalars: RankingScalars = SCALARS,
) -> Weighed:
    """Return the final score of each candidate, and why."""
    ranker = Ranker(found, weights, scalars)
    known = ranker.known(question, asked_at)
    weighed = ranker.combined(found.lanes, known)
    if weights.late and found.closely is not None:
        best = best_places(weighed.scores, scalars.late_candidates_max).tolist()
        read = found.closely.read(best)
        late = np.full(len(weighed.scores), read.min())
        late[best] = read
        weighed = ranker.combined({**weighed.lanes, "late": late}, known)
    elif weights.synonyms and found.synonyms is not None:
        # Word by word they are compared already, and by better vectors, where there are such.
        best = best_places(weighed.scores, scalars.synonym_candidates_max).tolist()
        weighed = weighed.with_synonyms(best, weights.synonyms * found.synonyms.read(best))
    if weights.spread and found.graph is not None:
        # A score that all candidates have is not passed on.
        above = weighed.scores - weighed.usual
        gained = spread(above, found.graph, weights.spread, scalars)
        weighed = weighed.with_spread(gained, weights.graph)
    weighed = weighed._replace(lead=ranker.lead(weighed, question))
    return _lifted(weighed, found.claims, weights.claim)


def fuse(
    ranks: Mapping[str, Sequence[int]], weights: Mapping[str, float], c: int
) -> dict[int, float]:
    """Return the reciprocal rank fusion of ranked lists; of each list, by its weight."""
    fused: dict[int, float] = {}
    for lane, positions in ranks.items():
        for rank, at in enumerate(positions, 1):
            fused[at] = fused.get(at, 0.0) + weights[lane] / (c + rank)
    return fused


def spread(scores: Scores, graph: TextGraph, share: float, scalars: RankingScalars) -> Scores:
    """Return the score that the best candidates pass on to texts about what they mention.

    It is passed on hop by hop, and only the part of a score above 0.
    """
    gained = np.zeros(len(scores))
    for _ in range(scalars.spread_hops):
        now = scores + gained
        best = best_places(now, scalars.spread_texts).tolist()
        given = {at: share * float(now[at]) for at in best if now[at] > 0}
        for at, gain in graph.passed_on(given).items():
            gained[at] = max(gained[at], gain)
        share *= scalars.spread_decay
    return gained


def _lifted(weighed: Weighed, claims: NDArray[np.bool_] | None, weight: float) -> Weighed:
    """Return the scores with the texts that state the very answer lifted above the others."""
    if claims is None or not weight or not claims.any() or claims.all():
        return weighed
    short = weighed.scores[~claims].max() - weighed.scores[claims].min() + 1.0
    lift: Scores = np.where(claims, weight * max(0.0, short), 0.0)
    parts = {**weighed.parts, "claim": lift}
    return weighed._replace(scores=weighed.scores + lift, parts=parts)


class Ranker:
    """Computes the features of some candidates."""

    def __init__(self, found: Candidates, weights: Weights, scalars: RankingScalars) -> None:
        self.found = found
        self.weights = weights
        self.scalars = scalars
        self._count = len(found.parents)

    def known(self, question: str, asked_at: datetime) -> dict[str, Scores]:
        """Return the features that do not depend on the lanes."""
        weights, found = self.weights, self.found
        named, side = speakers_of(question, weights.asker)
        known = {
            "speaker": weights.speaker * self._said_by(named, side),
            "date": weights.date * self._dated(question, asked_at),
        }
        if found.cover is not None:
            known["cover"] = weights.cover * found.cover
        if found.around is not None:
            known["around"] = weights.around * found.around
        # "What did you suggest?" is answered by the other side, which tells nothing of itself.
        if side is None or not side.startswith("not "):
            known["telling"] = weights.telling * self._telling()
        if found.retained is not None:
            known["retention"] = weights.retention * found.retained
        return known

    def combined(self, lanes: Mapping[str, Scores], known: Mapping[str, Scores]) -> Weighed:
        """Return the sum of all features: lanes, worlds, turns before, and the `known` ones."""
        weights, scalars, before = self.weights, self.scalars, self.found.before
        named = self.found.named
        parts: dict[str, Scores] = {}
        usual: dict[str, float] = {}
        meaning: Scores = np.zeros(self._count)
        for lane, scores in lanes.items():
            # Word by word, every candidate is compared with the others that were read.
            company = scalars.company_min if lane == "late" else scalars.lane_company_min
            # What a name gives is the same in a world of ten texts and of ten thousand.
            if lane == "graph":
                amount, usual[lane] = scores if named is None else named, 0.0
            elif self.found.company is not None and lane in self.found.company.lanes:
                total = min(self.found.company.total, scalars.company_max)
                amount, usual[lane] = compared(scores, self.found.company.lanes[lane], total)
            elif lane == "vector":
                amount = cosines_standing_out(scores, company)
            else:
                amount = standing_out(scores, 0.0, company)
            parts[lane] = self._weight(lane) * amount
            if lane in ("vector", "late") or "vector" not in lanes:
                meaning = meaning + amount
        meaning = self._standing_out(meaning)
        parts |= known
        if weights.world:
            parts["world"] = weights.world * self._share_of_world(meaning)
        if weights.following:
            parts["following"] = weights.following * self._said_after(meaning)
        # A model that reads wholes sees by itself what is told alike.
        if self.found.alike is not None and not self.found.reads_whole:
            alike = standing_out(self.found.alike, 0.0, scalars.lane_company_min)
            parts["feedback"] = weights.feedback * alike
        if weights.opening:
            heard = np.where(self._answers, 0.0, self._said_before(meaning))
            parts["opening"] = -weights.opening * heard
        if weights.reply and "text" in lanes:
            heard = self._said_before(lanes["text"])
            parts["reply"] = weights.reply * np.where(heard > 0, heard * self._brevity, heard)
        scores = sum(parts.values(), start=np.zeros(len(before)))
        if self.found.company is None:
            return Weighed(scores, parts, lanes, median(scores))
        others = (part for name, part in parts.items() if name not in usual)
        rest = sum(others, start=np.zeros(len(before)))
        common = sum(self._weight(lane) * amount for lane, amount in usual.items())
        return Weighed(scores, parts, lanes, median(rest) + common)

    def _weight(self, lane: str) -> float:
        tells = self.scalars.whole_reading if lane == "vector" and self.found.reads_whole else 1.0
        return tells * float(getattr(self.weights, lane))

    def _standing_out(self, scores: Scores) -> Scores:
        return standing_out(scores, 1.0, self.scalars.company_min)

    def _telling(self) -> Scores:
        """Return how far each candidate is from telling of its speaker; see `form_of`."""
        out: Scores = self.found.forms[:, TELLING] / DONE - 1
        return np.where(self.found.before < 0, self.scalars.only_asks_penalty * out, out)

    @cached_property
    def _turns(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """The places of turns, those of the turns before them, and which turns are first."""
        turns = np.flatnonzero(self.found.before >= 0)
        before = self.found.before[turns]
        return turns, before, before == turns

    def _said_before(self, scores: Scores) -> Scores:
        """Return how far the turn before each turn stands out; 0 for what is not a turn."""
        turns, before, is_first = self._turns
        out = np.zeros(len(scores))
        if len(turns):
            heard = np.where(is_first, scores.min(), scores[before])
            out[turns] = self._standing_out(heard)
        return out

    def _said_after(self, scores: Scores) -> Scores:
        """Return how far the turn after each turn stands out; 0 for what is not a turn."""
        turns, before, is_first = self._turns
        out = np.zeros(len(scores))
        if len(turns):
            heard = np.full(len(scores), scores.min())
            heard[before[~is_first]] = scores[turns[~is_first]]
            out[turns] = self._standing_out(heard[turns])
        return out

    @cached_property
    def _answers(self) -> NDArray[np.bool_]:
        return answers(self.found, self.scalars)

    @cached_property
    def _brevity(self) -> Scores:
        """How much the words of the turn before count: a long turn is answered in part."""
        found, usual = self.found, self.scalars.short_turn_chars
        is_first = found.before == np.arange(self._count)
        chars = np.where(is_first, usual, np.maximum(found.forms[found.before, CHARS], 1))
        brevity: Scores = np.minimum(self.scalars.brevity_max, np.sqrt(usual / chars))
        return brevity

    def _share_of_world(self, scores: Scores) -> Scores:
        """Return how far the world of each candidate stands out, by the mean of its best scores.

        Worlds are compared with worlds, not candidate by candidate: otherwise the few candidates
        of a small world would stand out from the many of a large one, whatever they say. A world of
        one candidate gets 0: all that speaks for the world is the candidate, which counts already.
        """
        parents, best = self.found.parents, self.scalars.world_best
        if (parents == parents[0]).all():
            return np.zeros(len(scores))  # There is only one world: it distinguishes nobody.
        order = np.lexsort((-scores, parents))
        sorted_parents = parents[order]
        starts = np.flatnonzero(np.r_[True, sorted_parents[1:] != sorted_parents[:-1]])
        sizes = np.diff(np.r_[starts, len(order)])
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        counted = np.where(rank < best, scores[order], 0.0)
        shares = self._standing_out(np.add.reduceat(counted, starts) / best)
        shares = np.where(sizes > 1, shares, 0.0)
        spread = np.empty(len(scores))
        spread[order] = np.repeat(shares, sizes)
        return spread

    def _said_by(self, named: Set[str], side: str | None) -> Scores:
        """Return 1 for what was said by the speaker that the question means; see `speakers_of`."""
        verdicts = []
        for speaker in self.found.speakers:
            # A text without a speaker was told by the one who asks.
            is_asker = speaker in ("", self.weights.asker.casefold())
            meant = side is not None and is_asker != side.startswith("not ")
            verdicts.append(float(meant or (speaker != "" and speaker in named)))
        return np.array(verdicts)[self.found.spoken] if any(verdicts) else np.zeros(self._count)

    def lead(self, weighed: Weighed, question: str) -> float | None:
        """Return how far the best text of a named speaker is ahead; see `Weighed.lead`."""
        named, _ = speakers_of(question, self.weights.asker)
        others = ("", self.weights.asker.casefold())
        is_named = [speaker in named and speaker not in others for speaker in self.found.speakers]
        if not any(is_named) or not self.weights.speaker:
            return None
        own = np.array(is_named)[self.found.spoken]
        if own.all() or not own.any():
            return None
        # Both sides speak of the topic: similar words tell nothing of who said it.
        scores = weighed.scores - weighed.parts["speaker"] - weighed.parts.get("synonyms", 0.0)
        ahead = (scores[own].max() - scores[~own].max()) / self.weights.speaker
        return float(np.clip(ahead, -1.0, 1.0))

    def _dated(self, question: str, asked_at: datetime) -> Scores:
        """Return how near each candidate is to the time of the question, 0 to 1.

        A candidate's own time is that of its beginning, and the years that its text names.
        """
        days = self.found.starts // DAY_MICROS
        first, last = (from_micros(int(day) * DAY_MICROS).year for day in (days.min(), days.max()))
        years = range(first, min(last, first + YEARS_MAX) + 1)
        closeness = np.zeros(self._count)
        epoch = from_micros(0).date().toordinal()
        for span in spans_of(question, asked_at.date(), years):
            before = (span.first.toordinal() - epoch) - days
            after = days - (span.last.toordinal() - epoch)
            off = np.maximum(np.maximum(before, after), 0) / span.tolerance_days
            worth = self.scalars.relative_day if span.is_relative else 1.0
            closeness = np.maximum(closeness, worth * np.exp(-0.5 * off**2))
        meant = asked_years(question)
        if meant is not None and self.found.years is not None:
            np.maximum.at(closeness, self.found.years[:, 0], self._shared_years(meant))
        return closeness

    def _shared_years(self, meant: tuple[int, int]) -> Scores:
        """Return how well each span of years fits the years of the question, 0 to 1.

        Having any year in common is worth `overlap_worth`; the rest is the share of the years of
        both spans that they have in common.
        """
        assert self.found.years is not None
        first, last = self.found.years[:, 1], self.found.years[:, 2]
        common = np.minimum(last, meant[1]) - np.maximum(first, meant[0]) + 1
        both = np.maximum(last, meant[1]) - np.minimum(first, meant[0]) + 1
        worth = self.scalars.overlap_worth
        shared: Scores = np.where(common > 0, worth + (1 - worth) * common / both, 0.0)
        return shared


def answers(found: Candidates, scalars: RankingScalars = SCALARS) -> NDArray[np.bool_]:
    """Return which turns follow a short question."""
    is_later = (found.before >= 0) & (found.before != np.arange(len(found.before)))
    is_short = found.forms[found.before, CHARS] < scalars.short_turn_chars
    answers: NDArray[np.bool_] = is_later & (found.forms[found.before, ASKS] > 0) & is_short
    return answers


def standing_out(scores: Scores, spread: float, company: int) -> Scores:
    """Return how many standard deviations each score is above the mean.

    Among three candidates one always stands out. So at least `company` candidates are assumed: the
    missing ones have a mean of 0 and the given spread.
    """
    others = max(0, company - len(scores))
    count = len(scores) + others
    mean = scores.sum() / count
    # Not `scores @ scores`: BLAS gives that to several threads, which wait for each other.
    squares = float((scores * scores).sum()) + others * spread**2
    deviation = np.sqrt(max(0.0, squares / count - mean**2))
    return (scores - mean) / deviation if deviation > SPREAD_MIN else np.zeros(len(scores))


def cosines_standing_out(cosines: Scores, company: int) -> Scores:
    """Return how far cosines stand out among at least `company` candidates.

    Unrelated texts have a cosine, too, and of some embedders a high one. So the missing candidates
    are like the farther half of those that are there, as far as these are enough to tell.
    """
    if len(cosines) >= company:
        return standing_out(cosines, 0.0, company)
    far = np.sort(cosines)[: max(1, len(cosines) // 2)]
    known = min(1.0, len(far) / FAR_KNOWN)
    return standing_out(cosines - known * far.mean(), known * float(far.std()), company)


def median(values: Scores) -> float:
    """Return the median; numpy's own function first imports masked arrays, for 12 ms."""
    middle = (len(values) - 1) // 2, len(values) // 2
    low, high = np.partition(values, middle)[[*middle]]
    return float(low + high) / 2


def compared(scores: Scores, sample: Scores, count: int) -> tuple[Scores, float]:
    """Return how far scores stand out in a world of `count` nodes, and where the usual one stands.

    The candidates are the best of the world; a sample tells of the others.
    """
    others = max(0, count - len(scores))
    mean = (scores.sum() + others * sample.mean()) / (len(scores) + others)
    squares = float((scores * scores).sum()) + others * float((sample * sample).mean())
    deviation = np.sqrt(max(0.0, squares / (len(scores) + others) - mean**2))
    if deviation <= SPREAD_MIN:
        return np.zeros(len(scores)), 0.0
    return (scores - mean) / deviation, float((median(sample) - mean) / deviation)

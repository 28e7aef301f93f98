"""Weight fit: fits the weights of the ranker to questions with gold, and judges them on other sets.

    question ──recall, each weight 1──▶ hits with their features ──softmax──▶ weights

A hit lists the parts of its score. With every weight at 1 these are the features, so public calls
suffice. The loss is the negative log-likelihood of gold turns against the turns that are not gold.
It is convex, and weights are at least 0, so the optimum does not depend on the start. Each set has
the same total weight, and so has each question of a set. From there a local search changes one
weight at a time while the headline figures of the sets rise and none falls.

The quality of weights is measured on sets that were not fitted: for each set, weights are fitted to
all others. The spreading of scores through the graph happens in `recall` only, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from worlddb import RecallSettings, Weights, WorldDB
from worlddb.errors import InvalidInputError
from worlddb.evaluate.case_recall import VERBATIM_TYPES, session_figures, turn_figures, write_case
from worlddb.evaluate.data_sets import DATA_SETS, load_cases
from worlddb.evaluate.question_plan import works_of

if TYPE_CHECKING:
    from datetime import datetime

    from worlddb.evaluate.benchmark_cases import GoldQuestion, RunSettings
    from worlddb.evaluate.case_recall import StoredCase
    from worlddb.evaluate.question_plan import QuestionPlan

FITTED = (
    *(
        "vector",
        "text",
        "cover",
        "around",
        "synonyms",
        "graph",
        "speaker",
        "world",
        "opening",
        "reply",
        "following",
    ),
    *("feedback", "telling", "date"),
)
"""The weights that are fitted; a feature that no text has keeps its weight."""
NOT_FITTED = ("late", "spread", "claim", "retention")
HITS_MAX = 300  # of a question; a hit below that rank by the sum of features hardly matters
FACTORS = (1.6, 1.25)  # of a step up or down; finer steps fit noise
FIRST_VALUE = 0.1  # tried for a weight of 0
FALL_MAX = 0.002  # tolerated fall of a set's figure in a step: one question of some hundreds
STEPS_MAX = 40  # of Newton's method, which usually needs ten
STEP_MIN = 1e-3  # a shorter step gains nothing
GAIN_MIN = 1e-7  # of the loss; less changes no digit of the result
SHRINKING = 1e-3  # L2 penalty, so that a feature that is always 0 gets a weight of 0
PRIOR_QUESTIONS = 20  # for one file alone: the present weights count as much as these questions

Features = NDArray[np.float64]
Order = Callable[["GatheredQuestion"], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredQuestion:
    """The hits of a question: features, places, and the scores of simpler rankings."""

    id: str
    question: GoldQuestion
    places: Sequence[tuple[int, int]]
    features: Features
    is_gold: NDArray[np.bool_]
    simple: Mapping[str, NDArray[np.float64]]
    headline: tuple[str, ...] = ("recall@10",)

    def figures(self, order: Order) -> dict[str, float]:
        """Return the figures of the hits in the order of some scores."""
        scores = order(self)
        best = np.argsort(-scores, kind="stable")
        turns = [self.places[at] for at in best.tolist() if scores[at] > -np.inf]
        sessions = list(dict.fromkeys(session for session, _ in turns))
        return {
            **session_figures(sessions, self.question.sessions),
            **turn_figures(turns, self.question.turns),
        }


def gather(data: str, settings: RunSettings, plan: QuestionPlan) -> Iterator[GatheredQuestion]:
    """Write the conversations of a file, and yield the hits of each planned question."""
    for work in works_of(load_cases(data, settings.benchmark), plan.questions):
        with WorldDB(":memory:", embedder=settings.make_embedder()) as db:
            stored = write_case(db, work.case, settings, None)
            for place in work.wanted:
                question = work.case.questions[place]
                if question.turns:
                    at = work.case.asked_at(question)
                    found = _hits(db, question, stored, at)
                    headline = DATA_SETS[settings.benchmark].headline
                    yield replace(found, headline=headline)


def _hits(
    db: WorldDB, question: GoldQuestion, stored: StoredCase, at: datetime
) -> GatheredQuestion:
    weights: dict[str, Any] = dict.fromkeys(FITTED, 1.0) | dict.fromkeys(NOT_FITTED, 0.0)
    settings = RecallSettings(weighing=Weights(**weights), recency=False, worlds=False)
    found = db.recall(question.text, k=HITS_MAX, types=VERBATIM_TYPES, at=at, settings=settings)
    places = stored.turns()
    said = [places[hit.node.id][0] for hit in found]
    lanes = {
        lane: np.array(
            [-float(hit.lanes[lane].rank) if lane in hit.lanes else -np.inf for hit in found]
        )
        for lane in ("text", "vector")
    }
    return GatheredQuestion(
        id=question.id,
        question=question,
        places=said,
        features=np.array(
            [[hit.weighed.get(name, 0.0) for name in FITTED] for hit in found], dtype=np.float64
        ).reshape(-1, len(FITTED)),
        is_gold=np.array([place in question.turns for place in said], dtype=np.bool_),
        simple={"fused": np.array([hit.fused for hit in found]), **lanes},
    )


Sets = Mapping[str, Sequence[GatheredQuestion]]
"""Questions by the name of their set; after a slash may follow the embedder."""


def set_of(name: str) -> str:
    """Return the name of a data set without its embedder."""
    return name.partition("/")[0]


def fitted(sets: Sets, prior: Weights | None = None) -> dict[str, float]:
    """Return the weights with the lowest loss; with `prior`, near those."""
    names = [set_of(name) for name in sets]
    weighted: list[tuple[Features, NDArray[np.bool_], float]] = []
    for name, questions in sets.items():
        usable = [one for one in questions if one.is_gold.any() and not one.is_gold.all()]
        share = 1 / max(1, len(usable)) / names.count(set_of(name))
        weighted += [(one.features, one.is_gold, share) for one in usable]
    if not weighted:
        raise InvalidInputError("fit: no question has gold among its hits; give other questions")
    start = np.zeros(len(FITTED))
    shrinking = SHRINKING
    if prior is not None:
        start = np.array([float(getattr(prior, name)) for name in FITTED])
        shrinking = PRIOR_QUESTIONS / len(weighted)
    found = dict(zip(FITTED, _newton(weighted, start, shrinking).tolist(), strict=True))
    is_there = np.any([(features != 0).any(axis=0) for features, _, _ in weighted], axis=0)
    kept = [name for name, is_seen in zip(FITTED, is_there, strict=True) if not is_seen]
    return found | {name: float(getattr(Weights(), name)) for name in kept}


def refined(sets: Sets, weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights near some others with higher headline figures, if there are any.

    A step that helps one set and hurts another is not taken.
    """
    best, first = dict(weights), set_figures(sets, weights)
    highest = mean_figure(sets, weights)
    for factor in FACTORS:
        for name in FITTED:
            for value in (best[name] * factor or FIRST_VALUE, best[name] / factor):
                tried = {**best, name: value}
                made = set_figures(sets, tried)
                is_held = all(made[kind] >= first[kind] - FALL_MAX for kind in made)
                if is_held and np.mean([*made.values()]) > highest:
                    best, highest = tried, float(np.mean([*made.values()]))
    return best


def set_figures(sets: Sets, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the mean headline figure of each set under some weights."""
    order = by_weights(weights)
    means = {}
    for kind in sorted({set_of(name) for name in sets}):
        asked = [one for name, found in sets.items() if set_of(name) == kind for one in found]
        told = [(one.figures(order), one.headline) for one in asked]
        means[kind] = float(
            np.mean([np.mean([made[key] for key in names if key in made]) for made, names in told])
        )
    return means


def mean_figure(sets: Sets, weights: Mapping[str, float]) -> float:
    """Return the mean headline figure under some weights; each set counts the same."""
    return float(np.mean([*set_figures(sets, weights).values()]))


def _newton(
    weighted: Sequence[tuple[Features, NDArray[np.bool_], float]],
    centre: NDArray[np.float64],
    shrinking: float,
) -> NDArray[np.float64]:
    """Return the weights of at least 0 with the lowest loss."""
    weights = centre.copy()
    loss, slope, bend = _loss(weighted, weights, centre, shrinking)
    for _ in range(STEPS_MAX):
        # A weight of 0 whose gradient points down stays at 0.
        free = (weights > 0) | (slope < 0)
        step = np.zeros(len(weights))
        step[free] = np.linalg.solve(bend[np.ix_(free, free)], slope[free])
        length = 1.0
        while True:
            tried = np.maximum(weights - length * step, 0.0)
            made = _loss(weighted, tried, centre, shrinking)
            if made[0] < loss or length < STEP_MIN:
                break
            length /= 2
        if loss - made[0] < GAIN_MIN:
            break
        weights, (loss, slope, bend) = tried, made
    return weights


def _loss(
    weighted: Sequence[tuple[Features, NDArray[np.bool_], float]],
    weights: NDArray[np.float64],
    centre: NDArray[np.float64],
    shrinking: float,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the loss, its gradient and its Hessian at some weights."""
    away = weights - centre
    loss = shrinking * float((away * away).sum())
    slope = 2 * shrinking * away
    bend = 2 * shrinking * np.eye(len(weights))
    for features, is_gold, share in weighted:
        scores = (features * weights).sum(axis=1)
        powers = np.exp(scores - scores.max())
        others, gold = features[~is_gold], features[is_gold]
        chance = powers[~is_gold] / powers[~is_gold].sum()
        mean = (others * chance[:, None]).sum(axis=0)
        apart = gold - mean
        lost = powers[~is_gold].sum() / (powers[~is_gold].sum() + powers[is_gold])
        part = share / len(gold)
        loss -= part * float(np.log(np.maximum(1 - lost, np.finfo(float).tiny)).sum())
        slope = slope - part * (lost[:, None] * apart).sum(axis=0)
        spread = (others * chance[:, None]).T @ others - np.outer(mean, mean)
        bend = bend + part * (
            lost.sum() * spread + (apart * (lost * (1 - lost))[:, None]).T @ apart
        )
    return loss, slope, bend


def by_weights(weights: Mapping[str, float]) -> Order:
    """Return the ranking by some weights."""
    values = np.array([weights[name] for name in FITTED])
    return lambda one: (one.features * values).sum(axis=1)


def simple_order(name: str) -> Order:
    """Return a simpler ranking: `fused`, or the rank in one lane."""
    return lambda one: one.simple[name]


LEFT_OUT = "fitted to the other sets"


def compared(sets: Sets, whole: Mapping[str, float]) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Yield each set with the records of its questions by ranking.

    The first ranking uses weights that were fitted without the set.
    """
    present = {name: float(getattr(Weights(), name)) for name in FITTED}
    without: dict[str, dict[str, float]] = {}
    for name, questions in sets.items():
        kind = set_of(name)
        others = {other: found for other, found in sets.items() if set_of(other) != kind}
        if others and kind not in without:
            without[kind] = refined(others, fitted(others))
        orders = {LEFT_OUT: by_weights(without[kind])} if others else {}
        orders |= {
            "fitted to all sets" if others else "fitted to this set": by_weights(whole),
            "present weights": by_weights(present),
            "plain rank fusion": simple_order("fused"),
            "text lane alone": simple_order("text"),
            "vector lane alone": simple_order("vector"),
        }
        yield (
            name,
            {
                title: [{"id": one.id, "figures": one.figures(order)} for one in questions]
                for title, order in orders.items()
            },
        )


def fit(sets: Sets) -> dict[str, float]:
    """Return the weights for some sets; of one set alone, near the present weights."""
    if len({set_of(name) for name in sets}) == 1:
        return fitted(sets, Weights())
    present = {name: float(getattr(Weights(), name)) for name in FITTED}
    found = [refined(sets, start) for start in (fitted(sets), present)]
    return max(found, key=lambda weights: mean_figure(sets, weights))

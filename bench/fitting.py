"""Fit the weights of recall: `python -m bench.fitting FORMAT:FILE … [--embedder NAME] [--tries N]`.

FORMAT is `longmemeval` or `locomo`. Every question is asked once and what was weighed is kept; then
`Weights` near the present ones are drawn at random, and each is scored on all questions by the
engine's own `weigh`. What is printed is cross-validated: the weights of each fold (questions; of
LoCoMo, whole conversations) are those, or the mean of those, that were best on the others.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import worlddb.recall.recaller as recalling
from worlddb import Id, Weights, WorldDB
from worlddb.evaluate.benchmark_cases import GoldQuestion, asked_at, load_cases
from worlddb.evaluate.case_recall import ingest, is_measured, session_figures, turn_figures
from worlddb.recall.ranker import Candidates, Scores, weigh

FOLDS = 6
SPREAD = 0.7
BEST_OF = (1, 10)
"""How many of the best draws are averaged. The very best owes much to luck; the mean of many stays
near the present weights, which have seen every question: the truth lies between them or below."""
DEPTH = 200
FITTED = (
    "vector",
    "late",
    "text",
    "speaker",
    "world",
    "opening",
    "reply",
    "telling",
    "date",
    "age",
)
FIGURES = ("all@5", "all@10", "ndcg@10", "turns@50", "recall@10")


class Kept:
    """What was read word by word once, for every candidate of a question."""

    def __init__(self, scores: Scores) -> None:
        self.scores = scores

    def read(self, places: Any) -> Scores:
        """Return the scores of some candidates."""
        found: Scores = self.scores[places]
        return found


class Weighed(NamedTuple):
    """Everything that `weigh` was given for one question, and where its answers are."""

    fold: int
    question: GoldQuestion
    found: Candidates
    vector: NDArray[np.float32] | None
    asked_at: datetime
    places: list[tuple[int, int]]


def gather(given_file: str, embedder: str | None) -> list[Weighed]:
    """Ask every question once and keep what was weighed."""
    form, _, path = given_file.partition(":")
    kept: list[Weighed] = []
    given: list[tuple[Candidates, NDArray[np.float32] | None, datetime]] = []

    def record(found: Candidates, text: str, vector: Any, at: datetime, weights: Weights) -> Any:
        if found.closely is not None:
            everything = found.closely.read(range(len(found.parents)))
            found = replace(found, closely=Kept(everything))
        given.append((found, vector, at))
        return weigh(found, text, vector, at, weights)

    setattr(recalling, "weigh", record)  # noqa: B010 - no export of that module
    for number, case in enumerate(load_cases(path, form)):
        asked = [one for one in case.questions if is_measured(one)]
        if not asked:
            continue
        with WorldDB(":memory:", embedder=embedder) as db:
            places: dict[Id, tuple[int, int]] = ingest(db, case)
            for question in asked:
                db.recall(question.text, types=["Turn"], at=asked_at(case, question))
                # Candidates are in the order of writing, as places are.
                kept.append(Weighed(number, question, *given[-1], places=list(places.values())))
    setattr(recalling, "weigh", weigh)  # noqa: B010
    return kept


def figures(one: Weighed, weights: Weights) -> list[float]:
    """Return the figures of one question by some weights; NaN for those it has not."""
    scores = weigh(one.found, one.question.text, one.vector, one.asked_at, weights).scores
    turns = [one.places[place] for place in np.argsort(-scores, kind="stable")]
    sessions = list(dict.fromkeys(session for session, _ in turns))
    made = session_figures(sessions, one.question.sessions)
    made |= turn_figures(turns[:DEPTH], one.question.turns)
    return [made.get(name, float("nan")) for name in FIGURES]


def compare(sets: dict[str, list[Weighed]], tries: int) -> None:
    """Draw weights near the present ones; print what the best of them find, cross-validated."""
    rng = np.random.default_rng(5)
    drawn = [Weights()]
    for _ in range(tries):
        factors = np.exp(rng.uniform(-SPREAD, SPREAD, len(FITTED)))
        near: dict[str, Any] = {
            name: float(getattr(Weights(), name) * factors[i]) for i, name in enumerate(FITTED)
        }
        drawn.append(replace(Weights(), **near))
    # One array for each file: tries x questions x figures.
    results = {
        file: np.array([[figures(one, w) for one in kept] for w in drawn])
        for file, kept in sets.items()
    }
    folds = {file: np.array([one.fold % FOLDS for one in kept]) for file, kept in sets.items()}

    def best(left_out: int | None, count: int) -> Weights:
        """Return the mean of so many weights that do best on everything but one fold."""
        means = [
            np.nanmean(made[:, folds[file] != left_out], axis=1).mean(axis=1)
            for file, made in results.items()
        ]
        order = np.mean(means, axis=0).argsort(kind="stable")[::-1][:count]
        logs = {name: [np.log(getattr(drawn[n], name)) for n in order] for name in FITTED}
        mean: dict[str, Any] = {name: float(np.exp(np.mean(logs[name]))) for name in FITTED}
        return replace(Weights(), **mean)

    for file, kept in sets.items():
        rows = {"present weights": results[file][0]}
        for count in BEST_OF:
            chosen = [best(fold, count) for fold in range(FOLDS)]
            held = [figures(one, chosen[one.fold % FOLDS]) for one in kept]
            rows[f"mean of the best {count}, cross-validated"] = np.array(held)
        for name, values in rows.items():
            means = dict(zip(FIGURES, np.nanmean(values, axis=0).round(4).tolist(), strict=True))
            print(f"{file}: {name}: {means}")
    print(f"best {max(BEST_OF)} on everything:", best(None, max(BEST_OF)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FORMAT:FILE")
    parser.add_argument("--embedder")
    parser.add_argument("--tries", type=int, default=100)
    args = parser.parse_args()
    compare({given: gather(given, args.embedder) for given in args.files}, args.tries)


if __name__ == "__main__":
    main()

"""Fit the confidence of recall: `python -m bench.confidence_fit FORMAT:FILE … --cache DIR`.

Every question is asked in its own conversation, and some are asked in a conversation of somebody
else, where nothing answers them (*foreign*). What the engine noted of each answer (its signals) is
kept in the cache. A recall is right if gold is among its first ten hits, a hit if it is gold. Two
logistic models are fitted, of recalls and of hits; every file counts the same, and near misses and
foreign questions count as a quarter of a file's answerable ones each.

What is printed for a file is by models that were fitted to the other files: the AUROC of answerable
questions against those whose answer was never said (*near*), and against foreign ones, with 95 %
intervals by a bootstrap; and how the confidence compares with how often it was right, by tenths.
A signal that only one file has cannot be fitted to the others. So each file has a second line, by
models that were fitted to the other files and to the other conversations of this file. Files of
`--held` have no part in any fit and are only judged. `--write` fits to everything else and writes
`src/worlddb/recall/confidence.json`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import worlddb
from worlddb.evaluate.benchmark_cases import Case, GoldQuestion
from worlddb.evaluate.case_recall import VERBATIM_TYPES, ingest
from worlddb.evaluate.data_sets import load_cases
from worlddb.evaluate.figure_summary import auroc, reliability
from worlddb.evaluate.run_folder import file_digest
from worlddb.recall import hits
from worlddb.recall.confidence import PATH, HitSignals, LogisticModel, signals_of

SEED = 3
HITS = 10
FOREIGN_MAX = 8  # foreign questions in each conversation
SHARES = {"near": 0.25, "foreign": 0.25}  # what these count for, as a share of the answerable ones
RIDGE = 3.0  # pull of the weights towards 0; between 1 and 10 the figures stay the same
STEPS = 50  # of Newton's method, which needs about eight

DRAWS = 400  # of a bootstrap; more move no second digit
FOLDS = 5  # parts of the conversations of a file

FITTED = frozenset({"met", "topic", "lead", "words", "place", "nearness", "recall"})
"""The signals that have a weight. Others were tried and make no difference on a file left out."""

Row = dict[str, Any]


def gather(format_: str, path: str, cases_max: int, questions_max: int, embedder: str) -> list[Row]:
    """Ask the questions of a file; return what the engine noted of each."""
    drawn = random.Random(SEED)
    cases = list(load_cases(path, format_))
    if cases_max and len(cases) > cases_max:
        # Questions without an answer are few: their conversations come first.
        drawn.shuffle(cases)
        cases.sort(key=lambda case: all(one.has_answer for one in case.questions))
        cases = cases[:cases_max]
    every = [(number, one) for number, case in enumerate(cases) for one in case.questions]
    every = [(number, one) for number, one in every if one.has_answer]
    rows: list[Row] = []
    for number, case in enumerate(cases):
        others = [one for other, one in every if other != number]
        own = [one for one in case.questions if one.is_measured or not one.has_answer]
        if questions_max and len(own) > questions_max:
            own = drawn.sample(own, questions_max)
        foreign = drawn.sample(others, min(FOREIGN_MAX, len(own), len(others)))
        rows += ({**row, "case": number} for row in asked_in(case, own, foreign, embedder))
        print(format_, number + 1, "of", len(cases), len(rows), flush=True)
    return rows


def asked_in(
    case: Case, own: Sequence[GoldQuestion], foreign: Sequence[GoldQuestion], embedder: str
) -> Iterator[Row]:
    """Yield what the engine notes of the questions of one conversation, and of some others."""
    noted: list[HitSignals] = []

    def note(*arguments: Any) -> HitSignals:
        noted.append(signals_of(*arguments))
        return noted[-1]

    last = max(session.at for session in case.sessions)
    with worlddb.open(":memory:", embedder=embedder) as db, patch.object(hits, "signals_of", note):
        places = ingest(db, case)
        for question, is_own in [(one, True) for one in own] + [(one, False) for one in foreign]:
            at = case.asked_at(question) if is_own else last
            noted.clear()
            found = db.recall(question.text, k=HITS, types=VERBATIM_TYPES, at=at)
            label = "foreign" if not is_own else "yes" if question.has_answer else "near"
            gold = [
                label == "yes" and tuple(places.get(hit.id, ())) in question.turns for hit in found
            ]
            # Of a text with several questions, hits of several rankings take turns.
            if found.hits and noted and len(noted[-1].hits) == len(gold):
                yield {
                    "label": label,
                    "gold": gold,
                    "whole": dict(noted[-1].whole),
                    "hits": [dict(hit) for hit in noted[-1].hits],
                }


def fit(signals: Sequence[Mapping[str, float]], right: Any, counts: Any) -> LogisticModel:
    """Return the logistic model that fits best; no signal speaks against an answer."""
    names = sorted({name for one in signals for name in one} & FITTED)
    while True:
        made = _fit(signals, names, right, counts)
        least = min(names, key=made.weights.__getitem__)
        if made.weights[least] >= 0:
            return made
        names.remove(least)


def _fit(
    signals: Sequence[Mapping[str, float]], names: Sequence[str], right: Any, counts: Any
) -> LogisticModel:
    """Return the logistic model over some signals, by Newton's method with a ridge."""
    table = np.array([[one.get(name, np.nan) for name in names] for one in signals])
    counts = np.asarray(counts, dtype=float) / np.mean(counts)
    right = np.asarray(right, dtype=float)
    known = ~np.isnan(table)
    weighed = counts[:, None] * known
    means = np.where(known, table, 0).T @ counts / np.maximum(weighed.sum(axis=0), 1e-9)
    table = np.where(known, table - means, 0.0)
    spreads = np.sqrt((weighed * table**2).sum(axis=0) / np.maximum(weighed.sum(axis=0), 1e-9))
    spreads = np.where(spreads > 1e-6, spreads, 1.0)
    table = np.c_[np.ones(len(table)), table / spreads]
    weights = np.zeros(table.shape[1])
    pull = np.diag([0.0, *[RIDGE] * len(names)])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (counts * (right - chance)) - pull @ weights
        curve = (table * (counts * chance * (1 - chance))[:, None]).T @ table + pull
        weights = weights + np.linalg.solve(curve + 1e-9 * np.eye(len(curve)), slope)
    rounded = {name: round(float(it), 4) for name, it in zip(names, weights[1:], strict=True)}
    return LogisticModel(
        bias=round(float(weights[0]), 4),
        weights=rounded,
        means={name: round(float(it), 4) for name, it in zip(names, means, strict=True)},
        spreads={name: round(float(it), 4) for name, it in zip(names, spreads, strict=True)},
    )


def weights_of(rows: Sequence[Row]) -> list[float]:
    """Return what each question of a file counts; together 1."""
    every = Counter(row["label"] for row in rows)
    each = {label: share * every["yes"] / max(1, every[label]) for label, share in SHARES.items()}
    found = [each.get(row["label"], 1.0) for row in rows]
    return [one / sum(found) for one in found]


def fitted(sets: Mapping[str, Sequence[Row]]) -> tuple[LogisticModel, LogisticModel]:
    """Return the models of recalls and of hits that fit some files best."""
    rows = [row for kept in sets.values() for row in kept]
    counts = [count for kept in sets.values() for count in weights_of(kept)]
    whole = fit([row["whole"] for row in rows], [any(row["gold"]) for row in rows], counts)
    own, right, own_counts = [], [], []
    for row, count in zip(rows, counts, strict=True):
        logit = whole.logit(row["whole"])
        own += [{**hit, "recall": logit} for hit in row["hits"]]
        right += row["gold"]
        own_counts += [count] * len(row["hits"])
    return whole, fit(own, right, own_counts)


def by_conversation(sets: Mapping[str, Sequence[Row]], item: str) -> list[float]:
    """Return the chances of a file's questions by models that have not seen their conversation."""
    chances = [0.0] * len(sets[item])
    for fold in range(FOLDS):
        kept = [row for row in sets[item] if row["case"] % FOLDS != fold]
        whole = fitted({**sets, item: kept})[0]
        for place, row in enumerate(sets[item]):
            if row["case"] % FOLDS == fold:
                chances[place] = chance(whole, row)
    return chances


def chance(whole: LogisticModel, row: Row) -> float:
    """Return the probability that a recall is right, by a model."""
    return float(1 / (1 + np.exp(-whole.logit(row["whole"]))))


def between(right: Sequence[float], wrong: Sequence[float]) -> list[float] | None:
    """Return an AUROC with its 95 % interval."""
    found = auroc(right, wrong)
    if found is None:
        return None
    drawn = np.random.default_rng(SEED)
    draws = [
        auroc(drawn.choice(right, len(right)).tolist(), drawn.choice(wrong, len(wrong)).tolist())
        for _ in range(DRAWS)
    ]
    low, high = np.percentile(np.array(draws, dtype=float), [2.5, 97.5])
    return [found, round(float(low), 3), round(float(high), 3)]


def judged(rows: Sequence[Row], chances: Sequence[float]) -> dict[str, Any]:
    """Return how well chances tell the questions of a file apart."""
    by = {
        label: [it for it, row in zip(chances, rows, strict=True) if row["label"] == label]
        for label in ("yes", "near", "foreign")
    }
    own = [(it, any(row["gold"])) for it, row in zip(chances, rows, strict=True)]
    told = [pair for pair, row in zip(own, rows, strict=True) if row["label"] != "foreign"]
    return {
        "questions": {label: len(them) for label, them in by.items()},
        "near": between(by["yes"], by["near"]),
        "foreign": between(by["yes"], by["foreign"]),
        "found": between([it for it, ok in told if ok], [it for it, ok in told if not ok]),
        "tenths": reliability(own),
    }


def main() -> None:
    """Gather what is not in the cache, print the figures, and write the models if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("files", nargs="+", metavar="FORMAT:FILE")
    parser.add_argument("--cache", required=True, type=Path)
    parser.add_argument("--cases-max", type=int, default=0)
    parser.add_argument("--questions-max", type=int, default=0, help="of each conversation")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--held", action="append", default=[], metavar="FORMAT:FILE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    sets = {item: gathered(item, options) for item in options.files}
    figures = {}
    for item, rows in sets.items():
        others = {name: kept for name, kept in sets.items() if name != item} or sets
        whole = fitted(others)[0]
        found = judged(rows, [chance(whole, row) for row in rows])
        own = judged(rows, by_conversation(sets, item))
        figures[item.partition(":")[0]] = {"file left out": found, "conversations left out": own}
        show(item, "file left out", found)
        show(item, "conversations left out", own)
    whole = fitted(sets)[0]
    for item in options.held:
        rows = gathered(item, options)
        show(item, "held", judged(rows, [chance(whole, row) for row in rows]))
    if options.write:
        write(sets, figures, options)


def gathered(item: str, options: argparse.Namespace) -> list[Row]:
    """Return what the engine notes of the questions of a file, from the cache if it is there."""
    format_, _, path = item.partition(":")
    kept = options.cache / f"{format_}-{Path(path).name}-{options.embedder}.json"
    if not kept.exists():
        limits = (options.cases_max, options.questions_max)
        kept.write_text(json.dumps(gather(format_, path, *limits, options.embedder)))
    rows: list[Row] = json.loads(kept.read_text())
    return rows


def show(item: str, left: str, made: Mapping[str, Any]) -> None:
    """Print how well the questions of a file were told apart, and how sure was how right."""
    print(item, left, json.dumps({name: it for name, it in made.items() if name != "tenths"}))
    for tenth in made["tenths"]:
        print("  said {:.2f}, right {:.2f} of {}".format(*tenth))


def write(sets: Mapping[str, Sequence[Row]], figures: Any, options: argparse.Namespace) -> None:
    """Fit to everything and write the models with where they come from."""
    whole, hit = fitted(sets)
    files = [item.partition(":") for item in sets]
    names = " ".join(f"{format_}:{Path(path).name}" for format_, _, path in files)
    data = {
        "about": "Logistic models of the confidence of a recall and of a hit; see confidence.py.",
        **{
            part: {name: getattr(model, name) for name in LogisticModel.__slots__}
            for part, model in (("recall", whole), ("hit", hit))
        },
        "provenance": {
            "command": f"python -m bench.confidence_fit {names} --cache DIR --write",
            "cases_max": options.cases_max,
            "questions_max": options.questions_max,
            "embedder": options.embedder,
            "seed": SEED,
            "data": [
                {"file": Path(path).name, "format": format_, "sha256": file_digest(path)}
                for format_, _, path in files
            ],
            "figures": figures,
        },
    }
    PATH.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

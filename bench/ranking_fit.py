"""Fit the weights of recall: `python -m bench.ranking_fit FORMAT:FILE … --cache DIR [--write]`.

Every question is asked once, and what the ranker was given is kept (`bench.ranking_data`). Then
weights near the present ones are drawn at random, and each draw is scored on all questions by the
engine's own ranker. What is printed is cross-validated: the weights of each fold (questions; of
LoCoMo, whole conversations) are those, or the mean of those, that were best on the other folds.

`--write` writes the best draw over all questions into `src/worlddb/index/ranking.json`, with the
digests of the files, the seed and the command. The present weights stay if the best draw is not
better beyond the interval of its gain.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.ranking_data import FIGURES, RankedQuestion, figures, load_questions
from worlddb import Weights
from worlddb.evaluate.figure_summary import bootstrap
from worlddb.evaluate.run_folder import file_digest
from worlddb.index.ranking_numbers import PATH

FOLDS = 6  # LoCoMo's file has six conversations
SPREAD = 0.7  # draws are between half and twice the present weight
SEED = 5
BEST_OF = (1, 10)
"""How many of the best draws are averaged. The very best owes much to luck; the mean of many stays
near the present weights, which have seen every question: the truth lies between them or below."""
FITTED_ON = ("all@5", "all@10", "ndcg@10", "turns@50", "recall@10")

Sets = dict[str, list[RankedQuestion]]


def fitted_names(*, late: bool) -> list[str]:
    """Return the weights that `ranking.json` says are fitted; `late` only where it was read."""
    entries = json.loads(PATH.read_text(encoding="utf-8"))["weights"]
    names = [name for name, entry in entries.items() if entry["chosen"] == "fitted"]
    return [name for name in names if late or name != "late"]


def compare(sets: Sets, tries: int) -> Weights:
    """Draw weights near the present ones; print what the best find, cross-validated.

    Returns the best draw on everything if what it gains is beyond its interval, else the present
    weights: among many draws, one is always better by luck.
    """
    is_late = any(one.found.closely is not None for kept in sets.values() for one in kept)
    names = fitted_names(late=is_late)
    rng = np.random.default_rng(SEED)
    drawn = [Weights()]
    for _ in range(tries):
        factors = np.exp(rng.uniform(-SPREAD, SPREAD, len(names)))
        near: dict[str, Any] = {
            name: float(getattr(Weights(), name) * factors[i]) for i, name in enumerate(names)
        }
        drawn.append(replace(Weights(), **near))
    # One array for each file: tries x questions x figures.
    results = {
        file: np.array([[figures(one, weights) for one in kept] for weights in drawn])
        for file, kept in sets.items()
    }
    folds = {file: np.array([one.fold % FOLDS for one in kept]) for file, kept in sets.items()}
    columns = [FIGURES.index(name) for name in FITTED_ON]

    def best(left_out: int | None, count: int) -> Weights:
        """Return the mean of so many weights that do best on everything but one fold."""
        means = [
            np.nanmean(made[:, folds[file] != left_out][:, :, columns], axis=1).mean(axis=1)
            for file, made in results.items()
        ]
        order = np.mean(means, axis=0).argsort(kind="stable")[::-1][:count]
        logs = {name: [np.log(getattr(drawn[n], name)) for n in order] for name in names}
        mean: dict[str, Any] = {name: float(np.exp(np.mean(logs[name]))) for name in names}
        return drawn[order[0]] if count == 1 else replace(Weights(), **mean)

    for file, kept in sets.items():
        rows = {"present weights": results[file][0]}
        for count in BEST_OF:
            chosen = [best(fold, count) for fold in range(FOLDS)]
            held = [figures(one, chosen[one.fold % FOLDS]) for one in kept]
            rows[f"mean of the best {count}, cross-validated"] = np.array(held)
        for name, values in rows.items():
            print(f"{file}: {name}: {means_of(values)}")
    print(f"best {max(BEST_OF)} on everything:", best(None, max(BEST_OF)))
    winner = best(None, 1)
    number = drawn.index(winner)
    gains = [np.nanmean((made[number] - made[0])[:, columns], axis=1) for made in results.values()]
    low, high = bootstrap(np.concatenate(gains).tolist())
    print(f"the best draw gains {np.concatenate(gains).mean():+.4f} [{low:+.4f}, {high:+.4f}]")
    return winner if low > 0 else Weights()


def means_of(values: Any) -> dict[str, float]:
    """Return the mean of each figure."""
    return dict(zip(FIGURES, np.nanmean(values, axis=0).round(4).tolist(), strict=True))


def write(best: Weights, sets: Sets, files: list[str], args: argparse.Namespace) -> None:
    """Write weights into `ranking.json`, with where they come from."""
    ranking = json.loads(PATH.read_text(encoding="utf-8"))
    for name in fitted_names(late=True):
        ranking["weights"][name]["value"] = round(getattr(best, name), 4)
    names = [f"{given.partition(':')[0]}:{Path(given).name}" for given in files]
    ranking["provenance"] = {
        "command": f"python -m bench.ranking_fit {' '.join(names)} --cache candidates "
        f"--tries {args.tries} --write",
        "outcome": "the weights from before stay: no draw was better beyond its interval"
        if best == Weights()
        else "the best draw",
        "seed": SEED,
        "draws": args.tries + 1,
        "embedder": args.embedder or "the default",
        "data": [
            {
                "file": Path(given).name,
                "format": given.partition(":")[0],
                "sha256": file_digest(given.partition(":")[2]),
                "questions": len(sets[given]),
            }
            for given in files
        ],
        "figures": {
            name: means_of([figures(one, best) for one in sets[given]])
            for name, given in zip(names, files, strict=True)
        },
    }
    PATH.write_text(as_text(ranking), encoding="utf-8")
    print(f"written: {PATH.name}")


def as_text(ranking: dict[str, Any]) -> str:
    """Return the file's text: one line for each number, so that a change can be read."""
    parts = [f'  "about": {json.dumps(ranking["about"])}']
    for part in ("weights", "scalars"):
        lines = (f'    "{name}": {json.dumps(entry)}' for name, entry in ranking[part].items())
        parts.append(f'  "{part}": {{\n' + ",\n".join(lines) + "\n  }")
    provenance = json.dumps({"provenance": ranking["provenance"]}, indent=2)
    parts.append(provenance.removeprefix("{\n").removesuffix("\n}"))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FORMAT:FILE")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for candidates")
    parser.add_argument("--embedder")
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--write", action="store_true", help="into ranking.json")
    args = parser.parse_args()
    sets = {given: load_questions(given, args.cache, args.embedder) for given in args.files}
    best = compare(sets, args.tries)
    if args.write:
        write(best, sets, args.files, args)


if __name__ == "__main__":
    main()

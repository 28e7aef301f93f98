"""What each number of the ranking is worth: `python -m bench.ablation FORMAT:FILE … --cache DIR`.

Every weight is set to 0, and every scalar that has an `off` value in `ranking.json` to that value,
one at a time. All questions are ranked again, and the change of each figure is printed with the
interval of its mean (95 %, a bootstrap over the questions, which are the same before and after). A
star marks a change whose interval leaves out 0. A number that has no star anywhere, or only such
as would rather see it gone, does not pay for itself. See `bench.ranking_data` for the formats.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.ranking_data import FIGURES, LANE_SCALARS, RankedQuestion, figures, load_questions
from worlddb import Weights
from worlddb.evaluate.figure_summary import bootstrap
from worlddb.index.ranking_numbers import PATH, SCALARS, RankingScalars

Table = NDArray[np.float64]


def variants() -> Iterator[tuple[str, Weights, RankingScalars]]:
    """Yield each number that can be switched off, with the weights and scalars without it."""
    file = json.loads(PATH.read_text(encoding="utf-8"))
    usual = Weights()
    for name in file["weights"]:
        if getattr(usual, name):
            off: dict[str, Any] = {name: 0.0}
            yield name, replace(usual, **off), SCALARS
    for name in (item.name for item in fields(SCALARS)):
        if "off" in file["scalars"][name]:
            off = {name: file["scalars"][name]["off"]}
            yield f"{name} = {off[name]:g}", usual, replace(SCALARS, **off)


def ranked(
    questions: list[RankedQuestion], name: str, weights: Weights, scalars: RankingScalars
) -> Table:
    """Return the figures of every question with one number switched off."""
    lane_scalar = name.partition(" ")[0]
    if lane_scalar in LANE_SCALARS:
        questions = [one.without(lane_scalar) for one in questions]
    return np.array([figures(one, weights, scalars) for one in questions])


def cell(before: Table, after: Table) -> str:
    """Return the mean change of a figure, with a star if its interval leaves out 0."""
    change = (after - before)[~np.isnan(after - before)]
    if not change.any():
        return "0"
    low, high = bootstrap(change.tolist())
    star = "\\*" if low > 0 or high < 0 else ""
    return f"{change.mean():+.4f}{star} [{low:+.3f}, {high:+.3f}]"


def print_row(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FORMAT:FILE")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for candidates")
    parser.add_argument("--embedder")
    args = parser.parse_args()
    for given in args.files:
        questions = load_questions(given, args.cache, args.embedder)
        base = np.array([figures(one, Weights()) for one in questions])
        print(f"\n{given.partition(':')[0]}: {Path(given).name}, {len(questions)} questions\n")
        print_row(["without", *FIGURES])
        print("|---" * (len(FIGURES) + 1) + "|")
        print_row(["nothing", *(f"{mean:.4f}" for mean in np.nanmean(base, axis=0))])
        for name, weights, scalars in variants():
            made = ranked(questions, name, weights, scalars)
            changes = (cell(base[:, n], made[:, n]) for n in range(len(FIGURES)))
            print_row([f"`{name}`", *changes])


if __name__ == "__main__":
    main()

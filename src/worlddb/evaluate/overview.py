"""Overview: every benchmark file of a folder, against what simpler rankings give on it.

    files ──format_of──▶ runs (as asked for, without the graph lane, …) ──▶ one table

A figure has its interval. A star marks a difference to the first row of a set whose interval leaves
out 0: both rows ask the same questions, so the interval is that of the mean of their differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worlddb.errors import FormatError, InvalidInputError
from worlddb.evaluate.ablation import BASE
from worlddb.evaluate.data_sets import DATA_SETS, format_of
from worlddb.evaluate.figure_summary import bootstrap, mean_of

if TYPE_CHECKING:
    from worlddb.evaluate.benchmark_settings import RunSettings


def files_in(folder: str) -> dict[str, str]:
    """Return the benchmark files of a folder and their formats, by name; others are passed over.

    Raises:
        InvalidInputError: there is no benchmark file.
    """
    found: dict[str, str] = {}
    for path in sorted(Path(folder).glob("*.json*")):
        try:
            found[str(path)] = format_of(str(path))
        except FormatError:
            continue
    if not found:
        raise InvalidInputError(f"{folder}: has no benchmark file; give a folder with some")
    return found


def variants(base: RunSettings) -> Iterator[tuple[str, RunSettings]]:
    """Yield the run as asked for, and the simpler ones beside it."""
    yield BASE, base
    yield "without the graph lane", replace(base, lanes=("text", "vector"))
    if base.reading != "verbatim":
        yield "no facts and entities", replace(base, facts=False)
        yield "no accepted classes", replace(base, classes=False)
    yield "plain rank fusion", replace(base, weighed=False)
    yield "text lane alone", replace(base, lanes=("text",), weighed=False)
    yield "vector lane alone", replace(base, lanes=("vector",), weighed=False)


def overview_rows(
    form: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[list[str]]:
    """Yield a row for each run of a file: set, run, questions, and each headline figure.

    The first run is the one that the others are compared with.
    """
    first = next(iter(runs.values()))
    for title, records in runs.items():
        cells = [_cell(name, first, records) for name in DATA_SETS[form].headline]
        yield [form, title, str(len(records)), "; ".join(cell for cell in cells if cell)]


def _cell(
    name: str, first: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]]
) -> str:
    before = {one["id"]: one["figures"][name] for one in first if name in one.get("figures", {})}
    after = {one["id"]: one["figures"][name] for one in records if name in one.get("figures", {})}
    if not after:
        return ""
    mean = mean_of(list(after.values()))
    changed = [after[ident] - before[ident] for ident in before if ident in after]
    low, high = bootstrap(changed) if any(changed) else (0.0, 0.0)
    star = "*" if low > 0 or high < 0 else ""
    return f"{name} {mean.value:.3f}{star} [{mean.low:.3f}, {mean.high:.3f}]"

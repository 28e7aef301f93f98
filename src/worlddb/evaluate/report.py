"""Report: a run for people, as Markdown and as one HTML file that needs nothing else.

records ──summarise──▶ tables by category, intervals, plots, what was spent, what went wrong
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from worlddb.embed.names import DEFAULT
from worlddb.evaluate import plots
from worlddb.evaluate.intervals import Mean
from worlddb.evaluate.pages import Plot, Table, write_pages
from worlddb.evaluate.retrieval import DEFINITIONS as RANKS
from worlddb.evaluate.retrieval import DEFINITIONS_OF as RANKS_OF
from worlddb.evaluate.retrieval import SESSIONS_AT, TURNS_AT
from worlddb.evaluate.summary import ABSTENTION, ALL, AVERAGED, Group, Summary
from worlddb.evaluate.summary import DEFINITIONS as ANSWERS

WRONG_MAX = 500
TEXT_CHARS_MAX = 600


def tables_of(summary: Summary, benchmark: str = "") -> list[Table]:
    """Return the figures of a run as tables, each with what its columns mean."""
    found = []
    figures = summary.figures
    ranks = {**RANKS, **RANKS_OF.get(benchmark, {})}
    if figures:
        sessions = [name for name in figures[-1].means if not name.startswith(_TURN_FIGURES)]
        turns = [name for name in figures[-1].means if name.startswith(_TURN_FIGURES)]
        found.append(_table("Sessions", figures, sessions, ranks, _bars("all@5", figures)))
        found.append(_table("Turns", figures, turns, ranks, _curves(figures)))
    if summary.answers:
        names = list(summary.answers[-1].means | summary.answers[0].means)
        best = "correct" if "correct" in names else "match"
        order = [name for name in _ANSWER_FIGURES if name in names]
        plot = _bars(best, summary.answers)
        found.append(_table("Answers", summary.answers, order, ANSWERS, plot))
    return found


_TURN_FIGURES = ("turns@", "recall@", "tokens@")
_ANSWER_FIGURES = ("correct", "match", "numeric", "exact", "f1", "evidence", "tokens")


def _table(
    title: str,
    groups: Sequence[Group],
    names: Sequence[str],
    notes: Mapping[str, str],
    plot: Plot | None,
) -> Table:
    shown = {name.partition("@")[0] for name in names} | {"n", AVERAGED, ABSTENTION}
    kept = {
        name: text
        for name, text in notes.items()
        if shown & {part.partition("@")[0].strip() for part in name.split(",")}
    }
    rows, means = (
        [
            [
                one.name,
                str(_asked(one, names)),
                *(_cell(name, one.means.get(name), whole=whole) for name in names),
            ]
            for one in groups
        ]
        for whole in (True, False)
    )
    present = {one.name for one in groups}
    kept = {
        name: text
        for name, text in kept.items()
        if name not in (AVERAGED, ABSTENTION) or name in present
    }
    return Table(
        title=title,
        headers=["category", "n", *names],
        rows=rows,
        means=means,
        intervals=_intervals(groups, names),
        notes=kept,
        plot=plot,
        is_figures=True,
    )


def _asked(group: Group, names: Sequence[str]) -> int:
    """Return over how many questions the first figure of a table is."""
    if group.name == AVERAGED:
        return group.n
    counted = [name for name in names if name in group.means and not name.startswith("tokens")]
    return group.means[counted[0]].n if counted else 0


def _intervals(groups: Sequence[Group], names: Sequence[str]) -> str:
    whole = next(one for one in groups if one.name == ALL)
    told = (
        f"{name} {mean.low:.3f} to {mean.high:.3f}"
        for name in names
        if (mean := whole.means.get(name)) is not None and not name.startswith("tokens")
    )
    return ", ".join(told)


def _cell(name: str, mean: Mean | None, *, whole: bool) -> str:
    if mean is None:
        return ""
    if name.startswith("tokens"):
        return f"{mean.value:,.0f}"
    if not whole or mean.low == mean.high:
        return f"{mean.value:.3f}"
    return f"{mean.value:.3f} [{mean.low:.2f}, {mean.high:.2f}]"


def _bars(name: str, groups: Sequence[Group]) -> Plot | None:
    shown = [(one.name, one.means[name]) for one in groups if name in one.means]
    title = f"{name} by category, with 95 % intervals"
    return Plot(title, plots.bars(title, shown)) if shown else None


def _curves(groups: Sequence[Group]) -> Plot | None:
    lines = {
        one.name: [one.means[f"turns@{k}"].value for k in TURNS_AT]
        for one in groups
        if "turns@5" in one.means
    }
    title = "turns@k: all gold turns among the first k"
    return Plot(title, plots.curves(title, TURNS_AT, lines)) if lines else None


def _failed(failed: Mapping[str, str]) -> Table:
    rows = [[name, _short(error)] for name, error in failed.items()]
    more = f", the first {WRONG_MAX} of {len(rows)}" if len(rows) > WRONG_MAX else ""
    return Table(
        title=f"Failed ({len(rows)}{more})",
        headers=["id", "error"],
        rows=rows[:WRONG_MAX],
        notes={"failed": "in no figure of this report; the same command asks them again"},
    )


def _wrong(records: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return the questions that went wrong: answered wrongly, or with gold out of sight."""
    answered = any("qa" in record for record in records)
    rows = [
        [record["id"], record["category"], record["question"], *map(_short, told)]
        for record in records
        for told in [_wrong_answer(record) if answered else _out_of_sight(record)]
        if told is not None
    ]
    if not rows:
        return None
    more = f", the first {WRONG_MAX} of {len(rows)}" if len(rows) > WRONG_MAX else ""
    last = ["answer", "evidence found"] if answered else ["gold sessions at"]
    return Table(
        title=f"What went wrong ({len(rows)}{more})",
        headers=["id", "category", "question", "reference", *last],
        rows=rows[:WRONG_MAX],
    )


def _wrong_answer(record: Mapping[str, Any]) -> list[str] | None:
    qa = record["qa"]
    right = qa["score"]["match"] == 1.0 if qa["correct"] is None else qa["correct"]
    found = {True: "yes", False: "no", None: "none is marked"}[qa["evidence"]["all_sessions"]]
    return None if right else [record["reference"], qa["answer"], found]


def _out_of_sight(record: Mapping[str, Any]) -> list[str] | None:
    if record["figures"][f"all@{SESSIONS_AT[0]}"] == 1.0:
        return None
    ranks = [rank for _, rank in record["evidence_ranks"]["sessions"]]
    return [record["reference"], ", ".join(str(rank or "nowhere") for rank in ranks)]


def _short(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}…"


def _run_table(run: Mapping[str, Any], more: Mapping[str, str]) -> Table:
    told = {**run, **more}
    if "embedder" in run and run["embedder"] is None:
        told["embedder"] = f"{DEFAULT}, by default"
    rows = [[name, _plain(value)] for name, value in told.items() if value != {}]
    return Table(title="The run", headers=["setting", "value"], rows=rows)


def _plain(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "as by default", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def write_report(
    folder: Path,
    run: Mapping[str, Any],
    summary: Summary,
    records: Sequence[Mapping[str, Any]],
    more: Mapping[str, str],
    *,
    part: str = "",
    failed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write `report.md` with its drawings, and `report.html`, into the folder of a run.

    `part` says which of a file's questions these are, if not all: that belongs into the title, and
    so does how many `failed`, which are in no figure.
    """
    title = f"{run['benchmark']}: {run['mode']}{part and f', {part}'}"
    if failed:
        asked = len(records) + len(failed)
        title += f": {len(records)} of {asked} questions, {len(failed)} failed"
    wrong = _wrong(records)
    tables = [
        *([_failed(failed)] if failed else []),
        *tables_of(summary, run["benchmark"]),
        *([wrong] if wrong else []),
        _run_table(run, more),
    ]
    write_pages(folder, "report", title, tables)

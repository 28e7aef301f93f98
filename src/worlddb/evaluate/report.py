"""Report: a run for people, as Markdown and as one HTML file that needs nothing else.

records ──summarise──▶ tables by category, intervals, plots, what was spent, what went wrong
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from worlddb.evaluate import plots
from worlddb.evaluate.intervals import Mean
from worlddb.evaluate.plots import xml_text
from worlddb.evaluate.retrieval import DEFINITIONS as RANKS
from worlddb.evaluate.retrieval import SESSIONS_AT, TURNS_AT
from worlddb.evaluate.summary import ABSTENTION, ALL, AVERAGED, Group, Summary
from worlddb.evaluate.summary import DEFINITIONS as ANSWERS

WRONG_MAX = 500
TEXT_CHARS_MAX = 600
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0;font-size:13px}"
    "th,td{border-bottom:1px solid #ddd;padding:.25rem .6rem;text-align:left;vertical-align:top}"
    "td.n{text-align:right;white-space:nowrap}small,figcaption{color:#666}"
    "figure{margin:1rem 0}svg{max-width:100%;height:auto}"
)

Rows = list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table under its title."""

    title: str
    headers: list[str]
    rows: Rows
    means: Rows = field(default_factory=list)
    """The rows without their intervals, for a narrow place."""
    intervals: str = ""
    """Those of all questions, in one line."""
    notes: Mapping[str, str] = field(default_factory=dict)
    plot: str = ""


def tables_of(summary: Summary) -> list[Table]:
    """Return the figures of a run as tables, each with what its columns mean."""
    found = []
    figures = summary.figures
    if figures:
        sessions = [name for name in figures[-1].means if not name.startswith(_TURN_FIGURES)]
        turns = [name for name in figures[-1].means if name.startswith(_TURN_FIGURES)]
        found.append(_table("Sessions", figures, sessions, RANKS, _bars("all@5", figures)))
        found.append(_table("Turns", figures, turns, RANKS, _curves(figures)))
    if summary.answers:
        names = list(summary.answers[-1].means | summary.answers[0].means)
        best = "correct" if "correct" in names else "match"
        order = [name for name in _ANSWER_FIGURES if name in names]
        plot = _bars(best, summary.answers)
        found.append(_table("Answers", summary.answers, order, ANSWERS, plot))
    return found


_TURN_FIGURES = ("turns@", "recall@", "tokens@")
_ANSWER_FIGURES = ("correct", "match", "exact", "f1", "evidence", "tokens")


def _table(
    title: str, groups: Sequence[Group], names: Sequence[str], notes: Mapping[str, str], plot: str
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


def _bars(name: str, groups: Sequence[Group]) -> str:
    shown = [(one.name, one.means[name]) for one in groups if name in one.means]
    return plots.bars(f"{name} by category, with 95 % intervals", shown) if shown else ""


def _curves(groups: Sequence[Group]) -> str:
    lines = {
        one.name: [one.means[f"turns@{k}"].value for k in TURNS_AT]
        for one in groups
        if "turns@5" in one.means
    }
    return plots.curves("turns@k: all gold turns among the first k", TURNS_AT, lines)


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
    found = "yes" if qa["evidence"]["all_sessions"] else "no"
    return None if right else [record["reference"], qa["answer"], found]


def _out_of_sight(record: Mapping[str, Any]) -> list[str] | None:
    if record["figures"][f"all@{SESSIONS_AT[0]}"] == 1.0:
        return None
    ranks = [rank for _, rank in record["evidence_ranks"]["sessions"]]
    return [record["reference"], ", ".join(str(rank or "nowhere") for rank in ranks)]


def _short(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}…"


def _run_table(run: Mapping[str, Any], more: Mapping[str, str]) -> Table:
    rows = [[name, _plain(value)] for name, value in {**run, **more}.items() if value != {}]
    return Table(title="The run", headers=["setting", "value"], rows=rows)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def write_report(
    folder: Path,
    run: Mapping[str, Any],
    summary: Summary,
    records: Sequence[Mapping[str, Any]],
    more: Mapping[str, str],
) -> None:
    """Write `report.md` and `report.html` into the folder of a run."""
    title = f"{run['benchmark']}: {run['mode']}"
    wrong = _wrong(records)
    tables = [*tables_of(summary), *([wrong] if wrong else []), _run_table(run, more)]
    (folder / "report.md").write_text(
        as_markdown(title, tables), encoding="utf-8", errors="replace"
    )
    (folder / "report.html").write_text(as_html(title, tables), encoding="utf-8", errors="replace")


def as_markdown(title: str, tables: Sequence[Table]) -> str:
    """Return tables as Markdown."""
    parts = [f"# {title}\n"]
    for table in tables:
        parts.append(f"\n## {table.title}\n\n")
        parts.append(_markdown_row(table.headers) + "|---" * len(table.headers) + "|\n")
        parts += [_markdown_row(row) for row in table.rows]
        parts += [f"\n- *{name}*: {text}" for name, text in table.notes.items()]
        parts.append("\n" if table.notes else "")
    return "".join(parts)


def _markdown_row(cells: Sequence[str]) -> str:
    shown = (" ".join(escape(cell, quote=False).replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(shown)} |\n"


def as_html(title: str, tables: Sequence[Table]) -> str:
    """Return tables and plots as one page that is well-formed XML as well."""
    parts = [
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/>"
        f"<title>{xml_text(title)}</title><style>{STYLE}</style></head><body><h1>{xml_text(title)}</h1>"
    ]
    for table in tables:
        head = "".join(f"<th>{xml_text(name)}</th>" for name in table.headers)
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>\n" for row in table.rows)
        notes = "<br/>".join(
            f"<i>{xml_text(name)}</i>: {xml_text(text)}" for name, text in table.notes.items()
        )
        parts.append(
            f"<h2>{xml_text(table.title)}</h2>{table.plot}\n<table><thead><tr>{head}</tr></thead>"
            f"<tbody>\n{body}</tbody></table><p><small>{notes}</small></p>\n"
        )
    return "".join([*parts, "</body></html>\n"])


def _html_cell(text: str) -> str:
    is_number = text[:1].isdigit() and all(sign in "0123456789.,[] " for sign in text)
    return f"<td class='n'>{xml_text(text)}</td>" if is_number else f"<td>{xml_text(text)}</td>"

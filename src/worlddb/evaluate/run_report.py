"""Run report: the figures of a run for people, as Markdown and as one self-contained HTML file.

    records ──summarise──▶ tables by category, intervals, bars, costs, errors

Both files are written from the same tables.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from worlddb.evaluate.case_recall import RANK_DEFINITIONS, SESSIONS_AT
from worlddb.evaluate.data_sets import DATA_SETS
from worlddb.evaluate.figure_summary import (
    ABSTENTION,
    ALL,
    ANSWER_DEFINITIONS,
    AVERAGED,
    CONFIDENCE_DEFINITIONS,
    Group,
    Mean,
    Summary,
)

WRONG_MAX = 500  # rows; nobody reads a longer table
TEXT_CHARS_MAX = 600  # per cell
DEFAULT_EMBEDDER = "WorldDB's default"
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "color:#222;background:#fff}"
    "div.wide{overflow-x:auto}"
    "table{border-collapse:collapse;margin:1rem 0;font-size:13px}"
    "th,td{border-bottom:1px solid #ddd;padding:.25rem .5rem;text-align:left;vertical-align:top}"
    ".figures :is(th,td):not(:first-child){text-align:right;white-space:nowrap}"
    ".figures td small{display:block;font-size:10px}"
    "td{overflow-wrap:anywhere}.figures td:first-child{white-space:nowrap}"
    "tr.whole td{font-weight:bold}tr.whole small{font-weight:normal}"
    "small,figcaption{color:#666}figure{margin:1rem 0}svg{max-width:100%;height:auto}"
)
BRACKETS = (
    "In brackets, 95 % intervals: Wilson's for shares, which are means of nothing but 0 and 1, a "
    "bootstrap over the questions for other means."
)
WIDTH, BAR, GAP, LABEL, RIGHT = 640, 18, 10, 190, 70
"""Of a drawing, its bars, the space between them, and what stands left and right of them."""
_TURN_FIGURES = ("turns@", "recall@", "last@", "outdated@", "tokens@")
_ANSWER_FIGURES = ("correct", "match", "numeric", "exact", "f1", "evidence", "tokens")
_INTERVAL = re.compile(r"(\S+) (\[.*\])")

Rows = list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its title."""

    title: str
    headers: list[str]
    rows: Rows
    means: Rows = field(default_factory=list)
    """The rows without their intervals, for a narrow place."""
    intervals: str = ""
    """The intervals over all questions, in one line."""
    notes: Mapping[str, str] = field(default_factory=dict)
    bars_title: str = ""
    bars: str = ""
    """A drawing, as SVG."""
    is_figures: bool = False
    """Whether all but the first column are figures."""


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

    If not all questions were asked, the title describes them (`part`). It also has the number of
    `failed` questions, which are in no figure.
    """
    title = f"{run['benchmark']}: {run['mode']}{part and f', {part}'}"
    if failed:
        asked = len(records) + len(failed)
        title += f": {len(records)} of {asked} questions, {len(failed)} failed"
    notes = {"failed": "in no figure of this report; the same command asks them again"}
    errors = [[name, error] for name, error in failed.items()]
    tables = [
        *_long_table("Failed", ["id", "error"], errors, notes),
        *tables_of(summary, run["benchmark"]),
        *_wrong(records),
        _run_table(run, more),
    ]
    write_pages(folder, "report", title, tables)


def tables_of(summary: Summary, benchmark: str = "") -> list[Table]:
    """Return the figures of a run as tables, with the meaning of each column."""
    found = []
    figures = summary.figures
    ranks = dict(RANK_DEFINITIONS)
    if benchmark in DATA_SETS and DATA_SETS[benchmark].gold_rule:
        ranks["n"] = DATA_SETS[benchmark].gold_rule
    if figures:
        sessions = [name for name in figures[-1].means if not name.startswith(_TURN_FIGURES)]
        turns = [name for name in figures[-1].means if name.startswith(_TURN_FIGURES)]
        found.append(_figure_table("Sessions", figures, sessions, ranks, "all@5"))
        found.append(_figure_table("Turns", figures, turns, ranks, "turns@50"))
    if summary.confidence:
        found.append(_confidence_table(summary.confidence))
    if summary.answers:
        names = summary.answers[-1].means | summary.answers[0].means
        best = "correct" if "correct" in names else "match"
        order = [name for name in _ANSWER_FIGURES if name in names]
        found.append(_figure_table("Answers", summary.answers, order, ANSWER_DEFINITIONS, best))
    return found


def _confidence_table(figures: Mapping[str, Any]) -> Table:
    """Return the confidence of recalls by tenths, and how often the answer was found."""
    rows = [[f"{said:.3f}", f"{right:.3f}", str(count)] for said, right, count in figures["tenths"]]
    return Table(
        title="Confidence",
        headers=["confidence", "answer found", "questions"],
        rows=rows,
        means=rows,
        notes={
            name: text.format(figures[name])
            for name, text in CONFIDENCE_DEFINITIONS.items()
            if figures.get(name) is not None
        },
        is_figures=True,
    )


def _figure_table(
    title: str,
    groups: Sequence[Group],
    names: Sequence[str],
    definitions: Mapping[str, str],
    drawn: str,
) -> Table:
    """Return the table of some figures, with a drawing of one of them."""
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
    shown = {name.partition("@")[0] for name in names} | {"n"} | ({AVERAGED, ABSTENTION} & present)
    all_means = next(one for one in groups if one.name == ALL).means
    with_bars = [(one.name, one.means[drawn]) for one in groups if drawn in one.means]
    bars_title = f"{drawn} by category, with 95 % intervals" if with_bars else ""
    return Table(
        title=title,
        headers=["category", "n", *names],
        rows=rows,
        means=means,
        intervals=", ".join(
            f"{name} {all_means[name].low:.3f} to {all_means[name].high:.3f}"
            for name in names
            if name in all_means and not name.startswith("tokens")
        ),
        notes={
            name: text
            for name, text in definitions.items()
            if shown & {part.partition("@")[0].strip() for part in name.split(",")}
        },
        bars_title=bars_title,
        bars=bars(bars_title, with_bars) if with_bars else "",
        is_figures=True,
    )


def _asked(group: Group, names: Sequence[str]) -> int:
    """Return the number of questions behind the first figure of a table."""
    if group.name == AVERAGED:
        return group.n
    counted = [name for name in names if name in group.means and not name.startswith("tokens")]
    return group.means[counted[0]].n if counted else 0


def _cell(name: str, mean: Mean | None, *, whole: bool) -> str:
    if mean is None:
        return ""
    if name.startswith("tokens"):
        return f"{mean.value:,.0f}"
    if not whole or mean.low == mean.high:
        return f"{mean.value:.3f}"
    return f"{mean.value:.3f} [{mean.low:.2f}, {mean.high:.2f}]"


def _long_table(
    title: str, headers: list[str], rows: Rows, notes: Mapping[str, str] = MappingProxyType({})
) -> list[Table]:
    """Return a table of shortened texts; none without rows."""
    if not rows:
        return []
    more = f", the first {WRONG_MAX} of {len(rows)}" if len(rows) > WRONG_MAX else ""
    shown = [
        [cell if len(cell) <= TEXT_CHARS_MAX else f"{cell[:TEXT_CHARS_MAX]}…" for cell in row]
        for row in rows[:WRONG_MAX]
    ]
    return [Table(title=f"{title} ({len(rows)}{more})", headers=headers, rows=shown, notes=notes)]


def _wrong(records: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the questions answered wrongly or, without answers, those whose gold is missing."""
    answered = any("qa" in record for record in records)
    rows = [
        [record["id"], record["category"], record["question"], record["reference"], *told]
        for record in records
        for told in [_wrong_answer(record["qa"]) if answered else _out_of_sight(record)]
        if told is not None
    ]
    last = ["answer", "evidence found"] if answered else ["gold sessions at"]
    headers = ["id", "category", "question", "reference", *last]
    return _long_table("What went wrong", headers, rows)


def _wrong_answer(qa: Mapping[str, Any]) -> list[str] | None:
    right = qa["score"]["match"] == 1.0 if qa["correct"] is None else qa["correct"]
    found = {True: "yes", False: "no", None: "none is marked"}[qa["evidence"]["all_sessions"]]
    return None if right else [qa["answer"], found]


def _out_of_sight(record: Mapping[str, Any]) -> list[str] | None:
    if "figures" not in record or record["figures"][f"all@{SESSIONS_AT[0]}"] == 1.0:
        return None
    ranks = [rank for _, rank in record["evidence_ranks"]["sessions"]]
    return [", ".join(str(rank or "nowhere") for rank in ranks)]


def _run_table(run: Mapping[str, Any], more: Mapping[str, str]) -> Table:
    told = {**run, **more}
    if "embedder" in run and run["embedder"] is None:
        told["embedder"] = DEFAULT_EMBEDDER
    rows = [[name, _plain(value)] for name, value in told.items() if value != {}]
    return Table(title="The run", headers=["setting", "value"], rows=rows)


def _plain(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "as by default", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# Pages.


def write_pages(folder: Path, name: str, title: str, tables: Sequence[Table]) -> None:
    """Write tables as both pages, with drawings as files beside the Markdown page."""
    pages = {f"{name}.md": as_markdown(title, tables), f"{name}.html": as_html(title, tables)}
    pages |= {_drawing(table): table.bars for table in tables if table.bars}
    for file, text in pages.items():
        (folder / file).write_text(text, encoding="utf-8", errors="replace")


def _drawing(table: Table) -> str:
    return f"{table.title.lower()}.svg"


def as_markdown(title: str, tables: Sequence[Table]) -> str:
    """Return tables as Markdown."""
    parts = [f"# {title}\n"]
    for table in tables:
        parts.append(f"\n## {table.title}\n\n")
        if table.bars:
            parts.append(f"![{table.bars_title}]({_drawing(table)})\n\n")
        parts.append(_markdown_row(table.headers) + "|---" * len(table.headers) + "|\n")
        parts += [_markdown_row(row) for row in table.rows]
        parts += [f"\n- *{name}*: {text}" for name, text in table.notes.items()]
        parts.append("\n" if table.notes else "")
        parts.append(f"\n{BRACKETS}\n" if table.is_figures else "")
    return "".join(parts)


def _markdown_row(cells: Sequence[str]) -> str:
    shown = (" ".join(escape(cell, quote=False).replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(shown)} |\n"


def as_html(title: str, tables: Sequence[Table]) -> str:
    """Return tables and drawings as one page that is well-formed XML as well."""
    shown = xml_text(title)
    parts = [
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/>"
        f"<title>{shown}</title><style>{STYLE}</style></head><body><h1>{shown}</h1>"
    ]
    for table in tables:
        head = "".join(f"<th>{xml_text(name)}</th>" for name in table.headers)
        body = "".join(_html_row(row, is_figures=table.is_figures) for row in table.rows)
        notes = [f"<i>{xml_text(name)}</i>: {xml_text(text)}" for name, text in table.notes.items()]
        notes += [xml_text(BRACKETS)] if table.is_figures else []
        caption = f"<figcaption>{xml_text(table.bars_title)}</figcaption>"
        parts.append(
            f"<h2>{xml_text(table.title)}</h2>"
            + (f"<figure>{table.bars}{caption}</figure>" if table.bars else "")
            + f"\n<div class='wide'><table class='{'figures' if table.is_figures else 'texts'}'>"
            f"<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
            f"<p><small>{'<br/>'.join(notes)}</small></p>\n"
        )
    return "".join([*parts, "</body></html>\n"])


def _html_row(row: Sequence[str], *, is_figures: bool) -> str:
    cells = [xml_text(cell) for cell in row]
    if is_figures:
        cells[1:] = [_INTERVAL.sub(r"\1 <small>\2</small>", cell) for cell in cells[1:]]
    whole = " class='whole'" if is_figures and row[0] == ALL else ""
    return f"<tr{whole}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def bars(title: str, means: Sequence[tuple[str, Mean]]) -> str:
    """Return shares as SVG bars from 0 to 1, each with its interval."""
    room = WIDTH - LABEL - RIGHT
    height = len(means) * (BAR + GAP) + GAP + 18
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = LABEL + room * share
        parts.append(f'<path d="M{x:.1f} {GAP / 2}V{height - 18:.0f}" stroke="#ddd"/>')
        parts.append(_svg_text(x, height - 4, f"{share:g}", "middle"))
    for number, (name, mean) in enumerate(means):
        y = GAP + number * (BAR + GAP)
        middle = y + BAR / 2
        low, high = LABEL + room * mean.low, LABEL + room * mean.high
        parts += [
            _svg_text(LABEL - 8, middle + 4, name, "end"),
            f'<rect x="{LABEL}" y="{y}" width="{room * mean.value:.1f}" height="{BAR}" '
            'fill="#2a6fb0" fill-opacity="0.75"/>',
            _svg_text(LABEL + room + 8, middle + 4, f"{mean.value:.3f}", "start"),
        ]
        # A mean of means has no interval.
        if low < high:
            parts.append(
                f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 4}v8'
                f'M{high:.1f} {middle - 4}v8" stroke="#222" fill="none"/>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" role="img" font-family="sans-serif" font-size="12" '
        f'style="background:#fff"><title>{xml_text(title)}</title>{"".join(parts)}</svg>'
    )


def _svg_text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{xml_text(text)}</text>'


def xml_text(text: str) -> str:
    """Return a text for a page, without characters that XML forbids."""
    kept = "".join(
        sign if sign in "\n\t" or (sign >= " " and sign not in "\ufffe\uffff") else " "
        for sign in text
    )
    return escape(kept.encode("utf-8", "replace").decode())


def machine_description() -> dict[str, str]:
    """Return a description of this machine, because times depend on it."""
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {
        "machine": f"{system}, Python {platform.python_version()}",
        "report written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }

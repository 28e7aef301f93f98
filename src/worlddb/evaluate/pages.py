"""Pages: tables and drawings as Markdown, and as one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from worlddb.evaluate.plots import xml_text
from worlddb.evaluate.summary import ALL

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
_INTERVAL = re.compile(r"(\S+) (\[.*\])")

Rows = list[list[str]]


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing, and what it shows."""

    title: str
    drawing: str


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
    plot: Plot | None = None
    is_figures: bool = False
    """Whether all but the first column are figures."""


def write_pages(folder: Path, name: str, title: str, tables: Sequence[Table]) -> None:
    """Write tables as a page of each kind; drawings beside the Markdown, which cannot hold them."""
    pages = {f"{name}.md": as_markdown(title, tables), f"{name}.html": as_html(title, tables)}
    pages |= {_drawing(table): table.plot.drawing for table in tables if table.plot}
    for file, text in pages.items():
        (folder / file).write_text(text, encoding="utf-8", errors="replace")


def _drawing(table: Table) -> str:
    return f"{table.title.lower()}.svg"


def as_markdown(title: str, tables: Sequence[Table]) -> str:
    """Return tables as Markdown."""
    parts = [f"# {title}\n"]
    for table in tables:
        parts.append(f"\n## {table.title}\n\n")
        if table.plot:
            parts.append(f"![{table.plot.title}]({_drawing(table)})\n\n")
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
    """Return tables and plots as one page that is well-formed XML as well."""
    parts = [
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/>"
        f"<title>{xml_text(title)}</title><style>{STYLE}</style></head><body><h1>{xml_text(title)}</h1>"
    ]
    for table in tables:
        head = "".join(f"<th>{xml_text(name)}</th>" for name in table.headers)
        body = "".join(_html_row(row, is_figures=table.is_figures) for row in table.rows)
        notes = [f"<i>{xml_text(name)}</i>: {xml_text(text)}" for name, text in table.notes.items()]
        notes += [xml_text(BRACKETS)] if table.is_figures else []
        parts.append(
            f"<h2>{xml_text(table.title)}</h2>{_html_plot(table.plot)}\n<div class='wide'>"
            f"<table class='{'figures' if table.is_figures else 'texts'}'>"
            f"<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
            f"<p><small>{'<br/>'.join(notes)}</small></p>\n"
        )
    return "".join([*parts, "</body></html>\n"])


def _html_plot(plot: Plot | None) -> str:
    if plot is None:
        return ""
    return f"<figure>{plot.drawing}<figcaption>{xml_text(plot.title)}</figcaption></figure>"


def _html_row(row: Sequence[str], *, is_figures: bool) -> str:
    cells = [xml_text(cell) for cell in row]
    if is_figures:
        cells[1:] = [_INTERVAL.sub(r"\1 <small>\2</small>", cell) for cell in cells[1:]]
    whole = " class='whole'" if is_figures and row[0] == ALL else ""
    return f"<tr{whole}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"

"""Terminal: tables, colour, JSON and the results of calls on stdout.

The texts of nodes were written by others. Control characters and direction marks in them are shown
as escapes, so no name can move the cursor or hide what follows; in JSON, as JSON escapes.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from worlddb.model.text_safety import visible, visible_json

if TYPE_CHECKING:
    from worlddb.audit.undo import Undone
    from worlddb.memory.results import (
        ConflictPage,
        MemoryPage,
        PromptContext,
        ReadPage,
        Remembered,
        Retired,
        ScopePage,
        Written,
    )
    from worlddb.memory.scope_policies import TrustSettings
    from worlddb.model.inputs import ScopeName
    from worlddb.model.records import Change, Edge, Identity
    from worlddb.query.pipeline import Subgraph


Cell = str | int
GAP = "  "
COLUMN_CELLS_MIN = 12  # Below that a column says nothing.
PREVIEW_CHARS = 120  # One line of a wide terminal.

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32"}


def one_line(text: str) -> str:
    """Return `text` made visible, with every run of white space as one space."""
    return visible(" ".join(text.split()))


def preview(text: str) -> str:
    """Return the beginning of a text that may be long, on one line."""
    line = one_line(text[: 4 * PREVIEW_CHARS])
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


def iso(time: datetime | None) -> str:
    """Return a time as ISO-8601 with all its digits, so that it can be given back; "" for none."""
    return "" if time is None else time.isoformat().replace("+00:00", "Z")


def second(time: datetime | None) -> str:
    """Return a time to the second, for tables; "" for none."""
    return "" if time is None else iso(time.replace(microsecond=0))


def paint(text: str, style: str) -> str:
    """Return `text` in a style if stdout shows colours (see no-color.org)."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if is_plain or sys.stdout is None or not sys.stdout.isatty():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def width(text: str) -> int:
    """Return how many cells of a terminal `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, cells: int) -> str:
    """Return `text` cut to `cells`, with a mark if something was cut."""
    if width(text) <= cells:
        return text
    kept = ""
    left = cells - 1
    for character in text:
        left -= _cells(character)
        if left < 0:
            break
        kept += character
    return kept + "…"


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[Cell]], *, is_figures: bool = False
) -> None:
    """Print rows under their headers, columns aligned, numbers to the right.

    On a terminal the last column is cut to fit; in a pipe nothing is. In a table of figures all
    but the first column stand to the right, and nothing is ever cut.
    """
    shown = [[one_line(str(cell)) for cell in row] for row in rows]
    to_right = [bool(place) and is_figures for place in range(len(headers))]
    if rows and not is_figures:
        to_right = [isinstance(cell, int) for cell in rows[0]]
    widths = [
        max([width(header), *(width(row[place]) for row in shown)])
        for place, header in enumerate(headers)
    ]
    if sys.stdout is not None and sys.stdout.isatty() and not is_figures:
        room = shutil.get_terminal_size().columns - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(room, COLUMN_CELLS_MIN))
    print(paint(_line(list(headers), widths, to_right), "dim"))
    for row in shown:
        print(_line(row, widths, to_right))


def _line(cells: list[str], widths: list[int], to_right: list[bool]) -> str:
    parts = []
    for cell, cells_max, right in zip(cells, widths, to_right, strict=True):
        text = fit(cell, cells_max)
        pad = " " * (cells_max - width(text))
        parts.append(pad + text if right else text + pad)
    return GAP.join(parts).rstrip()


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Print named values one below the other; empty ones are left out."""
    shown = [(name, value) for name, value in fields if value]
    room = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(paint(f"{name:<{room}}", "dim") + GAP + one_line(value))


def print_json(data: Any) -> None:
    """Print one JSON document, as UTF-8 whatever the locale says."""
    import json

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file name that is not a text becomes a JSON escape that way.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    print(visible_json(json.dumps(data, indent=2, ensure_ascii=False)))


def print_hint(text: str) -> None:
    """Print a line on stderr for people: it is not part of the result."""
    print(text, file=sys.stderr)


# Progress: one line on stderr that says how far a long command is.
#
# Without a terminal there is no such line; a command that takes hours may print one now and then.

REDRAW_S = 0.2  # Smooth to the eye, and no load on a slow terminal.
TELL_S = 60.0  # How often a line is written where none can be drawn over.
BAR_CELLS = 24


class Progress:
    """Draws from a thread of its own, so that the work only sets `done` and never waits.

    Without `total` there is no bar and no time left, only what is done and how fast; without
    `unit` only the time that has passed. `tells` writes a line now and then where no terminal is.
    """

    def __init__(
        self, label: str, *, unit: str = "", total: float | None = None, tells: bool = False
    ) -> None:
        self.done: float = 0
        self.measure: Callable[[], float] | None = None
        """Asked for `done` at each drawing, for work that cannot set it."""
        self.total = total
        self._label = label
        self._unit = unit
        self._stream = sys.stderr
        self.visible = self._stream is not None and self._stream.isatty()
        self._tells = tells and self._stream is not None and not self.visible
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._redraw, name="worlddb-progress", daemon=True)

    def __enter__(self) -> Progress:
        self._begun = time.monotonic()
        if self.visible or self._tells:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.visible or self._tells:
            self._ended.set()
            self._thread.join()
        if self.visible:
            self._write("")

    def show(self, done: float, total: float | None = None) -> None:
        """Set how much is done and, if known, the total."""
        self.done, self.total = done, self.total if total is None else total

    def count(self) -> None:
        """Count one more that is done."""
        self.done += 1

    def tell(self, text: str) -> None:
        """Write a line that stays."""
        if self.visible:
            self._write(f"{text}\n")
        elif self._tells:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def _redraw(self) -> None:
        while not self._ended.wait(REDRAW_S if self.visible else TELL_S):
            if self.measure is not None:
                self.done = self.measure()
            line = self.line(time.monotonic() - self._begun)
            if self.visible:
                self._write(fit(line, shutil.get_terminal_size().columns - 1))
            else:
                self.tell(line)

    def _write(self, text: str) -> None:
        # Back to the first column and clear: the next thing printed stands on a clean line.
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()

    def line(self, passed_s: float) -> str:
        """Return the line that is shown after `passed_s` seconds."""
        parts = [self._label]
        rate = self.done / passed_s if passed_s > 0 else 0.0
        if self.total:
            part = min(self.done / self.total, 1.0)
            full = int(part * BAR_CELLS)
            parts.append(f"[{'#' * full}{'.' * (BAR_CELLS - full)}] {part:4.0%}")
        if self._unit:
            parts.append(f"{amount(self.done, self._unit)}  {speed(rate, self._unit)}")
        if self.total and rate:
            parts.append(f"{clock(max(self.total - self.done, 0) / rate)} left")
        else:
            parts.append(clock(passed_s))
        return "  ".join(parts)


def amount(number: float, unit: str) -> str:
    """Return a number of things, or of bytes in the unit that reads best."""
    if unit != "bytes":
        return f"{number:,.0f} {unit}"
    for name in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} B" if name == "B" else f"{number:.1f} {name}"
        number /= 1000
    return f"{number:.2f} GB"


def speed(rate: float, unit: str) -> str:
    """Return how fast it goes: by the second, or by the minute where a second is too short."""
    if unit == "bytes" or rate >= 1 or not rate:
        return f"{amount(rate, unit)}/s"
    return f"{amount(60 * rate, unit)}/min"


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


TIME_KEYS = {"valid_from", "valid_to"}
SHORT_DIGITS = 12  # As many as `Id.short` shows.
ID_DIGITS = 64


def print_result(result: Any, *, as_json: bool, empty: str = "nothing found") -> None:
    """Print the result of a call; one without a printer here is printed as JSON."""
    name = type(result).__name__
    if name in PRINTERS:
        PRINTERS[name](result, as_json, empty)
    else:
        print_json(result.to_dict())


def print_written(done: Written, as_json: bool, _: str = "") -> None:
    """Print what a write or an amendment did."""
    seq = None if done.commit is None else done.commit.seq
    if as_json:
        print_json(done.to_dict())
        return
    if done.created:
        print(paint(f"remembered {done.id.short}", "green"))
    elif done.commit is not None:  # A document again: some of its passages are others.
        print(paint(f"updated {done.id.short}", "green"))
    else:
        print(f"known already: {done.id.short}")
    entities = [f"{one.name}{' (new)' if one.created else ''}" for one in done.entities]
    proposals = [
        f"{one.left.short} = {one.right.short}? ({one.tier} {one.score:.2f})"
        for one in done.proposals
    ]
    print_fields(
        [
            ("scopes", scopes_text(done.scopes)),
            ("entities", ", ".join(entities)),
            ("proposals", ", ".join(proposals)),
            ("superseded", ", ".join(one.short for one in done.superseded)),
            ("left_out", "; ".join(done.left_out)),
            ("waits", f"{done.pending}; see worlddb extract --pending" if done.pending else ""),
            ("commit", "" if seq is None else str(seq)),
            ("root_state", done.root_state.short),
        ]
    )


def print_context(found: PromptContext, as_json: bool, empty: str = "") -> None:
    """Print the text for a prompt, and nothing else."""
    if as_json:
        print_json(found.to_dict())
    elif found:
        print(found.text)
    else:
        print_hint(empty)


def print_retired(done: Sequence[Retired], as_json: bool) -> None:
    """Print what ended, in one retirement or several."""
    ids = [ident for one in done for ident in one.ids]
    scopes = [scope for one in done for scope in one.scopes]
    last = done[-1]
    commits = [one.commit for one in done if one.commit is not None]
    if as_json:
        every = {"ids": [str(ident) for ident in ids], "scopes": [one.to_dict() for one in scopes]}
        print_json(last.to_dict() | every | {"commit": commits[-1].to_dict() if commits else None})
        return
    seq = commits[-1].seq if commits else None
    what = "1 node" if len(ids) == 1 else f"{len(ids):,} nodes"
    also = f" and {scopes_text(scopes)}" if scopes else ""
    print(f"ended {what}{also}" if ids or scopes else "had ended already")
    print_fields(
        [("commit", "" if seq is None else str(seq)), ("root_state", last.root_state.short)]
    )


def print_memories(page: MemoryPage, as_json: bool, empty: str) -> None:
    """Print a page of memories; the columns of ends and actors only where they tell something."""
    if as_json:
        print_json(page.to_dict())
        return
    ended = any(memory.valid_to is not None for memory in page)
    several = len({memory.actor for memory in page}) > 1

    def row(memory: Remembered) -> tuple[str, ...]:
        until = (second(memory.valid_to),) if ended else ()
        whose = (scopes_text(memory.scopes), *((memory.actor,) if several else ()))
        return (memory.id.short, second(memory.valid_from), *until, *whose, preview(memory.text))

    until, whose = ("valid_to",) if ended else (), ("actor",) if several else ()
    headers = ("id", "valid_from", *until, "scopes", *whose, "text")
    _print_page(headers, [row(memory) for memory in page], page.next_cursor, empty)


def print_memory(memory: Remembered, as_json: bool, _: str = "") -> None:
    """Print one memory, as a call that changed it returns it."""
    if as_json:
        print_json(memory.to_dict())
        return
    print_fields(
        [
            ("id", memory.id.short),
            ("text", preview(memory.text)),
            ("scopes", scopes_text(memory.scopes)),
            *((key, str(value)) for key, value in memory.metadata.items()),
        ]
    )


def print_scopes(page: ScopePage, as_json: bool, empty: str) -> None:
    """Print a page of scopes."""
    if as_json:
        print_json(page.to_dict())
        return
    rows = [
        (one.id.short, one.kind, second(one.known_from), "yes" if one.retired else "no", one.value)
        for one in page
    ]
    _print_page(("id", "kind", "known_from", "purged", "value"), rows, page.next_cursor, empty)


def _print_page(
    headers: Sequence[str], rows: Sequence[Sequence[str]], cursor: str | None, empty: str
) -> None:
    if rows:
        print_table(headers, rows)
    else:
        print_hint(empty)
    if cursor:
        print_hint(f"there are more: --cursor {cursor}")


def print_subgraph(found: Subgraph, as_json: bool, empty: str) -> None:
    """Print the answer to a query: its nodes, then the edges that it followed."""
    if as_json:
        print_json(found.to_dict())
        return
    rows = [
        (node.id.short, node.type, second(node.valid_from), preview(node.content or node.name))
        for node in found
    ]
    _print_page(("id", "type", "valid_from", "text"), rows, None, empty)
    if found.edges:
        print()
        edges = [
            (one.id.short, one.source.short, one.type, one.target.short) for one in found.edges
        ]
        print_table(("edge", "source", "type", "target"), edges)
    if found.cut is not None:
        print_hint(found.cut)


def print_edge(edge: Edge, as_json: bool, _: str = "") -> None:
    """Print an edge that was written or deleted."""
    if as_json:
        print_json(edge.to_dict())
        return
    done = "linked" if edge.known_to is None else "unlinked"
    print(paint(f"{done} {edge.id.short}", "green"))
    print_fields([("source", str(edge.source)), ("type", edge.type), ("target", str(edge.target))])


def print_undone(done: Undone, as_json: bool, _: str = "") -> None:
    """Print what an undo did, or would do."""
    if as_json:
        print_json(done.to_dict())
        return
    named = ", ".join(map(str, done.commits))
    if done.commit is None and not done.dry_run:
        print(f"commit {named}: nothing is left to undo")
    else:
        would = "would be " if done.dry_run else ""
        again = f"; to bring it back: worlddb undo {done.commit.seq}" if done.commit else ""
        print(f"commit {named} {would or 'was '}undone{again}")
    rows: list[tuple[str, str, str]] = [
        ("restored", one.old.short, "" if one.new is None else f"lives as {one.new.short}")
        for one in done.restored
    ]
    rows += [("retired", one.short, "") for one in done.retired]
    rows += [("kept", one.id.short, one.reason) for one in done.kept]
    if rows:
        print_table(("what", "id", "about"), rows)


def print_conflicts(page: ConflictPage, as_json: bool, empty: str) -> None:
    """Print which memories cannot both be right."""
    if as_json:
        print_json(page.to_dict())
        return
    rows = [
        (one.edge.short, preview(one.left_text), preview(one.right_text), preview(one.reason))
        for one in page
    ]
    _print_page(("edge", "left", "right", "reason"), rows, None, empty)
    if page.left:
        print_hint(f"there are {page.left} more: --limit N")


def print_identity(found: Identity, as_json: bool, _: str = "") -> None:
    """Print what was accepted as the same as a name."""
    if as_json:
        print_json(found.to_dict())
        return
    rows = [(node.id.short, node.type, preview(node.name)) for node in found.nodes]
    print_table(("id", "type", "name"), rows)
    print_fields(
        [
            ("names", ", ".join(found.names)),
            ("provenance", ", ".join(found.provenance)),
            ("merges", ", ".join(one.edge.short for one in found.merges)),
        ]
    )


def print_trust(found: TrustSettings, as_json: bool, _: str = "") -> None:
    """Print how far each origin is trusted, and what becomes of secrets."""
    if as_json:
        print_json(found.to_dict())
    else:
        print_fields([*found.trust.items(), ("secrets", found.secrets)])


def print_reads(page: ReadPage, as_json: bool, empty: str = "") -> None:
    """Print who recalled what."""
    if as_json:
        print_json(page.to_dict())
    elif not page:
        print_hint(empty)
    else:
        rows = [
            (second(one.time), one.actor, ", ".join(one.scopes), len(one.hits), one.question)
            for one in page.reads
        ]
        print_table(("time", "actor", "scopes", "hits", "question"), rows)
        if page.left:
            print_hint(f"{page.left:,} more; give a larger --limit")


PRINTERS: dict[str, Callable[[Any, bool, str], None]] = {
    "Written": print_written,
    "Retired": lambda done, as_json, _: print_retired([done], as_json),
    "MemoryPage": print_memories,
    "Remembered": print_memory,
    "ScopePage": print_scopes,
    "Subgraph": print_subgraph,
    "Edge": print_edge,
    "Undone": print_undone,
    "PromptContext": print_context,
    "ConflictPage": print_conflicts,
    "Identity": print_identity,
    "TrustSettings": print_trust,
    "ReadPage": print_reads,
}
"""The printer of each class of results."""


def scopes_text(scopes: Iterable[ScopeName]) -> str:
    """Return scopes on one line."""
    return ", ".join(str(scope) for scope in scopes)


def change_dict(change: Change) -> dict[str, Any]:
    """Return a change as JSON data; the journal keeps its times as microseconds."""
    plain = change.to_dict()
    plain["detail"] = {key: _readable(key, value) for key, value in plain["detail"].items()}
    return plain


def change_text(change: Change) -> str:
    """Return a change's details on one line, ids shortened."""
    details = change_dict(change)["detail"]
    return ", ".join(f"{key} {_shortened(value)}" for key, value in details.items())


def _readable(key: str, value: Any) -> Any:
    from worlddb.model.inputs import from_micros

    return from_micros(value).isoformat() if key in TIME_KEYS and type(value) is int else value


def _shortened(value: Any) -> str:
    text = str(value).replace("+00:00", "Z")
    return text[:SHORT_DIGITS] if len(text) == ID_DIGITS and text.isalnum() else text

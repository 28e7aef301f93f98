"""Progress: one line on stderr that says how far a long command is.

Without a terminal there is no such line; a command that takes hours may print one now and then.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable

from worlddb.faces.cli.terminal import fit

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
        """Take in how much is done and, if that is known, of how much."""
        self.done, self.total = done, self.total if total is None else total

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
        """Return what is shown after `passed_s` seconds."""
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

"""Plots: small drawings of figures as SVG, made here so that a report needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from worlddb.evaluate.intervals import Mean

WIDTH = 640
BAR, GAP, LABEL, RIGHT = 18, 10, 190, 70
LEGEND = 215
HEIGHT, LEFT, BOTTOM, TOP = 260, 46, 40, 16
COLOURS = ("#2a6fb0", "#c2571a", "#3a8a4d", "#8a4da3", "#8a7a1a", "#555555", "#b03060", "#1a8a8a")


def bars(title: str, means: Sequence[tuple[str, Mean]]) -> str:
    """Return shares as bars, from 0 to 1, each with its interval."""
    room = WIDTH - LABEL - RIGHT
    height = len(means) * (BAR + GAP) + GAP + 18
    parts = [
        _grid_line(LABEL + room * share, height, f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    for number, (name, mean) in enumerate(means):
        y = GAP + number * (BAR + GAP)
        middle = y + BAR / 2
        low, high = LABEL + room * mean.low, LABEL + room * mean.high
        parts += [
            _text(LABEL - 8, middle + 4, name, "end"),
            f'<rect x="{LABEL}" y="{y}" width="{room * mean.value:.1f}" height="{BAR}" '
            f'fill="{COLOURS[0]}" fill-opacity="0.75"/>',
            f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 4}v8'
            f'M{high:.1f} {middle - 4}v8" stroke="#222" fill="none"/>'
            # A mean of means has none, and a line there would claim to be sure.
            if low < high
            else "",
            _text(LABEL + room + 8, middle + 4, f"{mean.value:.3f}", "start"),
        ]
    return _svg(title, height, parts)


def curves(title: str, over: Sequence[int], lines: Mapping[str, Sequence[float]]) -> str:
    """Return shares over a growing k, a line for each name."""
    room, tall = WIDTH - LEFT - LEGEND, HEIGHT - TOP - BOTTOM
    step = room / max(len(over) - 1, 1)

    def at(number: int, value: float) -> str:
        return f"{LEFT + step * number:.1f} {TOP + tall * (1 - value):.1f}"

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = TOP + tall * (1 - share)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{room}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{share:g}", "end"))
    for number, k in enumerate(over):
        parts.append(_text(LEFT + step * number, HEIGHT - BOTTOM + 18, f"@{k}", "middle"))
    for number, (name, values) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = "L".join(at(place, value) for place, value in enumerate(values))
        parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        y = TOP + 16 * number + 8
        parts.append(
            f'<rect x="{WIDTH - LEGEND + 14}" y="{y - 8}" width="10" height="10" fill="{colour}"/>'
        )
        parts.append(_text(WIDTH - LEGEND + 30, y + 1, name, "start"))
    return _svg(title, max(HEIGHT, TOP + 16 * len(lines) + 20), parts)


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" role="img" font-family="sans-serif" font-size="12" '
        f'style="background:#fff"><title>{xml_text(title)}</title>{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{xml_text(text)}</text>'


def _grid_line(x: float, height: float, label: str) -> str:
    return f'<path d="M{x:.1f} {GAP / 2}V{height - 18:.0f}" stroke="#ddd"/>' + _text(
        x, height - 4, label, "middle"
    )


def xml_text(text: str) -> str:
    """Return a text for a page; control characters and halves of characters are no XML."""
    kept = "".join(
        sign if sign in "\n\t" or (sign >= " " and sign not in "\ufffe\uffff") else " "
        for sign in text
    )
    return escape(kept.encode("utf-8", "replace").decode())

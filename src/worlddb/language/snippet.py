"""Snippet: the part of a text that best shows why a question found it.

    text, query ── spans of the asked tokens ──▶ best window ── cut at word borders ──▶ Snippet

The window holds the query tokens of the greatest weight, each counted once; a token weighs more if
it is longer and rarer in this text. Of equal windows the first is used.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from dataclasses import dataclass

from worlddb.errors import InvalidInputError
from worlddb.language.text_tokens import Piece, asked, language_of, spans

WIDTH_MIN = 16  # a narrower snippet is a single word
ELLIPSIS = "…"

# Further letters add no weight to a token.
_LETTERS_WEIGHED_MAX = 8


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of text on one line; `spans` are (start, end) of its matches, in order, disjoint."""

    text: str
    spans: tuple[tuple[int, int], ...]

    def marked(self, before: str = "**", after: str = "**") -> str:
        """Return the text with `before` and `after` around each match."""
        parts: list[str] = []
        done = 0
        for start, end in self.spans:
            parts += [self.text[done:start], before, self.text[start:end], after]
            done = end
        return "".join([*parts, self.text[done:]])


def snippet(text: str, query: str, *, width: int = 160) -> Snippet:
    """Return the part of `text` that best shows the words of `query`, up to `width` characters.

    White space is collapsed. Left-out text becomes "…", which counts. Without a match it is the
    beginning of the text.
    """
    if width < WIDTH_MIN:
        raise InvalidInputError(f"width: {width} is too narrow; give at least {WIDTH_MIN}")
    text = " ".join(text.split())
    language = language_of(text)
    wanted = frozenset(asked(query, () if language is None else (language,)))
    found = sorted(spans(text, wanted, language), key=lambda piece: piece[1:])
    if len(text) <= width:
        return Snippet(text, _merged(found, 0, len(text), 0))
    room = width - 2 * len(ELLIPSIS)
    first, last = _densest(found, room) if found else (0, 0)
    start, end = _cut(text, first, min(last, first + room), room)
    head = ELLIPSIS if start else ""
    tail = ELLIPSIS if end < len(text) else ""
    return Snippet(head + text[start:end] + tail, _merged(found, start, end, len(head)))


def _densest(found: list[Piece], room: int) -> tuple[int, int]:
    """Return the start and end of the matches in the best window; `found` is in order."""
    times = Counter(token for token, _, _ in found)
    weight = {
        token: min(2 + len(token), _LETTERS_WEIGHED_MAX) / math.sqrt(count)
        for token, count in times.items()
    }
    held: Counter[str] = Counter()
    best, place = -1.0, (0, 1)
    score = 0.0
    right = 0
    for left, (leaving, start, _) in enumerate(found):
        while right < len(found) and (right == left or found[right][2] <= start + room):
            token = found[right][0]
            score += weight[token] * (held[token] == 0)
            held[token] += 1
            right += 1
        if score > best + 1e-9:
            best, place = score, (left, right)
        held[leaving] -= 1
        score -= weight[leaving] * (held[leaving] == 0)
    inside = found[slice(*place)]
    # Only up to the first position of each token; the rest of the width is for context.
    ends = {token: end for token, _, end in reversed(inside)}
    return inside[0][1], max(ends.values())


def _cut(text: str, first: int, last: int, room: int) -> tuple[int, int]:
    """Return a window of at most `room` characters around `text[first:last]`, at word borders.

    In a word longer than the remaining room, or in a script without spaces, the border may be
    before any character that is not a combining mark.
    """
    start = max(0, min(first - (room - (last - first)) // 2, len(text) - room))
    end = min(len(text), start + room)
    if start > 0 and text[start - 1] != " ":
        space = text.find(" ", start, first)
        start = space + 1 if space >= 0 else start
        while start < first and unicodedata.combining(text[start]):
            start += 1
    if end < len(text) and text[end] != " ":
        space = text.rfind(" ", last, end)
        end = space if space >= 0 else end
        while end > last and unicodedata.combining(text[end]):
            end -= 1
    start += text[start] == " "
    end -= text[end - 1] == " "
    return start, end


def _merged(found: list[Piece], start: int, end: int, shift: int) -> tuple[tuple[int, int], ...]:
    """Return the matches inside a window as spans of the snippet, overlapping ones as one."""
    joined: list[tuple[int, int]] = []
    for _, left, right in found:
        left, right = max(left, start), min(right, end)
        if left >= right:
            continue
        if joined and left <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], right))
        else:
            joined.append((left, right))
    return tuple((left - start + shift, right - start + shift) for left, right in joined)

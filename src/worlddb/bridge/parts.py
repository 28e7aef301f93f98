"""Parts: messages as a model reads them, in portions that fit into one request.

    [2] 2026-01-31 09:30 Anna: I moved to Oslo in May.

A portion that proves too long, because the answer to it was cut, is asked again in two halves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from worlddb.model.drafts import Message

A = TypeVar("A")

HALVINGS_MAX = 4
LINE_CHARS = 40
"""About what a line takes beside the text."""


class Line(NamedTuple):
    """A message, or a piece of a long one, with the number of the message."""

    number: int
    message: Message
    text: str


def portions(messages: Sequence[Message], chars_max: int) -> Iterator[list[Line]]:
    """Yield the messages in order, as many at a time as have `chars_max` characters."""
    portion: list[Line] = []
    chars = 0
    for number, message in enumerate(messages):
        for piece in _pieces(message.text, chars_max):
            size = len(piece) + LINE_CHARS
            if portion and chars + size > chars_max:
                yield portion
                portion, chars = [], 0
            portion.append(Line(number, message, piece))
            chars += size
    if portion:
        yield portion


class Splits:
    """How often a conversation may still be halved; None is as often as its portions allow."""

    def __init__(self, most: int | None = None) -> None:
        self._left = most

    def take(self) -> bool:
        """Return whether there may be another, and count it."""
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


def in_halves(
    portion: list[Line],
    ask: Callable[[list[Line]], tuple[A, bool]],
    splits: Splits | None = None,
    halvings: int = HALVINGS_MAX,
) -> list[A]:
    """Return the answers for a portion: one that is whole, or those of its halves.

    A single line, or one of a portion that was halved too often, keeps what was answered.
    """
    splits = splits or Splits()
    answer, whole = ask(portion)
    if whole or len(portion) == 1 or not halvings or not splits.take():
        return [answer]
    middle = len(portion) // 2
    return [
        *in_halves(portion[:middle], ask, splits, halvings - 1),
        *in_halves(portion[middle:], ask, splits, halvings - 1),
    ]


def as_lines(portion: Sequence[Line], at: datetime | None = None) -> str:
    """Return a portion as text, each message with its number, time and speaker."""
    return "\n".join(_line(line, at) for line in portion)


def _line(line: Line, at: datetime | None) -> str:
    said = line.message.at or at
    when = "" if said is None else f" {said:%Y-%m-%d %H:%M}"
    return f"[{line.number}]{when} {line.message.speaker}: {line.text}"


def _pieces(text: str, chars_max: int) -> Iterator[str]:
    """Yield a text in pieces, broken at white space where there is some."""
    room = max(chars_max - LINE_CHARS, 1)
    while len(text) > room:
        cut = text.rfind(" ", room // 2, room) + 1 or room
        yield text[:cut]
        text = text[cut:]
    yield text

"""Requests to a chat model: prompts, messages as numbered lines, and replies as data.

    messages ──portions()──▶ portions ──as_lines()──▶ "[2] 2026-01-31 09:30 Anna: I moved to Oslo."
    ask_json(chat, prompt, request, schema) ──▶ Parsed

A long conversation is sent in portions that fit into one request. Where the reply to a portion is
cut off, its two halves are sent instead. A reply without a JSON object is asked for once more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple, TypeVar

from worlddb.errors import InvalidInputError
from worlddb.model.drafts import Message
from worlddb.models.chat_client import Chat, ChatFunction, ask_text
from worlddb.models.chat_dialects import JsonSchema
from worlddb.models.lenient_json import NotJsonError, Parsed, parse

JSON_REMINDER = (
    "That was no JSON object. Give the same answer once more, as one JSON object and nothing else."
)
ECHO_CHARS_MAX = 4_000  # Enough of a wrong reply for the model to see what it did.
PORTION_CHARS_MAX = 24_000  # About 6,000 tokens: half of what small local models can read.
PORTION_CHARS_MIN = 500  # Below this a portion would hold single sentences without context.
HALVINGS_MAX = 4  # A sixteenth of a portion whose reply is still cut will not get better.
LINE_CHARS = 40  # About what a line takes beside the text: number, time, speaker.

Answer = TypeVar("Answer")


def prompt_text(prompt: str | os.PathLike[str] | None, default: str) -> str:
    """Return a prompt: the given text, the content of the given file, or the package's own."""
    if prompt is None:
        return files("worlddb.models").joinpath("prompts", f"{default}.txt").read_text("utf-8")
    if isinstance(prompt, os.PathLike):
        try:
            with open(prompt, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"prompt: {os.fspath(prompt)}: {error}") from None
    else:
        text = prompt
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("prompt: give its text, or the Path of a file that holds it")
    return text


def ask_json(chat: Chat | ChatFunction, prompt: str, request: str, schema: JsonSchema) -> Parsed:
    """Return the JSON object in a model's reply; a `ProviderError` if two replies have none."""
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": request}]
    reply = ask_text(chat, messages, schema)
    try:
        parsed = _parse_object(reply.text)
    except NotJsonError:
        messages += [
            {"role": "assistant", "content": reply.text[:ECHO_CHARS_MAX]},
            {"role": "user", "content": JSON_REMINDER},
        ]
        reply = ask_text(chat, messages, schema)
        parsed = _parse_object(reply.text)
    return Parsed(parsed.value, parsed.is_whole and not reply.is_cut)


def _parse_object(text: str) -> Parsed:
    """Return the object in a reply; some models wrap it in a string or in a list of one."""
    parsed = parse(text)
    if isinstance(parsed.value, str):
        parsed = parse(parsed.value)
    value = parsed.value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        raise NotJsonError(f"the reply is no JSON object: {' '.join(text.split())!r:.200}")
    return Parsed(value, parsed.is_whole)


class MessageLine(NamedTuple):
    """A message, or a piece of a long one, with the number of the message."""

    number: int
    message: Message
    text: str


def portions(messages: Sequence[Message], chars_max: int) -> Iterator[list[MessageLine]]:
    """Yield the messages in order, as portions of at most `chars_max` characters."""
    portion: list[MessageLine] = []
    chars = 0
    for number, message in enumerate(messages):
        for piece in _pieces(message.text, chars_max):
            size = len(piece) + LINE_CHARS
            if portion and chars + size > chars_max:
                yield portion
                portion, chars = [], 0
            portion.append(MessageLine(number, message, piece))
            chars += size
    if portion:
        yield portion


class SplitBudget:
    """How often the portions of one conversation may still be halved; None sets no limit."""

    def __init__(self, splits_max: int | None = None) -> None:
        self._left = splits_max

    def take(self) -> bool:
        """Return whether another split is allowed, and count it."""
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


def in_halves(
    portion: list[MessageLine],
    ask: Callable[[list[MessageLine]], tuple[Answer, bool]],
    splits: SplitBudget | None = None,
    halvings: int = HALVINGS_MAX,
) -> list[Answer]:
    """Return the answer for a portion if it is whole, else the answers for its halves.

    `ask` returns an answer and whether it is whole. A portion that cannot be halved again keeps
    the answer that was cut.
    """
    splits = splits or SplitBudget()
    answer, whole = ask(portion)
    if whole or len(portion) == 1 or not halvings or not splits.take():
        return [answer]
    middle = len(portion) // 2
    return [
        *in_halves(portion[:middle], ask, splits, halvings - 1),
        *in_halves(portion[middle:], ask, splits, halvings - 1),
    ]


def as_lines(portion: Sequence[MessageLine], at: datetime | None = None) -> str:
    """Return a portion as text: one line per message, with its number, time and speaker."""
    lines = []
    for number, message, text in portion:
        said_at = message.at or at
        time = "" if said_at is None else f" {said_at:%Y-%m-%d %H:%M}"
        lines.append(f"[{number}]{time} {message.speaker}: {text}")
    return "\n".join(lines)


def _pieces(text: str, chars_max: int) -> Iterator[str]:
    """Yield a text in pieces that fit into a portion, split at spaces where possible."""
    room = max(chars_max - LINE_CHARS, 1)
    while len(text) > room:
        cut = text.rfind(" ", room // 2, room) + 1 or room
        yield text[:cut]
        text = text[cut:]
    yield text

"""Messages: what a caller gives to remember, as messages, or why it is none."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.model.drafts import Message
from worlddb.model.inputs import Instant, from_micros, to_micros

Chat = Sequence[Message | Mapping[str, Any]]
Input = str | Message | Chat


def either(text: Input | None, messages: Chat | None) -> list[Message]:
    """Return what was given as messages: a text, or a chat by either name.

    Raises:
        InvalidInputError: both were given or neither; it is no such thing, or says nothing.
    """
    if text is not None and messages is None:
        return messages_of(text)
    if messages is None or text is not None:
        raise InvalidInputError("give either text or messages")
    if isinstance(messages, str | Message):
        raise InvalidInputError("messages: give a list, [{'role': …, 'content': …}, …]")
    return messages_of(messages)


def messages_of(given: Input) -> list[Message]:
    """Return what was given as messages.

    Raises:
        InvalidInputError: it is neither text nor messages, or says nothing.
    """
    if isinstance(given, str):
        given = Message(text=given)
    items = [given] if isinstance(given, Message) else given
    if isinstance(items, Mapping) or not isinstance(items, Sequence) or isinstance(items, bytes):
        raise InvalidInputError(f"give text or a list of messages, not {given!r:.100}")
    messages = [item if isinstance(item, Message) else _message(item) for item in items]
    if not any(message.text.strip() for message in messages):
        raise InvalidInputError("there is no text to remember")
    return [message for message in messages if message.text.strip()]


def _message(item: Mapping[str, Any]) -> Message:
    """Return a chat message (`role`, `content`) or one in our own words (`speaker`, `text`)."""
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"a message is a mapping with role and content, not {item!r:.100}")
    text = item.get("text", item.get("content"))
    speaker = item.get("speaker", item.get("role", "user"))
    if not isinstance(text, str) or not isinstance(speaker, str):
        raise InvalidInputError(f"a message has a role and text as its content, not {item!r:.100}")
    at = item.get("at")
    return Message(text=text, speaker=speaker, at=None if at is None else _time(at))


def _time(at: Instant) -> datetime:
    return from_micros(to_micros(at, "at"))


def dated(messages: Sequence[Message], at: datetime) -> list[Message]:
    """Return messages that all have a time: their own, else that of the one before, else `at`.

    An old chat often says only when it began; what follows was not said today.
    """
    found: list[Message] = []
    for message in messages:
        at = at if message.at is None else message.at
        found.append(replace(message, at=at))
    return found


def same_text(one: str, other: str) -> bool:
    """Return whether two texts say the same to the letter.

    White space at the ends does not count, every other run of it is one space; accents are
    composed.
    """
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())

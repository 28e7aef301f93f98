"""Chat messages: the formats that people have, as plain messages.

    OpenAI chat and responses, Anthropic, our own ──chat_messages──▶ [Message(text, speaker, …)]

Text parts become text. A tool call is a line of the one who made it, and what a tool returned is
said by "tool". Images, audio and reasoning have no text to remember and are left out. The name of a
person who speaks comes before the role. The objects of the SDKs are read as what they dump.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from worlddb.errors import InvalidInputError
from worlddb.model.drafts import Message
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.origin import Origin, lowered

TOOL = "tool"
SPOKEN_BY: dict[str, Origin] = {TOOL: "tool", "assistant": "assistant"}
"""The origin of what a role says; everybody else speaks for themselves."""
TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal", "summary_text"})
CALL_PARTS = frozenset({"tool_use", "server_tool_use", "function_call", "tool_call", "function"})
RESULT_PARTS = frozenset({"tool_result", "function_call_output", "tool_output"})
TIMES = ("at", "timestamp", "created_at", "date")
SECONDS_MAX = 1 << 40  # A larger number counts milliseconds: no date in seconds is that late.
ARGUMENTS_CHARS_MAX = 500  # Enough to see what a tool was asked; whole files are no memory.
ID_CHARS_MAX = 512  # As many as an idempotency key may have.


class SdkMessage(Protocol):
    """A message as the SDK of a provider hands it out."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as plain data."""


def plain(item: Any) -> Any:
    """Return an item or a part of a chat as plain data; an object of an SDK dumps itself."""
    dump = None if isinstance(item, type) else getattr(item, "model_dump", None)
    return dump() if callable(dump) else item


def chat_messages(item: Mapping[str, Any] | SdkMessage) -> list[Message]:
    """Return the messages that one item of a chat holds; none if it has no text.

    Raises:
        InvalidInputError: it is no message, or its time is none.
    """
    item = plain(item)
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"a message is a mapping with role and content, not {item!r:.100}")
    role = item.get("speaker", item.get("role"))
    kind = item.get("type")
    if role is None:
        role = {True: "assistant"}.get(kind in CALL_PARTS, TOOL if kind in RESULT_PARTS else "user")
    name = item.get("name")
    is_person = isinstance(name, str) and name.strip() and role == "user"
    speaker = name if is_person else TOOL if role == "function" else role
    ident = item.get("id", item.get("uuid"))
    if not isinstance(speaker, str) or not isinstance(ident, str | None):
        raise InvalidInputError(f"a message has a role and text as its content, not {item!r:.100}")
    at, origin = _time(item), item.get("origin")
    said: dict[str, list[str]] = {}
    for who, text in _texts(item, speaker):
        if text.strip():
            said.setdefault(who, []).append(text)
    key = None if ident is None else ident[:ID_CHARS_MAX]
    return [
        Message(
            text="\n".join(texts),
            speaker=who,
            at=at,
            id=key if key is None or who == speaker else f"{key}/{who}",
            origin=lowered(origin, SPOKEN_BY.get(who)),
        )
        for who, texts in said.items()
    ]


def _time(item: Mapping[str, Any]) -> datetime | None:
    """Return when a message was said, by any of the names that formats have for it."""
    name = next((one for one in TIMES if item.get(one) not in (None, "")), None)
    if name is None:
        return None
    given = item[name]
    if isinstance(given, int | float) and not isinstance(given, bool):
        seconds = given / 1_000 if given > SECONDS_MAX else given
        return from_micros(int(seconds * 1_000_000))
    return from_micros(to_micros(given, name))


def _texts(item: Mapping[str, Any], speaker: str) -> Iterator[tuple[str, str]]:
    """Yield who says what in one item."""
    kind = item.get("type")
    if kind in CALL_PARTS and "content" not in item:
        yield speaker, _call(item)
    elif kind in RESULT_PARTS:
        yield TOOL, _result(item)
    else:
        content = item.get("text", item.get("content"))
        if content is None:  # A model of OpenAI that refuses says so here.
            content = item.get("refusal") or ()
        if isinstance(content, str):
            yield speaker, content
        elif isinstance(content, Iterable) and not isinstance(content, Mapping | bytes):
            for part in content:
                yield from _part(part, speaker)
        else:
            raise InvalidInputError(
                f"a message has a role and text as its content, not {item!r:.100}"
            )
    legacy = item.get("function_call")
    for call in item.get("tool_calls") or (() if legacy is None else (legacy,)):
        yield speaker, _call(plain(call))


def _part(part: Any, speaker: str) -> Iterator[tuple[str, str]]:
    """Yield who says what in a part of a message's content."""
    part = plain(part)
    if isinstance(part, str):
        yield speaker, part
    elif not isinstance(part, Mapping):
        raise InvalidInputError(f"a part of a message is text or a mapping, not {part!r:.100}")
    elif part.get("type", "text") in TEXT_PARTS:
        text = part.get("text", part.get("refusal", ""))
        yield speaker, text if isinstance(text, str) else ""
    elif part["type"] in CALL_PARTS:
        yield speaker, _call(part)
    elif part["type"] in RESULT_PARTS:
        yield TOOL, _result(part)


def _call(call: Any) -> str:
    """Return a tool call as a line."""
    inner = call.get("function", call) if isinstance(call, Mapping) else {}
    inner = inner if isinstance(inner, Mapping) else {}
    given = inner.get("arguments", inner.get("input", inner.get("args", "")))
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    name = inner.get("name") or "a tool"
    return f"[called {name}: {text[:ARGUMENTS_CHARS_MAX]}]"


def _result(part: Mapping[str, Any]) -> str:
    """Return the text that a tool returned."""
    given = part.get("output", part.get("content", ""))
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return json.dumps(given, ensure_ascii=False, default=str)
    found = (text for one in given or () for _, text in _part(one, TOOL))
    return "\n".join(found)

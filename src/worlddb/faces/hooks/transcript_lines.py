"""Transcripts of coding clients: files of JSON lines, read from where the last reading ended.

Only what a person wrote and what the model answered become turns. Tool calls and their results,
thinking, the turns of subagents, and texts that the client itself puts in are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

CHUNK_BYTES_MAX = 64 << 20  # What one reading takes in; a longer transcript is read in several.


class TranscriptTurn(NamedTuple):
    """What somebody said: a key that names it within its session, who, what and when."""

    key: str
    role: str
    text: str
    at: str | None


Reader = Callable[[Mapping[str, Any], str], TranscriptTurn | None]

_PUT_IN = re.compile(
    r"<(system-reminder|local-command-\w+|command-(?:name|message|args)|user_instructions|"
    r"environment_context|user-memory-input|task-notification|ide_\w+)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
"""What clients put into the text of a prompt; it is no word of the person."""
_NOTICES = ("Caveat: The messages below", "[Request interrupted", "# AGENTS.md instructions")


def turns_in(path: str, form: str, start: int = 0) -> Iterator[tuple[int, TranscriptTurn | None]]:
    """Yield the turns of a transcript from a place on, each with the place after it.

    A line without a turn gives None, so that the place goes on. A last line that is not complete
    yet is left for the next reading. A file that has become shorter is read from its beginning.
    """
    read = READERS[form]
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        place = file.seek(start if start <= size else 0)
        data = file.read(CHUNK_BYTES_MAX)
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        place += len(line)
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        yield place, read(entry, str(place)) if isinstance(entry, dict) else None


def _turn(key: object, role: object, content: object, at: object) -> TranscriptTurn | None:
    text = _PUT_IN.sub("", text_of(content)).strip()
    if not text or role not in ("user", "assistant") or text.startswith(_NOTICES):
        return None
    return TranscriptTurn(str(key), str(role), text, at if isinstance(at, str) else None)


def text_of(content: object) -> str:
    """Return the text of a message: a string, or parts of which some are texts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    kinds = ("text", "input_text", "output_text")
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in kinds]
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _claude_code(entry: Mapping[str, Any], place: str) -> TranscriptTurn | None:
    message = entry.get("message")
    if entry.get("type") not in ("user", "assistant") or not isinstance(message, dict):
        return None
    if any(entry.get(mark) for mark in ("isMeta", "isSidechain", "isCompactSummary")):
        return None
    key = entry.get("uuid") or place
    return _turn(key, message.get("role"), message.get("content"), entry.get("timestamp"))


def _codex(entry: Mapping[str, Any], place: str) -> TranscriptTurn | None:
    # Each message is there twice; the events hold the person's own words only.
    told = entry.get("payload")
    if entry.get("type") != "event_msg" or not isinstance(told, dict):
        return None
    role = {"user_message": "user", "agent_message": "assistant"}.get(str(told.get("type")))
    return _turn(place, role, told.get("message"), entry.get("timestamp"))


def _copilot(entry: Mapping[str, Any], place: str) -> TranscriptTurn | None:
    told = entry.get("data")
    role, _, kind = str(entry.get("type")).partition(".")
    if kind != "message" or not isinstance(told, dict):
        return None
    return _turn(entry.get("id") or place, role, told.get("content"), entry.get("timestamp"))


READERS: dict[str, Reader] = {"claude-code": _claude_code, "codex": _codex, "copilot": _copilot}

"""Client dialects: the hook events of each client, and the transcripts that it keeps.

The formats are those of Claude Code, Codex, Cursor, Gemini CLI and Copilot CLI in late 2026.

A hook keeps these files for each session of a client:

    .place  how far the transcript is read; its lock lets one capture work at a time
    .seen   the ids of the memories that were injected, so that none is injected twice
    .fresh  when the client last compacted its context
    .off    hooks are off for this session
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, Literal, NamedTuple

Deed = Literal["open", "ask", "capture", "both"]
"""What an event is for: the start of a session, a prompt, an end of a turn, a prompt to keep."""


class Dialect(NamedTuple):
    """One client: its events, how it wants context, and the form of its transcript.

    `answer` is "specific" (Claude Code's form), "snake" (Cursor's) or "camel" (Copilot's).
    `transcript` names the format of its transcript; None where turns come with the events.
    """

    events: Mapping[str, Deed]
    answer: Literal["specific", "snake", "camel"] = "specific"
    transcript: str | None = None


_CLAUDE: dict[str, Deed] = {
    "SessionStart": "open",
    "UserPromptSubmit": "ask",
    "Stop": "capture",
    "PreCompact": "capture",
    "SessionEnd": "capture",
}
DIALECTS: dict[str, Dialect] = {
    "claude-code": Dialect(_CLAUDE, transcript="claude-code"),
    "codex": Dialect(_CLAUDE, transcript="codex"),
    "cursor": Dialect(
        {"sessionStart": "open", "beforeSubmitPrompt": "both", "afterAgentResponse": "capture"},
        answer="snake",
    ),
    "gemini": Dialect(
        {"SessionStart": "open", "BeforeAgent": "ask", "AfterAgent": "capture"},
    ),
    "copilot": Dialect(
        {
            "sessionStart": "open",
            "userPromptSubmitted": "ask",
            "agentStop": "capture",
            "preCompact": "capture",
        },
        answer="camel",
        transcript="copilot",
    ),
}
FRESH = ("compact", "clear")  # Sources of a session start that has forgotten what was injected.


class HookEvent(NamedTuple):
    """What a hook was told, in one form for all clients."""

    client: str
    name: str
    deed: Deed
    session: str
    folder: str
    prompt: str
    transcript: str | None
    said: tuple[tuple[str, str], ...]
    fresh: bool

    @property
    def source(self) -> str:
        """Where the turns of this session come from, as their memories say it."""
        return f"{self.client} {self.session}"


def event_of(client: str, name: str, told: Mapping[str, Any]) -> HookEvent | None:
    """Return an event; None if this client has no such event, or the event needs no action."""
    dialect = DIALECTS[client]
    deed = dialect.events.get(name)
    if deed is None:
        return None
    roots = told.get("workspace_roots")
    first_root = roots[0] if isinstance(roots, list) and roots else ""
    prompt = _own_words(_text(told, "prompt"))
    reply = _own_words(_text(told, "prompt_response", "text"))
    said = [("user", prompt), ("assistant", reply)]
    return HookEvent(
        client=client,
        name=name,
        deed=deed,
        session=_text(told, "conversation_id", "session_id", "sessionId"),
        folder=_text(told, "cwd") or (first_root if isinstance(first_root, str) else ""),
        prompt=prompt or _text(told, "initialPrompt"),
        transcript=_text(told, "transcript_path", "transcriptPath") or None,
        said=() if dialect.transcript else tuple(one for one in said if one[1]),
        fresh=told.get("source") in FRESH,
    )


def answer_of(client: str, name: str, context: str) -> dict[str, Any]:
    """Return the output for a client: a context for its model, or an empty answer."""
    form = DIALECTS[client].answer
    if form == "snake":
        answer: dict[str, Any] = {"continue": True} if name == "beforeSubmitPrompt" else {}
        return answer | ({"additional_context": context} if context else {})
    if not context:
        return {}
    if form == "camel":
        return {"additionalContext": context}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}


def _text(told: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        value = told.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return ""


# Transcripts of coding clients: files of JSON lines, read from where the last reading ended.
#
# Only what a person wrote and what the model answered become turns. Tool calls and their results,
# thinking, the turns of subagents, and texts that the client itself puts in are left out.

LOOK_BACK_BYTES = {"codex": 1 << 18}
"""How much is read again before a place: the two lines of one message lie that near together."""
CHUNK_BYTES_MAX = 64 << 20  # What one reading takes in; a longer transcript is read in several.


class TranscriptTurn(NamedTuple):
    """A turn of a transcript: its key within the session, speaker, text and time."""

    key: str
    role: str
    text: str
    at: str | None


Reader = Callable[[Mapping[str, Any], str], TranscriptTurn | None]

_PUT_IN = re.compile(
    r"<(system[-_]reminder|hook_context|local-command-\w+|command-(?:name|message|args)|user_instructions|"
    r"environment_context|user-memory-input|task-notification|ide_\w+)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
"""What clients put into a prompt, our own answer included; it is not a word of the person."""
_TAGGED = re.compile(r"<([\w-]+)\b[^>]*>.*</\1>", re.DOTALL)
_NOTICES = ("Caveat: The messages below", "[Request interrupted", "# AGENTS.md instructions")


def turns_in(path: str, form: str, start: int = 0) -> Iterator[tuple[int, TranscriptTurn | None]]:
    """Yield the turns of a transcript from a place on, each with the place after it.

    A line without a turn gives None, so that the place goes on. A last line that is not complete
    yet is left for the next reading. A file that has become shorter is read from its beginning.
    """
    read = READERS[form]()
    with open(path, "rb") as file:
        start = start if start <= file.seek(0, 2) else 0
        place = file.seek(max(start - LOOK_BACK_BYTES.get(form, 0), 0))
        data = file.read(CHUNK_BYTES_MAX)
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        place += len(line)
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        turn = read(entry, str(place)) if isinstance(entry, dict) else None
        if place > start:
            yield place, turn


def _own_words(text: str) -> str:
    """Return a text without what the client has put into it."""
    return _PUT_IN.sub("", text).strip()


def _turn(key: object, role: object, content: object, at: object) -> TranscriptTurn | None:
    text = _own_words(text_of(content))
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


class _CodexReader:
    """Turns of Codex: as events, as items of the model's answer, or as both.

    The n-th time that something was said is told once, whichever line comes first.
    """

    def __init__(self) -> None:
        self._told: Counter[tuple[str, ...]] = Counter()
        self._seen: Counter[tuple[str, ...]] = Counter()

    def __call__(self, entry: Mapping[str, Any], place: str) -> TranscriptTurn | None:
        kind, given = str(entry.get("type")), entry.get("payload")
        turn = self._said(kind, given, place, entry) if isinstance(given, dict) else None
        if turn is None:
            return None
        said = (turn.role, " ".join(turn.text.split()))
        self._seen[(kind, *said)] += 1
        if self._seen[(kind, *said)] <= self._told[said]:
            return None
        self._told[said] += 1
        return turn

    def _said(
        self, kind: str, given: Mapping[str, Any], place: str, entry: Mapping[str, Any]
    ) -> TranscriptTurn | None:
        what, at = str(given.get("type")), entry.get("timestamp")
        if kind == "event_msg":
            role = {"user_message": "user", "agent_message": "assistant"}.get(what)
            return _turn(place, role, given.get("message"), at)
        if kind == "response_item" and what == "message":
            turn = _turn(place, given.get("role"), given.get("content"), at)
            # What Codex itself puts in stands between tags, as a message of the user.
            put_in = turn is not None and turn.role == "user" and _TAGGED.fullmatch(turn.text)
            return None if put_in else turn
        return None


def _copilot(entry: Mapping[str, Any], place: str) -> TranscriptTurn | None:
    told = entry.get("data")
    role, _, kind = str(entry.get("type")).partition(".")
    if kind != "message" or not isinstance(told, dict):
        return None
    return _turn(entry.get("id") or place, role, told.get("content"), entry.get("timestamp"))


READERS: dict[str, Callable[[], Reader]] = {
    "claude-code": lambda: _claude_code,
    "codex": _CodexReader,
    "copilot": lambda: _copilot,
}


# Files of a session.

PRIVATE = 0o600  # What was said is personal: for its owner alone.
KEPT_S = 30 * 24 * 3600  # A session that nobody resumed for a month is over.
LOG = "hooks.log"
LOG_BYTES_MAX = 1 << 18  # Some thousand lines; then the log begins anew, and the old one is kept.


class SessionFiles:
    """The files of one session."""

    def __init__(self, folder: str, client: str, session: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._stem = os.path.join(
            folder, sha256(f"{client}\n{session}".encode(errors="replace")).hexdigest()[:24]
        )

    @contextmanager
    def place(self) -> Iterator[TranscriptPlace]:
        """Yield the place in the transcript; other captures of this session wait."""
        handle = os.open(f"{self._stem}.place", os.O_RDWR | os.O_CREAT, PRIVATE)
        try:
            _lock(handle)
            yield TranscriptPlace(handle)
        finally:
            os.close(handle)

    @property
    def off(self) -> bool:
        """Whether hooks are off for this session."""
        return os.path.exists(f"{self._stem}.off")

    def switch(self, *, off: bool) -> None:
        """Switch hooks off for this session, or on again."""
        if off:
            _write(f"{self._stem}.off", "")
        else:
            with suppress(FileNotFoundError):
                os.unlink(f"{self._stem}.off")

    def seen(self) -> set[str]:
        """Return the ids of the memories that were injected."""
        with suppress(FileNotFoundError), open(f"{self._stem}.seen", encoding="ascii") as file:
            return set(file.read().split())
        return set()

    def see(self, ids: set[str]) -> None:
        """Keep the ids of the memories that were injected."""
        _write(f"{self._stem}.seen", "\n".join(sorted(ids)))

    @property
    def compacted(self) -> str:
        """When the client last compacted its context, in UTC; empty if it never did."""
        with suppress(FileNotFoundError), open(f"{self._stem}.fresh", encoding="ascii") as file:
            return file.read().strip()
        return ""

    def begin_anew(self) -> None:
        """Note that the model has forgotten what was injected and what was said before."""
        self.see(set())
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        _write(f"{self._stem}.fresh", f"{now}.{nanoseconds // 1000:06}")


class TranscriptPlace:
    """How far a transcript is read, in bytes, in a locked file."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        digits = os.pread(handle, 32, 0).strip()
        self.bytes = int(digits) if digits.isdigit() else 0

    def keep(self, place: int) -> None:
        """Keep a place; what lies before it is not read again."""
        self.bytes = place
        os.pwrite(self._handle, f"{place:<32}".encode(), 0)


def remove_old(folder: str) -> None:
    """Remove the files of sessions that are over."""
    limit = time.time() - KEPT_S
    with suppress(OSError), os.scandir(folder) as found:
        for one in found:
            if one.name != LOG and one.stat().st_mtime < limit:
                os.unlink(one.path)


def log_line(folder: str, text: str) -> None:
    """Add a line to the log of hooks; a log that cannot be written is no reason to fail."""
    path = os.path.join(folder, LOG)
    with suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES_MAX:
            os.replace(path, f"{path}.1")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        os.write(handle, f"{now} {' '.join(text.split())}\n".encode(errors="replace"))
        os.close(handle)


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: idempotency keys alone keep a turn from being written twice.
        return
    fcntl.flock(handle, fcntl.LOCK_EX)


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    os.write(handle, text.encode())
    os.close(handle)

"""The dialects of hooks: how each client names its events, what it sends, and what it reads back.

Formats: the hook schemas of Claude Code, Codex, Cursor, Gemini CLI and Copilot CLI of late 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Deed = Literal["open", "ask", "capture", "both"]
"""What an event is for: the start of a session, a prompt, an end of a turn, a prompt to keep."""


class Dialect(NamedTuple):
    """One client: its events, how it wants context, and the form of its transcript.

    `answer` is "specific" (Claude Code's form), "snake" (Cursor's) or "camel" (Copilot's).
    `transcript` names the reader in `transcript_lines`; None where turns come with the events.
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
        {"sessionStart": "open", "agentStop": "capture", "preCompact": "capture"},
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
    """Return an event; None if this client has no such event, or it is for nothing."""
    dialect = DIALECTS[client]
    deed = dialect.events.get(name)
    if deed is None:
        return None
    roots = told.get("workspace_roots")
    first_root = roots[0] if isinstance(roots, list) and roots else ""
    prompt = _text(told, "prompt")
    reply = _text(told, "prompt_response", "text")
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
    """Return what a client reads back: a context for its model, or nothing to say."""
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

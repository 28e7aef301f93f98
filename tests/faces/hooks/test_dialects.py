"""Dialects: what each client sends becomes one form, and each gets its own form back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from worlddb.faces.clients.client_file import HOOK_CLIENTS, hook_commands, plugin_folder
from worlddb.faces.hooks.client_dialects import DIALECTS, answer_of, event_of

TOLD: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "claude-code",
        "UserPromptSubmit",
        {"session_id": "s", "cwd": "/p", "transcript_path": "/t.jsonl", "prompt": "How?"},
        {"deed": "ask", "session": "s", "folder": "/p", "prompt": "How?", "said": ()},
    ),
    (
        "claude-code",
        "SessionStart",
        {"session_id": "s", "cwd": "/p", "transcript_path": "/t.jsonl", "source": "compact"},
        {"deed": "open", "fresh": True},
    ),
    (
        "codex",
        "Stop",
        {"session_id": "s", "cwd": "/p", "transcript_path": None, "turn_id": "1"},
        {"deed": "capture", "transcript": None},
    ),
    (
        "cursor",
        "beforeSubmitPrompt",
        {"conversation_id": "c", "workspace_roots": ["/w"], "prompt": "How?"},
        {"deed": "both", "session": "c", "folder": "/w", "said": (("user", "How?"),)},
    ),
    (
        "cursor",
        "afterAgentResponse",
        {"conversation_id": "c", "workspace_roots": ["/w"], "text": "So."},
        {"deed": "capture", "said": (("assistant", "So."),)},
    ),
    (
        "gemini",
        "AfterAgent",
        {"session_id": "s", "cwd": "/p", "prompt": "How?", "prompt_response": "So."},
        {"deed": "capture", "said": (("user", "How?"), ("assistant", "So."))},
    ),
    (
        "gemini",
        "AfterAgent",
        # Gemini CLI puts what the hook before has answered into the prompt.
        {"prompt": "<hook_context>&lt;memories&gt;\n- x</hook_context>\n\nHow?"},
        {"prompt": "How?", "said": (("user", "How?"),)},
    ),
    (
        "copilot",
        "userPromptSubmitted",
        {"sessionId": "s", "cwd": "/p", "prompt": "How?", "timestamp": 1},
        {"deed": "ask", "session": "s", "prompt": "How?", "said": ()},
    ),
    (
        "copilot",
        "agentStop",
        {"sessionId": "s", "cwd": "/p", "transcriptPath": "/e.jsonl", "timestamp": 1},
        {"deed": "capture", "session": "s", "transcript": "/e.jsonl"},
    ),
]


@pytest.mark.parametrize(("client", "name", "told", "expected"), TOLD)
def test_an_event_of_each_client_is_understood(
    client: str, name: str, told: dict[str, Any], expected: dict[str, Any]
) -> None:
    event = event_of(client, name, told)
    assert event is not None
    assert {key: getattr(event, key) for key in expected} == expected


def test_an_event_that_is_for_nothing_and_a_strange_one_are_passed_over() -> None:
    assert event_of("claude-code", "PreToolUse", {}) is None
    event = event_of("claude-code", "Stop", {"session_id": 7, "cwd": None, "prompt": ["x"]})
    assert event is not None
    assert (event.session, event.folder, event.prompt) == ("", "", "")


def test_each_client_gets_context_in_its_own_form() -> None:
    for client in ("claude-code", "codex"):
        told = {"hookEventName": "UserPromptSubmit", "additionalContext": "x"}
        # Codex refuses an answer with any other key.
        assert answer_of(client, "UserPromptSubmit", "x") == {"hookSpecificOutput": told}
        assert answer_of(client, "Stop", "") == {}
    assert answer_of("gemini", "BeforeAgent", "x")["hookSpecificOutput"] == {
        "hookEventName": "BeforeAgent",
        "additionalContext": "x",
    }
    cursor = answer_of("cursor", "beforeSubmitPrompt", "x")
    assert cursor == {"continue": True, "additional_context": "x"}
    assert answer_of("cursor", "beforeSubmitPrompt", "") == {"continue": True}
    assert answer_of("cursor", "sessionStart", "x") == {"additional_context": "x"}
    for name in ("sessionStart", "userPromptSubmitted"):
        assert answer_of("copilot", name, "x") == {"additionalContext": "x"}


def test_the_plug_ins_have_the_hooks_that_setup_writes_and_no_path_of_a_machine() -> None:
    assert set(HOOK_CLIENTS) == set(DIALECTS)
    for client in HOOK_CLIENTS.values():
        folder = Path(plugin_folder(client))
        (file,) = folder.rglob("hooks.json")
        commands = hook_commands(client, ["worlddb"])
        expected = {event: [client.entry(event, one)] for event, one in commands.items()}
        assert json.loads(file.read_text())["hooks"] == expected
        texts = [one.read_text() for one in folder.rglob("*.json")]
        assert all(isinstance(json.loads(text), dict) for text in texts)
        assert sum('"args": [\n' in text and '"mcp"' in text for text in texts) == 1
    market = json.loads((folder.parent / ".claude-plugin" / "marketplace.json").read_text())
    assert (folder.parent / market["plugins"][0]["source"] / ".claude-plugin").is_dir()

"""Capture: every turn is written once, whatever events overlap, and without its secrets."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from faces.http.serving import serving, token
from worlddb.faces.face_settings import Settings, settings_from
from worlddb.faces.hooks.client_dialects import HookEvent, SessionFiles, event_of, turns_in
from worlddb.faces.hooks.hook_actions import DoorError, capture, is_before_the_model
from worlddb.memory.memory import Memory

KEY = "sk-" + "Ab1" * 12
WRITTEN = list[dict[str, Any]]


def claude(number: int, role: str, content: object, **more: object) -> dict[str, Any]:
    at = f"2026-11-16T10:00:{number:02}.000Z"
    message = {"role": role, "content": content}
    return {"type": role, "uuid": f"u{number}", "timestamp": at, "message": message, **more}


CLAUDE: WRITTEN = [
    {"type": "summary", "summary": "x"},
    claude(1, "user", f"Deploy with {KEY} on Fridays only."),
    claude(2, "assistant", [{"type": "thinking", "thinking": "hm"}]),
    claude(3, "assistant", [{"type": "text", "text": "Noted."}, {"type": "tool_use", "id": "t"}]),
    claude(4, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]),
    claude(5, "user", "Caveat: The messages below were made by the user", isMeta=True),
    claude(6, "assistant", "From a subagent.", isSidechain=True),
    claude(7, "user", "<system-reminder>rules</system-reminder>Use port 8080."),
    claude(8, "user", "<command-name>/clear</command-name>"),
]
CODEX: WRITTEN = [
    {"type": "session_meta", "payload": {"id": "s"}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"text": "Use port 8080."}]},
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Use port 8080."}},
    {"type": "event_msg", "payload": {"type": "agent_message", "message": "Noted."}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": {}}},
]


def codex_item(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return {
        "type": "response_item",
        "payload": {"type": "message", "role": role, "content": content},
    }


def codex_event(kind: str, text: str) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, "message": text}}


CODEX_ITEMS: WRITTEN = [
    codex_item("developer", "Follow the rules."),
    codex_item("user", "<environment_context><cwd>/p</cwd></environment_context>"),
    codex_item("user", "<skill>\nhow to test\n</skill>"),
    codex_item("user", "Use port 8080."),
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
    codex_item("assistant", "Noted."),
]
CODEX_BOTH: WRITTEN = [
    codex_item("user", "Use port 8080."),
    codex_event("user_message", "Use port 8080.\n"),
    codex_event("agent_message", "Noted."),
    codex_item("assistant", "Noted."),
    codex_item("user", "Use port 8080."),
    codex_event("user_message", "Use port 8080."),
]
COPILOT: WRITTEN = [
    {"type": "session.start", "data": {}, "id": "1"},
    {"type": "user.message", "data": {"content": "Use port 8080."}, "id": "2"},
    {"type": "assistant.message", "data": {"content": "Noted."}, "id": "3"},
]


def put(path: Path, entries: WRITTEN) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


@pytest.mark.parametrize(
    ("form", "entries", "expected"),
    [
        (
            "claude-code",
            CLAUDE,
            [
                ("user", f"Deploy with {KEY} on Fridays only."),
                ("assistant", "Noted."),
                ("user", "Use port 8080."),
            ],
        ),
        ("codex", CODEX, [("user", "Use port 8080."), ("assistant", "Noted.")]),
        ("codex", CODEX_ITEMS, [("user", "Use port 8080."), ("assistant", "Noted.")]),
        (
            "codex",
            CODEX_BOTH,
            [("user", "Use port 8080."), ("assistant", "Noted."), ("user", "Use port 8080.")],
        ),
        ("copilot", COPILOT, [("user", "Use port 8080."), ("assistant", "Noted.")]),
    ],
)
def test_a_transcript_gives_what_was_said_and_nothing_else(
    form: str, entries: WRITTEN, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = put(tmp_path / "t.jsonl", entries)
    found = [turn for _, turn in turns_in(str(path), form) if turn is not None]
    assert [(turn.role, turn.text) for turn in found] == expected
    assert len({turn.key for turn in found}) == len(found)


def test_a_transcript_is_read_from_where_the_last_reading_ended(tmp_path: Path) -> None:
    path = put(tmp_path / "t.jsonl", CODEX[:3])
    place, _ = list(turns_in(str(path), "codex"))[-1]
    assert place == path.stat().st_size
    with path.open("a") as file:
        file.write(json.dumps(CODEX[3])[:20])
    assert list(turns_in(str(path), "codex", place)) == []  # Half a line waits.
    with path.open("a") as file:
        file.write(json.dumps(CODEX[3])[20:] + "\nnot JSON\n" + "[" * 100_000 + "\n")
    later = list(turns_in(str(path), "codex", place))
    assert [turn and turn.text for _, turn in later] == ["Noted.", None, None]
    put(path, CODEX[:1])
    assert len(list(turns_in(str(path), "codex", later[-1][0]))) == 1  # It has become shorter.


def test_the_second_line_of_a_message_of_codex_adds_nothing_in_a_later_reading(
    tmp_path: Path,
) -> None:
    path, whole = tmp_path / "t.jsonl", list[tuple[str, str]]()
    place = 0
    for count in range(1, len(CODEX_BOTH) + 1):
        put(path, CODEX_BOTH[:count])
        for after, turn in list(turns_in(str(path), "codex", place)):
            place = after
            whole += [] if turn is None else [(turn.key, turn.text)]
    assert whole == [
        (turn.key, turn.text) for _, turn in turns_in(str(path), "codex") if turn is not None
    ]
    assert len(whole) == 3


class Session:
    """A session of Claude Code with a store of its own."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self.files = SessionFiles(str(folder / "hooks"), "claude-code", "s1")
        self.transcript = folder / "t.jsonl"

    def event(self, name: str) -> HookEvent:
        told = {"session_id": "s1", "cwd": "/p", "transcript_path": str(self.transcript)}
        event = event_of("claude-code", name, told)
        assert event is not None
        return event

    def capture(self, name: str = "Stop", **options: Any) -> int:
        return capture(self.event(name), self.settings, "ada/shop", self.files, **options)

    def memories(self, **scope: Any) -> list[str]:
        with Memory(self.settings.path, embedder="none") as memory:
            return sorted(one.text for one in memory.list(**scope, types=["Turn", "Memory"]))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path, settings_from(Namespace(db=str(tmp_path / "m.db"))))


def test_overlapping_events_write_each_turn_once(session: Session) -> None:
    put(session.transcript, CLAUDE[:4])
    assert session.capture("Stop") == 2
    assert session.capture("PreCompact") == 0
    put(session.transcript, CLAUDE)
    assert session.capture("SessionEnd") == 1
    texts = session.memories(user_id="default", app_id="ada/shop", run_id="s1")
    assert texts == ["Deploy with [secret: api key] on Fridays only.", "Noted.", "Use port 8080."]
    assert session.memories(app_id="bob/other") == []


def test_a_capture_that_has_forgotten_its_place_still_writes_nothing_twice(
    session: Session,
) -> None:
    put(session.transcript, CLAUDE)
    session.capture()
    before = session.memories(user_id="default")
    with session.files.place() as place:
        place.keep(0)
    assert session.capture() == 3
    assert session.memories(user_id="default") == before


def test_what_was_said_while_hooks_were_off_is_never_written(session: Session) -> None:
    put(session.transcript, CLAUDE[:2])
    assert session.capture(skip=True) == 0
    put(session.transcript, CLAUDE)
    session.capture()
    assert session.memories(user_id="default") == ["Noted.", "Use port 8080."]


def test_a_turn_that_no_memory_can_take_holds_up_no_other(session: Session) -> None:
    bad = claude(1, "user", "At no time.") | {"timestamp": "yesterday"}
    put(session.transcript, [bad, CLAUDE[7]])
    session.capture()
    assert session.memories(user_id="default") == ["Use port 8080."]


def test_a_running_server_takes_the_turns_also_for_a_token_with_one_scope_only(
    session: Session,
) -> None:
    from dataclasses import replace

    from worlddb.faces.http.access_tokens import make_access

    put(session.transcript, CLAUDE)
    ada = token("ada-token-0123456789", bounds={"user_id": "ada"})
    with (
        Memory(session.settings.path, embedder="none") as memory,
        serving(memory, make_access(host="127.0.0.1", tokens=(ada,))) as site,
    ):
        session.settings = replace(session.settings, url=site.url, token="wrong")
        with pytest.raises(DoorError, match="401"):
            session.capture()
        session.settings = replace(session.settings, token="ada-token-0123456789")
        assert session.capture() == 3
    assert len(session.memories(user_id="ada")) == 3


def test_events_that_carry_what_was_said_need_no_transcript(session: Session) -> None:
    told = {"session_id": "g", "prompt": "Use port 8080.", "prompt_response": "Noted."}
    event = event_of("gemini", "AfterAgent", told)
    assert event is not None
    assert [capture(event, session.settings, None, session.files) for _ in range(2)] == [2, 2]
    assert session.memories() == ["Noted.", "Use port 8080."]


def test_the_words_of_a_session_are_not_given_back_to_it_unless_it_has_forgotten_them(
    session: Session,
) -> None:
    put(session.transcript, CLAUDE)
    session.capture()
    with Memory(session.settings.path, embedder="none") as memory:
        turns = [memory.db.get(one.id).to_dict() for one in memory.list(types=["Turn", "Memory"])]
    assert len(turns) == 3
    stop, other = session.event("Stop"), session.event("Stop")._replace(session="s2")
    assert all(is_before_the_model(one, stop, session.files) for one in turns)
    assert not any(is_before_the_model(one, other, session.files) for one in turns)
    session.files.begin_anew()
    assert not any(is_before_the_model(one, stop, session.files) for one in turns)
    asked = other._replace(prompt=f" {turns[0]['content'].upper()}\n")
    assert [is_before_the_model(one, asked, session.files) for one in turns] == [True, False, False]
    later = turns[0] | {"valid_from": "2999-01-01T00:00:00Z"}
    assert is_before_the_model(later, stop, session.files)

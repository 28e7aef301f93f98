"""A session of each client: the commands that setup wrote, run with what the client sends.

The events have the fields that the packages of Claude Code 2.1 and Gemini CLI 0.61 declare, and
those that the documents of Codex, Cursor and Copilot CLI name.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faces.command import DEADLINE_S, environment, worlddb
from worlddb.memory.memory import Memory

KEY = "sk-" + "Ab1" * 12
SAID = f"The staging server is called heron, and its key is {KEY}."
REPLY = "Noted: heron is the staging server."
QUESTION = "What is the staging server called?"
CLIENTS = ("claude-code", "codex", "cursor", "gemini", "copilot")
FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini": ".gemini/settings.json",
    "copilot": ".copilot/hooks/worlddb.json",
}
AT = "2026-11-16T10:00:00.000Z"


class ClientSession:
    """A home in which `setup` was run, a project, and one client's sessions in it."""

    def __init__(self, root: Path, client: str) -> None:
        self.client = client
        self.root = root
        self.folder = root / "shop"
        (self.folder / ".git").mkdir(parents=True)
        self.home = root / "home"
        self.home.mkdir()
        self.env = {
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(root / "data"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "WORLDDB_HOOK_TIMEOUT_S": str(DEADLINE_S),
        }

    def setup(self, *arguments: str) -> None:
        done = worlddb("setup", *arguments, env=self.env)
        assert done.code == 0, done.err

    @property
    def commands(self) -> dict[str, str]:
        """The command of each event, out of the client's own file."""
        hooks = json.loads((self.home / FILES[self.client]).read_text())["hooks"]
        found = {}
        for name, (entry,) in hooks.items():
            inner = entry["hooks"][0] if "hooks" in entry else entry
            found[name] = inner.get("command") or inner["bash"]
        return found

    def send(self, name: str, told: dict[str, Any], **env: str) -> Any:
        """Run the command of an event in a shell, and wait for all that it starts."""
        ours, theirs = os.pipe()
        done = subprocess.run(
            ["sh", "-c", self.commands[name]],
            input=json.dumps(told).encode(),
            capture_output=True,
            env=environment(self.env | env),
            cwd=self.folder,
            pass_fds=[theirs],
            timeout=DEADLINE_S,
            check=False,
        )
        os.close(theirs)
        assert os.read(ours, 1) == b""
        os.close(ours)
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout)

    def converse(self, session: str, **env: str) -> None:
        """Say something and get a reply, with every event that the client then sends."""
        for name, told in self.turn(session):
            self.send(name, told, **env)

    def turn(self, session: str) -> Iterator[tuple[str, dict[str, Any]]]:
        base = {"session_id": session, "cwd": str(self.folder), "transcript_path": ""}
        if self.client in ("claude-code", "codex"):
            base["transcript_path"] = str(self._transcript(session))
            base["permission_mode"] = "default"
            stop = {"stop_hook_active": False, "last_assistant_message": REPLY}
            yield "Stop", base | {"hook_event_name": "Stop"} | stop
            compact = {"hook_event_name": "PreCompact", "trigger": "auto"}
            yield "PreCompact", base | compact | {"custom_instructions": None}
            yield "SessionEnd", base | {"hook_event_name": "SessionEnd", "reason": "other"}
        elif self.client == "cursor":
            yield "beforeSubmitPrompt", self._cursor(session, "beforeSubmitPrompt", prompt=SAID)
            for _ in range(2):
                yield "afterAgentResponse", self._cursor(session, "afterAgentResponse", text=REPLY)
        elif self.client == "gemini":
            put_in = "<hook_context>&lt;memories&gt;\n- otter\n&lt;/memories&gt;</hook_context>\n\n"
            said = {"prompt": put_in + SAID, "prompt_response": REPLY, "stop_hook_active": False}
            for _ in range(2):
                yield "AfterAgent", base | {"hook_event_name": "AfterAgent", "timestamp": AT} | said
        else:
            path = str(self._transcript(session))
            told = {"sessionId": session, "timestamp": 1763287200000, "cwd": str(self.folder)}
            yield "agentStop", told | {"transcriptPath": path, "stopReason": "end_turn"}
            yield "preCompact", told | {"transcriptPath": path, "trigger": "auto"}

    def ask(self, session: str, prompt: str = QUESTION, **env: str) -> Any:
        """Ask something; return the client's answer, and its event."""
        base = {"session_id": session, "cwd": str(self.folder), "transcript_path": "/none"}
        if self.client == "cursor":
            name, told = "beforeSubmitPrompt", self._cursor(session, "", prompt=prompt)
        elif self.client == "copilot":
            name = "userPromptSubmitted"
            told = {"sessionId": session, "timestamp": 1763287200000, "cwd": str(self.folder)}
            told |= {"prompt": prompt}
        else:
            name = "BeforeAgent" if self.client == "gemini" else "UserPromptSubmit"
            told = base | {"hook_event_name": name, "prompt": prompt, "timestamp": AT}
        return self.send(name, told, **env)

    def given(self, answer: Any) -> str:
        """The context in an answer; fails if the answer has another form than the client's."""
        if self.client == "cursor":
            assert answer.pop("continue") is True
            key = "additional_context"
        elif self.client == "copilot":
            key = "additionalContext"
        else:
            key = "additionalContext"
            if answer:
                (outer,) = answer.values()
                assert list(answer) == ["hookSpecificOutput"]
                name = "BeforeAgent" if self.client == "gemini" else "UserPromptSubmit"
                assert outer.pop("hookEventName") == name
                answer = outer
        assert set(answer) <= {key}
        context: str = answer.get(key, "")
        return context

    def stored(self) -> list[str]:
        path = self.root / "data" / "worlddb" / "memory.db"
        if not path.exists():
            return []
        with Memory(path, embedder="none") as memory:
            return sorted(one.content for one in memory.list(limit=100))

    def _cursor(self, session: str, name: str, **more: str) -> dict[str, Any]:
        told: dict[str, Any] = {"conversation_id": session, "generation_id": "g1"}
        told |= {"hook_event_name": name, "cursor_version": "2.3.0", "user_email": None}
        told |= {"model": "default", "workspace_roots": [str(self.folder)], "transcript_path": None}
        return told | {"attachments": []} | more

    def _transcript(self, session: str) -> Path:
        path = self.root / f"{session}.jsonl"
        said = (("user", SAID), ("assistant", REPLY))
        lines = [self._line(number, *one) for number, one in enumerate(said)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def _line(self, number: int, role: str, text: str) -> dict[str, Any]:
        if self.client == "copilot":
            more = {"id": str(number), "parentId": None, "timestamp": AT}
            return {"type": f"{role}.message", "data": {"content": text}} | more
        kind = "output_text" if role == "assistant" else "input_text"
        if self.client == "codex":
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            return {"timestamp": AT, "type": "response_item", "payload": item}
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        told = {"type": role, "uuid": f"u{number}", "parentUuid": None, "timestamp": AT}
        return told | {"message": message, "isSidechain": False, "sessionId": "s"}


@pytest.fixture(params=CLIENTS)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> ClientSession:
    found = ClientSession(tmp_path, request.param)
    found.setup(request.param, "--hooks", "--write")
    return found


def test_what_was_said_is_written_once_without_secrets_and_given_to_the_next_session(
    session: ClientSession,
) -> None:
    session.converse("one")
    stored = session.stored()
    assert len(stored) == 2
    assert any("heron" in text for text in stored)
    assert not any(KEY in text or "otter" in text for text in stored)
    context = session.given(session.ask("two"))
    assert "heron" in context
    assert "data" in context.splitlines()[0] + context.splitlines()[1]
    assert len(context.encode()) <= 3_000
    stranger = ClientSession(session.root / "elsewhere", session.client)
    session.folder = stranger.folder
    assert "heron" not in session.given(session.ask("three"))


def test_hooks_are_off_by_a_word_in_every_client(session: ClientSession) -> None:
    session.converse("one", WORLDDB_HOOKS="off")
    assert session.stored() == []
    session.ask("two", "worlddb off")
    session.converse("two")
    assert session.stored() == []
    (session.folder / ".worlddb.toml").write_text('hooks = "off"\n')
    session.converse("three")
    assert session.stored() == []
    (session.folder / ".worlddb.toml").unlink()
    session.converse("four")
    assert session.given(session.ask("five"))
    assert session.given(session.ask("six", WORLDDB_HOOKS="off")) == ""


def test_setup_leaves_no_trace_when_it_is_removed(session: ClientSession) -> None:
    path = session.home / FILES[session.client]
    written = path.read_bytes()
    session.setup(session.client, "--hooks", "--write")
    assert path.read_bytes() == written
    session.setup("--remove")
    assert [one for one in session.home.rglob("*") if one.is_file()] == []

"""Hook settings of clients: where each keeps its hooks, and the commands that setup puts there."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from worlddb.errors import FormatError, InvalidInputError
from worlddb.faces import hooks
from worlddb.faces.clients.client_file import ClientEdit, left_over, text_file
from worlddb.faces.clients.settings_text import append_json, parse_json, remove_json, set_json
from worlddb.faces.hooks.client_dialects import DIALECTS

TIMEOUT_S = 5  # Ours ends after one; a client's own limit is for a machine that is stuck.
KEY = "hooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookClient:
    """A client that calls hooks: its file for the user, its file for a project, the form of both.

    "groups" is Claude Code's form, with the timeout in seconds or milliseconds; "commands" is
    Cursor's; "shells" is Copilot's, with a command for each shell.
    """

    name: str
    title: str
    folder: str
    file: str
    project: str
    form: Literal["groups", "commands", "shells"] = "groups"
    timeout: int = TIMEOUT_S
    home_variable: str | None = None
    note: str = ""

    def path(self, *, in_project: bool = False) -> str:
        """Return the path of its file with hooks, whether it exists or not."""
        if in_project:
            return os.path.abspath(self.project)
        home = os.environ.get(self.home_variable) if self.home_variable else None
        return os.path.join(home or os.path.expanduser(self.folder), self.file)

    def entry(self, event: str, command: str) -> dict[str, Any]:
        """Return the entry of one event."""
        if self.form == "commands":
            return {"command": command}
        if self.form == "shells":
            shells = {"bash": command, "powershell": command}
            return {"type": "command", **shells, "timeoutSec": self.timeout}
        return {"hooks": [{"type": "command", "command": command, "timeout": self.timeout}]}


HOOK_CLIENTS: dict[str, HookClient] = {
    client.name: client
    for client in (
        HookClient(
            name="claude-code",
            title="Claude Code",
            folder="~/.claude",
            file="settings.json",
            project=".claude/settings.json",
            home_variable="CLAUDE_CONFIG_DIR",
        ),
        HookClient(
            name="codex",
            title="Codex",
            folder="~/.codex",
            file="hooks.json",
            project=".codex/hooks.json",
            home_variable="CODEX_HOME",
            note="Codex runs hooks that you trust: see /hooks there; older versions need "
            "'hooks = true' under [features] in config.toml",
        ),
        HookClient(
            name="cursor",
            title="Cursor",
            folder="~/.cursor",
            file="hooks.json",
            project=".cursor/hooks.json",
            form="commands",
        ),
        HookClient(
            name="gemini",
            title="Gemini CLI",
            folder="~/.gemini",
            file="settings.json",
            project=".gemini/settings.json",
            timeout=TIMEOUT_S * 1_000,
        ),
        HookClient(
            name="copilot",
            title="Copilot CLI",
            folder="~/.copilot",
            file="hooks/worlddb.json",
            project=".github/hooks/worlddb.json",
            form="shells",
            home_variable="COPILOT_HOME",
        ),
    )
}


def hook_client(name: str) -> HookClient:
    """Return a client that calls hooks.

    Raises:
        InvalidInputError: the client has no hooks, or we do not know them.
    """
    if name not in HOOK_CLIENTS:
        known = ", ".join(HOOK_CLIENTS)
        raise InvalidInputError(f"{name!r:.80}: has no hooks that we know; known are {known}")
    return HOOK_CLIENTS[name]


def hook_commands(client: HookClient, launch: Sequence[str], *flags: str) -> dict[str, str]:
    """Return the command for each event of a client, with the flags of the store."""
    return {
        event: shlex.join([*launch, "hook", event, "--client", client.name, *flags])
        for event in DIALECTS[client.name].events
    }


def plugin_folder(client: HookClient) -> str:
    """Return the folder of a client's plug-in, which has the same hooks, and the MCP server."""
    return os.path.join(os.path.dirname(hooks.__file__), "plugins", client.name)


def hooks_edit(client: HookClient, path: str, commands: dict[str, str]) -> ClientEdit:
    """Return the edit that puts our hooks into a client's file; all other hooks stay.

    Raises:
        FormatError: the file cannot be parsed, or has something else in the place of hooks.
        StorageError: the file cannot be read.
    """
    before, mark, text = text_file(path)
    entries = {event: client.entry(event, command) for event, command in commands.items()}
    if client.form != "groups" and "version" not in _data(path, text):
        text = set_json(text, ("version",), 1)
    for event, entry in entries.items():
        found = [place for place in _ours(path, text, client) if place[1] == event]
        present = _data(path, text).get(KEY, {}).get(event, [])
        if len(found) == 1 and entry in present:
            continue
        for place in reversed(found):
            text = remove_json(text, place)
        text = append_json(text, (KEY, event), entry)
    return ClientEdit(path=path, before=before, after=(mark + text).encode(), entry=entries)


def programs_of(client: HookClient, path: str) -> set[str]:
    """Return the programs that our hooks in a client's file start; empty if there are none.

    Raises:
        FormatError: the file cannot be parsed.
        StorageError: the file cannot be read.
    """
    _, _, text = text_file(path)
    found = set()
    for place in _ours(path, text, client):
        entry: Any = _data(path, text)
        for step in place:
            entry = entry[step]
        found.add(shlex.split(str(entry.get("command") or entry.get("bash")))[0])
    return found


def hooks_removal(client: HookClient, path: str) -> ClientEdit | None:
    """Return the edit that takes our hooks out of a client's file; None if there are none.

    Raises:
        FormatError: the file cannot be parsed.
        StorageError: the file cannot be read.
    """
    before, mark, text = text_file(path)
    taken: dict[str, Any] = {}
    while found := _ours(path, text, client):
        event, place = str(found[-1][1]), found[-1]
        taken[event] = client.entry(event, "")
        text = remove_json(text, place)
    if not taken:
        return None
    if client.form != "groups" and list(_data(path, text)) == ["version"]:
        text = ""
    return ClientEdit(path=path, before=before, after=left_over(mark, text), entry=taken)


def _ours(path: str, text: str, client: HookClient) -> list[tuple[str | int, ...]]:
    """Return the places of our own hooks in a file."""
    told = _data(path, text).get(KEY, {})
    if not isinstance(told, dict) or not all(isinstance(one, list) for one in told.values()):
        raise FormatError(f"{path}: {KEY!r} is not a table of hooks; correct it by hand")
    found: list[tuple[str | int, ...]] = []
    for event, entries in told.items():
        ours = f" hook {event} --client {client.name}"
        for place, entry in enumerate(entries):
            inner = entry.get("hooks") if isinstance(entry, dict) else None
            if isinstance(inner, list):
                found += [
                    (KEY, event, place, "hooks", number)
                    for number, one in enumerate(inner)
                    if ours in str(one)
                ]
            elif ours in str(entry):
                found.append((KEY, event, place))
    return found


def _data(path: str, text: str) -> dict[str, Any]:
    try:
        data: dict[str, Any] = parse_json(text)
    except FormatError as error:
        raise FormatError(f"{path}: cannot be parsed, so the file is unchanged: {error}") from None
    return data

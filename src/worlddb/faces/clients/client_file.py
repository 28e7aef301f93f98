"""Client file: our entry and our hooks in the settings files of clients, as a diff, then written.

JSON files are edited by `settings_text`, TOML files by tomlkit, which keeps comments and layout.
The hooks are commands that `worlddb setup` puts where each client keeps its own.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import escape, glob
from itertools import takewhile
from typing import Any, Literal

from worlddb.errors import ConflictError, FormatError, InvalidInputError, StorageError
from worlddb.faces import hooks
from worlddb.faces.cli.command_files import landing
from worlddb.faces.clients.client_catalog import SERVER, McpClient, catalog, merged_entry
from worlddb.faces.clients.settings_text import (
    append_json,
    parse_json,
    parse_yaml,
    remove_json,
    remove_yaml,
    set_json,
    set_yaml,
)
from worlddb.faces.hooks.client_dialects import DIALECTS

BOM = "\ufeff"
NEW_FILE_MODE = 0o600  # The entry may hold a token.


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEdit:
    """A client's file before the edit and after it; None stands for no file."""

    path: str
    before: bytes | None
    after: bytes | None
    entry: Mapping[str, Any]

    @property
    def changes(self) -> bool:
        """Whether the edit changes the file."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before = (self.before or b"").decode().splitlines(keepends=True)
        after = (self.after or b"").decode().splitlines(keepends=True)
        lines = difflib.unified_diff(before, after, self.path, self.path)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def servers_in(client: McpClient, path: str) -> dict[str, Any] | None:
    """Return the table of servers in a client's file; None if there is no file."""
    data = _read(path)
    if data is None:
        return None
    servers = _parsed(client, _decoded(path, data).removeprefix(BOM), path).get(client.key)
    return servers if isinstance(servers, dict) else {}


def edit_for(client: McpClient, path: str, entry: Mapping[str, Any]) -> ClientEdit:
    """Return the edit that puts our entry into a client's file.

    Raises:
        FormatError: the file cannot be parsed, or our entry cannot be set without another change.
        StorageError: the file cannot be read.
    """
    before, mark, text, data = _opened(client, path)
    servers = data.get(client.key, {})
    if not isinstance(servers, dict):
        raise FormatError(f"{path}: {client.key!r} is not a table of servers; correct it by hand")
    entry = merged_entry(servers.get(SERVER), entry)
    if servers.get(SERVER) == entry:
        return ClientEdit(path=path, before=before, after=before or b"", entry=entry)
    place = (client.key, SERVER)
    after = EDITORS[client.format][0](text, place, entry)
    _verify(client, path, after, {**data, client.key: {**servers, SERVER: entry}}, "add")
    return ClientEdit(path=path, before=before, after=(mark + after).encode(), entry=entry)


def removal_from(client: McpClient, path: str) -> ClientEdit | None:
    """Return the edit that takes our entry out of a client's file; None if it is not there.

    Raises:
        FormatError: the file cannot be parsed, or cannot be edited without another change.
        StorageError: the file cannot be read.
    """
    before, mark, text, data = _opened(client, path)
    servers = data.get(client.key)
    if not isinstance(servers, dict) or SERVER not in servers:
        return None
    place = (client.key, SERVER)
    entry = servers[SERVER]
    set_entry, remove_entry, _ = EDITORS[client.format]

    def put_in(old: str) -> str | None:
        known = _parsed(client, old, path).get(client.key, {})
        return None if SERVER in known else set_entry(old, place, entry)

    kept = _kept_before(path, mark + text, put_in)
    if kept is not None:
        return ClientEdit(path=path, before=before, after=kept, entry=entry)
    after = remove_entry(text, place)
    rest = {name: other for name, other in servers.items() if name != SERVER}
    expected = {**data, client.key: rest}
    _verify(client, path, after, expected, "remove")
    return ClientEdit(path=path, before=before, after=left_over(mark, after), entry=entry)


def _kept_before(path: str, present: str, put_in: Callable[[str], str | None]) -> bytes | None:
    """Return the backup from which `put_in` makes the present text; None if there is none.

    So a removal gives back every byte, an empty table included, if nobody has edited since.
    `put_in` returns None for a backup that has something of ours already.
    """
    for backup in sorted(glob(f"{escape(path)}.*.backup"), reverse=True):
        try:
            data = _read(backup) or b""
            text = _decoded(backup, data)
            mark = BOM * text.startswith(BOM)
            made = put_in(text.removeprefix(BOM))
            if made is not None and mark + made == present:
                return data
        except (FormatError, OSError):
            continue  # Somebody else's file, or one that was damaged since.
    return None


def left_over(mark: str, text: str) -> bytes | None:
    """Return the bytes of a file after a removal; None if nothing is left in it."""
    return (mark + text).encode() if text.strip() not in ("", "{}") else None


def text_file(path: str) -> tuple[bytes | None, str, str]:
    """Return a file: its bytes, its byte order mark and its text; no file has no text.

    Raises:
        FormatError: it is not UTF-8.
    """
    before = _read(path)
    text = "" if before is None else _decoded(path, before)
    return before, text[: len(BOM) * text.startswith(BOM)], text.removeprefix(BOM)


def _opened(client: McpClient, path: str) -> tuple[bytes | None, str, str, dict[str, Any]]:
    before, mark, text = text_file(path)
    return before, mark, text, _parsed(client, text, path)


def apply_edit(edit: ClientEdit) -> str | None:
    """Write an edited file atomically; return the path of the backup, if there is one.

    Raises:
        ConflictError: the file was changed since it was read.
        StorageError: the file cannot be written.
    """
    os.makedirs(os.path.dirname(edit.path), exist_ok=True)
    if edit.after is None:
        os.unlink(edit.path)  # All that was in it was ours: there is nothing to keep a copy of.
        return None
    backup = None if edit.before is None else _back_up(edit.path)
    with landing(edit.path, replace=True) as temporary:
        mode = NEW_FILE_MODE if edit.before is None else stat.S_IMODE(os.stat(edit.path).st_mode)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(edit.after)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        if _read(edit.path) != edit.before:
            raise ConflictError(f"{edit.path}: was changed in the meantime; try again")
    return backup


def _back_up(path: str) -> str:
    stem = f"{path}.{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for ending in ("", *(f"-{number}" for number in range(1, 100))):
        target = f"{stem}{ending}.backup"
        if not os.path.lexists(target):
            shutil.copy2(path, target)
            return target
    raise StorageError(f"{stem}.backup: there are 100 backups of this second already")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FormatError(f"{path}: is not UTF-8 text; the file is unchanged") from None


def _parsed(client: McpClient, text: str, path: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = EDITORS[client.format][2](text)
    except FormatError as error:
        raise FormatError(f"{path}: cannot be parsed, so the file is unchanged: {error}") from None
    return found


def _verify(
    client: McpClient, path: str, after: str, expected: Mapping[str, Any], what: str
) -> None:
    """Check that the data of an edited text is as expected; an empty table may be gone."""
    try:
        found = _parsed(client, after, path)
    except FormatError:
        found = {}
    if not expected[client.key]:
        found = {**found, client.key: found.get(client.key, {})}
    if _canonical(found) != _canonical(expected):
        raise FormatError(
            f"{path}: cannot be edited without another change, so the file is unchanged; "
            f"{what} the entry {client.key}.{SERVER} by hand"
        )


def _canonical(value: Any) -> Any:
    """Return data in a form in which NaN equals itself and 1 differs from 1.0."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return type(value).__name__, repr(value)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the data of a TOML text.

    Raises:
        FormatError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not TOML: {error}") from None


def set_toml(text: str, path: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return `text` with `entry` as the table at `path`, which has two keys.

    A blank line or comment at the end of our table belongs to the table that follows, and stays.
    """
    import tomlkit
    from tomlkit.items import InlineTable

    key, name = path
    document = tomlkit.parse(text)
    if key not in document:
        document[key] = tomlkit.table(is_super_table=True)
    servers: Any = document[key]
    old = servers.get(name)
    trailing = _trailing_trivia(old)
    if isinstance(old, InlineTable):
        old.clear()
        old.update(entry)
    else:
        servers[name] = dict(entry)
    for item in trailing:
        _last_table(servers[name]).add(item)
    after = tomlkit.dumps(document)
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        after = after.replace("\r\n", "\n").replace("\n", "\r\n")
    return after


def remove_toml(text: str, path: Sequence[str]) -> str:
    """Return `text` without the table at `path`, which has two keys, and the tables inside of it.

    The blank lines before it go with it, unless the next table follows without one. Blank lines
    and comments at its end belong to what follows, and stay.
    """
    names = r"\s*\.\s*".join(rf"[\"']?{re.escape(name)}[\"']?" for name in path)
    ours = re.compile(rf"\s*\[\s*{names}\s*(?:\.[^\]]*)?\]")
    kept: list[str] = []
    trailing: list[str] = []
    blank: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            was_inside, inside = inside, bool(ours.match(line))
            if was_inside and inside:
                trailing = [one for one in trailing if one.strip()]
            elif inside:
                blank = []
                while kept and not kept[-1].strip():
                    blank.append(kept.pop())
            elif was_inside and not trailing:
                kept += blank
            kept += trailing
            trailing = []
        if not inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            trailing.append(line)
    return "".join(kept + trailing) if any(line.strip() for line in kept + trailing) else ""


def _trailing_trivia(table: Any) -> list[Any]:
    """Return the blank lines and comments at the end of a table of tomlkit."""
    from tomlkit.items import Table

    if not isinstance(table, Table):
        return []
    members = reversed(_last_table(table).value.body)
    return [item for _, item in takewhile(lambda member: member[0] is None, members)][::-1]


def _last_table(table: Any) -> Any:
    """Return the table that is written last: `table` itself or one inside it."""
    from tomlkit.items import Table

    for key, item in reversed(table.value.body):
        if key is not None:
            return _last_table(item) if isinstance(item, Table) else table
    return table


EDITORS: dict[str, tuple[Callable[..., str], Callable[..., str], Callable[[str], Any]]] = {
    "json": (set_json, remove_json, parse_json),
    "toml": (set_toml, remove_toml, parse_toml),
    "yaml": (set_yaml, remove_yaml, parse_yaml),
}
"""How each format is edited: an entry set, an entry removed, the text parsed."""


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


HOOK_CLIENTS = {name: HookClient(name=name, **table) for name, table in catalog("hooks").items()}


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
    after = _with_hooks(client, path, text, entries)
    return ClientEdit(path=path, before=before, after=(mark + after).encode(), entry=entries)


def _with_hooks(client: HookClient, path: str, text: str, entries: Mapping[str, Any]) -> str:
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
    return text


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
    hooks_now = _data(path, text).get(KEY, {})
    places = _ours(path, text, client)
    if not places:
        return None
    taken = {str(place[1]): hooks_now[place[1]][place[2]] for place in places}
    order = [event for event in DIALECTS[client.name].events if event in taken]
    present = {event: taken[event] for event in order}

    def put_in(old: str) -> str | None:
        return None if _ours(path, old, client) else _with_hooks(client, path, old, present)

    kept = _kept_before(path, mark + text, put_in)
    if kept is not None:
        return ClientEdit(path=path, before=before, after=kept, entry=taken)
    while found := _ours(path, text, client):
        text = remove_json(text, found[-1])
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

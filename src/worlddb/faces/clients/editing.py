"""Editing: a client's file before and after, and putting the new one in its place."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from worlddb.errors import ConflictError, FormatError, StorageError
from worlddb.faces.cli.command_files import landing
from worlddb.faces.clients.catalog import SERVER, Client
from worlddb.faces.clients.entries import merged_entry
from worlddb.faces.clients.jsontext import parse_json, set_json
from worlddb.faces.clients.tomltext import parse_toml, set_toml

BOM = "\ufeff"
NEW_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A client's file as it is (None if there is none) and as it would be."""

    client: Client
    path: str
    before: bytes | None
    after: bytes
    entry: Mapping[str, Any]

    @property
    def changes(self) -> bool:
        """Whether anything would change at all."""
        return self.before != self.after

    def diff(self) -> str:
        """Return what would change, as a unified diff."""
        before = (self.before or b"").decode().splitlines(keepends=True)
        after = self.after.decode().splitlines(keepends=True)
        lines = difflib.unified_diff(before, after, self.path, self.path)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def servers_in(client: Client, path: str) -> dict[str, Any] | None:
    """Return the servers that a client's file names; None if there is no file.

    Raises:
        FormatError: it cannot be parsed.
        StorageError: it cannot be read.
    """
    data = _read(path)
    if data is None:
        return None
    servers = _parsed(client, _decoded(path, data).removeprefix(BOM), path).get(client.key)
    return servers if isinstance(servers, dict) else {}


def edit_for(client: Client, path: str, entry: Mapping[str, Any]) -> Edit:
    """Return the edit that puts our entry into a client's file.

    Raises:
        FormatError: the file cannot be parsed, or not be edited without touching something else.
        StorageError: it cannot be read.
    """
    before = _read(path)
    text = "" if before is None else _decoded(path, before)
    mark, text = text[: len(BOM) * text.startswith(BOM)], text.removeprefix(BOM)
    data = _parsed(client, text, path)
    servers = data.get(client.key, {})
    if not isinstance(servers, dict):
        raise FormatError(f"{path}: {client.key!r} is no table of servers; set it right by hand")
    entry = merged_entry(servers.get(SERVER), entry)
    if servers.get(SERVER) == entry:
        return Edit(client=client, path=path, before=before, after=before or b"", entry=entry)
    place = (client.key, SERVER)
    setter = set_json if client.format == "json" else set_toml
    after = setter(text, place, entry)
    expected = {**data, client.key: {**servers, SERVER: entry}}
    _verify(client, path, after, expected)
    return Edit(client=client, path=path, before=before, after=(mark + after).encode(), entry=entry)


def apply(edit: Edit, *, now: datetime | None = None) -> str | None:
    """Put an edit in its place, whole or not at all; return the path of the backup, if any.

    Raises:
        ConflictError: somebody else has written the file since it was read.
        StorageError: it cannot be written.
    """
    os.makedirs(os.path.dirname(edit.path), exist_ok=True)
    backup = None if edit.before is None else _back_up(edit.path, now or datetime.now(UTC))
    with landing(edit.path, replace=True) as temporary:
        mode = NEW_FILE_MODE if edit.before is None else stat.S_IMODE(os.stat(edit.path).st_mode)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(edit.after)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        if _read(edit.path) != edit.before:
            raise ConflictError(f"{edit.path}: was changed meanwhile; try again")
    return backup


def _back_up(path: str, now: datetime) -> str:
    stem = f"{path}.{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    for ending in ("", *(f"-{number}" for number in range(1, 100))):
        target = f"{stem}{ending}.backup"
        if not os.path.lexists(target):
            shutil.copy2(path, target)
            return target
    raise StorageError(f"{stem}.backup: there are too many backups of this second")


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
        raise FormatError(f"{path}: is not UTF-8 text; it was left as it is") from None


def _parsed(client: Client, text: str, path: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = parse_json(text) if client.format == "json" else parse_toml(text)
    except FormatError as error:
        raise FormatError(f"{path}: cannot be parsed, and was left as it is: {error}") from None
    return found


def _verify(client: Client, path: str, after: str, expected: Mapping[str, Any]) -> None:
    """Check that an edited text says what it should, and nothing else has changed.

    Raises:
        FormatError: it does not.
    """
    try:
        found = _parsed(client, after, path)
    except FormatError:
        found = {}
    if _canonical(found) != _canonical(expected):
        raise FormatError(
            f"{path}: could not be edited without touching something else, and was left as it is; "
            f"add the entry {client.key}.{SERVER} by hand"
        )


def _canonical(value: Any) -> Any:
    """Return data in a form in which NaN equals itself, and 1 is not 1.0."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return type(value).__name__, repr(value)

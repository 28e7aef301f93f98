"""One item of an import, and what readers of all formats need."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from worlddb.errors import FormatError


class ImportedItem(NamedTuple):
    """Something to remember: a key that names it within its source, its text, and what is known.

    `role` is who said it, in a chat; `scope` names user, agent, app and run as the source has them;
    `until` is when it stopped being true; `origin` is who brought it into the source, if that is
    known.
    """

    key: str
    text: str
    role: str | None = None
    at: str | None = None
    until: str | None = None
    names: tuple[str, ...] = ()
    scope: Mapping[str, str] = {}
    metadata: Mapping[str, Any] = {}
    origin: str | None = None


Reader = Callable[[str], Iterator[ImportedItem]]


def json_file(path: str, *inside: str) -> Any:
    """Return the data of a JSON file; of a folder or a ZIP file, that of the named file in it.

    Raises:
        FormatError: it is not JSON, or there is no such file.
    """
    try:
        if os.path.isdir(path):
            found = [os.path.join(path, name) for name in inside]
            path = next((one for one in found if os.path.exists(one)), path)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                named = [one for one in packed.namelist() if os.path.basename(one) in inside]
                if not inside:
                    raise FormatError(f"{path}: is a ZIP file; give the JSON file in it")
                if not named:
                    raise FormatError(f"{path}: has no {' or '.join(inside)} in it")
                return json.loads(packed.read(named[0]))
        with open(path, encoding="utf-8-sig") as file:
            return json.load(file)
    except IsADirectoryError:
        wanted = f" without {' or '.join(inside)}" if inside else "; give the file in it"
        raise FormatError(f"{path}: is a folder{wanted}") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: is not JSON: {error}") from None


def files_in(path: str, end: str) -> list[str]:
    """Return a file, or the files of a folder and its folders whose names have an end, in order."""
    if not os.path.isdir(path):
        return [path]
    found = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith(end)
    ]
    return sorted(found)


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; nothing of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_in(value: Mapping[str, Any], *keys: str) -> str:
    """Return the first text that an object has under some keys; empty if there is none."""
    for key in keys:
        if isinstance(value.get(key), str) and value[key].strip():
            return str(value[key]).strip()
    return ""


def time_in(value: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first time under some keys, with a time zone: ISO-8601, or seconds since 1970."""
    for key in keys:
        given = value.get(key)
        try:
            if isinstance(given, int | float) and not isinstance(given, bool):
                return datetime.fromtimestamp(given, UTC).isoformat()
            if isinstance(given, str) and given:
                made = datetime.fromisoformat(given)
                return (made if made.tzinfo else made.replace(tzinfo=UTC)).isoformat()
        except (ValueError, OverflowError, OSError):
            continue
    return None


def scope_in(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids of user, agent, app and run that an object has."""
    kinds = ("user_id", "agent_id", "app_id", "run_id")
    return {kind: text_in(value, kind) for kind in kinds if text_in(value, kind)}

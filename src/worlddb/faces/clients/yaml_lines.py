"""YAML lines: our entry in a table of a YAML file, as one line of JSON, which YAML can read.

    extensions:
      worlddb: {"type": "stdio", "cmd": "worlddb", …}

Only Goose keeps YAML, and no YAML parser is installed with us. So nothing of the file is parsed
but the line of the table and our own line; a table in any other form is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from worlddb.errors import FormatError

REST = "(rest)"  # Stands for all lines that are not ours, when two texts are compared.


def set_yaml(text: str, path: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return `text` with `entry` at `path`, which has two keys.

    Raises:
        FormatError: the table is not a block of lines, or has an entry that is not our line.
    """
    table, name = path
    lines = _lines(text)
    at = _table(lines, table)
    if at is None:
        ending = "" if not lines or lines[-1].endswith("\n") else "\n"
        return f"{text}{ending}{table}:\n  {name}: {json.dumps(entry)}\n"
    ours = _ours(lines, at, name)
    inside = next((line for line in lines[at + 1 :] if line.strip()), "")
    indent = re.match(" *", inside)[0] or "  "  # type: ignore[index]
    line = f"{indent}{name}: {json.dumps(entry)}\n"
    if ours is None:
        return "".join([*lines[: at + 1], line, *lines[at + 1 :]])
    return "".join([*lines[:ours], line, *lines[ours + 1 :]])


def remove_yaml(text: str, path: Sequence[str]) -> str:
    """Return `text` without our line, and without the table if our line was its only one."""
    table, name = path
    lines = _lines(text)
    at = _table(lines, table)
    ours = None if at is None else _ours(lines, at, name)
    if at is None or ours is None:
        raise FormatError(f"{name!r} is not there")
    del lines[ours]
    if not any(line.strip() for line in lines[at + 1 : at + 2]) or not lines[at + 1][0].isspace():
        del lines[at]
    return "".join(lines)


def parse_yaml(text: str) -> dict[str, Any]:
    """Return our own entries by their tables, and all other lines as one value."""
    found: dict[str, Any] = {}
    rest = []
    table = ""
    for line in _lines(text):
        if header := re.match(r"([\w-]+):\s*(#.*)?$", line):
            table = header[1]
        mine = re.match(r" +([\w-]+): (\{.*\})\s*$", line)
        entry = _json(mine[2]) if mine else None
        if mine and entry is not None:
            found.setdefault(table, {})[mine[1]] = entry
        elif line.strip() and not header:
            rest.append(line)
    return found | ({REST: rest} if rest else {})


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _table(lines: Sequence[str], table: str) -> int | None:
    """Return the line at which a table begins; None if there is none."""
    found = [at for at, line in enumerate(lines) if re.match(rf"{re.escape(table)}\s*:", line)]
    if len(found) > 1 or (found and not re.fullmatch(r"[\w-]+:\s*(#.*)?\s*", lines[found[0]])):
        raise FormatError(f"{table!r} is not a block of lines; add the entry by hand")
    return found[0] if found else None


def _ours(lines: Sequence[str], table: int, name: str) -> int | None:
    for at in range(table + 1, len(lines)):
        if lines[at].strip() and not lines[at][0].isspace():
            break
        if re.match(rf" +[\"']?{re.escape(name)}[\"']?\s*:", lines[at]):
            if not re.match(rf" +{re.escape(name)}: \{{.*\}}\s*$", lines[at]):
                raise FormatError(f"{name!r} is there in another form; correct it by hand")
            return at
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None

"""Lines: files of one JSON object per line that survive whoever writes them being killed.

A line is written whole and at once. What a kill has left of one is cut off at the next opening.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from worlddb.errors import FormatError


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, none if there is no such file; cut off a broken last line.

    Raises:
        FormatError: a line in the middle is no JSON object.
    """
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        return
    with file:
        good = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            if not isinstance(value, dict):
                raise FormatError(f"{path}: line {number} is no JSON object; move the file away")
            good += len(line)
            yield value
        file.truncate(good)


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Write an object as the last line of a file."""
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    # One write to a file opened for appending: no other thread's line comes between.
    with path.open("ab", buffering=0) as file:
        file.write(data)


def write_lines(path: Path, values: Iterable[dict[str, Any]]) -> None:
    """Replace a file; whoever is killed meanwhile leaves the old one."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8", errors="replace") as file:
        for value in values:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)

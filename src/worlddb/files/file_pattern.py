"""File patterns: match paths by a glob, and lines by a text or a regular expression.

    glob                ──path_matcher──▶ a test of one path
    plain text          ──literal_lines─▶ the matching lines
    regular expression  ──pattern_lines─▶ the matching lines

A caller may give a pattern that is slow on purpose. Globs and plain texts are matched without
backtracking. A regular expression may run for years on one line, cannot be stopped inside a thread,
and blocks all other threads. So it runs in a process of its own, which is ended after `GREP_S_MAX`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from worlddb.errors import InvalidInputError
from worlddb.files.file_tree import parts_of
from worlddb.model.inputs import encode_text

PATTERN_BYTES_MAX = 4_096  # As long as a path; patterns that programs use are far shorter.
GREP_S_MAX = 5.0  # A usual pattern reads megabytes in it, and callers wait no longer.
Lines = list[tuple[int, int, str]]
"""Matching lines: the index of the text, the line number from 1, and the line itself."""
SEARCHER = """
import json, re, sys
given = json.load(sys.stdin)
matches = []
try:
    found = re.compile(given["pattern"], given["flags"])
except (re.error, RecursionError, OverflowError, MemoryError) as error:
    json.dump({"error": str(error) or type(error).__name__}, sys.stdout)
    sys.exit()
for at, text in enumerate(given["texts"]):
    for number, line in enumerate(text.splitlines(), 1):
        if len(matches) < given["limit"] and found.search(line):
            matches.append((at, number, line))
json.dump({"matches": matches}, sys.stdout)
"""


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches a glob."""
    encode_text(pattern, "glob", PATTERN_BYTES_MAX)
    if not pattern.strip("/"):
        raise InvalidInputError("glob: give a pattern, such as *.md or /notes/**")
    wanted = [part for part in pattern.split("/") if part]
    if "/" not in pattern:
        wanted = ["**", *wanted]
    return lambda path: _fits(parts_of(path), wanted)


def _fits(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a path matches; only the last `**` is backtracked: quadratic time."""
    at = part = 0
    again: tuple[int, int] | None = None
    while at < len(names):
        if part < len(wanted) and wanted[part] == "**":
            if part == len(wanted) - 1:
                return True
            again, part = (at, part), part + 1
        elif part < len(wanted) and fnmatchcase(names[at], wanted[part]):
            at, part = at + 1, part + 1
        elif again is None:
            return False
        else:
            again = (again[0] + 1, again[1])
            at, part = again[0], again[1] + 1
    return part == len(wanted)


def literal_lines(literal: str, texts: Sequence[str], *, ignore_case: bool, limit: int) -> Lines:
    """Return the lines that contain a plain text, in linear time.

    Raises:
        InvalidInputError: the text is too long.
    """
    encode_text(literal, "pattern", PATTERN_BYTES_MAX)
    literal, found = literal.casefold() if ignore_case else literal, []
    for at, text in enumerate(texts):
        for number, line in enumerate(text.splitlines(), 1):
            if literal in (line.casefold() if ignore_case else line):
                found.append((at, number, line))
                if len(found) >= limit:
                    return found
    return found


def pattern_lines(pattern: str, texts: Sequence[str], *, ignore_case: bool, limit: int) -> Lines:
    """Return the lines that match a regular expression, which runs in another process."""
    encode_text(pattern, "pattern", PATTERN_BYTES_MAX)
    flags = int(re.IGNORECASE if ignore_case else re.NOFLAG)
    given = {"pattern": pattern, "flags": flags, "texts": texts, "limit": limit}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SEARCHER],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=GREP_S_MAX,
            check=True,
        )
    except subprocess.TimeoutExpired:
        problem = f"took more than {GREP_S_MAX:.0f} s; simplify it, or limit the files by a glob"
    except (OSError, subprocess.CalledProcessError) as error:
        problem = f"the search process failed: {error!s:.200}"
    else:
        answer = json.loads(done.stdout)
        if "matches" in answer:
            return [(at, number, line) for at, number, line in answer["matches"]]
        problem = answer["error"]
    raise InvalidInputError(f"pattern {pattern!r:.80}: {problem}; for a plain text, set literal")

"""File patterns: which paths and which lines a caller's pattern fits.

    glob        ──path_matcher──▶ is this path meant
    plain text  ──literal_lines─▶ the lines that hold it
    expression  ──pattern_lines─▶ the lines that it is found in

A pattern may be made to be slow. A glob and a plain text cannot be: they are matched without going
back. A regular expression can take longer than a life for one line, and nothing stops a thread in
it; it also keeps all other threads waiting. So another process compiles it and looks for it, and is
ended when its time is over.
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

PATTERN_BYTES_MAX = 4_096  # As a path; a pattern of a program is a hundredth of it.
GREP_S_MAX = 5.0  # Who waits longer takes the call for lost; honest patterns read megabytes in it.
Lines = list[tuple[int, int, str]]
"""Of each line that was found: the place of its text, its number from 1 on, and what it says."""
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
    """Return what tells whether a path matches a pattern.

    Raises:
        InvalidInputError: the pattern is empty or too long.
    """
    encode_text(pattern, "glob", PATTERN_BYTES_MAX)
    if not pattern.strip("/"):
        raise InvalidInputError("glob: give a pattern, such as *.md or /notes/**")
    wanted = [part for part in pattern.split("/") if part]
    if "/" not in pattern:
        wanted = ["**", *wanted]
    return lambda path: _fits(parts_of(path), wanted)


def _fits(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a path fits; only the last `**` is ever tried again, so it is no power."""
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


def literal_lines(wanted: str, texts: Sequence[str], *, ignore_case: bool, limit: int) -> Lines:
    """Return the lines that hold a text, in linear time.

    Raises:
        InvalidInputError: the text is too long.
    """
    encode_text(wanted, "pattern", PATTERN_BYTES_MAX)
    wanted, found = wanted.casefold() if ignore_case else wanted, []
    for at, text in enumerate(texts):
        for number, line in enumerate(text.splitlines(), 1):
            if wanted in (line.casefold() if ignore_case else line):
                found.append((at, number, line))
                if len(found) >= limit:
                    return found
    return found


def pattern_lines(pattern: str, texts: Sequence[str], *, ignore_case: bool, limit: int) -> Lines:
    """Return the lines that a regular expression is found in; another process looks for them.

    Raises:
        InvalidInputError: the pattern is wrong, too long or too slow.
    """
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
        problem = f"takes more than {GREP_S_MAX:.0f} s on these files; make it simpler, give a glob"
    except (OSError, subprocess.CalledProcessError) as error:
        problem = f"could not be looked for: {error!s:.200}"
    else:
        answer = json.loads(done.stdout)
        if "matches" in answer:
            return [(at, number, line) for at, number, line in answer["matches"]]
        problem = answer["error"]
    raise InvalidInputError(f"pattern {pattern!r:.80}: {problem}; or say literal")

"""Word lists: text files beside the code, in sections, each read once.

    # a comment
    [section]
    words, separated by white space; an underscore stands for a space

A section is a set of words, or a list of rows where its lines mean something together.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

Rows = tuple[tuple[str, ...], ...]


@cache
def sections(package: str, name: str) -> dict[str, Rows]:
    """Return the rows of each section of the word list `name` in a package of `worlddb`."""
    text = files(f"worlddb.{package}").joinpath(name).read_text(encoding="utf-8")
    found: dict[str, list[tuple[str, ...]]] = {}
    rows: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            rows = found.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            rows.append(tuple(word.replace("_", " ") for word in line.split()))
    return {section: tuple(rows) for section, rows in found.items()}


def words_of(package: str, name: str, section: str) -> frozenset[str]:
    """Return all words of a section."""
    return frozenset(word for row in sections(package, name)[section] for word in row)


def any_of(words: frozenset[str] | tuple[str, ...]) -> str:
    """Return a pattern that matches any of the words, the longest first; a space is any space."""
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered)

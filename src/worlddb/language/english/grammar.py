"""Grammar: the patterns of the English reader, from `grammar.txt` and `frames.txt`.

The modules of this pack hold the logic; what is English lies in the text files beside them. A
pattern is compiled when it is first used.
"""

from __future__ import annotations

import re
from functools import cache, reduce
from importlib.resources import files
from operator import or_

from worlddb.language.question_dates import MONTHS, NUMBERS, WEEKDAYS
from worlddb.language.word_lists import any_of, sections, words_of

UPPER = "".join(chr(code) for code in range(0x41, 0x250) if chr(code).isupper())
BLOT = "\x00"  # stands for each sign of what is no running text
VAGUE = frozenset(("couple", "few", "several", "zero"))

_PACK = "language.english"
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_ENTRY = re.compile(r"(\w+) (?:([ims]+) )?= (.*)")
_REFERENCE = re.compile(r"%((?:\w+/)?[A-Za-z_][\w ,-]*)%")


class Patterns:
    """The patterns of one section of `grammar.txt`, by name."""

    def __init__(self, section: str) -> None:
        self._section = section

    def __getattr__(self, name: str) -> re.Pattern[str]:
        """Return the pattern of a name, compiled once."""
        found = _entries()[self._section].get(name)
        if found is None:
            raise AttributeError(f"grammar.txt: no pattern {name} in [{self._section}]")
        flags, source = found
        flag = reduce(or_, (_FLAGS[letter] for letter in flags), re.NOFLAG)
        pattern = re.compile(_expanded(source, self._section), flag)
        setattr(self, name, pattern)
        return pattern


@cache
def _entries() -> dict[str, dict[str, tuple[str, str]]]:
    """Return flags and source of each entry, by section and name."""
    text = files(f"worlddb.{_PACK}").joinpath("grammar.txt").read_text(encoding="utf-8")
    found: dict[str, dict[str, tuple[str, str]]] = {}
    section: dict[str, tuple[str, str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            section = found.setdefault(line[1:-1], {})
        elif line.startswith("    "):
            flags, source = section[name]
            section[name] = flags, source + line[4:]
        elif entry := _ENTRY.fullmatch(line):
            name = entry[1]
            section[name] = entry[2] or "", entry[3]
    return found


def _expanded(source: str, section: str) -> str:
    return _REFERENCE.sub(lambda match: _piece(match[1], section), source)


def _piece(name: str, section: str) -> str:
    """Return what a reference stands for: an entry, a word list, a frame or a computed piece."""
    file, _, part = name.rpartition("/")
    if file == "frames":
        return "|".join(map(_frame, sections(_PACK, "frames.txt")[part]))
    if file:
        words = words_of(_PACK, f"{file}.txt", part)
        last = frozenset(word[:-1] for word in words if word.endswith("$"))
        if not last:
            return any_of(words)
        return rf"(?:{any_of(last)})(?=\s*(?:[.!?…]|\Z))|(?:{any_of(words)})(?!\w)"
    for where in (section, "pieces"):
        if name in _entries()[where]:
            return _expanded(_entries()[where][name][1], where)
    return _computed()[name]


def _frame(tokens: tuple[str, ...]) -> str:
    """Return the pattern of one line of `frames.txt`."""
    pattern = ""
    for token in tokens:
        if token.startswith("{"):
            pattern += _piece(token[1:-1], "pieces")
            continue
        piece = rf"\s+(?:{any_of(tuple(token.strip('()').split('|')))})"
        pattern += f"(?:{piece})?" if token.startswith("(") else piece
    return pattern


@cache
def _computed() -> dict[str, str]:
    relations = sections(_PACK, "relations.txt")
    preferences = relations["preferences"]
    words = {
        "things": {word for row in relations["things"] for word in row[2:]},
        "persons": {word for row in relations["things"] for word in row[2:] if row[0] == "person"},
        "ways": {way for row in preferences for way in row[2].split(",")},
        "preferred": {thing for row in preferences for thing in row[3].split(",")},
        "months": set(MONTHS),
        "weekdays": set(WEEKDAYS),
        "counts": {word for word in NUMBERS if word not in VAGUE},
    }
    return {"upper": UPPER, "blot": r"\x00"} | {
        name: any_of(frozenset(found)) for name, found in words.items()
    }

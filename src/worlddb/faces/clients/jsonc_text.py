"""JSONC text: set one entry in a JSON file with comments and keep every other byte.

Clients allow comments and trailing commas in their settings. An edit is one or two insertions or
one replacement in the text itself, so layout and comments survive. The editor is ours: Python's
`json` reads neither comments nor trailing commas, and the published JSONC parsers read them but
write the whole file anew, without the comments. (TOML has tomlkit for this.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from worlddb.errors import FormatError

DEPTH_MAX = 200  # Far below Python's recursion limit.
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?\d[\d.eE+-]*|true|false|null")


@dataclass(slots=True)
class _Value:
    """A value and its place; an object has its members, and whether a comma follows the last."""

    start: int
    end: int
    data: Any
    members: dict[str, _Value] = field(default_factory=dict)
    key_starts: list[int] = field(default_factory=list)
    comma: bool = False


class _JsoncReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def wrong(self, reason: str) -> FormatError:
        line = self.text.count("\n", 0, self.at) + 1
        return FormatError(f"line {line}: {reason}")

    def space(self) -> str:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def value(self, depth: int = 0) -> _Value:
        if depth > DEPTH_MAX:
            raise self.wrong("is nested too deeply")
        mark = self.space()
        start = self.at
        if mark == "{":
            return self._object(depth)
        if mark == "[":
            return self._array(depth)
        found = (_STRING if mark == '"' else _PLAIN).match(self.text, start)
        if found is None:
            raise self.wrong("a value was expected")
        self.at = found.end()
        try:
            return _Value(start, self.at, json.loads(found[0]))
        except ValueError as error:
            raise self.wrong(f"{found[0]!r:.40} is not JSON: {error}") from None

    def _array(self, depth: int) -> _Value:
        made = _Value(self.at, 0, [])
        self.at += 1
        while self.space() != "]":
            made.data.append(self.value(depth + 1).data)
            self._comma("]")
        self.at += 1
        made.end = self.at
        return made

    def _object(self, depth: int) -> _Value:
        made = _Value(self.at, 0, {})
        self.at += 1
        while self.space() != "}":
            key_start = self.at
            found = _STRING.match(self.text, self.at)
            if found is None:
                raise self.wrong("a key in quotes was expected")
            self.at = found.end()
            key = json.loads(found[0])
            if key in made.members:
                raise self.wrong(f"the key {key!r:.80} is there twice")
            if self.space() != ":":
                raise self.wrong("':' was expected")
            self.at += 1
            made.members[key] = self.value(depth + 1)
            made.data[key] = made.members[key].data
            made.key_starts.append(key_start)
            made.comma = self._comma("}")
        self.at += 1
        made.end = self.at
        return made

    def _comma(self, closing: str) -> bool:
        mark = self.space()
        if mark == ",":
            self.at += 1
            return True
        if mark != closing:
            raise self.wrong(f"',' or '{closing}' was expected")
        return False


def parse_json(text: str) -> Any:
    """Return the data of a JSON text; an empty text is an empty object."""
    return _parse(text).data


def _parse(text: str) -> _Value:
    reader = _JsoncReader(text)
    if reader.space() == "" and not text[reader.at :]:
        return _Value(len(text), len(text), {})
    try:
        whole = reader.value()
    except (ValueError, RecursionError) as error:
        raise FormatError(str(error)) from None
    if reader.space():
        raise reader.wrong("something follows the end")
    if not isinstance(whole.data, dict):
        raise FormatError("is not a JSON object")
    return whole


def set_json(text: str, path: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return `text` with `entry` at `path`; missing objects on the path are created.

    Raises:
        FormatError: the text, or a value on the path, is not a JSON object.
    """
    whole = _parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    if whole.start == whole.end:
        return text + _dumped(_nested(path, entry), "", "  ").replace("\n", newline) + newline
    unit = _indent(text, whole) or "  "
    holder, place = whole, 0
    while path[place] in holder.members and place < len(path) - 1:
        holder = holder.members[path[place]]
        place += 1
        if not isinstance(holder.data, dict):
            raise FormatError(f"{path[place - 1]!r} is not a JSON object")
    value = _nested(path[place + 1 :], entry)
    if path[place] in holder.members:
        old = holder.members[path[place]]
        if _indent(text, holder) is None:
            made = json.dumps(value, ensure_ascii=False)
        else:
            made = _dumped(value, _line_indent(text, old.start), unit).replace("\n", newline)
        return text[: old.start] + made + text[old.end :]
    return _inserted(text, holder, path[place], value, unit, newline)


def _inserted(text: str, holder: _Value, key: str, value: Any, unit: str, newline: str) -> str:
    """Return the text with a new member at the end of an object."""
    closing = holder.end - 1
    inside = _indent(text, holder)
    if holder.members and inside is None:
        # The object is on one line and stays there.
        last = list(holder.members.values())[-1].end
        comma = "" if holder.comma else ","
        added = f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        kept = text[last:closing].rstrip(" \t")
        if "//" in kept or newline in kept:
            added = newline + added
        return text[:last] + comma + kept + added + text[closing:]
    around = _line_indent(text, holder.start)
    deeper = inside if inside is not None else around + unit
    member = f"{json.dumps(key)}: {_dumped(value, deeper, unit)}".replace("\n", newline)
    if not holder.members:
        kept = text[holder.start + 1 : closing].rstrip()
        body = f"{kept}{newline}{deeper}{member}{newline}{around}"
        return text[: holder.start + 1] + body + text[closing:]
    last = list(holder.members.values())[-1].end
    kept = text[last:closing].rstrip()
    comma = "" if holder.comma else ","
    tail = text[last + len(kept) : closing]
    return text[:last] + comma + kept + newline + deeper + member + tail + text[closing:]


def _nested(path: Sequence[str], entry: Mapping[str, Any]) -> Any:
    value: Any = dict(entry)
    for key in reversed(path):
        value = {key: value}
    return value


def _dumped(value: Any, around: str, unit: str) -> str:
    """Return data as JSON, all lines but the first indented like its surroundings."""
    made = json.dumps(value, indent=unit, ensure_ascii=False)
    return made.replace("\n", f"\n{around}")


def _indent(text: str, holder: _Value) -> str | None:
    """Return the indentation of an object's members; None if they are on the line of its brace."""
    if not holder.key_starts:
        return None
    first = holder.key_starts[0]
    if "\n" not in text[holder.start : first]:
        return None
    return _line_indent(text, first)


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]

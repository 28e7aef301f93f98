"""Settings text: set or remove one entry in a JSON or YAML file and keep every other byte.

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

# YAML lines: our entry in a table of a YAML file, as one line of JSON, which YAML can read.
#
#     extensions:
#       worlddb: {"type": "stdio", "cmd": "worlddb", …}
#
# Only Goose keeps YAML, and no YAML parser is installed with us. So nothing of the file is parsed
# but the line of the table and our own line; a table in any other form is refused.

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


# JSON with comments.

DEPTH_MAX = 200  # Far below Python's recursion limit.
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?\d[\d.eE+-]*|true|false|null")


@dataclass(slots=True)
class _Value:
    """A value and its place. An object and an array have children, and perhaps a last comma.

    `starts` are the places where the children start: an object's at their keys.
    """

    start: int
    end: int
    data: Any
    members: dict[str, _Value] = field(default_factory=dict)
    children: list[_Value] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    comma: bool = False

    def child(self, step: str | int) -> _Value | None:
        """Return the member of a key, or the element of a number."""
        if isinstance(step, str):
            return self.members.get(step)
        return self.children[step] if isinstance(self.data, list) else None

    def place(self, step: str | int) -> int:
        """Return the number of a child."""
        return list(self.members).index(step) if isinstance(step, str) else step


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
            made.starts.append(self.at)
            made.children.append(self.value(depth + 1))
            made.data.append(made.children[-1].data)
            made.comma = self._comma("]")
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
            made.children.append(made.members[key])
            made.starts.append(key_start)
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


def set_json(text: str, path: Sequence[str], entry: Any) -> str:
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


def append_json(text: str, path: Sequence[str], item: Any) -> str:
    """Return `text` with `item` at the end of the array at `path`, which is created if missing.

    Raises:
        FormatError: the text is not a JSON object, or something else is at `path`.
    """
    whole = _parse(text)
    holder: _Value | None = whole
    for step in path:
        holder = holder.child(step) if holder is not None else None
    if holder is None:
        return set_json(text, path, [item])
    if not isinstance(holder.data, list):
        raise FormatError(f"{path[-1]!r} is not a JSON array")
    newline = "\r\n" if "\r\n" in text else "\n"
    return _inserted(text, holder, None, item, _indent(text, whole) or "  ", newline)


def remove_json(text: str, path: Sequence[str | int]) -> str:
    """Return `text` without what is at `path`, and without what is empty then on the way to it.

    What `set_json` or `append_json` put there goes without a trace.

    Raises:
        FormatError: the text is not a JSON object, or nothing is at `path`.
    """
    way = [_parse(text)]
    for step in path:
        below = way[-1].child(step)
        if below is None:
            raise FormatError(f"{step!r} is not there")
        way.append(below)
    depth = len(path) - 1
    while depth > 0 and not _beside(text, way[depth], way[depth].place(path[depth])):
        depth -= 1
    holder, place = way[depth], way[depth].place(path[depth])
    start, end = holder.starts[place], holder.children[place].end
    if len(holder.children) == 1:
        comment = text[holder.start + 1 : start].rstrip()
        tail = text[end : holder.end - 1].replace(",", "", 1)
        return (
            text[: holder.start + 1]
            + (comment + tail if comment else tail.strip())
            + text[holder.end - 1 :]
        )
    is_last = place == len(holder.children) - 1
    if is_last and not holder.comma:
        comma = _comma_after(text, holder.children[place - 1].end)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    else:
        end = _comma_after(text, end) + 1
    before, after = text[:start], text[end:]
    # Between two members there is nothing but a comma and comments.
    between = text[holder.children[place - 1].end if place else holder.start + 1 : start]
    if is_last or "\n" in before[len(before.rstrip()) :]:
        before = before.rstrip()
        line, next_mark = between.rstrip().rpartition("\n")[2], after.lstrip(" \t")[:1]
        return before + ("\n" if "//" in line and not next_mark.isspace() else "") + after
    return before + after.lstrip(" \t")


def _beside(text: str, holder: _Value, place: int) -> bool:
    """Return whether an object or array has anything, comments included, beside one child."""
    around = text[holder.start + 1 : holder.starts[place]]
    around += text[holder.children[place].end : holder.end - 1]
    return bool(around.strip(" \t\r\n,"))


def _comma_after(text: str, at: int) -> int:
    """Return the place of the comma that follows a value, perhaps after a comment."""
    found = _SPACE.match(text, at)
    return text.index(",", found.end() if found else at)


def _inserted(
    text: str, holder: _Value, key: str | None, value: Any, unit: str, newline: str
) -> str:
    """Return the text with a new member at the end of an object, or element of an array."""
    closing = holder.end - 1
    inside = _indent(text, holder)
    named = "" if key is None else f"{json.dumps(key)}: "
    comma, after = ("", ",") if holder.comma else (",", "")
    if holder.children and inside is None:
        # The object is on one line and stays there.
        last = holder.children[-1].end
        added = f" {named}{json.dumps(value, ensure_ascii=False)}{after}"
        kept = text[last:closing].rstrip(" \t")
        if "//" in kept or newline in kept:
            added = newline + added
        return text[:last] + comma + kept + added + text[last + len(kept) :]
    around = _line_indent(text, holder.start)
    deeper = inside if inside is not None else around + unit
    member = f"{named}{_dumped(value, deeper, unit)}{after}".replace("\n", newline)
    if not holder.children:
        kept = text[holder.start + 1 : closing].rstrip()
        body = f"{kept}{newline}{deeper}{member}{newline}{around}"
        return text[: holder.start + 1] + body + text[closing:]
    last = holder.children[-1].end
    kept = text[last:closing].rstrip()
    return text[:last] + comma + kept + newline + deeper + member + text[last + len(kept) :]


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _dumped(value: Any, around: str, unit: str) -> str:
    """Return data as JSON, all lines but the first indented like its surroundings."""
    made = json.dumps(value, indent=unit, ensure_ascii=False)
    return made.replace("\n", f"\n{around}")


def _indent(text: str, holder: _Value) -> str | None:
    """Return the indentation of an object's members; None if they are on the line of its brace."""
    if not holder.starts:
        return None
    first = holder.starts[0]
    if "\n" not in text[holder.start : first]:
        return None
    return _line_indent(text, first)


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]

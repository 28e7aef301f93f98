"""TOML text: set one table in a TOML file and leave every other byte as it is.

Only our own `[key.name]` and the tables below it are replaced; where there are none, ours is put at
the end. Python reads TOML and writes none, so what we write is built here, and read back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worlddb.errors import FormatError

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"[ \t]*\[(?P<array>\[)?[ \t]*(?P<keys>[^\]\n]*?)[ \t]*\]\]?[ \t]*(?:#.*)?")
_PART = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*(\.|$)""")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the data of a file.

    Raises:
        FormatError: it is no TOML.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is no TOML: {error}") from None


def set_toml(text: str, path: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return `text` with `entry` as the table at `path`.

    Raises:
        FormatError: the text is no TOML.
    """
    parse_toml(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = table_text(path, entry).replace("\n", newline)
    lines = _LINE.findall(text)
    ours = _ours(lines, list(path))
    if not ours:
        ending = "" if not text or text.endswith("\n") else newline
        gap = newline if text.strip() else ""
        return f"{text}{ending}{gap}{block}"
    made: list[str] = []
    for number, line in enumerate(lines):
        if number == ours[0].start:
            made.append(block)
        if not any(number in span for span in ours):
            made.append(line)
    return "".join(made)


def table_text(path: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return a table as TOML: its values first, tables in it after them."""
    lines = [f"[{'.'.join(map(_key, path))}]"]
    inner = {key: value for key, value in entry.items() if isinstance(value, dict)}
    lines += [f"{_key(key)} = {_value(entry[key])}" for key in entry if key not in inner]
    text = "\n".join(lines) + "\n"
    return text + "".join(f"\n{table_text([*path, key], value)}" for key, value in inner.items())


def _ours(lines: Sequence[str], path: list[str]) -> list[range]:
    """Return the lines of our tables, without the comments that stand before the next one."""
    headers = list(_headers(lines))
    found = []
    for place, (number, keys) in enumerate(headers):
        if keys[: len(path)] != path:
            continue
        end, following = headers[place + 1] if place + 1 < len(headers) else (len(lines), [])
        others = following[: len(path)] != path
        while others and end > number + 1 and lines[end - 1].strip(" \t\r\n")[:1] in ("", "#"):
            end -= 1
        found.append(range(number, end))
    return found


def _headers(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that begin a table, with its keys; not those inside a string or a list."""
    inside, depth = "", 0
    for number, line in enumerate(lines):
        if not inside and not depth and (found := _HEADER.fullmatch(line.rstrip("\r\n"))):
            yield number, _keys(found["keys"])
        else:
            inside, depth = _after(line, inside, depth)


def _after(line: str, inside: str, depth: int) -> tuple[str, int]:
    """Return what is open after a line: the quotes of a long string, and how many brackets."""
    at = 0
    while at < len(line):
        if inside:
            end = line.find(inside, at)
            while inside == '"""' and end > 0 and _is_escaped(line, end):
                end = line.find(inside, end + 1)
            if end < 0:
                break
            # Up to two more quotes may belong to the string.
            while line.startswith(inside[0], end + 3):
                end += 1
            at, inside = end + 3, ""
        elif line[at] == "#":
            break
        elif line.startswith(('"""', "'''"), at):
            inside, at = line[at : at + 3], at + 3
        elif line[at] in "\"'":
            at = _string_end(line, at)
        else:
            depth += (line[at] in "[{") - (line[at] in "]}")
            at += 1
    return inside, depth


def _is_escaped(line: str, at: int) -> bool:
    before = line[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _string_end(line: str, at: int) -> int:
    quote = line[at]
    end = line.find(quote, at + 1)
    while quote == '"' and end > 0 and _is_escaped(line, end):
        end = line.find(quote, end + 1)
    return len(line) if end < 0 else end + 1


def _keys(text: str) -> list[str]:
    keys, at = [], 0
    while at < len(text) and (found := _PART.match(text, at)):
        quoted, literal, bare = found[1], found[2], found[3]
        if quoted is not None:
            # TOML's escapes are JSON's, but for a few that no name of ours has.
            try:
                keys.append(json.loads(f'"{quoted}"'))
            except ValueError:
                keys.append(quoted)
        else:
            keys.append(literal if literal is not None else bare)
        at = found.end()
    return keys


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON escapes what TOML wants escaped, but leaves the delete character as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)

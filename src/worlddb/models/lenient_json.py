"""Lenient JSON: read the JSON in a model's reply, as models write it.

    Sure! ```json {'facts': [{'text': 'a',},]}``` Hope that helps. ──parse()──▶ Parsed(value)

Valid JSON is read by the standard parser. Otherwise the longest object or list in the text is
read, with single quotes, trailing commas, Python literals, comments, bare keys, unescaped quotes
and line breaks. Where the text breaks off, the complete items of lists and members of objects are
kept, down to the deepest level.

The parser is ours because a repair library completes what broke off, and half a sentence would be
stored as a fact. This one drops the incomplete item and says so (`is_whole`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from worlddb.errors import ProviderError

STARTS_MAX = 200  # Brackets tried as the beginning: bounds the time for a text full of brackets.
DEPTH_MAX = 100  # Far below Python's recursion limit.
KEY_CHARS_MAX = 200  # A longer key is a sentence after a stray quote.
_WORDS = {
    **{"true": True, "True": True, "false": False, "False": False},
    **{"null": None, "None": None, "undefined": None, "NaN": None, "nan": None},
}
# Comments are bounded, so that no text takes quadratic time.
_BLANK = re.compile(r"(?:\s+|(?://|#)[^\n]{0,300}(?=\n|\Z))*")
_NUMBER = re.compile(r"[-+]?(?:\d{1,4000}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?(?![\w.])")
_BRACKET = re.compile(r"[{\[]")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_TO_THE_END = re.compile(r"[\w$.+-]+\Z")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_VALUE_AHEAD = re.compile(
    r"""\s*(?:["'“‘{\[\]}]|[-+.]?\d|(?:true|false|null|True|False|None|NaN)\b|\Z)"""
)
_MEMBER_AHEAD = re.compile(r"""\s*(?:["'“‘}]|[A-Za-z_$][\w$-]*\s*:|\Z)""")
_NEXT_LINE = re.compile(r"""[ \t]*\n\s*["'“‘{\[]""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_HEX = re.compile(r"u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})")
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


class NotJsonError(ProviderError):
    """The reply of a model has no JSON in it."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The data in a text; `is_whole` is false if the text broke off or an item was dropped."""

    value: Any
    is_whole: bool


def without_thoughts(text: str) -> str:
    """Return a reply without its <think> parts."""
    return _THOUGHT.sub("", text).strip()


def parse(text: str) -> Parsed:
    """Return the data in a reply; a `NotJsonError` if there is none."""
    text = text.lstrip("\ufeff")
    try:
        return Parsed(json.loads(text), True)
    except (ValueError, RecursionError):
        pass
    reply = without_thoughts(text) or text
    best: tuple[int, Parsed] | None = None
    place = tried = 0
    while tried < STARTS_MAX and (bracket := _BRACKET.search(reply, place)):
        tried += 1
        found = bracket.start()
        parsed, end = _from(reply, found)
        if parsed is not None and (best is None or end - found > best[0]):
            best = end - found, parsed
        place = max(end, found + 1)
    if best is None:
        raise NotJsonError(f"there is no JSON in the reply: {' '.join(text.split())!r:.200}")
    return best[1]


def _from(text: str, start: int) -> tuple[Parsed | None, int]:
    """Return the value that begins at a bracket, and where it ends."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        reader = _LenientReader(text, start)
        value, whole = reader.value(DEPTH_MAX)
        if not whole and not value:
            # What broke off before its first item has no whole ones further in.
            return None, reader.place if reader.place >= len(text) else start + 1
        return Parsed(value, whole), reader.place
    return Parsed(value, True), end


class _LenientReader:
    """Reads one value from a place on. Methods return the value and whether it is whole."""

    def __init__(self, text: str, place: int) -> None:
        self._text = text
        self.place = place

    def value(self, depth: int, follows: Callable[[int], bool] | None = None) -> tuple[Any, bool]:
        """Read a value; None, not whole, if there is none."""
        self._skip()
        start = self._text[self.place : self.place + 1]
        if start in ("{", "[") and start:
            if not depth:
                return None, False
            self.place += 1
            return self._object(depth - 1) if start == "{" else self._list(depth - 1)
        if start in _QUOTES:
            return self._string(follows or self._ends_item)
        if match := _NUMBER.match(self._text, self.place):
            # The last digit before the end of the text may not be the last of the number.
            self.place = match.end()
            return _number(match[0]), self.place < len(self._text)
        if (match := _WORD.match(self._text, self.place)) and match[0] in _WORDS:
            self.place = match.end()
            return _WORDS[match[0]], True
        if match := _TO_THE_END.match(self._text, self.place):
            self.place = match.end()
        return None, False

    def _list(self, depth: int) -> tuple[list[Any], bool]:
        items: list[Any] = []
        while self._peek() != "]":
            value, whole = self.value(depth)
            if not whole:
                return items, False
            items.append(value)
            if not self._goes_on("]"):
                return items, False
        self.place += 1
        return items, True

    def _object(self, depth: int) -> tuple[dict[str, Any], bool]:
        members: dict[str, Any] = {}
        while self._peek() != "}":
            key, whole = self._key()
            if not whole or self._peek() != ":":
                return members, False
            self.place += 1
            value, whole = self.value(depth, self._ends_member)
            if whole or (value and isinstance(value, dict | list)):
                members[key] = value
            if not whole or not self._goes_on("}"):
                return members, False
        self.place += 1
        return members, True

    def _key(self) -> tuple[str, bool]:
        if self._peek() in _QUOTES:
            return self._string(self._ends_key, KEY_CHARS_MAX)
        match = _WORD.match(self._text, self.place)
        if match is None:
            return "", False
        self.place = match.end()
        return match[0], True

    def _string(
        self, ends: Callable[[int], bool], chars_max: int | None = None
    ) -> tuple[str, bool]:
        """Read a string: up to the first quote after which the text goes on as JSON would."""
        text, closing = self._text, _QUOTES[self._text[self.place]]
        parts: list[str] = []
        begins = place = self.place + 1
        last = len(text) if chars_max is None else min(len(text), place + chars_max)
        while place < last:
            character = text[place]
            if character == "\\":
                parts.append(text[begins:place])
                escaped, place = _unescaped(text, place + 1)
                parts.append(escaped)
                begins = place
            elif character == closing and ends(place + 1):
                parts.append(text[begins:place])
                self.place = place + 1
                return _joined(parts), True
            else:
                place += 1
        self.place = last
        return "", False

    def _ends_key(self, place: int) -> bool:
        match = _BLANK.match(self._text, place)
        assert match is not None
        return self._text[match.end() : match.end() + 1] == ":"

    def _ends_item(self, place: int) -> bool:
        return self._ends(place, _VALUE_AHEAD)

    def _ends_member(self, place: int) -> bool:
        return self._ends(place, _MEMBER_AHEAD)

    def _ends(self, place: int, ahead: re.Pattern[str]) -> bool:
        match = _BLANK.match(self._text, place)
        assert match is not None
        after = self._text[match.end() : match.end() + 1]
        if after == ",":
            return ahead.match(self._text, match.end() + 1) is not None
        return after in ("", "}", "]") or _NEXT_LINE.match(self._text, place) is not None

    def _goes_on(self, closing: str) -> bool:
        """Step over what stands between two items; say whether there may be another."""
        following = self._peek()
        if following == ",":
            self.place += 1
            self._skip()
            return True
        # A forgotten comma: the next item begins all the same.
        return following == closing or (following in ("{", "[", *_QUOTES) and following != "")

    def _peek(self) -> str:
        self._skip()
        return self._text[self.place : self.place + 1]

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self.place)
        assert match is not None
        self.place = match.end()


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _unescaped(text: str, place: int) -> tuple[str, int]:
    """Return the character that stands at `place` after a backslash, and where it ends."""
    if match := _HEX.match(text, place):
        code = int(match[1] or match[2] or match[3], 16)
        return chr(code) if code < 0x110000 else "\ufffd", match.end()
    character = text[place : place + 1]
    return _ESCAPES.get(character, character), place + 1


def _joined(parts: list[str]) -> str:
    """Return a string whose halves of characters, written one by one, are characters again."""
    whole = "".join(parts)
    if any("\ud800" <= character <= "\udfff" for part in parts for character in part):
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return whole

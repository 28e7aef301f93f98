"""Query spec: a query as plain data, and as one line of text.

    {"text": "apple", "steps": [{"op": "filter_type", "types": ["Fact"]}]}  ──▶ QuerySpec
    text apple | filter_type Fact | limit 10                                ──▶ QuerySpec

A line has steps, separated by `|`. A step is a word and its arguments. Quote an argument with
spaces or a `|`. Arguments may be named: `as_of valid=2024-05-01T00:00:00Z`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import datetime
from inspect import signature
from numbers import Integral, Real
from typing import Any, get_args

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import Instant, from_micros, to_micros
from worlddb.model.records import TextMatch
from worlddb.query.query_builder import QueryBuilder

LINE_BYTES_MAX = 1 << 16
"""Bytes; the length limit of a text to search for."""
DIGITS_MAX = 18  # of a number in a line; the store counts nothing beyond
DIRECTIONS = ("out", "in", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpec:
    """A query as plain data that can be JSON: everything that `query()` builds step by step.

    `steps` are mappings with an `op` (a step of `QueryBuilder` by name) and its arguments; each
    applies from its place on. `world`, `valid`, `known` and `include_superseded` apply from the
    start, `prefer_summaries` and `limit` at the end. The start set is by seeds before text before
    vector.
    """

    seeds: bytes | str | Sequence[bytes | str] = ()
    text: str | None = None
    match: TextMatch = "any"
    vector: Sequence[float] | None = None
    steps: Sequence[Mapping[str, Any]] = ()
    world: bytes | str | None = None
    valid: Instant | None = None
    known: Instant | None = None
    include_superseded: bool = False
    prefer_summaries: bool = False
    limit: int | None = None

    @classmethod
    def of(cls, given: QuerySpec | Mapping[str, Any] | str) -> QuerySpec:
        """Return the spec from a `QuerySpec`, JSON data, or a line.

        Raises:
            InvalidInputError: it is none of these, or has an error.
        """
        if isinstance(given, QuerySpec):
            return given
        return spec_of_line(given) if isinstance(given, str) else cls.from_dict(given)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QuerySpec:
        """Return the spec from JSON data.

        Raises:
            InvalidInputError: an unknown key.
        """
        if not isinstance(data, Mapping):
            raise InvalidInputError(f"a query is a JSON object, not {data!r:.100}")
        known = [field.name for field in fields(cls)]
        unknown = {str(key) for key in data}.difference(known)
        if unknown:
            raise InvalidInputError(
                f"unknown in a query: {', '.join(sorted(unknown))}; known are {', '.join(known)}"
            )
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON data: ids as hex, times as ISO-8601 in UTC.

        Raises:
            InvalidInputError: a time without a zone.
        """
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def apply(self, query: QueryBuilder, of_ended: Mapping[str, Any] | None = None) -> QueryBuilder:
        """Return `query` with everything in this spec added.

        If the spec asks for ended nodes, too, `of_ended` is one more filter.

        Raises:
            InvalidInputError: a step is unknown or lacks an argument.
        """
        if self.world is not None:
            query = query.in_world(self.world)
        if self.valid is not None or self.known is not None:
            query = query.as_of(valid=self.valid, known=self.known)
        if self.include_superseded is not False:
            query = query.include_superseded(self.include_superseded)
        if self.seeds not in ((), []):
            query = query.seeds(self.seeds)
        if self.text is not None:
            query = query.text(self.text, self.match)
        if self.vector is not None:
            query = query.vector(self.vector)
        if not isinstance(self.steps, list | tuple):
            raise InvalidInputError(f"steps: give a list, not {self.steps!r:.100}")
        shows_ended = self.include_superseded is not False
        for step in self.steps:
            if not isinstance(step, Mapping):
                raise InvalidInputError(f"a step is a JSON object with an op, not {step!r:.100}")
            query = _apply_step(query, dict(step))
            shows_ended |= step.get("op") == "include_superseded"
        if shows_ended and of_ended is not None:
            query = query.where(of_ended)
        if self.prefer_summaries is not False:
            query = query.prefer_summaries(self.prefer_summaries)
        return query if self.limit is None else query.limit(self.limit)


def _plain(value: Any) -> Any:
    """Return a caller's value as JSON data; numpy arrays become lists of numbers."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return from_micros(to_micros(value, "time")).isoformat()
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(map(_plain, value), key=str)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))  # JSON has it, and a spec reads back equal.
    return list(map(_plain, value)) if isinstance(value, Iterable) else value


def _apply_step(query: QueryBuilder, step: dict[str, Any]) -> QueryBuilder:
    kind = step.pop("op", None)
    calls: dict[Any, Callable[..., QueryBuilder]] = {
        "traverse": query.traverse,
        "filter_type": lambda types: query.filter_type(types),
        "filter_time": query.filter_time,
        "where": lambda metadata: query.where(metadata),
        "where_connected": query.where_connected,
        "in_world": query.in_world,
        "as_of": query.as_of,
        "include_superseded": query.include_superseded,
        "prefer_summaries": query.prefer_summaries,
        "limit": query.limit,
    }
    if not isinstance(kind, str) or kind not in calls:
        raise InvalidInputError(f"unknown step {kind!r}; use one of {', '.join(calls)}")
    takes = signature(calls[kind])
    try:
        takes.bind(**step)
    except TypeError:
        known = ", ".join(takes.parameters) or "nothing"
        given = ", ".join(map(str, step)) or "nothing"
        raise InvalidInputError(f"step {kind}: it takes {known}, and was given {given}") from None
    try:
        return calls[kind](**step)
    except TypeError as error:
        raise InvalidInputError(f"step {kind}: {error}") from None


# -- one line of text ------------------------------------------------------------------------------


def spec_of_line(line: str) -> QuerySpec:
    """Return the spec from a line."""
    if not isinstance(line, str) or not 0 < len(line.encode("utf-8", "replace")) <= LINE_BYTES_MAX:
        raise InvalidInputError(f"query: give a line of up to {LINE_BYTES_MAX} bytes")
    start: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    for words in _split(line):
        name, given = words[0], words[1:]
        if name in _STARTS:
            start |= _STARTS[name](given)
        elif name in _STEPS:
            steps.append({"op": name} | _STEPS[name](given))
        else:
            known = ", ".join((*_STARTS, *_STEPS))
            raise InvalidInputError(f"query: unknown step {name!r:.40}; use one of {known}")
    return QuerySpec(**start, steps=steps)


def _split(line: str) -> list[list[str]]:
    """Return the words of each step."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    steps: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word == "|":
                steps.append([])
            else:
                steps[-1].append(word)
    except ValueError as error:
        raise InvalidInputError(f"query: {error}; close the quotation mark") from None
    if any(not step for step in steps):
        raise InvalidInputError("query: a step is empty; write steps with | between them")
    return steps


def _arguments(given: Sequence[str], names: Sequence[str], step: str) -> dict[str, str]:
    """Return the arguments of a step by name; an argument without a name takes the next name."""
    found: dict[str, str] = {}
    free = iter(names)
    for word in given:
        name, is_named, value = word.partition("=")
        if not is_named or name not in names:
            name, value = next((one for one in free if one not in found), ""), word
        if not name or name in found:
            raise InvalidInputError(f"{step}: {word!r:.40} is too much; give {', '.join(names)}")
        found[name] = value
    return found


def _words(given: Sequence[str]) -> dict[str, Any]:
    ways = {f"match={way}": way for way in get_args(TextMatch)}
    match = [ways[word] for word in given if word in ways]
    said = " ".join(word for word in given if word not in ways)
    return {"text": said} | ({"match": match[-1]} if match else {})


def _numbers(given: Sequence[str]) -> dict[str, Any]:
    try:
        return {"vector": [float(word) for text in given for word in text.split(",") if word]}
    except ValueError:
        raise InvalidInputError("vector: give numbers, separated by spaces or commas") from None


def _traversal(given: Sequence[str]) -> dict[str, Any]:
    """Return types, direction and hops, in any order: `traverse refers_to,implies in 2`."""
    types = [one for word in given if _is_type(word) for one in word.split(",") if one]
    found: dict[str, Any] = {"types": types}
    for word in given:
        if word in DIRECTIONS:
            found["direction"] = word
        elif not _is_type(word):
            found["hops"] = _whole(word.removeprefix("hops="))
    return found


def _is_type(word: str) -> bool:
    return word not in DIRECTIONS and not word.removeprefix("hops=").isdecimal()


def _count(given: Sequence[str]) -> dict[str, Any]:
    if len(given) != 1 or not given[0].isdecimal():
        raise InvalidInputError("limit: give a number, as in: limit 10")
    return {"n": _whole(given[0])}


def _whole(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise InvalidInputError(f"query: {digits:.40} is too large a number")
    return int(digits)


def _switch(given: Sequence[str]) -> bool:
    if list(given) not in ([], ["true"], ["false"]):
        raise InvalidInputError(f"give true, false or nothing, not {' '.join(given)!r:.40}")
    return list(given) != ["false"]


def _metadata(given: Sequence[str]) -> dict[str, Any]:
    """Return conditions `key=value`; a value that is JSON is read as JSON."""
    found: dict[str, Any] = {}
    for word in given:
        key, is_named, value = word.partition("=")
        if not is_named or not key:
            raise InvalidInputError(f"where: write key=value, not {word!r:.40}")
        try:
            found[key] = json.loads(value)
        except (ValueError, RecursionError):
            found[key] = value
    return {"metadata": found}


_STARTS: dict[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "seeds": lambda given: {"seeds": list(given)},
    "text": _words,
    "vector": _numbers,
}
_STEPS: dict[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "traverse": _traversal,
    "filter_type": lambda given: {"types": [one for word in given for one in word.split(",")]},
    "filter_time": lambda given: _arguments(given, ("start", "end"), "filter_time"),
    "where": _metadata,
    "where_connected": lambda given: _arguments(
        given, ("type", "direction", "id"), "where_connected"
    ),
    "in_world": lambda given: _arguments(given, ("id",), "in_world"),
    "as_of": lambda given: _arguments(given, ("valid", "known"), "as_of"),
    "include_superseded": lambda given: {"include": _switch(given)},
    "prefer_summaries": lambda given: {"prefer": _switch(given)},
    "limit": _count,
}

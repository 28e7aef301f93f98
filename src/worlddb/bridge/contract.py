"""Contract: what an extracting model is asked to answer with, and its answer made safe to use.

    {"summary": …, "entities": [{name, kind, aliases}], "facts": [{text, subject, about, date,
     message, quote, relation, value, functional}]} ──told()──▶ Told

Only a fact's text is needed; whatever else is missing, misspelt or of another type is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from worlddb.bridge.lenient import NotJsonError

FACTS_MAX = 300
ENTITIES_MAX = 300
ALIASES_MAX = 20
ABOUT_MAX = 20
NAME_CHARS_MAX = 200
TEXT_CHARS_MAX = 4_000
SUMMARY_CHARS_MAX = 20_000

_TEXT = {"type": "string"}
_TEXT_OR_NONE = {"type": ["string", "null"]}


def _object(**members: Any) -> dict[str, Any]:
    # Endpoints that hold an answer to a schema want every member required and no others.
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


SCHEMA = _object(
    summary=_TEXT,
    entities=_list(_object(name=_TEXT, kind=_TEXT, aliases=_list(_TEXT))),
    facts=_list(
        _object(
            text=_TEXT,
            subject=_TEXT_OR_NONE,
            about=_list(_TEXT),
            date=_TEXT_OR_NONE,
            message={"type": ["integer", "null"]},
            quote=_TEXT_OR_NONE,
            relation=_TEXT_OR_NONE,
            value=_TEXT_OR_NONE,
            functional={"type": "boolean"},
        )
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEntity:
    """Somebody or something, under the name that stays the same."""

    name: str
    kind: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFact:
    """Something that was said, and all that the model says about it."""

    text: str
    subject: str = ""
    about: tuple[str, ...] = ()
    date: str = ""
    message: int | None = None
    quote: str = ""
    relation: str = ""
    value: str = ""
    functional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a model read out of some messages."""

    summary: str = ""
    entities: tuple[ToldEntity, ...] = ()
    facts: tuple[ToldFact, ...] = ()


def told(data: Mapping[str, Any]) -> Told:
    """Return an answer as values.

    Raises:
        NotJsonError: it has neither facts nor a summary.
    """
    if not isinstance(data.get("facts"), list) and not isinstance(data.get("summary"), str):
        keys = ", ".join(map(str, list(data)[:10])) or "nothing"
        raise NotJsonError(f"the answer has neither facts nor a summary; it has {keys:.200}")
    return Told(
        summary=clean(data.get("summary"), SUMMARY_CHARS_MAX, lines=True),
        entities=tuple(_entities(data.get("entities")))[:ENTITIES_MAX],
        facts=tuple(_facts(data.get("facts")))[:FACTS_MAX],
    )


def clean(value: Any, chars_max: int, *, lines: bool = False) -> str:
    """Return text that can be stored; "" for what is no text, or too long to be what it should."""
    if not isinstance(value, str):
        return ""
    text = value.encode(errors="replace").decode().replace("\0", " ")
    parts = (" ".join(line.split()) for line in text.split("\n")) if lines else [text]
    text = "\n".join(parts).strip() if lines else " ".join(text.split())
    return text if len(text) <= chars_max else ""


def _entities(items: Any) -> Iterator[ToldEntity]:
    for item in items if isinstance(items, list) else ():
        given = {"name": item} if isinstance(item, str) else item
        if not isinstance(given, Mapping):
            continue
        name = clean(given.get("name"), NAME_CHARS_MAX)
        if name:
            yield ToldEntity(
                name=name,
                kind=clean(given.get("kind", given.get("type")), NAME_CHARS_MAX).casefold(),
                aliases=_names(given.get("aliases"), ALIASES_MAX),
            )


def _facts(items: Any) -> Iterator[ToldFact]:
    for item in items if isinstance(items, list) else ():
        given = {"text": item} if isinstance(item, str) else item
        if not isinstance(given, Mapping):
            continue
        text = clean(given.get("text", given.get("fact")), TEXT_CHARS_MAX)
        if not text:
            continue
        message = given.get("message")
        yield ToldFact(
            text=text,
            subject=clean(given.get("subject"), NAME_CHARS_MAX),
            about=_names(given.get("about"), ABOUT_MAX),
            date=clean(given.get("date"), NAME_CHARS_MAX),
            message=message if isinstance(message, int) and not isinstance(message, bool) else None,
            quote=clean(given.get("quote"), TEXT_CHARS_MAX),
            relation=clean(given.get("relation"), NAME_CHARS_MAX),
            value=clean(given.get("value"), NAME_CHARS_MAX),
            functional=given.get("functional") is True,
        )


def _names(items: Any, most: int) -> tuple[str, ...]:
    given = [items] if isinstance(items, str) else items
    names = (clean(item, NAME_CHARS_MAX) for item in (given if isinstance(given, list) else ()))
    return tuple(dict.fromkeys(name for name in names if name))[:most]

"""The extraction contract: the JSON that an extracting model replies with, made safe to use.

    {"summary": …, "entities": [{name, kind, aliases}],
     "facts": [{text, subject, about, date, message, quote, relation, value, functional}],
     "relations": [{type, source, target, message, quote}]}
        ──parse_extraction()──▶ Extraction

Only the text of a fact is required. Any other member that is missing or of another type is dropped.
A relation needs all its members but the message. A relation of an unknown type is refused, and
`Extraction.refused` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from worlddb.model.drafts import RELATION_TYPES
from worlddb.models.lenient_json import NotJsonError

# Limits against replies that run away. A portion of 24,000 characters has about 100 facts.
FACTS_MAX = 300
RELATIONS_MAX = 100  # A text says few of them. Each refused one costs another try to write.
ENTITIES_MAX = 300  # More in one reply is a model that loops.
ALIASES_MAX = 20  # As above, for one entity.
ABOUT_MAX = 20  # As above, for one fact.
NAME_CHARS_MAX = 200  # A longer name is a sentence.
TEXT_CHARS_MAX = 4_000  # A fact is a sentence; this is a page.
SUMMARY_CHARS_MAX = 20_000  # A summary longer than that sums up nothing.

_TEXT = {"type": "string"}
_TEXT_OR_NONE = {"type": ["string", "null"]}


def _object(**members: Any) -> dict[str, Any]:
    # Endpoints that enforce a schema require all members to be required, and no others.
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


EXTRACTION_SCHEMA = _object(
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
    relations=_list(
        _object(
            type={"type": "string", "enum": list(RELATION_TYPES)},
            source=_TEXT,
            target=_TEXT,
            message={"type": ["integer", "null"]},
            quote=_TEXT,
        )
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedEntity:
    """A person or thing, under one name for the whole conversation."""

    name: str
    kind: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedFact:
    """One statement and what the model knows about it."""

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
class ExtractedRelation:
    """An edge between two entities or facts, by their names and texts."""

    type: str
    source: str
    target: str
    message: int | None = None
    quote: str = ""

    def __str__(self) -> str:
        return f"{self.source:.60} {self.type} {self.target:.60}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What a model extracted from some messages."""

    summary: str = ""
    entities: tuple[ExtractedEntity, ...] = ()
    facts: tuple[ExtractedFact, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    refused: tuple[str, ...] = ()


def parse_extraction(data: Mapping[str, Any]) -> Extraction:
    """Return a reply as values; a `NotJsonError` if it has neither facts nor a summary."""
    if not isinstance(data.get("facts"), list) and not isinstance(data.get("summary"), str):
        keys = ", ".join(map(str, list(data)[:10])) or "nothing"
        raise NotJsonError(f"the reply has neither facts nor a summary; it has {keys:.200}")
    relations = list(_relations(data.get("relations")))[:RELATIONS_MAX]
    return Extraction(
        summary=clean_text(data.get("summary"), SUMMARY_CHARS_MAX, lines=True),
        entities=tuple(_entities(data.get("entities")))[:ENTITIES_MAX],
        facts=tuple(_facts(data.get("facts")))[:FACTS_MAX],
        relations=tuple(item for item in relations if item.type in RELATION_TYPES),
        refused=tuple(
            f"{item}: no such type of relation; use one of {', '.join(RELATION_TYPES)}"
            for item in relations
            if item.type not in RELATION_TYPES
        ),
    )


def clean_text(value: Any, chars_max: int, *, lines: bool = False) -> str:
    """Return text fit to be stored, white space normalised; "" if it is no text or too long."""
    if not isinstance(value, str):
        return ""
    text = value.encode(errors="replace").decode().replace("\0", " ")
    parts = (" ".join(line.split()) for line in text.split("\n")) if lines else [text]
    text = "\n".join(parts).strip() if lines else " ".join(text.split())
    return text if len(text) <= chars_max else ""


def _entities(items: Any) -> Iterator[ExtractedEntity]:
    for item in items if isinstance(items, list) else ():
        members = {"name": item} if isinstance(item, str) else item
        if not isinstance(members, Mapping):
            continue
        name = clean_text(members.get("name"), NAME_CHARS_MAX)
        kind = members.get("kind", members.get("type"))
        if name:
            yield ExtractedEntity(
                name=name,
                kind=clean_text(kind, NAME_CHARS_MAX).casefold(),
                aliases=_names(members.get("aliases"), ALIASES_MAX),
            )


def _facts(items: Any) -> Iterator[ExtractedFact]:
    for item in items if isinstance(items, list) else ():
        members = {"text": item} if isinstance(item, str) else item
        if not isinstance(members, Mapping):
            continue
        text = clean_text(members.get("text", members.get("fact")), TEXT_CHARS_MAX)
        if not text:
            continue
        yield ExtractedFact(
            text=text,
            subject=clean_text(members.get("subject"), NAME_CHARS_MAX),
            about=_names(members.get("about"), ABOUT_MAX),
            date=clean_text(members.get("date"), NAME_CHARS_MAX),
            message=_number(members.get("message")),
            quote=clean_text(members.get("quote"), TEXT_CHARS_MAX),
            relation=clean_text(members.get("relation"), NAME_CHARS_MAX),
            value=clean_text(members.get("value"), NAME_CHARS_MAX),
            functional=members.get("functional") is True,
        )


def _relations(items: Any) -> Iterator[ExtractedRelation]:
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, Mapping):
            continue
        # A source or target may be the text of a fact.
        ends = [clean_text(item.get(end), TEXT_CHARS_MAX) for end in ("source", "target")]
        if all(ends):
            yield ExtractedRelation(
                type=clean_text(item.get("type"), NAME_CHARS_MAX).casefold(),
                source=ends[0],
                target=ends[1],
                message=_number(item.get("message")),
                quote=clean_text(item.get("quote"), TEXT_CHARS_MAX),
            )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _names(items: Any, names_max: int) -> tuple[str, ...]:
    given = [items] if isinstance(items, str) else items
    names = (
        clean_text(item, NAME_CHARS_MAX) for item in (given if isinstance(given, list) else ())
    )
    return tuple(dict.fromkeys(name for name in names if name))[:names_max]

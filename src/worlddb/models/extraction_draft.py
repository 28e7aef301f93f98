"""Extraction draft: from the JSON that a model replies with to the nodes and edges of a draft.

    {"summary": …, "entities": [{name, kind, aliases}],
     "facts": [{text, subject, about, date, message, quote, relation, value, functional}],
     "relations": [{type, source, target, message, quote}]}
        ──parse_extraction()──▶ Extraction ──ExtractionDraft──▶

    Session ─ Turn, Turn, …        the messages, verbatim
       ├─ Summary ──derived_from──▶ each Turn
       └─ Fact ──derived_from──▶ the Turn it was read from, with the quote
            └──refers_to──▶ Entity (the subject, with the claim; and the other entities)
    Turn ──refers_to──▶ Entity     where the name stands in the text
    Entity or Fact ──causes, instance_of, …──▶ Entity or Fact    the relations, with the quote

A single message is a Memory, with its facts beside it. Entities live in the world that is written
to. Of a fact only the text is required; any other member that is missing or of another type is
dropped. A relation needs all its members but the message; one of an unknown type is refused, and
`Extraction.refused` says why.

A model may invent. A fact whose quote is not in the text is kept and marked as without evidence; an
entity of which no word is in the text is not created; a relation whose quote or ends are not in the
text is left out, and the draft says so. Quotes are compared without case, white space and the form
of quotes and dashes. A stored span is always the text's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from worlddb.claims.claim import claim_metadata
from worlddb.ingest.extractors import MEMORY, SESSION, VerbatimExtractor, source_key
from worlddb.language.english.name_roles import is_denied
from worlddb.language.english.prose import is_doubtful, is_over, sounds_passing
from worlddb.model.records import RELATION_TYPES, Draft, DraftEdge, DraftNode, Message, Span
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
    """Return text fit to be stored, white space normalised; "" if it is not a text or too long."""
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


QUOTE_CHARS_MIN = 3  # Shorter quotes and words stand in almost every text
WORD_CHARS_MIN = 3  # and prove nothing.
# One character for one, so that offsets stay the same.
_ALIKE = str.maketrans("‘’‚‛“”„‟–—−\u00a0", "''''\"\"\"\"--- ")
_AROUND = " \t\n\"'…."
_WORD = re.compile(r"\w+")
# Scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?!\d)")
USER = "user"
_OWN = ("my ", "our ")
_PRONOUNS = frozenset(
    (
        *("i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "you", "your", "yours"),
        *("he", "him", "his", "she", "her", "hers", "it", "its", "they", "them", "their", "theirs"),
        *("this", "that", "these", "those", "who", "someone", "somebody", "everyone"),
    )
)
_POSSESSIVE = (*_OWN, "your ", "his ", "her ", "its ", "their ")


@dataclass(slots=True, eq=False)
class _Entity:
    key: str
    name: str
    kind: str
    aliases: dict[str, str] = field(default_factory=dict)
    spans: dict[tuple[int, int], Span] = field(default_factory=dict)


class ExtractionDraft:
    """Builds the draft of some messages from extractions, one per portion."""

    def __init__(self, messages: Sequence[Message], at: datetime, extractor: str) -> None:
        self._messages = messages
        self._at = at
        self._extractor = extractor
        self._texts = SourceTexts(messages)
        self._speakers = {_key(message.speaker) for message in messages}
        self._entities: dict[str, _Entity] = {}  # by the key of each name and alias
        self._facts: dict[str, ExtractedFact] = {}  # by the key of the text
        self._summaries: list[str] = []
        self._relations: dict[ExtractedRelation, None] = {}
        self._left_out: list[str] = []

    @property
    def names(self) -> list[str]:
        """The names of the entities so far, without duplicates."""
        return list(dict.fromkeys(entity.name for entity in self._entities.values()))

    def add(self, extraction: Extraction) -> None:
        """Add the extraction of a portion."""
        if extraction.summary:
            self._summaries.append(extraction.summary)
        for item in extraction.entities:
            self._add_entity(item)
        for fact in extraction.facts:
            self._facts.setdefault(_key(fact.text), fact)
            for name in (fact.subject, *fact.about):
                if name and _key(name) not in self._entities:
                    self._add_entity(ExtractedEntity(name=name))
        for relation in extraction.relations:
            self._relations[relation] = None
            for end in (relation.source, relation.target):
                if not {_key(end)} & (self._entities.keys() | self._facts.keys()):
                    self._add_end(end)
        self._left_out += extraction.refused

    def draft(self) -> Draft:
        """Return the verbatim messages with the summaries, facts and entities."""
        verbatim = VerbatimExtractor().extract(self._messages, self._at)
        nodes = list(verbatim.nodes)
        edges: list[DraftEdge] = []
        for node, linked in (*self._summary(), *self._fact_drafts()):
            nodes.append(node)
            edges += linked
        for entity in dict.fromkeys(self._entities.values()):
            nodes.append(self._entity_node(entity))
            edges += self._mentions(entity)
        left_out = list(self._left_out)
        for relation in self._relations:
            drafted = self._relation(relation)
            if isinstance(drafted, str):
                left_out.append(f"{relation}: {drafted}")
            else:
                edges.append(drafted)
        return Draft(nodes=tuple(nodes), edges=tuple(edges), left_out=tuple(left_out))

    # -- entities ----------------------------------------------------------------------------------

    def _add_entity(self, item: ExtractedEntity) -> None:
        """Add an entity and its aliases, unless the text does not mention it."""
        found = self._entities.get(_key(item.name))
        aliases = [alias for alias in item.aliases if self._is_alias(alias)]
        if found is None:
            names = (item.name, *aliases)
            is_speaker = _key(item.name) in self._speakers
            if not is_speaker and not any(map(self._texts.mentions, names)):
                return
            if _key(item.name) in _PRONOUNS:
                return
            found = _Entity(f"entity:{_key(item.name)}", item.name, item.kind)
            self._entities[_key(item.name)] = found
        found.kind = found.kind or item.kind
        for alias in aliases:
            if self._entities.setdefault(_key(alias), found) is found:
                if _key(alias) != _key(found.name):
                    found.aliases.setdefault(_key(alias), alias)

    def _add_end(self, name: str) -> None:
        """Add the end of a relation as an entity if the text has its name, word for word."""
        if len(name) <= NAME_CHARS_MAX and any(True for _ in self._texts.named(name)):
            self._add_entity(ExtractedEntity(name=name))

    def _is_alias(self, alias: str) -> bool:
        """Return whether the text uses a name that means the same outside this conversation."""
        spans = list(self._texts.named(alias))
        lower = f"{_key(alias)} "
        if lower.strip() in _PRONOUNS:
            return False
        if lower.startswith(_OWN):
            # "My brother" is clear only if the user says it.
            return any(_key(self._messages[span.message].speaker) == USER for span in spans)
        return bool(spans) and not lower.startswith(_POSSESSIVE)

    def _entity_node(self, entity: _Entity) -> DraftNode:
        for name in (entity.name, *entity.aliases.values()):
            for span in self._texts.named(name):
                entity.spans.setdefault((span.message, span.start), span)
        return DraftNode(
            key=entity.key,
            type="Entity",
            name=entity.name,
            aliases=tuple(entity.aliases.values()),
            resolvable=True,
            spans=tuple(entity.spans.values()),
        )

    def _mentions(self, entity: _Entity) -> Iterator[DraftEdge]:
        """Yield an edge to an entity from each message that names it."""
        by_message: dict[int, list[Span]] = {}
        for span in entity.spans.values():
            by_message.setdefault(span.message, []).append(span)
        for number, spans in sorted(by_message.items()):
            source = source_key(self._messages, number)
            yield DraftEdge(
                type="refers_to",
                source=source,
                target=entity.key,
                metadata=_span_metadata(spans[0]),
                spans=tuple(spans),
            )

    # -- facts and the summary ---------------------------------------------------------------------

    def _summary(self) -> Iterator[tuple[DraftNode, list[DraftEdge]]]:
        text = "\n".join(self._summaries)
        alone = len(self._messages) == 1
        if not text or (alone and len(text) >= len(self._messages[0].text)):
            return  # A summary as long as its only text adds nothing.
        began = min(message.at or self._at for message in self._messages)
        node = DraftNode(
            key="summary",
            type="Summary",
            content=text,
            parent=None if alone else SESSION,
            created_at=began,
            valid_from=began,
        )
        yield (
            node,
            [
                DraftEdge(
                    type="derived_from",
                    source=node.key,
                    target=source_key(self._messages, number),
                    metadata={"extractor": self._extractor},
                )
                for number in range(len(self._messages))
            ],
        )

    def _fact_drafts(self) -> Iterator[tuple[DraftNode, list[DraftEdge]]]:
        alone = len(self._messages) == 1
        for number, fact in enumerate(self._facts.values()):
            quote = self._texts.quoted(fact.quote, fact.message) if fact.quote else None
            said_at = self._said_at(quote.message if quote else fact.message)
            node = DraftNode(
                key=f"fact:{number}",
                type="Fact",
                content=fact.text,
                parent=None if alone else SESSION,
                created_at=said_at,
                valid_from=date_of(fact.date, said_at) or said_at,
                spans=(quote,) if quote else (),
            )
            yield node, [self._derivation(node, quote), *self._references(node, fact)]

    def _said_at(self, number: int | None) -> datetime:
        if number is not None and 0 <= number < len(self._messages):
            return self._messages[number].at or self._at
        return min(message.at or self._at for message in self._messages)

    def _derivation(self, node: DraftNode, quote: Span | None) -> DraftEdge:
        """Return the edge from a fact to its source, with the quote as evidence if there is one."""
        metadata: dict[str, Any] = {"extractor": self._extractor, "evidence": "none"}
        target = MEMORY if len(self._messages) == 1 else SESSION
        if quote is not None:
            target = source_key(self._messages, quote.message)
            metadata |= {"evidence": "quote", **_span_metadata(quote)}
        return DraftEdge(
            type="derived_from", source=node.key, target=target, metadata=metadata, spans=node.spans
        )

    def _references(self, node: DraftNode, fact: ExtractedFact) -> Iterator[DraftEdge]:
        """Yield an edge to the subject, with the claim, and to the other entities."""
        subject = self._entities.get(_key(fact.subject))
        others = (self._entities.get(_key(name)) for name in (*fact.about, fact.value))
        for entity in dict.fromkeys(item for item in (subject, *others) if item is not None):
            metadata: dict[str, Any] = {"role": "about"} if entity is subject else {}
            if entity.kind:
                metadata["kind"] = entity.kind
            if entity is subject and fact.relation and fact.value:
                metadata |= _claim(node, fact)
            yield DraftEdge(
                type="refers_to",
                source=node.key,
                target=entity.key,
                metadata=metadata,
                spans=node.spans,
            )

    # -- relations ---------------------------------------------------------------------------------

    def _relation(self, relation: ExtractedRelation) -> DraftEdge | str:
        """Return the edge of a relation, since its text was said; or why there is none."""
        ends = [self._end(name) for name in (relation.source, relation.target)]
        quote = self._texts.quoted(relation.quote, relation.message)
        if None in ends:
            return "its ends must be entities or facts of the reply"
        if ends[0] == ends[1]:
            return "both ends are the same"
        if quote is None:
            return "its quote does not stand in the text"
        # "If" and "not" may well be how a text says these two.
        if relation.type not in ("contradicts", "implies") and is_denied(quote.text):
            return "its quote denies, asks or supposes"
        return DraftEdge(
            type=relation.type,
            source=str(ends[0]),
            target=str(ends[1]),
            metadata={"extractor": self._extractor, **_span_metadata(quote)},
            spans=(quote,),
            valid_from=self._said_at(quote.message),
        )

    def _end(self, name: str) -> str | None:
        """Return the key of the entity or the fact that a relation names."""
        entity = self._entities.get(_key(name))
        if entity is not None:
            return entity.key
        numbers = {key: f"fact:{number}" for number, key in enumerate(self._facts)}
        return numbers.get(_key(name))


def _claim(node: DraftNode, fact: ExtractedFact) -> dict[str, Any]:
    """Return the claim of a fact; if doubtful, in passing or without a quote, not functional."""
    quote = node.spans[0].text if node.spans else ""
    if fact.functional and quote and is_over(quote):
        return claim_metadata(fact.relation, "", True, was=fact.value)
    certain = bool(quote) and not is_doubtful(quote) and not sounds_passing(quote)
    return claim_metadata(fact.relation, fact.value, fact.functional and certain)


def _key(name: str) -> str:
    """Return the key under which two spellings of a name are equal."""
    return " ".join(name.replace("’", "'").casefold().split())


def _span_metadata(span: Span) -> dict[str, Any]:
    return {"span": [span.start, span.end], "text": span.text}


class SourceTexts:
    """The messages of one draft, searchable for quotes and names."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._alike = [message.text.translate(_ALIKE) for message in messages]
        self._words = {word.casefold() for text in self._alike for word in _WORD.findall(text)}

    def quoted(self, quote: str, message: int | None) -> Span | None:
        """Return where a quote stands: in the message that the model named, or in any other."""
        wanted = quote.translate(_ALIKE)
        for words in dict.fromkeys((wanted, wanted.strip(_AROUND))):
            if len(words) < QUOTE_CHARS_MIN:
                continue
            pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
            for number in self._order(message):
                if match := pattern.search(self._alike[number]):
                    return self._span(number, match)
        return None

    def named(self, name: str) -> Iterator[Span]:
        """Yield the first place in each message where a name stands as a whole word."""
        words = r"\s+".join(map(re.escape, name.translate(_ALIKE).split()))
        bounded = words if _UNSPACED.search(name) else rf"(?<!\w){words}(?!\w)"
        pattern = re.compile(bounded, re.IGNORECASE)
        for number, text in enumerate(self._alike):
            if match := pattern.search(text):
                yield self._span(number, match)

    def mentions(self, name: str) -> bool:
        """Return whether any word of a name occurs in the messages."""
        if _UNSPACED.search(name):
            return any(True for _ in self.named(name))
        words = (word.casefold() for word in _WORD.findall(name.translate(_ALIKE)))
        return any(len(word) >= WORD_CHARS_MIN and word in self._words for word in words)

    def _order(self, first: int | None) -> list[int]:
        numbers = list(range(len(self._messages)))
        if first is None or not 0 <= first < len(numbers):
            return numbers
        return [first, *numbers[:first], *numbers[first + 1 :]]

    def _span(self, number: int, match: re.Match[str]) -> Span:
        text = self._messages[number].text[match.start() : match.end()]
        return Span(message=number, start=match.start(), end=match.end(), text=text)


def date_of(text: str, said_at: datetime) -> datetime | None:
    """Return the beginning of the day, month or year that a date names; None if it is not a date.

    For the day of the message itself, the time of the message is returned.
    """
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        found = datetime(year, month, day, tzinfo=said_at.tzinfo)
    except ValueError:
        return None
    is_day = match[3] is not None
    return said_at if is_day and found.date() == said_at.date() else found

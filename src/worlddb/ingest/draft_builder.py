"""Draft builder: what the messages of one draft speak of, collected in the order they are read.

One node for one name, one edge for one pair of a message and a name, each with the spans it was
read from. A message is about some names and mentions others: the metadata of the edge say so.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from worlddb.language.language_reader import Dated, Mention
from worlddb.model.drafts import DraftEdge, DraftNode, Message, Span
from worlddb.model.inputs import EPOCH

Spans = dict[tuple[int, int, int], Span]
"""Spans by message, start and end: a stretch of text is evidence once."""


class ReadMessage(NamedTuple):
    """A message that is read: its number, its text with what is no prose masked, its node's key."""

    number: int
    message: Message
    plain: str
    source: str

    def span(self, start: int, end: int) -> Span:
        """Return a stretch of the message as evidence."""
        return Span(message=self.number, start=start, end=end, text=self.message.text[start:end])


@dataclass(slots=True, eq=False)
class Entity:
    """Somebody or something the draft names."""

    key: str
    name: str
    person: bool
    aliases: dict[str, str] = field(default_factory=dict)
    spans: Spans = field(default_factory=dict)
    speaks: bool = False


@dataclass(slots=True)
class _Edge:
    metadata: dict[str, Any]
    spans: Spans = field(default_factory=dict)


def name_key(name: str) -> str:
    """Return what two spellings of one name have in common."""
    return name.replace("’", "'").casefold()


def _place(span: Span) -> tuple[int, int, int]:
    return span.message, span.start, span.end


class DraftBuilder:
    """What the messages of one draft speak of, collected in the order they were read."""

    def __init__(self, speakers: Sequence[str], titles: Set[str]) -> None:
        self._titles = titles  # words before a name that are no part of it, in lower case
        self._speakers = list(dict.fromkeys(speakers))
        self._entities: dict[str, Entity] = {}  # by the key of each name
        self._perhaps: dict[str, Entity] = {}  # by the key of the name
        self._dates: dict[str, Spans] = {}
        self._edges: dict[tuple[str, str, str], _Edge] = {}
        self._relations: dict[tuple[str, str, str], tuple[Span, ...]] = {}
        self._shared: dict[str, set[str]] = {}
        self._parts: dict[str, dict[str, Entity]] = {}
        for name in self._speakers:
            self._new(name_key(name), name, True)

    def named(self, mention: Mention) -> Entity:
        """Return the entity that a mention names: one that is there already, or a new one."""
        key = name_key(mention.text)
        entity = self._entities.get(key)
        if entity is not None:
            entity.person |= mention.person
            return entity
        fuller = self._fuller(key)
        if fuller is not None:
            fuller.aliases.setdefault(key, mention.text)
            return fuller
        return self._new(key, mention.text, mention.person)

    def speaker(self, name: str) -> Entity:
        """Return the entity of somebody who speaks."""
        return self._entities[name_key(name)]

    def other(self, message: Message) -> str | None:
        """Return who a message is spoken to, if it can only be one."""
        others = [name for name in self._speakers if name != message.speaker]
        return others[0] if len(others) == 1 else None

    def add_alias(self, entity: Entity, alias: str, *, shared: bool = False) -> None:
        """Give an entity another name; a `shared` one can be borne by several ("my sister")."""
        key = name_key(alias)
        if key == name_key(entity.name):
            return
        entity.aliases.setdefault(key, alias)
        if shared:
            self._shared.setdefault(key, set()).add(entity.key)
        else:
            self._entities.setdefault(key, entity)
            self._known_by(entity, alias)

    def refer(
        self, turn: ReadMessage, entity: Entity, start: int, end: int, *, about: bool = False
    ) -> None:
        """Record that a message mentions an entity, or is about it."""
        role = {"role": "about"} if about else {}
        self._edge(turn.source, entity.key, "", self.note(turn, entity, start, end), role)

    def spoken(self, turn: ReadMessage, speaker: Entity) -> None:
        """Record that a turn is about its speaker, which no part of the text says."""
        self._edges[turn.source, speaker.key, ""] = _Edge({"role": "about", "text": speaker.name})
        speaker.speaks = True

    def perhaps(self, turn: ReadMessage, mention: Mention, *, about: bool) -> None:
        """Record a word that is a name only if the store, or this draft, knows it as one."""
        key = name_key(mention.text)
        entity = self._entities.get(key)
        if entity is None:
            entity = self._perhaps.setdefault(key, Entity(f"entity:{key}", mention.text, False))
        self.refer(turn, entity, mention.start, mention.end, about=about)

    def note(self, turn: ReadMessage, entity: Entity, start: int, end: int) -> Span:
        """Record where the text speaks of an entity, by a mention or otherwise."""
        span = turn.span(start, end)
        entity.spans[_place(span)] = span
        return span

    def relate(
        self, turn: ReadMessage, entity: Entity, owner: Entity, role: str, start: int, end: int
    ) -> None:
        """Record that an entity is its owner's sister, dog or company."""
        self.note(turn, entity, start, end)
        span = self.note(turn, owner, start, end)
        self._edge(entity.key, owner.key, role, span, {"relation": role})

    def state(self, type_: str, source: Entity, target: Entity, span: Span) -> None:
        """Record an edge that a message states between two entities; the first time counts."""
        if source is not target:
            self._relations.setdefault((type_, source.key, target.key), (span,))

    def claim(
        self, turn: ReadMessage, subject: Entity, said: dict[str, Any], start: int, end: int
    ) -> None:
        """Record that a message states something of somebody that a later one may replace."""
        span = self.note(turn, subject, start, end)
        self._edge(turn.source, subject.key, f"{said['relation']}={said.get('value')}", span, said)

    def add_date(self, turn: ReadMessage, dated: Dated) -> None:
        """Record that a message speaks of a date."""
        span = turn.span(dated.start, dated.end)
        self._dates.setdefault(dated.name, {})[_place(span)] = span
        days = {"from": dated.first.isoformat(), "to": dated.last.isoformat()}
        self._edge(turn.source, f"date:{dated.name}", "", span, days)

    def drafts(self) -> tuple[tuple[DraftNode, ...], tuple[DraftEdge, ...]]:
        """Return what was gathered as nodes and edges of a draft."""
        entities = dict.fromkeys(self._entities.values())
        nodes = [self._node(entity) for entity in entities if entity.spans or entity.speaks]
        nodes += [
            replace(self._node(entity), known_only=True)
            for key, entity in self._perhaps.items()
            if key not in self._entities
        ]
        nodes += [
            DraftNode(
                key=f"date:{name}",
                type="Date",
                name=name,
                created_at=EPOCH,  # a date is there before anybody speaks of it
                resolvable=True,
                spans=tuple(spans.values()),
            )
            for name, spans in self._dates.items()
        ]
        edges = [
            DraftEdge(
                type="refers_to",
                source=source,
                target=target,
                metadata=edge.metadata,
                spans=tuple(edge.spans.values()),
            )
            for (source, target, _), edge in self._edges.items()
        ]
        edges += [
            DraftEdge(
                type=type_,
                source=source,
                target=target,
                metadata={"span": [spans[0].start, spans[0].end], "text": spans[0].text},
                spans=spans,
            )
            for (type_, source, target), spans in self._relations.items()
        ]
        return tuple(nodes), tuple(edges)

    def _new(self, key: str, name: str, person: bool) -> Entity:
        entity = self._entities[key] = Entity(f"entity:{key}", name, person)
        self._known_by(entity, name)
        return entity

    def _known_by(self, entity: Entity, name: str) -> None:
        """Note the first and the last part of a full name, without a title."""
        parts = [name_key(part) for part in name.split()]
        if parts and parts[0].rstrip(".") in self._titles:
            parts = parts[1:]
        for part in {*parts[:1], *parts[-1:]}:
            self._parts.setdefault(part, {})[entity.key] = entity

    def _fuller(self, key: str) -> Entity | None:
        """Return the one person of whose full name `key` is the first or the last part."""
        title, _, last = key.partition(" ")
        titled = title.rstrip(".") in self._titles
        part = last if titled else key
        if not part or " " in part:
            return None
        found = [
            entity
            for entity in self._parts.get(part, {}).values()
            if entity.person and not (titled and (name_key(entity.name).partition(" ")[0] != title))
        ]
        return found[0] if len(found) == 1 else None

    def _edge(
        self, source: str, target: str, role: str, span: Span, metadata: dict[str, Any]
    ) -> None:
        edge = self._edges.get((source, target, role))
        if edge is None:
            said = {**metadata, "span": [span.start, span.end], "text": span.text}
            edge = self._edges[source, target, role] = _Edge(said)
        else:
            edge.metadata |= metadata if "role" in metadata else {}
            edge.metadata |= (
                {} if edge.spans else {"span": [span.start, span.end], "text": span.text}
            )
        edge.spans[_place(span)] = span

    def _node(self, entity: Entity) -> DraftNode:
        # What two entities are called ("my sister") tells neither from the other.
        aliases = tuple(
            alias for key, alias in entity.aliases.items() if len(self._shared.get(key, ())) < 2
        )
        return DraftNode(
            key=entity.key,
            type="Entity",
            name=entity.name,
            aliases=aliases,
            resolvable=True,
            spans=tuple(entity.spans.values()),
        )

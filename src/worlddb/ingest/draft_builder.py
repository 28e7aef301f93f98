"""Draft builder: reads chats in the formats of other programs, and drafts the names in messages.

    OpenAI, Anthropic, Gemini, LangChain, our own ──chat_messages──▶ [Message(text, speaker, …)]

Text parts become text. A tool call becomes a line of its caller, and the result of a tool has the
speaker "tool". Images, audio and reasoning have no text to remember and are left out, and so is a
context that this engine itself put into a prompt. A person's name is used before the role. Objects
of an SDK are read from their dump.

`DraftBuilder` makes one node per name, and one edge per pair of a message and a name, with the
spans it was read from. A message is *about* some names and *mentions* others; the metadata of the
edge say which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from worlddb.errors import InvalidInputError
from worlddb.language.language_reader import Dated, Mention
from worlddb.model.inputs import EPOCH, from_micros, to_micros
from worlddb.model.records import DraftEdge, DraftNode, Message, Span
from worlddb.model.text_safety import Origin, origin_of_write, without_contexts

Spans = dict[tuple[int, int, int], Span]
"""Spans by message, start and end, so that a stretch of text is evidence only once."""


class ReadMessage(NamedTuple):
    """A message during reading: its number, its text with non-prose masked, and its node's key."""

    number: int
    message: Message
    plain: str
    source: str

    def span(self, start: int, end: int) -> Span:
        """Return a stretch of the message as evidence."""
        return Span(message=self.number, start=start, end=end, text=self.message.text[start:end])


@dataclass(slots=True, eq=False)
class Entity:
    """A person or thing named in the draft."""

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
    """Return a name in a form for comparison."""
    return name.replace("’", "'").casefold()


def _place(span: Span) -> tuple[int, int, int]:
    return span.message, span.start, span.end


class DraftBuilder:
    """The names in the messages of one draft, in the order they were read."""

    def __init__(self, speakers: Sequence[str], titles: Set[str]) -> None:
        self._titles = titles  # words before a name that do not belong to it, in lower case
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
        """Return the entity of a mention, existing or new."""
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
        """Return the entity of a speaker."""
        return self._entities[name_key(name)]

    def other(self, message: Message) -> str | None:
        """Return the addressee of a message, if there is only one possibility."""
        others = [name for name in self._speakers if name != message.speaker]
        return others[0] if len(others) == 1 else None

    def add_alias(self, entity: Entity, alias: str, *, shared: bool = False) -> None:
        """Add an alias to an entity; a `shared` one may belong to several ("my sister")."""
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
        """Record that a turn is about its speaker; no part of the text is evidence for it."""
        self._edges[turn.source, speaker.key, ""] = _Edge({"role": "about", "text": speaker.name})
        speaker.speaks = True

    def perhaps(self, turn: ReadMessage, mention: Mention, *, about: bool) -> None:
        """Record a word that is a name only if the store, or this draft, has that name."""
        key = name_key(mention.text)
        entity = self._entities.get(key)
        if entity is None:
            entity = self._perhaps.setdefault(key, Entity(f"entity:{key}", mention.text, False))
        self.refer(turn, entity, mention.start, mention.end, about=about)

    def note(self, turn: ReadMessage, entity: Entity, start: int, end: int) -> Span:
        """Record where the text refers to an entity, by a mention or otherwise."""
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
        """Record an edge that a message states between two entities; only the first one counts."""
        if source is not target:
            self._relations.setdefault((type_, source.key, target.key), (span,))

    def claim(
        self, turn: ReadMessage, subject: Entity, said: dict[str, Any], start: int, end: int
    ) -> None:
        """Record a claim about a subject, which a later one may replace."""
        span = self.note(turn, subject, start, end)
        self._edge(turn.source, subject.key, f"{said['relation']}={said.get('value')}", span, said)

    def add_date(self, turn: ReadMessage, dated: Dated) -> None:
        """Record a date in a message."""
        span = turn.span(dated.start, dated.end)
        self._dates.setdefault(dated.name, {})[_place(span)] = span
        days = {"from": dated.first.isoformat(), "to": dated.last.isoformat()}
        self._edge(turn.source, f"date:{dated.name}", "", span, days)

    def drafts(self) -> tuple[tuple[DraftNode, ...], tuple[DraftEdge, ...]]:
        """Return the collected nodes and edges."""
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
                created_at=EPOCH,  # a date exists before it is mentioned
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
        """Index the first and the last part of a full name, without a title."""
        parts = [name_key(part) for part in name.split()]
        if parts and parts[0].rstrip(".") in self._titles:
            parts = parts[1:]
        for part in {*parts[:1], *parts[-1:]}:
            self._parts.setdefault(part, {})[entity.key] = entity

    def _fuller(self, key: str) -> Entity | None:
        """Return the only person whose full name begins or ends with `key`; None if not one."""
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
        # An alias of two entities ("my sister") identifies neither.
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


TOOL = "tool"
ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": TOOL}
"""What LangChain, Gemini and older formats call the usual roles."""
KINDS = {**ROLES, "AIMessageChunk": "assistant", TOOL: TOOL, "system": "system"}
"""Types of messages that say who speaks, where no role does."""
SPOKEN_BY: dict[str, Origin] = {TOOL: "tool", "assistant": "assistant"}
"""The origin for each role; other speakers have none."""
TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal", "summary_text"})
CALL_PARTS = frozenset({"tool_use", "server_tool_use", "function_call", "tool_call", "function"})
RESULT_PARTS = frozenset({"tool_result", "function_call_output", "tool_output"})
TIMES = ("at", "timestamp", "created_at", "date")
SECONDS_MAX = 1 << 40  # a larger number is in milliseconds: no date in seconds is that late
ARGUMENTS_CHARS_MAX = 500  # enough to recognise a tool call; whole files are not memories
ID_CHARS_MAX = 512  # as many as an idempotency key may have


class SdkMessage(Protocol):
    """A message object of a provider's SDK."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as plain data."""


def plain(item: Any) -> Any:
    """Return an item or a part of a chat as plain data; an SDK object dumps itself."""
    dump = None if isinstance(item, type) else getattr(item, "model_dump", None)
    return dump() if callable(dump) else item


def chat_messages(item: Mapping[str, Any] | SdkMessage) -> list[Message]:
    """Return the messages in one item of a chat; none if it has no text."""
    item = plain(item)
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"a message is a mapping with role and content, not {item!r:.100}")
    name, role = item.get("name"), _role(item)
    is_person = isinstance(name, str) and name.strip() and role == "user"
    speaker = name if is_person else role
    ident = item.get("id", item.get("uuid"))
    if not isinstance(speaker, str) or not isinstance(ident, str | None):
        raise InvalidInputError(f"a message has a role and text as its content, not {item!r:.100}")
    at, origin = _time(item), item.get("origin")
    said: dict[str, list[str]] = {}
    for who, whole in _texts(item, speaker):
        if (text := without_contexts(whole)).strip():
            said.setdefault(who, []).append(text)
    key = None if ident is None else ident[:ID_CHARS_MAX]
    return [
        Message(
            text="\n".join(texts),
            speaker=who,
            at=at,
            id=key if key is None or who == speaker else f"{key}/{who}",
            origin=origin_of_write(origin, SPOKEN_BY.get(who)),
        )
        for who, texts in said.items()
    ]


def _role(item: Mapping[str, Any]) -> Any:
    """Return who speaks: by name, by role, or by the type of the message; else the user."""
    role, kind = item.get("speaker", item.get("role")), item.get("type")
    if role is not None:
        return ROLES.get(role, role) if isinstance(role, str) else role
    if kind in CALL_PARTS or kind in RESULT_PARTS:
        return "assistant" if kind in CALL_PARTS else TOOL
    return KINDS.get(kind, "user") if isinstance(kind, str) else "user"


def _time(item: Mapping[str, Any]) -> datetime | None:
    """Return the time of a message, under any of the names that formats use."""
    name = next((one for one in TIMES if item.get(one) not in (None, "")), None)
    if name is None:
        return None
    given = item[name]
    if isinstance(given, int | float) and not isinstance(given, bool):
        seconds = given / 1_000 if given > SECONDS_MAX else given
        return from_micros(int(seconds * 1_000_000))
    return from_micros(to_micros(given, name))


def _texts(item: Mapping[str, Any], speaker: str) -> Iterator[tuple[str, str]]:
    """Yield (speaker, text) for each text in one item."""
    kind = item.get("type")
    if kind in CALL_PARTS and "content" not in item:
        yield speaker, _call(item)
    elif kind in RESULT_PARTS:
        yield TOOL, _result(item)
    else:
        content = item.get("text", item.get("content", item.get("parts")))
        if content is None:  # Where OpenAI puts a refusal.
            content = item.get("refusal") or ()
        if isinstance(content, str):
            yield speaker, content
        elif isinstance(content, Iterable) and not isinstance(content, Mapping | bytes):
            for part in content:
                yield from _part(part, speaker)
        else:
            raise InvalidInputError(
                f"a message has a role and text as its content, not {item!r:.100}"
            )
    legacy = item.get("function_call")
    for call in item.get("tool_calls") or (() if legacy is None else (legacy,)):
        yield speaker, _call(plain(call))


def _part(part: Any, speaker: str) -> Iterator[tuple[str, str]]:
    """Yield (speaker, text) for each text in a part of a message's content."""
    part = plain(part)
    if isinstance(part, str):
        yield speaker, part
    elif not isinstance(part, Mapping):
        raise InvalidInputError(f"a part of a message is text or a mapping, not {part!r:.100}")
    elif isinstance(call := part.get("functionCall", part.get("function_call")), Mapping):
        yield speaker, _call(call)
    elif isinstance(done := part.get("functionResponse", part.get("function_response")), Mapping):
        yield TOOL, _result({"output": done.get("response")})
    elif part.get("type", "text") in TEXT_PARTS:
        text = part.get("text", part.get("refusal", ""))
        yield speaker, text if isinstance(text, str) and part.get("thought") is not True else ""
    elif part["type"] in CALL_PARTS:
        yield speaker, _call(part)
    elif part["type"] in RESULT_PARTS:
        yield TOOL, _result(part)


def _call(call: Any) -> str:
    """Return a tool call as one line of text."""
    inner = call.get("function", call) if isinstance(call, Mapping) else {}
    inner = inner if isinstance(inner, Mapping) else {}
    given = inner.get("arguments", inner.get("input", inner.get("args", "")))
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    name = inner.get("name") or "a tool"
    return f"[called {name}: {text[:ARGUMENTS_CHARS_MAX]}]"


def _result(part: Mapping[str, Any]) -> str:
    """Return the text of a tool's result."""
    given = part.get("output", part.get("content", ""))
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return json.dumps(given, ensure_ascii=False, default=str)
    found = (text for one in given or () for _, text in _part(one, TOOL))
    return "\n".join(found)

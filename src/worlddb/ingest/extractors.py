"""Extractors: from what a caller gives to remember to a draft of what would be written.

    text or chat ──messages_of──▶ messages ──Extractor.extract(messages, at)──▶ Draft(nodes, edges)

    verbatim   a Memory, or a Session of Turns
    rules      the same, and what a language reader surely reads in it: entities with their
               aliases and relations, dates, claims

The rules collect over all messages in a `DraftBuilder`: one node for one name, one edge for one
pair, each with the spans it was read from. There is no model, store or clock here.

X1  An extractor never makes up what the text does not say: everything it reads out of a text has
    the spans it was read from, and where a rule is unsure it gives nothing.
X2  Equal messages and an equal `at` give an equal draft.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from blake3 import blake3

from worlddb.claims.claim import claim_metadata, without_clashes
from worlddb.errors import InvalidInputError
from worlddb.language.english.english_reader import EnglishReader
from worlddb.language.language_reader import (
    LISTENER,
    SPEAKER,
    Alias,
    Dated,
    LanguageReader,
    Mention,
    Naming,
    Role,
    Same,
    StatedClaim,
)
from worlddb.model.drafts import Draft, DraftEdge, DraftNode, Extractor, Message, Span
from worlddb.model.inputs import EPOCH, from_micros, to_micros
from worlddb.model.visible_text import said_by

Chat = Sequence[Message | Mapping[str, Any]]
Input = str | Message | Chat
Spans = dict[tuple[int, int, int], Span]
"""Spans by message, start and end: a stretch of text is evidence once."""

DEFAULT = "rules"
CHOICES = ("verbatim", "rules")
MEMORY = "memory"
SESSION = "session"
USER = "user"
_USERS = frozenset(("user", "human", "me"))
# Speakers that are called by what they do.
_NAMELESS = frozenset(
    (
        "user",
        "assistant",
        "app",
        "system",
        "human",
        "ai",
        "bot",
        "agent",
        "tool",
        "me",
        "model",
        "unknown",
    )
)


def either(text: Input | None, messages: Chat | None) -> list[Message]:
    """Return what was given as messages: a text, or a chat by either name.

    Raises:
        InvalidInputError: both were given or neither; it is no such thing, or says nothing.
    """
    if text is not None and messages is None:
        return messages_of(text)
    if messages is None or text is not None:
        raise InvalidInputError("give either text or messages")
    if isinstance(messages, str | Message):
        raise InvalidInputError("messages: give a list, [{'role': …, 'content': …}, …]")
    return messages_of(messages)


def messages_of(given: Input) -> list[Message]:
    """Return what was given as messages.

    Raises:
        InvalidInputError: it is neither text nor messages, or says nothing.
    """
    if isinstance(given, str):
        given = Message(text=given)
    items = [given] if isinstance(given, Message) else given
    if isinstance(items, Mapping) or not isinstance(items, Sequence) or isinstance(items, bytes):
        raise InvalidInputError(f"give text or a list of messages, not {given!r:.100}")
    messages = [item if isinstance(item, Message) else _message(item) for item in items]
    if not any(message.text.strip() for message in messages):
        raise InvalidInputError("there is no text to remember")
    return [
        replace(message, speaker=said_by(message.speaker))
        for message in messages
        if message.text.strip()
    ]


def _message(item: Mapping[str, Any]) -> Message:
    """Return a chat message (`role`, `content`) or one in our own words (`speaker`, `text`)."""
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"a message is a mapping with role and content, not {item!r:.100}")
    text = item.get("text", item.get("content"))
    speaker = item.get("speaker", item.get("role", "user"))
    if not isinstance(text, str) or not isinstance(speaker, str):
        raise InvalidInputError(f"a message has a role and text as its content, not {item!r:.100}")
    at = item.get("at")
    return Message(
        text=text, speaker=speaker, at=None if at is None else from_micros(to_micros(at, "at"))
    )


def dated(messages: Sequence[Message], at: datetime) -> list[Message]:
    """Return messages that all have a time: their own, else that of the one before, else `at`.

    An old chat often says only when it began; what follows was not said today.
    """
    found: list[Message] = []
    for message in messages:
        at = at if message.at is None else message.at
        found.append(replace(message, at=at))
    return found


END_MARKS = ".!"
"""Signs at the end of a text that do not change what it says; a question mark does."""


def same_text(one: str, other: str) -> bool:
    """Return whether two texts say the same to the letter.

    White space at the ends does not count, every other run of it is one space; accents are
    composed.
    """
    return _plain(one) == _plain(other)


def spellings(text: str) -> set[str]:
    """Return the spellings that say the same: with another first letter, end mark, or accents.

    Only the first letter may differ in case: in a password, each letter counts.
    """
    plain = _plain(text)
    bare = plain.rstrip(END_MARKS).rstrip() or plain
    starts = {bare, bare[:1].lower() + bare[1:], bare[:1].upper() + bare[1:]}
    forms = {text, plain, *(start + end for start in starts for end in ("", *END_MARKS))}
    if text.isascii():
        return forms
    return forms | {unicodedata.normalize("NFD", form) for form in forms}


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


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
        self._dates: dict[str, Spans] = {}
        self._edges: dict[tuple[str, str, str], _Edge] = {}
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

    def refer(self, turn: ReadMessage, entity: Entity, start: int, end: int) -> None:
        """Record that a message speaks of an entity."""
        self._edge(turn.source, entity.key, "", self.note(turn, entity, start, end), {})

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
        nodes = [self._node(entity) for entity in entities if entity.spans]
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


def extractor_named(name: str) -> Extractor:
    """Return the extractor that `name` stands for.

    | name | what it is |
    |---|---|
    | `verbatim` | what was said, as it was said: no guesses |
    | `rules` | and the names, aliases, relations and dates it surely speaks of; the default |

    Raises:
        InvalidInputError: the name stands for nothing; the message lists the choices.
    """
    if not isinstance(name, str):
        raise InvalidInputError(f"extractor: give a name, not {type(name).__name__}")
    if name not in CHOICES:
        raise InvalidInputError(
            f"extractor {name!r:.200}: no such extractor; choose one of {', '.join(CHOICES)}"
        )
    return VerbatimExtractor() if name == "verbatim" else RulesExtractor()


class VerbatimExtractor:
    """One message is a `Memory`; several are the `Turn`s of one `Session`."""

    name = "verbatim"

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is when they were said, unless they say."""
        if not messages:
            return Draft()
        if len(messages) == 1:
            said = messages[0].at or at
            text = messages[0].text
            memory = DraftNode(
                key=MEMORY, type="Memory", content=text, created_at=said, valid_from=said
            )
            return Draft(nodes=(memory,))
        began = min(message.at or at for message in messages)
        session = DraftNode(
            key=SESSION, type="Session", name=_name(messages), created_at=began, valid_from=began
        )
        return Draft(nodes=(session, *_turns(messages, at)))


def source_key(messages: Sequence[Message], index: int) -> str:
    """Return the key of the node that holds a message."""
    return MEMORY if len(messages) == 1 else turn_key(index)


def turn_key(index: int) -> str:
    """Return the key of the turn that holds a message of a chat."""
    return f"turn:{index}"


def _name(messages: Sequence[Message]) -> str:
    """Return a name that is the same for the same chat: two may begin at one time."""
    hasher = blake3()
    for message in messages:
        for text in (message.speaker, message.text):
            said = text.encode("utf-8", "surrogatepass")
            hasher.update(len(said).to_bytes(8, "big") + said)
    return f"chat {hasher.hexdigest(6)}"


def _turns(messages: Sequence[Message], at: datetime) -> list[DraftNode]:
    return [
        DraftNode(
            key=source_key(messages, index),
            type="Turn",
            name=message.speaker,
            content=message.text,
            parent=SESSION,
            # Turns of one time keep their order.
            created_at=_later(message.at or at, index),
            valid_from=message.at or at,
        )
        for index, message in enumerate(messages)
    ]


def _later(at: datetime, micros: int) -> datetime:
    try:
        return at + timedelta(microseconds=micros)
    except OverflowError:
        raise InvalidInputError(f"at: {at.isoformat()} is too late for a chat") from None


class RulesExtractor:
    """What was said, and the names, aliases, relations, dates and claims it surely holds.

    R1  Precision over recall: where a text can be read in two ways, nothing is read.
    R2  A name is one node of the draft, whatever the number of mentions. A mention that is the
        first or the last part of one person's full name is that person.
    R3  Text in a language that no reader reads stays verbatim.
    R4  In a note, a single text of the user, "the user" is the one who says "I".
    R5  What a message claims of somebody is on an edge to them, with the sentence as its span.
    R6  Two claims of one message that exclude each other are none; what a message says to be over
        by its end is over, and no more.
    R7  The time is linear in the text, so `chars_max` bounds the time that a write may take.
    """

    name = "rules"
    chars_max = 1 << 18  # About a second of reading; longer texts wait for the extraction queue.

    def __init__(self, reader: LanguageReader | None = None) -> None:
        self._reader = reader if reader is not None else EnglishReader()

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is when they were said, unless they say."""
        reader = self._reader
        verbatim = VerbatimExtractor().extract(messages, at)
        note = len(messages) == 1 and name_key(messages[0].speaker) in _USERS
        read = [
            ReadMessage(
                index, message, reader.plain(message.text, note=note), source_key(messages, index)
            )
            for index, message in enumerate(messages)
            if reader.reads(message.text)
        ]
        speakers = _names_of(messages)
        found = [reader.mentions(turn.message.text, turn.plain, speakers) for turn in read]
        certain = {name_key(each.text) for mentions in found for each in mentions if each.sure}
        # A text of the user alone is a note; all else is spoken to somebody.
        spoken = {name_key(message.speaker) for message in messages}
        if len(messages) == 1:
            spoken -= {USER}
        builder = DraftBuilder([message.speaker for message in messages], reader.titles)
        for turn, mentions in zip(read, found, strict=True):
            sure = [each for each in mentions if each.sure or name_key(each.text) in certain]
            namings = reader.namings(turn.plain, sure, spoken) if sure else []
            entities = _read_names(builder, turn, sure, namings)
            said = (turn.message.at or at).date()
            dates = reader.dates(turn.plain, said)
            for dated in dates:
                builder.add_date(turn, dated)
            claims = reader.claims(turn.message.text, turn.plain, sure, dates, note=note)
            # "I work at Tern as of next month" says nothing of now.
            ahead = {dated.last for dated in dates if dated.first > said}
            for claim in without_clashes(claims):
                if claim.since not in ahead:
                    _read_claim(builder, turn, entities, claim)
        nodes, edges = builder.drafts()
        return Draft(nodes=verbatim.nodes + nodes, edges=edges)


def _names_of(messages: Sequence[Message]) -> frozenset[str]:
    """Return the names of those who speak, in lower case, as far as they have names."""
    names = {message.speaker for message in messages if message.speaker[:1].isupper()}
    return frozenset(name_key(name) for name in names) - _NAMELESS


def _read_names(
    builder: DraftBuilder, turn: ReadMessage, mentions: Sequence[Mention], namings: Sequence[Naming]
) -> list[Entity]:
    """Add the names of a message to the draft; return who or what each mention means."""
    same = {each.second: each for each in namings if isinstance(each, Same)}
    letters = {each.mention: each for each in namings if isinstance(each, Alias)}
    roles = [each for each in namings if isinstance(each, Role)]
    named_self = {each.mention for each in namings if not isinstance(each, Same | Alias | Role)}
    entities: list[Entity] = []
    for index, mention in enumerate(mentions):
        if index in same:
            entity = entities[same[index].first]
            builder.add_alias(entity, same[index].alias)
        elif index in named_self:
            entity = builder.speaker(turn.message.speaker)
            builder.add_alias(entity, mention.text)
        else:
            entity = builder.named(mention)
        builder.refer(turn, entity, mention.start, mention.end)
        if index in letters:
            alias = letters[index]
            builder.add_alias(entity, alias.alias)
            builder.note(turn, entity, alias.start, alias.end)
        entities.append(entity)
    for role in roles:
        _read_role(builder, turn, role, entities, mentions)
    return entities


def _read_claim(
    builder: DraftBuilder, turn: ReadMessage, entities: Sequence[Entity], claim: StatedClaim
) -> None:
    """Add what a message claims; of what an assistant says of itself, nothing."""
    speaker = turn.message.speaker
    if isinstance(claim.owner, int):
        subject = entities[claim.owner]
    elif name_key(speaker) in _NAMELESS - _USERS:
        return
    else:
        subject = builder.speaker(speaker)
    more = {name: getattr(claim, name) for name in ("was", "since", "vague", "yields")}
    said = claim_metadata(claim.relation, claim.value, True, **more)
    builder.claim(turn, subject, said, claim.start, claim.end)


def _read_role(
    builder: DraftBuilder,
    turn: ReadMessage,
    role: Role,
    entities: Sequence[Entity],
    mentions: Sequence[Mention],
) -> None:
    entity = entities[role.mention]
    if isinstance(role.owner, int):
        owner, whose = entities[role.owner], f"{mentions[role.owner].text}'s"
    else:
        name = turn.message.speaker if role.owner == SPEAKER else builder.other(turn.message)
        if name is None:
            return  # Whom "you" means is not known.
        owner = builder.speaker(name)
        whose = _whose(turn, role, name)
    if owner is entity:
        return
    builder.relate(turn, entity, owner, role.role, role.start, role.end)
    if role.phrase:
        builder.add_alias(entity, f"{whose} {role.phrase}", shared=True)


def _whose(turn: ReadMessage, role: Role, name: str) -> str:
    """Return the possessive that an alias begins with: the user's own is "my" or "our"."""
    if name_key(name) != USER:
        return f"{name}'s"
    said = turn.plain[role.start : role.end].lower()
    return "our" if role.owner != LISTENER and "our " in said and "my " not in said else "my"

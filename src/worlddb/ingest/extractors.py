"""Extractors: turn a text or a chat into a draft of nodes and edges.

    text or chat ──messages_of──▶ messages ──Extractor.extract(messages, at)──▶ Draft(nodes, edges)

    verbatim   a Memory, or a Session of Turns
    rules      the same, and what a language reader is sure of: entities with their aliases and
               relations, dates, claims, causes, order and kinds

The rules collect over all messages in a `DraftBuilder`: one node per name, one edge per pair, each
with the spans it was read from. There is no model, store or clock here.

X1  An extractor adds nothing that the text does not say. Everything it reads has the spans it was
    read from. If a rule is unsure it gives nothing, or a name that counts only if the store knows
    it. That a turn is about its speaker needs no span.
X2  Equal messages and an equal `at` give an equal draft.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from blake3 import blake3

from worlddb.claims.claim import claim_metadata, without_clashes
from worlddb.errors import InvalidInputError
from worlddb.ingest.draft_builder import (
    DraftBuilder,
    Entity,
    ReadMessage,
    SdkMessage,
    chat_messages,
    name_key,
)
from worlddb.language.english.english_reader import EnglishReader
from worlddb.language.language_reader import (
    LISTENER,
    SPEAKER,
    Alias,
    LanguageReader,
    Mention,
    Naming,
    Role,
    Same,
    StatedClaim,
    StatedRelation,
)
from worlddb.language.statement import Title, title_of
from worlddb.model.inputs import said_by
from worlddb.model.records import DOCUMENT, Draft, DraftNode, Extractor, Message

Chat = Sequence[Message | Mapping[str, Any] | SdkMessage]
Input = str | Message | Chat

DEFAULT = "rules"
CHOICES = ("verbatim", "rules")
# Words that may precede the name that a text is about: "The name of the current head of the".
_DESCRIBED = re.compile(r"The(?: [a-z][\w'’-]*){1,8} (?:of|in|for|at|where|that)(?: the)?")
_ARTICLES = ("", "The", "A", "An")
MEMORY = "memory"
SESSION = "session"
USER = "user"
_USERS = frozenset(("user", "human", "me"))
# Speakers called by their role.
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
        DOCUMENT,
    )
)


def either(text: Input | None, messages: Chat | None) -> list[Message]:
    """Return a text or a chat as messages."""
    if text is not None and messages is None:
        return messages_of(text)
    if messages is None or text is not None:
        raise InvalidInputError("give either text or messages, or a document")
    if isinstance(messages, str | Message):
        raise InvalidInputError("messages: give a list, [{'role': …, 'content': …}, …]")
    return messages_of(messages)


def messages_of(given: Input) -> list[Message]:
    """Return a text or a chat as messages."""
    if isinstance(given, str):
        given = Message(text=given)
    items = [given] if isinstance(given, Message) else given
    if isinstance(items, Mapping) or not isinstance(items, Sequence) or isinstance(items, bytes):
        raise InvalidInputError(f"give text or a list of messages, not {given!r:.100}")
    messages = [
        message
        for item in items
        for message in ([item] if isinstance(item, Message) else chat_messages(item))
    ]
    if not any(message.text.strip() for message in messages):
        raise InvalidInputError("there is no text to remember")
    return [_named(message) for message in messages if message.text.strip()]


def _named(message: Message) -> Message:
    """Return a message with the usual name of its speaker."""
    speaker = said_by(message.speaker)
    return message if speaker == message.speaker else replace(message, speaker=speaker)


def dated(messages: Sequence[Message], at: datetime) -> list[Message]:
    """Return messages with a time each: their own, else that of the one before, else `at`.

    An old chat often has only the time of its beginning; the rest was not said today.
    """
    found: list[Message] = []
    for message in messages:
        at = at if message.at is None else message.at
        found.append(replace(message, at=at))
    return found


END_MARKS = ".!"
"""Characters at the end of a text that do not change its meaning; a question mark does."""


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are equal except for white space and composed accents.

    White space at the ends does not count, and every other run of it is one space.
    """
    return _plain(one) == _plain(other)


def spellings(text: str) -> set[str]:
    """Return the spellings that count as the same text: first letter, end mark, accents.

    Only the first letter may differ in case: in a password, each letter matters.
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


def extractor_named(name: str) -> Extractor:
    """Return the extractor with a name.

    | name | result |
    |---|---|
    | `verbatim` | the text as it is, without guesses |
    | `rules` | also the names, aliases, relations and dates it is sure of; the default |
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
            key=SESSION,
            type="Session",
            name=chat_name(messages),
            created_at=began,
            valid_from=began,
        )
        return Draft(nodes=(session, *_turns(messages, at)))


def source_key(messages: Sequence[Message], index: int) -> str:
    """Return the key of the drafted node that holds a message."""
    return MEMORY if len(messages) == 1 else turn_key(index)


def turn_key(index: int) -> str:
    """Return the key of the drafted turn that holds a message of a chat."""
    return f"turn:{index}"


def chat_name(messages: Sequence[Message]) -> str:
    """Return a name that depends on the messages alone: two chats may begin at one time."""
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
            # Turns with one time keep their order.
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
    """The text, and the names, aliases, relations, dates and claims that the rules are sure of.

    R1  Precision over recall: a text that can be read in two ways is not read.
    R2  A name is one node of the draft, however often it occurs. A mention that is the first or the
        last part of one person's full name is that person.
    R3  Text in a language without a reader stays verbatim, except its title and its speaker.
    R4  In a note, a single text of the user, "the user" is the speaker, like "I".
    R5  A message is about its title or heading, the name it opens with, and its speaker; it
        mentions every other name.
    R6  A claim of a message about somebody is on an edge to them, with the sentence as its span.
    R7  Claims of one message that exclude each other are dropped; what the message says to be over
        at its end is only over.
    R8  A relation of two things ("The Great Storm caused the Severn Flood") is an edge of its type,
        from the time of the message.
    R9  The time is linear in the text, so `chars_max` bounds the time of a write.
    """

    name = "rules"
    chars_max = 1 << 18  # about a second of reading; longer texts go to the extraction queue

    def __init__(self, reader: LanguageReader | None = None) -> None:
        self._reader = reader if reader is not None else EnglishReader()

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        reader = self._reader
        verbatim = VerbatimExtractor().extract(messages, at)
        note = len(messages) == 1 and name_key(messages[0].speaker) in _USERS
        turns = [
            ReadMessage(
                index, message, reader.plain(message.text, note=note), source_key(messages, index)
            )
            for index, message in enumerate(messages)
        ]
        read = [turn for turn in turns if reader.reads(turn.message.text)]
        speakers = _names_of(messages)
        found = [reader.mentions(turn.message.text, turn.plain, speakers) for turn in read]
        certain = {name_key(each.text) for mentions in found for each in mentions if each.sure}
        # A text of the user alone is a note; any other text is spoken to somebody.
        spoken = {name_key(message.speaker) for message in messages}
        if len(messages) == 1:
            spoken -= {USER}
        builder = DraftBuilder([message.speaker for message in messages], reader.titles)
        titles = {turn.number: self._filed(builder, turn, speakers) for turn in turns}
        for turn, mentions in zip(read, found, strict=True):
            is_sure = [each.sure or name_key(each.text) in certain for each in mentions]
            sure = [each for each, known in zip(mentions, is_sure, strict=True) if known]
            self._read(
                builder,
                turn,
                sure,
                titles[turn.number],
                (turn.message.at or at).date(),
                spoken,
                note,
            )
            unsure = [each for each, known in zip(mentions, is_sure, strict=True) if not known]
            opening = _subject(turn, unsure, titles[turn.number])
            for number, each in enumerate(unsure):
                builder.perhaps(turn, each, about=number == opening)
        nodes, edges = builder.drafts()
        return Draft(nodes=verbatim.nodes + nodes, edges=edges)

    def _filed(self, builder: DraftBuilder, turn: ReadMessage, speakers: Set[str]) -> Title | None:
        """Add a message's title, whatever its language, and its speaker to the draft."""
        speaker, text = turn.message.speaker, turn.message.text
        if name_key(speaker) in speakers:
            builder.spoken(turn, builder.speaker(speaker))
        title = title_of(text, self._reader.is_ordinary)
        if title is not None:
            name = Mention(title.start, title.end, text[title.start : title.end], True, False)
            builder.refer(turn, builder.named(name), title.start, title.end, about=True)
        return title

    def _read(
        self,
        builder: DraftBuilder,
        turn: ReadMessage,
        mentions: Sequence[Mention],
        title: Title | None,
        said: date,
        spoken: Set[str],
        note: bool,
    ) -> None:
        """Add the content of one message to the draft."""
        reader, text = self._reader, turn.message.text
        if title is not None:
            mentions = [each for each in mentions if each.start >= title.end]
        stated = reader.relations(text, turn.plain, mentions)
        mentions = _with_ends(mentions, stated)
        namings = reader.namings(turn.plain, mentions, spoken) if mentions else []
        entities = _read_names(builder, turn, mentions, namings)
        for one in stated:
            source, target = (entities[mentions.index(end)] for end in (one.source, one.target))
            builder.state(one.type, source, target, turn.span(one.start, one.end))
        opening = _subject(turn, mentions, title)
        if opening is not None:
            first = mentions[opening]
            builder.refer(turn, entities[opening], first.start, first.end, about=True)
        dates = reader.dates(turn.plain, said)
        for dated in dates:
            builder.add_date(turn, dated)
        claims = reader.claims(text, turn.plain, mentions, dates, note=note)
        # "I work at Tern as of next month" says nothing about now.
        ahead = {dated.last for dated in dates if dated.first > said}
        for claim in without_clashes(claims) if claims else ():
            if claim.since not in ahead:
                _read_claim(builder, turn, entities, claim)


def _with_ends(mentions: Sequence[Mention], stated: Sequence[StatedRelation]) -> Sequence[Mention]:
    """Return mentions with the ends of relations added, and without parts of such ends.

    A name before a common noun stays: the Berlin summit speaks of Berlin, too.
    """
    ends = {end for one in stated for end in (one.source, one.target)}.difference(mentions)
    if not ends:
        return mentions
    kept = (
        each
        for each in mentions
        if not any(end.start <= each.start and each.end <= end.end for end in ends)
        or any(each.start == end.start and _is_headed(end) for end in ends)
    )
    return sorted((*kept, *ends), key=lambda each: (each.start, -each.end))


def _is_headed(end: Mention) -> bool:
    """Return whether an end is a name before a common noun: "Berlin summit"."""
    words = end.text.split()
    return words[0][:1].isupper() and words[-1].islower()


def _subject(turn: ReadMessage, mentions: Sequence[Mention], title: Title | None) -> int | None:
    """Return the number of the mention that a message opens with: that is what it is about.

    A text may also open with words about a name: "The author of Our Mutual Friend is …". A turn of
    a conversation that opens with a name and a comma ("Melanie, look!") addresses somebody.
    """
    body = 0 if title is None else title.body
    first = next((n for n, each in enumerate(mentions) if each.start >= body), None)
    if first is None:
        return None
    start, end = mentions[first].start, mentions[first].end
    before = turn.plain[body:start].strip(" \"“'‘*(")
    opens = before in _ARTICLES or (title is None and _DESCRIBED.fullmatch(before) is not None)
    if not opens:
        return None
    return first if turn.source == MEMORY or turn.plain[end : end + 1] != "," else None


def _names_of(messages: Sequence[Message]) -> frozenset[str]:
    """Return the names of the speakers, in lower case, without roles."""
    names = {message.speaker for message in messages if message.speaker[:1].isupper()}
    return frozenset(name_key(name) for name in names) - _NAMELESS


def _read_names(
    builder: DraftBuilder, turn: ReadMessage, mentions: Sequence[Mention], namings: Sequence[Naming]
) -> list[Entity]:
    """Add the names of a message to the draft; return the entity of each mention."""
    same = {each.second: each for each in namings if isinstance(each, Same)}
    letters = {each.mention: each for each in namings if isinstance(each, Alias)}
    roles = [each for each in namings if isinstance(each, Role)]
    named_self = {each.mention for each in namings if not isinstance(each, Same | Alias | Role)}
    entities: list[Entity] = []
    for index, mention in enumerate(mentions):
        if index in same:
            entity = entities[same[index].first]
            builder.add_alias(entity, same[index].alias)
        elif index in named_self and turn.message.speaker != DOCUMENT:
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
    """Add a claim of a message, unless an assistant makes it about itself."""
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
        if name is None or DOCUMENT in (name, turn.message.speaker):
            return  # "you", and "my" in a document, refer to nobody known.
        owner = builder.speaker(name)
        whose = _whose(turn, role, name)
    if owner is entity:
        return
    builder.relate(turn, entity, owner, role.role, role.start, role.end)
    if role.phrase:
        builder.add_alias(entity, f"{whose} {role.phrase}", shared=True)


def _whose(turn: ReadMessage, role: Role, name: str) -> str:
    """Return the possessive at the start of an alias: for the user "my" or "our"."""
    if name_key(name) != USER:
        return f"{name}'s"
    said = turn.plain[role.start : role.end].lower()
    return "our" if role.owner != LISTENER and "our " in said and "my " not in said else "my"

"""Extractors: from what was said to a draft of what would be written. No model, store or clock.

    messages ── Extractor.extract(messages, at) ──▶ Draft(nodes, edges)

    messages ──verbatim──▶ memory or turns
        └─ read by a language reader ─┬─▶ entities, aliases, relations
                                      ├─▶ dates
                                      └─▶ claims

X1  An extractor never makes up what the text does not say: everything it reads out of a text has
    the spans it was read from, and where a rule is unsure it gives nothing.
X2  Equal messages and an equal `at` give an equal draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from blake3 import blake3

from worlddb.claims.claim import claim_metadata, without_clashes
from worlddb.errors import InvalidInputError
from worlddb.ingest.draft_builder import DraftBuilder, Entity, ReadMessage, name_key
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
)
from worlddb.model.drafts import Draft, DraftNode, Extractor, Message

__all__ = ["CHOICES", "DEFAULT", "RulesExtractor", "VerbatimExtractor", "extractor_named"]

DEFAULT = "rules"
CHOICES = ("verbatim", "rules")
MEMORY = "memory"
SESSION = "session"
USER = "user"
_USERS = frozenset(("user", "human", "me"))
# Speakers that are called by what they do.
_NAMELESS = frozenset(
    ("user", "assistant", "system", "human", "ai", "bot", "agent", "tool", "me", "model", "unknown")
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
    if name == "verbatim":
        return VerbatimExtractor()
    if name == "rules":
        return RulesExtractor()
    raise InvalidInputError(
        f"extractor {name!r:.200}: no such extractor; choose one of {', '.join(CHOICES)}"
    )


class VerbatimExtractor:
    """One message is a `Memory`; several are the `Turn`s of one `Session`."""

    name = "verbatim"

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is when they were said, unless they say."""
        if not messages:
            return Draft()
        if len(messages) == 1:
            said = messages[0].at or at
            memory = DraftNode(
                key=MEMORY,
                type="Memory",
                content=messages[0].text,
                created_at=said,
                valid_from=said,
            )
            return Draft(nodes=(memory,))
        began = min(message.at or at for message in messages)
        session = DraftNode(
            key=SESSION, type="Session", name=_name(messages), created_at=began, valid_from=began
        )
        return Draft(nodes=(session, *_turns(messages, at)))


def source_key(messages: Sequence[Message], index: int) -> str:
    """Return the key of the node that holds a message."""
    return MEMORY if len(messages) == 1 else f"turn:{index}"


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
            # Who says "ok" twice has said it twice: a microsecond makes two turns of it.
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
    """

    name = "rules"

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

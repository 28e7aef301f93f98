"""Rules: the default extractor. Names, aliases, relations and dates, by rule and without a model.

    messages ──verbatim──▶ memory or turns
        └─ English? ──masked──▶ mentions ─┬─▶ namings ──▶ entities, aliases, relations
                     ├────────▶ dates ────┼─────────────▶ refers_to
                     └────────▶ claims ───┘

R1  Precision over recall: where a text can be read in two ways, nothing is read.
R2  A name is one node of the draft, whatever the number of mentions. A mention that is the first
    or the last part of one person's full name is that person.
R3  Text that is not English stays verbatim.
R4  In a note, a single text of the user, "the user" is the one who says "I".
R5  What a message claims of somebody is on an edge to them, with the sentence as its span.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from datetime import datetime

from worlddb.claims.claim import claim_metadata
from worlddb.extract.claims import claims_in
from worlddb.extract.clause import Found
from worlddb.extract.dates import dates_in
from worlddb.extract.english import reads_as_english
from worlddb.extract.forms import USER_POSSESSIVE, USER_SUBJECT
from worlddb.extract.gather import Entity, Gathered, Turn, key_of
from worlddb.extract.mask import masked
from worlddb.extract.mentions import Mention, mentions_in
from worlddb.extract.naming import LISTENER, SPEAKER, Alias, Role, Same, namings_in
from worlddb.extract.verbatim import VerbatimExtractor, source_key
from worlddb.model.drafts import Draft, Message

USER = "user"
_USERS = frozenset(("user", "human", "me"))
# Speakers that are called by what they do.
_NAMELESS = frozenset(
    ("user", "assistant", "system", "human", "ai", "bot", "agent", "tool", "me", "model", "unknown")
)


class RulesExtractor:
    """What was said, and the names, aliases, relations and dates it surely speaks of."""

    name = "rules"

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is when they were said, unless they say."""
        verbatim = VerbatimExtractor().extract(messages, at)
        note = len(messages) == 1 and key_of(messages[0].speaker) in _USERS
        read = [
            Turn(index, message, _plain(message.text, note), source_key(messages, index))
            for index, message in enumerate(messages)
            if reads_as_english(message.text)
        ]
        speakers = _names_of(messages)
        found = [mentions_in(turn.message.text, turn.plain, speakers) for turn in read]
        certain = {key_of(each.text) for mentions in found for each in mentions if each.sure}
        # A text of the user alone is a note; all else is spoken to somebody.
        spoken = {key_of(message.speaker) for message in messages}
        if len(messages) == 1:
            spoken -= {USER}
        gathered = Gathered([message.speaker for message in messages])
        for turn, mentions in zip(read, found, strict=True):
            sure = [each for each in mentions if each.sure or key_of(each.text) in certain]
            entities = _read_names(gathered, turn, sure, spoken)
            said = (turn.message.at or at).date()
            dates = list(dates_in(turn.plain, said))
            for dated in dates:
                gathered.add_date(turn, dated)
            ahead = {dated.last for dated in dates if dated.first > said}
            for claim in claims_in(turn.message.text, turn.plain, sure, dates, note=note):
                # "I work at Tern as of next month" says nothing of now.
                if claim.since not in ahead:
                    _read_claim(gathered, turn, entities, claim)
        nodes, edges = gathered.drafts()
        return Draft(nodes=verbatim.nodes + nodes, edges=edges)


def _plain(text: str, note: bool) -> str:
    """Return a text as the rules read it; in a note of the user's, "the user" is who writes it.

    The words are replaced by shorter ones and spaces, so that offsets stay.
    """
    plain = masked(text)
    if not note or "user" not in plain.lower():
        return plain
    plain = USER_POSSESSIVE.sub(lambda match: "my".ljust(len(match[0])), plain)
    return USER_SUBJECT.sub(_as_subject, plain)


def _as_subject(match: re.Match[str]) -> str:
    # Who writes a note in lower case does so with the names in it.
    low = match.start() == 0 and match[0][0].islower()
    return ("i" if low else "I").ljust(len(match[0]))


def _names_of(messages: Sequence[Message]) -> frozenset[str]:
    """Return the names of those who speak, in lower case, as far as they have names."""
    names = {message.speaker for message in messages if message.speaker[:1].isupper()}
    return frozenset(key_of(name) for name in names) - _NAMELESS


def _read_names(
    gathered: Gathered, turn: Turn, mentions: Sequence[Mention], spoken: Set[str]
) -> list[Entity]:
    """Gather the names of a message; return who or what each mention means."""
    if not mentions:
        return []
    namings = namings_in(turn.plain, mentions, spoken)
    same = {each.second: each for each in namings if isinstance(each, Same)}
    letters = {each.mention: each for each in namings if isinstance(each, Alias)}
    roles = [each for each in namings if isinstance(each, Role)]
    named_self = {each.mention for each in namings if not isinstance(each, Same | Alias | Role)}
    entities: list[Entity] = []
    for index, mention in enumerate(mentions):
        if index in same:
            entity = entities[same[index].first]
            gathered.add_alias(entity, same[index].alias)
        elif index in named_self:
            entity = gathered.speaker(turn.message.speaker)
            gathered.add_alias(entity, mention.text)
        else:
            entity = gathered.named(mention)
        gathered.refer(turn, entity, mention.start, mention.end)
        if index in letters:
            alias = letters[index]
            gathered.add_alias(entity, alias.alias)
            gathered.note(turn, entity, alias.start, alias.end)
        entities.append(entity)
    for role in roles:
        _read_role(gathered, turn, role, entities, mentions)
    return entities


def _read_claim(gathered: Gathered, turn: Turn, entities: Sequence[Entity], claim: Found) -> None:
    """Gather what a message claims; of what an assistant says of itself, nothing."""
    speaker = turn.message.speaker
    if isinstance(claim.owner, int):
        subject = entities[claim.owner]
    elif key_of(speaker) in _NAMELESS - _USERS:
        return
    else:
        subject = gathered.speaker(speaker)
    said = claim_metadata(
        claim.relation,
        claim.value,
        True,
        was=claim.was,
        since=claim.since,
        vague=claim.vague,
        yields=claim.yields,
    )
    gathered.claim(turn, subject, said, claim.start, claim.end)


def _read_role(
    gathered: Gathered,
    turn: Turn,
    role: Role,
    entities: Sequence[Entity],
    mentions: Sequence[Mention],
) -> None:
    entity = entities[role.mention]
    if isinstance(role.owner, int):
        owner, whose = entities[role.owner], f"{mentions[role.owner].text}'s"
    else:
        name = turn.message.speaker if role.owner == SPEAKER else gathered.other(turn.message)
        if name is None:
            return  # Whom "you" means is not known.
        owner = gathered.speaker(name)
        whose = _whose(turn, role, name)
    if owner is entity:
        return
    gathered.relate(turn, entity, owner, role.role, role.start, role.end)
    if role.phrase:
        gathered.add_alias(entity, f"{whose} {role.phrase}", shared=True)


def _whose(turn: Turn, role: Role, name: str) -> str:
    """Return the possessive that an alias begins with: the user's own is "my" or "our"."""
    if key_of(name) != USER:
        return f"{name}'s"
    said = turn.plain[role.start : role.end].lower()
    return "our" if role.owner != LISTENER and "our " in said and "my " not in said else "my"

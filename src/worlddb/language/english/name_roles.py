"""Name roles and relations: the roles of names in a text, and relations between two things.

    my manager, Sarah Chen, …   Sarah (my sister)   Dr. Chen, our landlord   Tom's wife Mary
    my dog is called Max        Robert, also known as Bob    X (formerly Twitter)
    International Business Machines (IBM)    my name is Ana

Each rule reads only the words directly before a mention, directly after it, or between two
neighbours. A list looks like an apposition ("my boss, Sarah, and Tom") and is not read.

*Relations* connect two things in a text (`relations_in`).

    The Great Storm caused the Severn Flood.       Rex is a Labrador.
        ╰─ source ╯ frame      ╰─ target ─╯        A Labrador is a kind of dog.

The source opens its sentence, a frame of `frames.txt` follows directly, and the target ends its
clause. Both are names of the text or written like names; for kinds, any noun is allowed. A sentence
with a denial, question or supposition is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from worlddb.language.english.prose import (
    BRANDS,
    GIVEN,
    GIVEN_NAMES,
    MANY,
    PERSONS,
    PETS,
    SMALL,
    STARTERS,
    THINGS,
    Patterns,
    in_quotes,
    listed,
    looks_ordinary,
    of_a_people,
)
from worlddb.language.language_reader import (
    LISTENER,
    SPEAKER,
    Alias,
    Mention,
    Naming,
    Role,
    Same,
    Self,
    StatedRelation,
)
from worlddb.language.proper_names import PLACE_NAMES
from worlddb.language.text_tokens import MONTHS, STOP, WEEKDAYS
from worlddb.language.word_forms import sections

_P = Patterns("name_roles")

_OWNERS = {"my": SPEAKER, "our": SPEAKER, "your": LISTENER}
_ASKED = frozenset(("is", "was", "are", "isn't", "wasn't"))
_GIVEN_TO = listed("roles", "given to")
_OF_PLACES = listed("roles", "of places")
_RIDDEN = listed("roles", "ridden")
_QUALIFIERS = listed("roles", "qualifiers")
_INTRODUCING = ("named ", "called ", 'named "', 'called "', "named “", "called “")
_SELF_ENDS = ("name is ", "name's ", "name’s ", " me ")

BEFORE_MAX = 80  # characters; room for the longest introduction of a name

_MODIFIERS = listed("roles", "modifiers")
_LIVING = PERSONS | MANY | PETS
_ROLES = _LIVING | THINGS
_IRREGULAR = {many: one for one, many in sections("language.english", "roles.txt")["plurals"]}


class RolePhrase(NamedTuple):
    """The words before a name, as "my older sister": owner, role, and the link to the name."""

    start: int
    owner: str
    phrase: str
    role: str
    plural: bool
    tie: str


def role_before(plain: str, position: int) -> RolePhrase | None:
    """Return the role before a name at `position`, if there is one."""
    offset = max(0, position - BEFORE_MAX)
    nearest = _P.OWNER.match(plain, offset, position)
    if nearest is None:
        return None
    match = _P.ROLE_BEFORE.match(plain, nearest.start(1), position)
    if match is None:
        return None
    role = role_of(match[2].split())
    if role is None:
        return None
    name, plural = role
    phrase = " ".join(match[2].split())
    return RolePhrase(match.start(), match[1].lower(), phrase, name, plural, match.lastgroup or "")


def role_of(words: list[str]) -> tuple[str, bool] | None:
    """Return the role in words such as "older sister", and whether it is plural."""
    last = words[-1].lower()
    plural = False
    if last not in _ROLES:
        single = _IRREGULAR.get(last, last.removesuffix("s"))
        if single not in _ROLES or single == last:
            return None
        last, plural = single, True
    if any(word.lower() not in _MODIFIERS for word in words[:-1]):
        return None
    if words[:-1] and (qualifier := words[-2].lower()) in _QUALIFIERS:
        last = f"{qualifier} {last}"
    return last, plural


def introduced(plain: str, position: int) -> bool:
    """Return whether the words at `position` are introduced as a name."""
    if _P.INTRODUCED.search(plain, max(0, position - BEFORE_MAX), position) is not None:
        return True
    role = role_before(plain, position)
    return role is not None and role.role.split()[-1] in _LIVING


def explained(plain: str, position: int) -> bool:
    """Return whether the name that ends at `position` is explained: "Bella is our cat"."""
    match = _P.EXPLAINED.match(plain, position)
    role = role_of(match[1].split()) if match is not None else None
    return role is not None and role[0].split()[-1] in _LIVING


def letters_after(plain: str, position: int) -> re.Match[str] | None:
    """Match letters in brackets after a long name: International Business Machines (IBM)."""
    return _P.LETTERS.match(plain, position)


def initials(text: str) -> str:
    """Return the capital initials of a long name; empty for a single word."""
    words = [word for word in re.split(r"[\s-]+", text) if word[:1].isupper()]
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def namings_in(plain: str, mentions: Sequence[Mention], speakers: Set[str]) -> list[Naming]:
    """Return the roles, aliases and identities that a masked text gives its mentions, in order.

    `speakers` are the names of the participants in a conversation, in lower case. A speaker's name
    after a comma is an address, not a mention: "How is your dog, Caroline?"
    """
    found: list[Naming] = []
    for index, mention in enumerate(mentions):
        if not in_quotes(plain, mention.start):  # "my" is somebody else's there
            found += _before(plain, mentions, index, speakers)
            found += _after(plain, mention, index, speakers)
            if _names_self(plain, mention):
                found.append(Self(index))
        if index:
            found += _between(plain, mentions, index, speakers)
    return found


def _before(
    plain: str, mentions: Sequence[Mention], index: int, speakers: Set[str]
) -> Iterator[Role]:
    mention = mentions[index]
    start = max(0, mention.start - BEFORE_MAX)
    before = role_before(plain, mention.start)
    if before is not None and before.owner in _OWNERS and _fits(before.role, mention):
        last = _list_end(plain, mentions, index) if before.plural else index
        end = mentions[last].end
        comma = before.tie == "comma"
        if _apposed(plain, mention, end, speakers) if comma else _tied(plain, before, end):
            phrase = "" if before.plural else _alias(before.role, before.phrase)
            owner = _OWNERS[before.owner]
            for each in range(index, last + 1):
                yield Role(each, owner, before.role, phrase, before.start, mentions[each].end)
    named = plain.endswith(_INTRODUCING, start, mention.start)
    having = _P.HAVING.search(plain, start, mention.start) if named else None
    doubted = having is not None and _P.DOUBTED.search(plain, start, having.start())
    if having is not None and not doubted and (role := role_of(having[1].split())) is not None:
        last = _list_end(plain, mentions, index) if role[1] else index
        for each in range(index, last + 1):
            yield Role(each, SPEAKER, role[0], "", having.start(), mentions[each].end)


def _apposed(plain: str, mention: Mention, end: int, speakers: Set[str]) -> bool:
    """Return whether a name between commas belongs to the words before the first comma.

    At the end of a sentence it may be an address, if there is somebody to address.
    """
    name = mention.text.lower()
    if any(speaker.startswith(name) for speaker in speakers):
        return False
    return bool(_P.PARTED.match(plain, end) or (not speakers and _P.ENDED.match(plain, end)))


def _tied(plain: str, before: RolePhrase, end: int) -> bool:
    """Return whether "my sister" and the name after it are surely the same person."""
    start = max(0, before.start - BEFORE_MAX)
    if before.tie == "":
        verb = (plain[start : before.start].lower().split() or [""])[-1]
        if verb in _ASKED and _P.QUESTION.match(plain, end):
            return False
        if verb in _GIVEN_TO and not _P.GIVEN_ON.match(plain, end):
            return False
        if before.role in THINGS:
            return _P.GOES_ON.match(plain, end) is None
        return True
    if before.tie == "is":
        closed = _P.STATED_AFTER.match(plain, end) is not None
        return closed and _P.DOUBTED.search(plain, start, before.start) is None
    if before.tie == "of":
        return before.role in _OF_PLACES
    if before.tie == "bracket":
        return plain[end : end + 1] == ")"
    return True


def _alias(role: str, phrase: str) -> str:
    """Return the words that can be an alias; empty if a person can have several such."""
    several = role.split()[-1] in MANY and not role.startswith("best ")
    return "" if several else " ".join(phrase.split())


def _list_end(plain: str, mentions: Sequence[Mention], index: int) -> int:
    """Return the index of the last mention of a list: my dogs Max, Bella and Luna."""
    while index + 1 < len(mentions):
        following = mentions[index + 1]
        if not _P.LISTED.fullmatch(plain, mentions[index].end, following.start):
            break
        if plain[following.end : following.end + 1] in ("'", "’"):
            break
        index += 1
    return index


def _after(plain: str, mention: Mention, index: int, speakers: Set[str]) -> Iterator[Naming]:
    after = _P.ROLE_AFTER.match(plain, mention.end)
    spoken_to = mention.text.lower() in speakers and after is not None and after["apposed"]
    if after is not None and not spoken_to:
        owner, said = next((after[i], after[i + 1]) for i in (2, 5, 8) if after[i] is not None)
        role = role_of(said.split())
        doubted = after["is"] is not None and _P.DOUBTED.search(
            plain, max(0, mention.start - BEFORE_MAX), mention.start
        )
        if role is not None and not role[1] and _fits(role[0], mention) and not doubted:
            phrase = _alias(role[0], said)
            yield Role(index, _OWNERS[owner], role[0], phrase, mention.start, after.end())
    letters = letters_after(plain, mention.end)
    if letters is not None and letters[1] == initials(mention.text):
        yield Alias(index, letters[1], letters.start(1), letters.end(1))


def _between(
    plain: str, mentions: Sequence[Mention], index: int, speakers: Set[str]
) -> Iterator[Naming]:
    """Read the words between a mention and the one before it."""
    first, second = mentions[index - 1], mentions[index]
    gap = (first.end, second.start)
    if second.start - first.end > BEFORE_MAX:
        return
    owned = _P.POSSESSED.fullmatch(plain, *gap)
    if owned is not None and (role := role_of(owned[1].split())) is not None:
        apposed = owned[2] is None or _apposed(plain, second, second.end, speakers)
        if apposed and not role[1] and _fits(role[0], second):
            phrase = _alias(role[0], owned[1])
            yield Role(index, index - 1, role[0], phrase, first.start, second.end)
    elif _P.BORN.fullmatch(plain, *gap):
        given = first.text.split()
        yield Same(index - 1, index, " ".join([*(given[:-1] or given), second.text]))
    elif _otherwise(plain, first, gap):
        yield Same(index - 1, index, second.text)
    elif plain[slice(*gap)] == " (" and initials(second.text) == first.text:
        if plain[second.end : second.end + 1] == ")":
            yield Same(index - 1, index, second.text)
    elif first.person and second.person and _P.CALLED.fullmatch(plain, *gap):
        earlier = mentions[index - 2] if index > 1 else None
        if earlier is None or _P.SENTENCE_END.search(plain, earlier.end, first.start):
            yield Same(index - 1, index, second.text)


def _otherwise(plain: str, first: Mention, gap: tuple[int, int]) -> bool:
    match = _P.OTHERWISE.fullmatch(plain, *gap)
    if match is None:
        return False
    # "She works at Meta, formerly Google" is about her, not about Meta.
    bare = match[1] is not None and "(" not in match[0]
    return not (bare and _P.AT.search(plain, max(0, first.start - 12), first.start))


def _fits(role: str, mention: Mention) -> bool:
    """Return whether a name fits a role: a company is not a sister, a person not a school."""
    head = role.split()[-1]
    if head in THINGS:
        return not mention.person or head in _RIDDEN
    word = mention.text.lower()
    return (word not in BRANDS and word not in PLACE_NAMES) or word in GIVEN


def _names_self(plain: str, mention: Mention) -> bool:
    if plain[mention.end : mention.end + 1] in ("'", "’"):
        return False
    start = max(0, mention.start - BEFORE_MAX)
    before = plain[start : mention.start].lower()
    if before.rstrip('"“').endswith(_SELF_ENDS) and _P.SELF.search(plain, start, mention.start):
        return True
    if not before.endswith(("'m ", "’m ", " am ")) and before != "i am ":
        return False
    first = mention.text.split()[0].lower()
    if first not in GIVEN_NAMES:
        return False
    if _P.I_AM.search(plain, start, mention.start) is None:
        return False
    return _P.I_AM_CLOSED.match(plain, mention.end) is not None


_R = Patterns("text_relations")
# Group of a frame, its edge type, and whether the second end is the source.
_FRAMES = (
    ("causes", "causes", False),
    ("caused_by", "causes", True),
    ("precedes", "precedes", False),
    ("follows", "precedes", True),
    ("subtype_of", "subtype_of", False),
    ("instance_of", "instance_of", False),
    ("contradicts", "contradicts", False),
    ("implies", "implies", False),
)
_BETWEEN_THINGS = frozenset({"causes", "precedes", "contradicts", "implies"})
_ADVERBS = listed("hedges", "adverbs")
_CALENDAR = frozenset((*WEEKDAYS, *MONTHS))
KIND_WORDS_MAX = 2  # "guide dog"; more words are a description


def is_denied(text: str) -> bool:
    """Return whether words deny, ask or suppose."""
    return _R.DENIED.search(text) is not None


def relations_in(text: str, plain: str, mentions: Sequence[Mention]) -> list[StatedRelation]:
    """Return the relations that a text states for certain; an end need not be a mention."""
    if _R.HINT.search(plain) is None:
        return []
    known = {(each.start, each.end): each for each in mentions}
    found: list[StatedRelation] = []
    for match in _R.STATED.finditer(plain):
        type_, is_turned = next((type_, turn) for name, type_, turn in _FRAMES if match[name])
        ends = []
        for side in ("source", "target"):
            span = match.span(side)
            each = known.get(span) or Mention(*span, text[slice(*span)], True, False)
            is_named = plain[: span[0]].lower().endswith("the ") and _is_named_thing(each.text)
            if _is_end(each, span in known, type_, side) or (is_named and type_ in _BETWEEN_THINGS):
                ends.append(each)
        if len(ends) == 2 and not _is_doubtful(plain, match):
            source, target = reversed(ends) if is_turned else ends
            found.append(
                StatedRelation(type_, source, target, *match.span("source")[:1], ends[1].end)
            )
    return found


def _is_end(each: Mention, is_name: bool, type_: str, side: str) -> bool:
    """Return whether a mention or word can be an end of a relation."""
    if each.person:  # "Ann came before Bob" is not an order in time.
        return type_ == "instance_of" and side == "source"
    if is_name:
        return True
    words = each.text.split()
    plain = [word.lower() for word in words]
    if not STOP.isdisjoint((plain[0], plain[-1])):
        return False
    if type_ == "subtype_of":
        return len(words) <= KIND_WORDS_MAX and plain[0] not in STARTERS
    if not all(word[0].isupper() or word in SMALL for word in words):
        return False
    # A word at the start of a sentence may be capitalised only for its position.
    is_own = side == "target" or not (looks_ordinary(plain[0]) or plain[0] in STARTERS)
    return len(words) > 1 or (is_own and not of_a_people(plain[0]) and plain[0] not in _CALENDAR)


def _is_named_thing(text: str) -> bool:
    """Return whether words are a name and one or two words for what it is: "Berlin summit"."""
    words = text.split()
    named = [word for word in words if word[0].isupper() or word in SMALL]
    heads = words[len(named) :]
    return (
        named == words[: len(named)]
        and 1 <= len(heads) <= KIND_WORDS_MAX
        and bool(named)
        and not looks_ordinary(named[0].lower())
        and all(word.isalpha() and not word.endswith("ly") for word in heads)
        and STOP.union(_ADVERBS).isdisjoint(heads)
    )


def _is_doubtful(plain: str, match: re.Match[str]) -> bool:
    """Return whether the sentence of a relation denies, asks, supposes or quotes."""
    rest = _R.SENTENCE.match(plain, match.end())
    said = plain[match.end("source") : match.end() if rest is None else rest.end()]
    return is_denied(said) or in_quotes(plain, match.start("source"))

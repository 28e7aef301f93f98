"""Naming: what a text says of the names in it: who they are to whom, and what else they are called.

    my manager, Sarah Chen, …   Sarah (my sister)   Dr. Chen, our landlord   Tom's wife Mary
    my dog is called Max        Robert, also known as Bob    X (formerly Twitter)
    International Business Machines (IBM)    my name is Ana

Each rule looks only at the words right before a mention, right after it, or between two that
follow each other. A list reads like an apposition ("my boss, Sarah, and Tom"): such a place gives
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from worlddb.extract.lexicon.given import GIVEN, GIVEN_PERHAPS
from worlddb.extract.lexicon.known import BRANDS, PLACES
from worlddb.extract.lexicon.roles import MANY, THINGS
from worlddb.extract.mask import in_quotes
from worlddb.extract.mentions import Mention
from worlddb.extract.phrases import BEFORE_MAX, LETTERS, RolePhrase, initials, role_before, role_of

SPEAKER = "speaker"
LISTENER = "listener"

_OWNERS = {"my": SPEAKER, "our": SPEAKER, "your": LISTENER}
_WORDS = r"((?:[^\W\d_][\w-]*\s+){0,3}[^\W\d_][\w-]*)"
# The end of an apposition: a comma that no list goes on after, or a stop.
_COMMA = r",(?!\s*(?:or|&)\b)(?!\s*and\b(?!\s+(?:s?he|it|they)\b))(?!\s+[A-Z])"
_CLOSED = rf"(?=\s*(?:[.;!?)\n]|\Z|{_COMMA}))"
_STATED = r"(?=\s*(?:[.,;!\n]|\Z|\s(?:and|but|who)\b))"
_ROLE_AFTER = re.compile(
    rf"(?:(?P<apposed>,\s+)(my|our|your)\s+{_WORDS}{_CLOSED}"
    rf"|(?P<bracket>\s+\()(my|our|your)\s+{_WORDS}\)"
    rf"|(?P<is>(?:['’]s|\s+is)\s+)(my|our|your)\s+{_WORDS}{_STATED})"
)
_PARTED = re.compile(rf"\s*(?:[;)]|{_COMMA})")
_ENDED = re.compile(r"\s*(?:[.\n]|\Z)")
_STATED_AFTER = re.compile(_STATED)
_DOUBTED = re.compile(
    r"\b(?:if|whether|wish|unless|imagine|pretend|suppose|think|maybe)\b[^.!?\n]*$", re.I
)
_ASKED = frozenset(("is", "was", "are", "isn't", "wasn't"))
_GIVEN_TO = {
    *("told", "tell", "asked", "ask", "gave", "give", "showed", "show", "sent", "send", "bought"),
    *("buy", "lent", "taught", "offered", "brought", "made", "got", "call", "called"),
}
_GIVEN_ON = re.compile(
    r"\s*(?:[,.;!?)\n]|\Z|\s(?:that|about|to|how|what|why|if|whether|when|I|we)\b)"
)
_HAVING = re.compile(
    r"\b(?:I|we)(?:\s+(?:have|got|adopted|own)|['’]ve(?:\s+(?:got|adopted))?)\s+"
    rf"(?:a|an|one|two|three|four)\s+{_WORDS},?\s+(?:named|called)\s+[\"“]?$",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\s*\?")
# A thing's name right after it may belong to what follows: "my company Slack channel".
_GOES_ON = re.compile(
    r"\s+(?!(?:is|was|has|had|and|but|for|in|on|at|to|with|where|which|that)\b)[a-z]"
)
_OF_PLACES = frozenset(("city", "hometown", "home-town", "town", "village", "state"))
_RIDDEN = frozenset(("car", "truck", "van", "boat"))
_AT = re.compile(r"\b(?:at|for|with|from|of|in|by)\s+$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?\n]")
_INTRODUCING = ("named ", "called ", 'named "', 'called "', "named “", "called “")
_LISTED = re.compile(r",\s+|,?\s+(?:and|&)\s+")
_POSSESSED = re.compile(rf"['’]s?\s+{_WORDS}(,)?\s+")
_OTHERWISE = re.compile(
    r"(?:,?\s+|,?\s*\(\s*)"
    r"(?:(?:is\s+)?(?:also|better|formerly|previously|originally)\s+(?:known\s+as|called|named)"
    r"|a\.?k\.?a\.?|(formerly)|(?:who\s+)?(?:also\s+)?goes\s+by(?:\s+the\s+name)?(?:\s+of)?"
    r"|(?:is\s+)?nicknamed|is\s+short\s+for|or\s+just),?\s+[\"“'‘]?",
    re.IGNORECASE,
)
_BORN = re.compile(r",?\s+\(?(?:née|nee)\s+", re.IGNORECASE)
_CALLED = re.compile(
    r"[^.!?\n]{0,60}[.!?,;]?\s+(?:(?:but|and|so)\s+)?(?:we|I|they|everyone|everybody|people|friends)"
    r"\s+(?:all\s+|just\s+|always\s+)?calls?\s+(?:him|her|it)\s+[\"“'‘]?",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"(?:\bmy\s+(?:first\s+|full\s+|real\s+)?name(?:\s+is|['’]s)"
    r"|(?<!not )(?<!n't )(?<!never )\bcalls?\s+me)\s+[\"“]?$",
    re.IGNORECASE,
)
_SELF_ENDS = ("name is ", "name's ", "name’s ", " me ")
_I_AM = re.compile(r"(?:^|[.!?,\n]\s*)(?:(?:hi|hello|hey)[,!]?\s+)?(?:I['’]m|I\s+am)\s+$", re.I)
_I_AM_CLOSED = re.compile(r"\s*(?:[.,!;\n]|\Z|\s(?:and|from)\b)")


class Role(NamedTuple):
    """The named one is somebody's `role`; `start` to `end` is where the text says so.

    `owner` is the speaker, the listener, or the number of another mention. `phrase` is what may
    serve as an alias after the owner ("older sister"), empty if it may not.
    """

    mention: int
    owner: str | int
    role: str
    phrase: str
    start: int
    end: int


class Same(NamedTuple):
    """Two mentions that the text says are one; `alias` if the second is only part of it."""

    first: int
    second: int
    alias: str


class Alias(NamedTuple):
    """Another name that is no mention of its own: the letters of a long one."""

    mention: int
    alias: str
    start: int
    end: int


class Self(NamedTuple):
    """The speaker says that this is their name."""

    mention: int


Naming = Role | Same | Alias | Self


def namings_in(plain: str, mentions: Sequence[Mention], speakers: Set[str]) -> list[Naming]:
    """Return what a masked text says of its mentions, in order.

    `speakers` are the names of those who take part in a conversation, in lower case. One of them
    after a comma is spoken to, not spoken of: "How is your dog, Caroline?"
    """
    found: list[Naming] = []
    for index, mention in enumerate(mentions):
        if not in_quotes(plain, mention.start):  # "my" is another's there
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
    having = _HAVING.search(plain, start, mention.start) if named else None
    doubted = having is not None and _DOUBTED.search(plain, start, having.start())
    if having is not None and not doubted and (role := role_of(having[1].split())) is not None:
        last = _list_end(plain, mentions, index) if role[1] else index
        for each in range(index, last + 1):
            yield Role(each, SPEAKER, role[0], "", having.start(), mentions[each].end)


def _apposed(plain: str, mention: Mention, end: int, speakers: Set[str]) -> bool:
    """Return whether a name between commas is meant by what stands before the first.

    At the end of a sentence it may be the name of who is spoken to, unless nobody is.
    """
    name = mention.text.lower()
    if any(speaker.startswith(name) for speaker in speakers):
        return False
    return bool(_PARTED.match(plain, end) or (not speakers and _ENDED.match(plain, end)))


def _tied(plain: str, before: RolePhrase, end: int) -> bool:
    """Return whether "my sister" and the name after it are surely one and the same."""
    start = max(0, before.start - BEFORE_MAX)
    if before.tie == "":
        verb = (plain[start : before.start].lower().split() or [""])[-1]
        if verb in _ASKED and _QUESTION.match(plain, end):
            return False
        if verb in _GIVEN_TO and not _GIVEN_ON.match(plain, end):
            return False
        if before.role in THINGS:
            return _GOES_ON.match(plain, end) is None
        return True
    if before.tie == "is":
        closed = _STATED_AFTER.match(plain, end) is not None
        return closed and _DOUBTED.search(plain, start, before.start) is None
    if before.tie == "of":
        return before.role in _OF_PLACES
    if before.tie == "bracket":
        return plain[end : end + 1] == ")"
    return True


def _alias(role: str, phrase: str) -> str:
    """Return the words that may serve as an alias; none if people have several such."""
    several = role.split()[-1] in MANY and not role.startswith("best ")
    return "" if several else " ".join(phrase.split())


def _list_end(plain: str, mentions: Sequence[Mention], index: int) -> int:
    """Return the last of the mentions that go on a list: my dogs Max, Bella and Luna."""
    while index + 1 < len(mentions):
        following = mentions[index + 1]
        if not _LISTED.fullmatch(plain, mentions[index].end, following.start):
            break
        if plain[following.end : following.end + 1] in ("'", "’"):
            break
        index += 1
    return index


def _after(plain: str, mention: Mention, index: int, speakers: Set[str]) -> Iterator[Naming]:
    after = _ROLE_AFTER.match(plain, mention.end)
    spoken_to = mention.text.lower() in speakers and after is not None and after["apposed"]
    if after is not None and not spoken_to:
        owner, said = next((after[i], after[i + 1]) for i in (2, 5, 8) if after[i] is not None)
        role = role_of(said.split())
        doubted = after["is"] is not None and _DOUBTED.search(
            plain, max(0, mention.start - BEFORE_MAX), mention.start
        )
        if role is not None and not role[1] and _fits(role[0], mention) and not doubted:
            phrase = _alias(role[0], said)
            yield Role(index, _OWNERS[owner], role[0], phrase, mention.start, after.end())
    letters = LETTERS.match(plain, mention.end)
    if letters is not None and letters[1] == initials(mention.text):
        yield Alias(index, letters[1], letters.start(1), letters.end(1))


def _between(
    plain: str, mentions: Sequence[Mention], index: int, speakers: Set[str]
) -> Iterator[Naming]:
    """Read what stands between a mention and the one before it."""
    first, second = mentions[index - 1], mentions[index]
    gap = (first.end, second.start)
    if second.start - first.end > BEFORE_MAX:
        return
    owned = _POSSESSED.fullmatch(plain, *gap)
    if owned is not None and (role := role_of(owned[1].split())) is not None:
        apposed = owned[2] is None or _apposed(plain, second, second.end, speakers)
        if apposed and not role[1] and _fits(role[0], second):
            phrase = _alias(role[0], owned[1])
            yield Role(index, index - 1, role[0], phrase, first.start, second.end)
    elif _BORN.fullmatch(plain, *gap):
        given = first.text.split()
        yield Same(index - 1, index, " ".join([*(given[:-1] or given), second.text]))
    elif _otherwise(plain, first, gap):
        yield Same(index - 1, index, second.text)
    elif plain[slice(*gap)] == " (" and initials(second.text) == first.text:
        if plain[second.end : second.end + 1] == ")":
            yield Same(index - 1, index, second.text)
    elif first.person and second.person and _CALLED.fullmatch(plain, *gap):
        earlier = mentions[index - 2] if index > 1 else None
        if earlier is None or _SENTENCE_END.search(plain, earlier.end, first.start):
            yield Same(index - 1, index, second.text)


def _otherwise(plain: str, first: Mention, gap: tuple[int, int]) -> bool:
    match = _OTHERWISE.fullmatch(plain, *gap)
    if match is None:
        return False
    # "She works at Meta, formerly Google" is about her, not about Meta.
    bare = match[1] is not None and "(" not in match[0]
    return not (bare and _AT.search(plain, max(0, first.start - 12), first.start))


def _fits(role: str, mention: Mention) -> bool:
    """Return whether a name may bear a role: no company is a sister, no person a school."""
    head = role.split()[-1]
    if head in THINGS:
        return not mention.person or head in _RIDDEN
    word = mention.text.lower()
    return (word not in BRANDS and word not in PLACES) or word in GIVEN


def _names_self(plain: str, mention: Mention) -> bool:
    if plain[mention.end : mention.end + 1] in ("'", "’"):
        return False
    start = max(0, mention.start - BEFORE_MAX)
    before = plain[start : mention.start].lower()
    if before.rstrip('"“').endswith(_SELF_ENDS) and _SELF.search(plain, start, mention.start):
        return True
    if not before.endswith(("'m ", "’m ", " am ")) and before != "i am ":
        return False
    first = mention.text.split()[0].lower()
    if first not in GIVEN and first not in GIVEN_PERHAPS:
        return False
    if _I_AM.search(plain, start, mention.start) is None:
        return False
    return _I_AM_CLOSED.match(plain, mention.end) is not None

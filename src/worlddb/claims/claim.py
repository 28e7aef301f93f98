"""Claims: what a fact says as subject, relation and value, so that a later one can replace it.

A claim is kept in the metadata of the `refers_to` edge from the fact to its subject, so it is
found again from the subject, and nothing else has to be stored:

    {"relation": "lives in", "value": "Oslo", "functional": true}
    {"relation": "works at", "value": "Tern", "functional": true, "was": "Ibis", "since": …}
    {"relation": "works at", "was": "Tern", "functional": true}        it is no longer so
    {"relation": "job title", "value": "nurse", "functional": true, "yields": true}

What `yields` may be replaced like any other, but replaces nothing, so no draft claims it: who says
"I'm a nurse" may be more than that, until "I'm now a teacher".
"""

from __future__ import annotations

import unicodedata
from bisect import bisect, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from worlddb.language.english.claim_values import tells_change, tells_move, tells_promotion
from worlddb.language.language_reader import StatedClaim
from worlddb.language.proper_names import town_of, width_of
from worlddb.model.address import Id
from worlddb.model.drafts import Span
from worlddb.model.records import Plain

__all__ = [
    "CLAIM_EDGE",
    "FACT",
    "JOB_TITLE",
    "LIVES_IN",
    "STANDS_FOR",
    "WORD_CHARS_MAX",
    "Claim",
    "Claimed",
    "Standing",
    "TimeLine",
    "adds_up",
    "agree",
    "claim_metadata",
    "relation_words",
    "replaces",
    "tells_change",
    "value_key",
    "without_clashes",
]

CLAIM_EDGE = "refers_to"
FACT = "Fact"
STANDS_FOR = "stands_for"
"""The key by which a fact names the longer text that one sentence was quoted from."""
WORD_CHARS_MAX = 200  # A relation or a value is a phrase; a longer one is a sentence.
AGREEING_VALUES_MAX = 20  # more values of one thing cannot all agree, so none is compared
TEXTS_CACHED = 4_096  # the claims of one subject are compared with each other again and again
LIVES_IN = "lives in"
JOB_TITLE = "job title"

_ARTICLES = frozenset(("a", "an", "the"))
# Relations of which one has many at a time, whatever a model says of them: by their first word.
_ADDING_UP = frozenset(
    (
        *("visited", "visits", "travelled", "traveled", "likes", "loves", "enjoys", "dislikes"),
        *("hates", "prefers", "wants", "knows", "met", "owns", "has", "had", "bought", "sold"),
        *("speaks", "plays", "read", "reads", "watched", "saw", "attended", "attends", "ate"),
        *("friend", "friends", "sibling", "siblings", "sister", "brother", "child", "children"),
        *("son", "daughter", "parent", "cousin", "colleague", "pet", "pets", "hobby", "hobbies"),
        *("interest", "interests", "interested", "skill", "skills", "language", "languages"),
        *("allergic", "allergy", "member", "plans", "planned", "mentioned", "said", "made"),
        *("created", "wrote", "built", "won", "tried", "went", "goes", "been", "is", "was", "does"),
        *("did", "uses", "used", "needs", "collects", "studies", "studied", "learned"),
    )
)
# Although they begin like those.
_ONE_AT_A_TIME = frozenset(
    (
        "studies at",
        "is based in",
        "is located in",
        "is married to",
        "is engaged to",
        "is employed by",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Plain):
    """That a subject stands in a relation to a value: Ada, lives in, Oslo.

    `functional` if there is one value at a time, so that a later claim ends an earlier one;
    one may have visited many cities. `was` is a value that is said to hold no longer; without a
    `value`, that is all that is claimed. `since` is a day on which it surely held, if one was
    said. `vague` if it is not known how much the value comprises: a district, a city, a country.
    `text` are the words that make the claim. `fact` and `subject` are the keys of drafted nodes.
    """

    fact: str
    subject: str
    relation: str
    value: str
    functional: bool = False
    evidence: tuple[Span, ...] = ()
    was: str = ""
    since: datetime | None = None
    text: str = ""
    vague: bool = False


class Claimed(NamedTuple):
    """What the metadata of an edge say of a claim; `text` are the words that make it."""

    relation: str
    value: str
    functional: bool
    was: str = ""
    since: datetime | None = None
    text: str = ""
    stands_for: str = ""
    vague: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A functional claim and who states it: the node that is superseded when the claim is.

    It began at `began`, for all that is known, and was `said` at another time; the node itself is
    valid since `valid_from`. If `apart`, the node says other things too, and `text` alone is meant;
    `text` is empty if that is not known. `world` and `members` are the worlds it lives in and is a
    member of. `ends` is when a later claim has ended it; None while it stands. `of_fact`
    if the carrier is a `Fact`, which says nothing else.
    """

    carrier: Id
    subject: Id
    relation: str
    value: str
    was: str
    began: datetime
    said: datetime
    valid_from: datetime
    text: str
    apart: bool
    world: Id
    members: tuple[Id, ...] = ()
    vague: bool = False
    ends: datetime | None = None
    of_fact: bool = False

    @property
    def key(self) -> tuple[Id, str, tuple[str, ...]]:
        """What is claimed by whom."""
        return self.carrier, self.relation, value_key(self.value or self.was)


@lru_cache(maxsize=TEXTS_CACHED)
def relation_words(text: str) -> str:
    """Return a relation in the form in which two are compared: "lives in", not "LIVES_IN"."""
    words = " ".join(text.replace("_", " ").replace("-", " ").casefold().split())
    return words.replace("favourite", "favorite")


@lru_cache(maxsize=TEXTS_CACHED)
def adds_up(relation: str) -> bool:
    """Return whether a relation is one of those of which a subject has several at a time."""
    words = relation_words(relation)
    first, _, rest = words.partition(" ")
    if first == "favorite":
        return not rest
    return first in _ADDING_UP and words not in _ONE_AT_A_TIME


@lru_cache(maxsize=TEXTS_CACHED)
def value_key(text: str) -> tuple[str, ...]:
    """Return what two spellings of one value have in common: case, accents, articles aside."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    folded = "".join(letter for letter in folded if not unicodedata.combining(letter)).strip()
    if _is_address(folded):  # a@x.com has no article, and no part of it is less
        return (folded,)
    spaced = "".join(sign if sign.isalnum() or sign == "_" else " " for sign in folded)
    return tuple(word for word in spaced.split() if word not in _ARTICLES) or (folded,)


def _is_address(text: str) -> bool:
    name, at, host = text.partition("@")
    return bool(name and at and host) and "@" not in host and len(text.split()) == 1


def agree(one: str, other: str) -> bool:
    """Return whether two values may be the same: equal, or one only says more ("Oslo, Norway")."""
    short, long = sorted((value_key(one), value_key(other)), key=len)
    size = len(short)
    return any(long[at : at + size] == short for at in range(len(long) - size + 1))


def replaces(new: Standing, old: Standing) -> bool:
    """Return whether what `new` says cannot hold together with what `old` says.

    "I no longer work at Tern" replaces "I work at Tern" alone, and is replaced by it alone.
    """
    if new.relation != old.relation:
        return False
    if new.value and old.value:
        named = bool(new.was) and value_key(new.was) == value_key(old.value)
        # A head nurse is more than a nurse.
        promoted = new.relation == JOB_TITLE and tells_promotion(new.text)
        if named or promoted:
            return value_key(new.value) != value_key(old.value)
        return not agree(new.value, old.value) and not _may_comprise(new, old)
    if new.value:
        return value_key(new.value) == value_key(old.was)
    return bool(old.value) and value_key(new.was) == value_key(old.value)


def _may_comprise(new: Standing, old: Standing) -> bool:
    """Return whether one may live in both places.

    They are one town of two names (Munich, München), or one is in the other and nobody moved.
    """
    if new.relation == LIVES_IN and town_of(value_key(new.value)) == town_of(value_key(old.value)):
        return True
    if new.relation != LIVES_IN or tells_move(new.text):
        return False
    if new.vague or old.vague:
        return True
    return width_of(value_key(new.value)) != width_of(value_key(old.value))


COMPARED_MAX = 32
"""Values of one relation that stand at a time, or follow a claim, and are compared with it: the
last that were said, the first that follow. More than a few are no time line any more, and a chat
of thousands of them must not take minutes."""


class TimeLine:
    """What stands about one subject and relation, filed so that few claims are compared.

    What stands is filed by value: whether a claim replaces another is asked once for each value.
    What has ended is filed by its end: a claim changes it only if the claim began before that.
    """

    def __init__(self) -> None:
        self.keys: set[tuple[Id, str, tuple[str, ...]]] = set()
        self._claims: list[Standing] = []
        self._standing: dict[tuple[object, ...], dict[int, None]] = {}
        self._by_end: list[tuple[datetime, int]] = []
        self._by_begin: list[tuple[datetime, int]] = []
        self._by_word: list[tuple[datetime, int]] = []

    def add(self, claim: Standing) -> None:
        """File one more claim."""
        number = len(self._claims)
        self.keys.add(claim.key)
        self._claims.append(claim)
        insort(self._by_begin, (claim.began, number))
        insort(self._by_word, (claim.said, number))
        if claim.ends is None:
            # Taken out and put back: the value that was said last comes last.
            numbers = self._standing.pop(_form(claim), {})
            numbers[number] = None
            self._standing[_form(claim)] = numbers
        else:
            insort(self._by_end, (claim.ends, number))

    def end(self, number: int, at: datetime) -> None:
        """Let a claim end at a time, or earlier than it did."""
        old = self._claims[number]
        self._claims[number] = replace(old, ends=at)
        if old.ends is None:
            numbers = self._standing[_form(old)]
            del numbers[number]
            if not numbers:
                del self._standing[_form(old)]
        else:
            self._by_end.remove((old.ends, number))
        insort(self._by_end, (at, number))

    def replaced_by(self, new: Standing) -> list[tuple[int, Standing]]:
        """Return what a claim may end, by number: what stands, and what ended after it began."""
        found: list[int] = []
        for numbers in islice(reversed(self._standing.values()), COMPARED_MAX):
            if replaces(new, self._claims[next(iter(numbers))]):
                found += numbers
        after = bisect(self._by_end, new.began, key=lambda ended: ended[0])
        found += [number for _, number in self._by_end[after : after + COMPARED_MAX]]
        return [(number, self._claims[number]) for number in sorted(found)]

    def later_than(self, new: Standing) -> list[Standing]:
        """Return what may follow a claim: what began later, or was said later."""
        found: set[int] = set()
        for filed, time in ((self._by_begin, new.began), (self._by_word, new.said)):
            after = bisect(filed, time, key=lambda item: item[0])
            found.update(number for _, number in filed[after : after + COMPARED_MAX])
        return [self._claims[number] for number in sorted(found)]


def _form(claim: Standing) -> tuple[object, ...]:
    """Return what decides whether a claim is replaced by another, its times aside."""
    return bool(claim.value), value_key(claim.value), value_key(claim.was), claim.vague


@dataclass(slots=True)
class _Topic:
    """What one message says of one relation of one subject."""

    values: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)  # those that something states that does not yield
    stated: dict[tuple[str, ...], int] = field(default_factory=dict)  # where it is stated last
    over: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, claim: StatedClaim) -> None:
        if not claim.value:
            self.over.add(value_key(claim.was))
            return
        self.values.add(claim.value)
        if not claim.yields:
            self.sure.add(claim.value)
            self.stated[value_key(claim.value)] = claim.start

    def excludes(self, claim: StatedClaim) -> bool:
        if not claim.value:
            return self.stated.get(value_key(claim.was), -1) >= claim.start
        if value_key(claim.value) in self.over:
            return True
        rivals = self.values if claim.yields else self.sure
        if len(rivals) > AGREEING_VALUES_MAX:
            return True
        return any(not agree(claim.value, value) for value in rivals)


def without_clashes(claims: Sequence[StatedClaim]) -> list[StatedClaim]:
    """Return the claims of one message without those that exclude each other.

    What is said to be over by the end of the message is over: "I moved to Oslo but no longer live
    in Oslo" says that, and no more.
    """
    topics: dict[tuple[str | int, str], _Topic] = defaultdict(_Topic)
    for claim in claims:
        topics[claim.owner, claim.relation].add(claim)
    return [one for one in claims if not topics[one.owner, one.relation].excludes(one)]


def claim_metadata(
    relation: str,
    value: str,
    functional: bool,
    *,
    was: str = "",
    since: date | None = None,
    vague: bool = False,
    yields: bool = False,
) -> dict[str, Any]:
    """Return what an edge says of a claim."""
    said: dict[str, Any] = {"relation": relation_words(relation)[:WORD_CHARS_MAX]}
    if value:
        said["value"] = value.strip()[:WORD_CHARS_MAX]
    said["functional"] = functional
    if was:
        said["was"] = was.strip()[:WORD_CHARS_MAX]
    if since is not None:
        said["since"] = since.isoformat()
    if vague:
        said["vague"] = True
    if yields:
        said["yields"] = True
    return said

"""Claims: subject, relation and value of a statement, so that a later statement can replace it.

A claim is kept in the metadata of the `refers_to` edge from the fact to its subject. So it is found
from the subject, and needs no table of its own:

    {"relation": "lives in", "value": "Oslo", "functional": true}
    {"relation": "works at", "value": "Tern", "functional": true, "was": "Ibis", "since": …}
    {"relation": "works at", "was": "Tern", "functional": true}        no longer true
    {"relation": "job title", "value": "nurse", "functional": true, "yields": true}

A claim with `yields` may be replaced like any other but replaces nothing, so no draft claims it:
whoever says "I'm a nurse" may have other jobs, too, until "I'm now a teacher".
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

from worlddb.language.english.claim_values import (
    tells_change,
    tells_move,
    tells_promotion,
    town_of,
    width_of,
)
from worlddb.language.language_reader import StatedClaim
from worlddb.model.address import Id
from worlddb.model.inputs import Plain
from worlddb.model.records import Span

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
"""Metadata key by which a fact names the longer text that its sentence is quoted from."""
WORD_CHARS_MAX = 200  # a relation or a value is a phrase; a longer text is a sentence
AGREEING_VALUES_MAX = 20  # beyond this many values of one relation none is compared
TEXTS_CACHED = 4_096  # claims of one subject are compared many times
LIVES_IN = "lives in"
JOB_TITLE = "job title"

_ARTICLES = frozenset(("a", "an", "the"))
# First words of relations with many values at a time, whatever a model says about them.
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
# Exceptions that begin with one of those words.
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
    """A subject, a relation and a value: Ada, lives in, Oslo.

    `functional` if there is one value at a time, so that a later claim ends an earlier one. `was`
    is a value that no longer holds; without a `value`, nothing else is claimed. `since` is a day on
    which the claim surely held, if one was said. `vague` if the value may be part of another: a
    district, a city, a country. `text` is the wording of the claim. `fact` and `subject` are keys
    of drafted nodes.
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
    """The claim in the metadata of an edge; `text` is its wording."""

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
    """A functional claim of the store or a draft, with the node that states it.

    `carrier` is that node, valid since `valid_from`; it is superseded when the claim is. The claim
    began at `began` and was made at `said`. If `apart`, the carrier says other things, too, and
    only `text` is replaced; `text` is empty if the wording is unknown. `world` and `members` are
    the worlds that the carrier lives in and is a member of. `ends` is when a later claim ended it;
    None while it holds. `of_fact` if the carrier is a `Fact`, which says nothing else.
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
        """Subject, relation and normalised value."""
        return self.carrier, self.relation, value_key(self.value or self.was)


@lru_cache(maxsize=TEXTS_CACHED)
def relation_words(text: str) -> str:
    """Return a relation in a form for comparison: "lives in", not "LIVES_IN"."""
    words = " ".join(text.replace("_", " ").replace("-", " ").casefold().split())
    return words.replace("favourite", "favorite")


@lru_cache(maxsize=TEXTS_CACHED)
def adds_up(relation: str) -> bool:
    """Return whether a subject can have several values of a relation at a time."""
    words = relation_words(relation)
    first, _, rest = words.partition(" ")
    if first == "favorite":
        return not rest
    return first in _ADDING_UP and words not in _ONE_AT_A_TIME


@lru_cache(maxsize=TEXTS_CACHED)
def value_key(text: str) -> tuple[str, ...]:
    """Return a value in a form for comparison, without case, accents and articles."""
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
    """Return whether two values may be the same: equal, or one adds detail ("Oslo, Norway")."""
    short, long = sorted((value_key(one), value_key(other)), key=len)
    size = len(short)
    return any(long[at : at + size] == short for at in range(len(long) - size + 1))


def replaces(new: Standing, old: Standing) -> bool:
    """Return whether `new` and `old` cannot both be true.

    "I no longer work at Tern" replaces only "I work at Tern", and only that replaces it.
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
    """Return whether both places can be true at the same time.

    They are one town with two names (Munich, München), or one contains the other and nobody moved.
    """
    if new.relation == LIVES_IN and town_of(value_key(new.value)) == town_of(value_key(old.value)):
        return True
    if new.relation != LIVES_IN or tells_move(new.text):
        return False
    if new.vague or old.vague:
        return True
    return width_of(value_key(new.value)) != width_of(value_key(old.value))


COMPARED_MAX = 32
"""Values of one relation that a claim is compared with: the last ones said, the first that follow.
With more values there is no time line, and a chat of thousands must not take minutes."""


class TimeLine:
    """The claims about one subject and relation, indexed so that few of them are compared.

    Claims that hold are indexed by value: each value is compared once. Claims that have ended are
    indexed by their end: a new claim changes them only if it began before that.
    """

    def __init__(self) -> None:
        self.keys: set[tuple[Id, str, tuple[str, ...]]] = set()
        self._claims: list[Standing] = []
        self._standing: dict[tuple[object, ...], dict[int, None]] = {}
        self._by_end: list[tuple[datetime, int]] = []
        self._by_begin: list[tuple[datetime, int]] = []
        self._by_word: list[tuple[datetime, int]] = []

    def add(self, claim: Standing) -> None:
        """Add a claim."""
        number = len(self._claims)
        self.keys.add(claim.key)
        self._claims.append(claim)
        insort(self._by_begin, (claim.began, number))
        insort(self._by_word, (claim.said, number))
        if claim.ends is None:
            # Removed and added again: the value said last comes last.
            numbers = self._standing.pop(_form(claim), {})
            numbers[number] = None
            self._standing[_form(claim)] = numbers
        else:
            insort(self._by_end, (claim.ends, number))

    def end(self, number: int, at: datetime) -> None:
        """End a claim at a time, or earlier than its present end."""
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
        """Return the claims that `new` may end, by number: open ones and later ended ones."""
        found: list[int] = []
        for numbers in islice(reversed(self._standing.values()), COMPARED_MAX):
            if replaces(new, self._claims[next(iter(numbers))]):
                found += numbers
        after = bisect(self._by_end, new.began, key=lambda ended: ended[0])
        found += [number for _, number in self._by_end[after : after + COMPARED_MAX]]
        return [(number, self._claims[number]) for number in sorted(found)]

    def later_than(self, new: Standing) -> list[Standing]:
        """Return the claims that may follow `new`: those that began later or were said later."""
        found: set[int] = set()
        for filed, time in ((self._by_begin, new.began), (self._by_word, new.said)):
            after = bisect(filed, time, key=lambda item: item[0])
            found.update(number for _, number in filed[after : after + COMPARED_MAX])
        return [self._claims[number] for number in sorted(found)]


def _form(claim: Standing) -> tuple[object, ...]:
    """Return everything but the times that decides whether another claim replaces a claim."""
    return bool(claim.value), value_key(claim.value), value_key(claim.was), claim.vague


@dataclass(slots=True)
class _Topic:
    """What one message says about one relation of one subject."""

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

    The end of the message decides: "I moved to Oslo but no longer live in Oslo" only says that it
    is over.
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
    """Return the metadata of a claim for an edge."""
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

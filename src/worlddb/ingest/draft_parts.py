"""Draft parts: decisions about single nodes of a draft before it is written.

    origins_of, with_echoes, with_repeats   the origins of nodes, also if they repeat other texts
    without_quarantined                     texts that the scope puts into quarantine
    replaced_memories, same_parts, without_unknown
                                            drafted nodes that exist already or are left out
    add_metadata                            metadata of a memory for its turns and facts

Every write imports this module. The origins are checked only if others than the user are involved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias, TypeVar

from worlddb.claims.claim import Claim, value_key
from worlddb.claims.claim_edges import Stood
from worlddb.errors import RejectedError
from worlddb.identity.store_resolver import StoreResolver
from worlddb.language.text_tokens import node_words
from worlddb.language.word_forms import words_of
from worlddb.model.address import Id
from worlddb.model.inputs import to_micros
from worlddb.model.records import Draft, DraftEdge, Message, Node
from worlddb.model.text_safety import (
    FULL,
    INDEPENDENT,
    NOTE,
    ORIGINS,
    USER,
    Origin,
    least_trusted,
    trust_level,
)
from worlddb.ontology.edge_types import LESS_TRUSTED
from worlddb.store.interface import Reader
from worlddb.view.node_filters import TrustLevels
from worlddb.write.transaction import Transaction

WORD, SENTENCE_END = re.compile(r"\w+"), re.compile(r"(?<=[.!?])\s+|\n+")
CLAUSE_END = re.compile(r"[:;,()\"“”„«»–—]+")  # "Noted: …", "… , says the page"
WORD_CHARS_MIN = 4  # shorter words ("the", "you", "was") are in every text
REPEATED = 0.75  # share of a sentence's words: more than a common topic, less than a quotation
QUOTED_WORDS_MIN = 3  # unrelated texts often share two words in a row
TELLING_WORDS_MIN = 3  # longer words of a clause; with a name or a number, one fewer
QUOTED_LONGER_MIN = 2  # longer words of a sentence that is quoted as a whole: "i live in paris"
LOOKED_FOR = 3  # words by which a clause is looked up: two of them survive a rewording
LOOKED_AT = 16  # newest texts of the world with two of these words that are compared
SENTENCES_MAX = (
    100  # Of a text, each by itself; what is over counts as one, so the cost is bounded.
)
CLAUSES_MAX = 20  # of a sentence; one with more is a list
LOOK_GROWTH = 4  # factor by which a search that found only other worlds' texts goes deeper
QUARANTINE, PENDING = "quarantine", "pending"
"""Metadata key of a text that waits for a decision, and then of the decision."""
NOT_HELD = {"$not": {QUARANTINE: {"$in": [PENDING, "rejected"]}}}
"""The filter of questions that ask for ended texts, too: what is in quarantine was never valid."""
R = TypeVar("R")
TURN_KEY = "turn:"
"""Prefix of the key of a drafted turn; its number follows (`extractors.turn_key`)."""
Origins: TypeAlias = Mapping[str, Sequence[str]]
"""Origins of drafted nodes by key, without nodes of the user alone."""


def confirms(reader: Reader, there: Node, origins: Sequence[str]) -> bool:
    """Return whether `origins` confirm by themselves what a less trusted text says."""
    levels = TrustLevels(reader)
    own = trust_level(origins, levels.settings(there.parent))
    return own > levels.of(there) and INDEPENDENT.issuperset(origins)


def not_trusted(reader: Reader, origins: Origins, home: Id) -> frozenset[str]:
    """Return the keys of drafted nodes that are not fully trusted in their world."""
    settings = TrustLevels(reader).settings(home)
    return frozenset(key for key in origins if trust_level(origins[key], settings) < FULL)


def refuse_quarantined(reader: Reader, origin: Origin | None, world: Id | None) -> None:
    """Refuse a change by an origin whose texts are put into quarantine in a world.

    Raises:
        RejectedError: they are.
    """
    if origin is not None and not trust_level((origin,), TrustLevels(reader).settings(world)):
        raise RejectedError(f"texts of {origin!r} are held in quarantine here")


def without_quarantined(reader: Reader, request: R, home: Id) -> R:
    """Return a write request without the texts that its scope puts in quarantine.

    Such a text is stored with an empty validity, and nothing is extracted from it.
    """
    asked: Any = request
    settings = TrustLevels(reader).settings(home)
    held = {key for key, said in asked.origins.items() if not trust_level(said, settings)}
    if not held:
        return request
    drafted = asked.draft
    gone = {node.key for node in drafted.nodes if node.resolvable and node.key in held}
    kept = tuple(
        replace(node, valid_to=node.valid_from) if node.key in held else node
        for node in drafted.nodes
        if node.key not in gone
    )
    edges = tuple(edge for edge in drafted.edges if held.isdisjoint((edge.source, edge.target)))
    draft = replace(drafted, nodes=kept, edges=edges, aliases={})
    waits = {QUARANTINE: PENDING}
    if asked.memory in held:
        kept_back: R = replace(asked, draft=draft, metadata={**(asked.metadata or {}), **waits})
        return kept_back
    parts = asked.parts or PartChanges()
    told = {key: {**parts.metadata.get(key, {}), **waits} for key in held - gone}
    parts = replace(parts, metadata={**parts.metadata, **told})
    without: R = replace(asked, draft=draft, parts=parts)
    return without


def origins_of(
    draft: Draft, messages: Sequence[Message], whole: Origin | None
) -> dict[str, tuple[str, ...]]:
    """Return the origins of a draft's nodes by key, without nodes of the user alone.

    A text has the origin of its message, a fact those of all texts that it was read from. A name
    has the most trusted origin among its messages, because anybody may mention a name.
    """
    given = _heard_before(
        messages,
        [least_trusted(one for one in (message.origin, whole) if one) for message in messages],
    )
    if all(one == USER for one in given):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for node in draft.nodes:
        said = {given[span.message] for span in node.spans if span.message < len(given)}
        number = node.key.removeprefix(TURN_KEY)
        if number != node.key and number.isdecimal() and int(number) < len(given):
            said = {given[int(number)]}
        elif not said:
            # A session only holds its turns; a node without a span comes from the whole text.
            said = {whole or USER} if node.type == "Session" else set(given)
        if node.resolvable:
            said = {min(said, key=ORIGINS.index)}
        if kept := tuple(sorted(said - {USER})):
            found[node.key] = kept
    return found


def _heard_before(messages: Sequence[Message], origins: Sequence[str]) -> list[str]:
    """Return the origins of messages; an assistant that repeats a tool gets the tool's."""
    if all(trust_level((origin,)) == FULL for origin in origins):
        return list(origins)
    heard = _HeardChat()
    found = []
    for message, origin in zip(messages, origins, strict=True):
        if origin == "assistant" and heard.sentences:
            origin = least_trusted((origin, *heard.repeated_in(message.text)))
        if trust_level((origin,)) == FULL:
            heard.own |= _values_in(message.text)
        elif message.origin != "assistant":
            heard.add(origin, message.text)
        found.append(origin)
    return found


class _HeardChat:
    """The sentences of less trusted speakers of one chat so far, by their words.

    `own` are the numbers and names that trusted speakers said first. Others are told after a less
    trusted speaker alone, so who says them repeats that speaker, in whatever words.
    """

    def __init__(self) -> None:
        self.sentences: list[tuple[str, _Sentence]] = []
        self.own: set[str] = set()
        self._values: dict[str, str] = {}
        self._by_word: dict[str, list[int]] = {}

    def add(self, origin: str, text: str) -> None:
        self._values |= dict.fromkeys(_values_in(text) - self._values.keys() - self.own, origin)
        for sentence in map(_Sentence.of, _sentences(text)):
            for word in sentence.words:
                self._by_word.setdefault(word, []).append(len(self.sentences))
            self.sentences.append((origin, sentence))

    def repeated_in(self, text: str) -> Iterator[str]:
        """Yield the origins of the sentences that a text repeats."""
        yield from (
            self._values[one] for one in (_values_in(text) & self._values.keys()) - self.own
        )
        for sentence in _sentences(text):
            said, clauses = _said_in(sentence)
            known = sorted(
                {word for one in clauses for word in one if word in self._by_word},
                key=lambda word: (len(self._by_word[word]), word),
            )
            numbers = {at for word in known[:LOOKED_AT] for at in self._by_word[word][-LOOKED_AT:]}
            for origin, other in (self.sentences[at] for at in sorted(numbers)):
                if _repeated(said, clauses, (other,)):
                    yield origin


class _Sentence(NamedTuple):
    """A sentence for comparison: its words, and those that are names or numbers."""

    plain: str
    words: frozenset[str]
    telling: frozenset[str]
    asks: bool

    @classmethod
    def of(cls, text: str) -> _Sentence:
        """Return a sentence of a text."""
        plain = _plain(text)
        telling = frozenset(
            word.casefold()
            for at, word in enumerate(WORD.findall(text))
            if (at and len(word) > 1 and word[0].isupper()) or any(map(str.isdigit, word))
        )
        return cls(plain, frozenset(plain.split()), telling, text.rstrip().endswith("?"))


def _values_in(text: str) -> set[str]:
    """Return the numbers and names of a text that hardly two speakers say by chance."""
    words = (word for one in _sentences(text) for word in _Sentence.of(one).telling)
    days = words_of("language.english", "words.txt", "never")  # And feasts.
    return {word for word in words if len(word) >= WORD_CHARS_MIN} - days


def _said_in(sentence: str) -> tuple[_Sentence, list[frozenset[str]]]:
    """Return a sentence, and the words of the sentence and of each of its clauses."""
    clauses = (sentence, *CLAUSE_END.split(sentence)[:CLAUSES_MAX])
    return _Sentence.of(sentence), [frozenset(_plain(one).split()) for one in clauses]


def with_origin(edge: DraftEdge, origins: Origins, memory: str) -> DraftEdge:
    """Return an edge between names with its text's origin; an edge from a text needs none."""
    turns = [f"{TURN_KEY}{span.message}" for span in edge.spans]
    said = {one for key in turns for one in origins.get(key, ())}
    said = said or set(origins.get(memory, ()))
    return replace(edge, metadata={**edge.metadata, NOTE: least_trusted(said)}) if said else edge


def with_echoes(
    reader: Reader,
    origins: Origins,
    claims: Sequence[Claim],
    stood: Stood,
    known: Mapping[str, Id],
) -> Origins:
    """Return origins, with those of a claim's texts added where an assistant repeats the claim.

    A model that has read a memory may say it again in other words. That is no further evidence, so
    a repeated claim gets the origins of the texts that state it.
    """
    found = dict(origins)
    for claim in claims:
        own = found.get(claim.fact, ())
        if INDEPENDENT.issuperset(own) or claim.subject not in known:
            continue
        said = value_key(claim.value)
        same = (
            old.carrier
            for old in stood.claims.get(known[claim.subject], ())
            if old.relation == claim.relation and said == value_key(old.value)
        )
        rows = [row for ident in same if (row := reader.node_row(ident)) is not None]
        more = [one for node in reader.nodes(rows).values() for one in node.origins]
        found[claim.fact] = tuple(dict.fromkeys((*own, *more)))
    return found


def with_repeats(
    reader: Reader, draft: Draft, origins: Origins, inside: Callable[[Iterable[int]], set[int]]
) -> Origins:
    """Return origins, with those of less trusted texts added where a drafted text repeats them.

    The assistant or model has read the memory, or the page itself. `inside` returns the rows in the
    world of the draft.
    """
    texts = _HeardTexts(reader, inside)
    found = dict(origins)
    heard: dict[int, set[str]] = {}
    for node in draft.nodes:
        own = found.get(node.key, ())
        if node.resolvable or not node.content or INDEPENDENT.issuperset(own):
            continue
        if more := texts.repeated_in(node.content):
            found[node.key] = tuple(sorted({*own, *more}))
            number = node.key.removeprefix(TURN_KEY)
            heard.setdefault(int(number) if number.isdecimal() else 0, set()).update(more)
    for node in draft.nodes if heard else ():
        # A fact is worded differently from the sentence that it was read from.
        more = {one for span in node.spans for one in heard.get(span.message, ())}
        if more and not node.resolvable:
            found[node.key] = tuple(sorted({*found.get(node.key, ()), *more}))
    return found


def repeated_origins(
    reader: Reader, text: str, inside: Callable[[Iterable[int]], set[int]]
) -> set[str]:
    """Return the origins of the less trusted texts of a world that a text repeats."""
    return _HeardTexts(reader, inside).repeated_in(text)


@dataclass(frozen=True, slots=True)
class _HeardTexts:
    """The texts of one world, searched by the words of sentences."""

    reader: Reader
    inside: Callable[[Iterable[int]], set[int]]
    said: dict[int, list[_Sentence]] = field(default_factory=dict)
    """The sentences of compared texts, by row."""

    def repeated_in(self, text: str) -> set[str]:
        """Return the origins of the less trusted texts whose sentences a text repeats.

        If a fully trusted text says the same, anybody may repeat it.
        """
        found: set[str] = set()
        levels, now = TrustLevels(self.reader), self.reader.head().time
        for sentence in _sentences(text):
            own = heard = 0.0
            origins: set[str] = set()
            shares = self._shares(sentence)
            for row, node in self.reader.nodes(sorted(shares)).items() if shares else ():
                if levels.of(node) < FULL:
                    heard = max(heard, shares[row])
                    origins.update(node.origins)
                elif node.valid_to is None or to_micros(node.valid_to, "valid_to") > now:
                    own = max(own, shares[row])
            if heard > own:
                found |= origins
        return found

    def _shares(self, sentence: str) -> dict[int, float]:
        """Return the texts that a sentence repeats, each with the share of it that the text has."""
        clauses = [sentence, *CLAUSE_END.split(sentence)[:CLAUSES_MAX]]
        pairs: dict[tuple[str, str], None] = {}
        for clause in dict.fromkeys(clauses):
            words = sorted(set(node_words("", clause)), key=_says_little)[:LOOKED_FOR]
            pairs.update(dict.fromkeys(combinations(words, 2)))
        rows = {row for pair in pairs for row in self._newest(pair)}
        whole, said = _said_in(sentence)
        found = {
            body.row: share
            for body in (self.reader.bodies(sorted(rows)) if rows else ())
            if (share := _repeated(whole, said, self._sentences_of(body.row, body.content)))
        }
        kept = self.inside(found) if found else set()
        return {row: share for row, share in found.items() if row in kept}

    def _sentences_of(self, row: int, text: str) -> list[_Sentence]:
        if row not in self.said:
            self.said[row] = [_Sentence.of(one) for one in _sentences(text)]
        return self.said[row]

    def _newest(self, words: Sequence[str]) -> Iterable[int]:
        """Return the newest texts with some words, up to a limit, inside or not."""
        deep = LOOKED_AT
        while True:
            rows = self.reader.texts.latest(words, deep)
            if len(rows) < deep or len(self.inside(rows)) >= LOOKED_AT:
                return rows
            deep *= LOOK_GROWTH


def _says_little(word: str) -> tuple[bool, int, str]:
    """Return the sort key of a word in a sentence: numbers first, then long words."""
    return not any(sign.isdigit() for sign in word), -len(word), word


def _sentences(text: str) -> list[str]:
    """Return the distinct sentences of a text; beyond a limit the rest counts as one."""
    found = list(dict.fromkeys(filter(None, SENTENCE_END.split(text))))
    if len(found) <= SENTENCES_MAX:
        return found
    return [*found[: SENTENCES_MAX - 1], " ".join(found[SENTENCES_MAX - 1 :])]


def _repeated(
    said: _Sentence, clauses: Sequence[frozenset[str]], others: Iterable[_Sentence]
) -> float:
    """Return the share of a sentence, or of a clause, that another sentence has; 0 if too little.

    To quote the whole other sentence is to repeat it. A different number is a different statement,
    a question states nothing, and a phrase such as "we did it" is too short to be a repetition.
    """
    most = 0.0
    for other in others:
        telling = said.telling | other.telling
        is_quoted = f" {other.plain} " in f" {said.plain} " and not (said.asks and other.asks)
        if is_quoted and _says_something(other.words, telling, QUOTED_LONGER_MIN):
            return 1.0
        for one in () if said.asks else clauses:
            missing = one.difference(other.words)
            share = 1 - len(missing) / max(1, len(one))
            if share > max(most, REPEATED) and not any(map(str.isdigit, missing)):
                most = share if _says_something(one, telling, TELLING_WORDS_MIN) else most
    return most


def _says_something(words: frozenset[str], telling: frozenset[str], longer_min: int) -> bool:
    """Return whether words are more than a phrase that any two texts may share."""
    longer = [word for word in words if len(word) >= WORD_CHARS_MIN or word in telling]
    if not telling.isdisjoint(words):
        longer_min = min(longer_min, TELLING_WORDS_MIN - 1)
    return len(words) >= QUOTED_WORDS_MIN and len(longer) >= longer_min


def _plain(text: str) -> str:
    return " ".join(WORD.findall(text.casefold()))


def not_ended(what: str, old: Id) -> str:
    """Return the note that a more trusted node was not ended."""
    return f"{what}: {LESS_TRUSTED}, {old.short}, which stays"


OF_WHOLE = frozenset({"pinned"})
"""Metadata keys that do not apply to the parts of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChanges:
    """The changes of a write to the parts of a memory, beside writing the drafted ones.

    `metadata` is that of drafted parts, by their keys; `told` that of parts in the store. A part
    `replaces` another, by its key; parts in `ended` end without a successor, now or `at`.
    """

    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    told: Mapping[Id, Mapping[str, Any]] = field(default_factory=dict)
    replaces: Mapping[str, Id] = field(default_factory=dict)
    ended: tuple[Id, ...] = ()
    at: datetime | None = None

    def write(self, tx: Transaction, ids: Mapping[str, Id]) -> None:
        """Write the changes; `ids` are the written parts by key."""
        for key, held in self.metadata.items():
            tx.add_metadata(ids[key], held)
        for ident, held in self.told.items():
            tx.add_metadata(ident, held)
        for key, old in self.replaces.items():
            tx.write_edge("supersedes", ids[key], old)
        for ident in self.ended:
            tx.retire(ident, at=self.at)


def replaced_memories(
    reader: Reader, draft: Draft, known: dict[str, Id], origins: Origins
) -> dict[str, Id]:
    """Remove the texts that drafted ones replace from `known`; return them by key.

    These are texts that end before the drafted ones, and less trusted texts that a more trusted
    speaker confirms. A text that begins after the drafted one follows it, and is not replaced: its
    successors may have ended the drafted one already.
    """
    found: dict[str, Id] = {}
    for node in draft.nodes:
        if not node.resolvable and node.parent is None and node.key in known:
            row = reader.node_row(known[node.key])
            if row is None:
                continue
            there, given = reader.nodes([row])[row], origins.get(node.key, ())
            ends = there.valid_to
            is_longer = ends is not None and (node.valid_to is None or ends < node.valid_to)
            if is_longer or (there.origins and confirms(reader, there, given)):
                old = known.pop(node.key)
                if node.valid_from is None or node.valid_from >= there.valid_from:
                    found[node.key] = old
                for part in draft.nodes:
                    if part.parent == node.key:
                        known.pop(part.key, None)
    return found


def same_parts(resolver: StoreResolver, draft: Draft, key: str, row: int) -> dict[str, Id]:
    """Return the drafted children of a stored node that are in the store, too."""
    drafted = [node for node in draft.nodes if node.parent == key]
    if not drafted:
        return {}
    reader = resolver.reader
    left = list(reader.bodies(reader.children_of([row])))
    known: dict[str, Id] = {}
    for node in drafted:
        for body in left:
            if (body.type, body.name, body.content) == (node.type, node.name, node.content):
                known[node.key] = Id(body.id)
                left.remove(body)
                break
    return known


def without_unknown(draft: Draft, known: Mapping[str, Id]) -> Draft:
    """Return a draft without words that may be names, unless the store knows them as names."""
    left_out = {node.key for node in draft.nodes if node.known_only and node.key not in known}
    if not left_out:
        return draft
    return replace(
        draft,
        nodes=tuple(node for node in draft.nodes if node.key not in left_out),
        edges=tuple(edge for edge in draft.edges if not {edge.source, edge.target} & left_out),
        aliases={key: names for key, names in draft.aliases.items() if key not in left_out},
    )


def add_metadata(
    tx: Transaction, draft: Draft, memory: str, metadata: Mapping[str, Any], ids: Mapping[str, Id]
) -> None:
    """Write the metadata of a memory, with the keys that filters need on its turns and facts."""
    parts = {key: value for key, value in metadata.items() if key not in OF_WHOLE}
    for node in draft.nodes:
        held = metadata if node.key == memory else parts
        if not node.resolvable and held:
            tx.add_metadata(ids[node.key], held)

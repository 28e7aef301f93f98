"""Drafting: from what a model told to the nodes and edges of a draft.

    Session ─ Turn, Turn, …        what was said, verbatim
       ├─ Summary ──derived_from──▶ each Turn
       └─ Fact ──derived_from──▶ the Turn it was read from, with the quote
            └──refers_to──▶ Entity (subject, with the claim; and what else it is about)
    Turn ──refers_to──▶ Entity     where its name stands

A single message is a Memory, with its facts beside it. Entities live in the world that is written
to. A fact whose quote is nowhere in the text is kept and marked; an entity of which no word is in
the text is not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from worlddb.bridge.contract import Told, ToldEntity, ToldFact
from worlddb.bridge.evidence import Texts, date_of
from worlddb.claims.claim import claim_metadata
from worlddb.ingest.extractors import MEMORY, SESSION, VerbatimExtractor, source_key
from worlddb.language.english.claim_context import is_doubtful, is_over, sounds_passing
from worlddb.model.drafts import Draft, DraftEdge, DraftNode, Message, Span

USER = "user"
_OWN = ("my ", "our ")
_PRONOUNS = frozenset(
    (
        *("i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "you", "your", "yours"),
        *("he", "him", "his", "she", "her", "hers", "it", "its", "they", "them", "their", "theirs"),
        *("this", "that", "these", "those", "who", "someone", "somebody", "everyone"),
    )
)
_POSSESSIVE = (*_OWN, "your ", "his ", "her ", "its ", "their ")


@dataclass(slots=True, eq=False)
class _Entity:
    key: str
    name: str
    kind: str
    aliases: dict[str, str] = field(default_factory=dict)
    spans: dict[tuple[int, int], Span] = field(default_factory=dict)


class Drafting:
    """The draft of some messages, as the model's answers come in."""

    def __init__(self, messages: Sequence[Message], at: datetime, extractor: str) -> None:
        self._messages = messages
        self._at = at
        self._extractor = extractor
        self._texts = Texts(messages)
        self._speakers = {_key(message.speaker) for message in messages}
        self._entities: dict[str, _Entity] = {}  # by the key of each name and alias
        self._facts: dict[str, ToldFact] = {}  # by the key of the text
        self._summaries: list[str] = []

    @property
    def names(self) -> list[str]:
        """The names of the entities so far."""
        return list(dict.fromkeys(entity.name for entity in self._entities.values()))

    def add(self, told: Told) -> None:
        """Take in what the model read out of a portion."""
        if told.summary:
            self._summaries.append(told.summary)
        for item in told.entities:
            self._entity(item)
        for fact in told.facts:
            self._facts.setdefault(_key(fact.text), fact)
            for name in (fact.subject, *fact.about):
                if name and _key(name) not in self._entities:
                    self._entity(ToldEntity(name=name))

    def draft(self) -> Draft:
        """Return all of it."""
        verbatim = VerbatimExtractor().extract(self._messages, self._at)
        nodes = list(verbatim.nodes)
        edges: list[DraftEdge] = []
        for node, linked in (*self._summary(), *self._fact_drafts()):
            nodes.append(node)
            edges += linked
        for entity in dict.fromkeys(self._entities.values()):
            nodes.append(self._entity_node(entity))
            edges += self._mentions(entity)
        return Draft(nodes=tuple(nodes), edges=tuple(edges))

    # -- entities ----------------------------------------------------------------------------------

    def _entity(self, item: ToldEntity) -> None:
        """Note an entity, unless the text does not speak of it."""
        found = self._entities.get(_key(item.name))
        aliases = [alias for alias in item.aliases if self._may_call(alias)]
        if found is None:
            names = (item.name, *aliases)
            is_speaker = _key(item.name) in self._speakers
            if not is_speaker and not any(map(self._texts.speaks_of, names)):
                return
            if _key(item.name) in _PRONOUNS:
                return
            found = _Entity(f"entity:{_key(item.name)}", item.name, item.kind)
            self._entities[_key(item.name)] = found
        found.kind = found.kind or item.kind
        for alias in aliases:
            if self._entities.setdefault(_key(alias), found) is found:
                if _key(alias) != _key(found.name):
                    found.aliases.setdefault(_key(alias), alias)

    def _may_call(self, alias: str) -> bool:
        """Return whether the text calls something so, in words that mean the same later."""
        spans = list(self._texts.named(alias))
        lower = f"{_key(alias)} "
        if lower.strip() in _PRONOUNS:
            return False
        if lower.startswith(_OWN):
            # Whose, if somebody else than the user says it?
            return any(_key(self._messages[span.message].speaker) == USER for span in spans)
        return bool(spans) and not lower.startswith(_POSSESSIVE)

    def _entity_node(self, entity: _Entity) -> DraftNode:
        for name in (entity.name, *entity.aliases.values()):
            for span in self._texts.named(name):
                entity.spans.setdefault((span.message, span.start), span)
        return DraftNode(
            key=entity.key,
            type="Entity",
            name=entity.name,
            aliases=tuple(entity.aliases.values()),
            resolvable=True,
            spans=tuple(entity.spans.values()),
        )

    def _mentions(self, entity: _Entity) -> Iterator[DraftEdge]:
        """Yield an edge from each message to an entity that it names."""
        by_message: dict[int, list[Span]] = {}
        for span in entity.spans.values():
            by_message.setdefault(span.message, []).append(span)
        for number, spans in sorted(by_message.items()):
            source = source_key(self._messages, number)
            yield DraftEdge(
                type="refers_to",
                source=source,
                target=entity.key,
                metadata=_span_metadata(spans[0]),
                spans=tuple(spans),
            )

    # -- facts and the summary ---------------------------------------------------------------------

    def _summary(self) -> Iterator[tuple[DraftNode, list[DraftEdge]]]:
        text = "\n".join(self._summaries)
        alone = len(self._messages) == 1
        if not text or (alone and len(text) >= len(self._messages[0].text)):
            return  # A summary that is no shorter than the one text says nothing more.
        began = min(message.at or self._at for message in self._messages)
        node = DraftNode(
            key="summary",
            type="Summary",
            content=text,
            parent=None if alone else SESSION,
            created_at=began,
            valid_from=began,
        )
        yield (
            node,
            [
                DraftEdge(
                    type="derived_from",
                    source=node.key,
                    target=source_key(self._messages, number),
                    metadata={"extractor": self._extractor},
                )
                for number in range(len(self._messages))
            ],
        )

    def _fact_drafts(self) -> Iterator[tuple[DraftNode, list[DraftEdge]]]:
        alone = len(self._messages) == 1
        for number, fact in enumerate(self._facts.values()):
            quote = self._texts.quoted(fact.quote, fact.message) if fact.quote else None
            said = self._said(quote.message if quote else fact.message)
            node = DraftNode(
                key=f"fact:{number}",
                type="Fact",
                content=fact.text,
                parent=None if alone else SESSION,
                created_at=said,
                valid_from=date_of(fact.date, said) or said,
                spans=(quote,) if quote else (),
            )
            yield node, [self._derivation(node, quote), *self._references(node, fact)]

    def _said(self, number: int | None) -> datetime:
        if number is not None and 0 <= number < len(self._messages):
            return self._messages[number].at or self._at
        return min(message.at or self._at for message in self._messages)

    def _derivation(self, node: DraftNode, quote: Span | None) -> DraftEdge:
        """Return the edge to what a fact was read from; it says whether it is quoted there."""
        metadata: dict[str, Any] = {"extractor": self._extractor, "evidence": "none"}
        target = MEMORY if len(self._messages) == 1 else SESSION
        if quote is not None:
            target = source_key(self._messages, quote.message)
            metadata |= {"evidence": "quote", **_span_metadata(quote)}
        return DraftEdge(
            type="derived_from",
            source=node.key,
            target=target,
            metadata=metadata,
            spans=node.spans,
        )

    def _references(self, node: DraftNode, fact: ToldFact) -> Iterator[DraftEdge]:
        """Yield an edge to the subject, with what is claimed of it, and to the others."""
        subject = self._entities.get(_key(fact.subject))
        others = (self._entities.get(_key(name)) for name in (*fact.about, fact.value))
        for entity in dict.fromkeys(item for item in (subject, *others) if item is not None):
            metadata: dict[str, Any] = {"role": "subject" if entity is subject else "about"}
            if entity.kind:
                metadata["kind"] = entity.kind
            if entity is subject and fact.relation and fact.value:
                metadata |= _claim(node, fact)
            yield DraftEdge(
                type="refers_to",
                source=node.key,
                target=entity.key,
                metadata=metadata,
                spans=node.spans,
            )


def _claim(node: DraftNode, fact: ToldFact) -> dict[str, Any]:
    """Return what a fact claims; one in doubt, in passing or without a quote replaces nothing."""
    quote = node.spans[0].text if node.spans else ""
    if fact.functional and quote and is_over(quote):
        return claim_metadata(fact.relation, "", True, was=fact.value)
    sure = bool(quote) and not is_doubtful(quote) and not sounds_passing(quote)
    return claim_metadata(fact.relation, fact.value, fact.functional and sure)


def _key(name: str) -> str:
    """Return what two spellings of one name have in common."""
    return " ".join(name.replace("’", "'").casefold().split())


def _span_metadata(span: Span) -> dict[str, Any]:
    return {"span": [span.start, span.end], "text": span.text}

"""Writing: a conversation becomes a store, session by session, as an agent would remember it.

    session ──extractor──▶ draft ──left out: facts, summaries──▶ db.ingest ──▶ places of the nodes

A place is a session and, where it is one turn's, the turn: so every hit can be traced to what was
said, and compared with the gold. Names of sessions in the file are never written. Summaries are a
model's: those that the consolidator quotes together would only repeat the turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from worlddb.bridge.lenient import NotJsonError
from worlddb.evaluate.cases import Case, Session
from worlddb.evaluate.retrieval import SAID, ingest
from worlddb.model.address import Id
from worlddb.model.drafts import Draft, Extractor, Message

if TYPE_CHECKING:
    from worlddb.db import WorldDB
    from worlddb.evaluate.settings import RunSettings

Place = tuple[int, int | None]
SUMMARY = "Summary"


@dataclass(slots=True)
class Written:
    """Where each node comes from, and what writing took. `unread` sessions got no model's facts."""

    places: dict[Id, list[Place]] = field(default_factory=dict)
    unread: int = 0
    seconds: float = 0.0

    def turns(self) -> dict[Id, list[tuple[int, int]]]:
        """Return the places of single turns."""
        found = {
            ident: [(session, turn) for session, turn in places if turn is not None]
            for ident, places in self.places.items()
        }
        return {ident: turns for ident, turns in found.items() if turns}


class Prepared:
    """An extractor that has read already."""

    def __init__(self, name: str, draft: Draft) -> None:
        self.name = name
        self._draft = draft

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft."""
        return self._draft


def write_case(
    db: WorldDB, case: Case, settings: RunSettings, extractor: Extractor | None
) -> Written:
    """Write a conversation; `extractor` None keeps what was said and reads nothing out of it.

    A session whose text the model cannot put into data is written verbatim and counted.

    Raises:
        ProviderError: the model does not answer.
    """
    started = time.perf_counter()
    written = Written()
    if extractor is None:
        written.places = {ident: [place] for ident, place in ingest(db, case).items()}
    else:
        for place, session in enumerate(case.sessions):
            _write_session(db, place, session, settings, extractor, written)
    written.seconds = time.perf_counter() - started
    return written


def _write_session(
    db: WorldDB,
    place: int,
    session: Session,
    settings: RunSettings,
    extractor: Extractor,
    written: Written,
) -> None:
    numbers = [number for number, turn in enumerate(session.turns) if turn.text.strip()]
    messages = [
        Message(
            text=session.turns[number].text, speaker=session.turns[number].speaker, at=session.at
        )
        for number in numbers
    ]
    if not messages:
        return
    try:
        draft = extractor.extract(messages, session.at)
    except NotJsonError:
        from worlddb.extract.verbatim import VerbatimExtractor

        draft = VerbatimExtractor().extract(messages, session.at)
        written.unread += 1
    draft = without(draft, facts=settings.facts, summaries=settings.summaries)
    done = db.ingest(
        messages,
        extractor=Prepared(extractor.name, draft),
        at=session.at,
        source=f"session {place}",
        actor="evaluation",
        recluster="off",
    )
    told = [node.key for node in draft.nodes if not node.resolvable]
    turns = _turns_of(draft, numbers)
    for key, ident in zip(told, done.memories, strict=True):
        known = written.places.setdefault(ident, [])
        if (place, turns.get(key)) not in known:
            known.append((place, turns.get(key)))


def without(draft: Draft, *, facts: bool, summaries: bool) -> Draft:
    """Return a draft with some of its parts left out; what was said always stays."""
    if facts and summaries:
        return draft
    kept = [
        node
        for node in draft.nodes
        if node.type in (*SAID, "Session") or (summaries if node.type == SUMMARY else facts)
    ]
    keys = {node.key for node in kept}
    edges = tuple(edge for edge in draft.edges if {edge.source, edge.target} <= keys)
    return replace(draft, nodes=tuple(kept), edges=edges)


def _turns_of(draft: Draft, numbers: Sequence[int]) -> dict[str, int]:
    """Return which turn each node of a draft is, or was read from."""
    turns: dict[str, int] = {}
    for node in draft.nodes:
        if node.type in SAID:
            # The keys of the verbatim extractor, on which all others build.
            _, _, number = node.key.partition(":")
            turns[node.key] = numbers[int(number or 0)]
    for source, target in _derived(draft):
        if target in turns:
            turns.setdefault(source, turns[target])
    return turns


def _derived(draft: Draft) -> Iterator[tuple[str, str]]:
    summaries = {node.key for node in draft.nodes if node.type == SUMMARY}
    for edge in draft.edges:
        if edge.type == "derived_from" and edge.source not in summaries:
            yield edge.source, edge.target

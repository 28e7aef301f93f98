"""Case recall: writes a conversation into a store, asks a question, and ranks the gold.

    session ──extractor──▶ draft ──without facts, summaries──▶ db.ingest ──▶ places of the nodes

A place is a session and, for a single turn, its number. Every hit is traced to its place, which is
compared with the gold. The engine gets nothing of the gold: session names of the file are not
written, and ties are broken by address. Summaries are those of a model; the consolidator's would
only quote the turns. `RANK_DEFINITIONS` defines the figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import log2
from typing import TYPE_CHECKING, Any

from worlddb import Draft, Id, Message, NodeDraft
from worlddb.errors import ProviderError
from worlddb.evaluate.benchmark_cases import Case, CaseSession, GoldQuestion
from worlddb.evaluate.run_folder import UnansweredError

if TYPE_CHECKING:
    from worlddb import Hit, LlmExtractor, Recall, RecallSettings, WorldDB
    from worlddb.evaluate.benchmark_cases import RunSettings

DEPTH = 200  # hits per question; gold below that counts as not found
FOUND_AMONG = 10  # a recall's confidence is right if the answer is among so many hits
HITS_KEPT = 50  # per record, enough to audit turns@50
TEXT_KEPT = 160  # characters per hit in a record; the place finds the rest
SESSIONS_AT = (5, 10, 30)
TURNS_AT = (1, 3, 5, 10, 20, 50)
VERBATIM_TYPES = ("Turn", "Memory")  # The types of nodes that have messages word for word.
SUMMARY = "Summary"
ACTOR = "evaluation"
RANK_DEFINITIONS = {
    "n": "questions that have an answer and marked evidence; of turns, those with marked turns",
    "any@k, all@k": "at least one, or all, gold sessions among the first k sessions; a session "
    f"ranks where its best turn does, among the first {DEPTH} turns",
    "ndcg@10, mrr": "of the sessions, with gains of 0 and 1",
    "turns@k": "all gold turns among the first k turns, over the questions with marked turns",
    "recall@k": "the share of gold turns among the first k turns, over the same questions",
    "last@10": "the last fact of a chain is among the first 10 turns",
    "outdated@gold": "something that a gold turn has replaced ranks above every gold turn",
    "tokens@k": "what the first k turns take in a prompt, a token being four characters",
}

Place = tuple[int, int | None]
TurnPlace = tuple[int, int]


@dataclass(slots=True)
class StoredCase:
    """The places of each node, and how long writing took.

    `unread` counts the sessions that were written verbatim because the model's reply had no data.
    """

    places: dict[Id, list[Place]] = field(default_factory=dict)
    unread: int = 0
    seconds: float = 0.0

    def turns(self) -> dict[Id, list[TurnPlace]]:
        """Return the places of single turns."""
        found = {
            ident: [(session, turn) for session, turn in places if turn is not None]
            for ident, places in self.places.items()
        }
        return {ident: turns for ident, turns in found.items() if turns}


def write_case(
    db: WorldDB, case: Case, settings: RunSettings, reader: LlmExtractor | None
) -> StoredCase:
    """Write a conversation; `reader` is the extractor that asks a model, if the settings use one.

    A session without a usable reply is written verbatim and counted.
    """
    started = time.perf_counter()
    stored = StoredCase()
    if settings.reading == "verbatim":
        stored.places = {ident: [place] for ident, place in ingest(db, case).items()}
    else:
        for place, session in enumerate(case.sessions):
            _write_session(db, place, session, settings, reader, stored)
    stored.seconds = time.perf_counter() - started
    return stored


def ingest(db: WorldDB, case: Case) -> dict[Id, TurnPlace]:
    """Write a conversation verbatim: sessions are worlds, turns are nodes in them."""
    places: dict[Id, TurnPlace] = {}
    with db.transaction(actor=ACTOR) as tx:
        for place, session in enumerate(case.sessions):
            world = tx.create_node(type="Session", created_at=session.at, name=f"session {place}")
            ids = tx.create_nodes(
                NodeDraft(
                    type="Turn",
                    name=turn.speaker,
                    content=turn.text,
                    parent=world.id,
                    # Equal turns at one time would be one node; a microsecond separates them.
                    created_at=session.at + timedelta(microseconds=place * 10_000 + number),
                )
                for number, turn in enumerate(session.turns)
            )
            places.update((ident, (place, number)) for number, ident in enumerate(ids))
    return places


class ReadyDraft:
    """An extractor that returns a draft made in advance."""

    def __init__(self, name: str, draft: Draft) -> None:
        self.name = name
        self._draft = draft

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft."""
        return self._draft


def _write_session(
    db: WorldDB,
    place: int,
    session: CaseSession,
    settings: RunSettings,
    reader: LlmExtractor | None,
    stored: StoredCase,
) -> None:
    numbers = [number for number, turn in enumerate(session.turns) if turn.text.strip()]
    said = [session.turns[number] for number in numbers]
    if not said:
        return
    messages = [Message(text=turn.text, speaker=turn.speaker, at=session.at) for turn in said]
    # Rules write no summaries; without facts they write the messages only.
    extractor: ReadyDraft | str = "rules" if settings.facts else "verbatim"
    if reader is not None:
        try:
            draft = reader.extract(messages, session.at)
        except UnansweredError:
            raise
        except ProviderError:
            draft = reader.fallback.extract(messages, session.at)
            stored.unread += 1
        draft = draft_without(draft, facts=settings.facts, summaries=settings.summaries)
        extractor = ReadyDraft(reader.name, draft)
    done = db.ingest(
        messages,
        extractor=extractor,
        at=session.at,
        source=f"session {place}",
        actor=ACTOR,
        recluster="off",
    )
    for ident, turn in _turns_of(db, done.memories, numbers).items():
        known = stored.places.setdefault(ident, [])
        if (place, turn) not in known:
            known.append((place, turn))


def draft_without(draft: Draft, *, facts: bool, summaries: bool) -> Draft:
    """Return a draft without some of its parts; messages always stay."""
    if facts and summaries:
        return draft
    kept = [
        node
        for node in draft.nodes
        if node.type in (*VERBATIM_TYPES, "Session")
        or (summaries if node.type == SUMMARY else facts)
    ]
    keys = {node.key for node in kept}
    edges = tuple(edge for edge in draft.edges if {edge.source, edge.target} <= keys)
    return replace(draft, nodes=tuple(kept), edges=edges)


def _turns_of(db: WorldDB, memories: Iterable[Id], numbers: Sequence[int]) -> dict[Id, int | None]:
    """Return the turn of each memory or of its source; None for a whole session."""
    types = {ident: db.get(ident).type for ident in memories}
    said = [ident for ident, kind in types.items() if kind in VERBATIM_TYPES]
    turns: dict[Id, int | None] = dict(zip(said, numbers, strict=True))
    for ident in types.keys() - turns.keys():
        sources = (
            edge.target
            for edge in db.edges(ident, direction="out", types=["derived_from"])
            if types[ident] != SUMMARY and edge.target in said
        )
        turns[ident] = turns.get(next(sources, ident))
    return turns


# Ranks.


def ask(
    db: WorldDB,
    question: GoldQuestion,
    places: Mapping[Id, Sequence[TurnPlace]],
    settings: RecallSettings | None,
    *,
    at: datetime,
) -> dict[str, Any]:
    """Return the ranks of a question's gold, with enough to audit the figures.

    For a question without an answer only the confidence counts. A node may have several places.
    """
    started = time.perf_counter()
    found: Recall = db.recall(
        question.text, k=DEPTH, types=VERBATIM_TYPES, at=at, settings=settings
    )
    seconds = time.perf_counter() - started
    turns = [place for hit in found for place in places[hit.node.id]]
    sessions = list(dict.fromkeys(session for session, _ in turns))
    first = turns[:FOUND_AMONG]
    is_found = any(
        turn in question.turns if question.turns else turn[0] in question.sessions for turn in first
    )
    outcome = {
        "recall_s": seconds,
        "confidence": found.confidence,
        "is_found": is_found,
        "hits": [
            {
                "turn": list(places[hit.node.id][0]),
                **hit_reasons(hit),
                "text": hit.node.content[:TEXT_KEPT],
            }
            for hit in found.hits[:HITS_KEPT]
        ],
    }
    if not question.has_answer:
        return outcome
    return outcome | {
        "figures": {
            **session_figures(sessions, question.sessions),
            **turn_figures(turns, question.turns),
            **chain_figures(turns, question),
            **{f"tokens@{k}": float(sum(hit.tokens for hit in found.hits[:k])) for k in TURNS_AT},
        },
        "evidence_ranks": {
            "sessions": [[one, _rank(sessions, one)] for one in sorted(question.sessions)],
            "turns": [[*one, _rank(turns, one)] for one in sorted(question.turns)],
        },
    }


def hit_reasons(hit: Hit) -> dict[str, Any]:
    """Return the reasons for a hit's rank: its score, the parts of the score, and its lanes."""
    return {
        "score": round(hit.score, 4),
        "weighed": {part: round(value, 3) for part, value in hit.weighed.items()},
        "fused": round(hit.fused, 6),
        "confidence": hit.confidence,
        "lanes": {
            lane: {"rank": one.rank, "score": round(one.score, 4)}
            for lane, one in hit.lanes.items()
        },
        "tokens": hit.tokens,
    }


def _rank(ranked: Sequence[Any], one: Any) -> int | None:
    """Return the rank of one item, from 1; None if it is not there."""
    return ranked.index(one) + 1 if one in ranked else None


def session_figures(ranked: Sequence[int], gold: frozenset[int]) -> dict[str, float]:
    """Return the figures of a ranking of sessions."""
    figures: dict[str, float] = {}
    for k in SESSIONS_AT:
        among = gold & set(ranked[:k])
        figures[f"any@{k}"] = float(bool(among))
        figures[f"all@{k}"] = float(among == gold)
    gains = sum(1 / log2(rank + 1) for rank, one in enumerate(ranked[:10], 1) if one in gold)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(10, len(gold)) + 1))
    figures["ndcg@10"] = gains / best
    first = next((rank for rank, one in enumerate(ranked, 1) if one in gold), None)
    figures["mrr"] = 1 / first if first else 0.0
    return figures


def turn_figures(ranked: Sequence[TurnPlace], gold: frozenset[TurnPlace]) -> dict[str, float]:
    """Return the figures of a ranking of turns; empty if no turn is marked."""
    figures: dict[str, float] = {}
    for k in TURNS_AT if gold else ():
        among = gold & set(ranked[:k])
        figures[f"turns@{k}"] = float(among == gold)
        figures[f"recall@{k}"] = len(among) / len(gold)
    return figures


def chain_figures(ranked: Sequence[TurnPlace], question: GoldQuestion) -> dict[str, float]:
    """Return whether the end of a chain is found, and whether an outdated turn is above gold."""
    figures: dict[str, float] = {}
    if question.last is not None:
        figures["last@10"] = float(question.last in ranked[:10])
    if question.outdated:
        first = next(
            (rank for rank, one in enumerate(ranked) if one in question.turns), len(ranked)
        )
        figures["outdated@gold"] = float(bool(question.outdated & set(ranked[:first])))
    return figures

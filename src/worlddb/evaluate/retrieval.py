"""Retrieval: ask every question of a benchmark, and see where the gold sessions and turns rank.

A conversation becomes a store in memory: sessions are worlds, turns are nodes in them. No model but
the embedder takes part, and nothing of the gold reaches the engine: names of sessions are replaced,
and ties are broken by content address. `DEFINITIONS` says what the figures are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import log2
from typing import TYPE_CHECKING, Any

from worlddb.db import WorldDB
from worlddb.evaluate.cases import Asked, Case, asked_at
from worlddb.model.address import Id
from worlddb.model.records import NodeDraft

if TYPE_CHECKING:
    from worlddb.embed.protocol import Embedder
    from worlddb.recall.hits import Hit, Recall
    from worlddb.recall.recaller import RecallSettings

DEPTH = 200
HITS_KEPT = 50
TEXT_KEPT = 160
"""How many characters of a hit are kept; its place says where the rest is."""
SESSIONS_AT = (5, 10, 30)
TURNS_AT = (5, 10, 20, 50)
SAID = ("Turn", "Memory")
"""The types of nodes that hold what was said, word for word."""
DEFINITIONS = {
    "n": "questions that have an answer and marked evidence; of turns, those with marked turns",
    "any@k, all@k": "at least one, or all, gold sessions among the first k sessions; a session "
    f"ranks where its best turn does, among the first {DEPTH} turns",
    "ndcg@10, mrr": "of the sessions, with gains of 0 and 1",
    "turns@k": "all gold turns among the first k turns, over the questions with marked turns",
    "recall@k": "the share of gold turns among the first k turns, over the same questions",
    "tokens@k": "what the first k turns take in a prompt, a token being four characters",
}

DEFINITIONS_OF = {
    "dmr": {
        "n": "questions whose answer's words stand in a row in some turn. The benchmark marks no "
        "evidence: these turns, and their sessions, are taken for gold by a rule of ours"
    }
}
"""What is meant otherwise in some benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question: its figures, and enough to audit them."""

    id: str
    category: str
    question: str
    figures: dict[str, float]
    seconds: float
    tokens: int
    gold: list[list[int]] = field(default_factory=list)
    hits: list[dict[str, Any]] = field(default_factory=list)
    evidence: dict[str, Any] = field(default_factory=dict)


def evaluate(
    cases: Iterable[Case],
    *,
    embedder: Embedder | str | None = None,
    settings: RecallSettings | None = None,
    on_question: Callable[[int], None] = lambda done: None,
) -> Iterator[Outcome]:
    """Yield the outcome of each question that has an answer.

    Raises:
        ProviderError: the embedder failed.
    """
    done = 0
    for case in cases:
        questions = [one for one in case.questions if is_measured(one)]
        if questions:
            with WorldDB(":memory:", embedder=embedder) as db:
                places = ingest(db, case)
                # What the first question to a store pays once is not what a question costs.
                db.recall("hello", k=1, types=["Turn"], settings=settings)
                for question in questions:
                    yield ask(db, question, places, settings, at=asked_at(case, question))
                    done += 1
                    on_question(done)


def is_measured(question: Asked) -> bool:
    """Return whether there is something to find: an answer, and gold that says where."""
    return question.has_answer and bool(question.sessions)


def ingest(db: WorldDB, case: Case) -> dict[Id, tuple[int, int]]:
    """Write a conversation; return where in it each turn's node comes from."""
    places: dict[Id, tuple[int, int]] = {}
    with db.transaction(actor="evaluation") as tx:
        for place, session in enumerate(case.sessions):
            world = tx.create_node(type="Session", created_at=session.at, name=f"session {place}")
            ids = tx.create_nodes(
                NodeDraft(
                    type="Turn",
                    name=turn.speaker,
                    content=turn.text,
                    parent=world.id,
                    # Equal turns at one time would be one node.
                    created_at=session.at + timedelta(microseconds=place * 10_000 + number),
                )
                for number, turn in enumerate(session.turns)
            )
            places.update((ident, (place, number)) for number, ident in enumerate(ids))
    return places


def ask(
    db: WorldDB,
    question: Asked,
    places: Mapping[Id, tuple[int, int] | Sequence[tuple[int, int]]],
    settings: RecallSettings | None,
    *,
    at: datetime,
) -> Outcome:
    """Return where the gold of a question ranks; a node may come from several places."""
    started = time.perf_counter()
    found: Recall = db.recall(question.text, k=DEPTH, types=SAID, at=at, settings=settings)
    seconds = time.perf_counter() - started
    turns = [place for hit in found for place in _several(places[hit.node.id])]
    sessions = list(dict.fromkeys(session for session, _ in turns))
    return Outcome(
        id=question.id,
        category=question.category,
        question=question.text,
        figures={
            **session_figures(sessions, question.sessions),
            **turn_figures(turns, question.turns),
            **{f"tokens@{k}": float(sum(hit.tokens for hit in found.hits[:k])) for k in TURNS_AT},
        },
        seconds=seconds,
        tokens=sum(hit.tokens for hit in found.hits[:10]),
        gold=sorted(map(list, question.turns)) or sorted([place] for place in question.sessions),
        hits=[
            {
                "turn": list(_several(places[hit.node.id])[0]),
                **why(hit),
                "text": hit.node.content[:TEXT_KEPT],
            }
            for hit in found.hits[:HITS_KEPT]
        ],
        evidence={
            "sessions": [[one, _rank(sessions, one)] for one in sorted(question.sessions)],
            "turns": [[*one, _rank(turns, one)] for one in sorted(question.turns)],
        },
    )


def why(hit: Hit) -> dict[str, Any]:
    """Return why a hit is where it is: its score, what that is the sum of, and its lanes."""
    return {
        "score": round(hit.score, 4),
        "weighed": {part: round(value, 3) for part, value in hit.weighed.items()},
        "fused": round(hit.fused, 6),
        "lanes": {
            lane: {"rank": one.rank, "score": round(one.score, 4)}
            for lane, one in hit.lanes.items()
        },
        "tokens": hit.tokens,
    }


def _rank(ranked: Sequence[Any], one: Any) -> int | None:
    """Return where something ranks, from 1 on; None if it does not."""
    return ranked.index(one) + 1 if one in ranked else None


def _several(place: Any) -> Sequence[tuple[int, int]]:
    return (place,) if isinstance(place, tuple) else place


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


def turn_figures(
    ranked: Sequence[tuple[int, int]], gold: frozenset[tuple[int, int]]
) -> dict[str, float]:
    """Return the figures of a ranking of turns; none if no turn is marked."""
    figures: dict[str, float] = {}
    for k in TURNS_AT if gold else ():
        among = gold & set(ranked[:k])
        figures[f"turns@{k}"] = float(among == gold)
        figures[f"recall@{k}"] = len(among) / len(gold)
    return figures


def means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the mean of each figure over the questions that have it."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.figures)
    return {
        name: sum(values) / len(values)
        for name in names
        if (values := [one.figures[name] for one in outcomes if name in one.figures])
    }

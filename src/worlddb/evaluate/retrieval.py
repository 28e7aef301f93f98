"""Retrieval: ask every question of a benchmark, and see where the gold sessions and turns rank.

A conversation becomes a store in memory: sessions are worlds, turns are nodes in them. No model but
the embedder takes part, and nothing of the gold reaches the engine.

    any@k, all@k   at least one, or all, gold sessions among the first k sessions
    ndcg@10, mrr   of the sessions, with gains of 0 and 1
    turns@k        all gold turns among the first k turns; recall@k the share of them
A session ranks where its best turn does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import log2
from typing import TYPE_CHECKING, Any

from worlddb.db import WorldDB
from worlddb.evaluate.cases import Asked, Case
from worlddb.model.id import Id
from worlddb.model.values import NodeDraft

if TYPE_CHECKING:
    from worlddb.embed.protocol import Embedder
    from worlddb.read.hits import Recall
    from worlddb.read.recall import RecallSettings

DEPTH = 200
SESSIONS_AT = (5, 10)
TURNS_AT = (5, 10, 20, 50)
LEFT_OUT = frozenset({"abstention", "adversarial"})
"""Questions whose right answer is that there is none."""


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
        questions = [one for one in case.questions if one.category not in LEFT_OUT and one.sessions]
        if questions:
            with WorldDB(":memory:", embedder=embedder) as db:
                places = ingest(db, case)
                # What the first question to a store pays once is not what a question costs.
                db.recall("hello", k=1, types=["Turn"], settings=settings)
                for question in questions:
                    yield _ask(db, question, places, settings)
                    done += 1
                    on_question(done)


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


def _ask(
    db: WorldDB,
    question: Asked,
    places: dict[Id, tuple[int, int]],
    settings: RecallSettings | None,
) -> Outcome:
    started = time.perf_counter()
    found: Recall = db.recall(
        question.text, k=DEPTH, types=["Turn"], at=question.at, settings=settings
    )
    seconds = time.perf_counter() - started
    turns = [places[hit.node.id] for hit in found]
    sessions = list(dict.fromkeys(session for session, _ in turns))
    return Outcome(
        id=question.id,
        category=question.category,
        question=question.text,
        figures={
            **session_figures(sessions, question.sessions),
            **turn_figures(turns, question.turns),
        },
        seconds=seconds,
        tokens=sum(hit.tokens for hit in found.hits[:10]),
        gold=sorted(map(list, question.turns)) or sorted([place] for place in question.sessions),
        hits=[
            {
                "turn": place,
                "score": round(hit.score, 4),
                "ranks": {lane: rank.rank for lane, rank in hit.lanes.items()},
            }
            for place, hit in zip(turns[:50], found, strict=False)
        ],
    )


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

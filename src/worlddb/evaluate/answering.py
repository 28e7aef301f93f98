"""Answering: one question from recall to verdict.

    question ──recall──▶ memories ──answerer──▶ answer ──judge──▶ CORRECT or WRONG
                                        └──────scoring──────────▶ exact, f1, match

The memories are given in the order of time, those of a session as they were said in it, each with
the day its session took place.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from worlddb.evaluate.calls import Calls, KeptChat
from worlddb.evaluate.cases import Asked, Case, asked_at
from worlddb.evaluate.prompting import Prompts, answer_in, filled, is_correct
from worlddb.evaluate.retrieval import SAID, why
from worlddb.evaluate.scoring import score
from worlddb.evaluate.writing import Place, Written
from worlddb.model.drafts import Extractor

if TYPE_CHECKING:
    from worlddb.db import WorldDB
    from worlddb.evaluate.settings import RunSettings
    from worlddb.recall.hits import Hit, Recall

TIME = "%Y/%m/%d (%a) %H:%M"
NOTHING = "(nothing was found)"
READING_SPLITS_MAX = 3
"""How often a session is halved whose reading was cut: each time takes two requests more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The models of a run. Without a judge, answers are scored and not judged."""

    prompts: Prompts
    calls: Calls
    answerer: KeptChat
    judge: KeptChat | None = None
    extractor: KeptChat | None = None

    def make_extractor(self) -> Extractor | None:
        """Return what reads conversations by the extractor's model, if there is one."""
        if self.extractor is None:
            return None
        from worlddb.bridge.extractor import LlmExtractor

        return LlmExtractor(
            self.extractor, prompt=self.prompts.extract, splits_max=READING_SPLITS_MAX
        )


def answer(
    db: WorldDB,
    case: Case,
    question: Asked,
    written: Written,
    settings: RunSettings,
    roles: Roles,
) -> dict[str, Any]:
    """Return everything about the answer to a question that is needed to audit it.

    Raises:
        ProviderError: a model failed.
    """
    at = asked_at(case, question)
    started = time.perf_counter()
    found = found_for(db, case, question, settings)
    recalled = time.perf_counter()
    hits = [(hit, written.places.get(hit.node.id, [])) for hit in found]
    with roles.calls.counting() as spent:
        told = filled(
            roles.prompts.answer,
            date=at.strftime(TIME),
            memories=memories_of(case, hits),
            question=question.text,
        )
        reply = roles.answerer.ask([{"role": "user", "content": told}])
        answered = time.perf_counter()
        says = answer_in(reply.text)
        verdict = _verdict(question, says, roles)
    return {
        "answer": says,
        "reply": reply.text,
        "is_cut": reply.is_cut,
        "verdict": verdict,
        "correct": None if roles.judge is None else is_correct(verdict or ""),
        "score": score(says, question.reference).to_dict(),
        "evidence": evidence_in([place for _, places in hits for place in places], question),
        "context": [_told(hit, places) for hit, places in hits],
        "context_tokens": sum(hit.tokens for hit in found),
        "tokens": {role: list(counts) for role, counts in spent.tokens.items()},
        "times": {
            "recall_s": recalled - started,
            "answer_s": answered - recalled,
            "judge_s": time.perf_counter() - answered,
        },
    }


def found_for(db: WorldDB, case: Case, question: Asked, settings: RunSettings) -> Recall:
    """Return the memories that the answerer is given, the best first.

    Raises:
        ProviderError: the embedder failed.
    """
    return db.recall(
        question.text,
        k=settings.k,
        max_tokens=settings.context_tokens,
        at=asked_at(case, question),
        settings=settings.recall_settings(),
    )


def _verdict(question: Asked, says: str, roles: Roles) -> str | None:
    # Nothing is no answer, also where the right one is that nothing is known.
    if roles.judge is None or not says:
        return None
    told = filled(
        roles.prompts.judge, question=question.text, reference=question.reference, answer=says
    )
    return roles.judge([{"role": "user", "content": told}])


def memories_of(case: Case, hits: Sequence[tuple[Hit, Sequence[Place]]]) -> str:
    """Return hits as lines, in the order of time and, within a session, of what was said.

    What was read out of a turn follows that turn, and what is of a whole session follows all of
    its turns; among those the better comes first.
    """
    lines = []
    for rank, (hit, places) in enumerate(hits):
        session, turn = places[0] if places else (None, None)
        at = hit.node.valid_from if session is None else case.sessions[session].at
        of_session = -1 if session is None else session
        of_turn = len(case.sessions[of_session].turns) if turn is None else turn
        is_read = hit.node.type not in SAID
        lines.append(((at, of_session, of_turn, is_read, rank), _line(hit, at)))
    return "\n".join(line for _, line in sorted(lines)) or NOTHING


def _line(hit: Hit, at: datetime) -> str:
    node = hit.node
    who = (node.name or "user") if node.type in SAID else node.type
    # One memory, one line: nothing in it can pretend to be the next.
    return f"[{at.strftime(TIME)}] {who}: {' '.join((node.content or node.name).split())}"


def evidence_in(places: Sequence[Place], question: Asked) -> dict[str, Any]:
    """Return which of the gold was among the memories; None where nothing is marked."""
    sessions = {session for session, _ in places} & question.sessions
    turns = {(session, turn) for session, turn in places if turn is not None} & question.turns
    return {
        "sessions": sorted(sessions),
        "turns": sorted(map(list, turns)),
        "all_sessions": sessions == question.sessions if question.sessions else None,
        "all_turns": turns == question.turns if question.turns else None,
    }


def _told(hit: Hit, places: Sequence[Place]) -> dict[str, Any]:
    return {
        "id": str(hit.node.id),
        "type": hit.node.type,
        "places": [list(place) for place in places],
        **why(hit),
        "text": hit.node.content or hit.node.name,
    }

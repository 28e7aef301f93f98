"""DMR: deep memory retrieval, the multi-session chats with a question of MemGPT's paper.

What is read of each item (JSON Lines, as published under the name MSC-Self-Instruct, or an array):

    previous_dialogs   [{"dialog": [{"text", "id"?}], "time_back"? | "time_num"?, "time_unit"?}]
    dialog             [{"text", "id"?}]: the last session
    self_instruct      {"B": the question, "A": the answer}
    metadata           {"initial_data_id"?}: the name of the question

Everything else (personas, summaries) is left out: it holds the answers in other words. Turns
without an `id` are said by Speaker 1 and Speaker 2 in turn. Chats have no dates, only how long ago
they were ("5 days 3 hours ago"), counted here from noon of a fixed day; one that does not say is a
day before the next.

No evidence is marked. For retrieval, gold are the turns that have the answer's words in a row,
which is a rule of ours and not the benchmark's; questions without such a turn have no figures.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from worlddb.evaluate.cases import Asked, Case, Session, Turn, text_in

ASKED_AT = datetime(2024, 1, 1, 12, tzinfo=UTC)
CATEGORY = "dmr"
_PERIOD = re.compile(r"(\d+)\s*(minute|hour|day|week|month|year)s?", re.IGNORECASE)
_HOURS = {"minute": 1 / 60, "hour": 1, "day": 24, "week": 168, "month": 720, "year": 8760}
_WORD = re.compile(r"\w+")


def dmr_case(item: dict[str, Any], place: int) -> Case:
    """Return a chat with its one question.

    Raises:
        KeyError, TypeError, ValueError: it is no such item.
    """
    earlier = item["previous_dialogs"]
    if not isinstance(earlier, list):
        raise TypeError("previous_dialogs: is no list")
    sessions: list[Session] = []
    before = ASKED_AT
    for said in reversed([*earlier, {"dialog": item["dialog"], "time_back": "1 minute"}]):
        ago = _ago(said)
        # The order of the file holds, whatever the times say.
        at = min(before - timedelta(seconds=1), ASKED_AT - ago) if ago else before - _DAY
        before = at
        if turns := _turns(said["dialog"]):
            sessions.insert(0, Session(at, turns))
    pair = item["self_instruct"]
    question, answer = text_in(pair["B"]).strip(), text_in(pair["A"]).strip()
    if not question or not answer:
        raise ValueError("self_instruct: B, the question, or A, the answer, is empty")
    gold = _gold(sessions, answer)
    name = item.get("metadata", {}).get("initial_data_id", place)
    asked = Asked(
        id=str(name),
        category=CATEGORY,
        text=question,
        at=ASKED_AT,
        sessions=frozenset(session for session, _ in gold),
        turns=gold,
        reference=answer,
    )
    return Case(tuple(sessions), (asked,))


_DAY = timedelta(days=1)


def _turns(items: list[dict[str, Any]]) -> tuple[Turn, ...]:
    return tuple(
        Turn(str(item.get("id") or f"Speaker {1 + number % 2}"), text_in(item["text"]))
        for number, item in enumerate(items)
    )


def _ago(said: dict[str, Any]) -> timedelta:
    """Return how long ago a chat was; nothing if it does not say."""
    text = str(said.get("time_back") or f"{said.get('time_num')} {said.get('time_unit')}")
    hours = sum(int(number) * _HOURS[unit.lower()] for number, unit in _PERIOD.findall(text))
    return timedelta(hours=hours)


def _gold(sessions: list[Session], answer: str) -> frozenset[tuple[int, int]]:
    wanted = _words(answer)
    return frozenset(
        (place, number)
        for place, session in enumerate(sessions)
        for number, turn in enumerate(session.turns)
        if wanted.strip() and wanted in _words(turn.text)
    )


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "

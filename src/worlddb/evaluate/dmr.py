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
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from worlddb.evaluate.cases import Asked, Case, Session, Turn
from worlddb.evaluate.layout import LayoutError, list_in, object_in, text_in

ASKED_AT = datetime(2024, 1, 1, 12, tzinfo=UTC)
CATEGORY = "dmr"
_PERIOD = re.compile(r"(\d+)\s*(minute|hour|day|week|month|year)s?", re.IGNORECASE)
_HOURS = {"minute": 1 / 60, "hour": 1, "day": 24, "week": 168, "month": 720, "year": 8760}
_WORD = re.compile(r"\w+")


def dmr_case(item: dict[str, Any], place: int) -> Case:
    """Return a chat with its one question.

    Raises:
        KeyError, LayoutError: it is no such item.
    """
    earlier = [
        (object_in(one, f"previous_dialogs, {number}"), f"previous_dialogs, {number}, dialog")
        for number, one in enumerate(list_in(item["previous_dialogs"], "previous_dialogs"), 1)
    ]
    sessions: list[Session] = []
    before = ASKED_AT
    last = {"dialog": item["dialog"], "time_back": "1 minute"}
    for said, what in reversed([*earlier, (last, "dialog")]):
        ago = _ago(said)
        # The order of the file holds, whatever the times say.
        at = min(before - timedelta(seconds=1), ASKED_AT - ago) if ago else before - _DAY
        before = at
        if turns := tuple(_turns(said["dialog"], what)):
            sessions.insert(0, Session(at, turns))
    pair = object_in(item["self_instruct"], "self_instruct")
    question, answer = (text_in(pair[key], f"self_instruct, {key}").strip() for key in "BA")
    if not question or not answer:
        raise LayoutError("self_instruct: B, the question, or A, the answer, is empty")
    gold = _gold(sessions, answer)
    name = object_in(item.get("metadata", {}), "metadata").get("initial_data_id")
    asked = Asked(
        id=str(place if name is None else name),
        category=CATEGORY,
        text=question,
        at=ASKED_AT,
        sessions=frozenset(session for session, _ in gold),
        turns=gold,
        reference=answer,
    )
    return Case(tuple(sessions), (asked,))


_DAY = timedelta(days=1)


def _turns(items: Any, what: str) -> Iterator[Turn]:
    for number, one in enumerate(list_in(items, what)):
        item = object_in(one, f"{what}, {number + 1}")
        speaker = str(item.get("id") or f"Speaker {1 + number % 2}")
        yield Turn(speaker, text_in(item["text"], f"{what}, {number + 1}, text"))


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

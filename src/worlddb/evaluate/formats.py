"""Formats: the items of LongMemEval and LoCoMo files as cases.

LongMemEval, any variant: `question_id`, `question_type`, `question`, `answer`, `question_date`,
`haystack_dates`, `haystack_session_ids`, `haystack_sessions` (turns with `role`, `content` and
perhaps `has_answer`), `answer_session_ids`. An id with `_abs` asks for what was never said.

LoCoMo: `conversation` with `session_N` (turns with `speaker`, `dia_id`, `text`, perhaps
`blip_caption`) and `session_N_date_time`; `qa` with `question`, `answer`, `evidence`, `category`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from worlddb.evaluate.cases import ADVERSARIAL, Asked, Case, Session, Turn, text_in

LOCOMO_CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: ADVERSARIAL,
}
NOT_SAID = "The conversation does not mention it."
"""The reference of an adversarial question: its key only has the answer to fall for."""
_LONGMEMEVAL_TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) \(\w+\) (\d\d):(\d\d)")
_LOCOMO_TURN = re.compile(r"D:?(\d+):(\d+)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


def longmemeval_case(item: dict[str, Any], place: int) -> Case:
    """Return a question with its haystack.

    Raises:
        KeyError, TypeError, ValueError: it is no such item.
    """
    gold = set(item["answer_session_ids"])
    ids = item["haystack_session_ids"]
    sessions = tuple(
        Session(
            _time(at),
            tuple(Turn(text_in(turn["role"]), text_in(turn["content"])) for turn in turns),
        )
        for at, turns in zip(item["haystack_dates"], item["haystack_sessions"], strict=True)
    )
    if len(ids) != len(sessions):
        raise ValueError(f"{len(ids)} session ids for {len(sessions)} sessions")
    question = Asked(
        id=text_in(item["question_id"]),
        category=text_in(item["question_type"]),
        text=text_in(item["question"]),
        at=_time(item["question_date"]),
        sessions=frozenset(place for place, name in enumerate(ids) if name in gold),
        turns=frozenset(
            (place, number)
            for place, turns in enumerate(item["haystack_sessions"])
            for number, turn in enumerate(turns)
            if turn.get("has_answer")
        ),
        reference=str(item["answer"]),
        has_answer="_abs" not in item["question_id"],
    )
    return Case(sessions, (question,))


def _time(text: str) -> datetime:
    match = _LONGMEMEVAL_TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"no date: {text!r}")
    year, month, day, hour, minute = map(int, match.groups())
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def locomo_case(item: dict[str, Any], place: int) -> Case:
    """Return a conversation with its questions, which are asked after its last session.

    Raises:
        KeyError, TypeError, ValueError: it is no such item.
    """
    talk = item["conversation"]
    numbers = sorted(
        int(key.removeprefix("session_"))
        for key, turns in talk.items()
        if re.fullmatch(r"session_\d+", key) and isinstance(turns, list)
    )
    places: dict[str, tuple[int, int]] = {}
    sessions = []
    for session_place, number in enumerate(numbers):
        turns = talk[f"session_{number}"]
        at = datetime.strptime(talk[f"session_{number}_date_time"], _LOCOMO_TIME)
        for turn_place, turn in enumerate(turns):
            places[turn["dia_id"]] = (session_place, turn_place)
        sessions.append(Session(at.replace(tzinfo=UTC), tuple(map(_locomo_turn, turns))))
    name = str(item.get("sample_id", place))
    return Case(tuple(sessions), tuple(_locomo_questions(item["qa"], places, name)))


def _locomo_turn(turn: dict[str, Any]) -> Turn:
    seen, said = turn.get("blip_caption"), text_in(turn["text"])
    return Turn(text_in(turn["speaker"]), f"{said} [shares {seen}]" if seen else said)


def _turn_names(text: str) -> list[str]:
    """Return the turns that a key names, also where it is misspelt (`D:11:26`, `D30:05`)."""
    return [f"D{int(one)}:{int(two)}" for one, two in _LOCOMO_TURN.findall(text)]


def _locomo_questions(
    items: Iterable[dict[str, Any]], places: dict[str, tuple[int, int]], name: str
) -> Iterator[Asked]:
    for number, item in enumerate(items):
        named = [name for text in item.get("evidence") or () for name in _turn_names(text)]
        gold = frozenset(places[name] for name in named if name in places)
        category = LOCOMO_CATEGORIES[item["category"]]
        is_answerable = category != ADVERSARIAL
        yield Asked(
            id=f"{name}:{number}",
            category=category,
            text=text_in(item["question"]),
            at=None,
            sessions=frozenset(session for session, _ in gold),
            turns=gold,
            reference=str(item.get("answer", "")) if is_answerable else NOT_SAID,
            has_answer=is_answerable,
        )

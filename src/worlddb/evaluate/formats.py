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

from worlddb.evaluate.cases import ADVERSARIAL, Asked, Case, Session, Turn
from worlddb.evaluate.layout import LayoutError, list_in, object_in, reference_in, text_in

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
        KeyError, LayoutError: it is no such item.
    """
    name = text_in(item["question_id"], "question_id")
    gold = {
        text_in(one, f"answer_session_ids, {number}")
        for number, one in enumerate(list_in(item["answer_session_ids"], "answer_session_ids"), 1)
    }
    ids = list_in(item["haystack_session_ids"], "haystack_session_ids")
    dates = list_in(item["haystack_dates"], "haystack_dates")
    talks = list_in(item["haystack_sessions"], "haystack_sessions")
    for what, others in (("haystack_session_ids", ids), ("haystack_dates", dates)):
        if len(others) != len(talks):
            raise LayoutError(f"has {len(talks)} haystack_sessions, but {len(others)} {what}")
    sessions = tuple(
        Session(
            _time(at, f"haystack_dates, {number}"),
            tuple(_longmemeval_turns(talk, f"haystack_sessions, {number}")),
        )
        for number, (at, talk) in enumerate(zip(dates, talks, strict=True), 1)
    )
    question = Asked(
        id=name,
        category=text_in(item["question_type"], "question_type"),
        text=text_in(item["question"], "question"),
        at=_time(item["question_date"], "question_date"),
        sessions=frozenset(place for place, one in enumerate(ids) if one in gold),
        turns=frozenset(
            (place, number)
            for place, talk in enumerate(talks)
            for number, turn in enumerate(talk)
            if turn.get("has_answer")
        ),
        reference=reference_in(item["answer"], "answer"),
        has_answer="_abs" not in name,
        gold_missing=len(gold.difference(one for one in ids if isinstance(one, str))),
    )
    return Case(sessions, (question,))


def _longmemeval_turns(talk: Any, what: str) -> Iterator[Turn]:
    for number, item in enumerate(list_in(talk, what), 1):
        turn = object_in(item, f"{what}, {number}")
        yield Turn(
            text_in(turn["role"], f"{what}, {number}, role"),
            text_in(turn["content"], f"{what}, {number}, content"),
        )


def _time(text: Any, what: str) -> datetime:
    match = _LONGMEMEVAL_TIME.fullmatch(text_in(text, what))
    try:
        year, month, day, hour, minute = map(int, match.groups() if match else ())
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        raise LayoutError(f"{what}: is no date: {text!r:.50}") from None


def locomo_case(item: dict[str, Any], place: int) -> Case:
    """Return a conversation with its questions, which are asked after its last session.

    Raises:
        KeyError, LayoutError: it is no such item.
    """
    talk = object_in(item["conversation"], "conversation")
    numbers = sorted(
        int(key.removeprefix("session_"))
        for key, turns in talk.items()
        if re.fullmatch(r"session_\d+", key) and isinstance(turns, list)
    )
    places: dict[str, tuple[int, int]] = {}
    sessions = []
    for session_place, number in enumerate(numbers):
        turns = talk[f"session_{number}"]
        for turn_place, one in enumerate(turns):
            what = f"session_{number}, {turn_place + 1}"
            turn = object_in(one, what)
            places[text_in(turn["dia_id"], f"{what}, dia_id")] = (session_place, turn_place)
        said = tuple(
            _locomo_turn(turn, f"session_{number}, {at}") for at, turn in enumerate(turns, 1)
        )
        key = f"session_{number}_date_time"
        sessions.append(Session(_locomo_time(talk[key], key), said))
    name = str(place if item.get("sample_id") is None else item["sample_id"])
    questions = _locomo_questions(list_in(item["qa"], "qa"), places, name)
    return Case(tuple(sessions), tuple(questions))


def _locomo_time(text: Any, what: str) -> datetime:
    try:
        return datetime.strptime(text_in(text, what), _LOCOMO_TIME).replace(tzinfo=UTC)
    except LayoutError:
        raise
    except ValueError:
        raise LayoutError(f"{what}: is no date: {text!r:.50}") from None


def _locomo_turn(turn: dict[str, Any], what: str) -> Turn:
    seen, said = turn.get("blip_caption"), text_in(turn["text"], f"{what}, text")
    speaker = text_in(turn["speaker"], f"{what}, speaker")
    return Turn(speaker, f"{said} [shares {seen}]" if seen else said)


def _turn_names(text: str) -> list[str]:
    """Return the turns that a key names, also where it is misspelt (`D:11:26`, `D30:05`)."""
    return [f"D{int(one)}:{int(two)}" for one, two in _LOCOMO_TURN.findall(text)]


def _locomo_questions(
    items: Iterable[Any], places: dict[str, tuple[int, int]], name: str
) -> Iterator[Asked]:
    for number, one in enumerate(items):
        what = f"qa, {number + 1}"
        item = object_in(one, what)
        keys = list_in(item.get("evidence") or [], f"{what}, evidence")
        named = {
            turn
            for key in keys
            for turn in _turn_names(text_in(key, f"{what}, evidence")) or [str(key)]
        }
        gold = frozenset(places[turn] for turn in named if turn in places)
        if item["category"] not in tuple(LOCOMO_CATEGORIES):
            raise LayoutError(f"{what}, category: is none of 1 to 5")
        category = LOCOMO_CATEGORIES[item["category"]]
        is_answerable = category != ADVERSARIAL
        yield Asked(
            id=f"{name}:{number}",
            category=category,
            text=text_in(item["question"], f"{what}, question"),
            at=None,
            sessions=frozenset(session for session, _ in gold),
            turns=gold,
            reference=(
                reference_in(item.get("answer"), f"{what}, answer") if is_answerable else NOT_SAID
            ),
            has_answer=is_answerable,
            gold_missing=sum(turn not in places for turn in named),
        )

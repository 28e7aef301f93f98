"""Conversation sets: LongMemEval, LoCoMo and deep memory retrieval (DMR), item by item.

Each function yields the case of one item of a file, or raises `KeyError` or `LayoutError`.

LongMemEval, any variant: `question_id`, `question_type`, `question`, `answer`, `question_date`,
`haystack_dates`, `haystack_session_ids`, `haystack_sessions` (turns with `role`, `content` and
perhaps `has_answer`), `answer_session_ids`. An id with `_abs` asks for what was never said.

LoCoMo: `conversation` with `session_N` (turns with `speaker`, `dia_id`, `text`, perhaps
`blip_caption`) and `session_N_date_time`; `qa` with `question`, `answer`, `evidence`, `category`.

DMR, published as MSC-Self-Instruct: `previous_dialogs` (each with `dialog` and `time_back`, or
`time_num` and `time_unit`), `dialog` (the last session), `self_instruct` (`B` the question, `A` the
answer), `metadata` (`initial_data_id`). Personas and summaries are not read: they hold the answers
in other words. Turns without an `id` alternate between two speakers. Chats have no dates, only how
long ago they were, counted here from noon of a fixed day; one that does not say is a day before the
next. No evidence is marked: turns that have the answer's words in a row are taken for gold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from worlddb.evaluate.benchmark_cases import (
    ADVERSARIAL,
    Case,
    CaseSession,
    CaseTurn,
    GoldQuestion,
    LayoutError,
    list_in,
    object_in,
    reference_in,
    text_in,
)

_LOCOMO_NAMES = ("multi-hop", "temporal", "open-domain", "single-hop", ADVERSARIAL)
LOCOMO_CATEGORIES = dict(enumerate(_LOCOMO_NAMES, 1))
NOT_SAID = "The conversation does not mention it."
"""The reference of an adversarial question: the file only has the answer to fall for."""
DMR_ASKED_AT = datetime(2024, 1, 1, 12, tzinfo=UTC)
_LONGMEMEVAL_TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) \(\w+\) (\d\d):(\d\d)")
_LOCOMO_TURN = re.compile(r"D:?(\d+):(\d+)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_DAY = timedelta(days=1)
_PERIOD = re.compile(r"(\d+)\s*(minute|hour|day|week|month|year)s?", re.IGNORECASE)
_HOURS = {"minute": 1 / 60, "hour": 1, "day": 24, "week": 168, "month": 720, "year": 8760}
_WORD = re.compile(r"\w+")


def longmemeval_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield a question with its haystack of sessions."""
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
        CaseSession(
            _longmemeval_time(at, f"haystack_dates, {number}"),
            tuple(_longmemeval_turns(talk, f"haystack_sessions, {number}")),
        )
        for number, (at, talk) in enumerate(zip(dates, talks, strict=True), 1)
    )
    question = GoldQuestion(
        id=name,
        category=text_in(item["question_type"], "question_type"),
        text=text_in(item["question"], "question"),
        at=_longmemeval_time(item["question_date"], "question_date"),
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
    yield Case(sessions, (question,))


def _longmemeval_turns(talk: Any, what: str) -> Iterator[CaseTurn]:
    for number, item in enumerate(list_in(talk, what), 1):
        turn = object_in(item, f"{what}, {number}")
        yield CaseTurn(
            text_in(turn["role"], f"{what}, {number}, role"),
            text_in(turn["content"], f"{what}, {number}, content"),
        )


def _longmemeval_time(text: Any, what: str) -> datetime:
    match = _LONGMEMEVAL_TIME.fullmatch(text_in(text, what))
    try:
        year, month, day, hour, minute = map(int, match.groups() if match else ())
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        raise LayoutError(f"{what}: is no date: {text!r:.50}") from None


def locomo_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield a conversation with its questions, which are asked after its last session."""
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
        sessions.append(CaseSession(_locomo_time(talk[key], key), said))
    name = str(place if item.get("sample_id") is None else item["sample_id"])
    questions = _locomo_questions(list_in(item["qa"], "qa"), places, name)
    yield Case(tuple(sessions), tuple(questions))


def _locomo_time(text: Any, what: str) -> datetime:
    said = text_in(text, what)
    try:
        return datetime.strptime(said, _LOCOMO_TIME).replace(tzinfo=UTC)
    except ValueError:
        raise LayoutError(f"{what}: is no date: {text!r:.50}") from None


def _locomo_turn(turn: dict[str, Any], what: str) -> CaseTurn:
    seen, said = turn.get("blip_caption"), text_in(turn["text"], f"{what}, text")
    speaker = text_in(turn["speaker"], f"{what}, speaker")
    return CaseTurn(speaker, f"{said} [shares {seen}]" if seen else said)


def _locomo_gold(key: str) -> list[str]:
    """Return the turns that a piece of evidence names; some are misspelt (`D:11:26`, `D30:05`)."""
    return [f"D{int(one)}:{int(two)}" for one, two in _LOCOMO_TURN.findall(key)] or [key]


def _locomo_questions(
    items: Iterable[Any], places: dict[str, tuple[int, int]], name: str
) -> Iterator[GoldQuestion]:
    for number, one in enumerate(items):
        what = f"qa, {number + 1}"
        item = object_in(one, what)
        keys = list_in(item.get("evidence") or [], f"{what}, evidence")
        named = {turn for key in keys for turn in _locomo_gold(text_in(key, f"{what}, evidence"))}
        gold = frozenset(places[turn] for turn in named if turn in places)
        if item["category"] not in tuple(LOCOMO_CATEGORIES):
            raise LayoutError(f"{what}, category: is none of 1 to 5")
        category = LOCOMO_CATEGORIES[item["category"]]
        has_answer = category != ADVERSARIAL
        answer = reference_in(item.get("answer"), f"{what}, answer") if has_answer else NOT_SAID
        yield GoldQuestion(
            id=f"{name}:{number}",
            category=category,
            text=text_in(item["question"], f"{what}, question"),
            at=None,
            sessions=frozenset(session for session, _ in gold),
            turns=gold,
            reference=answer,
            has_answer=has_answer,
            gold_missing=sum(turn not in places for turn in named),
        )


def dmr_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield a chat with its one question."""
    earlier = [
        (object_in(one, f"previous_dialogs, {number}"), f"previous_dialogs, {number}, dialog")
        for number, one in enumerate(list_in(item["previous_dialogs"], "previous_dialogs"), 1)
    ]
    sessions: list[CaseSession] = []
    before = DMR_ASKED_AT
    last = {"dialog": item["dialog"], "time_back": "1 minute"}
    for said, what in reversed([*earlier, (last, "dialog")]):
        ago = _dmr_ago(said)
        # The order of the file holds, whatever the times say.
        at = min(before - timedelta(seconds=1), DMR_ASKED_AT - ago) if ago else before - _DAY
        before = at
        if turns := tuple(_dmr_turns(said["dialog"], what)):
            sessions.insert(0, CaseSession(at, turns))
    pair = object_in(item["self_instruct"], "self_instruct")
    question, answer = (text_in(pair[key], f"self_instruct, {key}").strip() for key in "BA")
    if not question or not answer:
        raise LayoutError("self_instruct: B, the question, or A, the answer, is empty")
    wanted = _words(answer)
    gold = frozenset(
        (session_place, number)
        for session_place, session in enumerate(sessions)
        for number, turn in enumerate(session.turns)
        if wanted.strip() and wanted in _words(turn.text)
    )
    name = object_in(item.get("metadata", {}), "metadata").get("initial_data_id")
    asked = GoldQuestion(
        id=str(place if name is None else name),
        category="dmr",
        text=question,
        at=DMR_ASKED_AT,
        sessions=frozenset(session for session, _ in gold),
        turns=gold,
        reference=answer,
    )
    yield Case(tuple(sessions), (asked,))


def _dmr_turns(items: Any, what: str) -> Iterator[CaseTurn]:
    for number, one in enumerate(list_in(items, what)):
        item = object_in(one, f"{what}, {number + 1}")
        speaker = str(item.get("id") or f"Speaker {1 + number % 2}")
        yield CaseTurn(speaker, text_in(item["text"], f"{what}, {number + 1}, text"))


def _dmr_ago(said: dict[str, Any]) -> timedelta:
    """Return how long ago a chat was; zero if it does not say."""
    text = str(said.get("time_back") or f"{said.get('time_num')} {said.get('time_unit')}")
    hours = sum(int(number) * _HOURS[unit.lower()] for number, unit in _PERIOD.findall(text))
    return timedelta(hours=hours)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "

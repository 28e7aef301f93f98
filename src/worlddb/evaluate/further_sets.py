"""Further sets: BEAM (long project chats), TimeQA (articles), MemDaily (Chinese messages).

Each function yields the cases of one item of a file, or raises `KeyError` or `LayoutError`.

BEAM: `name`, `sessions` (`at`, `turns` with `id`, `role`, `content`), `questions` (`id`,
`category`, `question`, `answer`, `evidence`: ids of turns). The category `abstention` asks for what
was never said. Questions are asked after the last session.

TimeQA: `link`, `paras`, `questions` (each a text and a list of answers with `para`, the number of
their paragraph). An article is a session and each of its paragraphs a turn, said by the title. A
question without an answer is one that the article does not answer.

MemDaily: one object, from the name of a kind to its trajectories (`message_list` with `mid`,
`message`, `time`; `question_list` with `question`, `answer`, `time`, `target_step_id`). A message
is a session of one turn. Among the messages of a trajectory are `OTHERS` messages of others, drawn
by a fixed seed: alone, a trajectory is too short to be searched.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from worlddb.evaluate.benchmark_cases import (
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

ABSTAINS = "abstention"
OTHERS = 100  # of other people's messages, the size at which the set is reported
OTHERS_SEED = 7
ARTICLE_AT = datetime(2024, 1, 1, tzinfo=UTC)  # Articles have no date of their own.
_CHINESE_TIME = re.compile(r"(\d{4})年(\d\d)月(\d\d)日\s*\S*\s+(\d\d):(\d\d)")


def beam_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield a chat with its questions."""
    places: dict[str, tuple[int, int]] = {}
    sessions = []
    for number, one in enumerate(list_in(item["sessions"], "sessions")):
        session = object_in(one, f"sessions, {number + 1}")
        turns = []
        for at, given in enumerate(list_in(session["turns"], f"sessions, {number + 1}, turns")):
            turn = object_in(given, f"sessions, {number + 1}, turns, {at + 1}")
            places[str(turn["id"])] = (number, at)
            what = f"sessions, {number + 1}, turns, {at + 1}, content"
            turns.append(CaseTurn(str(turn["role"]), text_in(turn["content"], what)))
        said_at = _iso_time(session["at"], f"sessions, {number + 1}, at")
        sessions.append(CaseSession(said_at, tuple(turns)))
    questions = []
    for number, one in enumerate(list_in(item["questions"], "questions"), 1):
        asked = object_in(one, f"questions, {number}")
        named = [str(turn) for turn in list_in(asked["evidence"], f"questions, {number}, evidence")]
        gold = frozenset(places[turn] for turn in named if turn in places)
        questions.append(
            GoldQuestion(
                id=text_in(asked["id"], f"questions, {number}, id"),
                category=text_in(asked["category"], f"questions, {number}, category"),
                text=text_in(asked["question"], f"questions, {number}, question"),
                at=None,
                sessions=frozenset(session for session, _ in gold),
                turns=gold,
                reference=reference_in(asked["answer"], f"questions, {number}, answer"),
                has_answer=asked["category"] != ABSTAINS,
                gold_missing=sum(turn not in places for turn in named),
            )
        )
    yield Case(tuple(sessions), tuple(questions))


def _iso_time(text: Any, what: str) -> datetime:
    try:
        return datetime.fromisoformat(text_in(text, what)).astimezone(UTC)
    except ValueError:
        raise LayoutError(f"{what}: is no date: {text!r:.50}") from None


def timeqa_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield an article with its questions; the empty paragraphs are left out."""
    link = text_in(item["link"], "link")
    title = link.rpartition("/")[2].replace("_", " ") or link
    paragraphs = [
        text_in(one, f"paras, {number}")
        for number, one in enumerate(list_in(item["paras"], "paras"), 1)
    ]
    kept = [number for number, text in enumerate(paragraphs) if text.strip()]
    turn_of = {number: at for at, number in enumerate(kept)}
    turns = tuple(CaseTurn(title, paragraphs[number]) for number in kept)
    name = str(item.get("index") or link)
    questions = []
    for number, one in enumerate(list_in(item["questions"], "questions"), 1):
        text, answers = list_in(one, f"questions, {number}")[:2]
        found = [object_in(answer, f"questions, {number}") for answer in answers]
        gold = frozenset(
            (0, turn_of[answer["para"]]) for answer in found if answer["para"] in turn_of
        )
        questions.append(
            GoldQuestion(
                id=f"{name}:{number}",
                category="time",
                text=text_in(text, f"questions, {number}"),
                at=None,
                sessions=frozenset({0} if gold else ()),
                turns=gold,
                reference="; ".join(str(answer["answer"]) for answer in found) or "no answer",
                has_answer=bool(found),
            )
        )
    yield Case((CaseSession(ARTICLE_AT, turns),), tuple(questions))


def memdaily_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield each trajectory, with messages of others among its own."""
    trajectories = [
        (kind, number, object_in(one, f"{kind}, {number}"))
        for kind, given in item.items()
        for number, one in enumerate(list_in(given, kind), 1)
    ]
    messages = [
        _message(one, f"{kind}, {number}")
        for kind, number, trajectory in trajectories
        for one in list_in(trajectory["message_list"], f"{kind}, {number}, message_list")
    ]
    drawn = random.Random(OTHERS_SEED)
    for kind, number, trajectory in trajectories:
        own = [
            (one["mid"], _message(one, f"{kind}, {number}")) for one in trajectory["message_list"]
        ]
        others = drawn.sample(messages, min(len(messages), 2 * OTHERS))
        said = {session.turns[0].text for _, session in own}
        foreign = [one for one in others if one.turns[0].text not in said][:OTHERS]
        places = {ident: at for at, (ident, _) in enumerate(own)}
        questions = tuple(
            _daily_question(asked, f"{kind}:{number}:{at}", kind, places)
            for at, asked in enumerate(list_in(trajectory["question_list"], "question_list"), 1)
        )
        yield Case((*(session for _, session in own), *foreign), questions)


def _message(one: Any, what: str) -> CaseSession:
    message = object_in(one, what)
    text = text_in(message["message"], f"{what}, message")
    return CaseSession(_chinese_time(message["time"], what), (CaseTurn("user", text),))


def _daily_question(asked: Any, name: str, kind: str, places: dict[Any, int]) -> GoldQuestion:
    question = object_in(asked, name)
    named = list_in(question["target_step_id"], f"{name}, target_step_id")
    gold = frozenset(places[one] for one in named if one in places)
    return GoldQuestion(
        id=name,
        category=kind,
        text=text_in(question["question"], f"{name}, question"),
        at=_chinese_time(question["time"], name),
        sessions=gold,
        turns=frozenset((one, 0) for one in gold),
        reference=str(question["answer"] or "not given"),
        gold_missing=sum(one not in places for one in named),
    )


def _chinese_time(text: Any, what: str) -> datetime:
    match = _CHINESE_TIME.search(text_in(text, what))
    try:
        year, month, day, hour, minute = map(int, match.groups() if match else ())
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        raise LayoutError(f"{what}: is no date: {text!r:.50}") from None

"""Data formats: the benchmark files that are known, item by item.

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

Multi-hop: an object from the name of a set to its `passages` (title → text) and `questions` (`id`,
`question`, `answer`, `gold`: titles). The passages of a set are one case; each is a memory that
begins with its title and a colon.

FactConsolidation: `context` (numbered facts, one per line; a later fact replaces an earlier one of
the same subject and relation), `questions`, `answers` (accepted texts), `metadata` with `source`
(`sh` single-hop, `mh` multi-hop). The file marks no gold, so rules find it. The *value* of a fact
is its end; facts that differ only in the value are twins, and the last twin is current.

    single-hop   the current fact that ends with an accepted answer and shares most words with the
                 question
    multi-hop    the shortest chain of current facts that ends with an accepted answer: each begins
                 with the value of the one before, the first with a name in the question
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

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
    time_in,
)

# Further sets: BEAM (long project chats), TimeQA (articles), MemDaily (Chinese messages).
#
# Each function yields the cases of one item of a file, or raises `KeyError` or `LayoutError`.
#
# BEAM: `name`, `sessions` (`at`, `turns` with `id`, `role`, `content`), `questions` (`id`,
# `category`, `question`, `answer`, `evidence`: ids of turns). The category `abstention` asks for
# what was never said. Questions are asked after the last session.
#
# TimeQA: `link`, `paras`, `questions` (each a text and a list of answers with `para`, the number of
# their paragraph). An article is a session and each of its paragraphs a turn, said by the title. A
# question without an answer is one that the article does not answer.
#
# MemDaily: one object, from the name of a kind to its trajectories (`message_list` with `mid`,
# `message`, `time`; `question_list` with `question`, `answer`, `time`, `target_step_id`). A message
# is a session of one turn. Among the messages of a trajectory are `OTHERS` messages of others,
# drawn by a fixed seed: alone, a trajectory is too short to be searched.

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
        said_at = time_in(session["at"], f"sessions, {number + 1}, at", _iso_time)
        sessions.append(CaseSession(said_at, tuple(turns)))
    questions = []
    for number, one in enumerate(list_in(item["questions"], "questions"), 1):
        asked = object_in(one, f"questions, {number}")
        named = [str(turn) for turn in list_in(asked["evidence"], f"questions, {number}, evidence")]
        gold = frozenset(places[turn] for turn in named if turn in places)
        questions.append(
            GoldQuestion.of_turns(
                text_in(asked["id"], f"questions, {number}, id"),
                text_in(asked["category"], f"questions, {number}, category"),
                text_in(asked["question"], f"questions, {number}, question"),
                gold,
                reference=reference_in(asked["answer"], f"questions, {number}, answer"),
                has_answer=asked["category"] != ABSTAINS,
                gold_missing=sum(turn not in places for turn in named),
            )
        )
    yield Case(tuple(sessions), tuple(questions))


def _iso_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _time_by(pattern: re.Pattern[str], text: str) -> datetime:
    """Return a time whose year, month, day, hour and minute are the groups of a pattern."""
    match = pattern.search(text)
    year, month, day, hour, minute = map(int, match.groups() if match else ())
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


_chinese_time = partial(_time_by, _CHINESE_TIME)


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
            GoldQuestion.of_turns(
                f"{name}:{number}",
                "time",
                text_in(text, f"questions, {number}"),
                gold,
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
    return CaseSession(time_in(message["time"], what, _chinese_time), (CaseTurn("user", text),))


def _daily_question(asked: Any, name: str, kind: str, places: dict[Any, int]) -> GoldQuestion:
    question = object_in(asked, name)
    named = list_in(question["target_step_id"], f"{name}, target_step_id")
    return GoldQuestion.of_turns(
        name,
        kind,
        text_in(question["question"], f"{name}, question"),
        frozenset((places[one], 0) for one in named if one in places),
        at=time_in(question["time"], name, _chinese_time),
        reference=str(question["answer"] or "not given"),
        gold_missing=sum(one not in places for one in named),
    )


# Conversation sets.

_LOCOMO_NAMES = ("multi-hop", "temporal", "open-domain", "single-hop", ADVERSARIAL)
LOCOMO_CATEGORIES = dict(enumerate(_LOCOMO_NAMES, 1))
NOT_SAID = "The conversation does not mention it."
"""The reference of an adversarial question: the file only has the answer to fall for."""
DMR_ASKED_AT = datetime(2024, 1, 1, 12, tzinfo=UTC)
_LONGMEMEVAL_TIME = re.compile(r"\A(\d{4})/(\d\d)/(\d\d) \(\w+\) (\d\d):(\d\d)\Z")
_longmemeval_time = partial(_time_by, _LONGMEMEVAL_TIME)
_LOCOMO_TURN = re.compile(r"D:?(\d+):(\d+)")
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
            time_in(at, f"haystack_dates, {number}", _longmemeval_time),
            tuple(_longmemeval_turns(talk, f"haystack_sessions, {number}")),
        )
        for number, (at, talk) in enumerate(zip(dates, talks, strict=True), 1)
    )
    question = GoldQuestion(
        id=name,
        category=text_in(item["question_type"], "question_type"),
        text=text_in(item["question"], "question"),
        at=time_in(item["question_date"], "question_date", _longmemeval_time),
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
        sessions.append(CaseSession(time_in(talk[key], key, _locomo_time), said))
    name = str(place if item.get("sample_id") is None else item["sample_id"])
    questions = _locomo_questions(list_in(item["qa"], "qa"), places, name)
    yield Case(tuple(sessions), tuple(questions))


def _locomo_time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


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
        yield GoldQuestion.of_turns(
            f"{name}:{number}",
            category,
            text_in(item["question"], f"{what}, question"),
            gold,
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
    ident = str(place if name is None else name)
    asked = GoldQuestion.of_turns(ident, "dmr", question, gold, at=DMR_ASKED_AT, reference=answer)
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


# -- passages that lead on, and facts that replace one another -----------------------------------

WRITTEN_AT = datetime(2024, 1, 1, tzinfo=UTC)  # Passages and facts have no date of their own.
SPEAKER = "user"
CHAIN_MAX = 4  # hops of the longest questions
VALUE_WORDS_MAX = 9  # words of the longest value

_NUMBERED = re.compile(r"(\d+)\.\s+(.+)")
_FACT_WORD = re.compile(r"\w[\w.'’&-]*")
# Words before the subject of a fact: "The author of …", "The type of music that … plays".
_LEADING = frozenset(("", "of", "that", "where", "the", "in", "for"))


def multihop_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield each set of passages with its questions."""
    for name, given in item.items():
        group = object_in(given, name)
        passages = object_in(group["passages"], f"{name}, passages")
        places = {title: number for number, title in enumerate(passages)}
        sessions = tuple(
            _memory(f"{title}: {text_in(text, f'{name}, passages, {title}')}", WRITTEN_AT)
            for title, text in passages.items()
        )
        questions = []
        for number, one in enumerate(list_in(group["questions"], f"{name}, questions"), 1):
            what = f"{name}, questions, {number}"
            asked = object_in(one, what)
            gold = [str(title) for title in list_in(asked["gold"], f"{what}, gold")]
            found = frozenset((places[title], 0) for title in gold if title in places)
            questions.append(
                GoldQuestion.of_turns(
                    f"{name}:{asked['id']}",
                    name,
                    text_in(asked["question"], what),
                    found,
                    reference=reference_in(asked["answer"], f"{what}, answer"),
                    gold_missing=sum(title not in places for title in gold),
                )
            )
        yield Case(sessions, tuple(questions))


def facts_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield the facts of an item with its questions."""
    source = text_in(object_in(item["metadata"], "metadata")["source"], "metadata, source")
    facts = [match[2] for match in _NUMBERED.finditer(text_in(item["context"], "context"))]
    if not facts:
        raise LayoutError("context: has no numbered facts")
    book = FactBook(facts)
    is_chain = "_mh" in source
    questions = []
    asked = list_in(item["questions"], "questions")
    for number, (one, accepted) in enumerate(zip(asked, item["answers"], strict=True), 1):
        text = text_in(one, f"questions, {number}")
        answers = [str(answer) for answer in list_in(accepted, f"answers, {number}")]
        gold = book.chain(text, answers) if is_chain else book.single(text, answers)
        questions.append(
            GoldQuestion.of_turns(
                f"{source}:{number}",
                "multi-hop" if is_chain else "single-hop",
                text,
                frozenset((fact, 0) for fact in gold),
                reference="; ".join(answers) or "no answer",
                last=(gold[-1], 0) if gold and is_chain else None,
                outdated=frozenset((twin, 0) for fact in gold for twin in book.twins(fact)),
            )
        )
    said = tuple(
        _memory(fact, WRITTEN_AT + timedelta(minutes=number)) for number, fact in enumerate(facts)
    )
    yield Case(said, tuple(questions))


def _memory(text: str, at: datetime) -> CaseSession:
    return CaseSession(at, (CaseTurn(SPEAKER, text),))


class _Fact(NamedTuple):
    """The words of a fact, as written and in lower case."""

    written: Sequence[str]
    plain: Sequence[str]


class FactBook:
    """Numbered facts; finds those that answer a question."""

    def __init__(self, facts: Sequence[str]) -> None:
        self._facts = [_fact(text) for text in facts]
        endings: dict[tuple[str, ...], list[int]] = {}
        for number, fact in enumerate(self._facts):
            for size in range(1, min(VALUE_WORDS_MAX, len(fact.plain) - 1) + 1):
                endings.setdefault(tuple(fact.plain[-size:]), []).append(number)
        self._endings: Mapping[tuple[str, ...], Sequence[int]] = endings

    def twins(self, number: int) -> list[int]:
        """Return the earlier facts that differ from a fact only in the value."""
        return [
            other
            for other in range(number)
            if self._frame_size(number, other) >= self._subject_size(number)
        ]

    def single(self, question: str, answers: Sequence[str]) -> list[int]:
        """Return the fact that answers a single-hop question; empty if none does."""
        said = set(_fact(question).plain)
        found = self._stating(answers)
        shared = {fact: len(said & set(self._facts[fact].plain)) for fact in found}
        return [max(found, key=lambda fact: (shared[fact], fact))] if found else []

    def chain(self, question: str, answers: Sequence[str]) -> list[int]:
        """Return the shortest chain of facts that answers a question; empty if there is none."""
        said = _fact(question)
        chains = [
            ([fact], len(_fact(answer).plain))
            for answer in answers
            for fact in self._stating([answer])
        ]
        for _ in range(CHAIN_MAX):
            complete = [chain for chain, size in chains if self._is_named(chain[0], size, said)]
            if complete and len(complete[0]) > 1:
                return max(complete, key=lambda chain: (self._shared(chain, said), chain))
            chains = [
                ([before, *chain], size_before)
                for chain, size in chains
                for before, size_before in self._before(chain[0], size)
                if before not in chain
            ]
        return []

    def _stating(self, answers: Sequence[str]) -> list[int]:
        """Return the current facts that end with an answer."""
        found: list[int] = []
        for answer in answers:
            value = tuple(_fact(answer).plain)
            facts = self._endings.get(value, ())
            found += [fact for fact in facts if not self._is_replaced(fact, len(value))]
        return found

    def _is_replaced(self, number: int, value_size: int) -> bool:
        frame = self._facts[number].plain[: -value_size or None]
        return any(
            other.plain[: len(frame)] == frame and other.plain != self._facts[number].plain
            for other in self._facts[number + 1 :]
        )

    def _before(self, number: int, value_size: int) -> Iterator[tuple[int, int]]:
        """Yield the facts whose value is the beginning of a fact, with the size of the value."""
        plain = self._facts[number].plain[: -value_size or None]
        for start in range(len(plain)):
            if start and plain[start - 1] not in _LEADING:
                continue
            for end in range(len(plain), start, -1):
                for fact in self._endings.get(tuple(plain[start:end]), ()):
                    before = self._facts[fact].plain
                    edge = before[-(end - start) - 1]
                    if (
                        fact != number
                        and edge.islower()
                        and not self._is_replaced(fact, end - start)
                    ):
                        yield fact, end - start

    def _is_named(self, number: int, value_size: int, said: _Fact) -> bool:
        """Return whether a question names the subject of a fact."""
        fact = self._facts[number]
        for start in range(len(fact.plain) - value_size):
            if start and fact.plain[start - 1] not in _LEADING:
                continue
            for end in range(len(fact.plain) - value_size, start, -1):
                is_name = any(word[0].isupper() for word in fact.written[start:end] if start)
                is_name |= start == 0 and end - start > 0 and fact.plain[0] not in _LEADING
                if is_name and _has(said.plain, fact.plain[start:end]):
                    return True
        return False

    def _shared(self, chain: Sequence[int], said: _Fact) -> int:
        words = {word for number in chain for word in self._facts[number].plain}
        return len(words & set(said.plain))

    def _frame_size(self, one: int, other: int) -> int:
        """Return the length of the common prefix of two facts, in words; 0 for the same fact."""
        left, right = self._facts[one].plain, self._facts[other].plain
        if left == right:
            return 0
        size = 0
        while size < min(len(left), len(right)) and left[size] == right[size]:
            size += 1
        return size

    def _subject_size(self, number: int) -> int:
        """Return the length of a fact before its value: up to its last lower-case word."""
        written = self._facts[number].written
        lower = [at for at, word in enumerate(written[:-1]) if word[0].islower()]
        return lower[-1] + 1 if lower else len(written)


def _fact(text: str) -> _Fact:
    written = [word.rstrip(".") for word in _FACT_WORD.findall(text)]
    return _Fact(written, [word.casefold() for word in written])


def _has(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Return whether a phrase occurs in some words."""
    size = len(phrase)
    return any(list(words[at : at + size]) == list(phrase) for at in range(len(words) - size + 1))

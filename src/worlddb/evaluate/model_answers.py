"""Model answers: one question from recall to verdict.

    question ──recall──▶ memories ──answerer──▶ answer ──judge──▶ CORRECT or WRONG
                                        └───answer_scores───────▶ exact, f1, match

The memories are given in the order of time, those of a session as they were said, each with the day
of its session. The prompts:

    extract.txt   what the extractor reads out of a session (by default that of `LlmExtractor`)
    answer.txt    {date} {memories} {question} ──▶ reasoning, then "Answer: …"
    judge.txt     {question} {reference} {answer} ──▶ CORRECT or WRONG

A folder of the user may replace some of these files. Fields may have the names that the paper's
prompts give them. A verdict that does not begin with the word CORRECT is wrong.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from worlddb import LlmExtractor, Message
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.evaluate.answer_scores import score
from worlddb.evaluate.benchmark_cases import Case, GoldQuestion
from worlddb.evaluate.case_recall import SAID, Place, StoredCase, why
from worlddb.evaluate.run_folder import Calls, KeptChat

if TYPE_CHECKING:
    from worlddb import Hit, Recall, WorldDB
    from worlddb.evaluate.benchmark_settings import RunSettings

TIME = "%Y/%m/%d (%a) %H:%M"
NOTHING = "(nothing was found)"
READING_SPLITS_MAX = 3
"""How often a session is halved whose reading was cut: each time takes two requests more."""
FIELDS = {"answer": ("memories", "question"), "judge": ("question", "reference", "answer")}
"""The fields that a prompt must have."""
SAME = {"question_date": "date", "turns_block": "memories", "generated": "answer"}
"""Fields by the names of the paper's prompts."""
_FIELD = re.compile(r"\{([a-z_]+)\}")
_ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
_CORRECT = re.compile(r"CORRECT(?![A-Z])")
_WRONG = re.compile(r"(?:WRONG|INCORRECT)(?![A-Z])")
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_AROUND = " \t\r\n*_`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What each role is told."""

    extract: str
    answer: str
    judge: str

    def digests(self) -> dict[str, str]:
        """Return a digest of each prompt, to tell one set from another."""
        return {
            name: blake3(getattr(self, name).encode("utf-8", "replace")).hexdigest(8)
            for name in self.__slots__
        }


def load_prompts(folder: str | None = None) -> Prompts:
    """Return the prompts of a folder, and the default where it has none.

    Raises:
        InvalidInputError: there is no such folder, or a prompt lacks a field.
    """
    if folder is not None and not Path(folder).is_dir():
        raise InvalidInputError(f"prompts: {folder} is no folder")
    texts = {}
    for name in Prompts.__slots__:
        if folder is not None and Path(folder, f"{name}.txt").exists():
            texts[name] = _prompt_in(Path(folder, f"{name}.txt"))
        elif name == "extract":
            texts[name] = _extract_prompt()
        else:
            own = files("worlddb.evaluate").joinpath("prompts", f"{name}.txt")
            texts[name] = own.read_text("utf-8")
        there = {SAME.get(field, field) for field in _FIELD.findall(texts[name])}
        missing = set(FIELDS.get(name, ())) - there
        if missing:
            raise InvalidInputError(f"prompts: {name}.txt has no {{{min(missing)}}}")
    return Prompts(**texts)


def _prompt_in(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"prompt: {path}: {error}") from None
    if not text.strip():
        raise InvalidInputError(f"prompt: {path}: is empty; give its text, or remove the file")
    return text


def _extract_prompt() -> str:
    """Return what `LlmExtractor` tells a model by default, found by listening to it."""
    heard: list[str] = []

    def listen(messages: list[dict[str, str]]) -> str:
        heard.append(messages[0]["content"])
        return "{}"

    with suppress(ProviderError):  # It gets no data, as it was only listened to.
        LlmExtractor(listen).extract([Message(text="Hello.")], datetime(2000, 1, 1, tzinfo=UTC))
    return heard[0]


def filled(prompt: str, **values: str) -> str:
    """Return a prompt with its fields filled; braces in the values, or of no field, stay."""
    return _FIELD.sub(lambda field: values.get(SAME.get(field[1], field[1]), field[0]), prompt)


def _without_thoughts(text: str) -> str:
    return _THOUGHT.sub("", text).strip()


def answer_in(reply: str) -> str:
    """Return what follows the last "Answer:" of a reply; all of it if there is none."""
    text = _without_thoughts(reply)
    places = list(_ANSWER.finditer(text))
    found = text[places[-1].end() :] if places else text
    return found.strip(_AROUND if places else None)


def is_correct(verdict: str) -> bool:
    """Return whether a judge's reply begins with the word CORRECT."""
    return _CORRECT.match(_without_thoughts(verdict).upper()) is not None


def is_clear(verdict: str) -> bool:
    """Return whether a judge's reply is a verdict at all; what is none counts as wrong."""
    return is_correct(verdict) or _WRONG.match(_without_thoughts(verdict).upper()) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The models of a run. Without a judge, answers are scored and not judged."""

    prompts: Prompts
    calls: Calls
    answerer: KeptChat
    judge: KeptChat | None = None
    extractor: KeptChat | None = None

    def make_reader(self) -> LlmExtractor | None:
        """Return the extractor that reads conversations by a model, if there is one."""
        if self.extractor is None:
            return None
        return LlmExtractor(
            self.extractor, prompt=self.prompts.extract, splits_max=READING_SPLITS_MAX
        )


def answer(
    db: WorldDB,
    case: Case,
    question: GoldQuestion,
    stored: StoredCase,
    settings: RunSettings,
    roles: Roles,
) -> dict[str, Any]:
    """Return everything about the answer to a question that is needed to audit it."""
    at = case.asked_at(question)
    started = time.perf_counter()
    found = found_for(db, case, question, settings)
    recalled = time.perf_counter()
    hits = [(hit, stored.places.get(hit.node.id, [])) for hit in found]
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


def found_for(db: WorldDB, case: Case, question: GoldQuestion, settings: RunSettings) -> Recall:
    """Return the memories that the answerer is given, the best first."""
    return db.recall(
        question.text,
        k=settings.k,
        max_tokens=settings.context_tokens,
        at=case.asked_at(question),
        settings=settings.recall_settings(),
    )


def _verdict(question: GoldQuestion, says: str, roles: Roles) -> str | None:
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


def evidence_in(places: Sequence[Place], question: GoldQuestion) -> dict[str, Any]:
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

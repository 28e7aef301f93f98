"""Model answers: asks and judges one question, and scores answers without a judge.

    question ──recall──▶ memories ──answerer──▶ answer ──judge──▶ CORRECT or WRONG
                                        └───score───────────────▶ exact, f1, match

    extract.txt   the extractor's prompt (by default that of `LlmExtractor`)
    answer.txt    {date} {memories} {question} ──▶ reasoning, then "Answer: …"
    judge.txt     {question} {reference} {answer} ──▶ CORRECT or WRONG

A user's folder may replace some of these prompts. Memories are given in the order of time, those of
a session in their order, each with the day of its session. `score` compares without a model, so a
right answer in other words may not match, and its figure is below that of a judge.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from worlddb import LlmExtractor, Message
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.evaluate.benchmark_cases import Case, GoldQuestion
from worlddb.evaluate.case_recall import VERBATIM_TYPES, Place, StoredCase, hit_reasons
from worlddb.evaluate.run_folder import CachedChat, ReplyCache

if TYPE_CHECKING:
    from worlddb import Hit, Recall, WorldDB
    from worlddb.evaluate.benchmark_cases import RunSettings


SHARE_OF_WORDS = 0.6  # More than half: a short answer may omit one word of three.
ABOUT = 0.1  # Tolerance of a number where the reference is vague.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = {name[:length]: n for n, name in enumerate(_MONTHS, 1) for length in (3, 4, len(name))}
_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)
_NUMBER = {name: number for number, name in enumerate(_UNITS)} | {
    "once": 1,
    "twice": 2,
    **dict(zip(("thirty", "forty", "fifty", "sixty"), range(30, 70, 10), strict=True)),
}
_SMALL = frozenset(
    (
        *("a", "an", "the", "of", "in", "on", "at", "to", "for", "with", "by", "from", "as"),
        *("and", "or", "is", "was", "were", "are", "be", "been", "it", "its", "about", "around"),
        *("this", "that", "these", "those", "i", "you", "he", "she", "they", "we", "my", "your"),
        *("his", "her", "their", "our"),
    )
)
_REFUSAL = re.compile(
    r"(?:(?:do(?:es)?|did|can|could|is|was|were|are|have|has)(?: not|n['’]t|not)|can['’]t) "
    r"(?:\w+ ){0,3}?(?:know|mention|enough|tell|say|sure|available|provide|specif|inform|recall)"
    r"|not (?:\w+ )?(?:mentioned|enough|available|known|specified|provided|stated)"
    r"|no (?:\w+ )?(?:information|mention|record|memory)|unknown|insufficient|never mentioned",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|nearly|almost|circa)\b|~", re.I
)
_NAME = rf"(?P<n>{'|'.join(sorted(_MONTH, key=len, reverse=True))})"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? (?P<y>\d{4}))?"
_DATES = (
    re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})"),
    re.compile(rf"\b{_NAME}\.? {_DAY}\b{_YEAR}"),
    re.compile(rf"\b{_DAY}(?: of)? {_NAME}\b\.?{_YEAR}"),
)
_ALSO = re.compile(
    r"(?P<first>.+?)[.;,]\s+(?P<other>\S.*?)\s+(?:is|are|would be)\s+also\s+"
    r"(?:acceptable|accepted|correct|fine|right|valid)\W*",
    re.IGNORECASE | re.DOTALL,
)
_OR = re.compile(r"(?P<first>.+?)\s*\(or (?P<other>[^()]+)\)\W*", re.IGNORECASE | re.DOTALL)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_RANGE = re.compile(
    r".*?\b(?:from|between) (?P<low>\d{1,4})(?: \w+)? (?:to|and) (?P<high>\d{1,4})(?P<unit> \w+)?",
    re.IGNORECASE | re.DOTALL,
)
NAMED_CHARS_MAX = 1_000
"""A longer reference explains, and is not looked through for what else it takes."""
RANGE_MAX = 100  # A longer range of whole numbers is not listed.
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")

Date = tuple[int | None, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How near an answer is to the reference.

    `exact`: the same words, apart from articles and punctuation. `f1`: harmonic mean of precision
    and recall of words. `match`: every number and date of the reference is in the answer, and most
    other words; or both say that nothing is known. `numeric` is None if the reference has neither
    number nor date.
    """

    exact: float
    f1: float
    numeric: float | None
    match: float

    def to_dict(self) -> dict[str, float | None]:
        """Return the score as plain data."""
        return asdict(self)


def is_refusal(text: str) -> bool:
    """Return whether a text says that something is not known."""
    return _REFUSAL.search(" ".join(text.split())) is not None


def score(answer: str, reference: str) -> Score:
    """Return the score of an answer against the reference, or the nearest of its alternatives."""
    scores = [_score(answer, one) for one in (reference, *alternatives_in(reference))]
    numeric = [one.numeric for one in scores if one.numeric is not None]
    return Score(
        exact=max(one.exact for one in scores),
        f1=max(one.f1 for one in scores),
        numeric=max(numeric, default=None),
        match=max(one.match for one in scores),
    )


def alternatives_in(reference: str) -> list[str]:
    """Return the alternative answers that a reference names, if there are several.

    7 days. 8 days (including the last day) is also acceptable. ──▶ 7 days; 8 days
    """
    found = None
    if len(reference) <= NAMED_CHARS_MAX:
        found = _ALSO.fullmatch(reference) or _OR.fullmatch(reference)
    if found is None:
        return []
    first, other = (_ASIDE.sub("", found[name]).strip() for name in ("first", "other"))
    within = _RANGE.fullmatch(other)
    if within is not None and 0 < int(within["high"]) - int(within["low"]) <= RANGE_MAX:
        numbers = range(int(within["low"]), int(within["high"]) + 1)
        return [first, *(f"{number}{within['unit'] or ''}" for number in numbers)]
    return [first, other]


def _score(answer: str, reference: str) -> Score:
    says, wanted = _Read(answer), _Read(reference)
    exact = float(says.words == wanted.words and says.values() == wanted.values())
    f1 = _f1([*says.words, *says.values()], [*wanted.words, *wanted.values()])
    if is_refusal(reference):
        return Score(exact=exact, f1=f1, numeric=None, match=float(is_refusal(answer)))
    numeric = _numeric(says, wanted)
    match = float(
        not (is_refusal(answer) and not exact)
        and numeric in (None, 1.0)
        and (_share(wanted.words, says.words) >= SHARE_OF_WORDS if wanted.words else True)
        and bool(wanted.words or numeric is not None)
    )
    return Score(exact=exact, f1=f1, numeric=numeric, match=match)


class _Read:
    """A text as its dates, its numbers and its other words."""

    def __init__(self, text: str) -> None:
        text = text.casefold().replace("’", "'")
        self.is_vague = _VAGUE.search(text) is not None
        self.dates: list[Date] = []
        for pattern in _DATES:
            text = pattern.sub(self._date, text)
        self.numbers: list[float] = []
        self.words: list[str] = []
        for token in _TOKEN.findall(text):
            if token[0].isdigit():
                self.numbers.append(_number(token))
            elif token in _NUMBER:
                self.numbers.append(float(_NUMBER[token]))
            elif (word := token.removesuffix("'s")) not in _SMALL:
                self.words.append(_singular(word))

    def values(self) -> list[str]:
        """Return dates and numbers as words of their own."""
        dates = [f"{month}/{day}" for _, month, day in self.dates]
        return sorted([*dates, *(f"{number:g}" for number in self.numbers)])

    def _date(self, found: re.Match[str]) -> str:
        parts = found.groupdict()
        month = _MONTH[parts["n"]] if parts.get("n") else int(parts["m"])
        year = int(parts["y"]) if parts.get("y") else None
        self.dates.append((year, month, int(parts["d"])))
        return " "


def _number(token: str) -> float:
    whole, point, rest = token.replace(",", "").partition(".")
    return float(f"{whole}{point}{rest.replace('.', '')}")


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _numeric(says: _Read, wanted: _Read) -> float | None:
    """Return whether all wanted numbers and dates are in an answer; None if there are none."""
    if not wanted.numbers and not wanted.dates:
        return None
    near = ABOUT if wanted.is_vague else 1e-9
    numbers = all(
        any(abs(said - number) <= near * max(abs(number), 1.0) for said in says.numbers)
        for number in wanted.numbers
    )
    dates = all(any(_same_day(said, date) for said in says.dates) for date in wanted.dates)
    return float(numbers and dates)


def _same_day(one: Date, other: Date) -> bool:
    years = {one[0], other[0]} - {None}
    return one[1:] == other[1:] and len(years) <= 1


def _share(wanted: Sequence[str], says: Sequence[str]) -> float:
    """Return the share of the wanted words that are in an answer."""
    return (Counter(wanted) & Counter(says)).total() / len(wanted)


def _f1(says: Sequence[str], wanted: Sequence[str]) -> float:
    if not says or not wanted:
        return float(not says and not wanted)
    common = (Counter(says) & Counter(wanted)).total()
    return 2 * common / (len(says) + len(wanted))


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
    """The prompts of the roles."""

    extract: str
    answer: str
    judge: str

    def digests(self) -> dict[str, str]:
        """Return a digest of each prompt, which identifies the set."""
        return {
            name: blake3(getattr(self, name).encode("utf-8", "replace")).hexdigest(8)
            for name in self.__slots__
        }


def load_prompts(folder: str | None = None) -> Prompts:
    """Return the prompts of a folder, with defaults for missing files."""
    if folder is not None and not Path(folder).is_dir():
        raise InvalidInputError(f"prompts: {folder} is not a folder")
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
    """Return the default prompt of `LlmExtractor`, captured from a call."""
    heard: list[str] = []

    def listen(messages: list[dict[str, str]]) -> str:
        heard.append(messages[0]["content"])
        return "{}"

    with suppress(ProviderError):  # The captured call gets no reply.
        LlmExtractor(listen).extract([Message(text="Hello.")], datetime(2000, 1, 1, tzinfo=UTC))
    return heard[0]


def filled(prompt: str, **values: str) -> str:
    """Return a prompt with its fields filled; other braces stay."""
    return _FIELD.sub(lambda field: values.get(SAME.get(field[1], field[1]), field[0]), prompt)


def _without_thoughts(text: str) -> str:
    return _THOUGHT.sub("", text).strip()


def answer_in(reply: str) -> str:
    """Return the part of a reply after the last "Answer:", or the whole reply."""
    text = _without_thoughts(reply)
    places = list(_ANSWER.finditer(text))
    found = text[places[-1].end() :] if places else text
    return found.strip(_AROUND if places else None)


def is_correct(verdict: str) -> bool:
    """Return whether a judge's reply begins with the word CORRECT."""
    return _CORRECT.match(_without_thoughts(verdict).upper()) is not None


def is_clear(verdict: str) -> bool:
    """Return whether a judge's reply is a verdict; otherwise it counts as wrong."""
    return is_correct(verdict) or _WRONG.match(_without_thoughts(verdict).upper()) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The models of a run. Without a judge, answers are scored only."""

    prompts: Prompts
    calls: ReplyCache
    answerer: CachedChat
    judge: CachedChat | None = None
    extractor: CachedChat | None = None

    def make_reader(self) -> LlmExtractor | None:
        """Return the extractor that asks the model, if there is one."""
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
    """Return everything about the answer to a question that an audit needs."""
    at = case.asked_at(question)
    started = time.perf_counter()
    found = recalled_for(db, case, question, settings)
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
        "context": [_hit_record(hit, places) for hit, places in hits],
        "context_tokens": sum(hit.tokens for hit in found),
        "tokens": {role: list(counts) for role, counts in spent.tokens.items()},
        "times": {
            "recall_s": recalled - started,
            "answer_s": answered - recalled,
            "judge_s": time.perf_counter() - answered,
        },
    }


def recalled_for(db: WorldDB, case: Case, question: GoldQuestion, settings: RunSettings) -> Recall:
    """Return the memories for the answerer, the best first."""
    return db.recall(
        question.text,
        k=settings.k,
        max_tokens=settings.context_tokens,
        at=case.asked_at(question),
        settings=settings.recall_settings(),
    )


def _verdict(question: GoldQuestion, says: str, roles: Roles) -> str | None:
    # An empty reply is wrong, even if the right answer is that nothing is known.
    if roles.judge is None or not says:
        return None
    told = filled(
        roles.prompts.judge, question=question.text, reference=question.reference, answer=says
    )
    return roles.judge([{"role": "user", "content": told}])


def memories_of(case: Case, hits: Sequence[tuple[Hit, Sequence[Place]]]) -> str:
    """Return hits as lines, in the order of time and, within a session, in its order.

    An extracted memory follows its turn; one of a whole session follows all turns. Ties are in the
    order of the hits.
    """
    lines = []
    for rank, (hit, places) in enumerate(hits):
        session, turn = places[0] if places else (None, None)
        at = hit.node.valid_from if session is None else case.sessions[session].at
        of_session = -1 if session is None else session
        of_turn = len(case.sessions[of_session].turns) if turn is None else turn
        is_read = hit.node.type not in VERBATIM_TYPES
        lines.append(((at, of_session, of_turn, is_read, rank), _line(hit, at)))
    return "\n".join(line for _, line in sorted(lines)) or NOTHING


def _line(hit: Hit, at: datetime) -> str:
    node = hit.node
    who = (node.name or "user") if node.type in VERBATIM_TYPES else node.type
    # One memory, one line: no text can pretend to be another memory.
    return f"[{at.strftime(TIME)}] {who}: {' '.join((node.content or node.name).split())}"


def evidence_in(places: Sequence[Place], question: GoldQuestion) -> dict[str, Any]:
    """Return the share of the gold that was among the memories; None if no gold is marked."""
    sessions = {session for session, _ in places} & question.sessions
    turns = {(session, turn) for session, turn in places if turn is not None} & question.turns
    return {
        "sessions": sorted(sessions),
        "turns": sorted(map(list, turns)),
        "all_sessions": sessions == question.sessions if question.sessions else None,
        "all_turns": turns == question.turns if question.turns else None,
    }


def _hit_record(hit: Hit, places: Sequence[Place]) -> dict[str, Any]:
    return {
        "id": str(hit.node.id),
        "type": hit.node.type,
        "places": [list(place) for place in places],
        **hit_reasons(hit),
        "text": hit.node.content or hit.node.name,
    }

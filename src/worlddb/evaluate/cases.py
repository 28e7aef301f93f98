"""Cases: benchmark files as conversations with questions, whatever their format.

    longmemeval   one haystack per question; gold are sessions, and turns with `has_answer`
    locomo        one conversation with many questions; gold are turns (`D1:3`)

Names from the file never reach the engine: some of them give the answer away.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

from worlddb.errors import FormatError, InvalidInputError

FORMATS = ("longmemeval", "locomo")
LOCOMO_CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
_LONGMEMEVAL_TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) \(\w+\) (\d\d):(\d\d)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_NO_SUCH_FILE = (
    *(KeyError, TypeError, ValueError, AttributeError, EOFError, RecursionError),
    *(gzip.BadGzipFile, zlib.error, lzma.LZMAError),
)
"""What a file of another format, or a damaged one, makes of us."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """Turns of one sitting."""

    at: datetime
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a conversation; gold is by place, never by name."""

    id: str
    category: str
    text: str
    at: datetime | None
    sessions: frozenset[int]
    turns: frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation and what is asked about it."""

    sessions: tuple[Session, ...]
    questions: tuple[Asked, ...]


def load_cases(path: str, form: str) -> Iterator[Case]:
    """Yield the cases of a benchmark file: `.json`, or compressed as `.gz` or `.xz`.

    Raises:
        InvalidInputError: no such format.
        FormatError: the file is not of that format.
    """
    if form not in FORMATS:
        raise InvalidInputError(f"format {form!r}: use one of {', '.join(FORMATS)}")
    make = _longmemeval if form == "longmemeval" else _locomo
    try:
        with _opened(path) as file:
            data = json.load(file)
        yield from make(data)
    except _NO_SUCH_FILE as error:
        raise FormatError(f"{path}: is no {form} file: {type(error).__name__} {error}") from error


def _opened(path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(path))
    return lzma.open(path) if path.endswith(".xz") else Path(path).open("rb")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r:.50}")
    return value


def _longmemeval(data: list[dict[str, Any]]) -> Iterator[Case]:
    for item in data:
        gold = set(item["answer_session_ids"])
        sessions = tuple(
            Session(
                _time(at),
                tuple(Turn(_text(turn["role"]), _text(turn["content"])) for turn in turns),
            )
            for at, turns in zip(item["haystack_dates"], item["haystack_sessions"], strict=True)
        )
        question = Asked(
            id=item["question_id"],
            category="abstention" if "_abs" in item["question_id"] else item["question_type"],
            text=_text(item["question"]),
            at=_time(item["question_date"]),
            sessions=frozenset(
                place for place, name in enumerate(item["haystack_session_ids"]) if name in gold
            ),
            turns=frozenset(
                (place, number)
                for place, turns in enumerate(item["haystack_sessions"])
                for number, turn in enumerate(turns)
                if turn.get("has_answer")
            ),
        )
        yield Case(sessions, (question,))


def _time(text: str) -> datetime:
    match = _LONGMEMEVAL_TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"no date: {text!r}")
    year, month, day, hour, minute = map(int, match.groups())
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def _locomo(data: list[dict[str, Any]]) -> Iterator[Case]:
    for item in data:
        talk = item["conversation"]
        numbers = sorted(
            int(key.removeprefix("session_"))
            for key, turns in talk.items()
            if re.fullmatch(r"session_\d+", key) and isinstance(turns, list)
        )
        places: dict[str, tuple[int, int]] = {}
        sessions = []
        for place, number in enumerate(numbers):
            turns = talk[f"session_{number}"]
            at = datetime.strptime(talk[f"session_{number}_date_time"], _LOCOMO_TIME)
            for turn_place, turn in enumerate(turns):
                places[turn["dia_id"]] = (place, turn_place)
            sessions.append(Session(at.replace(tzinfo=UTC), tuple(map(_locomo_turn, turns))))
        yield Case(tuple(sessions), tuple(_locomo_questions(item["qa"], places)))


def _locomo_turn(turn: dict[str, Any]) -> Turn:
    seen, said = turn.get("blip_caption"), _text(turn["text"])
    return Turn(_text(turn["speaker"]), f"{said} [shares {seen}]" if seen else said)


def _locomo_questions(
    items: Iterable[dict[str, Any]], places: dict[str, tuple[int, int]]
) -> Iterator[Asked]:
    for number, item in enumerate(items):
        named = [name for text in item["evidence"] for name in re.findall(r"D\d+:\d+", text)]
        gold = frozenset(places[name] for name in named if name in places)
        yield Asked(
            id=str(number),
            category=LOCOMO_CATEGORIES[item["category"]],
            text=_text(item["question"]),
            at=None,
            sessions=frozenset(session for session, _ in gold),
            turns=gold,
        )

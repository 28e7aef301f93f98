"""Cases: benchmark files as conversations with questions, whatever their format.

    longmemeval   one haystack per question; gold are sessions, and turns with `has_answer`
    locomo        one conversation with many questions; gold are turns (`D1:3`)
    dmr           one conversation per question; no gold is marked, see `dmr`

Names from the file never reach the engine: some of them give the answer away.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from worlddb.errors import FormatError, InvalidInputError
from worlddb.evaluate.layout import LayoutError, check_case, object_in
from worlddb.evaluate.stream import NotDataError, items_of, opened

FORMATS = ("longmemeval", "locomo", "dmr")
ADVERSARIAL = "adversarial"
SIGNS = {"longmemeval": "haystack_sessions", "locomo": "conversation", "dmr": "self_instruct"}
"""What an item of each format has, and those of the others have not."""
_OTHER_LAYOUT = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError),
)
_DAMAGED = (
    *(ValueError, EOFError, RecursionError),
    *(gzip.BadGzipFile, zlib.error, lzma.LZMAError, OSError),
)
"""What an item of another format, and a damaged file, make of us."""


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
    """A question about a conversation; gold is by place, never by name.

    `has_answer` is False where the right answer is that there is none. `gold_missing` counts what
    the file names as gold and does not have.
    """

    id: str
    category: str
    text: str
    at: datetime | None
    sessions: frozenset[int]
    turns: frozenset[tuple[int, int]]
    reference: str = ""
    has_answer: bool = True
    gold_missing: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation and what is asked about it."""

    sessions: tuple[Session, ...]
    questions: tuple[Asked, ...]


def load_cases(path: str, form: str) -> Iterator[Case]:
    """Yield the cases of a benchmark file: `.json`, or compressed as `.gz` or `.xz`.

    The file is read as it is needed, and every question has an id of its own.

    Raises:
        InvalidInputError: no such format.
        FormatError: the file is not of that format.
    """
    from worlddb.evaluate.dmr import dmr_case
    from worlddb.evaluate.formats import locomo_case, longmemeval_case

    makers = {"longmemeval": longmemeval_case, "locomo": locomo_case, "dmr": dmr_case}
    if form not in makers:
        raise InvalidInputError(f"format {form!r}: use one of {', '.join(FORMATS)}")
    seen: set[str] = set()
    for place, item in enumerate(_items(path)):
        try:
            case = makers[form](object_in(item, "the item"), place)
        except _OTHER_LAYOUT as error:
            raise FormatError(
                f"{path}: is no {form} file: {_why(item, place, form, error)}"
            ) from error
        case = replace(case, questions=tuple(_named(one, seen) for one in case.questions))
        try:
            check_case(case)
        except LayoutError as error:
            told = _item_named(item, place)
            raise FormatError(f"{path}: {told}: {error}; mend it, or leave the item out") from None
        yield case


def _items(path: str) -> Iterator[Any]:
    """Yield the items of a file.

    Raises:
        FormatError: it is damaged, or no data at all.
        OSError: it cannot be read.
    """
    done = 0
    try:
        with opened(path) as file:
            for item in items_of(file):
                yield item
                done += 1
    except NotDataError as error:
        raise FormatError(f"{path}: {error}") from None
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        after = f"after item {done}" if done else "from the start"
        raise FormatError(
            f"{path}: is damaged {after} ({error!s:.200}); get the file again"
        ) from error


def _why(item: Any, place: int, form: str, error: Exception) -> str:
    """Return what is wrong with an item, for somebody who has to find the right file."""
    for other in _formats_in(item):
        if other != form:
            return f"it has the layout of {other}; run `worlddb eval {other}`, or give another file"
    if isinstance(error, LayoutError):
        told = str(error)
    elif isinstance(error, KeyError):
        told = f"lacks {error}"
    else:
        # What Python says of it is of no use to whoever has the file.
        told = f"is laid out otherwise than the items of {form} are"
    return f"{_item_named(item, place)}: {told}; give the file as its authors publish it"


def _item_named(item: Any, place: int) -> str:
    """Return what people find an item by: its place from 1 on, and its id if it has one."""
    known = item if isinstance(item, dict) else {}
    more = known.get("metadata")
    names = [known.get("question_id"), known.get("sample_id")]
    names += [more.get("initial_data_id")] if isinstance(more, dict) else []
    name = next((name for name in names if isinstance(name, str) and name), None)
    return f"item {place + 1}" + (f" ({name[:80]!r})" if name else "")


def _formats_in(item: Any) -> list[str]:
    return [form for form, key in SIGNS.items() if isinstance(item, dict) and key in item]


def asked_at(case: Case, question: Asked) -> datetime:
    """Return when a question is asked: as the file says, else after the last session."""
    return question.at or max(session.at for session in case.sessions)


def format_of(path: str) -> str:
    """Return which format a file has, by what its first item holds.

    Raises:
        FormatError: none that is known.
    """
    found = _formats_in(next(_items(path), None))
    if not found:
        raise FormatError(
            f"{path}: is none of {', '.join(FORMATS)}: its first item has none of "
            f"{', '.join(SIGNS.values())}"
        )
    return found[0]


def _named(question: Asked, seen: set[str]) -> Asked:
    """Return a question under a name that no other has."""
    name, number = question.id, 1
    while name in seen:
        number += 1
        name = f"{question.id}#{number}"
    seen.add(name)
    return question if name == question.id else replace(question, id=name)

"""Layout: what an item of a benchmark file has to be, told in words of the file.

    LayoutError("haystack_sessions, 3, 2, content: is no text but null")

Places are counted from 1, as people do who look for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import Limits, encode_text
from worlddb.recall.recaller import QUESTION_BYTES_MAX

if TYPE_CHECKING:
    from worlddb.evaluate.cases import Asked, Case

LIMITS = Limits()
_KINDS: dict[type, str] = {
    **{dict: "an object", list: "a list", str: "a text", bool: "true or false"},
    **{int: "a number", float: "a number", type(None): "null"},
}


class LayoutError(ValueError):
    """An item is not what its format says; the message is for whoever has the file."""


def kind_of(value: Any) -> str:
    """Return what a value of a file is."""
    return _KINDS.get(type(value), "something else")


def object_in(value: Any, what: str) -> dict[str, Any]:
    """Return an object as it is.

    Raises:
        LayoutError: it is none.
    """
    if not isinstance(value, dict):
        raise LayoutError(f"{what}: is no object but {kind_of(value)}")
    return value


def list_in(value: Any, what: str) -> list[Any]:
    """Return a list as it is.

    Raises:
        LayoutError: it is none.
    """
    if not isinstance(value, list):
        raise LayoutError(f"{what}: is no list but {kind_of(value)}")
    return value


def text_in(value: Any, what: str) -> str:
    """Return a text as it is.

    Raises:
        LayoutError: it is none.
    """
    if not isinstance(value, str):
        raise LayoutError(f"{what}: is no text but {kind_of(value)}")
    return value


def reference_in(value: Any, what: str) -> str:
    """Return a right answer, which may be a number, as text.

    Raises:
        LayoutError: there is none.
    """
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        if str(value).strip():
            return str(value)
        raise LayoutError(f"{what}: is empty")
    raise LayoutError(f"{what}: is neither a text nor a number but {kind_of(value)}")


def check_case(case: Case) -> None:
    """Refuse what no store would take, before the first of a run's questions is asked.

    Raises:
        LayoutError: a turn or a question is none that could be written or asked.
    """
    for number, session in enumerate(case.sessions, 1):
        for place, turn in enumerate(session.turns, 1):
            what = f"session {number}, turn {place}"
            _check_text(turn.speaker, f"{what}: the speaker", LIMITS.name_bytes_max)
            _check_text(turn.text, f"{what}: the text", LIMITS.content_bytes_max)
    for question in case.questions:
        _check_question(question)
        if question.at is None and not case.sessions:
            raise LayoutError("has no session that says when its questions are asked")


def _check_question(question: Asked) -> None:
    what = f"question {question.id!r:.80}"
    _check_text(question.id, f"{what}: its id", LIMITS.name_bytes_max)
    _check_text(question.reference, f"{what}: its answer", LIMITS.content_bytes_max)
    # A recall takes it for white space, and nothing else of a question is written.
    _check_text(question.text.replace("\0", " "), what, QUESTION_BYTES_MAX)
    if not question.text.strip():
        raise LayoutError(f"{what}: is empty")


def _check_text(text: str, what: str, bytes_max: int) -> None:
    try:
        encode_text(text, what, bytes_max)
    except InvalidInputError as error:
        raise LayoutError(str(error)) from None

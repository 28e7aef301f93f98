"""Given: texts and data that a command takes from its arguments, from a file or from stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from worlddb.errors import InvalidInputError, StorageError

STDIN = "-"


def given_text(text: str) -> str:
    """Return a text; '-' is stdin.

    Raises:
        InvalidInputError: stdin is no UTF-8.
        StorageError: there is no stdin.
    """
    if text != STDIN:
        return text
    with opened(STDIN) as file:
        return _decoded(file.read(), "stdin")


def given_json(text: str, where: str) -> Any:
    """Return the data of a JSON text.

    Raises:
        InvalidInputError: it is none.
    """
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{where}: is no JSON: {error}") from None


def given_messages(name: str) -> list[dict[str, Any]]:
    """Return the messages of a chat from a file: a JSON list, or one JSON object per line.

    Raises:
        InvalidInputError: it is neither.
    """
    with opened(name) as file:
        text = _decoded(file.read(), name)
    first = text.lstrip()[:1]
    if first == "{":
        lines = [line for line in text.splitlines() if line.strip()]
        found: Any = [given_json(line, f"{name}: line {at}") for at, line in enumerate(lines, 1)]
        if len(found) == 1 and isinstance(found[0], dict) and "messages" in found[0]:
            found = found[0]["messages"]
    else:
        found = given_json(text, name)
    if not isinstance(found, list):
        raise InvalidInputError(f'{name}: give a JSON list of {{"role": …, "content": …}}')
    return found


def given_mapping(text: str | None, where: str) -> dict[str, Any] | None:
    """Return the data of a JSON object, None if there was no text.

    Raises:
        InvalidInputError: it is something else.
    """
    if text is None:
        return None
    found = given_json(text, where)
    if not isinstance(found, dict):
        raise InvalidInputError(f'{where}: give a JSON object, such as {{"topic": "tea"}}')
    return found


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Yield a file to read bytes from; '-' is stdin.

    Raises:
        StorageError: there is no stdin.
    """
    if name != STDIN:
        with open(name, "rb") as file:
            yield file
    elif sys.stdin is None:
        raise StorageError("stdin is closed; give a FILE")
    else:
        yield sys.stdin.buffer


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInputError(f"{where}: is not UTF-8 text") from None

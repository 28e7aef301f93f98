"""Asking: prompts, and getting data out of a model that was asked for it.

    ask_data(chat, prompt, request, schema) ──▶ Parsed

A model that answers without JSON is told so once and asked again; then it has failed.
"""

from __future__ import annotations

import os
from importlib.resources import files

from worlddb.bridge.chat import Chat, ChatFunction, ask_text
from worlddb.bridge.dialects import JsonSchema
from worlddb.bridge.lenient import NotJsonError, Parsed, parse
from worlddb.errors import InvalidInputError

AGAIN = (
    "That was no JSON object. Give the same answer once more, as one JSON object and nothing else."
)
ECHO_CHARS_MAX = 4_000


def prompt_text(prompt: str | os.PathLike[str] | None, default: str) -> str:
    """Return a prompt: the text itself, what a file holds, or the package's own by its name.

    Raises:
        InvalidInputError: it is empty, or no file can be read there.
    """
    if prompt is None:
        return files("worlddb.bridge").joinpath("prompts", f"{default}.txt").read_text("utf-8")
    if isinstance(prompt, os.PathLike):
        try:
            with open(prompt, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"prompt: {os.fspath(prompt)}: {error}") from None
    else:
        text = prompt
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("prompt: give its text, or a Path to a file that holds it")
    return text


def ask_data(chat: Chat | ChatFunction, prompt: str, request: str, schema: JsonSchema) -> Parsed:
    """Return the object that a model answers with.

    Raises:
        ProviderError: the model failed, or gave no JSON object when asked twice.
    """
    messages = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": request},
    ]
    reply = ask_text(chat, messages, schema)
    try:
        parsed = _object(reply.text)
    except NotJsonError:
        messages += [
            {"role": "assistant", "content": reply.text[:ECHO_CHARS_MAX]},
            {"role": "user", "content": AGAIN},
        ]
        reply = ask_text(chat, messages, schema)
        parsed = _object(reply.text)
    return Parsed(parsed.value, parsed.is_whole and not reply.is_cut)


def _object(text: str) -> Parsed:
    """Return the object in an answer; some models write it as a string, or as a list of one.

    Raises:
        NotJsonError: there is none.
    """
    parsed = parse(text)
    if isinstance(parsed.value, str):
        parsed = parse(parsed.value)
    value = parsed.value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        raise NotJsonError(f"the answer is no JSON object: {' '.join(text.split())!r:.200}")
    return Parsed(value, parsed.is_whole)

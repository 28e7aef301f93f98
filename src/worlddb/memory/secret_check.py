"""Secret check: what becomes of keys, tokens, passwords and card numbers in a text to remember.

Every write looks for a hint (`MAYBE`), which costs a few microseconds; only a text that has one is
searched for secrets, and only a text that has those asks for the rule of its scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worlddb.errors import RejectedError
from worlddb.model.drafts import Message
from worlddb.model.secret_patterns import (
    secrets_in,
    texts_of,
    without_secret_values,
    without_secrets,
    without_sentences,
)

if TYPE_CHECKING:
    from worlddb.memory.writes import MemoryWriter


def checked(
    writer: MemoryWriter, messages: Sequence[Message], scope: Mapping[str, Any]
) -> tuple[list[Message], tuple[str, ...]]:
    """Return messages as the scope wants them, and the kinds of the secrets that were found.

    Raises:
        RejectedError: the scope refuses texts with secrets, or nothing is left of them.
    """
    kinds = {one.kind: None for message in messages for one in secrets_in(message.text)}
    if not kinds:
        return list(messages), ()
    told = ", ".join(kinds)
    rule = _rule(writer, scope, told)
    if rule == "mask":
        messages = [replace(one, text=without_secrets(one.text)) for one in messages]
    elif rule == "leave_out":
        messages = [replace(one, text=without_sentences(one.text)) for one in messages]
        messages = [one for one in messages if one.text.strip()]
        if not messages:
            raise RejectedError(f"the text has nothing but a secret ({told})")
    return list(messages), () if rule == "keep" else tuple(kinds)


def checked_values(
    writer: MemoryWriter, values: tuple[Any, ...], scope: Mapping[str, Any]
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return what stands beside a text (metadata, names, tags) as the scope wants it, and kinds.

    A value that has a secret is left out where a text would lose the sentence.

    Raises:
        RejectedError: the scope refuses texts with secrets.
    """
    kinds: dict[str, None] = {}
    for text in texts_of(values):
        kinds.update((one.kind, None) for one in secrets_in(text))
    if not kinds:
        return values, ()
    rule = _rule(writer, scope, ", ".join(kinds))
    if rule in ("mask", "leave_out"):
        gone = rule == "leave_out"
        values = tuple(without_secret_values(one, leave_out=gone) for one in values)
    return values, () if rule == "keep" else tuple(kinds)


def _rule(writer: MemoryWriter, scope: Mapping[str, Any], told: str) -> str:
    from worlddb.memory.trust_settings import settings_in

    rule = settings_in(writer, scope).secrets
    if rule == "refuse":
        raise RejectedError(f"the text has a secret ({told}); leave it out, then write it again")
    return rule

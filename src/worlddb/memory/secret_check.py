"""Secret check: what becomes of keys, tokens, passwords and card numbers in a text to remember.

Every write looks for a hint (`MAYBE`), which costs a few microseconds; only a text that has one is
searched for secrets, and only a text that has those asks for the rule of its scope.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from worlddb.errors import RejectedError
from worlddb.model.drafts import Message
from worlddb.model.secret_patterns import secrets_in, without_secrets

if TYPE_CHECKING:
    from worlddb.memory.writes import MemoryWriter

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


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
    rule = _rule(writer, scope)
    told = ", ".join(kinds)
    if rule == "refuse":
        raise RejectedError(f"the text has a secret ({told}); leave it out, then write it again")
    if rule == "mask":
        messages = [replace(one, text=without_secrets(one.text)) for one in messages]
    elif rule == "leave_out":
        messages = [replace(one, text=_without_sentences(one.text)) for one in messages]
        messages = [one for one in messages if one.text.strip()]
        if not messages:
            raise RejectedError(f"the text has nothing but a secret ({told})")
    return list(messages), () if rule == "keep" else tuple(kinds)


def _rule(writer: MemoryWriter, scope: Mapping[str, Any]) -> str:
    from worlddb.memory.trust_settings import settings_in

    return settings_in(writer, scope).secrets


def _without_sentences(text: str) -> str:
    """Return a text without the sentences that have a secret; of a private key, all its lines."""
    found = secrets_in(text)
    ends = [
        gap.end()
        for gap in SENTENCE_END.finditer(text)
        # A private key has lines, and a password may end as a sentence does.
        if not any(one.start < gap.start() < one.end for one in found)
        and (gap[0][0] == "\n" or all(gap.start() != one.end for one in found))
    ]
    kept = (
        text[start:end]
        for start, end in pairwise([0, *ends, len(text)])
        if not any(one.start < end and one.end > start for one in found)
    )
    return "".join(kept).strip()

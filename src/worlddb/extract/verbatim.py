"""Verbatim: what was said becomes nodes as it was said, and nothing is read out of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from blake3 import blake3

from worlddb.errors import InvalidInputError
from worlddb.model.drafts import Draft, DraftNode, Message

MEMORY = "memory"
SESSION = "session"


class VerbatimExtractor:
    """One message is a `Memory`; several are the `Turn`s of one `Session`."""

    name = "verbatim"

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is when they were said, unless they say."""
        if not messages:
            return Draft()
        if len(messages) == 1:
            said = messages[0].at or at
            memory = DraftNode(
                key=MEMORY,
                type="Memory",
                content=messages[0].text,
                created_at=said,
                valid_from=said,
            )
            return Draft(nodes=(memory,))
        began = min(message.at or at for message in messages)
        session = DraftNode(
            key=SESSION, type="Session", name=_name(messages), created_at=began, valid_from=began
        )
        return Draft(nodes=(session, *_turns(messages, at)))


def source_key(messages: Sequence[Message], index: int) -> str:
    """Return the key of the node that holds a message."""
    return MEMORY if len(messages) == 1 else f"turn:{index}"


def _name(messages: Sequence[Message]) -> str:
    """Return a name that is the same for the same chat: two may begin at one time."""
    hasher = blake3()
    for message in messages:
        for text in (message.speaker, message.text):
            said = text.encode("utf-8", "surrogatepass")
            hasher.update(len(said).to_bytes(8, "big") + said)
    return f"chat {hasher.hexdigest(6)}"


def _turns(messages: Sequence[Message], at: datetime) -> list[DraftNode]:
    return [
        DraftNode(
            key=source_key(messages, index),
            type="Turn",
            name=message.speaker,
            content=message.text,
            parent=SESSION,
            # Who says "ok" twice has said it twice: a microsecond makes two turns of it.
            created_at=_later(message.at or at, index),
            valid_from=message.at or at,
        )
        for index, message in enumerate(messages)
    ]


def _later(at: datetime, micros: int) -> datetime:
    try:
        return at + timedelta(microseconds=micros)
    except OverflowError:
        raise InvalidInputError(f"at: {at.isoformat()} is too late for a chat") from None

"""Telling: from the details of a world to the messages of a summarizer, and its text to a content.

A summarizer may ask a model, so none of this happens inside a transaction.
"""

from __future__ import annotations

from worlddb.errors import ProviderError
from worlddb.model.drafts import Message, Summarizer
from worlddb.model.inputs import Limits
from worlddb.model.records import Node
from worlddb.sleep.details import Job
from worlddb.store.protocol import Reader

UNNAMED = "user"


def messages_for(reader: Reader, job: Job) -> list[Message]:
    """Return what the details of a job say, in the order of time."""
    nodes = reader.nodes({row for unit in job.units for row in unit.rows})
    units = sorted(job.units, key=lambda unit: (nodes[unit.row].valid_from, unit.row))
    messages = []
    for unit in units:
        node = nodes[unit.row]
        if node.content or not unit.summaries:
            messages.append(_message(node))
        for row in unit.summaries:
            title = node.name or node.type
            messages.append(Message(text=nodes[row].content, speaker=title, at=node.valid_from))
    return messages


def _message(node: Node) -> Message:
    if node.type == "Turn":
        return Message(text=node.content, speaker=node.name or UNNAMED, at=node.valid_from)
    says = [part for part in (node.name, node.content) if part]
    return Message(text=": ".join(says), speaker=UNNAMED, at=node.valid_from)


def told_by(summarizer: Summarizer, title: str, messages: list[Message], limits: Limits) -> str:
    """Return a summary that can be stored.

    Raises:
        ProviderError: the summarizer failed, or has nothing to say.
    """
    said = [message for message in messages if message.text.strip()]
    text = summarizer.summarize(title, said) if said else title
    if not isinstance(text, str) or not text.strip():
        raise ProviderError(f"summarizer {summarizer.name!r} gave no text for {title!r:.80}")
    data = text.strip().replace("\0", " ").encode("utf-8", "replace")
    if len(data) > limits.content_bytes_max:
        data = data[: limits.content_bytes_max]
        data = data[: data.rfind(b"\n")] if b"\n" in data else data
    return data.decode("utf-8", "ignore")

"""Calls: every reply of a model is kept, so that no run pays for it twice.

    messages ──key──▶ calls.jsonl: there? ──▶ the reply      not there ──▶ endpoint ──▶ kept

A run that was stopped, or one with another knob, asks only what was never asked. What a question
took is counted by thread: whoever begins to count is told what was asked on its thread since.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blake3 import blake3

from worlddb.bridge.chat import Chat, ChatSettings, EmptyReplyError
from worlddb.bridge.dialects import ChatMessages, JsonSchema, Reply
from worlddb.bridge.lenient import NotJsonError
from worlddb.errors import ProviderError
from worlddb.evaluate.lines import append_line, read_lines
from worlddb.recall.hits import tokens_of


@dataclass(slots=True)
class Spent:
    """Tokens and requests by role; `again` are those that were answered from what was kept.

    `cut` are those whose replies ran into their limit.
    """

    requests: int = 0
    again: int = 0
    cut: int = 0
    tokens: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, role: str, reply: Reply, *, again: bool) -> None:
        """Count a reply."""
        self.requests += 1
        self.again += again
        self.cut += reply.is_cut
        self.tokens[role][0] += reply.input_tokens
        self.tokens[role][1] += reply.output_tokens


class Calls:
    """The replies of a run, kept in a file or, without one, for the length of the run."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._counting = threading.local()
        self._replies: dict[str, Reply] = {}
        self._turns: dict[str, threading.Lock] = {}
        self.kept: Counter[str] = Counter()
        """How many replies of each role there were before this run."""
        self.total = Spent()
        self.is_stopped = False
        for line in read_lines(path) if path is not None else ():
            reply = Reply(
                text=line["text"],
                is_cut=line["is_cut"],
                input_tokens=line["input_tokens"],
                output_tokens=line["output_tokens"],
            )
            self._replies[line["key"]] = reply
            self.kept[line["role"]] += 1
            self.total.add(line["role"], reply, again=True)

    def turn(self, key: str) -> threading.Lock:
        """Return what lets one thread at a time ask the same thing."""
        with self._lock:
            return self._turns.setdefault(key, threading.Lock())

    def find(self, key: str, role: str) -> Reply | None:
        """Return a reply that was kept.

        Raises:
            ProviderError: the run is being stopped.
        """
        if self.is_stopped:
            raise ProviderError("the run was stopped")
        with self._lock:
            reply = self._replies.get(key)
        if reply is not None:
            self._count(role, reply, again=True)
        return reply

    def keep(self, key: str, role: str, reply: Reply) -> None:
        """Keep a reply for the next time."""
        with self._lock:
            if key not in self._replies:
                self._replies[key] = reply
                self.total.add(role, reply, again=False)
                if self._path is not None:
                    append_line(self._path, {"key": key, "role": role, **_plain(reply)})
        self._count(role, reply, again=False)

    @contextmanager
    def counting(self) -> Iterator[Spent]:
        """Count what is asked on this thread while the block runs."""
        before = getattr(self._counting, "spent", None)
        self._counting.spent = spent = Spent()
        try:
            yield spent
        finally:
            self._counting.spent = before

    def _count(self, role: str, reply: Reply, *, again: bool) -> None:
        spent: Spent | None = getattr(self._counting, "spent", None)
        if spent is not None:
            spent.add(role, reply, again=again)


class KeptChat(Chat):
    """A model in a role, whose replies are kept."""

    def __init__(self, settings: ChatSettings, role: str, calls: Calls) -> None:
        super().__init__(settings)
        self.role = role
        self.calls = calls

    def ask(self, messages: ChatMessages, *, schema: JsonSchema | None = None) -> Reply:
        """Return the answer, asked now or before; a model that says nothing has answered as well.

        Raises:
            InvalidInputError: messages without a role and a content.
            NotJsonError: an extractor said nothing.
            ProviderError: the endpoint failed, or answered with something else.
        """
        key = self._key(messages, schema)
        with self.calls.turn(key):
            reply = self.calls.find(key, self.role)
            if reply is None:
                reply = _counted(messages, self._asked(messages, schema))
                self.calls.keep(key, self.role, reply)
        if self.role == "extractor" and not reply.text.strip():
            raise NotJsonError(f"{self.name}: read nothing, and said so with an empty reply")
        return reply

    def _asked(self, messages: ChatMessages, schema: JsonSchema | None) -> Reply:
        try:
            return super().ask(messages, schema=schema)
        except EmptyReplyError as error:
            # That costs as much as any other reply, and counts: it is no fault of the way there.
            return error.reply

    def _key(self, messages: ChatMessages, schema: JsonSchema | None) -> str:
        settings = self.settings
        asked: list[Any] = [
            *(self.role, settings.provider, settings.model),
            *(settings.max_output_tokens, settings.temperature, schema),
            [[message["role"], message["content"]] for message in messages],
        ]
        text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
        return blake3(text.encode("utf-8", "replace")).hexdigest(16)


def _counted(messages: ChatMessages, reply: Reply) -> Reply:
    """Return a reply with about its tokens if the endpoint has not counted them."""
    if reply.input_tokens:
        return reply
    said = sum(tokens_of(message["content"]) for message in messages)
    return replace(reply, input_tokens=said, output_tokens=tokens_of(reply.text))


def _plain(reply: Reply) -> dict[str, Any]:
    return {name: getattr(reply, name) for name in reply.__slots__}

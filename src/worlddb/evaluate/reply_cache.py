"""Reply cache: every reply of a model is kept, so that no run pays for it twice.

    messages ──key──▶ calls.jsonl: there? ──▶ the reply      not there ──▶ endpoint ──▶ kept

A run that was stopped, or one with another knob, asks only what was never asked. What a question
took is counted by thread: `counting` yields what was asked on its thread since.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from blake3 import blake3

from worlddb import Chat, ChatSettings
from worlddb.errors import ProviderError
from worlddb.evaluate.benchmark_cases import tokens_of
from worlddb.evaluate.run_folder import append_line, read_lines

Messages = Sequence[Mapping[str, str]]


class UnansweredError(ProviderError):
    """No reply arrived: the endpoint failed, or the run is being stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReply:
    """What a model answered; `is_cut` if it ran into its limit of tokens."""

    text: str
    is_cut: bool
    input_tokens: int
    output_tokens: int


@dataclass(slots=True)
class Spent:
    """Requests, and tokens in and out by role.

    `again` counts the replies that came from the cache, `cut` those that ran into their limit.
    """

    requests: int = 0
    again: int = 0
    cut: int = 0
    tokens: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, role: str, reply: KeptReply, *, again: bool) -> None:
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
        self._replies: dict[str, KeptReply] = {}
        self._turns: dict[str, threading.Lock] = {}
        self.kept: Counter[str] = Counter()
        """How many replies of each role there were before this run."""
        self.total = Spent()
        self.is_stopped = False
        for line in read_lines(path) if path is not None else ():
            key, role = line.pop("key"), line.pop("role")
            self._replies[key] = reply = KeptReply(**line)
            self.kept[role] += 1
            self.total.add(role, reply, again=True)

    def turn(self, key: str) -> threading.Lock:
        """Return a lock that lets one thread at a time ask the same thing."""
        with self._lock:
            return self._turns.setdefault(key, threading.Lock())

    def find(self, key: str, role: str) -> KeptReply | None:
        """Return a reply that was kept.

        Raises:
            UnansweredError: the run is being stopped.
        """
        if self.is_stopped:
            raise UnansweredError("the run was stopped")
        with self._lock:
            reply = self._replies.get(key)
        if reply is not None:
            self._count(role, reply, again=True)
        return reply

    def keep(self, key: str, role: str, reply: KeptReply) -> None:
        """Keep a reply for the next time."""
        with self._lock:
            if key not in self._replies:
                self._replies[key] = reply
                self.total.add(role, reply, again=False)
                if self._path is not None:
                    append_line(self._path, {"key": key, "role": role, **asdict(reply)})
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

    def _count(self, role: str, reply: KeptReply, *, again: bool) -> None:
        spent: Spent | None = getattr(self._counting, "spent", None)
        if spent is not None:
            spent.add(role, reply, again=again)


class KeptChat(Chat):
    """A model in a role, whose replies are kept."""

    def __init__(self, settings: ChatSettings, role: str, calls: Calls) -> None:
        super().__init__(settings)
        self.role = role
        self.calls = calls

    def ask(self, messages: Messages, *, schema: Any = None) -> Any:
        """Return the reply, asked now or before; an empty one is a reply as well.

        Raises:
            InvalidInputError: messages without a role and a content.
            UnansweredError: no reply arrived.
            ProviderError: an extractor said nothing.
        """
        key = self._key(messages, schema)
        with self.calls.turn(key):
            reply = self.calls.find(key, self.role)
            if reply is None:
                reply = self._asked(messages, schema)
                self.calls.keep(key, self.role, reply)
        if self.role == "extractor" and not reply.text.strip():
            raise ProviderError(f"{self.name}: read nothing, and said so with an empty reply")
        return reply

    def _asked(self, messages: Messages, schema: Any) -> KeptReply:
        try:
            reply: Any = super().ask(messages, schema=schema)
        except ProviderError as error:
            # The error of an empty reply holds that reply, which was paid for like any other.
            reply = getattr(error, "reply", None)
            if reply is None:
                raise UnansweredError(str(error)) from error
        said = sum(tokens_of(message["content"]) for message in messages)
        is_counted = bool(reply.input_tokens)
        return KeptReply(
            text=reply.text,
            is_cut=reply.is_cut,
            input_tokens=reply.input_tokens if is_counted else said,
            output_tokens=reply.output_tokens if is_counted else tokens_of(reply.text),
        )

    def _key(self, messages: Messages, schema: Any) -> str:
        settings = self.settings
        asked: list[Any] = [
            *(self.role, settings.provider, settings.model),
            *(settings.max_output_tokens, settings.temperature, schema),
            [[message["role"], message["content"]] for message in messages],
        ]
        text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
        return blake3(text.encode("utf-8", "replace")).hexdigest(16)

"""Prompt context: memories as text for a prompt, within a budget of tokens.

    pins ─▶ standing instructions ─▶ about the user ─▶ hits of the question, or the latest

The text says that it is data. Each memory is one line with its date and the prefix of its id; its
text can neither end the block nor begin another line. Memories without full trust are left out,
except hits of the question, which are in quotes with their origin. The budget covers the whole text
as it is sent, by `model.text_safety`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, Unpack

from worlddb.errors import InvalidInputError
from worlddb.memory.memory_marks import PINNED, TAGS
from worlddb.memory.reads import MemoryReader, granted
from worlddb.memory.results import PromptContext, Remembered
from worlddb.model.address import Id
from worlddb.model.inputs import Instant, ScopeIds, check_integer, said_by
from worlddb.model.text_safety import (
    CONTEXT_FOOT,
    CONTEXT_HEAD,
    tokens_at_most,
    unconfirmed,
    visible,
)
from worlddb.recall.hits import Hit, Recall

INSTRUCTION = "instruction"
"""The tag of a memory that says how the assistant shall work."""
SELF = "user"
"""The name under which the one who writes is known."""
PAGES_MAX = 5  # Pages that are read if many memories are left out.
PINS_MAX = 100  # More pins than a budget holds.
ABOUT_MAX = 10  # Memories about the user; the newest come first.
LATEST = 10  # Memories without a question.
ID_DIGITS = 8  # Collides once in four thousand million.
SHARES = {"Pinned": 0.75, "Instructions": 0.5, "About the user": 0.25}
"""The part of what is left that a section takes at most, so that hits follow."""
CONFIDENCE_MIN = 0.015
"""Less sure hits say nothing about the question (`python -m bench.injected_hits`)."""
LINE_PART = 2  # One memory takes at most half of the budget; a longer one is cut.
CHARS_PER_TOKEN = 3  # For the cut; a token of prose has more characters on average.
LINE_CHARS_MIN = 40  # A date, the prefix of an id and a word or two.
Lines: TypeAlias = list[tuple[Id, str]]
"""Memories, each as its id and a line."""


@dataclass(slots=True)
class _Prompt:
    """Collects the lines of a prompt within a budget of tokens."""

    left: int
    most: int
    lines: list[str] = field(default_factory=list)
    shown: dict[Id, str] = field(default_factory=dict)
    left_out: int = 0

    def add(self, title: str, memories: Iterable[tuple[Id, str]]) -> None:
        """Add a section with as many memories as fit into its share."""
        fresh = [one for one in memories if one[0] not in self.shown]
        share = int(self.left * SHARES.get(title, 1))
        heading = f"{title}:"
        cost = tokens_at_most(heading) + 1
        for ident, line in fresh:
            # The first memory may take the whole budget: hits never displace a pin.
            told = self._fitting(line, (share if self.shown else self.left) - cost)
            if told is None:
                self.left_out += 1
                continue
            spent = cost + tokens_at_most(told) + 1
            self.lines += [heading, told] if cost else [told]
            self.left, share, cost = self.left - spent, share - spent, 0
            self.shown[ident] = title

    def _fitting(self, line: str, room: int) -> str | None:
        """Return a line of at most so many tokens, cut if needed."""
        room = min(room, self.most // LINE_PART) - 1
        size = tokens_at_most(line)
        if size <= room:
            return line
        if size <= self.most // LINE_PART:
            return None
        # Code and tables have more tokens per character than prose, so the rest is cut again.
        chars = room * CHARS_PER_TOKEN
        while chars >= LINE_CHARS_MIN:
            cut = line[:chars].rsplit(" ", 1)[0] + " …"
            if tokens_at_most(cut) <= room:
                return cut
            chars = chars * 3 // 4
        return None


@dataclass(frozen=True, slots=True)
class _PromptSource:
    """Finds memories for the sections; `options` are the times and types of every question."""

    reader: MemoryReader
    where: Mapping[str, Any] | None
    options: Mapping[str, Any]
    scope: Any

    def listed(self, limit: int, wanted: Mapping[str, Any] | None) -> Lines:
        """Return the latest fully trusted memories."""
        both = [one for one in (wanted, self.where) if one]
        found: list[Remembered] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = self.reader.page(
                limit=limit,
                cursor=cursor,
                include_retired=False,
                where={"$and": both} if both else None,
                trusted=True,
                scope=self.scope,
                **self.options,
            )
            found += [one for one in page if one.trust == "full" and one.text]
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                break
        return [(memory.id, memory_line(memory)) for memory in found[:limit]]

    def recalled(self, question: str, names: str | None, most: int, trusted: bool) -> Lines:
        """Return the hits of a question; with `trusted`, only fully trusted ones."""
        found = self._asked(question, names, most)
        if trusted and any(hit.trust != "full" for hit in found):
            found = self._asked(question, names, most * PAGES_MAX)
        # A world that says nothing itself, such as a chat, is a name without use in a prompt.
        told = [hit for hit in found if hit.node.content or hit.summary or self.options["types"]]
        kept = [hit for hit in told if not trusted or hit.trust == "full"]
        return [(hit.id, hit_line(hit)) for hit in kept[:most]]

    def _asked(self, question: str, names: str | None, k: int) -> Recall:
        sure = CONFIDENCE_MIN if names is None else None
        return self.reader.recall(
            question,
            names=names,
            k=k,
            min_confidence=sure,
            where=self.where,
            **self.options,
            **self.scope,
        )


@granted
def context(
    reader: MemoryReader,
    query: str | None = None,
    *,
    max_tokens: int = 1_000,
    k: int = 10,
    as_of: Instant | None = None,
    known_at: Instant | None = None,
    types: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    counted: bool = True,
    **scope: Unpack[ScopeIds],
) -> PromptContext:
    """Return memories as text for a prompt, of at most `max_tokens` tokens.

    First pinned memories, then those with the tag `instruction`, then facts about the user, then
    the hits that may have the answer, or the latest memories without a question. The text has
    dates and ids and says that it is data; its budget covers everything in it. `types` and
    `where` choose the memories, and `counted` is as in `recall`.

    Raises:
        InvalidInputError: an argument is wrong.
        RejectedError: the scope is outside the bounds of this memory.
        ProviderError: the embedder failed or is missing.
    """
    check_integer(max_tokens, "max_tokens", 1)
    if query is not None and not isinstance(query, str):
        raise InvalidInputError(f"query: give text, not {type(query).__name__}")
    options = {"as_of": as_of, "known_at": known_at, "types": types}
    reader = reader if counted else replace(reader, counts=False)
    source = _PromptSource(reader, where, options, scope)
    frame = tokens_at_most(f"{CONTEXT_HEAD}\n{CONTEXT_FOOT}") + 1
    prompt = _Prompt(left=max_tokens - frame, most=max_tokens)
    sections: dict[str, Callable[[], Lines]] = {
        "Pinned": lambda: source.listed(PINS_MAX, {PINNED: True}),
        "Instructions": lambda: source.listed(PINS_MAX, {TAGS: INSTRUCTION}),
        "About the user": lambda: source.recalled("", SELF, ABOUT_MAX, True),
    }
    if query is not None and query.strip():
        sections["On the question"] = lambda: source.recalled(query, None, k, False)
    else:
        sections["Latest"] = lambda: source.listed(LATEST, None)
    for title, memories in sections.items():
        prompt.add(title, memories())
    text = "\n".join((CONTEXT_HEAD, *prompt.lines, CONTEXT_FOOT)) if prompt.lines else ""
    return PromptContext(
        text=text,
        tokens=tokens_at_most(text),
        ids=tuple(prompt.shown),
        pinned=tuple(ident for ident, title in prompt.shown.items() if title == "Pinned"),
        left_out=prompt.left_out,
    )


def memory_line(memory: Remembered) -> str:
    """Return a memory as one line: its date, its text, and the prefix of its id."""
    said = f"{memory.speaker}: {memory.text}" if memory.speaker else memory.text
    return _line(memory.valid_from.date().isoformat(), said, memory.id)


def hit_line(hit: Hit) -> str:
    """Return a hit as one line, with its conflicts; not fully trusted, quoted with its origin."""
    node, quoted = hit.node, hit.trust != "full"
    said = node.content if hit.summary is None else hit.summary.content
    text = said or node.name
    if node.type == "Turn" and said:
        text = f"{said_by(node.name)}: {text}"
    elif node.type == "Passage" and node.name and said:
        text = f"{node.name}: {text}"
    if quoted:
        text = unconfirmed(hit.origin, text)
    told = _quoted if quoted else str
    notes = [f"no longer so{_see(old.by)}: {told(old.text)}" for old in hit.outdated]
    later = dict.fromkeys(doubt.by for doubt in hit.maybe_outdated)
    notes += [f"maybe outdated{_see(by)}" for by in later]
    sides = {side for one in hit.conflicts for side in (one.left, one.right)} - {node.id, *later}
    notes += [f"contradicted by {str(side)[:ID_DIGITS]}" for side in sorted(sides)]
    doubts = f" ({'; '.join(notes)})" if notes else ""
    return _line(node.valid_from.date().isoformat(), text + doubts, node.id)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _see(ident: Id | None) -> str:
    return "" if ident is None else f", see {str(ident)[:ID_DIGITS]}"


def _line(day: str, text: str, ident: Id) -> str:
    # One memory, one line: its content cannot end the block.
    plain = visible(" ".join(text.split())).replace("</", "< /")
    return f"- [{day} {str(ident)[:ID_DIGITS]}] {plain}"

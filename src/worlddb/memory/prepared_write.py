"""Prepared write: what a write needs from outside the store, and its steps inside.

    text ─▶ prepare ─▶ PreparedWrite ─▶ stage ─▶ COMMIT ─▶ finish ─▶ Written

To prepare takes neither lock nor snapshot, and a prepared write is a plain value. So another thread
or process can do it, while one writer stages many and commits them together (`write_together`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from worlddb.ingest.chat_growth import Growth, changes_of_turns, chat_draft, without_session
from worlddb.ingest.draft_parts import PartChanges
from worlddb.ingest.ingestion import (
    DatedDraft,
    FinishedWrite,
    Ingestion,
    origins_by_key,
)
from worlddb.ingest.write_request import Target, WriteRequest
from worlddb.memory.memory_marks import NO_MARKS, WriteTerms
from worlddb.memory.results import Written
from worlddb.model.address import Id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Message
from worlddb.store.interface import Reader

if TYPE_CHECKING:
    from worlddb.memory.writes import MemoryWriter, ScopeDestination


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedWrite:
    """A write whose arguments are checked and free of secrets, and whose text is read.

    `ahead` is the draft; None for a chat, of which only the new messages are read.
    """

    messages: list[Message]
    terms: WriteTerms
    is_chat: bool
    ahead: DatedDraft | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedWrite:
    """A write that has happened in its transaction, which may not be durable yet."""

    new: TextWrite
    terms: WriteTerms
    write: FinishedWrite | None


@dataclass(slots=True, kw_only=True)
class TextWrite:
    """One write of messages: the input, and the state of the store for it.

    `fresh` are the new messages, `ahead` is the draft that was extracted before the store was read.
    The rest is as of the last `look`.
    """

    ingestion: Ingestion
    destination: ScopeDestination
    messages: list[Message]
    terms: WriteTerms
    is_chat: bool
    asked: Callable[..., WriteRequest]
    parts: PartChanges | None = None
    ahead: DatedDraft | None = None
    fresh: list[Message] = field(default_factory=list)
    growth: Growth | None = None
    first_memory: Id | None = None
    target: Target | None = None
    unsaid: tuple[int, str] | None = None
    last: int = 0

    def read_ahead(self) -> None:
        """Extract a text in advance; a chat is extracted later, because only new messages are."""
        if self.ahead is None and not self.destination.chat:
            self.ahead = self.ingestion.draft(self.messages, self.terms.at, self.terms.extractor)

    def look(self, reader: Reader) -> bool:
        """Locate the target and the new messages on a snapshot; return whether there are any."""
        self.last = reader.head().time
        if self.destination.chat:
            self.growth = self.destination.chat_growth(reader, self.last)
            self.destination = replace(self.destination, growth=self.growth)
            metadata = self.terms.marks.metadata or {}
            self.first_memory = self.destination.first_memory(reader, self.last, metadata)
        self.target = self.destination.locate(reader)
        if self.destination.chat:
            self.fresh = self.messages if self.growth is None else list(self.growth.fresh)
        else:
            found = self.ingestion.with_known_spelling(reader, self.messages, self.target)
            self.fresh, self.unsaid = found
        return self.target.written is None and bool(self.fresh)

    def request(self) -> WriteRequest:
        """Return the write request, after a `look`."""
        assert self.target is not None
        fresh, read, terms = self.fresh, self.ahead, self.terms
        if read is not None and terms.at is None and read.at <= self.last:
            # Others have committed since the text was read.
            read = redated(read, max(self.ingestion.clock(), self.last + 1))
        if read is None or fresh is not self.messages:
            read = self.ingestion.draft(fresh, terms.at, terms.extractor, self.last)
        draft, parts = read.draft, self.parts
        if self.is_chat:
            draft = chat_draft(draft, fresh, session=self.destination.continues_session(fresh))
            parts = changes_of_turns(draft, fresh, self.first_memory)
        draft = draft if terms.names is None else terms.names.added_to(draft)
        draft = draft if terms.marks is NO_MARKS else terms.marks.ending(draft)
        return self.asked(
            draft=draft if self.growth is None else without_session(draft),
            memory=draft.nodes[0].key,
            destination=self.destination,
            target=self.target,
            parts=parts,
            waiting=read.waiting,
            origins=origins_by_key(draft, fresh, terms.origin),
            unsaid=self.unsaid,
        )

    def ask(self, reader: Reader) -> WriteRequest | None:
        """Return the write request for a snapshot; None if there is nothing to write."""
        return self.request() if self.look(reader) else None


def redated(read: DatedDraft, at: int) -> DatedDraft | None:
    """Return a draft of a built-in extractor as if its messages had been said at another time.

    A text is read with the day on which it was said, and nodes begin at that time. None if the
    draft has to be made again: the day is another one, or the old time is also that of a date.
    """
    old, new = from_micros(read.at), from_micros(at)
    is_plain = read.waiting is None and old.microsecond and old.date() == new.date()
    if not is_plain:
        return None

    def moved(part: Any) -> Any:
        times = (part.valid_from, part.valid_to, getattr(part, "created_at", None))
        if old not in times:
            return part
        names = ("valid_from", "valid_to", "created_at")
        return replace(
            part, **{name: new for name, time in zip(names, times, strict=True) if time == old}
        )

    draft = read.draft
    nodes, edges = tuple(map(moved, draft.nodes)), tuple(map(moved, draft.edges))
    return DatedDraft(replace(draft, nodes=nodes, edges=edges), None, at)


def write_together(
    pairs: Sequence[tuple[MemoryWriter, PreparedWrite]],
    on_commit: Callable[[float], None] = lambda seconds: None,
) -> list[Written | Exception]:
    """Carry out prepared writes of one store in their order, and commit them together.

    Each has its own commit and its own error. They are durable when this returns. `on_commit` is
    told how long the COMMIT took.
    """
    if not pairs:
        return []
    store = pairs[0][0].engine.store
    staged: list[tuple[StagedWrite | Exception, Callable[[], None]]] = []
    with store.gathering() as gathered:
        for writer, prepared in pairs:
            one: StagedWrite | Exception
            try:
                one = writer.stage(prepared)
            except Exception as error:  # It is the answer to this write alone.
                one = error
            staged.append((one, gathered.landing()))
        began = time.perf_counter()
    on_commit(time.perf_counter() - began)
    results: list[Written | Exception] = []
    for (writer, _), (one, landing) in zip(pairs, staged, strict=True):
        try:
            if isinstance(one, Exception):
                raise one
            try:
                with store.translating():
                    landing()
            except Exception:
                writer.engine.registry.recorded_at = -1  # It may follow a commit that is not there.
                raise
            results.append(writer.finish(one))
        except Exception as error:
            results.append(error)
    return results

"""Document writes: a document into scopes, as one commit; again, only what has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from worlddb.ingest.chat_growth import ChatMovedError
from worlddb.ingest.document_draft import (
    DocumentChange,
    KeptDocument,
    document_change,
    kept_document,
)
from worlddb.ingest.document_text import DocumentInput, document_of
from worlddb.ingest.extractors import SESSION
from worlddb.ingest.passages import passages_of
from worlddb.ingest.stated_names import StatedNames
from worlddb.ingest.write_request import Target, WriteRequest
from worlddb.memory.memory_marks import Marks
from worlddb.memory.results import Written
from worlddb.memory.writes import CHAT_TRIES_MAX, MemoryWriter, ScopeDestination
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.model.inputs import Instant, from_micros, to_micros
from worlddb.model.origin import Origin, lowered
from worlddb.store.interface import Reader


@dataclass(frozen=True, slots=True)
class DocumentDestination:
    """The scopes of a document, and the document there if it was written before."""

    scopes: ScopeDestination
    name: str
    there: KeptDocument | None = None

    def find(self, reader: Reader, row: int | None) -> KeptDocument | None:
        """Return the document on this snapshot."""
        if row is None or self.scopes.strangers:
            return None  # What goes to others is a document of its own.
        return kept_document(reader, row, self.name, reader.head().time)

    def locate(self, reader: Reader) -> Target:
        """Return where the scopes are on this snapshot.

        Raises:
            ChatMovedError: another writer has changed the document.
        """
        target = self.scopes.locate(reader)
        if self.find(reader, target.home_row) != self.there:
            raise ChatMovedError("another writer changed this document; write it again")
        return self.anchored(target)

    def anchored(self, target: Target) -> Target:
        """Return a target whose draft means the document in the store."""
        if self.there is None:
            return target
        return replace(target, anchors={SESSION: self.there.node.id})


def write_document(
    writer: MemoryWriter,
    given: DocumentInput,
    *,
    at: Instant | None,
    source: str | Sequence[str] | None,
    marks: Mapping[str, Any],
    names: str | Sequence[str] | None,
    aliases: Any,
    idempotency_key: str | None,
    extractor: Extractor | str | None,
    scope: Mapping[str, Any],
    origin: Origin | None = None,
) -> Written:
    """Remember a document; see `Memory.write`."""
    origin = lowered(origin, writer.origin)
    document = document_of(given)
    (whole,), secrets = writer.without_secrets([Message(text=document.text)], scope)
    document = replace(document, text=whole.text) if secrets else document
    beside, more = writer.without_secret_values((source, marks, names, aliases), scope)
    source, marks, names, aliases = beside
    secrets = tuple(dict.fromkeys((*secrets, *more)))
    passages = passages_of(document)
    said = [Message(text=document.text, speaker=document.name)]
    scopes = writer.destination(scope, idempotency_key, said)
    origin = writer.origin_in(scopes, origin)
    given_marks, stated = writer.told(marks, names, aliases)
    if at is not None:
        to_micros(at, "at")
    for left in reversed(range(CHAT_TRIES_MAX)):
        ingestion = writer.engine.ingestion
        with ingestion.snapshot() as reader:
            located, last = scopes.locate(reader), reader.head().time
            destination = DocumentDestination(scopes, document.name)
            there = destination.find(reader, located.home_row)
            destination = replace(destination, there=there)
            target = destination.anchored(located)
        if target.written is not None:
            return writer.known(target.written)
        change = document_change(document, passages, there)
        try:
            request = _request(
                writer,
                change,
                destination,
                target,
                at,
                last,
                source,
                given_marks,
                stated,
                extractor,
            )
            if origin is not None:
                keys = {SESSION, *(node.key for node in request.draft.nodes)}
                request = replace(request, origins=dict.fromkeys(keys, (origin,)), caller=origin)
            done = writer.commit(ingestion.plan(request), scopes.scopes)
            return replace(done, secrets=secrets) if secrets else done
        except ChatMovedError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _request(
    writer: MemoryWriter,
    change: DocumentChange,
    destination: DocumentDestination,
    target: Target,
    at: Instant | None,
    last: int,
    source: str | Sequence[str] | None,
    given: Marks,
    stated: StatedNames | None,
    extractor: Extractor | str | None,
) -> WriteRequest:
    """Return the write of what is new in a document."""
    ingestion = writer.engine.ingestion
    when = max(writer.engine.clock(), last + 1) if at is None else to_micros(at, "at")
    messages = change.messages()
    draft, waiting = Draft(), None
    if messages:
        chosen = writer.extractor if extractor is None else extractor
        draft, waiting, _ = ingestion.draft(messages, from_micros(when), chosen)
        draft = change.draft(draft, messages)
        draft = draft if stated is None else stated.added_to(draft)
    if given.expires is None and change.there is not None and change.there.node.valid_to:
        ends = to_micros(change.there.node.valid_to, "valid_to")
        given = replace(given, expires=ends)
    draft = draft if given.expires is None else given.ending(draft)
    return WriteRequest(
        draft=draft,
        memory=SESSION,
        destination=destination,
        target=target,
        actor=writer.actor,
        source=source,
        metadata=given.metadata,
        parts=change.parts(given.metadata or {}, None if at is None else from_micros(when)),
        waiting=waiting,
        supersede=False,  # A document states what holds in it, not what holds for its owner.
    )

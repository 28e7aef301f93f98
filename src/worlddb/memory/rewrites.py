"""Rewrites: replace the text of a memory, and write a new version of a document.

    passages ──compared with the store──▶ kept · replaced · ended · new ──▶ draft and part changes

A document is a world of type Document in a scope; its passages are its children. The name of a
passage is its headings, its metadata have its position. A passage with the same text under the same
headings keeps its node; only its position is updated. Each version of a document is one commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.ingest.chat_growth import ChatMovedError, chat_draft
from worlddb.ingest.document_text import (
    DocumentInput,
    DocumentText,
    Passage,
    document_of,
    passages_of,
    title_of_document,
)
from worlddb.ingest.draft_parts import OF_WHOLE, PartChanges
from worlddb.ingest.extractors import SESSION, messages_of, same_text, turn_key
from worlddb.ingest.write_request import Target, WriteRequest
from worlddb.memory.memory_marks import PINNED, Marks, StatedTerms, WriteTerms, marks_of
from worlddb.memory.results import Written
from worlddb.memory.scope_view import (
    CallerScopes,
    find_memory,
    further_bounds,
    scopes_of,
    successors,
    world_of,
)
from worlddb.memory.writes import (
    CHAT_TRIES_MAX,
    MemoryWriter,
    ScopeDestination,
)
from worlddb.model.address import Id, content_key
from worlddb.model.inputs import Groups, Instant, encode_metadata, from_micros, to_micros
from worlddb.model.records import DOCUMENT, NOW, WHOLES, Draft, Message, Node
from worlddb.model.text_safety import origin_of_write
from worlddb.store.interface import Reader
from worlddb.view.visibility import View, moment_of

AROUND = "around"
"""The key by which a draft means the world that an amended memory lies in."""


@dataclass(frozen=True, slots=True)
class AmendDestination:
    """The destination of an amendment: the worlds of the memory that it replaces."""

    memory: Id
    caller: CallerScopes
    reach: Groups

    def locate(self, reader: Reader) -> Target:
        """Return the worlds of the memory on this snapshot."""
        moment = moment_of(reader, NOW, self.caller.clock())
        view = self.caller.view(reader, self.reach, moment, ended=True)
        row, old = find_memory(view, self.memory)
        refuse_ended(view, row, old)
        lives, around, others = _homes(view, row)
        home = _own_home(view, self.caller.bounds, row, lives)
        guests: set[Id] = set()
        if self.caller.bounds and others:
            from worlddb.memory.scope_grants import guest_worlds

            now = to_micros(moment.now, "now")
            guests, closed = guest_worlds(reader, self.caller, others, now)
            others = [world for world in others if world not in closed]
        return Target(
            commit=reader.head().seq,
            home=home,
            home_row=reader.node_row(home),
            memberships=tuple(others),
            name_worlds=tuple(one for one in (lives, *others) if one not in {home, *guests}),
            within=further_bounds(reader, self.caller.bounds, home),
            anchors={AROUND: around},
        )


def _own_home(view: View, bounds: Groups, row: int, home: Id) -> Id:
    """Return the world in which names of an amendment are resolved: never outside the bounds.

    A shared memory may live with another user, whose names and claims are not the caller's.
    """
    reader = view.reader
    own = [world_of(reader, name)[0] for group in bounds for name in group]
    if not own or home in own:
        return home
    rows = {number: world for world in own if (number := reader.node_row(world)) is not None}
    return next(rows[number] for number in rows if view.keep_inside({row}, [number]))


def _homes(view: View, row: int) -> tuple[Id, Id, list[Id]]:
    """Return the world for names in a memory, the world it lives in, and its other worlds."""
    reader, moment = view.reader, view.moment
    parent = reader.parents([row])[row]
    assert parent is not None
    around = reader.world(parent)
    above = (
        around
        if around.type not in WHOLES or around.parent is None
        else reader.world(around.parent)
    )
    holders = reader.edges_at([row], "in", ("contains",))
    others = [item.edge.source for item in holders if moment.holds(item.edge)]
    return Id(above.id), Id(around.id), others


def refuse_ended(view: View, row: int, node: Node, whole: bool = False) -> None:
    """Refuse to amend an ended memory, or one of several texts unless `whole` is set.

    Raises:
        ConflictError: the memory has ended, or it is a session or a document.
    """
    if node.type in WHOLES and not whole:
        part, kind = WHOLES[node.type].lower(), node.type.lower()
        raise ConflictError(f"{node.id.short} is a whole {kind}; amend one of its {part}s")
    if view.moment.holds(node):
        return
    by = ", ".join(ident.short for ident in successors(view, row))
    reason = f"was superseded by {by}; use that one" if by else "was retired; write a new memory"
    raise ConflictError(f"memory {node.id.short} {reason}")


def pin_memory(
    writer: MemoryWriter, id: bytes | str, scope: Mapping[str, Any], *, pinned: bool
) -> None:
    """Write whether a memory is pinned; see `Memory.pin`."""
    with writer.scopes.viewing(writer.scopes.reach(scope), ended=True) as view:
        row, old = find_memory(view, id)
        refuse_ended(view, row, old, whole=True)
    writer.write_marks(old, (), Marks(metadata={PINNED: pinned}, expires=None))


def write_amendment(
    writer: MemoryWriter, id: bytes | str, text: str, stated: StatedTerms
) -> Written:
    """Replace a memory by another text; see `Memory.amend`."""
    at, scope, origin = stated.at, stated.scope, origin_of_write(stated.origin, writer.origin)
    if not isinstance(text, str):
        raise InvalidInputError(f"text: give text, not {type(text).__name__}")
    messages_of(text)  # Refuses an empty text, as `write` does.
    (message,), secrets = writer.without_secrets([Message(text=text)], scope)
    text = message.text
    (source, marks), more = writer.without_secret_values((stated.source, stated.marks), scope)
    secrets = tuple(dict.fromkeys((*secrets, *more)))
    given = marks_of(now=writer.engine.clock(), **marks)
    encode_metadata(given.metadata, writer.engine.limits)
    reach = writer.scopes.reach(scope)
    with writer.scopes.viewing(reach, ended=True) as view:
        row, old = find_memory(view, id)
        destination = AmendDestination(old.id, writer.scopes, reach)
        target = destination.locate(view.reader)
        names = scopes_of(view.reader, [row], view.moment)[row]
        last = view.reader.head().time
    if same_text(text, old.content) and not _expires_later(given, old):
        return writer.write_marks(old, names, given)
    speaker = {"Turn": old.name, "Passage": DOCUMENT}.get(old.type, "user")
    read = writer.engine.ingestion.draft(
        [Message(text=text, speaker=speaker)],
        _beginning(writer, old, at, last),
        writer.extractor if stated.extractor is None else stated.extractor,
    )
    draft = read.draft
    if given.expires is None and old.valid_to is not None:
        given = replace(given, expires=to_micros(old.valid_to, "valid_to"))
    draft = given.ending(draft)
    origins = tuple(dict.fromkeys((*old.origins, *((origin,) if origin else ()))))
    parent = None if target.anchors[AROUND] == target.home else AROUND
    first = replace(draft.nodes[0], type=old.type, name=old.name, parent=parent)
    request = WriteRequest(
        draft=replace(draft, nodes=(first, *draft.nodes[1:])),
        memory=first.key,
        destination=destination,
        target=target,
        actor=writer.actor,
        source=source,
        metadata={**old.metadata, **(given.metadata or {})},
        waiting=read.waiting,
        supersede=writer.supersede,
        replaces=old.id,
        # A correction repeats most of the text, so it is trusted no more than the old text.
        origins=dict.fromkeys((one.key for one in draft.nodes), origins) if origins else {},
        caller=origin,
    )
    done = writer.commit(writer.engine.ingestion.plan(request), names)
    return replace(done, secrets=secrets) if secrets else done


def _expires_later(given: Marks, old: Node) -> bool:
    """Return whether the new expiry is later than the present end of a memory."""
    if given.expires is None or old.valid_to is None:
        return False
    return given.expires > to_micros(old.valid_to, "valid_to")


def _beginning(writer: MemoryWriter, old: Node, at: Instant | None, last: int) -> Instant:
    """Return when an amendment becomes valid: never before the memory that it supersedes.

    Now is always after the `last` commit, even if the clock was set back.

    Raises:
        InvalidInputError: `at` is earlier.
    """
    began = to_micros(old.valid_from, "valid_from")
    if at is None:
        return from_micros(max(writer.engine.clock(), began, last + 1))
    if to_micros(at, "at") < began:
        raise InvalidInputError(
            f"at: memory {old.id.short} began at {old.valid_from.isoformat()}; give that time "
            "or a later one"
        )
    return at


TYPE = "Document"
ALIKE_MAX = 64  # Documents of one name in one scope: the live one is among the last.


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document in the store, and its live passages."""

    node: Node
    passages: tuple[Node, ...]


def stored_document(reader: Reader, world: int, name: str, now: int) -> StoredDocument | None:
    """Return the live document of a name that lives in a world."""
    for row in reader.alike([content_key(TYPE, name, "", world)], 0, ALIKE_MAX):
        node = reader.nodes([row])[row]
        is_it = (node.type, node.name, node.content) == (TYPE, name, "")
        if is_it and reader.parents([row])[row] == world and _lives(node, now):
            found = reader.nodes(reader.children_of([row]))
            parts = [
                part
                for _, part in sorted(found.items())
                if part.type == WHOLES[TYPE] and _lives(part, now)
            ]
            parts.sort(key=lambda part: part.metadata.get("number", 0))
            return StoredDocument(node, tuple(parts))
    return None


def _lives(node: Node, now: int) -> bool:
    return node.valid_to is None or to_micros(node.valid_to, "valid_to") > now


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """The new passages of a document, and the changes of its stored passages.

    `kept` and `replaced` are by the index of the passage in the document.
    """

    document: DocumentText
    passages: Sequence[Passage]
    there: StoredDocument | None
    kept: Mapping[int, Node]
    replaced: Mapping[int, Node]
    ended: tuple[Node, ...]

    @property
    def fresh(self) -> list[int]:
        """The indexes of the new passages."""
        return [place for place in range(len(self.passages)) if place not in self.kept]

    def messages(self) -> list[Message]:
        """Return the new passages as messages for an extractor."""
        return [Message(text=self.passages[at].text, speaker=DOCUMENT) for at in self.fresh]

    def draft(self, read: Draft, messages: Sequence[Message]) -> Draft:
        """Return the extractor's draft as a document of passages."""
        read = chat_draft(read, messages, session=True)
        names = {turn_key(at): self.passages[place].path for at, place in enumerate(self.fresh)}
        nodes = []
        for node in read.nodes:
            if node.key == SESSION and self.there is None:
                nodes.append(replace(node, type=TYPE, name=self.document.name))
            elif node.key in names:
                nodes.append(replace(node, type=WHOLES[TYPE], name=names[node.key]))
            elif node.key != SESSION:
                nodes.append(node)
        return replace(read, nodes=tuple(nodes))

    def parts(self, metadata: Mapping[str, Any], at: datetime | None) -> PartChanges:
        """Return the changes of stored passages; `metadata` is the caller's."""
        of_parts = {key: value for key, value in metadata.items() if key not in OF_WHOLE}
        keys = {place: turn_key(at) for at, place in enumerate(self.fresh)}
        told = {
            node.id: changed
            for place, node in self.kept.items()
            if (changed := _changed(node, {**of_parts, **self._place(place)}))
        }
        whole = self._whole()
        drafted = {key: self._place(place) for place, key in keys.items()}
        if self.there is None:
            drafted[SESSION] = whole
        elif changed := _changed(self.there.node, {**metadata, **whole}):
            told[self.there.node.id] = changed
        return PartChanges(
            metadata=drafted,
            told=told,
            replaces={keys[place]: node.id for place, node in self.replaced.items()},
            ended=tuple(node.id for node in self.ended),
            at=at,
        )

    def _whole(self) -> dict[str, Any]:
        title = title_of_document(self.document)
        told = {"document": self.document.name, "media_type": self.document.media_type}
        return told | ({"title": title} if title else {})

    def _place(self, place: int) -> dict[str, Any]:
        """Return the position of a passage: its number from 1, headings, characters and page."""
        passage = self.passages[place]
        told: dict[str, Any] = {
            "document": self.document.name,
            "number": place + 1,
            "headings": list(passage.headings),
            "start": passage.start,
            "end": passage.end,
        }
        return told if passage.page is None else told | {"page": passage.page}


def _changed(node: Node, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that a node lacks."""
    return {key: value for key, value in wanted.items() if node.metadata.get(key) != value}


def document_change(
    document: DocumentText, passages: Sequence[Passage], there: StoredDocument | None
) -> DocumentChange:
    """Compare a document with its stored version.

    A passage is kept if heading path and text are the same. Otherwise it replaces the first
    remaining passage with the same text, or else with the same heading path.
    """
    old = list(there.passages) if there is not None else []
    kept: dict[int, Node] = {}
    replaced: dict[int, Node] = {}
    for found, key_of in (
        (kept, lambda path, text: (path, text)),
        (replaced, lambda path, text: text),
        (replaced, lambda path, text: path),
    ):
        left: dict[Any, list[Node]] = {}
        for node in reversed(old):
            left.setdefault(key_of(node.name, node.content), []).append(node)
        for place, passage in enumerate(passages):
            same = left.get(key_of(passage.path, passage.text))
            if same and place not in kept and place not in replaced:
                found[place] = same.pop()
        used = {node.id for node in (*kept.values(), *replaced.values())}
        old = [node for node in old if node.id not in used]
    return DocumentChange(document, passages, there, kept, replaced, tuple(old))


@dataclass(frozen=True, slots=True)
class DocumentDestination:
    """The scopes of a document, and its stored version, if any."""

    scopes: ScopeDestination
    name: str
    there: StoredDocument | None = None

    def find(self, reader: Reader, row: int | None) -> StoredDocument | None:
        """Return the document on this snapshot."""
        if row is None or self.scopes.strangers:
            return None  # A document that is written into another's scope is a new one.
        return stored_document(reader, row, self.name, reader.head().time)

    def locate(self, reader: Reader) -> Target:
        """Return where the scopes are on this snapshot.

        Raises:
            ChatMovedError: another writer has changed the document.
        """
        target = self.scopes.locate(reader)
        if self.find(reader, target.home_row) != self.there:
            raise ChatMovedError("another writer changed this document; write it again")
        return self.with_anchors(target)

    def with_anchors(self, target: Target) -> Target:
        """Return a target whose draft refers to the stored document."""
        if self.there is None:
            return target
        return replace(target, anchors={SESSION: self.there.node.id})


def write_document(writer: MemoryWriter, given: DocumentInput, stated: StatedTerms) -> Written:
    """Remember a document; see `Memory.write`."""
    document = document_of(given)
    said = Message(text=document.text, speaker=document.name)
    (said,), terms = writer.terms([said], stated)
    document = replace(document, text=said.text, name=said.speaker)
    passages = passages_of(document)
    if not passages:
        raise InvalidInputError(f"document {document.name:.80}: has no words to remember")
    scopes, ingestion = terms.destination, writer.engine.ingestion
    for left in reversed(range(CHAT_TRIES_MAX)):
        with ingestion.snapshot() as reader:
            located, last = scopes.locate(reader), reader.head().time
            destination = DocumentDestination(scopes, document.name)
            there = destination.find(reader, located.home_row)
            destination = replace(destination, there=there)
            target = destination.with_anchors(located)
        if target.written is not None:
            return writer.written_before(target.written)
        change = document_change(document, passages, there)
        try:
            request = _request(writer, change, destination, target, last, terms)
            done = writer.commit(ingestion.plan(request), scopes.scopes)
            return replace(done, secrets=terms.secrets)
        except ChatMovedError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _request(
    writer: MemoryWriter,
    change: DocumentChange,
    destination: DocumentDestination,
    target: Target,
    last: int,
    terms: WriteTerms,
) -> WriteRequest:
    """Return the write request for the new and changed passages of a document."""
    ingestion, at, marks = writer.engine.ingestion, terms.at, terms.marks
    when = max(writer.engine.clock(), last + 1) if at is None else to_micros(at, "at")
    messages = change.messages()
    draft, waiting = Draft(), None
    if messages:
        draft, waiting, _ = ingestion.draft(messages, from_micros(when), terms.extractor)
        draft = change.draft(draft, messages)
        draft = draft if terms.names is None else terms.names.added_to(draft)
    if marks.expires is None and change.there is not None and change.there.node.valid_to:
        marks = replace(marks, expires=to_micros(change.there.node.valid_to, "valid_to"))
    draft = marks.ending(draft)
    keys = {SESSION, *(node.key for node in draft.nodes)} if terms.origin is not None else ()
    return WriteRequest(
        draft=draft,
        memory=SESSION,
        destination=destination,
        target=target,
        actor=writer.actor,
        source=terms.source,
        metadata=marks.metadata,
        parts=change.parts(marks.metadata or {}, None if at is None else from_micros(when)),
        waiting=waiting,
        supersede=False,  # A document states its own claims, not claims of its owner.
        origins={key: (terms.origin,) for key in keys if terms.origin is not None},
        caller=terms.origin,
    )

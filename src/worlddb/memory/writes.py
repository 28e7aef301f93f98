"""Keys: how a write that is sent twice is done once.

An idempotency key is a `Key` node in the home of what was written, found by its address alone; its
edge says what was written and carries a digest of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from blake3 import blake3

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.ingest.apply import Outcome
from worlddb.ingest.extraction_queue import Waits, drafted, enqueue
from worlddb.ingest.ingest import extractor_of
from worlddb.ingest.messages import either, messages_of, said_as
from worlddb.ingest.plan import ended_by
from worlddb.memory.results import Linked, Written
from worlddb.memory.scope_view import (
    KEY,
    SESSION,
    Scoping,
    find_memory,
    generations,
    scopes_of,
    successors,
)
from worlddb.model.address import Id, node_address
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.model.inputs import Instant, encode_metadata, encode_text, from_micros, to_micros
from worlddb.model.records import Commit, Node
from worlddb.model.scopes import SCOPE, ScopeIds, ScopeName, born
from worlddb.store.protocol import Reader
from worlddb.view.visibility import View
from worlddb.write.transaction import Transaction

if TYPE_CHECKING:
    from worlddb.ingest.messages import Chat, Input


KEY_BYTES_MAX = 512


@dataclass(frozen=True, slots=True)
class WriteKey:
    """A caller's key for one write into one home."""

    key: str
    home: Id
    digest: str
    within: tuple[Id, ...] = ()

    @property
    def _name(self) -> str:
        # An address knows nothing of the world around it; the name keeps two homes apart, and in
        # one home those who may not see each other's memories.
        apart = f" {blake3(b''.join(self.within)).hexdigest(16)}" if self.within else ""
        return f"{self.home}{apart} {self.key}"

    def written(self, reader: Reader) -> Id | None:
        """Return the memory that was written with this key, if there is one.

        Raises:
            ConflictError: it was another text.
        """
        row = self._row(reader)[0]
        if row is None:
            return None
        edge = reader.edges_at([row], "out", ("refers_to",))[0].edge
        if edge.metadata.get("digest") != self.digest:
            raise ConflictError(
                f"idempotency_key {self.key!r:.80} was used for another text, which is memory "
                f"{edge.target.short}; use a new key for a new text"
            )
        return edge.target

    def _row(self, reader: Reader) -> tuple[int | None, int]:
        """Return the row of this key's node, if there is one, and how often it was erased."""
        times = 0
        while True:
            row = reader.node_row(node_address(KEY, self._name.encode(), b"", times))
            if row is None or not reader.nodes([row])[row].erased:
                return row, times
            times += 1

    def write(self, tx: Transaction, reader: Reader, memory: Id) -> None:
        """Remember that this key was used; it is free again once that was erased."""
        times = self._row(reader)[1]
        node = tx.create_node(type=KEY, name=self._name, parent=self.home, created_at=born(times))
        tx.write_edge("refers_to", node.id, memory, metadata={"digest": self.digest})


def write_key(
    key: str, home: Id, messages: Sequence[Message], within: Iterable[Id] = ()
) -> WriteKey:
    """Return a caller's key, checked; `within` are further worlds that a caller may not leave.

    Raises:
        InvalidInputError: it is no text, empty or too long.
    """
    encode_text(key, "idempotency_key", KEY_BYTES_MAX)
    if not key.strip():
        raise InvalidInputError("idempotency_key: is empty; give a text or leave it out")
    hasher = blake3()
    for message in messages:
        for text in (message.speaker, message.text):
            said = text.encode("utf-8", "surrogatepass")
            hasher.update(len(said).to_bytes(8, "big") + said)
    return WriteKey(key, home, hasher.hexdigest(16), tuple(within))


# Writing memories: write and amend. Each call is one commit, or nothing.


AROUND = "around"
"""The key by which a draft means the world that an amended memory lies in."""


class _Written(Exception):
    """Somebody else has used the same key since we looked."""

    def __init__(self, memory: Id) -> None:
        self.memory = memory


class _Purged(Exception):
    """A scope has ended since we looked."""


@dataclass(frozen=True, slots=True)
class _Into:
    """Where a write goes: the scopes as of commit `seen`, and what comes with it."""

    seen: int
    worlds: Mapping[ScopeName, tuple[Id, int]]
    home: Id
    within: Sequence[Sequence[Id]]
    key: WriteKey | None
    metadata: Mapping[str, Any] | None


class WritingMemories(Scoping):
    """The part of Memory that writes."""

    _extractor: Extractor | str | None
    _recluster: Literal["later", "now", "off"]
    _supersede: bool

    def write(
        self,
        text: Input | None = None,
        *,
        messages: Chat | None = None,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        extractor: Extractor | str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written:
        """Remember a text, or the messages of a chat, for the scopes that are given.

        A chat is `messages=[{"role": "user", "content": "…"}, …]`, each with an "at" if its time is
        known: one without has that of the one before. It may also be given as `text`.

        It lives in the first of them (user before agent, app and run) and is a member of the
        others. What is known already is not written twice: the memory that says so gets the
        source, the metadata and the scopes. The same `idempotency_key` again does nothing. If the
        extractor's model fails, the text is written all the same, and the rest waits (`pending`).

        Raises:
            InvalidInputError: nothing to remember, or an argument is wrong.
            ConflictError: the key was used for another text, or the store is busy.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        scopes = [name for group in self._groups(scope) for name in group]
        encode_metadata(metadata, self.db._limits)
        said = either(text, messages)
        drafted: tuple[Draft, Waits | None] | None = None
        while True:
            with self.db._store.read() as reader:
                seen = reader.head().seq
                worlds = {name: _world(reader, name) for name in scopes}
                home = worlds[scopes[0]][0]
                within = self._further_bounds(reader, home)
                key = None
                if idempotency_key is not None:
                    apart = [world for group in within for world in group]
                    key = write_key(idempotency_key, home, said, apart)
                known = key.written(reader) if key else None
            if known is not None:
                return self._known(known)
            if drafted is None:
                drafted = self._draft(self.db._as_known(said, home, within), at, extractor)
            into = _Into(seen, worlds, home, within, key, metadata)
            try:
                return self._put(into, *drafted, source)
            except _Written as earlier:
                return self._known(earlier.memory)
            except _Purged:
                continue

    def _put(
        self, into: _Into, draft: Draft, waits: Waits | None, source: str | Sequence[str] | None
    ) -> Written:
        """Write a draft into scopes as they were seen.

        Raises:
            _Purged: one of them has ended since.
            _Written: somebody else has used the same key since.
        """
        worlds, home, key = into.worlds, into.home, into.key

        def before(tx: Transaction) -> None:
            if tx.follows != into.seen:
                with self.db._store.read() as reader:
                    if any(_world(reader, name) != found for name, found in worlds.items()):
                        raise _Purged
                    if key is not None and (memory := key.written(reader)) is not None:
                        raise _Written(memory)
            for name, (_, generation) in worlds.items():
                tx.create_node(type=SCOPE, name=str(name), created_at=born(generation))

        def after(tx: Transaction, outcome: Outcome) -> None:
            memory = outcome.ids[draft.nodes[0].key]
            others = [world for world, _ in worlds.values() if world != home]
            _join(tx, others, others, draft, outcome)
            if into.metadata:
                tx.add_metadata(memory, into.metadata)
            if key is not None:
                with self.db._store.read() as reader:
                    key.write(tx, reader, memory)
            enqueue(tx, draft, outcome.ids, waits)

        outcome, commit = self.db._land(
            draft,
            home,
            source=source,
            actor=self._actor,
            within=into.within,
            supersede=self._supersede,
            before=before,
            after=after,
        )
        self.db._look_again(home, outcome.created, self._recluster)
        memory = outcome.ids[draft.nodes[0].key]
        return self._told(memory, list(worlds), draft, outcome, commit, waits)

    def _further_bounds(self, reader: Reader, home: Id) -> list[list[Id]]:
        """Return the worlds of those bounds that a home is not: not all in it is one's own."""
        groups = [[_world(reader, name)[0] for name in group] for group in self._bounds]
        return [group for group in groups if home not in group]

    def _own_home(self, view: View, row: int, home: Id) -> Id:
        """Return where the names in a text about a memory belong: never out of bounds.

        What is shared may live with somebody else, whose names and claims are not the caller's.
        """
        reader = view.reader
        own = [_world(reader, name)[0] for group in self._bounds for name in group]
        if not own or home in own:
            return home
        rows = {number: world for world in own if (number := reader.node_row(world)) is not None}
        return next(rows[number] for number in rows if view.keep_inside({row}, [number]))

    def _known(self, memory: Id) -> Written:
        """Return what is said of a memory that was there."""
        with self._viewing(()) as view:
            row = view.reader.node_row(memory)
            assert row is not None
            scopes = scopes_of(view.reader, [row], view.moment)[row]
        return self._told(memory, scopes)

    def amend(
        self,
        id: bytes | str,
        text: str,
        *,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        extractor: Extractor | str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written:
        """Say something anew: a new memory that supersedes the old one, in the same scopes.

        The old one ends when the new one begins (now, or `at`), and can still be read.

        Raises:
            InvalidInputError: not one id, a whole session, no text, or `at` is before it began.
            NotFoundError: there is no such memory here.
            ConflictError: it has ended already.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        if not isinstance(text, str):
            raise InvalidInputError(f"text: give text, not {type(text).__name__}")
        messages_of(text)  # What says nothing is refused, as by `write`.
        encode_metadata(metadata, self.db._limits)
        reach = self._reach(scope)
        with self._viewing(reach, ended=True) as view:
            row, old = find_memory(view, id)
            _refuse_ended(view, row, old)
            lives, around, others = _homes(view, row)
            home = self._own_home(view, row, lives)
            within = self._further_bounds(view.reader, home)
            scopes = scopes_of(view.reader, [row], view.moment)[row]
        if said_as(text) == said_as(old.content):
            return self._told(old.id, scopes)
        speaker = old.name if old.type == "Turn" else "user"
        begins = self._beginning(old, at)
        draft, waits = self._draft([Message(text=text, speaker=speaker)], begins, extractor)
        place = None if around == home else AROUND
        kept = replace(draft.nodes[0], type=old.type, name=old.name, parent=place)
        draft = replace(draft, nodes=(kept, *draft.nodes[1:]))

        def before(tx: Transaction) -> None:
            with self._viewing(reach, ended=True) as view:
                _refuse_ended(view, *find_memory(view, old.id))

        def after(tx: Transaction, outcome: Outcome) -> None:
            new = outcome.ids[kept.key]
            _join(tx, others, [one for one in (lives, *others) if one != home], draft, outcome)
            if old.metadata or metadata:
                tx.add_metadata(new, {**old.metadata, **(metadata or {})})
            tx.write_edge("supersedes", new, old.id)
            enqueue(tx, draft, outcome.ids, waits)

        outcome, commit = self.db._land(
            draft,
            home,
            source=source,
            actor=self._actor,
            places={AROUND: around},
            within=within,
            supersede=self._supersede,
            spared=(old.id,),
            before=before,
            after=after,
        )
        self.db._look_again(home, outcome.created, self._recluster)
        return self._told(outcome.ids[kept.key], scopes, draft, outcome, commit, waits)

    def _beginning(self, old: Node, at: Instant | None) -> Instant:
        """Return when what is said anew begins: never before what it supersedes.

        Raises:
            InvalidInputError: it is said to.
        """
        began = to_micros(old.valid_from, "valid_from")
        if at is None:
            return from_micros(max(self.db._clock(), began))
        if to_micros(at, "at") < began:
            raise InvalidInputError(
                f"at: memory {old.id.short} began at {old.valid_from.isoformat()}; give that time "
                "or a later one"
            )
        return at

    def _draft(
        self, messages: Sequence[Message], at: Instant | None, extractor: Extractor | str | None
    ) -> tuple[Draft, Waits | None]:
        when = self.db._clock() if at is None else to_micros(at, "at")
        chosen = extractor_of(extractor if extractor is not None else self._extractor)
        return drafted(chosen, messages, from_micros(when))

    def _told(
        self,
        memory: Id,
        scopes: Sequence[ScopeName],
        draft: Draft | None = None,
        outcome: Outcome | None = None,
        commit: Commit | None = None,
        waits: Waits | None = None,
    ) -> Written:
        """Return what a write did; without a draft and its outcome, nothing."""
        outcome = outcome or Outcome()
        created = set(outcome.created)
        linked = [node for node in draft.nodes if node.resolvable] if draft is not None else []
        return Written(
            id=memory,
            created=memory in created,
            scopes=tuple(filter(self._may_name, scopes)),
            entities=tuple(
                Linked(
                    id=outcome.ids[node.key],
                    type=node.type,
                    name=node.name,
                    created=outcome.ids[node.key] in created,
                )
                for node in linked
            ),
            proposals=tuple(self.db._proposals(outcome)) if outcome.proposed else (),
            superseded=ended_by(commit),
            commit=commit,
            root_state=self.db.root_state if commit is None else commit.root_state,
            pending=None if waits is None else waits.error,
        )


def _world(reader: Reader, scope: ScopeName) -> tuple[Id, int]:
    """Return the id of a scope's present world, made or not, and its generation."""
    rows = generations(reader, scope)
    if rows and reader.closed_by(rows[-1:]):
        return scope.id(len(rows)), len(rows)
    generation = max(len(rows) - 1, 0)
    return scope.id(generation), generation


def _join(
    tx: Transaction,
    worlds: Iterable[Id],
    worlds_of_names: Iterable[Id],
    draft: Draft,
    outcome: Outcome,
) -> None:
    """Make the memory of a draft, and the names it speaks of, members of further worlds."""
    first, *rest = draft.nodes
    names = [node for node in rest if node.parent is None]
    for world in worlds:
        tx.write_edge("contains", world, outcome.ids[first.key])
    for world in worlds_of_names:
        for node in names:
            tx.write_edge("contains", world, outcome.ids[node.key])


def _homes(view: View, row: int) -> tuple[Id, Id, list[Id]]:
    """Return where names in a memory's text belong, the world it lies in, and its other worlds."""
    reader, moment = view.reader, view.moment
    parent = reader.parents([row])[row]
    assert parent is not None
    around = reader.world(parent)
    above = (
        around if around.type != SESSION or around.parent is None else reader.world(around.parent)
    )
    holders = reader.edges_at([row], "in", ("contains",))
    others = [item.edge.source for item in holders if moment.holds(item.edge)]
    return Id(above.id), Id(around.id), others


def _refuse_ended(view: View, row: int, node: Node) -> None:
    """Refuse to amend what has ended, or what is more than one text.

    Raises:
        ConflictError: it has ended.
        InvalidInputError: it is a session.
    """
    if node.type == SESSION:
        raise InvalidInputError(f"{node.id.short} is a whole session; amend one of its turns")
    if view.moment.holds(node):
        return
    by = ", ".join(ident.short for ident in successors(view, row))
    told = f"was superseded by {by}; amend that one" if by else "was retired; write a new memory"
    raise ConflictError(f"memory {node.id.short} {told}")

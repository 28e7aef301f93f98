"""Memory writes: write and amend. Each call is one commit, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from worlddb.engine import Engine
from worlddb.errors import InvalidInputError
from worlddb.ingest.chat_growth import (
    ChatMovedError,
    Growth,
    changes_of_turns,
    chat_draft,
    first_memory_of,
    growth_of,
    without_session,
)
from worlddb.ingest.draft_parts import QUARANTINE, PartChanges
from worlddb.ingest.extraction_queue import Waiting
from worlddb.ingest.extractors import SESSION as CHAT_KEY
from worlddb.ingest.extractors import Chat, Input, either
from worlddb.ingest.ingestion import (
    DatedDraft,
    FinishedWrite,
    Ingestion,
    ended_by,
    is_immediate,
    is_short,
    origins_by_key,
)
from worlddb.ingest.plan import Outcome, WritePlan
from worlddb.ingest.write_request import (
    Target,
    WriteRequest,
    digest_of_messages,
    find_key,
    key_by,
)
from worlddb.memory.memory_marks import (
    NO_MARKS,
    Aliases,
    Marks,
    StatedTerms,
    Ttl,
    WriteTerms,
    marks_of,
    stated_names,
)
from worlddb.memory.results import Linked, Written
from worlddb.memory.scope_view import (
    CallerScopes,
    further_bounds,
    scopes_of,
    world_of,
)
from worlddb.model.address import Id
from worlddb.model.inputs import (
    Groups,
    Instant,
    ScopeIds,
    ScopeName,
    encode_metadata,
    from_micros,
    to_micros,
)
from worlddb.model.records import Commit, Draft, Extractor, Message, Node
from worlddb.model.text_safety import (
    Origin,
    check_origin,
    less_trusted_of,
    origin_of_write,
    secret_kinds,
    texts_of,
)
from worlddb.store.interface import Reader

if TYPE_CHECKING:
    from worlddb.ingest.document_text import DocumentInput

CHAT_TRIES_MAX = 5  # Concurrent writers of one chat; each round one of them succeeds.


@dataclass(frozen=True, slots=True)
class ScopeDestination:
    """Scopes by name: created if needed, and looked up again if one was purged."""

    scopes: tuple[ScopeName, ...]
    bounds: Groups
    key: str | None
    digest: str
    chat: tuple[Message, ...] = ()
    growth: Growth | None = None
    caller: CallerScopes | None = None
    strangers: tuple[ScopeName, ...] = ()

    def granted_scopes(self, reader: Reader) -> list[ScopeName]:
        """Return the scopes that only a valid grant opens, on this snapshot."""
        if self.caller is None or not self.strangers:
            return []
        from worlddb.memory.scope_grants import granted_strangers

        now = max(self.caller.clock(), reader.head().time)
        return granted_strangers(reader, self.caller, self.strangers, now)

    def chat_growth(self, reader: Reader, now: int) -> Growth | None:
        """Return the session that a chat continues, and its new messages."""
        worlds = self._worlds(reader) if self.chat else []
        return growth_of(reader, worlds, now, self.chat) if worlds else None

    def first_memory(self, reader: Reader, now: int, metadata: Mapping[str, Any]) -> Id | None:
        """Return the memory of a chat's first message, if that message was written alone before."""
        worlds = self._worlds(reader) if len(self.chat) > 1 and self.growth is None else []
        return first_memory_of(reader, worlds, now, self.chat[0], metadata) if worlds else None

    def _worlds(self, reader: Reader) -> list[int]:
        """Return the worlds of the scopes; none if one of them is new."""
        rows = [world_of(reader, name)[2] for name in self.scopes]
        return [] if None in rows else [row for row in rows if row is not None]

    def continues_session(self, messages: Sequence[Message]) -> bool:
        """Return whether one message belongs to a session: a named chat, or one in the store."""
        has_run = any(name.kind == "run" for name in self.scopes)
        is_named = has_run or messages[0].id is not None
        return bool(self.chat) and (self.growth is not None or is_named)

    def locate(self, reader: Reader) -> Target:
        """Return the target on this snapshot."""
        worlds = {name: world_of(reader, name) for name in self.scopes}
        home, _, row = worlds[self.scopes[0]]
        within = further_bounds(reader, self.bounds, home)
        key = written = None
        if self.key is not None:
            bounds = [world for group in within for world in group]
            key, written = find_key(reader, self.key, home, row, self.digest, bounds)
        others = tuple(world for world, _, _ in worlds.values() if world != home)
        # By a grant only the memory is visible there, not its names; and it is always a new
        # memory, so that a more trusted text elsewhere does not replace it.
        guests = [worlds[name][0] for name in self.granted_scopes(reader)]
        anchors = {} if self.growth is None else {CHAT_KEY: self.growth.session}
        if self.chat and self.chat_growth(reader, reader.head().time) != self.growth:
            raise ChatMovedError("another writer continued this chat; write it again")
        return Target(
            commit=reader.head().seq,
            home=home,
            home_row=row,
            scopes={name: number for name, (_, number, row) in worlds.items() if row is None},
            memberships=others,
            name_worlds=tuple(world for world in others if world not in guests),
            within=[*within, *([world] for world in guests)],
            anchors=anchors,
            key=key,
            written=written,
            is_shared=self.scopes[0].kind in ("agent", "app"),
        )


@dataclass(slots=True, kw_only=True)
class _NewText:
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
        if not self.destination.chat:
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
        if (
            read is None
            or fresh is not self.messages
            or (terms.at is None and read.at <= self.last)
        ):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWriter:
    """Writes the memories of one caller."""

    engine: Engine
    scopes: CallerScopes
    actor: str
    extractor: Extractor | str | None
    recluster: Literal["later", "now", "off"]
    supersede: bool
    origin: Origin | None = None

    def write(
        self,
        text: Input | None = None,
        *,
        messages: Chat | None = None,
        document: DocumentInput | None = None,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        pin: bool = False,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        names: str | Sequence[str] | None = None,
        aliases: Aliases | None = None,
        idempotency_key: str | None = None,
        extractor: Extractor | str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written:
        """Write a text, the messages of a chat, or a document, into the given scopes.

        A chat is `messages=[{"role": "user", "content": "…"}, …]`, each with an "at" if its time is
        known: one without has that of the one before. It may also be given as `text`. Messages of
        the OpenAI and Anthropic APIs are taken as they are: parts of content, tool calls, names,
        ids. A chat that is sent again with more messages adds the new ones to its session.

        `document` is the path of a Markdown, text, HTML, PDF or DOCX file, a text, or a mapping
        with `text`, `name` and `media_type`. It becomes a world of passages, cut at headings and
        paragraphs. A document of the same name again writes only what has changed.

        `names` are the entities that the text is about, such as `["Sarah Chen"]`; `aliases` are
        other names of entities in it, such as `{"Sarah Chen": ["SC"]}`, or a list for one name.

        `tags` are words to filter by. A pinned memory (`pin`) is given first by `context`. After
        `expires_at`, or `ttl` from now ("30d", "12h", seconds), it is neither listed nor recalled;
        a question as of an earlier time still finds it.

        The memory lives in the first scope (user before agent, app and run) and is a member of the
        others. A known text is not written twice: the memory that has it gets the source, the
        metadata and the scopes. A repeated `idempotency_key` has no effect. If the extractor's
        model fails, the text is written, and the extraction waits (`pending`). `origin` is who
        brought the text in: a less trusted memory ends no more trusted one.

        Raises:
            InvalidInputError: nothing to remember, or an argument is wrong.
            ConflictError: the key was used for another text, or the store is busy.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        marks: dict[str, Any] = {"metadata": metadata, "tags": tags, "pin": pin}
        marks |= {"expires_at": expires_at, "ttl": ttl}
        stated = StatedTerms(
            at=at,
            source=source,
            marks=marks,
            names=names,
            aliases=aliases,
            key=idempotency_key,
            extractor=extractor,
            origin=origin,
            scope=scope,
        )
        return self._write_stated(text, messages, document, stated)

    def _write_stated(
        self,
        text: Input | None,
        messages: Chat | None,
        document: DocumentInput | None,
        stated: StatedTerms,
    ) -> Written:
        if document is None:
            is_chat = messages is not None or not isinstance(text, str)
            return self._write_messages(either(text, messages), stated, is_chat=is_chat)
        if text is not None or messages is not None:
            raise InvalidInputError("give either text or messages, or a document")
        from worlddb.memory.rewrites import write_document

        return write_document(self, document, stated)

    def _write_messages(
        self, messages: list[Message], stated: StatedTerms, *, is_chat: bool
    ) -> Written:
        """Write messages; try again while other writers continue the same chat."""
        messages, terms = self.terms(messages, stated)
        # With a key, a single message is a memory by itself, not the continuation of a chat.
        if is_chat and (stated.key is None or len(messages) > 1):
            terms = replace(terms, destination=replace(terms.destination, chat=tuple(messages)))
        for left in reversed(range(CHAT_TRIES_MAX)):
            try:
                done = self._write_new(messages, terms, is_chat=is_chat)
                return replace(done, secrets=terms.secrets)
            except ChatMovedError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def terms(
        self, messages: list[Message], stated: StatedTerms
    ) -> tuple[list[Message], WriteTerms]:
        """Return messages and the options of the call, checked and without secrets.

        Raises:
            InvalidInputError: something that was stated is wrong.
            RejectedError: a scope is out of bounds, or refuses texts with secrets.
        """
        origin = origin_of_write(stated.origin, self.origin)
        messages, secrets = self.without_secrets(messages, stated.scope)
        source, marks, names, aliases = stated.source, stated.marks, stated.names, stated.aliases
        is_marked = any(one is not None and one is not False for one in marks.values())
        is_named = names is not None or aliases is not None
        more: tuple[str, ...] = ()
        if is_marked or is_named or source is not None:
            beside = (source, marks, names, aliases)
            (source, marks, names, aliases), more = self.without_secret_values(beside, stated.scope)
        given = marks_of(now=self.engine.clock(), **marks) if is_marked else NO_MARKS
        encode_metadata(given.metadata, self.engine.limits)
        checked_names = stated_names(names, aliases) if is_named else None
        key = None if stated.key is None else key_by(stated.key, origin)
        destination = self._destination(stated.scope, key, messages)
        if stated.at is not None:
            to_micros(stated.at, "at")
        return messages, WriteTerms(
            destination=destination,
            at=stated.at,
            source=source,
            marks=given,
            names=checked_names,
            extractor=self.extractor if stated.extractor is None else stated.extractor,
            origin=self._origin_in(destination, origin),
            secrets=tuple(dict.fromkeys((*secrets, *more))),
        )

    def without_secrets(
        self, messages: list[Message], scope: Mapping[str, Any]
    ) -> tuple[list[Message], tuple[str, ...]]:
        """Apply the scope's rule for secrets to messages; return the kinds of secrets found."""
        said = (text for one in messages for text in (one.text, one.speaker, one.id or ""))
        if not (kinds := secret_kinds(said)):
            return messages, ()
        from worlddb.memory.scope_policies import checked

        return checked(self, messages, scope, kinds)

    def without_secret_values(
        self, values: tuple[Any, ...], scope: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Apply the scope's rule for secrets to values beside a text; return the kinds found."""
        from worlddb.memory.scope_policies import checked_values

        try:
            kinds = secret_kinds(texts_of(values))
            return checked_values(self, values, scope, kinds) if kinds else (values, ())
        except ValueError as error:  # Python cannot print numbers of more than 4,300 digits.
            raise InvalidInputError(f"metadata: not JSON data: {error}") from None

    def _destination(
        self, scope: Mapping[str, Any], key: str | None, said: Sequence[Message]
    ) -> ScopeDestination:
        """Return the destination of a write, with the digest of its messages if it has a key."""
        return ScopeDestination(
            tuple(name for group in self.scopes.written_scopes(scope) for name in group),
            self.scopes.bounds,
            key,
            "" if key is None else digest_of_messages(said),
            caller=self.scopes,
            strangers=self.scopes.strangers(scope),
        )

    def _origin_in(self, destination: ScopeDestination, origin: Origin | None) -> Origin | None:
        """Return the origin of a write; a write by a grant never has full trust."""
        if not destination.strangers:
            return origin
        from worlddb.memory.scope_grants import BY_GRANT

        with self.engine.store.read() as reader:
            return (
                less_trusted_of(BY_GRANT, origin) if destination.granted_scopes(reader) else origin
            )

    def _write_new(
        self,
        messages: list[Message],
        terms: WriteTerms,
        *,
        is_chat: bool,
        released: Node | None = None,
    ) -> Written:
        """Write the new messages: all of them, or those that extend a chat."""
        ingestion, destination = self.engine.ingestion, terms.destination
        caller = terms.origin if released is None else None
        new = _NewText(
            ingestion=ingestion,
            destination=destination,
            messages=messages,
            terms=terms,
            is_chat=is_chat,
            asked=partial(
                WriteRequest,
                actor=self.actor,
                source=terms.source,
                metadata=terms.marks.metadata,
                supersede=self.supersede,
                caller=caller,
                replaces=None if released is None else released.id,
                released=released is not None,
            ),
        )
        if released is not None:
            new.parts = PartChanges(told={released.id: {QUARANTINE: "released"}})
        if is_short(terms.extractor, messages):
            new.read_ahead()
            write = ingestion.write_at_once(self.actor, caller, new.ask)
        else:
            with ingestion.snapshot() as reader:
                is_new = new.look(reader)
                now = is_new and is_immediate(terms.extractor)
                plan = ingestion.plan(new.request(), reader) if now else None
            write = ingestion.commit(plan or ingestion.plan(new.request())) if is_new else None
        target, growth, names = new.target, new.growth, destination.scopes
        if target is not None and target.written is not None:
            return self.written_before(target.written)
        if write is None:
            assert growth is not None
            return self.written_before(growth.session)
        done = self._done(write, names)
        return replace(done, scopes=names) if destination.strangers else done

    def release(self, node: Node, reach: Groups) -> Written:
        """Write a memory in quarantine again, as a successor that is valid from now on."""
        with self.scopes.viewing(reach, ended=True) as view:
            row = view.reader.node_row(node.id)
            assert row is not None
            names = scopes_of(view.reader, [row], view.moment)[row]
        kept = {key: value for key, value in node.metadata.items() if key != QUARANTINE}
        terms = WriteTerms(
            destination=ScopeDestination(tuple(names), self.scopes.bounds, None, ""),
            source=node.provenance or None,
            marks=Marks(metadata={**kept, QUARANTINE: "released"}, expires=None),
            extractor=self.extractor,
            origin=check_origin(node.origin),
        )
        messages = [Message(text=node.content)]
        return self._write_new(messages, terms, is_chat=False, released=node)

    def amend(
        self,
        id: bytes | str,
        text: str,
        *,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        extractor: Extractor | str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written:
        """Replace a memory: a new memory supersedes the old one, in the same scopes.

        The old one ends when the new one begins (now, or `at`), and stays readable. The new one
        keeps its metadata, tags, pin and expiry, unless others are given. It is trusted no more
        than the old one; if less, the old one stays, and the two contradict each other.

        Raises:
            InvalidInputError: not one id, no text, or `at` is before it began.
            NotFoundError: there is no such memory here.
            ConflictError: the memory has ended already, or is a whole session.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        from worlddb.memory.rewrites import write_amendment

        marks = {"metadata": metadata, "tags": tags, "expires_at": expires_at, "ttl": ttl}
        stated = StatedTerms(
            at=at, source=source, marks=marks, extractor=extractor, origin=origin, scope=scope
        )
        return write_amendment(self, id, text, stated)

    def write_marks(self, old: Node, names: Sequence[ScopeName], given: Marks) -> Written:
        """Write metadata and expiry of a memory; its text stays, its end can only be earlier."""
        with self.engine.ingestion.transact(self.actor, self.origin) as tx:
            if given.metadata:
                tx.add_metadata(old.id, given.metadata)
            if given.expires is not None:
                tx.retire(old.id, at=from_micros(given.expires))
        return self._written(old.id, names, commit=tx.commit)

    def commit(self, plan: WritePlan | WriteRequest, names: Sequence[ScopeName]) -> Written:
        """Carry out a plan and return its outcome."""
        return self._done(self.engine.ingestion.commit(plan), names)

    def _done(self, write: FinishedWrite, names: Sequence[ScopeName]) -> Written:
        """Return the result of a write, and queue the names around it for reclustering."""
        request, outcome, commit, target = write
        if target.written is not None:
            return self.written_before(target.written)
        self.engine.ingestion.recluster_around(target.home, outcome.created, self.recluster)
        memory = outcome.ids[request.memory]
        return self._written(memory, names, request.draft, outcome, commit, request.waiting)

    def _home(self, names: Sequence[ScopeName]) -> ScopeName | None:
        """Return the first of some scopes that is the caller's own; None without bounds."""
        own = {scope for group in self.scopes.bounds for scope in group}
        return next((name for name in names if name in own), None)

    def written_before(self, memory: Id) -> Written:
        """Return the result for a memory that the same idempotency key wrote before."""
        with self.scopes.viewing(()) as view:
            row = view.reader.node_row(memory)
            assert row is not None
            names = scopes_of(view.reader, [row], view.moment)[row]
        return self._written(memory, names)

    def _written(
        self,
        memory: Id,
        names: Sequence[ScopeName],
        draft: Draft | None = None,
        outcome: Outcome | None = None,
        commit: Commit | None = None,
        waiting: Waiting | None = None,
    ) -> Written:
        """Return the result of a write; without draft and outcome, of a write without effect."""
        outcome = outcome or Outcome()
        created = set(outcome.created)
        drafted = draft.nodes if draft is not None else ()
        linked = [node for node in drafted if node.resolvable and node.key in outcome.ids]
        shown, root = self.scopes.own_commit(commit, self._home(names))
        return Written(
            id=memory,
            created=memory in created,
            scopes=tuple(filter(self.scopes.may_name, names)),
            entities=tuple(
                Linked(
                    id=outcome.ids[node.key],
                    type=node.type,
                    name=node.name,
                    created=outcome.ids[node.key] in created,
                )
                for node in linked
            ),
            proposals=self.engine.ingestion.proposals_of(outcome),
            superseded=ended_by(commit),
            commit=shown,
            root_state=root,
            pending=None if waiting is None else waiting.error,
            left_out=tuple(outcome.left_out),
        )

"""Memory writes: write and amend. Each call is one commit, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from worlddb.engine import Engine
from worlddb.errors import InvalidInputError
from worlddb.ingest.chat_growth import (
    ChatMovedError,
    Growth,
    first_memory_of,
    growth_of,
)
from worlddb.ingest.draft_parts import QUARANTINE, PartChanges
from worlddb.ingest.extraction_queue import Waiting
from worlddb.ingest.extractors import SESSION as CHAT_KEY
from worlddb.ingest.extractors import Chat, Input, either
from worlddb.ingest.ingestion import (
    FinishedWrite,
    ended_by,
    is_immediate,
    is_short,
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
from worlddb.memory.prepared_write import PreparedWrite, StagedWrite, TextWrite
from worlddb.memory.results import Linked, Written
from worlddb.memory.scope_view import (
    CallerScopes,
    further_bounds,
    scopes_of,
    world_of,
)
from worlddb.model.address import Id
from worlddb.model.inputs import (
    KINDS,
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

MARKS = ("metadata", "tags", "pin", "expires_at", "ttl")
SCOPE_IDS = tuple(f"{kind}_id" for kind in KINDS)
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

    def prepare(
        self, /, text: Input | None = None, *, messages: Chat | None = None, **options: Any
    ) -> PreparedWrite | None:
        """Return a write with the arguments of `write`, prepared as far as no lock is needed.

        None if only `write` can do it: a document, a long text, a model that reads, or a scope that
        a grant opens.

        Raises:
            InvalidInputError, RejectedError: as `write`.
        """
        if options.pop("document", None) is not None:
            return None
        marks = {name: options.pop(name, None) for name in MARKS}
        scope = {name: options.pop(name) for name in SCOPE_IDS if name in options}
        options["key"] = options.pop("idempotency_key", None)
        stated = StatedTerms(**{"at": None, "source": None} | options, marks=marks, scope=scope)
        said = either(text, messages)
        extractor = self.extractor if stated.extractor is None else stated.extractor
        if not is_short(extractor, said) or self.scopes.strangers(scope):
            return None
        is_chat = messages is not None or not isinstance(text, str)
        prepared = self._prepared(said, stated, is_chat=is_chat)
        terms = prepared.terms
        destination = replace(terms.destination, caller=None)  # Without strangers, of no use.
        ahead = None
        if not destination.chat:
            ahead = self.engine.ingestion.draft(prepared.messages, terms.at, terms.extractor)
        return replace(prepared, terms=replace(terms, destination=destination), ahead=ahead)

    def _prepared(
        self, messages: list[Message], stated: StatedTerms, *, is_chat: bool
    ) -> PreparedWrite:
        messages, terms = self.terms(messages, stated)
        # With a key, a single message is a memory by itself, not the continuation of a chat.
        if is_chat and (stated.key is None or len(messages) > 1):
            terms = replace(terms, destination=replace(terms.destination, chat=tuple(messages)))
        return PreparedWrite(messages=messages, terms=terms, is_chat=is_chat)

    def _write_messages(
        self, messages: list[Message], stated: StatedTerms, *, is_chat: bool
    ) -> Written:
        """Write messages; try again while other writers continue the same chat."""
        prepared = self._prepared(messages, stated, is_chat=is_chat)
        for left in reversed(range(CHAT_TRIES_MAX)):
            try:
                return self.finish(self.stage(prepared))
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

    def stage(self, prepared: PreparedWrite, released: Node | None = None) -> StagedWrite:
        """Carry out a prepared write in a transaction; when it is durable, `finish` it.

        `released` is a memory in quarantine that the write replaces.

        Raises:
            ConflictError, NotFoundError, RejectedError, StorageError: as `write`.
        """
        ingestion, terms, messages = self.engine.ingestion, prepared.terms, prepared.messages
        caller = terms.origin if released is None else None
        new = TextWrite(
            ingestion=ingestion,
            destination=terms.destination,
            messages=messages,
            terms=terms,
            is_chat=prepared.is_chat,
            ahead=prepared.ahead,
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
        return StagedWrite(new=new, terms=terms, write=write)

    def finish(self, staged: StagedWrite) -> Written:
        """Return the result of a write that is durable, and start what follows it.

        Raises:
            StorageError: the store cannot be read.
        """
        new, terms, write = staged.new, staged.terms, staged.write
        target, growth, names = new.target, new.growth, terms.destination.scopes
        if target is not None and target.written is not None:
            done = self.written_before(target.written)
        elif write is None:
            assert growth is not None
            done = self.written_before(growth.session)
        else:
            done = self._done(write, names)
            done = replace(done, scopes=names) if terms.destination.strangers else done
        return replace(done, secrets=terms.secrets) if terms.secrets else done

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
        prepared = PreparedWrite(messages=[Message(text=node.content)], terms=terms, is_chat=False)
        return self.finish(self.stage(prepared, node))

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

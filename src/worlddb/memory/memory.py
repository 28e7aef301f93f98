"""Memory: the agent-facing calls over users, agents, apps and runs.

    Memory ──┬─▶ MemoryWriter  write ─▶ scopes ─▶ ingest ─▶ commit
             ├─▶ MemoryReader  recall, list, read ─▶ scopes ─▶ what can be seen
             ├─▶ MemoryEnder   retire, purge, erase
             ├─▶ ScopedFiles   files with versions
             ├─▶ ScopedGraph   edges, identity, history, ontology
             └─▶ Governance    proofs, receipts, retention, branches, grants, trust

A memory holds these parts, all of one caller. A call that only goes on to a part is named once, at
the end of the class, with the signature and the documentation that it has there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack

from worlddb.errors import InvalidInputError
from worlddb.ingest.extractors import Chat, Input, either
from worlddb.ingest.ingestion import check_when
from worlddb.memory.endings import MemoryEnder
from worlddb.memory.governance import Governance
from worlddb.memory.memory_marks import PINNED, Aliases, Marks, Ttl
from worlddb.memory.reads import MemoryReader
from worlddb.memory.results import (
    MemoryPage,
    PromptContext,
    Remembered,
    Written,
)
from worlddb.memory.scope_view import CallerScopes
from worlddb.memory.scoped_files import ScopedFiles, scope_files
from worlddb.memory.scoped_graph import ScopedGraph
from worlddb.memory.writes import MemoryWriter
from worlddb.model.drafts import Extractor
from worlddb.model.inputs import Instant
from worlddb.model.origin import Origin, at_most
from worlddb.model.records import ScopeIds, groups_of
from worlddb.world_db import WorldDB

if TYPE_CHECKING:
    from worlddb.consolidate.consolidator import Background
    from worlddb.files.versioned_files import Files
    from worlddb.ingest.document_text import DocumentInput
    from worlddb.ingest.extraction_queue import PendingReader
    from worlddb.recall.asked_question import RecallSettings
    from worlddb.recall.hits import Recall


P = ParamSpec("P")
R = TypeVar("R")


def _of(part: str, method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Memory, P], R]:
    """Return a method of `Memory` that is this method of one of its parts."""

    @wraps(method)
    def call(memory: Memory, /, *given: P.args, **named: P.kwargs) -> R:
        return method(getattr(memory, part), *given, **named)

    return call


class Memory:
    """Memories of users, agents, apps and runs in one store.

    `store` is a path, ":memory:" or an open WorldDB; `options` are those of `worlddb.open`. The
    scope ids hold where a call does not name that kind of scope; if neither names any, the user is
    "default". A call sees a memory that is in a scope of every kind that is meant.

    `extractor` reads texts ("rules", "verbatim" or your own); `recluster` says when the
    neighbourhood of what is new is resolved once more; `supersede` whether a memory ends the facts
    that it surely replaces; `actor` signs the commits. With `consolidate_every_s` the store is
    consolidated in the background that often, until `close`; `background` tells how that went. Long
    texts that wait are read in the background, too (`read_pending`). `origin` is who brings in what
    is written here; a call may name one that is trusted less, never more.

    Raises:
        InvalidInputError: a scope is badly named, or an option is wrong.
        FormatError, StorageError, ConflictError: as `worlddb.open`.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | WorldDB,
        *,
        extractor: Extractor | str | None = None,
        recluster: Literal["later", "now", "off"] = "later",
        supersede: bool = True,
        actor: str = "memory",
        consolidate_every_s: float | None = None,
        origin: Origin | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        usual = groups_of(
            {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
        )
        check_when(recluster)
        if isinstance(store, WorldDB) and options:
            raise InvalidInputError(f"{', '.join(options)}: the store is open already")
        self._owns = not isinstance(store, WorldDB)
        self.db = store if isinstance(store, WorldDB) else WorldDB(store, **options)
        engine = self.db.engine
        self._use(
            MemoryWriter(
                engine=engine,
                scopes=CallerScopes(store=engine.store, clock=engine.clock, usual=usual),
                actor=actor,
                extractor=extractor,
                recluster=recluster,
                supersede=supersede,
                origin=at_most(origin, None),
            )
        )
        self.background: Background | None = None
        self._pending: PendingReader | None = None
        if consolidate_every_s is not None:
            self._start(consolidate_every_s)

    def _start(self, every_s: float) -> None:
        """Consolidate in the background from now on."""
        from worlddb.consolidate.consolidator import Background

        try:
            self.background = Background(self.db, every_s=every_s)
            self.background.start()
            self.read_pending()
        except BaseException:
            self.close()
            raise

    def read_pending(self) -> None:
        """Read texts that were too long for their write, in the background, until `close`.

        Servers do so. It works one text at a time and a tenth of the time, and closing does not
        wait for it. What waits for a language model is left to `db.extract_pending`.
        """
        from worlddb.ingest.extraction_queue import PendingReader

        if self._pending is None and self.db.why_read_only is None:
            self._pending = PendingReader(self.db.engine.ingestion)
            self._pending.start()

    def _use(self, writer: MemoryWriter) -> None:
        """Write as this writer does, and read and end memories in its scopes."""
        self._writer = writer
        scopes, actor, origin = writer.scopes, writer.actor, writer.origin
        self._reader = MemoryReader(db=self.db, scopes=scopes, actor=actor)
        self._ender = MemoryEnder(db=self.db, scopes=scopes, actor=actor, origin=origin)
        self._files = ScopedFiles(writer)
        parts: dict[str, Any] = {"db": self.db, "writer": writer, "reader": self._reader}
        self._graph = ScopedGraph(**parts, scopes=scopes, actor=actor, origin=origin)
        self._governance = Governance(**parts)

    @property
    def asks_a_model(self) -> bool:
        """Whether a write may wait for a model: the extractor is none of ours by name."""
        return not isinstance(self._writer.extractor, str | None)

    def bound(
        self,
        *,
        actor: str | None = None,
        writes_into: Sequence[str] = (),
        origin: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Memory:
        """Return this memory for a caller who may not leave a scope, whatever a call names.

        What the caller writes goes into that scope alone. `writes_into` are the kinds of further
        scopes ("run_id", …) that a write may name: whoever reads those reads it, too. `origin` is
        who brings in what the caller writes, at best.

        Raises:
            InvalidInputError: no scope is named, or badly; or there is no such kind.
            RejectedError: the scope is outside the bounds that there are already.
        """
        self._writer.scopes.named(scope, "bound")
        scopes = self._writer.scopes.bound(groups_of(scope), writes_into)
        origin, actor = at_most(origin, self._writer.origin), actor or self._writer.actor
        return self._with(replace(self._writer, scopes=scopes, actor=actor, origin=origin))

    def signed(self, actor: str | None = None, *, origin: Origin | None = None) -> Memory:
        """Return this memory for a caller with another actor, and of this `origin` at best."""
        origin, actor = at_most(origin, self._writer.origin), actor or self._writer.actor
        return self._with(replace(self._writer, actor=actor, origin=origin))

    def _with(self, writer: MemoryWriter, db: WorldDB | None = None) -> Memory:
        made = type(self)(db or self.db)  # A subclass keeps its own calls.
        made._owns = db is not None
        made._use(writer)
        return made

    def branch(self, name: str, *, create: bool = True) -> Memory:
        """Open a branch of the store as a memory of its own; make it, if there is none yet.

        A branch begins as the store is now; neither side sees what the other writes. See
        `WorldDB.branch`. Close it when done.

        Raises:
            InvalidInputError: the name is none.
            NotFoundError: there is no such branch, and none is to be made.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be branched, or not be written.
        """
        self._governance.refuse_branch()
        db = self.db.branch(name, create=create, actor=self._writer.actor)
        scopes = replace(self._writer.scopes, store=db.engine.store, clock=db.engine.clock)
        return self._with(replace(self._writer, engine=db.engine, scopes=scopes), db)

    def close(self) -> None:
        """Close the store, unless it was given open. Calling it twice does nothing."""
        if self.background is not None:
            self.background.stop()
        if self._pending is not None:
            self._pending.stop()
        if self._owns:
            self.db.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self.db.path!r})"

    # -- writing -----------------------------------------------------------------------------------

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
        """Remember a text, the messages of a chat, or a document, for the scopes that are given.

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
        others. What is known already is not written twice: the memory that says so gets the
        source, the metadata and the scopes. The same `idempotency_key` again does nothing. If the
        extractor's model fails, the text is written all the same, and the rest waits (`pending`).
        `origin` is who brought the text in: what is less trusted ends nothing that is more trusted.

        Raises:
            InvalidInputError: nothing to remember, or an argument is wrong.
            ConflictError: the key was used for another text, or the store is busy.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        told: dict[str, Any] = {"metadata": metadata, "tags": tags, "pin": pin}
        told |= {"expires_at": expires_at, "ttl": ttl}
        options: dict[str, Any] = {"at": at, "source": source, "marks": told, "names": names}
        options |= {"aliases": aliases, "idempotency_key": idempotency_key, "scope": scope}
        options |= {"extractor": extractor, "origin": origin}
        if document is None:
            is_chat = messages is not None or not isinstance(text, str)
            return self._writer.write(either(text, messages), is_chat=is_chat, **options)
        from worlddb.memory.rewrites import write_document

        if text is not None or messages is not None:
            raise InvalidInputError("give either text or messages, or a document")
        return write_document(self._writer, document, **options)

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

        The old one ends when the new one begins (now, or `at`), and can still be read. The new one
        keeps its metadata, tags, pin and end, unless others are given. It is trusted no more than
        the old one; if less, the old one stays, and the two contradict each other.

        Raises:
            InvalidInputError: not one id, no text, or `at` is before it began.
            NotFoundError: there is no such memory here.
            ConflictError: the memory has ended already, or is a whole session.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        return self._writer.amend(
            id,
            text,
            at=at,
            source=source,
            marks={"metadata": metadata, "tags": tags, "expires_at": expires_at, "ttl": ttl},
            extractor=extractor,
            scope=scope,
            origin=origin,
        )

    def pin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered:
        """Pin a memory: `context` gives it first, whatever the question.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: there is no such memory here.
            ConflictError: it has ended, or the store is busy.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        self._writer.mark(id, Marks(metadata={PINNED: True}, expires=None), scope)
        return self.read(id, **scope)

    def unpin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered:
        """Take the pin from a memory; it stays remembered.

        Raises:
            InvalidInputError, NotFoundError, ConflictError, RejectedError, StorageError: as `pin`.
        """
        self._writer.mark(id, Marks(metadata={PINNED: False}, expires=None), scope)
        return self.read(id, **scope)

    # -- reading -----------------------------------------------------------------------------------

    def recall(
        self,
        query: str | None = None,
        *,
        names: str | Sequence[str] | None = None,
        k: int = 10,
        max_tokens: int | None = None,
        min_confidence: float | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        include_retired: bool = False,
        at: Instant | None = None,
        summaries: Literal["first"] | None = None,
        settings: RecallSettings | None = None,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Recall:
        """Return what is remembered about `query`, best first, each hit with its reasons.

        `names` count as said in the question. Without a question, the hits are the memories about
        these names, then those that mention them, the newest first.

        A hit is inside every kind of scope that is given, and inside any of several values of one.
        `as_of` asks what was true then, `known_at` what was known then; `at` is when the question
        is asked, for words like "last week". `where` is a filter that holds before anything is
        ranked: `{"project": "x", "priority": {"$gte": 2}}`, with `$eq $ne $in $nin $gt $gte $lt
        $lte $exists $contains $and $or $not`, over metadata keys, tags, type, source, speaker and
        the times valid_from, valid_to and known_from. With `summaries="first"` a summary takes the
        place of the details it was derived from, and summaries come before the rest.

        The result and each hit have a `confidence`, the probability that they hold an answer. With
        `min_confidence`, hits below it are left out. With `receipt` the answer has a signed
        receipt, which `verify_receipt` checks.

        Raises:
            InvalidInputError: an empty or huge question, or an argument is wrong.
            RejectedError: the scope is outside the bounds of this memory.
            ProviderError: the embedder failed or is missing.
            StorageError: the key for receipts cannot be made or read.
        """
        asked: dict[str, Any] = {"names": names, "k": k, "max_tokens": max_tokens, "at": at}
        asked |= {"min_confidence": min_confidence, "as_of": as_of, "known_at": known_at}
        asked |= {"types": types, "where": where or None, "include_retired": include_retired}
        asked |= {"summaries": summaries, "settings": settings, "scope": scope}

        def ask(reader: MemoryReader) -> Recall:
            if not receipt:
                return reader.recall(query or "", **asked)
            from worlddb.memory.receipts import receipted

            return receipted(reader)(query or "", **asked)

        return self._reader.by_grant(scope, ask)

    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_retired: bool = False,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> MemoryPage:
        """Return the memories directly in a scope, the latest first, a page at a time.

        With `types`, only memories of these types, such as Memory or Session; with `where`, only
        those that the filter is true of, as in `recall`.

        Raises:
            InvalidInputError: an argument is wrong, or no page begins at that cursor.
            RejectedError: the scope is outside the bounds of this memory.
        """
        asked: dict[str, Any] = {"limit": limit, "cursor": cursor, "as_of": as_of}
        asked |= {"include_retired": include_retired, "known_at": known_at}
        asked |= {"types": types, "where": where or None, "scope": scope}
        return self._reader.by_grant(scope, lambda reader: reader.list(**asked))

    def read(
        self,
        id: bytes | str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Remembered:
        """Return one memory, retired or not, by its id or the first 4 or more digits of it.

        With a scope, only a memory inside it is found.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: there is no such memory here.
            RejectedError: the scope is outside the bounds of this memory.
        """
        asked: dict[str, Any] = {"as_of": as_of, "known_at": known_at, "scope": scope}
        return self._reader.by_grant(scope, lambda reader: reader.read(id, **asked))

    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int = 1_000,
        k: int = 10,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> PromptContext:
        """Return what is remembered as ready text for a prompt, of at most `max_tokens` tokens.

        First what is pinned, then memories with the tag `instruction`, then what is known about
        the user, then the hits of the question, or the latest memories without one. The text has
        dates and ids and says that it is data; its budget counts everything that is in it. `types`
        and `where` choose the memories, as in `recall`.

        Raises:
            InvalidInputError: an argument is wrong.
            RejectedError: the scope is outside the bounds of this memory.
            ProviderError: the embedder failed or is missing.
        """
        from worlddb.memory.prompt_context import prompt_context

        chosen: dict[str, Any] = {"types": types, "where": where, "scope": scope}
        chosen |= {"as_of": as_of, "known_at": known_at}
        chosen |= {"max_tokens": max_tokens, "k": k}
        return self._reader.by_grant(scope, lambda reader: prompt_context(reader, query, **chosen))

    @property
    def files(self) -> Files:
        """The files of the usual scope, with their versions; recall finds what they say.

        Raises:
            InvalidInputError: several scopes are usual; name one by `files_of`.
        """
        return self.files_of()

    def files_of(self, **scope: Unpack[ScopeIds]) -> Files:
        """Return the files of one scope, with their versions; recall finds what they say.

        Raises:
            InvalidInputError: not exactly one scope is named.
            RejectedError: the scope is outside the bounds of this memory.
        """
        return scope_files(self._writer, scope)

    # -- scopes and warmth -------------------------------------------------------------------------

    list_scopes = _of("_reader", MemoryReader.list_scopes)
    warm = _of("_reader", MemoryReader.warm)

    # -- ending ------------------------------------------------------------------------------------

    retire = _of("_ender", MemoryEnder.retire)
    retire_all = _of("_ender", MemoryEnder.retire_all)
    purge_scope = _of("_ender", MemoryEnder.purge_scope)
    erase = _of("_ender", MemoryEnder.erase)

    # -- files -------------------------------------------------------------------------------------

    list_files = _of("_files", ScopedFiles.list_files)
    read_file = _of("_files", ScopedFiles.read_file)
    write_file = _of("_files", ScopedFiles.write_file)
    edit_file = _of("_files", ScopedFiles.edit_file)
    move_file = _of("_files", ScopedFiles.move_file)
    delete_file = _of("_files", ScopedFiles.delete_file)
    glob_files = _of("_files", ScopedFiles.glob_files)
    grep_files = _of("_files", ScopedFiles.grep_files)

    # -- graph, identity and history ---------------------------------------------------------------

    query = _of("_graph", ScopedGraph.query)
    explain = _of("_graph", ScopedGraph.explain)
    link = _of("_graph", ScopedGraph.link)
    unlink = _of("_graph", ScopedGraph.unlink)
    proposals = _of("_graph", ScopedGraph.proposals)
    decide_merge = _of("_graph", ScopedGraph.decide_merge)
    accept_merge = _of("_graph", ScopedGraph.accept_merge)
    reject_merge = _of("_graph", ScopedGraph.reject_merge)
    undo_merge = _of("_graph", ScopedGraph.undo_merge)
    split = _of("_graph", ScopedGraph.split)
    identity = _of("_graph", ScopedGraph.identity)
    conflicts = _of("_graph", ScopedGraph.conflicts)
    undo = _of("_graph", ScopedGraph.undo)
    log = _of("_graph", ScopedGraph.log)
    diff = _of("_graph", ScopedGraph.diff)
    prove = _of("_graph", ScopedGraph.prove)
    check = _of("_graph", ScopedGraph.check)
    consolidate = _of("_graph", ScopedGraph.consolidate)
    edge_types = _of("_graph", ScopedGraph.edge_types)
    declare = _of("_graph", ScopedGraph.declare)

    # -- governance --------------------------------------------------------------------------------

    verify_receipt = _of("_governance", Governance.verify_receipt)
    prove_history = _of("_governance", Governance.prove_history)
    export = _of("_governance", Governance.export)
    reads = _of("_governance", Governance.reads)
    retention = _of("_governance", Governance.retention)
    set_retention = _of("_governance", Governance.set_retention)
    apply_retention = _of("_governance", Governance.apply_retention)
    fading = _of("_governance", Governance.fading)
    pending = _of("_governance", Governance.pending)
    interior = _of("_governance", Governance.interior)
    create_branch = _of("_governance", Governance.create_branch)
    branches = _of("_governance", Governance.branches)
    branch_diff = _of("_governance", Governance.branch_diff)
    merge = _of("_governance", Governance.merge)
    drop_branch = _of("_governance", Governance.drop_branch)
    grant = _of("_governance", Governance.grant)
    grants = _of("_governance", Governance.grants)
    revoke = _of("_governance", Governance.revoke)
    refuse = _of("_governance", Governance.refuse)
    trust = _of("_governance", Governance.trust)
    set_trust = _of("_governance", Governance.set_trust)
    quarantine = _of("_governance", Governance.quarantine)
    decide_quarantined = _of("_governance", Governance.decide_quarantined)

"""Memory: the agent-facing calls over users, agents, apps and runs.

    Memory ──┬─▶ MemoryWriter     write, amend ─▶ scopes ─▶ ingest ─▶ commit
             ├─▶ MemoryReader     recall, list, read ─▶ scopes ─▶ what can be seen
             ├─▶ MemoryEnder      retire, purge, erase
             ├─▶ ScopedFiles      files with versions
             ├─▶ ScopedGraph      edges, identity, history, proofs, ontology
             └─▶ RetentionKeeper, GrantKeeper, TrustKeeper, BranchKeeper: governance

A memory holds these parts for one caller. Each call is a method of its part, or a function of a
reader; the end of the class lists them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack

from worlddb.errors import InvalidInputError
from worlddb.ingest.ingestion import check_when
from worlddb.memory import listings, prompt_context, receipts
from worlddb.memory.endings import MemoryEnder
from worlddb.memory.prepared_write import PreparedWrite, write_together
from worlddb.memory.reads import MemoryReader
from worlddb.memory.results import Remembered, Written
from worlddb.memory.scope_grants import GrantKeeper
from worlddb.memory.scope_policies import RetentionKeeper, TrustKeeper
from worlddb.memory.scope_view import CallerScopes
from worlddb.memory.scoped_graph import ScopedGraph
from worlddb.memory.version_keepers import BranchKeeper, ScopedFiles, scope_files
from worlddb.memory.writes import MemoryWriter
from worlddb.model.inputs import ScopeIds, groups_of
from worlddb.model.records import Extractor
from worlddb.model.text_safety import Origin, less_trusted_of
from worlddb.world_db import WorldDB

if TYPE_CHECKING:
    from worlddb.consolidate.consolidator import Background
    from worlddb.files.versioned_files import Files
    from worlddb.ingest.extraction_queue import PendingReader


P = ParamSpec("P")
R = TypeVar("R")


def _of(part: str, method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Memory, P], R]:
    """Return a method of `Memory` that calls a method of a part, with its signature and help."""

    @wraps(method)
    def call(memory: Memory, /, *given: P.args, **named: P.kwargs) -> R:
        return method(getattr(memory, part), *given, **named)

    return call


def _by_reader(
    function: Callable[Concatenate[MemoryReader, P], R],
) -> Callable[Concatenate[Memory, P], R]:
    """Return a method of `Memory` that calls this function with the reader of the memory."""
    call = _of("_reader", function)
    _, *others = inspect.signature(function).parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    vars(call)["__signature__"] = inspect.signature(function).replace(parameters=[own, *others])
    return call


class Memory:
    """Memories of users, agents, apps and runs in one store.

    `store` is a path, ":memory:" or an open WorldDB; `options` are those of `worlddb.open`. The
    scope ids are defaults for calls that do not name that kind of scope; without any, the user is
    "default". A call sees the memories that are in a scope of every kind.

    `extractor` reads texts ("rules", "verbatim" or your own); `recluster` says when the
    neighbourhood of new nodes is compared again; `supersede` whether a memory ends the facts that
    it surely replaces; `actor` signs the commits. With `consolidate_every_s` the store is
    consolidated in the background at that interval, until `close`; `background` has the results.
    Long texts are read in the background, too (`read_pending`). `origin` is who brings in the
    texts; a call may name a less trusted one, never a more trusted one.

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
                origin=less_trusted_of(origin, None),
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
        """Extract texts that were too long for their write, in the background, until `close`.

        Servers do so. It works on one text at a time and a tenth of the time, and closing does not
        wait for it. Texts that wait for a language model are left to `db.extract_pending`.
        """
        from worlddb.ingest.extraction_queue import PendingReader

        if self._pending is None and self.db.why_read_only is None:
            self._pending = PendingReader(self.db.engine.ingestion)
            self._pending.start()

    def _use(self, writer: MemoryWriter) -> None:
        """Use this writer, with a reader and an ender in its scopes."""
        self._writer = writer
        scopes, actor, origin = writer.scopes, writer.actor, writer.origin
        self._reader = MemoryReader(db=self.db, scopes=scopes, actor=actor)
        self._ender = MemoryEnder(db=self.db, scopes=scopes, actor=actor, origin=origin)
        self._files = ScopedFiles(writer)
        parts: dict[str, Any] = {"db": self.db, "writer": writer, "reader": self._reader}
        self._graph = ScopedGraph(**parts, scopes=scopes, actor=actor, origin=origin)
        self._branches = BranchKeeper(db=self.db, writer=writer)
        self._retention = RetentionKeeper(db=self.db, scopes=scopes, actor=actor, origin=origin)
        self._grants = GrantKeeper(db=self.db, scopes=scopes, actor=actor, origin=origin)
        self._trust = TrustKeeper(writer=writer, reader=self._reader)

    @property
    def asks_a_model(self) -> bool:
        """Whether a write may wait for a model: the extractor is not a built-in one."""
        return not isinstance(self._writer.extractor, str | None)

    def bound(
        self,
        *,
        actor: str | None = None,
        writes_into: Sequence[str] = (),
        origin: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Memory:
        """Return this memory bound to scopes: no call of it leaves them.

        Writes go into these scopes alone. `writes_into` are the kinds of further scopes ("run_id",
        …) that a write may name: everybody who reads those can read it. `origin` is the most
        trusted origin of its writes.

        Raises:
            InvalidInputError: no scope is named, or badly; or there is no such kind.
            RejectedError: the scope is outside the bounds that there are already.
        """
        self._writer.scopes.named(scope, "bound")
        scopes = self._writer.scopes.bound(groups_of(scope), writes_into)
        origin, actor = less_trusted_of(origin, self._writer.origin), actor or self._writer.actor
        return self._with(replace(self._writer, scopes=scopes, actor=actor, origin=origin))

    def signed(self, actor: str | None = None, *, origin: Origin | None = None) -> Memory:
        """Return this memory for another actor, with `origin` as the most trusted one of writes."""
        origin, actor = less_trusted_of(origin, self._writer.origin), actor or self._writer.actor
        return self._with(replace(self._writer, actor=actor, origin=origin))

    def _with(self, writer: MemoryWriter, db: WorldDB | None = None) -> Memory:
        made = type(self)(db or self.db)  # A subclass keeps its own calls.
        made._owns = db is not None
        made._use(writer)
        return made

    def branch(self, name: str, *, create: bool = True) -> Memory:
        """Open a branch of the store as a memory of its own; create it if needed.

        A branch begins as a copy of the store; neither side sees writes of the other. See
        `WorldDB.branch`. Close it when done.

        Raises:
            InvalidInputError: the name is none.
            NotFoundError: there is no such branch, and none is to be made.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be branched, or not be written.
        """
        self._branches.refuse_branch()
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

    # -- calls of the parts ------------------------------------------------------------------------

    write = _of("_writer", MemoryWriter.write)
    amend = _of("_writer", MemoryWriter.amend)

    def pin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered:
        """Pin a memory: `context` gives it first, whatever the question.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: there is no such memory here.
            ConflictError: it has ended, or the store is busy.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        from worlddb.memory.rewrites import pin_memory

        pin_memory(self._writer, id, scope, pinned=True)
        return self.read(id, **scope)

    def unpin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered:
        """Unpin a memory; recall still finds it.

        Raises:
            InvalidInputError, NotFoundError, ConflictError, RejectedError, StorageError: as `pin`.
        """
        from worlddb.memory.rewrites import pin_memory

        pin_memory(self._writer, id, scope, pinned=False)
        return self.read(id, **scope)

    recall = _of("_reader", MemoryReader.recall)
    context = _by_reader(prompt_context.context)
    list = _of("_reader", MemoryReader.list)
    read = _of("_reader", MemoryReader.read)
    warm = _of("_reader", MemoryReader.warm)
    list_scopes = _by_reader(listings.list_scopes)
    fading = _by_reader(listings.fading)
    pending = _by_reader(listings.pending)
    interior = _by_reader(listings.interior)
    reads = _by_reader(listings.reads)
    export = _by_reader(receipts.export)
    verify_receipt = _by_reader(receipts.verify_receipt)

    retire = _of("_ender", MemoryEnder.retire)
    retire_all = _of("_ender", MemoryEnder.retire_all)
    purge_scope = _of("_ender", MemoryEnder.purge_scope)
    erase = _of("_ender", MemoryEnder.erase)

    @property
    def files(self) -> Files:
        """The files of the default scope, with their versions; recall finds their texts.

        Raises:
            InvalidInputError: several scopes are usual; name one by `files_of`.
        """
        return self.files_of()

    def files_of(self, **scope: Unpack[ScopeIds]) -> Files:
        """Return the files of one scope, with their versions; recall finds their texts.

        Raises:
            InvalidInputError: not exactly one scope is named.
            RejectedError: the scope is outside the bounds of this memory.
        """
        return scope_files(self._writer, scope)

    list_files = _of("_files", ScopedFiles.list_files)
    read_file = _of("_files", ScopedFiles.read_file)
    write_file = _of("_files", ScopedFiles.write_file)
    edit_file = _of("_files", ScopedFiles.edit_file)
    move_file = _of("_files", ScopedFiles.move_file)
    delete_file = _of("_files", ScopedFiles.delete_file)
    glob_files = _of("_files", ScopedFiles.glob_files)
    grep_files = _of("_files", ScopedFiles.grep_files)

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
    prove_history = _by_reader(receipts.prove_history)
    check = _of("_graph", ScopedGraph.check)
    consolidate = _of("_graph", ScopedGraph.consolidate)
    edge_types = _of("_graph", ScopedGraph.edge_types)
    declare = _of("_graph", ScopedGraph.declare)

    retention = _of("_retention", RetentionKeeper.retention)
    set_retention = _of("_retention", RetentionKeeper.set_retention)
    apply_retention = _of("_retention", RetentionKeeper.apply_retention)
    create_branch = _of("_branches", BranchKeeper.create_branch)
    branches = _of("_branches", BranchKeeper.branches)
    branch_diff = _of("_branches", BranchKeeper.branch_diff)
    merge = _of("_branches", BranchKeeper.merge)
    drop_branch = _of("_branches", BranchKeeper.drop_branch)
    grant = _of("_grants", GrantKeeper.grant)
    grants = _of("_grants", GrantKeeper.grants)
    revoke = _of("_grants", GrantKeeper.revoke)
    refuse = _of("_grants", GrantKeeper.refuse)
    trust = _of("_trust", TrustKeeper.trust)
    set_trust = _of("_trust", TrustKeeper.set_trust)
    quarantine = _of("_trust", TrustKeeper.quarantine)
    decide_quarantined = _of("_trust", TrustKeeper.decide_quarantined)


def prepare_write(memory: Memory, **arguments: Any) -> PreparedWrite | None:
    """Return a write with the arguments of `write`, prepared as far as no lock is needed.

    None if only `write` can do it: a document, a long text, a model that reads, or a scope that a
    grant opens.

    Raises:
        InvalidInputError, RejectedError: as `write`.
    """
    return memory._writer.prepare(**arguments)


def write_prepared(
    pairs: Sequence[tuple[Memory, PreparedWrite]],
    on_commit: Callable[[float], None] = lambda seconds: None,
) -> list[Written | Exception]:
    """Carry out prepared writes of one store in their order, and commit them together.

    Each has its own commit, and its own result or error. They are durable when this returns.
    `on_commit` is told how long the COMMIT took.
    """
    return write_together([(memory._writer, prepared) for memory, prepared in pairs], on_commit)

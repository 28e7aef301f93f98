"""Transaction: the calls available between `with db.transaction()` and the end of the block.

    transact() ──▶ Transaction ──▶ create_node, write_edge, … ──▶ seal() ──▶ one commit

`Ontology` adds an edge type to a world, in a transaction of its own.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from worlddb.errors import ConflictError, InvalidInputError, NotFoundError
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.inputs import (
    Instant,
    Limits,
    check_notes,
    check_type,
    encode_metadata,
    encode_text,
    from_micros,
)
from worlddb.model.records import Commit, Edge, EdgeDraft, Node, NodeDraft, Proposal, ProposalStatus
from worlddb.model.text_safety import USER, Origin, check_origin
from worlddb.ontology.edge_types import EdgeHandler, default_handlers
from worlddb.ontology.registry import (
    DECLARED_MAX,
    VERSION_BYTES_MAX,
    EdgeDeclaration,
    Registration,
    Registry,
    check_handler,
    version_of,
)
from worlddb.store.interface import Reader, Store
from worlddb.view.visibility import follow_registrations, registrations
from worlddb.write.commit import Ledger, seal, to_commit
from worlddb.write.handler_context import TrustGuard, decide_merge, outranks, yields
from worlddb.write.node_rows import (
    create_node,
    create_nodes,
    erase_nodes,
    refuse_erased,
    replay_nodes,
)
from worlddb.write.reconcile import Reconciler

R = TypeVar("R")

ACTOR_BYTES_MAX = 256
"""Characters; enough for a name with a host. Every commit stores it."""
DEFAULT_ACTOR = "unknown"


class Transaction:
    """An open write transaction; made by `db.transaction()`.

    A call that is refused before it wrote anything leaves the transaction usable. A call that
    failed half-way, or whose handler refused, ends the transaction: everything is rolled back, even
    if the caller swallows the error.
    """

    def __init__(self, store: Store, ledger: Ledger, registry: Registry, actor: str) -> None:
        self._store = store
        self._ledger = ledger
        self._reconciler = Reconciler(ledger, registry)
        self.actor = actor
        self.erased: tuple[Id, ...] | None = None
        """The result of an erasure; None if nothing was to be erased."""

    @property
    def commit(self) -> Commit | None:
        """The commit that this transaction became; None before that, or if it wrote nothing."""
        ledger = self._ledger
        return (
            None if ledger.landed is None else to_commit(ledger.landed, ledger.head, ledger.changes)
        )

    @property
    def now(self) -> datetime:
        """The time of the commit that this transaction will become."""
        return self._ledger.now

    @property
    def reader(self) -> Reader:
        """The store as this transaction sees it, with its own writes."""
        return self._ledger.writer

    @property
    def follows(self) -> int:
        """The number of the commit before this transaction."""
        return self._ledger.head.seq

    # -- nodes -------------------------------------------------------------------------------------

    def create_node(
        self,
        *,
        type: str,
        name: str = "",
        content: str = "",
        parent: bytes | str | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        created_at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        aliases: Sequence[str] = (),
        origin: str | Sequence[str] | None = None,
    ) -> Node:
        """Create a node and return it.

        Without `parent` it lives in the root world. Without `valid_from` it is true from
        `created_at` on, which is now by default. The same type, name, content and `created_at`
        again, in the same world and while the node is live, is the same node, with aliases and
        sources added. An id cannot be predicted, except that of a scope. `origin` says who brought
        the text in, one or several; by default the caller.

        Raises:
            InvalidInputError: a field is wrong; nothing was written.
            NotFoundError: the parent does not exist.
            ConflictError: this very scope already lives in another world, or was erased.
        """
        draft = NodeDraft(
            type=type,
            name=name,
            content=content,
            parent=parent,
            valid_from=valid_from,
            valid_to=valid_to,
            created_at=created_at,
            source=source,
            aliases=aliases,
            origins=(origin,) if isinstance(origin, str) else tuple(origin or ()),
        )
        return self._do(create_node, self._ledger, draft)

    def create_nodes(self, drafts: Iterable[NodeDraft], *, reuse: bool = True) -> list[Id]:
        """Create many nodes and return their ids; the fast way to load.

        With `reuse` off, every draft is a new node, even if it equals another node.

        Raises:
            InvalidInputError, NotFoundError, ConflictError: as `create_node`.
        """
        return self._do(partial(create_nodes, reuse=reuse), self._ledger, drafts)

    @property
    def size(self) -> tuple[int, int]:
        """Return the rows of the last node and the last edge, including this transaction's."""
        return self._ledger.node_row, self._ledger.edge_row

    def replay_nodes(self, drafts: Sequence[NodeDraft], blinds: Sequence[bytes]) -> None:
        """Write nodes of another store with their ids; none of them may be here yet.

        Raises:
            CorruptionError: one of them is here already.
        """
        self._do(replay_nodes, self._ledger, drafts, blinds)

    def replay_note(self, node_id: Id, kind: str, text: str) -> None:
        """Write a note of another store, unless the node has it.

        Raises:
            NotFoundError: no such node.
        """
        if kind == "metadata":
            self._do(self._add_metadata, node_id, text)
        else:
            self._do(self._add_notes, node_id, kind, (text,))

    def expect(self, node_ids: Iterable[Id]) -> None:
        """Look up in one statement the nodes that the transaction will use."""
        places = self._ledger.places
        missing = [ident for ident in dict.fromkeys(node_ids) if ident not in places]
        self._do(self._ledger.place_all, missing)

    def is_new(self, node_id: Id) -> bool:
        """Return whether this transaction created a node."""
        return self._ledger.place(node_id).row > self._ledger.head.nodes

    def yields(self, node_id: Id, origins: Sequence[str]) -> bool:
        """Return whether a node is at most as trusted as some origins, so that these may add to it.

        A caller without full trust adds nothing to a name.

        Raises:
            NotFoundError: no such node.
        """
        return self._do(yields, self._ledger, node_id, origins)

    def outranks(self, target: Id, source: Id) -> bool:
        """Return whether node `target` is more trusted than `source`, which would end it.

        Raises:
            NotFoundError: no such node.
        """
        return self._do(outranks, self._ledger, target, source)

    def begin_of(self, node_id: bytes | str) -> datetime:
        """Return when a node's validity begins.

        Raises:
            NotFoundError: no such node.
        """
        return from_micros(self._do(self._ledger.place, node_id).valid_from)

    def add_aliases(self, node_id: bytes | str, aliases: Sequence[str]) -> None:
        """Add aliases to a node.

        Raises:
            InvalidInputError, NotFoundError: a bad alias, or no such node.
            ConflictError: the node was erased.
        """
        texts = check_notes(aliases, "aliases", self._ledger.limits)
        self._do(self._add_notes, node_id, "alias", texts)

    def add_source(self, node_id: bytes | str, source: str | Sequence[str]) -> None:
        """Add sources to a node.

        Raises:
            InvalidInputError, NotFoundError: a bad source, or no such node.
            ConflictError: the node was erased.
        """
        texts = check_notes(source, "source", self._ledger.limits)
        self._do(self._add_notes, node_id, "source", texts)

    def add_metadata(self, node_id: bytes | str, metadata: Mapping[str, Any]) -> None:
        """Attach JSON data to a node; an existing key gets the new value.

        Raises:
            InvalidInputError, NotFoundError: not JSON data, or no such node.
            ConflictError: the node was erased.
        """
        text = encode_metadata(metadata, self._ledger.limits)
        self._do(self._add_metadata, node_id, text)

    def _writable(self, node_id: bytes | str) -> tuple[Id, int]:
        """Return the id and row of a node that is not erased and that the caller may change."""
        ident = self._ledger.resolve(node_id)
        if self._ledger.guard is not None:
            self._ledger.guard.check(ident)
        row = self._ledger.place(ident).row
        refuse_erased(self._ledger, ident, row)
        return ident, row

    def _add_metadata(self, node_id: bytes | str, text: str) -> None:
        ident, row = self._writable(node_id)
        has = self._ledger.writer.nodes([row])[row].metadata
        if any(key not in has or has[key] != value for key, value in json.loads(text).items()):
            # Also if the node has this note: an earlier value that returns must be the latest
            # again.
            self._ledger.add_notes(ident, row, "metadata", (text,), fresh=True)

    def _add_notes(self, node_id: bytes | str, kind: str, texts: tuple[str, ...]) -> None:
        ident, row = self._writable(node_id)
        self._ledger.add_notes(ident, row, kind, texts, fresh=False)

    def retire(self, node_id: bytes | str, *, at: Instant | None = None) -> Node:
        """End a node's validity (now, or `at`); it can still be read, and never reopens.

        Raises:
            InvalidInputError, NotFoundError: a bad time, or no such node.
        """
        return self._do(self._retire, node_id, at)

    def _retire(self, node_id: bytes | str, at: Instant | None) -> Node:
        ident = self._ledger.resolve(node_id)
        row = self._ledger.place(ident).row
        self._ledger.close_validity(ident, self._ledger.now if at is None else at, by=None)
        return self._ledger.writer.nodes([row])[row]

    def erase(self, node_ids: Iterable[bytes | str]) -> list[Id]:
        """Remove the texts of nodes from the store; `db.erase` also cleans the file.

        After the commit, the keys of these nodes in sealed backups are destroyed, and their lines
        are removed from the record of reads.

        Raises:
            InvalidInputError, NotFoundError: the root, or no such node.
        """
        self._store.refuse_branches("erased from")
        gone = self._do(erase_nodes, self._ledger, node_ids)
        self.erased = (*(self.erased or ()), *gone)
        return gone

    # -- edges -------------------------------------------------------------------------------------

    def write_edge(
        self,
        type: str,
        source: bytes | str,
        target: bytes | str,
        *,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Edge:
        """Write an edge through the handler of its type, and return it.

        Without `valid_from` it begins when its source does. If an equal edge exists and is not
        deleted, that edge is returned.

        Raises:
            InvalidInputError: unknown type, or a field is wrong; nothing was written.
            NotFoundError: an end does not exist.
            RejectedError: a handler refused; the whole transaction is rolled back.
        """
        draft = EdgeDraft(
            source=source,
            target=target,
            valid_from=valid_from,
            valid_to=valid_to,
            metadata=metadata,
        )
        return self._do(self._reconciler.write, type, draft)

    def write_edges(self, type: str, drafts: Iterable[EdgeDraft]) -> int:
        """Write many edges of one type through their handler; return how many were new.

        Raises:
            InvalidInputError, NotFoundError, RejectedError: as `write_edge`.
        """
        return self._do(self._reconciler.write_many, type, drafts)

    def delete_edge(self, edge_id: bytes | str) -> Edge:
        """Delete an edge: close it on the known axis, through its handler. Its row stays.

        Raises:
            NotFoundError: no such edge, or deleted already.
            RejectedError: the handler refused; the whole transaction is rolled back.
        """
        return self._do(self._reconciler.delete, edge_id)

    def end_edge(self, edge_id: Id, at: Instant) -> None:
        """End an edge's validity, unless it ends earlier.

        Raises:
            NotFoundError: no such edge.
        """
        self._do(self._ledger.close_validity, edge_id, at, None)

    def decide_merge(
        self, edge_id: bytes | str, status: ProposalStatus, *, reopens: bool = False
    ) -> Proposal:
        """Accept, reject or reopen the proposal of a `same_as` edge.

        A rejected proposal becomes pending again only with `reopens`.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was decided differently before.
        """
        return self._do(decide_merge, self._ledger, self._reconciler, edge_id, status, reopens)

    def register(self, world: bytes | str, type: str, version: str, functional: bool) -> None:
        """Record a custom edge type of a world; `db.ontology(world).register` calls it.

        Raises:
            NotFoundError: no such world.
            InvalidInputError: the type or the version is not a single word.
        """
        check_type(type, self._ledger.limits)
        encode_text(version, "version", VERSION_BYTES_MAX)
        if not isinstance(functional, bool):
            raise InvalidInputError(f"functional: give True or False, not {functional!r}")
        self._do(self._register, world, type, version, functional)

    def _register(self, world: bytes | str, type: str, version: str, functional: bool) -> None:
        ident = self._ledger.resolve(world)
        row = self._ledger.place(ident).row
        if self._ledger.guard is not None:
            self._ledger.guard.check(ident)
        self._ledger.writer.put_registration(row, type, version, functional)
        # The type can be written by what follows in this transaction.
        self._reconciler.registry.record(self._ledger.writer.registrations())
        self._ledger.change("register", ident, type=type, version=version, functional=functional)

    def mark(self, kind: str, **detail: Any) -> None:
        """Record a property of the whole commit in the journal, such as which commit it undoes."""
        self._do(lambda: self._ledger.change(kind, ROOT_ID, **detail))

    # -- the end of it -----------------------------------------------------------------------------

    def derive(self, take_in: Callable[[Reader, int, int], None]) -> None:
        """Update a derived index with this transaction's writes, in the same commit.

        `take_in` gets the writer, and the rows of the last node and the last note.
        """
        self._do(take_in, self._ledger.writer, self._ledger.node_row, self._ledger.note_row)

    def _do(self, call: Callable[..., R], *args: Any) -> R:
        """Run a step; remember the error if it broke the transaction."""
        ledger = self._ledger
        ledger.writer  # noqa: B018 - raises once the transaction has ended
        if ledger.failure is not None:
            raise ConflictError(
                f"this transaction was rolled back ({ledger.failure}); start another one"
            ) from ledger.failure
        before = ledger.size
        try:
            try:
                result = call(*args)
            except Exception:
                with self._store.translating():
                    raise
            if ledger.failure is not None:
                raise ledger.failure  # A handler failed, and its caller swallowed the error.
            return result
        except BaseException as error:
            harmless = isinstance(error, InvalidInputError | NotFoundError | ConflictError)
            if not harmless or before != ledger.size:
                ledger.failure = error
            raise


@contextmanager
def transact(
    store: Store,
    registry: Registry,
    *,
    actor: str,
    bulk: bool,
    limits: Limits,
    together: bool = False,
    origin: Origin | None = None,
    beside: Callable[[Store, Transaction], None] | None = None,
) -> Iterator[Transaction]:
    """Open a transaction, yield it, and commit it if the block succeeds and wrote something.

    `together` is for short blocks that read only through the transaction (`Store.write`). With an
    `origin` other than the user, new nodes get that origin, and the transaction may neither end nor
    change a more trusted node. `beside` is called after the commit, for the files beside the store.

    Raises:
        StorageError, ConflictError: the store cannot be written now.
        RejectedError: a handler refused, even if the block swallowed that error.
    """
    encode_text(actor, "actor", ACTOR_BYTES_MAX)
    try:
        with (
            _without_collector() if bulk else nullcontext(),
            store.write(together=together) as writer,
        ):
            ledger = Ledger(writer, limits)
            if origin is not None and check_origin(origin) != USER:
                ledger.guard = TrustGuard(ledger, origin)
            follow_registrations(registry, writer)
            if bulk:
                writer.defer_indexes()
            try:
                tx = Transaction(store, ledger, registry, actor)
                yield tx
                if ledger.failure is not None:
                    # The block swallowed the error; committing half of it would be worse.
                    raise ledger.failure
                row = None if ledger.is_empty else seal(ledger, actor)
                if row is None:
                    writer.build_indexes()
            finally:
                ledger.close()
    except BaseException:
        registry.recorded_at = -1  # It may contain edge types of failed commits.
        raise
    if row is not None and not any(change.kind == "register" for change in ledger.changes):
        registry.recorded_at = row.seq
    ledger.landed = row
    if beside is not None:
        beside(store, tx)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the garbage collector: a load makes millions of objects and no cycles."""
    pause = gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


class Ontology:
    """The edge types of one world and its interior; made by `db.ontology(world)`."""

    def __init__(self, store: Store, registry: Registry, world: Id, limits: Limits) -> None:
        self._store = store
        self._registry = registry
        self._world = world
        self._limits = limits

    def register(
        self, handler: EdgeHandler, *, functional: bool = False, actor: str = DEFAULT_ACTOR
    ) -> None:
        """Make `handler` the program of its edge type in this world and all worlds inside it.

        The store records name and version; each process that writes the type has to register the
        program again. *Functional* means at most one live target per source.

        Raises:
            InvalidInputError: the object is not an edge handler.
            StorageError, ConflictError: the registration cannot be written now.
        """
        checked = check_handler(handler)
        version = version_of(checked)
        wanted = Registration(
            world=self._world, type=checked.type, version=version, functional=functional
        )
        if wanted not in self.types():
            with transact(
                self._store, self._registry, actor=actor, bulk=False, limits=self._limits
            ) as tx:
                tx.register(self._world, checked.type, version, functional)
        self._registry.load(self._world, checked)

    def declare(
        self,
        type: str | Mapping[str, Any] | EdgeDeclaration,
        *,
        actor: str = DEFAULT_ACTOR,
        **traits: Any,
    ) -> EdgeDeclaration:
        """Record an edge type that is plain data: `declare("manages", acyclic=True)`.

        It applies in this world and all worlds inside it, in every process, without a program. The
        traits are those of `EdgeDeclaration`; a JSON object with them works, too. An unknown
        inverse type is declared with it. Declaring a type again replaces its traits for later
        writes.

        Raises:
            InvalidInputError: a trait is wrong, or the type is a built-in one.
            StorageError, ConflictError: the declaration cannot be written now.
        """
        given = {"type": type} if isinstance(type, str) else type
        if isinstance(given, Mapping):
            given = EdgeDeclaration.from_dict({**given, **traits})
        elif not isinstance(given, EdgeDeclaration) or traits:
            raise InvalidInputError("declare: give the name of a type and its traits")
        there = self.types()
        wanted = {given.type: given}
        if given.turned is not None and not any(it.type == given.inverse for it in there):
            wanted[given.turned.type] = given.turned
        for shipped in wanted.keys() & {handler.type for handler in default_handlers()}:
            raise InvalidInputError(f"{shipped!r} ships with WorldDB; choose another name")
        missing = [one for one in wanted.values() if one not in [it.declaration for it in there]]
        if len({one.type for one in there} | {one.type for one in missing}) > DECLARED_MAX:
            raise InvalidInputError(f"declare: a world has up to {DECLARED_MAX:,} types of its own")
        if missing:
            with transact(
                self._store, self._registry, actor=actor, bulk=False, limits=self._limits
            ) as tx:
                for one in missing:
                    tx.register(self._world, one.type, one.version, one.functional)
        return given

    def types(self) -> list[Registration]:
        """Return the custom types recorded in the store for this world alone."""
        with self._store.read() as reader:
            return [found for found in registrations(reader) if found.world == self._world]

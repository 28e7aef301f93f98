"""WorldDB: opens a store, wires the rooms together, and delegates. No logic of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from types import TracebackType

from worlddb.model.address import ROOT_ID
from worlddb.model.id import Id
from worlddb.model.limits import Limits
from worlddb.model.proof import Proof
from worlddb.model.values import (
    NOW,
    AsOf,
    Commit,
    Conflict,
    Diff,
    Direction,
    Edge,
    Node,
    Problem,
    Proposal,
    ProposalStatus,
)
from worlddb.ontology.protocol import EdgeHandler
from worlddb.ontology.registry import (
    Registry,
    check_handler,
    plugged_handlers,
)
from worlddb.read import history, identity, lookup
from worlddb.read.check import check
from worlddb.read.export import export
from worlddb.read.moment import moment_of
from worlddb.read.prove import prove
from worlddb.read.query import QueryBuilder, QuerySpec
from worlddb.read.subgraph import Subgraph
from worlddb.store.sqlite.options import check_options
from worlddb.store.sqlite.store import SqliteStore
from worlddb.write.ontology import Ontology
from worlddb.write.replay import replay
from worlddb.write.transaction import DEFAULT_ACTOR, Transaction, transact

EXPORT_BATCH = 256


def wall_clock() -> int:
    """Return the machine's time in microseconds since 1970."""
    return time.time_ns() // 1000


class WorldDB:
    """An open store. Share one between threads; open one per process."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        durability: str = "full",
        busy_timeout_s: float = 30.0,
        limits: Limits | None = None,
        handlers: Iterable[EdgeHandler] = (),
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        check_options(path, durability, busy_timeout_s, limits, handlers, clock)
        self._clock = clock
        self._limits = limits or Limits()
        self._registry = Registry([*plugged_handlers(), *map(check_handler, handlers)])
        self._store = SqliteStore(
            os.fspath(path),
            clock=clock,
            read_only=read_only,
            create=create,
            durability=durability,
            busy_timeout_s=busy_timeout_s,
        )

    # -- writing -----------------------------------------------------------------------------------

    def transaction(
        self, actor: str = DEFAULT_ACTOR, *, bulk: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Open a transaction: `with db.transaction(actor="me") as tx:` is one commit.

        It lands when the block ends and is lost whole when the block raises. `bulk` builds
        indexes once at the end: for loads that are large beside what is there already.

        Raises:
            StorageError: the store is read-only, or the disk refused.
            ConflictError: another writer kept the lock longer than `busy_timeout_s`.
            InvalidInputError: this thread already has a transaction open.
        """
        return transact(self._store, self._registry, actor=actor, bulk=bulk, limits=self._limits)

    def ontology(self, world_id: bytes | str | None = None) -> Ontology:
        """Return the edge types of a world (default: the root world), to register more.

        Raises:
            NotFoundError, InvalidInputError: no such world.
        """
        world = ROOT_ID if world_id is None else self.get(world_id).id
        return Ontology(self._store, self._registry, world, self._limits)

    def accept_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Unite the two ends of a `same_as` edge into one identity; both keep their rows.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was rejected or withdrawn.
        """
        return self._decide(edge_id, "accepted", actor)

    def reject_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Decide that the two ends of a `same_as` edge are different.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was accepted or withdrawn.
        """
        return self._decide(edge_id, "rejected", actor)

    def undo_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Take an accepted merge back; the proposal is pending again.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was not accepted.
        """
        return self._decide(edge_id, "pending", actor)

    def _decide(self, edge_id: bytes | str, status: ProposalStatus, actor: str) -> Proposal:
        with self.transaction(actor) as tx:
            return tx.decide_merge(edge_id, status)

    # -- reading -----------------------------------------------------------------------------------

    def get(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> Node:
        """Return a node by its id or a unique prefix of at least 4 hex digits.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: no such node at that time.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            return lookup.find_node(reader, id_or_prefix, moment)[1]

    def get_edge(self, id_or_prefix: bytes | str) -> Edge:
        """Return an edge by its id or a unique prefix, deleted or not.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: no such edge.
        """
        with self._store.read() as reader:
            return reader.edges([lookup.find(reader, id_or_prefix, "edges")])[0].edge

    def children(
        self,
        id_or_prefix: bytes | str | None = None,
        *,
        as_of: AsOf = NOW,
        include_superseded: bool = False,
    ) -> list[Node]:
        """Return the nodes that live in a world (default: the root), in the order of writing.

        Raises:
            InvalidInputError, NotFoundError: no such world at that time.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            given = ROOT_ID if id_or_prefix is None else id_or_prefix
            return list(lookup.children(reader, given, moment, include_superseded))

    def edges(
        self,
        id_or_prefix: bytes | str,
        direction: Direction = "out",
        types: Iterable[str] | None = None,
        *,
        as_of: AsOf = NOW,
        include_superseded: bool = False,
    ) -> list[Edge]:
        """Return the edges at a node that are not deleted, in the order of writing.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._store.read() as reader:
            return lookup.edges(
                reader,
                id_or_prefix,
                moment_of(reader, as_of, self._clock()),
                direction=direction,
                types=types,
                include_superseded=include_superseded,
            )

    def query(self) -> QueryBuilder:
        """Start a query: `db.query().seeds([id]).traverse("refers_to").execute()`."""
        return QueryBuilder(self._store, self._registry, self._clock)

    def run(self, spec: QuerySpec) -> Subgraph:
        """Run a query given as plain data.

        Raises:
            InvalidInputError, NotFoundError: the spec is wrong, or names what is not there.
        """
        return spec.apply(self.query()).execute()

    def conflicts(self, *, as_of: AsOf = NOW, include_settled: bool = False) -> list[Conflict]:
        """Return the recorded contradictions.

        Raises:
            InvalidInputError: a time without a zone.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            found = identity.conflicts(reader, moment)
        return [item for item in found if include_settled or not item.settled]

    def proposals(
        self, status: ProposalStatus | None = "pending", *, as_of: AsOf = NOW
    ) -> list[Proposal]:
        """Return merge proposals; `status=None` for all of them.

        Raises:
            InvalidInputError: no such status, or a time without a zone.
        """
        with self._store.read() as reader:
            return identity.proposals(reader, status, moment_of(reader, as_of, self._clock()))

    def equivalence_class(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> set[Id]:
        """Return the ids of all nodes accepted as the same, this one among them.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            row, _ = lookup.find_node(reader, id_or_prefix, moment)
            rows = identity.accepted_class(reader, {row}, moment)
            return {node.id for node in reader.nodes(rows, moment.known).values()}

    # -- the store as a whole ----------------------------------------------------------------------

    @property
    def root_id(self) -> Id:
        """The id of the root world; the same in every store."""
        return ROOT_ID

    @property
    def root_state(self) -> Id:
        """The address of everything in the store as of the last commit."""
        with self._store.read() as reader:
            return Id(reader.head().root_state)

    def prove(self, id_or_prefix: bytes | str) -> Proof:
        """Return a proof that a node is in the store; check it with `worlddb.verify_proof`.

        Raises:
            InvalidInputError, NotFoundError: no such node.
        """
        with self._store.read() as reader:
            return prove(reader, lookup.find(reader, id_or_prefix, "nodes"))

    def log(
        self, *, after: int = -1, limit: int | None = None, newest_first: bool = False
    ) -> list[Commit]:
        """Return the journal, oldest commit first.

        Raises:
            InvalidInputError: `after` or `limit` is no whole number.
        """
        with self._store.read() as reader:
            return history.log(reader, after, limit, newest_first)

    def diff(self, seq_a: int, seq_b: int) -> Diff:
        """Return what the commits after `seq_a` up to `seq_b` did.

        Raises:
            InvalidInputError: the later one was given first.
            NotFoundError: there is no such commit.
        """
        with self._store.read() as reader:
            return history.diff(reader, seq_a, seq_b)

    def check(self) -> list[Problem]:
        """Hash everything again and compare it with every index and the journal.

        Returns what does not fit; an empty list is a sound store.
        """
        return check(self._store)

    def export(self, *, after: int = -1) -> Iterator[str]:
        """Yield the whole journal as JSON Lines, on one snapshot; `replay` takes it back in."""
        with self._store.snapshot() as reader:
            lines = export(reader, after)
            while True:
                with self._store.using():
                    batch = list(islice(lines, EXPORT_BATCH))
                if not batch:
                    return
                yield from batch

    def replay(
        self, lines: Iterable[str], *, on_commit: Callable[[int], None] = lambda seq: None
    ) -> int:
        """Play an export into this store; return how many commits it added.

        Ids, both clocks and the root state come out as they were, or the commit is refused.

        Raises:
            FormatError: no export, or a newer one.
            CorruptionError: a commit was changed on the way.
            ConflictError: this store has another history.
        """
        return replay(self._store, lines, on_commit)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store as of now to a new file, while others read and write.

        Raises:
            StorageError: the file exists already or cannot be written.
        """
        self._store.backup(os.fspath(path))

    def close(self) -> None:
        """Close the store. Calling it twice does nothing."""
        self._store.close()

    def __enter__(self) -> WorldDB:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"WorldDB({self._store.path!r})"


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    durability: str = "full",
    busy_timeout_s: float = 30.0,
    limits: Limits | None = None,
    handlers: Iterable[EdgeHandler] = (),
    clock: Callable[[], int] = wall_clock,
) -> WorldDB:
    """Open the store at `path` (":memory:" for one that is gone when closed), making it if new.

    `durability="full"` means that an acknowledged commit survives a power cut; `"normal"` may lose
    the last commits then (never on a crash of the process) and writes faster.

    Raises:
        FormatError: the file is no WorldDB store, or of a newer format.
        StorageError: it cannot be opened or created.
        InvalidInputError: an option is wrong.
    """
    return WorldDB(
        path,
        read_only=read_only,
        create=create,
        durability=durability,
        busy_timeout_s=busy_timeout_s,
        limits=limits,
        handlers=handlers,
        clock=clock,
    )

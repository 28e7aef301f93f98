"""The interface of a store: what the engine asks of a database, whichever it is.

    Store ──read()───▶ Reader   one snapshot; many at a time; never blocked by a writer
          ──write()──▶ Writer   the one write transaction: a Reader of its own writes
          ──derive()─▶ Reader   a session that may also write derived rows; makes no commit

    Reader = Journal + Nodes + Edges + Sets + Handled, and the groups of `reader_groups`

S1  A write lands whole or not at all; when `write()` ends without an error, it is on disk.
S2  A reader sees the commits up to one commit, and nothing of a later one.
S3  `known` is a commit number: the answer is the one of that commit. None means the latest.
S4  Rows, edges and lists come in the order that each method states; equal stores answer equally.
S5  Rows that were never written, or not yet at `known`, are left out, not an error.

The methods of a session are described where `store/sqlite` implements them, and tested by
`worlddb.testing.StoreContract`. Not here: SQL, files, locks.
"""

# ruff: noqa: D102 - a description here would only repeat the one of the implementation.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Protocol

from worlddb.model.address import Id
from worlddb.model.records import Direction, Node
from worlddb.store.reader_groups import (
    Embeddings,
    KeyLookups,
    TextSearch,
    WholeTables,
    WorldPages,
    WorldTotals,
)
from worlddb.store.rows import (
    AliasRow,
    BodyRow,
    CommitRow,
    ConflictRow,
    EdgeRow,
    ErasedEdge,
    Head,
    NewEdge,
    NewNode,
    NewText,
    NodePlace,
    NoteRow,
    ProposalRow,
    RegistrationRow,
    SetChange,
    SetPage,
    StateChange,
    World,
)


class Journal(Protocol):
    """The commits."""

    def head(self) -> Head: ...
    def commit_at(self, time: int) -> int | None: ...
    def commits(self, after: int, limit: int | None, newest_first: bool) -> list[CommitRow]: ...


class Nodes(Protocol):
    """Nodes with their aliases, sources and metadata."""

    def node_row(self, ident: bytes) -> int | None: ...
    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]: ...
    def nodes(self, rows: Iterable[int], known: int | None = None) -> dict[int, Node]: ...
    def bodies(self, rows: Iterable[int], known: int | None = None) -> Iterator[BodyRow]: ...
    def world(self, row: int) -> World: ...
    def worlds(self, rows: Iterable[int]) -> dict[int, World]: ...
    def children(
        self, row: int, known: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[int]: ...
    def children_of(self, rows: Iterable[int]) -> list[int]: ...
    def parents(self, rows: Iterable[int], known: int | None = None) -> dict[int, int | None]: ...
    def closed_by(self, rows: Iterable[int], known: int | None = None) -> set[int]: ...
    def rows_named(self, names: Iterable[str]) -> list[int]: ...
    def aliases(self, rows: Iterable[int], known: int | None = None) -> list[AliasRow]: ...
    def rows_aliased(self, name: str) -> list[int]: ...
    def aliases_after(self, note: int) -> list[AliasRow]: ...


class Edges(Protocol):
    """Edges, always by row."""

    def edge_row(self, ident: bytes) -> int | None: ...
    def edges_at(
        self,
        rows: Iterable[int],
        direction: Direction,
        types: Iterable[str] | None = None,
        known: int | None = None,
    ) -> list[EdgeRow]: ...
    def edges(self, rows: Iterable[int], known: int | None = None) -> list[EdgeRow]: ...
    def edges_between(
        self, first: int, last: int, known: int | None = None, types: Iterable[str] | None = None
    ) -> list[EdgeRow]: ...


class Sets(Protocol):
    """The trees of the children and the edges of worlds, page by page.

    The stored pages and the waiting changes together are the sets of the last commit. A store that
    writes pages with every commit has no waiting changes.
    """

    def page(self, world: int, kind: int, path: str) -> SetPage | None: ...
    def waiting(self) -> list[SetChange]: ...


class Handled(Protocol):
    """What edge handlers recorded: proposals, conflicts, custom edge types."""

    def proposals(
        self, status: str | None = None, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ProposalRow]: ...
    def has_proposals(self) -> bool: ...
    def conflicts(
        self, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ConflictRow]: ...
    def registrations(self) -> list[RegistrationRow]: ...


class Reader(Journal, Nodes, Edges, Sets, Handled, Protocol):
    """One snapshot; `is_uncommitted` if it sees writes that may still be rolled back."""

    @property
    def texts(self) -> TextSearch: ...
    @property
    def lookups(self) -> KeyLookups: ...
    @property
    def derived(self) -> Embeddings: ...
    @property
    def placed(self) -> WorldPages: ...
    @property
    def sweep(self) -> WorldTotals: ...
    @property
    def scan(self) -> WholeTables: ...
    @property
    def is_uncommitted(self) -> bool: ...


class Writer(Reader, Protocol):
    """The open write transaction. Only the write room uses it: no other way leads to an edge.

    `seq` and `time` are those of the commit that the transaction becomes. A change of a field keeps
    the value before it, once a commit, so that readers of earlier commits still find it.
    """

    seq: int
    time: int

    def lookup(self, idents: Sequence[bytes]) -> dict[bytes, NodePlace]: ...
    def insert_nodes(self, rows: Iterable[NewNode]) -> None: ...
    def insert_texts(self, rows: Iterable[NewText]) -> None: ...
    def insert_edges(self, rows: Iterable[NewEdge]) -> None: ...
    def insert_notes(self, rows: Iterable[NoteRow]) -> None: ...
    def insert_premises(self, rows: Iterable[tuple[int, int]]) -> None: ...
    def resting_on(self, edge: int) -> list[int]: ...
    def was_moved(self, row: int) -> bool: ...
    def has_note(self, node: int, kind: str, text: str) -> bool: ...
    def set_valid_to(self, kind: str, row: int, valid_to: int) -> None: ...
    def set_parent(self, row: int, parent: int) -> list[bytes]: ...
    def set_states(self, rows: Sequence[StateChange]) -> None: ...
    def delete_edge(self, row: int) -> None: ...
    def unseen(self) -> list[SetChange]: ...
    def put_pages(
        self, world: int, kind: int, pages: Mapping[str, tuple[int, bytes] | None]
    ) -> None: ...
    def keep_changes(self, changes: Sequence[SetChange]) -> None: ...
    def write_pages(self) -> None: ...
    def put_proposal(self, row: ProposalRow) -> None: ...
    def set_status(self, edge: int, status: str) -> None: ...
    def put_conflict(self, row: ConflictRow) -> None: ...
    def settle_conflict(self, edge: int) -> None: ...
    def put_registration(self, world: int, type_: str, version: str, functional: bool) -> None: ...
    @property
    def is_deferred(self) -> bool: ...
    def defer_indexes(self) -> None: ...
    def analyse_texts(self, pool: Executor) -> None: ...
    def build_indexes(self) -> None: ...
    def is_erased(self, row: int) -> bool: ...
    def born(self, row: int) -> int: ...
    def erase_nodes(self, rows: list[int]) -> set[int]: ...
    def erase_edges(self, rows: list[int]) -> list[ErasedEdge]: ...
    def erase_staged(self, rows: list[int]) -> set[int]: ...
    def erase_derived(self, rows: list[int]) -> None: ...
    def insert_commit(self, row: CommitRow) -> None: ...


class Store(Protocol):
    """An open database: a file, a server, or memory."""

    path: str
    read_only: bool
    why_read_only: str

    @property
    def statements(self) -> int:
        """How many statements the database has run for this store; a batch of rows counts once."""

    def read(self) -> AbstractContextManager[Reader]:
        """Yield one snapshot; nested calls of a thread share it.

        Raises:
            InvalidInputError: the store is closed.
        """

    def snapshot(self) -> AbstractContextManager[Reader]:
        """Yield a snapshot for long reads, that any thread may use beside all other sessions."""

    def write(self) -> AbstractContextManager[Writer]:
        """Yield the write transaction; it commits when the block ends, or leaves nothing.

        Raises:
            StorageError: the store is read-only, or the disk or server refused.
            ConflictError: another writer took longer than the time-out.
            InvalidInputError: this thread has a transaction open, or the store is closed.
        """

    def derive(self, patience_s: float | None = None) -> AbstractContextManager[Reader]:
        """Yield a session that may write derived rows; a power cut may lose the last of them.

        Raises:
            StorageError, InvalidInputError: as `write`.
            ConflictError: another writer was there for longer than `patience_s`.
        """

    def using(self) -> AbstractContextManager[None]:
        """Keep the store open for a block, and turn database errors into WorldDB errors."""

    def translating(self) -> AbstractContextManager[None]:
        """Turn database errors inside an open transaction into WorldDB errors."""

    def mend(self) -> bool:
        """Restore lost derived tables and rows, or let them be made again; return if any were."""

    def refuse_lost(self) -> None:
        """Check that the open database is still the one at its address.

        Raises:
            StorageError: it was deleted, moved or replaced.
        """

    def verify(self) -> list[str]:
        """Return the damage that the database finds in its own structures."""

    def clean(self) -> bool:
        """Remove deleted and overwritten texts from the disk; False while a reader needs them."""

    def backup(self, path: str) -> None:
        """Copy the last commit to a new file while readers and writers go on.

        Raises:
            StorageError: the target exists or cannot be written.
        """

    def side_file(self, suffix: str) -> str | None:
        """Return the path for a file of derived data beside the store; None if it has no folder."""

    def close(self) -> None:
        """Wait for open sessions, then close. Calling it twice does nothing.

        Raises:
            InvalidInputError: this thread has a transaction open.
        """

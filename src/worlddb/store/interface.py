"""The interface of a store: everything the engine needs from a database.

    Store ──read()───▶ Reader   one snapshot; many at a time; never blocked by a writer
          ──write()──▶ Writer   the one write transaction: a Reader of its own writes
          ──derive()─▶ Reader   a session that may also write derived rows; makes no commit

    Reader = Journal + Nodes + Edges + Sets + Handled, and the groups of `reader_groups`

S1  A write is committed completely or not at all; when `write()` ends without an error, it is on
    disk.
S2  A reader sees all commits up to one commit, and nothing of a later one.
S3  `known` is a commit number: the answer is as of that commit. None means the latest.
S4  Rows, edges and lists have the order that each method states; equal stores give equal answers.
S5  Rows that do not exist, or not yet at `known`, are left out; that is not an error.

`worlddb.testing.StoreContract` tests all of this. Not here: SQL, files, locks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from worlddb.model.address import Id
from worlddb.model.records import Branch, Direction, Node
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

if TYPE_CHECKING:
    from worlddb.store.sqlite.file_encryption import StoreKey


Migration = Literal["copy", "plain", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How a store is opened.

    With `verify_reads`, each node read is hashed again and compared with its id. `migration`
    decides about a store of an older format: migrate after making a copy ("copy"), migrate at once
    ("plain"), or read a private copy and leave the store ("never"). With a `key` the file is
    encrypted.
    """

    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes] = os.urandom
    read_only: bool = False
    create: bool = True
    durability: str = "full"
    busy_timeout_s: float = 30.0
    verify_reads: bool = True
    migration: Migration = "copy"
    key: StoreKey | None = None


BACKUP_KEYS_END = "-backup-keys"
"""The end of the name of the file of backup keys, which may be a symbolic link."""


class Seal(Protocol):
    """Encrypts data that is stored beside an encrypted store."""

    def close(self, data: bytes) -> bytes:
        """Return data encrypted, so that only a holder of the key can read it."""

    def open(self, sealed: bytes) -> bytes:
        """Return the decrypted data.

        Raises:
            StoreKeyError: another key was used, or the data is damaged.
        """


class SideLines(Protocol):
    """Lines that belong to a store without a folder, outside its journal."""

    def add(self, line: str) -> None:
        """Add a line; when the call returns, it is stored."""

    def read(self) -> dict[int, str]:
        """Return all lines by number, in the order of writing."""

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove lines for good."""


class Journal(Protocol):
    """The commits."""

    def head(self) -> Head:
        """Return the last commit; inside a write transaction, the one that it follows."""

    def commit_at(self, time: int) -> int | None:
        """Return the last commit at or before `time`, None before the first."""

    def commits(self, after: int, limit: int | None, newest_first: bool) -> list[CommitRow]:
        """Return up to `limit` commits with a number above `after`, by number."""


class Nodes(Protocol):
    """Nodes with their aliases, sources and metadata."""

    def lookup(self, idents: Sequence[bytes]) -> dict[bytes, NodePlace]:
        """Return the places of the nodes with these ids; unknown ids are left out."""

    def node_row(self, ident: bytes) -> int | None:
        """Return the row of the node with this whole id."""

    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]:
        """Return up to `limit` ids of "nodes" or "edges" that begin with a hex prefix, sorted."""

    def nodes(self, rows: Iterable[int], known: int | None = None) -> dict[int, Node]:
        """Return nodes by row."""

    def bodies(self, rows: Iterable[int], known: int | None = None) -> Iterator[BodyRow]:
        """Yield the searchable part of nodes, by row."""

    def world(self, row: int) -> World:
        """Return the fields that the state of a world is hashed from.

        Raises:
            CorruptionError: there is no such row.
        """

    def worlds(self, rows: Iterable[int]) -> dict[int, World]:
        """Return the fields that the states of worlds are hashed from, by row."""

    def children(
        self, row: int, known: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[int]:
        """Return the rows above `after` that live in a world, by row."""

    def children_of(self, rows: Iterable[int]) -> list[int]:
        """Return the rows that live in any of some worlds now, unordered."""

    def parents(self, rows: Iterable[int], known: int | None = None) -> dict[int, int | None]:
        """Return the row of the world that each row lives in; None for the root."""

    def outsiders(self, world: int) -> set[int]:
        """Return rows known to be outside a world; callers add the ones they find.

        Add only rows that no membership of any time includes. A store may keep them until a
        membership is written or a node moves, or always return an empty set.
        """

    def is_plain(self, world: int) -> bool:
        """Return whether all that is inside a world are its children. A store may always say no."""

    def state_count(self, row: int) -> int:
        """Return how many commits have changed the state of a world other than the root."""

    def closed_by(self, rows: Iterable[int], known: int | None = None) -> set[int]:
        """Return those rows whose validity a commit has closed."""

    def alike(self, keys: Iterable[int], now: int, most: int) -> list[int]:
        """Return the rows in the content index under some keys (`model.address.content_key`).

        Of each key the `most` created last, without those that have ended by `now`.
        """

    def rows_named(self, names: Iterable[str]) -> list[int]:
        """Return the rows with exactly these names, name by name and by row."""

    def aliases(self, rows: Iterable[int], known: int | None = None) -> list[AliasRow]:
        """Return the aliases of nodes, unordered."""

    def rows_aliased(self, name: str) -> list[int]:
        """Return the rows with an alias; the case of ASCII letters does not matter."""

    def aliases_after(self, note: int) -> list[AliasRow]:
        """Return the aliases among the notes above row `note`."""


class Edges(Protocol):
    """Edges, always by row."""

    def edge_row(self, ident: bytes) -> int | None:
        """Return the row of the edge with this whole id."""

    def edges_at(
        self,
        rows: Iterable[int],
        direction: Direction,
        types: Iterable[str] | None = None,
        known: int | None = None,
    ) -> list[EdgeRow]:
        """Return the edges that leave ("out"), enter ("in") or touch ("both") nodes, undeleted."""

    def edges(self, rows: Iterable[int], known: int | None = None) -> list[EdgeRow]:
        """Return edges by row, deleted ones too."""

    def edges_between(
        self, first: int, last: int, known: int | None = None, types: Iterable[str] | None = None
    ) -> list[EdgeRow]:
        """Return the edges with rows from `first` to `last`, deleted ones too."""


class Sets(Protocol):
    """The trees of the children and edges of worlds, page by page.

    The stored pages and the waiting changes together are the sets of the last commit. A store that
    writes pages with every commit has no waiting changes.
    """

    def page(self, world: int, kind: int, path: str) -> SetPage | None:
        """Return one page; inside a write transaction, with that transaction's changes."""

    def waiting(self) -> list[SetChange]:
        """Return the changes that are not written into pages yet, by commit."""


class Handled(Protocol):
    """Everything that edge handlers recorded: proposals, conflicts, custom edge types."""

    def proposals(
        self, status: str | None = None, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ProposalRow]:
        """Return the proposals with this status that touch any of some nodes, by edge."""

    def has_proposals(self) -> bool:
        """Return whether a merge was ever proposed."""

    def conflicts(
        self, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ConflictRow]:
        """Return the conflicts that touch any of some nodes, settled ones too, by edge."""

    def registrations(self) -> list[RegistrationRow]:
        """Return the custom edge types, by the row of their world and by type."""


class Reader(Journal, Nodes, Edges, Sets, Handled, Protocol):
    """One snapshot."""

    @property
    def texts(self) -> TextSearch:
        """The full-text index."""

    @property
    def lookups(self) -> KeyLookups:
        """Nodes by keys of names, attributes and contents."""

    @property
    def derived(self) -> Embeddings:
        """Embeddings."""

    @property
    def placed(self) -> WorldPages:
        """The direct content of worlds, by page."""

    @property
    def sweep(self) -> WorldTotals:
        """Whole worlds and edge types."""

    @property
    def scan(self) -> WholeTables:
        """Whole tables."""

    @property
    def is_uncommitted(self) -> bool:
        """Whether the session sees writes that may still be rolled back."""


class Writer(Reader, Protocol):
    """The open write transaction. Only the room `write` uses it, so edges have no other way in.

    `seq` and `time` are those of the commit that the transaction becomes. When a field changes, the
    value before it is kept once per commit, for readers of earlier commits.
    """

    seq: int
    time: int

    def twins(self, keys: Iterable[int], created_at: int, most: int) -> list[BodyRow]:
        """Return the last `most` nodes with one of these content keys and this time of creation."""

    def random_bytes(self, size: int) -> bytes:
        """Return random bytes: the only source of randomness of a transaction."""

    def insert_nodes(self, rows: Sequence[NewNode]) -> None:
        """Insert nodes; `insert_texts` inserts their texts."""

    def insert_texts(self, rows: Iterable[NewText]) -> None:
        """Index the names and contents of new nodes."""

    def insert_edges(self, rows: Iterable[NewEdge]) -> None:
        """Insert edges: the only raw insert, for the reconciler and the replay of a journal."""

    def insert_notes(self, rows: Sequence[NoteRow]) -> None:
        """Insert aliases, sources and metadata."""

    def insert_premises(self, rows: Iterable[tuple[int, int]]) -> None:
        """Record (premise, inferred edge) pairs; existing pairs stay."""

    def resting_on(self, edge: int) -> list[int]:
        """Return the inferred edges that have this one as a premise, by row."""

    def was_moved(self, row: int) -> bool:
        """Return whether a node was ever moved to another world."""

    def has_note(self, node: int, kind: str, text: str) -> bool:
        """Return whether a node has this note."""

    def set_valid_to(self, kind: str, row: int, valid_to: int) -> None:
        """Close the validity of a node (`kind` "node") or an edge ("edge")."""

    def set_parent(self, row: int, parent: int) -> list[bytes]:
        """Move a node and its outgoing edges; return the ids of those that are not deleted."""

    def set_states(self, rows: Sequence[StateChange]) -> None:
        """Set the new states of worlds; the root's is only in the commit."""

    def delete_edge(self, row: int) -> None:
        """Delete an edge as of this commit; readers of earlier commits still see it."""

    def unseen(self) -> list[SetChange]:
        """Return the earlier changes that the pages seen here do not contain yet, by commit."""

    def put_pages(
        self, world: int, kind: int, pages: Mapping[str, tuple[int, bytes] | None]
    ) -> None:
        """Change pages of a set, by path; None removes one."""

    def keep_changes(self, changes: Sequence[SetChange]) -> None:
        """Store this commit's changes of sets: as waiting changes, or in the pages."""

    def write_pages(self) -> None:
        """Write all changed pages now, so that no change waits."""

    def put_proposal(self, row: ProposalRow) -> None:
        """Add a proposal."""

    def set_status(self, edge: int, status: str) -> None:
        """Change the status of a proposal."""

    def put_conflict(self, row: ConflictRow) -> None:
        """Add a conflict."""

    def settle_conflict(self, edge: int) -> None:
        """Settle a conflict as of this commit."""

    def put_registration(self, world: int, type_: str, version: str, functional: bool) -> None:
        """Add or replace a custom edge type of a world."""

    @property
    def is_deferred(self) -> bool:
        """Whether a bulk load has deferred indexes."""

    def defer_indexes(self) -> None:
        """Announce a bulk load: the store may defer indexes until `build_indexes`."""

    def analyse_texts(self, pool: Executor) -> None:
        """Analyse the words of a bulk load in another thread, if that saves time."""

    def build_indexes(self) -> None:
        """Build the deferred indexes; a read that needs one builds it itself."""

    def is_erased(self, row: int) -> bool:
        """Return whether a node was erased."""

    def born(self, row: int) -> int:
        """Return the commit that wrote a node."""

    def erase_nodes(self, rows: list[int]) -> set[int]:
        """Remove names, contents, creation times, blinds, content keys and notes.

        Return the commits of those notes, whose blinds are removed, too.
        """

    def erase_edges(self, rows: list[int]) -> list[ErasedEdge]:
        """Remove the metadata texts of edges at nodes; return the edges with metadata, by row."""

    def erase_staged(self, rows: list[int]) -> set[int]:
        """Remove evidence and reasons at nodes, also in the journal; return those commits.

        The blinds of these commits are removed, too.
        """

    def erase_derived(self, rows: list[int]) -> None:
        """Remove vectors and keys of nodes; pools are composed again by the next search."""

    def insert_commit(self, row: CommitRow) -> None:
        """Write the journal row; the last call of a transaction that changed something."""


class Gathering(Protocol):
    """Blocks of one thread that wait for one COMMIT."""

    def landing(self) -> Callable[[], None]:
        """Return a check of the blocks since the last call, for after the gathering.

        It raises the error of their COMMIT, if there was one: then nothing of them was written.
        """


class Store(Protocol):
    """An open database: a file, a server, or memory."""

    path: str
    read_only: bool
    why_read_only: str

    @property
    def statements(self) -> int:
        """The number of statements run for this store; a batch of rows counts once."""

    def read(self) -> AbstractContextManager[Reader]:
        """Yield one snapshot; nested calls of a thread share it.

        Raises:
            InvalidInputError: the store is closed.
        """

    def snapshot(self) -> AbstractContextManager[Reader]:
        """Yield a snapshot for long reads; any thread may use it, beside all other sessions."""

    def write(self, *, together: bool = False) -> AbstractContextManager[Writer]:
        """Yield the write transaction; it commits when the block ends, or is rolled back.

        With `together`, the store may commit it with other waiting blocks: the block must be short,
        and read only by the writer, which also sees the earlier blocks of the group.

        Raises:
            StorageError: the store is read-only, the clock is years ahead (`commit_time`), or the
                disk or server refused.
            ConflictError: another writer took longer than the time-out.
            InvalidInputError: this thread has a transaction open, or the store is closed.
        """

    def gathering(self) -> AbstractContextManager[Gathering]:
        """Let this thread write many blocks `together` without waiting for each of them.

        They are durable when this ends. After that, `landing` of each block tells whether it is.
        """

    def derive(self, patience_s: float | None = None) -> AbstractContextManager[Reader]:
        """Yield a session that may write derived rows; a power cut may lose the last of them.

        Raises:
            StorageError, InvalidInputError: as `write`.
            ConflictError: another writer kept the lock longer than `patience_s`.
        """

    def using(self) -> AbstractContextManager[None]:
        """Keep the store open for a block, and turn database errors into WorldDB errors."""

    def translating(self) -> AbstractContextManager[None]:
        """Turn database errors inside an open transaction into WorldDB errors."""

    def mend(self) -> bool:
        """Restore lost derived tables and rows, or mark them to be built; return if any were."""

    def refuse_lost(self) -> None:
        """Check that the open database is still the one at its address.

        Raises:
            StorageError: it was deleted, moved or replaced.
        """

    def verify(self) -> list[str]:
        """Return the damage that the database finds in its own files."""

    def clean(self) -> bool:
        """Remove deleted and overwritten texts from the disk; False while a reader needs them."""

    def backup(self, path: str) -> None:
        """Copy the last commit to a new file while readers and writers go on.

        Raises:
            StorageError: the target exists or cannot be written.
        """

    def fork(self, name: str, actor: str) -> Branch:
        """Create a branch of the last commit: a store of its own that shares the existing pages.

        Raises:
            StorageError: this store cannot have branches, or cannot be written.
            ConflictError: there is a branch of that name.
            InvalidInputError: not a valid name.
        """

    def branches(self) -> list[Branch]:
        """Return the branches of this store, by name."""

    def drop_branch(self, name: str) -> None:
        """Remove a branch with everything written to it.

        Raises:
            NotFoundError: there is no such branch.
            StorageError: the store cannot be written.
        """

    def refuse_branches(self, what: str) -> None:
        """Refuse an operation on a branch, or on a store that has branches.

        Raises:
            ConflictError: this is one.
        """

    def side_file(self, suffix: str) -> str | None:
        """Return the path for a file beside the store, by its end; None without a place for it.

        A store on a server has a place for the keys of backups, if its address names one.
        """

    def side_lines(self, name: str) -> SideLines | None:
        """Return lines by name in the database; None if a file beside the store has them."""

    def side_seal(self, salt: bytes | None = None) -> Seal | None:
        """Return the seal of the files beside the store; None if the store is not encrypted.

        With a `salt` it depends only on the key, so that it outlives the store's file.
        """

    def size_bytes(self) -> int:
        """Return the disk space of the store; 0 in memory."""

    def close(self) -> None:
        """Wait for open sessions, then close. Calling it twice does nothing.

        Raises:
            InvalidInputError: this thread has a transaction open.
        """

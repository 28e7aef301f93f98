"""Engine: the parts of an open store, without logic; how a store is opened and closed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from worlddb.audit.read_audit import settle_reads
from worlddb.errors import NotFoundError
from worlddb.identity.store_resolver import name_index
from worlddb.index.search import RecallCounter, Search
from worlddb.ingest.background_queue import BackgroundQueue, Reclustered
from worlddb.ingest.ingestion import Ingestion
from worlddb.model.inputs import Limits
from worlddb.ontology.edge_types import EdgeHandler
from worlddb.ontology.registry import Registry, check_handler, package_handlers
from worlddb.store.backends import check_options, key_of, open_store
from worlddb.store.interface import Store
from worlddb.view.visibility import wall_clock

if TYPE_CHECKING:
    from worlddb.embed.embedder import Embedder
    from worlddb.files.versioned_files import Files
    from worlddb.ingest.branch_merge import Merged
    from worlddb.model.proof import HistoryProof
    from worlddb.model.records import Branch, Diff
    from worlddb.store.sqlite.file_encryption import Given


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The parts of one open store."""

    store: Store
    registry: Registry
    search: Search
    recalls: RecallCounter
    background: BackgroundQueue
    ingestion: Ingestion
    limits: Limits
    clock: Callable[[], int]

    def close(self) -> None:
        """Close all parts, those that write first."""
        self.background.close()
        self.recalls.close()
        self.search.close()
        self.store.close()


def open_engine(
    path: str | os.PathLike[str],
    *,
    read_only: bool,
    create: bool,
    durability: str,
    busy_timeout_s: float,
    verify_reads: bool,
    migrate: bool,
    limits: Limits | None,
    handlers: Iterable[EdgeHandler],
    embedder: Embedder | str | None,
    pooling: Literal["attention", "mean"],
    models_dir: str | os.PathLike[str] | None,
    clock: Callable[[], int],
    random_bytes: Callable[[int], bytes],
    key: Given | None,
) -> Engine:
    """Open a store and its parts; see `WorldDB` for the options and errors."""
    check_options(path, durability, busy_timeout_s, limits, handlers, clock, random_bytes)
    limits = limits or Limits()
    registry = Registry(map(check_handler, handlers), package_handlers())
    store = open_store(
        os.fspath(path),
        clock=clock,
        random_bytes=random_bytes,
        read_only=read_only,
        create=create,
        durability=durability,
        busy_timeout_s=busy_timeout_s,
        verify_reads=verify_reads,
        migration="copy" if migrate else "never",
        key=key_of(os.fspath(path), key),
    )
    try:
        if not store.read_only:
            settle_reads(store)
        search = Search(store, embedder, pooling, models_dir, name_index(store))
    except BaseException:
        store.close()
        raise
    background = BackgroundQueue()
    return Engine(
        store=store,
        registry=registry,
        search=search,
        recalls=RecallCounter(store, clock),
        background=background,
        ingestion=Ingestion(
            store=store,
            registry=registry,
            search=search,
            limits=limits,
            clock=clock,
            background=background,
        ),
        limits=limits,
        clock=clock,
    )


class OpenStore:
    """An open store: its parts, its file, its background work, and its closing."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        durability: str = "full",
        busy_timeout_s: float = 30.0,
        verify_reads: bool = True,
        migrate: bool = True,
        limits: Limits | None = None,
        handlers: Iterable[EdgeHandler] = (),
        embedder: Embedder | str | None = None,
        pooling: Literal["attention", "mean"] = "attention",
        models_dir: str | os.PathLike[str] | None = None,
        clock: Callable[[], int] = wall_clock,
        random_bytes: Callable[[int], bytes] = os.urandom,
        audit_reads: bool = False,
        key: Given | None = None,
    ) -> None:
        self.audits_reads = audit_reads
        self._options: dict[str, Any] = {
            "durability": durability,
            "busy_timeout_s": busy_timeout_s,
            "verify_reads": verify_reads,
            "migrate": migrate,
            "limits": limits,
            "handlers": handlers,
            "embedder": embedder,
            "pooling": pooling,
            "models_dir": models_dir,
            "clock": clock,
            "random_bytes": random_bytes,
            "key": key,
        }
        self.engine = open_engine(path, read_only=read_only, create=create, **self._options)

    def files(self, world_id: bytes | str | None = None, *, actor: str = "files") -> Files:
        """Return the files of a world (default: the root world), with their versions.

        Raises:
            NotFoundError, InvalidInputError: no such world.
        """
        from worlddb.files.versioned_files import world_files

        return world_files(self.engine.store, self.engine.ingestion.transact, world_id, actor)

    def close(self) -> None:
        """Close the store. Calling it twice does nothing."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    @property
    def path(self) -> str:
        """The file of this store, or ":memory:"."""
        return self.engine.store.path

    @property
    def why_read_only(self) -> str | None:
        """The reason why the store cannot be written; None if it can."""
        return self.engine.store.why_read_only if self.engine.store.read_only else None

    def check_file(self) -> None:
        """Check that the file of the store is still in its place, and can be read.

        Raises:
            StorageError: the file was deleted, moved or replaced, or cannot be read.
        """
        self.engine.store.refuse_lost()
        with self.engine.store.read() as reader:
            reader.head()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the background work; return whether it was done in time."""
        return self.engine.background.wait(timeout_s)

    @property
    def reclustered(self) -> list[Reclustered]:
        """The last hundred results of reclustering in the background."""
        return list(self.engine.background.done)

    def embed_in_background(self) -> None:
        """Embed new commits in a thread from now on, until the store is closed.

        Recalls then do not wait for the embedding. Of the nodes without a vector, a recall embeds
        only the newest few that it can see; `recall(…).signals["unembedded"]` counts the others.

        Raises:
            ProviderError: the recorded embedder is not one of WorldDB's own.
        """
        self.engine.search.follow()

    def backup(self, path: str | os.PathLike[str], *, sealed: bool = False) -> None:
        """Copy the present store to a new file, while others read and write.

        A `sealed` backup has each text encrypted by the secrets of its nodes. These stay beside the
        store, and `erase` destroys them, so an erasure reaches the backup, too.

        Raises:
            StorageError: the file exists already or cannot be written, or a sealed backup is asked
                for and there is no place for its keys.
            StoreKeyError: the keys of sealed backups are by another key than that of the store.
            InvalidInputError: a sealed backup needs a package that is missing.
        """
        if sealed:
            from worlddb.audit.sealed_backup import write_sealed

            write_sealed(self.engine.store, os.fspath(path))
        else:
            self.engine.store.backup(os.fspath(path))

    def prove_history(self, since: int = 0) -> HistoryProof:
        """Return a proof that no commit up to `since` was changed; verify it by `verify_history`.

        Raises:
            InvalidInputError: `since` is not a commit number.
            NotFoundError: there is no such commit.
        """
        from worlddb.audit.history import prove_history

        with self.engine.store.read() as reader:
            return prove_history(reader, since)

    def branch(self, name: str, *, create: bool = True, actor: str = "branch") -> Self:
        """Open a branch of this store as a store of its own; create it if there is none.

        A branch starts as a copy of the present store and uses space only for its own writes. From
        then on neither side sees the writes of the other. Try an import, a consolidation or another
        extractor on it, look at `diff`, then `merge` or `drop_branch`. Close the branch when done.

        Raises:
            InvalidInputError: the name is not valid.
            NotFoundError: there is no such branch, and `create` is False.
            StorageError: this store is in memory, on a server or a branch itself, or cannot be
                written.
            CorruptionError: another program has changed the file below the branch.
        """
        row = next((row for row in self.branches() if row.name == name), None)
        if row is None and not create:
            raise NotFoundError(f"there is no branch {name!r}; list the branches to see them")
        row = row or self.engine.store.fork(name, actor)
        read_only = self.engine.store.read_only
        options = {**self._options, "handlers": (), "audit_reads": self.audits_reads}
        made = type(self)(row.path, read_only=read_only, **options)
        for world, handler in self.engine.registry.loaded():
            made.engine.registry.load(world, handler)
        return made

    def branches(self) -> list[Branch]:
        """Return the branches of this store, by name."""
        return self.engine.store.branches()

    def drop_branch(self, name: str) -> None:
        """Remove a branch with everything that was written to it.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            StorageError: the store cannot be written.
        """
        self.engine.store.drop_branch(name)

    def branch_diff(self, name: str) -> Diff:
        """Return what was written to a branch since the fork or its last merge.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
        """
        from worlddb.audit.history import diff
        from worlddb.ingest.branch_merge import merged_until

        with self.branch(name, create=False) as branch, self.engine.store.read() as trunk:
            row = next(row for row in self.branches() if row.name == name)
            with branch.engine.store.read() as reader:
                return diff(reader, merged_until(trunk, row)[0], reader.head().seq)

    def merge(self, name: str, *, dry_run: bool = False, actor: str = "branch") -> Merged:
        """Write the commits of a branch into this store, as one commit, and return the result.

        Nodes keep their ids, and edges go through their handlers again. If both sides have changed
        something since the fork, both versions stay; `contradicts` edges, `same_as` proposals and
        the result report it. The branch stays, and can be merged again after further writes. `undo`
        reverses a merge. `dry_run` tries it and writes nothing.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            ConflictError: the store was replaced since the fork, or handlers refused too many
            edges.
            StorageError: the store cannot be written.
        """
        from worlddb.ingest.branch_merge import merge_branch

        engine = self.engine
        with self.branch(name, create=False) as branch:
            row = next(row for row in self.branches() if row.name == name)
            with branch.engine.store.read() as work:
                return merge_branch(
                    engine.store,
                    engine.registry,
                    engine.limits,
                    engine.clock,
                    row,
                    work,
                    actor=actor,
                    dry_run=dry_run,
                )

    def clean(self) -> bool:
        """Rewrite the file without erased texts, by a copy; return whether that is done.

        Raises:
            StorageError, ConflictError: the store cannot be written.
        """
        return self.engine.store.clean()

    def reindex(
        self,
        embedder: Embedder | str | None = None,
        *,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> str:
        """Embed nodes without a vector, or all nodes by another embedder; return its name.

        Searches embed missing nodes themselves; after a large load it is better done at once. A
        change of the embedder can be interrupted and continues with the next call; until it is
        done, the old vectors are used. Every call also rebuilds derived indexes that were lost.

        Raises:
            ProviderError: the embedder failed.
            StorageError, ConflictError: the store cannot be written.
        """
        return self.engine.search.reindex(embedder, on_progress)

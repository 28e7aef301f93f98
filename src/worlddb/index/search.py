"""Search: the derived state of one open store. Composed worlds, vectors, held worlds, store search.

*Composed worlds.* The effective vector of a world is its own vector, composed with those of its
children and members. A node counts in the world it lives in, and in every world that it is a member
of for good, from when both are embedded until a commit closes its validity; what was born ended
never counts. New, moved and closed nodes are applied from the inside out: a world whose vector
changes is itself a changed child of the worlds around it. So one new leaf costs its depth, and many
new children of one world cost one matrix product. The root world has no effective vector, because
it is never an answer. Only known time matters here, so the composition at an earlier commit follows
from what counted then; `compose_held` repeats it in memory.

*Search* holds the parts of one store. No embedder is loaded before the first search that needs it.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from inspect import getattr_static
from typing import TYPE_CHECKING, Literal

import numpy as np

from worlddb.embed.embedder import Pool, Pooling, Vector, changed, effective, empty_pool
from worlddb.errors import ConflictError, CorruptionError, InvalidInputError, ProviderError
from worlddb.model.inputs import encode_text
from worlddb.model.records import Edge, decode_changes
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, ModelRow, PoolRow
from worlddb.view.visibility import Moment

if TYPE_CHECKING:
    from worlddb.embed.embedder import Embedder
    from worlddb.index.field_index import FieldIndex, RowFilter
    from worlddb.index.held_world import HeldWorld, HeldWorlds
    from worlddb.index.store_search import StoreSearch
    from worlddb.index.vector_follower import VectorFollower
    from worlddb.index.vectors import Vectors
    from worlddb.model.conditions import Condition


COMPOSE_BATCH = 4096  # nodes composed at a time: bounds the vectors in memory
STORED = np.dtype("<f2")
"""Half precision: search results are the same, at half the size."""
SUMMED = np.dtype("<f8")
NEVER = datetime.max.replace(tzinfo=UTC)
RECOMPOSING_CHANGES = ("place", "close_node")
MEMBERSHIP = ("contains",)
MEMBERSHIP_CHANGES = ("delete_edge", "close_edge")

Changes = dict[int, dict[int, Vector | None]]
"""World → child → the vector with which the child counted so far; None if it did not count."""


def stored(vector: Vector) -> bytes:
    """Return the stored bytes of a vector."""
    return vector.astype(STORED).tobytes()


def loaded(body: bytes) -> Vector:
    """Return the vector of stored bytes."""
    return np.frombuffer(body, dtype=STORED).astype(np.float32)


def damaged(row: int) -> CorruptionError:
    """Return the error for a stored vector of the wrong length."""
    return CorruptionError(
        f"the vector of node row {row} is damaged; restore a backup, or embed all nodes with "
        "another embedder: worlddb reindex --embedder …"
    )


def compose(session: Reader, model: ModelRow, pooling: Pooling) -> ModelRow:
    """Bring the composed worlds of a model to the session's last commit; return its new state.

    `session` comes from `store.derive()`, so nobody commits meanwhile.

    Raises:
        CorruptionError: a stored vector is not one of this model's.
    """
    head = session.head()
    last = min(model.embedded, head.nodes)
    _Composer(session, model, pooling, model.composed).move(_moved_since(session, model), model.seq)
    for first in range(model.composed + 1, last + 1, COMPOSE_BATCH):
        new = list(range(first, min(first + COMPOSE_BATCH, last + 1)))
        _Composer(session, model, pooling, new[-1]).add(new)
    session.derived.set_composed(model.number, last, head.seq)
    return model._replace(composed=last, seq=head.seq)


def counting_worlds(
    reader: Reader, rows: Collection[int], known: int | None = None
) -> dict[int, set[int]]:
    """Return the worlds in which each node counts at a commit; nodes that count nowhere are out."""
    away = reader.closed_by(rows, known) | _born_ended(reader, rows, known)
    found = {row: {up} for row, up in reader.parents(rows, known).items() if up and row not in away}
    for item in reader.edges_at(sorted(found), "in", MEMBERSHIP, known):
        if is_lasting(item.edge):
            found[item.target].add(item.source)
    return found


def is_lasting(edge: Edge) -> bool:
    """Return whether a membership held when it was written, and has no end."""
    return edge.valid_to is None and edge.valid_from <= edge.known_from


def _born_ended(reader: Reader, rows: Collection[int], known: int | None) -> set[int]:
    """Return the nodes that had ended by the commit that wrote them."""
    ending = [body.row for body in reader.bodies(rows, known) if body.valid_to is not None]
    nodes = reader.nodes(ending, known) if ending else {}
    # One that a commit has closed since may be among them; it counts no more anyway.
    return {row for row, node in nodes.items() if (node.valid_to or NEVER) <= node.known_from}


def compose_held(matrix: Vector, above: Sequence[Collection[int]], pooling: Pooling) -> None:
    """Replace content vectors, one row per node, by effective vectors.

    `above` holds for each node the rows of the worlds in which it counts. All nodes that count in a
    world must be present, in the order of writing.
    """
    inside: dict[int, list[int]] = {}
    for place, worlds in enumerate(above):
        for world in worlds:
            inside.setdefault(world, []).append(place)
    waits_for = {
        world: sum(child in inside for child in children) for world, children in inside.items()
    }
    ready = [world for world, count in waits_for.items() if not count]
    nobody = matrix[:0]
    while ready:
        world = ready.pop()
        anchor = matrix[world]
        empty = empty_pool(matrix.shape[1])
        pool = changed(empty, anchor, nobody, matrix[inside[world]], pooling)
        # Rounded as if it had been stored and read.
        matrix[world] = loaded(stored(effective(anchor, pool, pooling)))
        for up in above[world]:
            waits_for[up] -= 1
            if not waits_for[up]:
                ready.append(up)


def _moved_since(session: Reader, model: ModelRow) -> list[int]:
    """Return the composed nodes that later commits moved or closed, or made members or not."""
    if model.composed <= ROOT_ROW:
        return []
    found: set[int] = set()
    for commit in session.commits(model.seq, None, False):
        for change in decode_changes(commit.changes):
            if change.kind in RECOMPOSING_CHANGES:
                found.add(session.node_row(change.id) or 0)
            elif change.kind in MEMBERSHIP_CHANGES and (row := session.edge_row(change.id)):
                item = session.edges([row])[0]
                if item.edge.type in MEMBERSHIP:
                    found.add(item.target)
    before = session.commits(model.seq - 1, 1, False)[0].edges if model.seq >= 0 else 0
    for item in session.edges_between(before + 1, session.head().edges, types=MEMBERSHIP):
        found.add(item.target)
    return sorted(row for row in found if ROOT_ROW < row <= model.composed)


class _Composer:
    """One round of composition, with the vectors and pools that were read and made so far.

    Nodes with a row above `last` do not count yet, and nothing counts in them.
    """

    def __init__(self, session: Reader, model: ModelRow, pooling: Pooling, last: int) -> None:
        self.session = session
        self.number = model.number
        self.dim = model.dim
        self.pooling = pooling
        self.last = last
        self.content: dict[int, Vector] = {}
        self.pools: dict[int, Pool] = {}
        self.before: dict[int, Vector] = {}
        self.now: dict[int, Vector] = {}
        self.kept: set[int] = set()
        self.counted: dict[int | None, dict[int, set[int]]] = {}
        """The worlds in which rows count, by commit; None is the last one."""

    def move(self, rows: list[int], counted_at: int) -> None:
        """Apply the nodes that counted at a commit and were moved, closed or made members since."""
        if not rows:
            return
        self._read(rows)
        changes: Changes = {}
        for row, worlds in self._counts(rows, counted_at).items():
            for world in worlds:
                changes.setdefault(world, {})[row] = self.before[row]
        for row, worlds in self._counts(rows).items():
            for world in worlds:
                changes.setdefault(world, {}).setdefault(row, None)
        self._apply(changes)

    def add(self, rows: list[int]) -> None:
        """Apply nodes that never counted, and older nodes that live in them or are members."""
        changes: Changes = {}
        for row, worlds in self._counts(rows).items():
            for world in worlds:
                changes.setdefault(world, {}).setdefault(row, None)
        new = set(rows)
        members = self.session.edges_at(rows, "out", MEMBERSHIP)
        inside = {*self.session.children_of(rows), *(item.target for item in members)}
        older = [row for row in inside if row < rows[0]]
        for row, worlds in self._counts(older).items():
            for world in worlds & new:
                changes.setdefault(world, {}).setdefault(row, None)
        self._apply(changes)

    def _apply(self, changes: Changes) -> None:
        """Recompose changed worlds and the worlds around them, from the inside out."""
        for level in self._levels(changes):
            todo = {world: changes.pop(world) for world in level if world in changes}
            if todo:
                self._recompose(todo, changes)
        self._write()

    def _counts(self, rows: Collection[int], known: int | None = None) -> dict[int, set[int]]:
        """Return the composed worlds in which each row counts."""
        kept = self.counted.setdefault(known, {})
        missing = [row for row in rows if row not in kept]
        found = counting_worlds(self.session, missing, known) if missing else {}
        for row in missing:
            kept[row] = {up for up in found.get(row, ()) if ROOT_ROW < up <= self.last}
        return {row: kept[row] for row in rows}

    def _levels(self, worlds: Collection[int]) -> list[tuple[int, ...]]:
        """Return worlds and all worlds around them, level by level, inner ones first."""
        inner: dict[int, set[int]] = {world: set() for world in worlds}
        frontier = set(worlds)
        while frontier:
            found = self._counts(frontier)
            around = {up for ups in found.values() for up in ups}
            frontier = around - inner.keys()
            for up in frontier:
                inner[up] = set()
            for row, ups in found.items():
                for up in ups:
                    inner[up].add(row)
        sorter = TopologicalSorter(inner)
        sorter.prepare()
        levels = []
        while sorter.is_active():
            levels.append(sorter.get_ready())
            sorter.done(*levels[-1])
        return levels

    def _read(self, rows: Collection[int]) -> None:
        """Read content vectors and pools; a missing vector is zero."""
        wanted = [row for row in rows if row not in self.content]
        vectors = dict(self.session.derived.vectors(self.number, wanted))
        pools = {pool.node: pool for pool in self.session.derived.pools(self.number, wanted)}
        nothing = np.zeros(self.dim, dtype=np.float32)
        for row in wanted:
            self.content[row] = self._loaded(row, vectors[row]) if row in vectors else nothing
            self.before[row] = self.content[row]
            if row in pools:
                pool = pools[row]
                if len(pool.total) != self.dim * SUMMED.itemsize:
                    raise damaged(row)
                total = np.frombuffer(pool.total, dtype=SUMMED)
                self.pools[row] = Pool(pool.children, pool.weight, total)
                self.before[row] = self._loaded(row, pool.vector)
                self.kept.add(row)

    def _loaded(self, row: int, body: bytes) -> Vector:
        if len(body) != self.dim * STORED.itemsize:
            raise damaged(row)
        return loaded(body)

    def _recompose(self, level: Changes, around: Changes) -> None:
        """Recompose worlds; those that change become changes of the worlds around them."""
        inside = {child for children in level.values() for child in children}
        self._read(level.keys() | inside)
        counts, ups = self._counts(inside), self._counts(level.keys())
        for world, children in level.items():
            removed = [vector for vector in children.values() if vector is not None]
            added = [self._vector(row) for row in children if world in counts.get(row, ())]
            pool = changed(
                self.pools.get(world) or empty_pool(self.dim),
                self.content[world],
                self._stack(removed),
                self._stack(added),
                self.pooling,
            )
            before = self._vector(world)
            self.pools[world] = pool
            # Rounded as the store returns it: the world above must subtract exactly what it added.
            self.now[world] = loaded(stored(effective(self.content[world], pool, self.pooling)))
            if not np.array_equal(before, self.now[world]):
                for up in ups.get(world, ()):
                    around.setdefault(up, {}).setdefault(world, before)

    def _vector(self, row: int) -> Vector:
        return self.now.get(row, self.before[row])

    def _stack(self, vectors: list[Vector]) -> Vector:
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)

    def _write(self) -> None:
        """Store the new pools; an emptied pool stays, so that indexes see the change."""
        rows = []
        for row, vector in self.now.items():
            pool = self.pools[row]
            if pool.children or row in self.kept:
                total = pool.total.astype(SUMMED).tobytes()
                rows.append(PoolRow(row, pool.children, pool.weight, total, stored(vector)))
        self.session.derived.put_pools(self.number, rows, self.session.head().seq)


# -- the search state of one open store ------------------------------------------------------------

NO_EMBEDDER = "none"
POOLINGS = ("attention", "mean")
MODEL_ID_BYTES_MAX = 4096  # stored with every store; longer than any path or model name in use

Progress = Callable[[int, int], None]
"""Called with how many nodes are done, and how many there are."""


class Search:
    """The search of one open store."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | str | None,
        pooling: Literal["attention", "mean"],
        models_dir: str | os.PathLike[str] | None,
    ) -> None:
        if pooling not in POOLINGS:
            raise InvalidInputError(f"pooling {pooling!r}: use one of {', '.join(POOLINGS)}")
        self._store = store
        self._given = embedder
        self._models_dir = models_dir
        self._pooling: Literal["attention", "mean"] = pooling
        self._lock = threading.Lock()
        self._vectors: Vectors | None = None
        self._interiors: HeldWorlds | None = None
        self._wide: StoreSearch | None = None
        self._fields: FieldIndex | None = None
        self._follower: VectorFollower | None = None
        if embedder is not None and embedder != NO_EMBEDDER:
            self._check_model(self._made(embedder))

    @property
    def has_vectors(self) -> bool:
        """Whether this store was opened with an embedder."""
        return self._given != NO_EMBEDDER

    def vectors(self) -> Vectors:
        """Return the vectors of this store.

        Raises:
            InvalidInputError: the store was opened without an embedder.
            ProviderError: the recorded embedder is not one of WorldDB's own.
        """
        with self._lock:
            if self._vectors is None:
                from worlddb.index.vectors import Vectors

                self._vectors = Vectors(self._store, self._embedder(), self._pooling)
            return self._vectors

    def _embedder(self) -> Embedder:
        if self._given == NO_EMBEDDER:
            raise InvalidInputError("opened with embedder='none'; open it with one to use vectors")
        if self._given is not None:
            return self._made(self._given)
        from worlddb.embed.embedder_catalog import DEFAULT

        recorded = self._recorded()
        try:
            return self._made(DEFAULT if recorded is None else recorded)
        except InvalidInputError as error:
            raise ProviderError(
                f"{self._store.path}: its vectors were made by {recorded!r}, which WorldDB does "
                "not know; pass that one as embedder=…, or embed anew with db.reindex(…)"
            ) from error

    def _recorded(self) -> str | None:
        """Return the model that made this store's vectors; None if it has none."""
        with self._store.read() as reader:
            return next((row.id for row in reader.derived.models() if row.active), None)

    def _check_model(self, embedder: Embedder) -> None:
        recorded = self._recorded()
        if recorded is not None and recorded != embedder.model_id:
            raise ConflictError(
                f"{self._store.path}: its vectors were made by {recorded}, not by "
                f"{embedder.model_id}; leave the embedder out, or embed anew with "
                "db.reindex(embedder) or: "
                f"worlddb reindex --embedder {shlex.quote(embedder.model_id)} "
                f"--db {shlex.quote(self._store.path)}"
            )

    def reindex(self, embedder: Embedder | str | None, on_progress: Progress) -> str:
        """Embed all nodes without a vector, or every node by another embedder; return its model.

        Other derived data that was lost is rebuilt too, also without an embedder.

        Raises:
            ProviderError: the embedder failed; finished work is kept, and the next call goes on.
            StorageError, ConflictError: the store cannot be written.
        """
        if self._store.mend():
            self.forget()  # Held worlds were read from the damaged data.
        if embedder is None and not self.has_vectors:
            return NO_EMBEDDER
        if embedder is None:
            self.vectors().complete(on_progress)
            return self.vectors().model_id
        from worlddb.index.vectors import Vectors

        made = self._made(embedder)
        vectors = Vectors(self._store, made, self._pooling)
        vectors.take_over(on_progress)
        is_followed = self._unfollow()
        with self._lock:
            self._given, self._vectors = made, vectors
            self._interiors = self._wide = None
        if is_followed:
            self.follow()
        return made.model_id

    def interior(
        self, reader: Reader, worlds: Sequence[int], moment: Moment, members: bool
    ) -> AbstractContextManager[HeldWorld | None]:
        """Hold worlds in memory as of the reader's commit; yields None if they are too large."""
        with self._lock:
            if self._interiors is None:
                from worlddb.index.held_world import HeldWorlds

                self._interiors = HeldWorlds()
            interiors = self._interiors
        return interiors.holding(reader, worlds, moment, members)

    def wide(self) -> StoreSearch:
        """Return the search through the whole-store indexes, for worlds too large to be held."""
        with self._lock:
            if self._wide is None:
                from worlddb.index.store_search import StoreSearch

                self._wide = StoreSearch(self._store)
            return self._wide

    def follow(self, *, elsewhere: bool = False) -> None:
        """Embed in the background from now on; nothing is done without an embedder.

        `elsewhere`: another process does so. What a recall embeds here is not stored.

        Raises:
            ProviderError: as `vectors`.
        """
        if elsewhere and self.has_vectors:
            self.vectors().follow_elsewhere()
        elif self.has_vectors and self._follower is None and not self._store.read_only:
            from worlddb.index.vector_follower import VectorFollower

            self._follower = VectorFollower(self.vectors())

    def _unfollow(self) -> bool:
        """End the thread that embeds; return whether there was one."""
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.stop()
        return follower is not None

    def unembedded(self, reader: Reader, keep: Callable[[Iterable[int]], Collection[int]]) -> int:
        """Return how many nodes that `keep` lets through wait for a vector in the background."""
        found = self._vectors
        if found is None or not found.is_followed or found.is_current(reader):
            return 0
        return self.vectors().missing(reader, keep)

    def row_filter(self, reader: Reader, condition: Condition, known: int | None) -> RowFilter:
        """Return what a filter says of the rows of a snapshot, as of commit `known`."""
        with self._lock:
            if self._fields is None:
                from worlddb.index.field_index import FieldIndex

                self._fields = FieldIndex()
            fields = self._fields
        return fields.row_filter(reader, condition, known)

    def forget(self) -> None:
        """Drop all held worlds and the saved index, because something was erased."""
        with self._lock:
            if self._wide is not None:
                self._wide.forget()
            self._interiors = self._wide = self._fields = None
        from worlddb.index.store_search import SUFFIX

        saved = self._store.side_file(SUFFIX)
        if saved is not None:
            with suppress(FileNotFoundError):
                os.remove(saved)

    def close(self) -> None:
        """End the thread that embeds, and save the nearest-neighbour index, if there is one."""
        self._unfollow()
        with self._lock:
            if self._wide is not None:
                self._wide.close()

    def _made(self, embedder: Embedder | str) -> Embedder:
        """Return the embedder of a name, or the given embedder after a check.

        Raises:
            InvalidInputError: an unknown name, or an object that is no embedder.
        """
        if isinstance(embedder, str):
            from worlddb.embed.embedder_catalog import embedder_named

            return embedder_named(embedder, models_dir=self._models_dir)
        needed = ("model_id", "dim", "embed_queries", "embed_documents")
        # A property is not read if it is there: some embedders ask their model for `dim`.
        missing = [
            name
            for name in needed
            if getattr_static(embedder, name, None) is None and not hasattr(embedder, name)
        ]
        if missing:
            raise InvalidInputError(
                f"embedder: give a name or an object with {', '.join(missing)}, "
                f"not {embedder!r:.100}"
            )
        if not encode_text(embedder.model_id, "model_id", MODEL_ID_BYTES_MAX):
            raise InvalidInputError("model_id: is empty; give the embedder's model a name")
        return embedder

"""Composed worlds: the vector of a world, computed from its own text and the nodes inside it.

    content vector, children's vectors ──changed(), effective()──▶ the vector of a world

A world has a *content* vector, which never changes, and an *effective* vector, which search uses.
The effective vector is composed from the content and the effective vectors of the children:

    mean        norm(content + Σ child)
    attention   norm(content + Σ aᵢ·childᵢ / Σ aᵢ),   aᵢ = exp(content · childᵢ · √dim)

Scaled dot-product attention divides by √dim because its vectors are about √dim long. Ours have unit
length, so the weight is the cosine times √dim. Divided by √dim, all weights would be nearly equal
(`python -m bench.world_study` shows what that costs).

Both need two running sums per world, Σ aᵢ and Σ aᵢ·childᵢ, so changing a child costs the same in a
world of ten and of a million nodes. The weights use the content vector of the world: with the
composed vector, each update would pull the world further towards its own last value.

A node counts in the world it lives in and in every world that it is a member of without an end, as
soon as both are embedded and until a commit closes it; a node that was born ended never counts.
New, moved and closed nodes are applied from the inside out: a world whose vector changes is a
changed child of the worlds around it. So one new leaf costs its depth, and many new children of one
world cost one matrix product. The root world has no effective vector, because it is never an
answer. Only known time matters here, so the composition of an earlier commit can be repeated in
memory (`compose_held`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.embedder import Pooling, Vector
from worlddb.errors import CorruptionError
from worlddb.model.records import Edge, decode_changes
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, ModelRow, PoolRow

Sum = NDArray[np.float64]

SHARPNESS_MAX = 16.0
"""√256. With sharper weights, a removed child could leave a rounding error as large as a child."""
LENGTH_MIN = 1e-9  # A shorter sum is the rounding error of vectors that cancel out.
COMPOSE_BATCH = 4096  # nodes composed at a time: bounds the vectors in memory
STORED = np.dtype("<f2")
"""Half precision: search results are the same, at half the size."""
SUMMED = np.dtype("<f8")
NEVER = datetime.max.replace(tzinfo=UTC)
RECOMPOSING_CHANGES = ("place", "close_node")
MEMBERSHIP = ("contains",)
MEMBERSHIP_CHANGES = ("delete_edge", "close_edge")

Changes = dict[int, dict[int, Vector | None]]
"""World → child → the vector with which the child is in the sums; None if it is not in them."""


class Pool(NamedTuple):
    """The running sums over the children that count in a world."""

    children: int
    weight: float
    total: Sum


def empty_pool(dim: int) -> Pool:
    """Return the pool of a world without children."""
    return Pool(0, 0.0, np.zeros(dim))


def attention(anchor: Vector, vectors: Vector, pooling: Pooling) -> Sum:
    """Return the weight of each child."""
    if pooling == "mean":
        return np.ones(len(vectors))
    logits = vectors.astype(np.float64) @ anchor.astype(np.float64)
    sharpness = min(np.sqrt(len(anchor)), SHARPNESS_MAX)
    return np.asarray(np.exp(logits * sharpness), dtype=np.float64)


def changed(pool: Pool, anchor: Vector, removed: Vector, added: Vector, pooling: Pooling) -> Pool:
    """Return the pool after children were removed and added; a changed child is both.

    Sums have double precision, and an emptied pool starts from zero: a child that was added and
    removed again leaves no trace in search results.
    """
    children = pool.children - len(removed) + len(added)
    if children <= 0:
        return empty_pool(len(anchor))
    out, into = attention(anchor, removed, pooling), attention(anchor, added, pooling)
    return Pool(
        children,
        pool.weight - float(out.sum()) + float(into.sum()),
        pool.total - out @ removed.astype(np.float64) + into @ added.astype(np.float64),
    )


def effective(anchor: Vector, pool: Pool, pooling: Pooling) -> Vector:
    """Return the vector that search uses: unit length, or zero if there is no content."""
    if not pool.children:
        return anchor
    inside = pool.total / pool.weight if pooling == "attention" else pool.total
    composed = anchor.astype(np.float64) + inside
    length = float(np.linalg.norm(composed))
    scaled = composed / length if length > LENGTH_MIN else np.zeros_like(composed)
    return scaled.astype(np.float32)


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
    """Compose the worlds of a model up to the session's last commit; return the model's new state.

    `session` comes from `store.derive()`, so nobody commits in the meantime.

    Raises:
        CorruptionError: a stored vector has the wrong length for this model.
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
    """Return the worlds in which each node counts at a commit, without nodes that count nowhere."""
    away = reader.closed_by(rows, known) | _born_ended(reader, rows, known)
    found = {row: {up} for row, up in reader.parents(rows, known).items() if up and row not in away}
    for item in reader.edges_at(sorted(found), "in", MEMBERSHIP, known):
        if is_lasting(item.edge):
            found[item.target].add(item.source)
    return found


def is_lasting(edge: Edge) -> bool:
    """Return whether a membership was valid when it was written and has no end."""
    return edge.valid_to is None and edge.valid_from <= edge.known_from


def _born_ended(reader: Reader, rows: Collection[int], known: int | None) -> set[int]:
    """Return the nodes that had already ended at the commit that wrote them."""
    ending = [body.row for body in reader.bodies(rows, known) if body.valid_to is not None]
    nodes = reader.nodes(ending, known) if ending else {}
    # A node that a later commit closed may be among them; it does not count anyway.
    return {row for row, node in nodes.items() if (node.valid_to or NEVER) <= node.known_from}


def compose_held(matrix: Vector, above: Sequence[Collection[int]], pooling: Pooling) -> None:
    """Replace content vectors, one row per node, by effective vectors, in place.

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
        # Rounded as if it had been stored and read again.
        matrix[world] = loaded(stored(effective(anchor, pool, pooling)))
        for up in above[world]:
            waits_for[up] -= 1
            if not waits_for[up]:
                ready.append(up)


def _moved_since(session: Reader, model: ModelRow) -> list[int]:
    """Return composed nodes that later commits moved or closed, or whose memberships changed."""
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
    """One round of composition, with the vectors and pools read and computed so far.

    Nodes with a row above `last` do not count yet, and no node counts in them.
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
        """The worlds in which rows count, by commit; None is the last commit."""

    def move(self, rows: list[int], counted_at: int) -> None:
        """Apply nodes that counted at a commit and were moved, closed or made members since."""
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
        """Apply nodes that never counted yet, and older nodes that live in them or are members."""
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
        """Recompose worlds; those whose vector changes become changes of the worlds around them."""
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
            # Rounded as it is stored: the world above must subtract exactly what it added.
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

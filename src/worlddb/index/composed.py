"""Composed: keeps the effective vectors of worlds up with the journal.

A child counts in the world it lives in, until a commit closes its validity. What changed since the
last time, new children, moved ones, closed ones, is worked in from the inside out: a world whose
vector changes is itself a changed child of the world above. So one new leaf costs its depth, and
many of one world are worked in with one matrix product. The root is nobody's answer: it has none.
"""

from __future__ import annotations

import numpy as np

from worlddb.embed.compose import Pool, Pooling, Vector, changed, effective, empty_pool
from worlddb.model.journal import decode_changes
from worlddb.store.protocol import ROOT_ROW, ModelRow, PoolRow, Reader

COMPOSE_BATCH = 4096
STORED = np.dtype("<f2")
SUMMED = np.dtype("<f8")
MOVES = ("place", "close_node")


def stored(vector: Vector) -> bytes:
    """Return a vector as the store keeps it: half precision, which search cannot tell apart."""
    return vector.astype(STORED).tobytes()


def loaded(body: bytes) -> Vector:
    """Return a vector that the store kept."""
    return np.frombuffer(body, dtype=STORED).astype(np.float32)


def compose(session: Reader, model: ModelRow, pooling: Pooling) -> ModelRow:
    """Bring the composed worlds of a model to the session's last commit; return how far it is.

    `session` is one of `store.derive()`: nobody commits meanwhile.
    """
    head = session.head()
    last = min(model.embedded, head.nodes)
    moved = _moved_since(session, model)
    _Composer(session, model, pooling).work_in(moved, model.seq)
    for first in range(model.composed + 1, last + 1, COMPOSE_BATCH):
        new = list(range(first, min(first + COMPOSE_BATCH, last + 1)))
        _Composer(session, model, pooling).work_in(new, None)
    session.derived.set_composed(model.number, last, head.seq)
    return model._replace(composed=last, seq=head.seq)


def _moved_since(session: Reader, model: ModelRow) -> list[int]:
    """Return the nodes that were counted and that a later commit moved or closed."""
    found: set[int] = set()
    for commit in session.commits(model.seq, None, False):
        for change in decode_changes(commit.changes):
            if change.kind in MOVES:
                row = session.node_row(change.id)
                if row is not None and row <= model.composed:
                    found.add(row)
    return sorted(found)


class _Composer:
    """One round: which worlds have changed children, and the vectors read and made so far."""

    def __init__(self, session: Reader, model: ModelRow, pooling: Pooling) -> None:
        self.session = session
        self.number = model.number
        self.dim = model.dim
        self.pooling = pooling
        self.content: dict[int, Vector] = {}
        self.pools: dict[int, Pool] = {}
        self.before: dict[int, Vector] = {}
        self.now: dict[int, Vector] = {}
        self.waiting: dict[int, dict[int, Vector | None]] = {}

    def work_in(self, rows: list[int], counted_at: int | None) -> None:
        """Work in changed children; `counted_at` is the commit they counted at, None if never."""
        if not rows:
            return
        self._read(rows)
        if counted_at is not None:
            gone = self.session.closed_by(rows, counted_at)
            for row, world in self.session.parents(rows, counted_at).items():
                if row not in gone and world is not None:
                    self.waiting.setdefault(world, {})[row] = self.before[row]
        for row, world in self._counts(rows).items():
            self.waiting.setdefault(world, {}).setdefault(row, None)
        depths = self._depths(self.waiting)
        while self.waiting:
            deepest = max(self.waiting, key=lambda world: (depths[world], world))
            children = self.waiting.pop(deepest)
            if deepest != ROOT_ROW:
                self._recompose(deepest, children)
        self._write()

    def _counts(self, rows: list[int]) -> dict[int, int]:
        """Return the world each row counts in now; closed ones count nowhere."""
        closed = self.session.closed_by(rows)
        parents = self.session.parents(rows)
        return {row: up for row, up in parents.items() if up is not None and row not in closed}

    def _depths(self, worlds: dict[int, dict[int, Vector | None]]) -> dict[int, int]:
        """Return how deep each world and each world above it lies."""
        above: dict[int, int | None] = {}
        frontier = set(worlds)
        while frontier:
            found = self.session.parents(frontier)
            above.update(found)
            frontier = {up for up in found.values() if up is not None} - above.keys()
        depths: dict[int, int] = {}
        for start in above:
            path = [start]
            while path[-1] not in depths and (up := above[path[-1]]) is not None:
                path.append(up)
            depths.setdefault(path[-1], 0)
            for lower, upper in zip(path[-2::-1], path[:0:-1], strict=True):
                depths[lower] = depths[upper] + 1
        return depths

    def _read(self, rows: list[int]) -> None:
        """Read content vectors and pools; what was never embedded counts as zero."""
        wanted = [row for row in rows if row not in self.content]
        vectors = dict(self.session.derived.vectors(self.number, wanted))
        pools = {pool.node: pool for pool in self.session.derived.pools(self.number, wanted)}
        nothing = np.zeros(self.dim, dtype=np.float32)
        for row in wanted:
            self.content[row] = loaded(vectors[row]) if row in vectors else nothing
            self.before[row] = self.content[row]
            if row in pools:
                pool = pools[row]
                total = np.frombuffer(pool.total, dtype=SUMMED)
                self.pools[row] = Pool(pool.children, pool.weight, total)
                self.before[row] = loaded(pool.vector)

    def _recompose(self, world: int, children: dict[int, Vector | None]) -> None:
        self._read([world, *children])
        counts = self._counts(list(children))
        removed = [vector for vector in children.values() if vector is not None]
        added = [self._vector(row) for row in children if counts.get(row) == world]
        pool = changed(
            self.pools.get(world) or empty_pool(self.dim),
            self.content[world],
            self._stack(removed),
            self._stack(added),
            self.pooling,
        )
        before = self._vector(world)
        self.pools[world] = pool
        # As the store will give it back: the world above must be able to take out what it put in.
        self.now[world] = loaded(stored(effective(self.content[world], pool, self.pooling)))
        if not np.array_equal(before, self.now[world]):
            for up in self._counts([world]).values():
                self.waiting.setdefault(up, {}).setdefault(world, before)

    def _vector(self, row: int) -> Vector:
        return self.now.get(row, self.before[row])

    def _stack(self, vectors: list[Vector]) -> Vector:
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)

    def _write(self) -> None:
        made = {row: self.pools[row] for row in self.now}
        self.session.derived.delete_pools(
            self.number, [row for row, pool in made.items() if not pool.children]
        )
        self.session.derived.put_pools(
            self.number,
            [
                PoolRow(
                    row,
                    pool.children,
                    pool.weight,
                    pool.total.astype(SUMMED).tobytes(),
                    stored(self.now[row]),
                )
                for row, pool in made.items()
                if pool.children
            ],
            self.session.head().seq,
        )

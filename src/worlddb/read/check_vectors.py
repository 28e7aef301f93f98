"""Vectors: is every node embedded that is said to be, and every world composed of its children?

Texts are not embedded again: a vector that became another sound one is found by the sums of the
world around it, and believed where that is the root, which has none. A model that has not followed
to the last commit has other children in its sums than there are now; its pools are then only held
against themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter

import numpy as np

from worlddb.embed.compose import Pool, Pooling, Vector, attention, effective
from worlddb.index.composed_worlds import STORED, SUMMED
from worlddb.index.vectors import TOKEN_DIM as TOKEN_BYTES
from worlddb.read.check_rows import Rows
from worlddb.store.protocol import ROOT_ROW, Head, ModelRow, PoolRow, Reader

BATCH = 4096
DIM_MAX = 65_536
POOLINGS: tuple[Pooling, ...] = ("attention", "mean")
HALF_PRECISION = 2e-3
SUMS_DRIFT = 1e-6
"""How far a running sum may be from a fresh one, for each child in it."""
ENOUGH = 1_000
"""Nobody reads more problems than that, and a million vectors may all be wrong."""


def check_vectors(reader: Reader, rows: Rows) -> None:
    """Report every model, vector and pool that does not follow from the nodes."""
    models = reader.derived.models()
    if models and [model.active for model in models] != [1] + [0] * (len(models) - 1):
        _report(rows, "models", "not exactly one of them is active")
    sound: dict[int, ModelRow] = {}
    for model in models:
        if (wrong := _wrong_model(model, reader.head())) is None:
            sound[model.number] = model
        else:
            _report(rows, _name(model), wrong)
    known = {model.number for model in models}
    _check_contents(reader, rows, sound, known)
    _check_tokens(reader, rows, sound, known)
    _check_pools(reader, rows, sound, known)


def _wrong_model(model: ModelRow, head: Head) -> str | None:
    """Return why a model's own row cannot be, if so."""
    if not model.id:
        return "it has no name"
    if not 1 <= model.dim <= DIM_MAX:
        return f"its vectors have {model.dim} numbers"
    if model.pooling not in POOLINGS:
        return f"there is no pooling {model.pooling!r:.50}"
    if not ROOT_ROW <= model.composed <= model.embedded <= head.nodes:
        return "it is said to have come further than there are nodes"
    if not -1 <= model.seq <= head.seq:
        return "it is composed at a commit that is not there"
    return None


def _report(rows: Rows, place: str, message: str) -> None:
    if len(rows.problems) < ENOUGH:
        rows.report(place, message)


def _name(model: ModelRow) -> str:
    return f"model {model.id!r:.80}"


def _batches(items: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    left = iter(items)
    while batch := list(islice(left, BATCH)):
        yield batch


def _check_contents(
    reader: Reader, rows: Rows, models: dict[int, ModelRow], known: set[int]
) -> None:
    """Report nodes without a vector, vectors without a node, and vectors that are none."""
    waiting = dict(models)
    for number, found in groupby(reader.derived.all_vectors(), key=itemgetter(0)):
        if number in waiting:
            _check_model(rows, waiting.pop(number), ((node, body) for _, node, body in found))
        elif number not in known:
            _report(rows, f"vectors of model number {number}", "there is no such model")
    for model in waiting.values():
        _check_model(rows, model, ())


def _check_model(rows: Rows, model: ModelRow, found: Iterable[tuple[int, bytes]]) -> None:
    there = beyond = 0
    for batch in _batches(found):
        for node, _ in batch:
            inside = ROOT_ROW < node <= model.embedded
            there, beyond = there + inside, beyond + (not inside)
        for node in _unsound(model, batch):
            _report(rows, f"{_name(model)}, vector of node row {node}", "it cannot be one")
    missing = model.embedded - ROOT_ROW - there
    if missing:
        _report(rows, _name(model), f"{missing} nodes that are said to be embedded have no vector")
    if beyond:
        _report(rows, _name(model), f"{beyond} vectors are of nodes that are not embedded")


def _unsound(model: ModelRow, batch: list[tuple[int, bytes]]) -> list[int]:
    """Return the nodes whose vectors are of the wrong length, not finite, or not of unit length."""
    size = model.dim * STORED.itemsize
    short = [node for node, body in batch if len(body) != size]
    whole = [(node, body) for node, body in batch if len(body) == size]
    with np.errstate(all="ignore"):
        matrix = np.frombuffer(b"".join(body for _, body in whole), dtype=STORED)
        wide = matrix.astype(np.float64).reshape(len(whole), model.dim)
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        # Said so that NaN, which is not near anything, is wrong.
        right = (lengths == 0) | (np.abs(lengths - 1) <= HALF_PRECISION)
    return short + [node for (node, _), fine in zip(whole, right, strict=True) if not fine]


def _check_tokens(reader: Reader, rows: Rows, models: dict[int, ModelRow], known: set[int]) -> None:
    """Report token vectors of no model, of no embedded node, and such as are none."""
    for number, node, size in reader.derived.all_tokens():
        model = models.get(number)
        if number not in known:
            _report(rows, f"token vectors of model number {number}", "there is no such model")
        elif model is not None and not ROOT_ROW < node <= model.embedded:
            _report(rows, _name(model), f"node row {node} has token vectors and is not embedded")
        elif size == 0 or size % TOKEN_BYTES:
            _report(rows, f"token vectors of node row {node}", "they cannot be such")


# -- composed worlds -------------------------------------------------------------------------------


def _check_pools(reader: Reader, rows: Rows, models: dict[int, ModelRow], known: set[int]) -> None:
    """Report pools that are none, and, of models that are up to date, those with wrong sums."""
    last = reader.head().seq
    children = _children(rows) if models else {}
    waiting = {
        number: _Pools(reader, rows, model, children if model.seq == last else None)
        for number, model in models.items()
    }
    for number, found in groupby(reader.derived.all_pools(), key=itemgetter(0)):
        if number in waiting:
            waiting.pop(number).check((seq, pool) for _, seq, pool in found)
        elif number not in known:
            _report(rows, f"pools of model number {number}", "there is no such model")
    for pools in waiting.values():
        pools.check(())


def _children(rows: Rows) -> dict[int, list[int]]:
    """Return the children that count in each world now, whatever is embedded."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row, parent in rows.parents.items():
        if parent is not None and parent != ROOT_ROW:
            if ("node.valid_to", row) not in rows.history:
                found[parent].append(row)
    return found


class _Pools:
    """The pools of one model, world by world; `inside` is None if its commit is not the last."""

    def __init__(
        self, reader: Reader, rows: Rows, model: ModelRow, inside: dict[int, list[int]] | None
    ) -> None:
        self.derived = reader.derived
        self.rows = rows
        self.model = model
        self.inside = inside
        self.pooling: Pooling = "mean" if model.pooling == "mean" else "attention"

    def check(self, found: Iterable[tuple[int, PoolRow]]) -> None:
        """Report what is wrong with any of them, and worlds that should have one."""
        there = set()
        for seq, pool in found:
            there.add(pool.node)
            if (wrong := self._wrong(seq, pool)) is not None:
                place = f"{_name(self.model)}, pool of world row {pool.node}"
                _report(self.rows, place, wrong)
        for world in (self.inside or {}).keys() - there:
            if world <= self.model.composed and self._counted(world):
                place = f"{_name(self.model)}, world row {world}"
                _report(self.rows, place, "it has children and is not composed")

    def _counted(self, world: int) -> list[int]:
        inside = self.inside or {}
        return [row for row in inside.get(world, ()) if row <= self.model.composed]

    def _wrong(self, seq: int, pool: PoolRow) -> str | None:
        model = self.model
        if not ROOT_ROW < pool.node <= model.composed:
            return "its world is not composed yet"
        if not 0 <= seq <= model.seq or pool.children < 0:
            return "its commit or its number of children cannot be"
        if len(pool.total) != model.dim * SUMMED.itemsize:
            return "its sum is of the wrong length"
        if _unsound(model, [(pool.node, pool.vector)]):
            return "its vector cannot be one"
        anchor = self._vectors([pool.node], composed=False)
        if anchor is None:
            return None  # Reported as a vector that is missing or cannot be one.
        with np.errstate(all="ignore"):
            total = np.frombuffer(pool.total, dtype=SUMMED)
            sums = Pool(pool.children, pool.weight, total)
            vector = np.frombuffer(pool.vector, dtype=STORED).astype(np.float64)
            apart = np.abs(effective(anchor[0], sums, self.pooling) - vector)
            if not (apart <= HALF_PRECISION).all():
                return "its vector does not follow from its sums"
            return None if self.inside is None else self._wrong_sums(anchor[0], sums, pool.node)

    def _wrong_sums(self, anchor: Vector, pool: Pool, world: int) -> str | None:
        """Add up the children again and compare."""
        children = self._counted(world)
        if len(children) != pool.children:
            return f"it counts {pool.children} children, and there are {len(children)}"
        weight, total = 0.0, np.zeros(self.model.dim)
        for first in range(0, len(children), BATCH):
            vectors = self._vectors(children[first : first + BATCH], composed=True)
            if vectors is None:
                return None
            weights = attention(anchor, vectors, self.pooling)
            weight += float(weights.sum())
            total += weights @ vectors.astype(np.float64)
        allowed = SUMS_DRIFT * (1 + pool.children)
        near = abs(weight - pool.weight) <= allowed and (abs(total - pool.total) <= allowed).all()
        return None if near else "its sums are not those of its children"

    def _vectors(self, nodes: list[int], *, composed: bool) -> Vector | None:
        """Return the vectors of nodes; None if one is missing or cannot be one."""
        bodies = dict(self.derived.vectors(self.model.number, nodes))
        if composed:
            pools = self.derived.pools(self.model.number, nodes)
            bodies.update((pool.node, pool.vector) for pool in pools)
        size = self.model.dim * STORED.itemsize
        if any(len(bodies.get(node, b"")) != size for node in nodes):
            return None
        joined = b"".join(bodies[node] for node in nodes)
        return np.frombuffer(joined, STORED).reshape(len(nodes), -1).astype(np.float32)

"""Derived check: compares vectors, composed worlds, names and counts with the nodes.

Texts are not embedded again. A vector that was replaced by another well-formed one is found by the
sums of the world around it, and by the sum over its table (`Scan.edited_tables`). If a model has
not reached the last commit, its pools have sums of earlier children and are only checked for
consistency with themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

import numpy as np

from worlddb.audit.projection_check import StoreImage
from worlddb.embed.embedder import Pooling, Vector
from worlddb.index.composed_worlds import (
    MEMBERSHIP,
    STORED,
    SUMMED,
    Pool,
    attention,
    effective,
    is_lasting,
)
from worlddb.index.name_index import NameIndex
from worlddb.index.vectors import TOKEN_DIM as TOKEN_BYTES
from worlddb.index.vectors import pooling_label
from worlddb.model.address import ERASED
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, Head, ModelRow, PoolRow

# Lookup check: are names indexed under their keys, and do counts of recalls belong to nodes?
#
# The keys of names are computed again. A moved node keeps the keys of its former worlds, and an
# erased one is counted among the names of its world, so for these only missing keys are reported.

RECALLED_BEFORE = 1 << 53
"""Microseconds after 1970: the year 2255, later than any accepted clock."""


def check_lookups(reader: Reader, image: StoreImage, names: NameIndex | None) -> None:
    """Report keys of names that are missing or belong to no name, and impossible counts."""
    head, lookups = reader.head(), reader.lookups
    reached = lookups.reached()
    stored = set(reader.scan.lookups())
    if not ROOT_ROW <= reached.node <= head.nodes or not 0 <= reached.note <= head.notes:
        image.report("lookups", "they claim more nodes or notes than there are")
    if any(node > reached.node for _, node in stored):
        image.report("lookups", "a node is filed that they claim not to have reached")
    if not set(lookups.moved()) <= image.nodes.keys():
        image.report("lookups", "a node that does not exist is said to have moved")
    if names is not None and names.is_current(reader):
        _check_keys(reader, image, names, stored)
    for node, count, when in reader.scan.recalls():
        if node not in image.nodes or count < 1 or not 0 < when < RECALLED_BEFORE:
            image.report(f"recalls of node row {node}", "no such node, or no such count")


def _check_keys(
    reader: Reader, image: StoreImage, names: NameIndex, stored: set[tuple[int, int]]
) -> None:
    expected, counted = names.filed(reader)
    loose = {row for field, row in image.history if field == "node.parent"}
    loose |= {row for row, node in image.nodes.items() if node.created_at == ERASED}
    for _, row in expected - stored:
        image.report(f"lookups of node row {row}", "a key of its name is missing")
    for _, row in stored - expected:
        if row not in loose:
            image.report(f"lookups of node row {row}", "a key belongs to no name of the node")
    found = Counter(dict(reader.scan.lookup_worlds()))
    for world in found.keys() | counted.keys():
        less, exact = found[world] < counted[world], found[world] == counted[world]
        if less or not (exact or loose):
            image.report(f"lookups of world row {world}", "its number of names is wrong")


# Vectors and composed worlds.

VECTORS_PER_READ = 4096
"""Vectors held at once; bounds memory: 25 MB at 768 dimensions in double precision."""
DIM_MAX = 65_536
"""Far above any embedding model; a larger number is damage, and would exhaust memory."""
POOLINGS: tuple[Pooling, ...] = ("attention", "mean")
HALF_PRECISION = 2e-3
"""Tolerance for stored vectors: four roundings of half precision, 2**-11 each."""
SUMS_DRIFT = 1e-6  # Rounding error of a running sum, for each child in it.


def check_vectors(reader: Reader, image: StoreImage) -> None:
    """Report every model, vector and pool that is malformed or does not fit the nodes."""
    models = reader.derived.models()
    if models and [model.active for model in models] != [1] + [0] * (len(models) - 1):
        image.report("models", "not exactly one of them is active")
    sound: dict[int, ModelRow] = {}
    for model in models:
        if (wrong := _wrong_model(model, reader.head())) is None:
            sound[model.number] = model
        else:
            image.report(_name(model), wrong)
    known = {model.number for model in models}
    _check_contents(reader, image, sound, known)
    _check_tokens(reader, image, sound, known)
    _check_pools(reader, image, sound, known)


def _wrong_model(model: ModelRow, head: Head) -> str | None:
    """Return the problem with the row of a model, if any."""
    if not model.id:
        return "it has no name"
    if not 1 <= model.dim <= DIM_MAX:
        return f"its vectors have {model.dim} numbers"
    if model.pooling not in POOLINGS and model.pooling not in map(pooling_label, POOLINGS):
        return f"there is no pooling {model.pooling!r:.50}"
    if not ROOT_ROW <= model.composed <= model.embedded <= head.nodes:
        return "it claims more embedded or composed nodes than there are"
    if not -1 <= model.seq <= head.seq:
        return "it is composed at a commit that does not exist"
    return None


def _name(model: ModelRow) -> str:
    return f"model {model.id!r:.80}"


def _check_contents(
    reader: Reader, image: StoreImage, models: dict[int, ModelRow], known: set[int]
) -> None:
    """Report missing vectors, vectors without an embedded node, and malformed vectors."""
    waiting = dict(models)
    for number, found in groupby(reader.derived.all_vectors(), key=itemgetter(0)):
        if number in waiting:
            _check_model(image, waiting.pop(number), ((node, body) for _, node, body in found))
        elif number not in known:
            image.report(f"vectors of model number {number}", "there is no such model")
    for model in waiting.values():
        _check_model(image, model, ())


def _check_model(image: StoreImage, model: ModelRow, found: Iterable[tuple[int, bytes]]) -> None:
    there = beyond = 0
    left = iter(found)
    while batch := list(islice(left, VECTORS_PER_READ)):
        for node, _ in batch:
            inside = ROOT_ROW < node <= model.embedded
            there, beyond = there + inside, beyond + (not inside)
        for node in _unsound(model, batch):
            image.report(f"{_name(model)}, vector of node row {node}", "it is malformed")
    missing = model.embedded - ROOT_ROW - there
    if missing:
        image.report(_name(model), f"{missing} nodes recorded as embedded have no vector")
    if beyond:
        image.report(_name(model), f"{beyond} vectors belong to nodes not recorded as embedded")


def _unsound(model: ModelRow, batch: list[tuple[int, bytes]]) -> list[int]:
    """Return the nodes whose vectors are of the wrong length, not finite, or not of unit length."""
    size = model.dim * STORED.itemsize
    short = [node for node, body in batch if len(body) != size]
    whole = [(node, body) for node, body in batch if len(body) == size]
    with np.errstate(all="ignore"):
        matrix = np.frombuffer(b"".join(body for _, body in whole), dtype=STORED)
        wide = matrix.astype(np.float64).reshape(len(whole), model.dim)
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        # Written so that NaN, for which every comparison is false, counts as wrong.
        right = (lengths == 0) | (np.abs(lengths - 1) <= HALF_PRECISION)
    return short + [node for (node, _), fine in zip(whole, right, strict=True) if not fine]


def _check_tokens(
    reader: Reader, image: StoreImage, models: dict[int, ModelRow], known: set[int]
) -> None:
    """Report token vectors without a model or an embedded node, and malformed ones."""
    for number, node, size in reader.derived.all_tokens():
        model = models.get(number)
        if number not in known:
            image.report(f"token vectors of model number {number}", "there is no such model")
        elif model is not None and not ROOT_ROW < node <= model.embedded:
            image.report(_name(model), f"node row {node} has token vectors but is not embedded")
        elif size == 0 or size % TOKEN_BYTES:
            image.report(f"token vectors of node row {node}", "they are malformed")


# -- composed worlds -------------------------------------------------------------------------------


def _check_pools(
    reader: Reader, image: StoreImage, models: dict[int, ModelRow], known: set[int]
) -> None:
    """Report malformed pools, and pools of up-to-date models that have wrong sums."""
    last = reader.head().seq
    children = _children(reader, image) if models else {}
    labels = set(map(pooling_label, POOLINGS))  # Older worlds are composed again when asked.
    waiting = {
        number: _PoolCheck(
            reader,
            image,
            model,
            children if model.seq == last and model.pooling in labels else None,
        )
        for number, model in models.items()
    }
    for number, found in groupby(reader.derived.all_pools(), key=itemgetter(0)):
        if number in waiting:
            waiting.pop(number).check((seq, pool) for _, seq, pool in found)
        elif number not in known:
            image.report(f"pools of model number {number}", "there is no such model")
    for pools in waiting.values():
        pools.check(())


def _children(reader: Reader, image: StoreImage) -> dict[int, list[int]]:
    """Return the children and members that count in each world now, embedded or not."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    times = {commit.seq: commit.time for commit in image.commits}
    counts = {
        row
        for row, node in image.nodes.items()
        if ("node.valid_to", row) not in image.history
        and (node.valid_to is None or node.valid_to > times.get(node.born, node.valid_to))
    }
    for row in counts:
        found[image.nodes[row].parent or ROOT_ROW].add(row)
    for item in reader.edges_between(1, reader.head().edges, types=MEMBERSHIP):
        if item.target in counts and item.edge.known_to is None and is_lasting(item.edge):
            found[item.source].add(item.target)
    found.pop(ROOT_ROW, None)
    return {world: sorted(rows) for world, rows in found.items()}


@dataclass(frozen=True, slots=True)
class _PoolCheck:
    """Checks the pools of one model.

    `inside` has the children of each world; None if the model has not reached the last commit.
    """

    reader: Reader
    image: StoreImage
    model: ModelRow
    inside: dict[int, list[int]] | None

    @property
    def pooling(self) -> Pooling:
        return "mean" if self.model.pooling.startswith("mean") else "attention"

    def check(self, found: Iterable[tuple[int, PoolRow]]) -> None:
        """Report wrong pools, and worlds without the pool that they should have."""
        there = set()
        for seq, pool in found:
            there.add(pool.node)
            if (wrong := self._wrong(seq, pool)) is not None:
                place = f"{_name(self.model)}, pool of world row {pool.node}"
                self.image.report(place, wrong)
        for world in (self.inside or {}).keys() - there:
            if world <= self.model.composed and self._counted(world):
                place = f"{_name(self.model)}, world row {world}"
                self.image.report(place, "it has children but no pool")

    def _counted(self, world: int) -> list[int]:
        children = (self.inside or {}).get(world, ())
        return [row for row in children if row <= self.model.composed]

    def _wrong(self, seq: int, pool: PoolRow) -> str | None:
        model = self.model
        if not ROOT_ROW < pool.node <= model.composed:
            return "its world is not composed yet"
        if not 0 <= seq <= model.seq or pool.children < 0:
            return "its commit or its number of children is impossible"
        if len(pool.total) != model.dim * SUMMED.itemsize:
            return "its sum is of the wrong length"
        if _unsound(model, [(pool.node, pool.vector)]):
            return "its vector is malformed"
        anchor = self._vectors([pool.node], composed=False)
        if anchor is None:
            return None  # Already reported as a missing or malformed vector.
        with np.errstate(all="ignore"):
            total = np.frombuffer(pool.total, dtype=SUMMED)
            sums = Pool(pool.children, pool.weight, total)
            vector = np.frombuffer(pool.vector, dtype=STORED).astype(np.float64)
            apart = np.abs(effective(anchor[0], sums, self.pooling) - vector)
            if not (apart <= HALF_PRECISION).all():
                return "its vector does not follow from its sums"
            return None if self.inside is None else self._wrong_sums(anchor[0], sums, pool.node)

    def _wrong_sums(self, anchor: Vector, pool: Pool, world: int) -> str | None:
        """Sum the children again and return how the result differs, if it does."""
        children = self._counted(world)
        if len(children) != pool.children:
            return f"it counts {pool.children} children, but there are {len(children)}"
        weight, total = 0.0, np.zeros(self.model.dim)
        for first in range(0, len(children), VECTORS_PER_READ):
            vectors = self._vectors(children[first : first + VECTORS_PER_READ], composed=True)
            if vectors is None:
                return None
            weights = attention(anchor, vectors, self.pooling)
            weight += float(weights.sum())
            total += weights @ vectors.astype(np.float64)
        allowed = SUMS_DRIFT * (1 + pool.children + abs(weight))
        near = abs(weight - pool.weight) <= allowed and (abs(total - pool.total) <= allowed).all()
        return None if near else "its sums are not those of its children"

    def _vectors(self, nodes: list[int], *, composed: bool) -> Vector | None:
        """Return the vectors of nodes; None if one is missing or malformed."""
        bodies = dict(self.reader.derived.vectors(self.model.number, nodes))
        if composed:
            pools = self.reader.derived.pools(self.model.number, nodes)
            bodies.update((pool.node, pool.vector) for pool in pools)
        size = self.model.dim * STORED.itemsize
        if any(len(bodies.get(node, b"")) != size for node in nodes):
            return None
        joined = b"".join(bodies[node] for node in nodes)
        return np.frombuffer(joined, STORED).reshape(len(nodes), -1).astype(np.float32)

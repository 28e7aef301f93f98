"""Composed worlds the plain way: from scratch, world by world, from what the store says now."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb import WorldDB
from worlddb.store.rows import ModelRow

Floats = NDArray[np.float64]
ROOT = 1
CLOSE = 4e-3
"""Each level is rounded to half precision, so two ways to one sum may differ by so much."""


class World(NamedTuple):
    """How many children count in a world, and what search sees of it."""

    children: int
    vector: Floats


def half(vector: Floats) -> Floats:
    """Return a vector as it is kept."""
    return vector.astype(np.float16).astype(np.float64)


def composed(anchor: Floats, children: list[Floats], pooling: str) -> Floats:
    """Return a world's vector by the formulas of the paper."""
    if not children:
        return anchor
    stacked = np.stack(children)
    if pooling == "mean":
        found = (anchor + stacked.sum(axis=0)) / (len(children) + 1)
    else:
        weights = np.exp(stacked @ anchor / np.sqrt(len(anchor)))
        found = anchor + weights @ stacked / weights.sum()
    length = np.linalg.norm(found)
    return np.asarray(found / length if length > 1e-9 else 0 * found, dtype=np.float64)


def model_row(db: WorldDB, model_id: str = "exact") -> ModelRow:
    """Return how far a model has come."""
    with db.engine.store.read() as reader:
        return next(row for row in reader.derived.models() if row.id == model_id)


def stored_vectors(db: WorldDB, model_id: str = "exact") -> dict[int, bytes]:
    """Return every content vector of a model by its node's row."""
    number = model_row(db, model_id).number
    with db.engine.store.read() as reader:
        found = reader.derived.all_vectors()
        return {node: vector for model, node, vector in found if model == number}


def stored_worlds(db: WorldDB, model_id: str = "exact") -> dict[int, World]:
    """Return the composed worlds as the store has them; those without children are left out."""
    number = model_row(db, model_id).number
    with db.engine.store.read() as reader:
        return {
            pool.node: World(pool.children, np.frombuffer(pool.vector, "<f2").astype(np.float64))
            for model, _, pool in reader.derived.all_pools()
            if model == number and pool.children
        }


def recomposed_worlds(
    db: WorldDB, pooling: str = "attention", model_id: str = "exact"
) -> dict[int, World]:
    """Return the composed worlds, each worked out from all its children.

    A child counts in the world it lives in until a commit closes its validity; of what is not
    embedded yet, nothing counts.
    """
    content = {
        row: np.frombuffer(vector, "<f2").astype(np.float64)
        for row, vector in stored_vectors(db, model_id).items()
    }
    with db.engine.store.read() as reader:
        parents = {node.row: node.parent for node in reader.scan.nodes() if node.row in content}
        closed = {row for field, row, _, _ in reader.scan.history() if field == "node.valid_to"}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for row, parent in parents.items():
        if parent is not None and parent in content and row not in closed:
            children[parent].append(row)
    found: dict[int, World] = {}
    for row in sorted(content, key=lambda row: -depth(row, parents)):
        inside = [
            found[child].vector if child in found else content[child] for child in children[row]
        ]
        if inside:
            found[row] = World(len(inside), half(composed(content[row], inside, pooling)))
    return found


def depth(row: int, parents: dict[int, int | None]) -> int:
    """Return how many worlds are around a node, the root among them."""
    count, above = 0, parents.get(row)
    while above is not None:
        count, above = count + 1, parents.get(above)
    return count


def assert_composed(db: WorldDB, pooling: str = "attention", model_id: str = "exact") -> None:
    """Assert that what the store keeps is what a recomposition from scratch gives."""
    stored, fresh = stored_worlds(db, model_id), recomposed_worlds(db, pooling, model_id)
    assert {row: world.children for row, world in stored.items()} == {
        row: world.children for row, world in fresh.items()
    }
    for row, world in fresh.items():
        apart = float(np.abs(world.vector - stored[row].vector).max())
        assert apart < CLOSE, f"world row {row} of {world.children}: {apart}"

"""Composed worlds the plain way: from scratch, world by world, from what the store says now."""

from __future__ import annotations

from collections import defaultdict
from graphlib import TopologicalSorter
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
    """Return a world's vector by the formulas of the paper, for vectors of unit length."""
    if not children:
        return anchor
    stacked = np.stack(children)
    if pooling == "mean":
        found = (anchor + stacked.sum(axis=0)) / (len(children) + 1)
    else:
        weights = np.exp(stacked @ anchor * min(np.sqrt(len(anchor)), 16.0))
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

    A node counts in the world it lives in, and where it is a member without an end, until a commit
    closes its validity; what was born ended never does. What is not embedded yet does not count.
    """
    content = {
        row: np.frombuffer(vector, "<f2").astype(np.float64)
        for row, vector in stored_vectors(db, model_id).items()
    }
    with db.engine.store.read() as reader:
        nodes = {node.row: node for node in reader.scan.nodes() if node.row in content}
        closed = {row for field, row, _, _ in reader.scan.history() if field == "node.valid_to"}
        times = {commit.seq: commit.time for commit in reader.commits(-1, None, False)}
        edges = [edge for edge in reader.scan.edges() if edge.type == "contains"]
    children: defaultdict[int, set[int]] = defaultdict(set)
    for row, node in nodes.items():
        born_ended = node.valid_to is not None and node.valid_to <= times[node.born]
        if row in closed or born_ended:
            continue
        if node.parent in content:
            children[node.parent].add(row)
        for edge in edges:
            lasts = edge.valid_to is None and edge.valid_from <= times[edge.born]
            if edge.target == row and edge.gone is None and lasts and edge.source in content:
                children[edge.source].add(row)
    children.pop(ROOT, None)
    found: dict[int, World] = {}

    for row in TopologicalSorter(children).static_order():
        inside = [
            found[child].vector if child in found else content[child]
            for child in sorted(children.get(row, ()))
        ]
        if inside:
            found[row] = World(len(inside), half(composed(content[row], inside, pooling)))
    return found


def assert_composed(db: WorldDB, pooling: str = "attention", model_id: str = "exact") -> None:
    """Assert that what the store keeps is what a recomposition from scratch gives."""
    stored, fresh = stored_worlds(db, model_id), recomposed_worlds(db, pooling, model_id)
    assert {row: world.children for row, world in stored.items()} == {
        row: world.children for row, world in fresh.items()
    }
    for row, world in fresh.items():
        apart = float(np.abs(world.vector - stored[row].vector).max())
        assert apart < CLOSE, f"world row {row} of {world.children}: {apart}"

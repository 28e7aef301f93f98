"""One child's change in a composed world: does it cost more when the world is large?

python -m bench.composition [--large 100000]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import worlddb
from bench.percentiles import line, percentile, timed
from worlddb import Id, NodeDraft, WorldDB

DIM = 256


class Instant:
    """An embedder that costs nothing: its vectors were made before, and what they say is noise."""

    model_id = "instant"
    dim = DIM
    batch_size = 2_048

    def __init__(self) -> None:
        made = np.random.default_rng(1).standard_normal((self.batch_size, DIM))
        self._made: NDArray[np.float32] = made.astype(np.float32)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return as many vectors as there are texts."""
        return self._made[: len(texts)]

    embed_documents = embed_queries


def filled(db: WorldDB, size: int) -> Id:
    """Make a world of `size` children, and compose it."""
    with db.transaction(bulk=True) as tx:
        world = tx.create_node(type="Topic", name="world").id
        tx.create_nodes(
            NodeDraft(type="Fact", name=f"child {i}", parent=world) for i in range(size)
        )
    db.reindex()
    return world


def changing(size: int, count: int) -> tuple[list[float], list[float]]:
    """Return how long catching up takes after one child came, and after it was closed, in µs.

    The commit and the model are not in it: what is timed is finding what changed, taking vectors
    out of the sums or putting them in, and writing the world's own.
    """
    with worlddb.open(":memory:", embedder=Instant()) as db:
        world = filled(db, size)
        vectors = db.engine.search.vectors()
        came: list[float] = []
        closed: list[float] = []
        for i in range(count + 20):
            with db.transaction() as tx:
                child = tx.create_node(type="Fact", name=f"new {i}", parent=world).id
            came += timed(lambda _: vectors.catch_up(), 1)
            # Closed again at once, so that a world of ten stays one of ten.
            with db.transaction() as tx:
                tx.retire(child)
            closed += timed(lambda _: vectors.catch_up(), 1)
        return came[20:], closed[20:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    small, large = changing(10, args.count), changing(args.large, args.count)
    print(f"composing after one change, {DIM} numbers (in memory, no model)")
    for what, few, many in zip(("new child", "closed child"), small, large, strict=True):
        print(line(f"{what} in a world of 10", few))
        print(line(f"{what} in a world of {args.large:,}", many))
        print(f"  ratio of P50 {percentile(many, 0.5) / percentile(few, 0.5):.2f}")


if __name__ == "__main__":
    main()

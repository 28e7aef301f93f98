"""Adding one child to a world: does it cost more when the world is large?

python -m bench.sets [--large 100000]
"""

from __future__ import annotations

import argparse

import worlddb
from bench.percentiles import line, percentile, timed
from worlddb import NodeDraft


def adding(size: int, count: int) -> list[float]:
    """Return how long single commits of one child take in a world of `size`, in microseconds."""
    with worlddb.open(":memory:") as db:
        with db.transaction(bulk=True) as tx:
            world = tx.create_node(type="Topic", name="world").id
            tx.create_nodes(
                NodeDraft(type="Fact", name=f"child {i}", parent=world) for i in range(size)
            )

        def add(i: int) -> None:
            with db.transaction() as tx:
                tx.create_node(type="Fact", name=f"one more {i}", parent=world)

        timed(add, 20)
        return timed(add, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    small, large = adding(10, args.count), adding(args.large, args.count)
    print("one commit that adds one child (in memory, so that no disk hides the difference)")
    print(line("to a world of 10", small))
    print(line(f"to a world of {args.large:,}", large))
    print(f"  ratio of P50 {percentile(large, 0.5) / percentile(small, 0.5):.2f}")


if __name__ == "__main__":
    main()

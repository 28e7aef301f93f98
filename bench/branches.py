"""Forking a store: does it cost more, in time or in space, when the store is large?

python -m bench.branches [--sizes 1000 10000 100000] [--count 20]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import worlddb
from bench.percentiles import line, percentile, timed
from worlddb import NodeDraft, WorldDB

WRITES = 20  # Single commits on a branch, to say what one takes.


def store(path: Path, size: int) -> WorldDB:
    """Return a store of `size` nodes, each with a text, in worlds of a thousand."""
    db = worlddb.open(path, embedder="none")
    with db.transaction(bulk=True) as tx:
        for start in range(0, size, 1_000):
            world = tx.create_node(type="Topic", name=f"world {start}").id
            tx.create_nodes(
                NodeDraft(type="Fact", name=f"fact {i}", content=f"text {i}", parent=world)
                for i in range(start, min(start + 1_000, size))
            )
    path_of = db.path
    db.close()  # The log of a load is moved once, and is no cost of a fork.
    return worlddb.open(path_of, embedder="none")


def measure(folder: Path, size: int, count: int) -> tuple[list[float], int, int, int]:
    """Return the times of forks, the size of the store, of a fresh branch, of one after writes."""
    with store(folder / f"{size}.db", size) as db:
        db.branch("first").close()

        def fork(i: int) -> None:
            db.engine.store.fork(f"b{i}", "bench")

        times = timed(fork, count)
        for i in range(1, count):
            db.drop_branch(f"b{i}")
        fresh = next(one.size_bytes for one in db.branches() if one.name == "b0")
        with db.branch("b0") as branch:
            for i in range(WRITES):
                with branch.transaction() as tx:
                    tx.create_node(type="Fact", name=f"one more {i}", content="on the branch")
        written = next(one.size_bytes for one in db.branches() if one.name == "b0")
        return times, db.engine.store.size_bytes(), fresh, written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--count", type=int, default=20)
    args = parser.parse_args()
    medians = []
    print("making a branch")
    with tempfile.TemporaryDirectory() as folder:
        for size in args.sizes:
            times, whole, fresh, written = measure(Path(folder), size, args.count)
            medians.append(percentile(times, 0.5))
            print(line(f"of a store of {size:,} nodes", times))
            print(
                f"  store {whole / 1024:,.0f} KiB, fresh branch {fresh} bytes, "
                f"after {WRITES} commits {written / 1024:,.0f} KiB"
            )
    print(f"  ratio of P50, largest to smallest store {medians[-1] / medians[0]:.2f}")


if __name__ == "__main__":
    main()

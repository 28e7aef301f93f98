"""What it costs to verify that a node which is read is the node that was written.

python -m bench.verified_reads [--nodes 5000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import worlddb
from bench.percentiles import line, percentile
from worlddb import Memory

CONTENT = "Ada moved to house number {0} in Lyon and told Bob about the garden behind it. " * 2
QUESTIONS = ("Where does Ada live?", "What did Ada tell Bob?", "Which house has a garden?")


def fill(path: str, nodes: int) -> None:
    """Write memories of some 160 bytes each."""
    with worlddb.open(path) as db, db.transaction(bulk=True) as tx:
        home = tx.create_node(type="Scope", name="user:ada", created_at="1970-01-01T00:00:00Z").id
        for number in range(nodes):
            tx.create_node(type="Memory", content=CONTENT.format(number), parent=home)


def compare(path: str, count: int) -> None:
    """Print how long reads take without and with verification, both in turn."""
    with (
        Memory(path, user_id="ada", verify_reads=False) as plain,
        Memory(path, user_id="ada") as verified,
    ):
        ids = [one.id for one in plain.list(limit=100)]
        reads: dict[str, tuple[int, Callable[[Memory, int], object]]] = {
            "get one node": (count, lambda memory, i: memory.db.get(ids[i % len(ids)])),
            "list 50 memories": (count // 10, lambda memory, i: memory.list(limit=50)),
            "recall 10 hits": (
                count // 10,
                lambda memory, i: memory.recall(QUESTIONS[i % len(QUESTIONS)], k=10),
            ),
        }
        for what, (times, read) in reads.items():
            taken: dict[Memory, list[float]] = {plain: [], verified: []}
            for i in range(times):
                for memory, found in taken.items():
                    started = time.perf_counter_ns()
                    read(memory, i)
                    found.append((time.perf_counter_ns() - started) / 1000)
            print(line(f"{what}, verify_reads=False", taken[plain]))
            print(line(f"{what}, verify_reads=True", taken[verified]))
            more = percentile(taken[verified], 0.5) - percentile(taken[plain], 0.5)
            print(f"  {what}: {more:+.1f} µs at P50")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--count", type=int, default=5_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "reads.db")
        fill(path, args.nodes)
        print(f"reads from a store of {args.nodes:,} memories, without and with verification")
        compare(path, args.count)


if __name__ == "__main__":
    main()

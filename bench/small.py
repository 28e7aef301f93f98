"""Small calls on a large store: one durable write, one hop, opening.

python -m bench.small FILE        (FILE: a store that bench.load --keep left)
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time

import worlddb
from bench.timing import line, percentile, timed

PAPER_HOP_P95_US = 12_800
OPEN = """
import sys, time
import worlddb
worlddb.WorldDB  # Importing is not opening.
started = time.perf_counter()
db = worlddb.open(sys.argv[1])
db.get(db.root_id)
print((time.perf_counter() - started) * 1e6)
"""


def opening(path: str, count: int = 5) -> list[float]:
    """Return how long a new process takes to open the store and read one node, in microseconds."""
    command = [sys.executable, "-c", OPEN, path]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(count)]
    return [float(run.stdout) for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--count", type=int, default=2_000)
    args = parser.parse_args()
    taken = opening(args.path)
    print(f"opening and first read, new process: {percentile(taken, 0.5) / 1000:.1f} ms P50")
    with worlddb.open(args.path) as db:
        head = db.log(limit=1, newest_first=True)[0]
        rng = random.Random(3)
        with db._store.read() as reader:
            last = reader.head().nodes
            rows = [rng.randint(2, last) for _ in range(4 * args.count)]
            ids = [reader.nodes([row])[row].id for row in rows]
        print(f"store of {last:,} nodes, commit {head.seq}")
        hop = timed(
            lambda i: db.query().seeds([ids[i]]).traverse("refers_to").execute(), args.count
        )
        print(line("1 hop by query(), nodes and edges as objects", hop))
        ratio = PAPER_HOP_P95_US / percentile(hop, 0.95)
        print(f"  P95 is {ratio:.0f} x faster than the paper's {PAPER_HOP_P95_US / 1000} ms")
        print(line("edges(id)", timed(lambda i: db.edges(ids[i]), args.count)))
        print(line("get(id)", timed(lambda i: db.get(ids[i]), args.count)))

        def write(i: int) -> None:
            with db.transaction(actor="bench") as tx:
                node = tx.create_node(
                    type="Memory", content=f"memory {i} about the {i % 97} things we spoke of"
                )
                for other in ids[3 * i : 3 * i + 3]:
                    tx.write_edge("refers_to", node.id, other)

        taken = timed(write, args.count)
        print(line("durable write: node, 3 edges, text, journal, states", taken))
        started = time.perf_counter()
        db.close()
        print(f"  closing {1000 * (time.perf_counter() - started):.0f} ms")


if __name__ == "__main__":
    main()

"""Small calls on a large store: one durable write, one hop, opening.

python -m bench.small FILE        (FILE: a store that bench.load --keep left)
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time

import worlddb
from bench.percentiles import line, percentile, timed
from worlddb import Id, NodeDraft, WorldDB

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


def new_scope(db: WorldDB, size: int) -> Id:
    """Make a world with `size` memories in it."""
    with db.transaction(actor="bench") as tx:
        scope = tx.create_node(type="Scope", name="a user").id
        tx.create_nodes(
            NodeDraft(type="Memory", content=f"an old memory, number {i}", parent=scope)
            for i in range(size)
        )
    return scope


def writing(db: WorldDB, where: str, ids: list[Id], parent: Id | None, count: int) -> None:
    """Time single durable writes and print them."""

    def write(i: int) -> None:
        with db.transaction(actor="bench") as tx:
            text = f"memory {i} about the {i % 97} things we spoke of"
            node = tx.create_node(type="Memory", content=text, parent=parent)
            for j in range(3):
                tx.write_edge("refers_to", node.id, ids[(3 * i + j) % len(ids)])

    print(line(where, timed(write, count)))


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
        with db.engine.store.read() as reader:
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

        print("durable write: a node and 3 edges, with text, journal and ancestors' states")
        scope = new_scope(db, 1_000)
        writing(db, "into a scope of 1,000 in that store", ids, scope, args.count)
        writing(db, "into the root world itself", ids, None, args.count)
        with tempfile.TemporaryDirectory() as folder, worlddb.open(f"{folder}/small.db") as other:
            near = other.children(new_scope(other, 1_000))
            writing(other, "into a store of 1,000", [n.id for n in near], near[0].parent, 1_000)
        started = time.perf_counter()
        db.close()
        print(f"  closing {1000 * (time.perf_counter() - started):.0f} ms")


if __name__ == "__main__":
    main()

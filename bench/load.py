"""Bulk load: one transaction, through the handlers, addresses, states and text index included.

python -m bench.load [--nodes 1000000] [--edges 2500000] [--keep FILE]
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from pathlib import Path

import worlddb
from bench.corpus import drafts, edges

PAPER_WRITES_PER_S = 5_401


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=2_500_000)
    parser.add_argument("--keep", type=Path, help="where to leave the store")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "load.db"
        nodes = drafts(args.nodes)
        gc.collect()
        gc.freeze()
        started = time.perf_counter()
        with worlddb.open(path) as db:
            with db.transaction(actor="bench", bulk=True) as tx:
                ids = tx.create_nodes(nodes)
                nodes_s = time.perf_counter() - started
                preparing = time.perf_counter()
                drawn = edges(ids, args.edges)
                preparing = time.perf_counter() - preparing
                tx.write_edges("refers_to", drawn)
                edges_s = time.perf_counter() - started - nodes_s - preparing
            total_s = time.perf_counter() - started - preparing
        closing_s = time.perf_counter() - started - preparing - total_s
        writes = args.nodes + args.edges
        print(f"{args.nodes:,} nodes + {args.edges:,} refers_to edges in one transaction")
        print("  (one thread; at the end, beside SQLite, others analyse words and lay out digests)")
        print(
            f"  nodes {nodes_s:.1f} s, edges {edges_s:.1f} s, "
            f"indexes, states, journal, fsync {total_s - nodes_s - edges_s:.1f} s"
        )
        print(
            f"  total {total_s:.1f} s = {writes / total_s:,.0f} writes/s, "
            f"{writes / total_s / PAPER_WRITES_PER_S:.1f} x the paper's {PAPER_WRITES_PER_S:,}"
        )
        print(
            f"  closing (log into file) {closing_s:.1f} s, "
            f"file {os.path.getsize(path) / 1e6:,.0f} MB"
        )


if __name__ == "__main__":
    main()

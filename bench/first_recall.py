"""The first recall of a process: a world is read, its vectors are loaded, and the embedder.

python -m bench.first_recall [--memories N] [--runs N]

A store with N memories of one user is made and embedded. Then each run is a new process that opens
the store, recalls once, and recalls once more. The files are in the cache of the system. A kernel
in the same process (plain Python, `bench.passages`) says how fast the machine is at that moment.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import worlddb
from bench.passages import kernel_ms, passages
from worlddb import NodeDraft

MEMORIES, RUNS = 10_000, 5
KERNELS = 20  # a median of fewer moves with whatever else the machine does


def fill(path: Path, count: int) -> None:
    """Make a store with the memories of one user, each a sentence or two, and embed them."""
    texts: dict[str, None] = {}
    for text in passages(count):
        title, *lines = text.split(". ")
        texts.update(dict.fromkeys((title, *(". ".join(pair) for pair in pairwise(lines)))))
    drafts = [NodeDraft(type="Memory", content=text) for text in list(texts)[:count]]
    with worlddb.Memory(path, recluster="off") as memory:
        memory.write("I live in Rome.", user_id="ada")
        scope = next(iter(memory.db.children(memory.db.root_id))).id
        with memory.db.transaction(actor="bench") as tx:
            tx.create_nodes(replace(draft, parent=scope) for draft in drafts)
        memory.db.reindex()


def first(path: str) -> dict[str, float]:
    """Open a store and recall twice; return the times in milliseconds."""
    kernel = statistics.median(kernel_ms() for _ in range(KERNELS))
    with worlddb.Memory(path, recluster="off") as memory:
        wall, cpu = time.perf_counter(), time.process_time()
        memory.recall("Where do I live?", user_id="ada")
        once = time.perf_counter(), time.process_time()
        memory.recall("Who directed the film?", user_id="ada")
        again = time.perf_counter()
    return {
        "first": (once[0] - wall) * 1e3,
        "first_cpu": (once[1] - cpu) * 1e3,
        "second": (again - once[0]) * 1e3,
        "kernel": kernel,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        print(json.dumps(first(args.once)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "first.db"
        fill(path, args.memories)
        command = [sys.executable, "-m", "bench.first_recall", "--once", str(path)]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            for _ in range(args.runs + 1)
        ][1:]  # The first fills the caches of the system.
    print(f"memories {args.memories:,}, processes {args.runs}; the median, the best")
    for name, what in (
        ("first", "first recall, ms"),
        ("first_cpu", "of that processor time, ms"),
        ("second", "second recall, ms"),
        ("kernel", "the kernel beside it, ms"),
    ):
        found = [run[name] for run in runs]
        print(f"  {what:<28} {statistics.median(found):8.1f} {min(found):8.1f}")


if __name__ == "__main__":
    main()

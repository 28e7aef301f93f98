"""Recall with a filter beside recall without one, in worlds of ten and a hundred thousand.

python -m bench.filters [--sizes 10000 100000] [--asked 60]

The times are processor time: what else runs on the machine does not count.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.corpus import drafts
from bench.percentiles import percentile
from bench.searches import Drawn
from worlddb import Memory

BATCH = 10_000
FILTERS: Mapping[str, Mapping[str, Any] | None] = {
    "no filter": None,
    "half": {"half": 1},
    "a tenth": {"tenth": 3},
    "one in 100": {"hundredth": 7},
    "one in 1,000": {"thousandth": 5},
    "ten nodes": {"number": {"$in": list(range(10))}},
    "a range of numbers": {"number": {"$gte": 500, "$lt": 900}},
    "since a day": {"valid_from": {"$gte": "2020-01-01"}},
    "a tag, and not a type": {"tags": {"$contains": "even"}, "type": {"$ne": "Topic"}},
}


def fill(memory: Memory, size: int) -> None:
    """Write nodes with metadata into the scope of one user."""
    memory.write("begin", user_id="ada")
    scope = memory.list_scopes()[0].id
    made = drafts(size)
    for first in range(0, size, BATCH):
        with memory.db.transaction("bench", bulk=True) as tx:
            texts = [replace(draft, parent=scope) for draft in made[first : first + BATCH]]
            for number, ident in enumerate(tx.create_nodes(texts, reuse=False), first):
                tx.add_metadata(
                    ident,
                    {
                        "number": number,
                        "half": number % 2,
                        "tenth": number % 10,
                        "hundredth": number % 100,
                        "thousandth": number % 1000,
                        "tags": ["even"] if number % 2 == 0 else ["odd"],
                    },
                )
    # A write brings the index of names up to what was loaded, as in any store that is in use.
    memory.write("end", user_id="ada")


def processor_ms(memory: Memory, question: str, where: Mapping[str, Any] | None) -> float:
    """Ask a question; return the milliseconds of processor time it took."""
    started = time.process_time()
    memory.recall(question, user_id="ada", where=where)
    return 1000 * (time.process_time() - started)


def measure(size: int, asked: int) -> None:
    """Print the times of recalls in a world of so many nodes."""
    rng = random.Random(3)
    texts = [draft.content.split() for draft in rng.sample(drafts(size), asked)]
    questions = [" ".join(rng.sample(words, 3)) for words in texts]
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "a.db", embedder=Drawn(), recluster="off") as memory,
    ):
        fill(memory, size)
        memory.recall("begin", user_id="ada")
        first = processor_ms(memory, "begin", {"half": 1, "type": "Fact"})
        print(f"{size:,} nodes; the first filter takes {first / 1000:.2f} s")
        plain = 0.0
        for name, where in FILTERS.items():
            taken = [processor_ms(memory, question, where) for question in questions]
            middle = percentile(taken, 0.5)
            plain = plain or middle
            ratio = middle / plain
            print(f"  {name:<24} P50 {middle:7.1f} ms, {ratio:.2f} x unfiltered")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--asked", type=int, default=60)
    args = parser.parse_args()
    for size in args.sizes:
        measure(size, args.asked)


if __name__ == "__main__":
    main()

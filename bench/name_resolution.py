"""Resolving a name among ten thousand and among a million that the store holds.

python -m bench.name_resolution [--count N]

Names are made: given names and surnames of syllables, both Zipf-distributed, so that some are very
common. Half of the questions are names that are there with a slip of one letter, half are new.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from itertools import accumulate
from pathlib import Path

import worlddb
from bench.percentiles import line, timed
from worlddb import DraftNode, NodeDraft, WorldDB
from worlddb.identity.store_resolver import name_index, resolver_in
from worlddb.store.rows import ROOT_ROW

PAPER_MS = "5 to 15 ms at 10,000"
SYLLABLES = "ba be bi bo da de di do fa fe ga ge ka ke ki la le li lo ma me mi mo na ne ni no ra re"
GIVEN, SURNAMES = 2_000, 20_000


def made(count: int, rng: random.Random, size: tuple[int, int]) -> list[str]:
    """Return different words of some syllables."""
    parts = SYLLABLES.split()
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choices(parts, k=rng.randint(*size))).capitalize()] = None
    return list(words)


def names(count: int, seed: int = 3) -> list[str]:
    """Return names of people, some of them common."""
    rng = random.Random(seed)
    given, surnames = made(GIVEN, rng, (2, 3)), made(SURNAMES, rng, (2, 4))
    by_given = list(accumulate(1 / (rank + 10) for rank in range(GIVEN)))
    by_surname = list(accumulate(1 / (rank + 50) for rank in range(SURNAMES)))
    firsts = rng.choices(given, cum_weights=by_given, k=count)
    lasts = rng.choices(surnames, cum_weights=by_surname, k=count)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def slipped(name: str, rng: random.Random) -> str:
    """Return a name with one letter left out or doubled."""
    at = rng.randrange(1, len(name) - 1)
    return name[:at] + name[at + 1 :] if rng.random() < 0.5 else name[:at] + name[at] + name[at:]


def asked(held: list[str], count: int) -> list[DraftNode]:
    """Return drafted nodes to resolve."""
    rng = random.Random(5)
    new = names(count, seed=17)
    return [
        DraftNode(
            key="asked",
            type="Entity",
            name=new[i] if i % 2 else slipped(rng.choice(held), rng),
            resolvable=True,
        )
        for i in range(count)
    ]


def measure(db: WorldDB, size: int, count: int) -> None:
    """Write names, index them, and resolve some."""
    held = names(size)
    with db.transaction(actor="bench", bulk=True) as tx:
        tx.create_nodes(NodeDraft(type="Entity", name=name) for name in held)
    started = time.perf_counter()
    name_index(db.engine.store).catch_up()
    print(f"{size:,} names, indexed in {time.perf_counter() - started:.1f} s")
    questions = asked(held, count)
    with db.engine.store.read() as reader:
        resolver = resolver_in(reader, ROOT_ROW, db.engine.clock())
        taken = timed(lambda i: resolver.matches(questions[i]), count)
    print(line("one name, embedding not included", taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    args = parser.parse_args()
    print(f"the paper spends {PAPER_MS}")
    with tempfile.TemporaryDirectory() as folder:
        for size in (10_000, 1_000_000):
            with worlddb.open(Path(folder) / f"{size}.db", durability="normal") as db:
                measure(db, size, args.count)


if __name__ == "__main__":
    main()

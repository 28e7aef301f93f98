"""The processor time of writing a passage with a title and several names.

python -m bench.passages [--held N] [--written N] [FILE]

Passages are made: a title, then sentences about it that name people, works and places of a made
world. Names come back as in an encyclopedia, so most are known and some are new. With a FILE
(`{"set": {"passages": {title: text}}}`, as `worlddb eval multihop` reads it) its passages are
written instead. The store holds `--held` passages before the clock starts. A kernel in the same run
(plain Python and the same number of rounds) says how fast the machine is at that moment.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import worlddb
from bench.name_resolution import made
from bench.percentiles import percentile

HELD, WRITTEN = 1_000, 200
GIVEN, SURNAMES, TOWNS = 300, 1_500, 200
KERNEL_ROUNDS = 3_000  # about a millisecond on a quiet machine
SENTENCES = (
    "{work} is a film of {year} that {other} directed.",
    "It was written by {person} and {other}, who had met in {town}.",
    "{person} was born in {town} and studied with {other} until {year}.",
    "The music is by {other}, and the part of the mother was played by {third}.",
    "After {year} {third} moved to {town}, where the papers of {person} are kept.",
)


def passages(count: int, seed: int = 7) -> Iterator[str]:
    """Yield made passages; half of their names were named before."""
    rng = random.Random(seed)
    given, surnames = made(GIVEN, rng, (2, 3)), made(SURNAMES, rng, (2, 4))
    towns = made(TOWNS, rng, (2, 3))
    people: list[str] = []

    def person() -> str:
        if not people or rng.random() < 0.5:
            people.append(f"{rng.choice(given)} {rng.choice(surnames)}")
        return rng.choice(people)

    for number in range(count):
        title = f"The {rng.choice(surnames)} of {rng.choice(towns)}"
        said = {
            "work": title,
            "year": 1900 + number % 120,
            "person": person(),
            "other": person(),
            "third": person(),
            "town": rng.choice(towns),
        }
        chosen = rng.sample(SENTENCES[1:], 3)
        yield f"{title}: " + " ".join([SENTENCES[0], *chosen]).format(**said)


def read_passages(path: Path) -> list[str]:
    """Return the passages of a file, in an order of their own."""
    body = path.read_bytes()
    sets = json.loads(lzma.decompress(body) if path.suffix == ".xz" else body)
    found = [f"{title}: {text}" for one in sets.values() for title, text in one["passages"].items()]
    random.Random(5).shuffle(found)
    return found


def kernel_ms() -> float:
    """Return the processor time of a fixed piece of plain Python."""
    started = time.thread_time_ns()
    rows = {str(number): (number, [number]) for number in range(KERNEL_ROUNDS)}
    sorted(rows.items())
    return (time.thread_time_ns() - started) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="passages of a multi-hop set")
    parser.add_argument("--held", type=int, default=HELD, help="passages in the store before")
    parser.add_argument("--written", type=int, default=WRITTEN, help="passages that are timed")
    args = parser.parse_args()
    count = args.held + args.written
    texts = read_passages(args.file)[:count] if args.file else list(passages(count))
    times: list[float] = []
    kernel: list[float] = []
    names = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        worlddb.Memory(Path(folder) / "passages.db", recluster="off") as memory,
    ):
        for text in texts[: args.held]:
            memory.write(text, user_id="ada")
        store = memory.db.engine.store
        statements = store.statements
        for text in texts[args.held :]:
            kernel.append(kernel_ms())
            started = time.thread_time_ns()
            names += len(memory.write(text, user_id="ada").entities)
            times.append((time.thread_time_ns() - started) / 1e6)
        statements = store.statements - statements
    middle, each = statistics.median(times), names / len(times)
    print(f"passages held {args.held:,}, written {len(times):,}, {each:.1f} names each")
    print(f"processor time P50/P95 {middle:.2f} / {percentile(times, 0.95):.2f} ms")
    print(f"the kernel beside it P50 {statistics.median(kernel):.2f} ms")
    print(f"SQL statements sent by one write {statements / len(times):.0f}")


if __name__ == "__main__":
    main()

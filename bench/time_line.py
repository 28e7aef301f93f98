"""What a statement costs that is one of many about the same relation of the same person.

python -m bench.time_line [--writes 600]

Four histories: each statement later than all before it; each earlier; in any order; and later, from
a tool, whose texts are compared with what they may repeat. Printed is the median processor time of
the 20 writes up to a number, in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import worlddb
from bench.percentiles import machine

AT = (50, 100, 200, 400, 600, 1_000, 2_000, 4_000)
"""Numbers of writes after which a median is printed."""
MEDIAN_OF = 20
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
STRIDE, ROUND = 7_919, 100_003  # primes: every day once, in an order without a pattern
CONSONANTS, VOWELS = "bcdfghklmnprstvz", "aeiou"
Told = Callable[[int], dict[str, Any]]
HISTORIES: dict[str, Told] = {
    "later and later": lambda number: {"at": FIRST + timedelta(hours=number)},
    "earlier and earlier": lambda number: {"at": FIRST - timedelta(hours=number)},
    "in any order": lambda number: {"at": FIRST + timedelta(hours=number * STRIDE % ROUND)},
    "later, from a tool": lambda number: {
        "at": FIRST + timedelta(hours=number),
        "origin": "tool",
    },
}


def town(number: int) -> str:
    """Return a name that no other number has."""
    word = ""
    for letters in (CONSONANTS, VOWELS) * 3:
        number, at = divmod(number, len(letters))
        word += letters[at]
    return f"{word.capitalize()}rn"


def costs(told: Told, writes: int) -> list[float]:
    """Return the processor time of each write, in milliseconds."""
    taken = []
    with (
        tempfile.TemporaryDirectory() as folder,
        worlddb.Memory(Path(folder) / "line.db", user_id="ada", recluster="off") as memory,
    ):
        for number in range(writes):
            started = time.thread_time()
            memory.write(f"I moved to {town(number)}.", **told(number))
            taken.append((time.thread_time() - started) * 1000)
    return taken


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=600)
    args = parser.parse_args(argv)
    ends = [end for end in AT if end <= args.writes]
    print(machine())
    print(f"{'processor ms of a statement, after':<36}" + "".join(f"{end:>8,}" for end in ends))
    for name, told in HISTORIES.items():
        taken = costs(told, args.writes)
        medians = [statistics.median(taken[max(0, end - MEDIAN_OF) : end]) for end in ends]
        print(f"  {name:<34}" + "".join(f"{one:>8.1f}" for one in medians), flush=True)


if __name__ == "__main__":
    main()

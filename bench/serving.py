"""Durable writes beside a bare kernel: in a program, by 32 HTTP writers, by 100 mixed clients.

python -m bench.serving [--quick] [--workers 0 1 2]

Over HTTP the same is asked of servers with several numbers of workers. The kernel is plain SQLite
in the same run: a row, an FTS5 row and an fsync for each commit, and the same with 16 rows for each
fsync. Times are those of the clients. Processor time of a request is that of all processes of the
server, and that of the clients; from both follows what the cores allow at best. Each client has a
token of its own, bound to its user. Every acknowledged write is read back.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

import worlddb
from bench.http_load import MIX, Client, Tally, make_tokens, serve
from bench.percentiles import machine, percentile

ROWS_TOGETHER = 16  # As many writers as usually wait behind one fsync.
TEXT = "{} likes night trains and told me so in Lisbon, note {}."
ONE_CLIENT = {"write": 1}
CREWS = (
    ("one writer", 1, ONE_CLIENT),
    ("32 writers", 32, ONE_CLIENT),
    ("100 mixed clients", 100, MIX),
)
"""What is asked of each server, one after the other: by how many clients, and which mix."""


def kernel(folder: Path, commits: int, rows: int) -> float:
    """Return how many rows a second plain SQLite makes durable, so many in each transaction."""
    con = apsw.Connection(str(folder / f"kernel-{rows}.db"))
    con.pragma("journal_mode", "wal")
    con.pragma("synchronous", "FULL")
    con.execute(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, user TEXT, text TEXT, at INTEGER);"
        "CREATE INDEX by_user ON notes (user, at);"
        "CREATE VIRTUAL TABLE words USING fts5 (text, content='')"
    )
    started = time.perf_counter()
    for commit in range(commits):
        con.execute("BEGIN IMMEDIATE")
        for row in range(commit * rows, (commit + 1) * rows):
            text = TEXT.format("Anna Berg", row)
            values = (row + 1, f"user {row % 100}", text, row)
            con.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", values)
            con.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row + 1, text))
        con.execute("COMMIT")
    took = time.perf_counter() - started
    con.close()
    return commits * rows / took


def program(folder: Path, writers: int, writes: int) -> tuple[float, float, float]:
    """Return writes a second, processor ms and statements of a write, by threads on one store."""
    with worlddb.Memory(folder / f"program-{writers}.db", embedder="none") as memory:

        def write(writer: int, first: int, last: int) -> None:
            for number in range(first, last):
                memory.write(TEXT.format("Anna Berg", number), user_id=f"user {writer}")

        for writer in range(writers):
            write(writer, 0, 5)
        memory.db.wait()
        store = memory.db.engine.store
        threads = [
            threading.Thread(target=write, args=(number, 5, 5 + writes // writers))
            for number in range(writers)
        ]
        statements, cpu, started = store.statements, time.process_time(), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took, cpu = time.perf_counter() - started, time.process_time() - cpu
        made = writes // writers * writers
        return made / took, cpu / made * 1000, (store.statements - statements) / made


class Crew:
    """Clients that send requests of a mix to one server for a while."""

    def __init__(
        self,
        url: str,
        clients: int,
        first: int,
        mix: dict[str, int],
        pid: int,
        tokens: Sequence[str] = (),
    ) -> None:
        self.tally = Tally()
        self._pid = pid
        self._cpu_ms = 0.0, 0.0
        self.clients = [Client(url, first + n, self.tally, mix, tokens) for n in range(clients)]

    async def work(self, seconds: float) -> float:
        """Return how long it took; acknowledged writes that are missing count as errors."""
        await asyncio.gather(*(one.connect() for one in self.clients))
        started, server, own = time.perf_counter(), server_cpu_s(self._pid), time.process_time()
        await asyncio.gather(*(one.run(started + seconds) for one in self.clients))
        took = time.perf_counter() - started
        made = max(1, sum(map(len, self.tally.taken.values())))
        server, own = server_cpu_s(self._pid) - server, time.process_time() - own
        self._cpu_ms = server / made * 1000, own / made * 1000
        for one in self.clients:
            for lost in await one.lost():
                self.tally.errors[f"lost: {lost}"] += 1
        return took

    def line(self, what: str, took: float) -> str:
        """Return one printed row."""
        taken = self.tally.taken
        total, writes = sum(map(len, taken.values())), taken["write"] or [0.0]
        p50, p99 = percentile(writes, 0.5), percentile(writes, 0.99)
        fewest = min(len(one.written) for one in self.clients)
        server, own = self._cpu_ms
        best = (os.cpu_count() or 1) * 1000 / (server + own)
        return (
            f"    {what:<20} {total / took:,.0f} requests/s, {len(writes) / took:,.0f} writes/s, "
            f"write P50/P99 {p50:,.1f} / {p99:,.1f} ms, fewest writes of a client {fewest}, "
            f"{sum(self.tally.errors.values())} errors\n"
            f"      processor: server {server:.2f} ms, clients {own:.2f} ms for a request; "
            f"all cores together allow {best:,.0f} requests/s"
        )


def server_cpu_s(pid: int) -> float:
    """Return the processor time of a process and its children so far (Linux)."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = 0
    for one in (str(pid), *children):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # utime and stime.
    return ticks / os.sysconf("SC_CLK_TCK")


async def over_http(url: str, seconds: float, pid: int, tokens: Sequence[str]) -> int:
    """Print what clients get; return how many errors there were."""
    errors = 0
    first = 0
    for what, clients, mix in CREWS:
        crew = Crew(url, clients, first, mix, pid, tokens)
        await crew.clients[0].connect()
        await crew.clients[0].ask("POST", "/v1/recall", {"query": "warm up"})
        print(crew.line(what, await crew.work(seconds)), flush=True)
        for error, count in crew.tally.errors.most_common(3):
            print(f"      {count} x {error}")
        errors += sum(crew.tally.errors.values())
        first += clients
    return errors


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds for each figure")
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 1, 2], metavar="N")
    args = parser.parse_args(argv)
    size, seconds = (300, 3.0) if args.quick else (2_000, 20.0)
    print(machine())
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        figures["one"] = kernel(folder, size, 1)
        figures["many"] = kernel(folder, size // ROWS_TOGETHER, ROWS_TOGETHER)
        print(
            f"  kernel: {figures['one']:,.0f} commits/s; {ROWS_TOGETHER} rows for each fsync: ",
            end="",
        )
        print(f"{figures['many']:,.0f} rows/s")
        for writers in (1, ROWS_TOGETHER):
            rate, cpu_ms, statements = program(folder, writers, size)
            print(
                f"  Memory.write, {writers} thread(s): {rate:,.0f} writes/s (kernel "
                f"{figures['one'] / rate:.1f} x), {cpu_ms:.2f} ms of processor time, "
                f"{statements:.0f} statements",
                flush=True,
            )
        failures = sum(served(folder, workers, seconds) for workers in args.workers)
    return 1 if failures else 0


def served(folder: Path, workers: int, seconds: float) -> int:
    """Print what the clients of one server get; return how much went wrong."""
    print(f"  serve --workers {workers}", flush=True)
    file = folder / f"tokens-{workers}.toml"
    tokens = make_tokens(file, sum(clients for _, clients, _ in CREWS))
    options = "--workers", str(workers), "--tokens-file", str(file)
    process, url = serve(folder / f"served-{workers}.db", *options)
    try:
        errors = asyncio.run(over_http(url, seconds, process.pid, tokens))
    finally:
        process.terminate()
        code = process.wait(60)
    if code:
        print(f"    the server left with {code}")
    return errors + code


if __name__ == "__main__":
    sys.exit(main())

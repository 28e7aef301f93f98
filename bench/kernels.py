"""Five figures beside a bare kernel that does the same work in the same run.

python -m bench.kernels [--nodes 20000] [--memories 10000] [--count 200]

The kernel is plain SQLite with the same rows, indexes, FTS5 and fsync, and plain numpy: no
addresses, journal, states, names or claims. Both take turns call by call, so that a busy machine is
as busy for one as for the other. Printed are P50 of the time and of the processor time.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np

import worlddb
from bench.corpus import drafts, edges
from bench.percentiles import machine, percentile

SCHEMA = """
    CREATE TABLE nodes (
        id INTEGER PRIMARY KEY, address BLOB UNIQUE, type TEXT, name TEXT, text TEXT
    );
    CREATE TABLE links (source INTEGER, target INTEGER, type TEXT, address BLOB UNIQUE);
    CREATE VIRTUAL TABLE words USING fts5 (name, text, content='');
"""
INDEXES = """
    CREATE INDEX ahead ON links (source, target);
    CREATE INDEX back ON links (target, source);
"""
HOP = """
    SELECT n.id, n.address, n.type, n.name, n.text, l.address FROM links l
    JOIN nodes n ON n.id = l.target WHERE l.source = ?
"""
SEARCH = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT 50"
PEOPLE = ("Anna Berg", "Tom Reed", "Sarah Chen", "Omar Haddad", "Mia Novak", "Ravi Patel")
THINGS = ("green tea", "old maps", "night trains", "chess", "ceramics", "long walks", "jazz")
EDGES_PER_NODE = 2.5
HITS = 10


class Row(NamedTuple):
    """A node as the kernel returns it, with the edge that led to it."""

    id: int
    address: bytes
    type: str
    name: str
    text: str
    edge: bytes


class Kernel:
    """Plain SQLite in a file."""

    def __init__(self, path: Path) -> None:
        self.con = apsw.Connection(str(path))
        self.con.pragma("journal_mode", "wal")
        self.con.pragma("synchronous", "FULL")
        self.con.execute(SCHEMA)
        self.rng = random.Random(7)

    def load(self, nodes: Sequence[Any], ends: Sequence[tuple[int, int]]) -> None:
        """Write everything in one transaction, the indexes last."""
        made = self.rng.randbytes
        with self.con:
            rows = [(n, made(32), it.type, it.name, it.content) for n, it in enumerate(nodes, 1)]
            self.con.executemany("INSERT INTO nodes VALUES (?, ?, ?, ?, ?)", rows)
            texts = ((n, it.name, it.content) for n, it in enumerate(nodes, 1))
            self.con.executemany("INSERT INTO words (rowid, name, text) VALUES (?, ?, ?)", texts)
            links = ((a, b, "refers_to", made(32)) for a, b in ends)
            self.con.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", links)
            self.con.execute(INDEXES)

    def write(self, name: str, text: str, targets: Sequence[int]) -> None:
        """Write one node with edges, and wait for the disk."""
        made = self.rng.randbytes
        with self.con:
            values = (made(32), "Memory", name, text)
            sql = "INSERT INTO nodes (address, type, name, text) VALUES (?, ?, ?, ?)"
            self.con.execute(sql, values)
            row = self.con.last_insert_rowid()
            sql = "INSERT INTO words (rowid, name, text) VALUES (?, ?, ?)"
            self.con.execute(sql, (row, name, text))
            links = [(row, target, "refers_to", made(32)) for target in targets]
            self.con.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", links)

    def hop(self, row: int) -> list[Row]:
        """Return the nodes that a node refers to."""
        return [Row(*found) for found in self.con.execute(HOP, (row,))]

    def search(self, question: str) -> list[int]:
        """Return the rows that have words of a question, best first."""
        words = " OR ".join(re.findall(r"\w+", question))
        return [int(row) for row, _ in self.con.execute(SEARCH, (words,))]


Figure = tuple[list[float], list[float]]


def side_by_side(ours: Callable[[int], object], kernel: Callable[[int], object], n: int) -> None:
    """Let both do the same in turns, and print P50 of each and the ratio."""
    taken: tuple[Figure, Figure] = ([], []), ([], [])
    for number in range(n):
        for call, (wall, cpu) in zip((ours, kernel), taken, strict=True):
            began, busy = time.perf_counter(), time.process_time()
            call(number)
            wall.append((time.perf_counter() - began) * 1000)
            cpu.append((time.process_time() - busy) * 1000)
    for what, (own, bare) in zip(("time", "processor"), zip(*taken, strict=True), strict=True):
        mine, plain = percentile(own, 0.5), percentile(bare, 0.5)
        ratio = mine / plain if plain else 0.0
        print(
            f"    {what:<10} {mine:>9,.3f} ms, kernel {plain:>9,.3f} ms: {ratio:.1f} x", flush=True
        )


def graph(folder: Path, size: int, count: int) -> None:
    """Load, hop and write on a graph."""
    nodes, db, kernel = drafts(size), worlddb.open(folder / "g.db"), Kernel(folder / "k.db")
    ids: list[worlddb.Id] = []
    rng = random.Random(2)
    ends = [(rng.randint(1, size), rng.randint(1, size)) for _ in range(int(size * EDGES_PER_NODE))]

    def load(_: int) -> None:
        with db.transaction(actor="bench", bulk=True) as tx:
            ids.extend(tx.create_nodes(nodes))
            tx.write_edges("refers_to", edges(ids, len(ends)))

    print(f"  load of {size:,} nodes and {len(ends):,} edges (aimed at: 1.5 x)")
    side_by_side(load, lambda _: kernel.load(nodes, ends), 1)
    print("  1 hop, nodes and edges as objects (aimed at: 5 x)")
    seeds = [rng.randint(1, size) for _ in range(count)]
    side_by_side(
        lambda i: db.query().seeds([ids[seeds[i] - 1]]).traverse("refers_to").execute(),
        lambda i: kernel.hop(seeds[i]),
        count,
    )

    def write(i: int) -> None:
        with db.transaction(actor="bench") as tx:
            node = tx.create_node(type="Memory", content=f"memory {i} of {i % 97} things")
            for j in range(3):
                tx.write_edge("refers_to", node.id, ids[(3 * i + j) % size])

    print("  durable write of a node and 3 edges (aimed at: 2 x)")
    side_by_side(
        write,
        lambda i: kernel.write("", f"memory {i} of {i % 97} things", range(3 * i + 1, 3 * i + 4)),
        count,
    )
    db.close()


def memory(folder: Path, size: int, count: int) -> None:
    """Write short texts, and recall them."""
    store, kernel = worlddb.Memory(folder / "m.db"), Kernel(folder / "km.db")
    embedder = worlddb.embedder_named("wordllama")
    kernel.con.execute(INDEXES)
    rng = random.Random(3)
    texts = [
        f"{rng.choice(PEOPLE)} likes {rng.choice(THINGS)} and told me so, note {number}."
        for number in range(size)
    ]
    held, fresh = texts[: size - count], texts[size - count :]
    for text in held:
        store.write(text, user_id="ada")
        kernel.write("", text, ())
    store.db.wait()
    print(f"  Memory.write of a short text beside {len(held):,} others (aimed at: 3 x)")
    side_by_side(
        lambda i: store.write(fresh[i], user_id="ada"),
        lambda i: kernel.write("", fresh[i], ()),
        count,
    )
    store.db.wait()
    matrix = embedder.embed_documents(texts).astype(np.float32)
    asked = [
        f"What does {rng.choice(PEOPLE)} say about {rng.choice(THINGS)}?" for _ in range(count)
    ]

    def bare(i: int) -> list[Any]:
        found = kernel.search(asked[i])
        near = matrix @ embedder.embed_queries([asked[i]])[0]
        best = np.argpartition(near, -50)[-50:]
        ranked = (*found, *(best[np.argsort(near[best])[::-1]] + 1).tolist())
        first = dict.fromkeys(ranked)
        sql = "SELECT * FROM nodes WHERE id = ?"
        return [kernel.con.execute(sql, (row,)).fetchone() for row in list(first)[:HITS]]

    for question in asked[:3]:
        store.recall(question, user_id="ada", k=HITS)
    print(f"  recall of {HITS} among {size:,}; the kernel: BM25 and cosine (aimed at: 1 x)")
    side_by_side(lambda i: store.recall(asked[i], user_id="ada", k=HITS), bare, count)
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        graph(Path(folder), args.nodes, args.count)
        memory(Path(folder), args.memories, args.count)


if __name__ == "__main__":
    main()

"""Search by words and recall, at a million nodes and at ten thousand, in a small scope and alone.

python -m bench.searches FILE        (FILE: a store that bench.load --keep left)
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import worlddb
from bench.corpus import drafts
from bench.percentiles import line, percentile, timed
from worlddb import Id, NodeDraft, RecallSettings, WorldDB

PAPER_TEXT_P95_US = 97_300
PAPER_VECTOR_P95_US = 3_100
PAPER_BUILD_S = 37 * 60 + 37
WITHOUT_VECTORS = RecallSettings(weights={"text": 1.0, "graph": 1.0})


def questions(db: WorldDB, count: int, common: int) -> list[str]:
    """Return questions of 2 to 4 words from one node each, and `common` very common words more."""
    rng = random.Random(7)
    frequent = ["afepwuu", "oubd", "bhpakvueu", "gupcia"]
    with db.engine.store.read() as reader:
        last = reader.head().nodes
        rows = sorted(rng.sample(range(2, last), count))
        bodies = list(reader.bodies(rows))
    found = []
    for body in bodies:
        words = rng.choices((body.name + " " + body.content).split(), k=rng.randint(2, 4))
        found.append(" ".join([*words, *rng.sample(frequent, common)]))
    return found


def _ask(db: WorldDB, asked: list[str], i: int) -> None:
    db.query().text(asked[i]).limit(10).execute()


def searching(db: WorldDB, count: int) -> None:
    """Time text searches over the whole store."""
    for common in (0, 1, 2):
        asked = questions(db, count, common)
        for one in asked[: count // 10]:  # What counts words keeps them, as it would in use.
            db.query().text(one).limit(10).execute()
        ask = partial(_ask, db, asked)
        taken = timed(ask, count)
        print(line(f"text, top 10, {common} very common words among them", taken))
        ratio = PAPER_TEXT_P95_US / percentile(taken, 0.95)
        print(f"    P95 is {ratio:.0f} x faster than the paper's {PAPER_TEXT_P95_US / 1000} ms")
    taken = timed(lambda i: db.query().text("afepwuu oubd").limit(10).execute(), count // 10)
    print(line("text, two of the most common words and nothing else", taken))


class Drawn:
    """An embedder for the benchmark: two of 65,536 random directions, chosen by the text's CRC."""

    model_id = "bench-drawn-16"
    dim = 16
    batch_size = 65_536

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self._table = rng.standard_normal((65_536, self.dim), dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text."""
        codes = np.fromiter((crc32(text.encode()) for text in texts), np.uint32, len(texts))
        drawn: NDArray[np.float32] = self._table[codes & 0xFFFF] + self._table[codes >> 16]
        return drawn

    embed_queries = embed_documents


def embedding(db: WorldDB) -> None:
    """Time the embedding of a whole store, the first search by vector, and those after it."""
    started = time.perf_counter()
    db.reindex()
    print(f"  embedding and composing all nodes: {time.perf_counter() - started:.1f} s")
    rng = np.random.default_rng(6)
    asked = rng.standard_normal((500, Drawn.dim)).astype(np.float32)
    started = time.perf_counter()
    db.query().vector(asked[0].tolist()).limit(10).execute()
    built = time.perf_counter() - started
    print(
        f"  first search by vector, building the index: {built:.1f} s, "
        f"{PAPER_BUILD_S / built:.0f} x faster than the paper's 37 min 37 s"
    )
    taken = timed(lambda i: db.query().vector(asked[i].tolist()).limit(10).execute(), len(asked))
    print(line("nearest 10 by query(), as nodes", taken))
    with db.engine.store.read() as reader:
        index = db.engine.search.wide()._nearby.index(reader, db.engine.search.vectors())
    units = asked / np.linalg.norm(asked, axis=1, keepdims=True)
    taken = timed(lambda i: index.search(units[i], 10), len(asked))
    print(line("    of that, the index", taken))
    ratio = PAPER_VECTOR_P95_US / percentile(taken, 0.95)
    print(f"    P95 is {ratio:.0f} x faster than the paper's {PAPER_VECTOR_P95_US / 1000} ms")


def scope_of(db: WorldDB, size: int) -> Id:
    """Make a scope with `size` memories in it."""
    with db.transaction(actor="bench") as tx:
        scope = tx.create_node(type="Scope", name="a user").id
        tx.create_nodes(
            NodeDraft(type="Memory", content=draft.content, parent=scope)
            for draft in drafts(size, seed=11)
        )
    return scope


def recalling(db: WorldDB, where: str, scope: Id | None, count: int) -> None:
    """Time recall without the query's embedding: words and names first, then a ready vector."""
    asked = [" ".join(draft.content.split()[:4]) for draft in drafts(count, seed=11)]
    db.recall(asked[0], scope=scope)
    taken = timed(lambda i: db.recall(asked[i], scope=scope, settings=WITHOUT_VECTORS), len(asked))
    print(line(f"recall, words and names, {where}", taken))
    taken = timed(lambda i: db.recall(asked[i], scope=scope), len(asked))
    print(line(f"recall, all lanes, embedding of the question included, {where}", taken))
    vectors = db.engine.search.vectors()
    once = vectors.ask(asked[0])
    embedding = timed(lambda i: vectors.ask(asked[i]), len(asked))
    print(line("    of that, embedding the question", embedding))
    assert once.any()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--count", type=int, default=1_000)
    args = parser.parse_args()
    print("a million nodes")
    with worlddb.open(args.path, embedder=Drawn()) as db:
        searching(db, args.count)
        embedding(db)
        recalling(db, "a scope of 1,000 in a million", scope_of(db, 1_000), args.count)
    with tempfile.TemporaryDirectory() as folder:
        with worlddb.open(Path(folder) / "own.db", embedder=Drawn()) as db:
            recalling(db, "a store of 1,000", scope_of(db, 1_000), args.count)
        print("ten thousand nodes, the default embedder")
        with worlddb.open(Path(folder) / "ten.db") as db:
            recalling(db, "a store of 10,000", scope_of(db, 10_000), args.count)


if __name__ == "__main__":
    main()

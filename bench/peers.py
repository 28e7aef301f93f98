"""The same 10,000 memories of ten users by WorldDB and by other stores that are installed.

python -m bench.peers [--size 10000] [--singles 200] [--only NAME ...]

The others, each left out where it is not installed: langgraph's SqliteStore
(`langgraph-checkpoint-sqlite`), `chromadb`, `lancedb`, `mem0ai` (as a store: no model reads the
texts). All get the vectors of one embedder. Printed are a load by the call that is fastest there,
single writes, recalls of one user, the size on disk; how many acknowledged writes are gone after
kill -9; and how many of two processes that write at once. A peer that breaks is printed, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import worlddb
from bench.percentiles import machine, percentile

USERS = 10
PEOPLE = ("Anna", "Tom", "Sarah", "Omar", "Mia", "Ravi", "Lena", "Igor", "Yuki", "Paul")
THINGS = ("tea", "maps", "trains", "chess", "ceramics", "walks", "jazz", "kites", "bread", "birds")
PLACES = ("Lisbon", "Oslo", "Kyoto", "Graz", "Boston", "Lima", "Perth", "Riga", "Turin", "Accra")
HITS = 5  # As many as an agent reads.
DIM = 256
BATCH = 1_000  # A common size of a request.
KILLED_AFTER = 40  # Acknowledged writes before the signal.
CHILD_S_MAX = 300  # A peer that does not end by then hangs.


def memories(size: int) -> list[tuple[str, str]]:
    """Return (user, text); no two texts of a user speak of the same person, thing and place."""
    told = [
        (f"user{user}", f"{person} talked about {thing} in {place}, note {number} of {user}.")
        for number, (person, thing, place) in enumerate(product(PEOPLE, THINGS, PLACES))
        for user in range(USERS)
    ]
    random.Random(1).shuffle(told)
    return told[:size]


def question(text: str) -> str:
    """Return a question that one memory of a user answers."""
    person, _, _, thing, _, place, *_ = text.split()
    return f"What did {person} say about {thing} in {place.strip(',')}?"


@cache
def embedder() -> worlddb.Embedder:
    """Return the embedder of all."""
    return worlddb.embedder_named("wordllama")


def vectors(texts: Sequence[str]) -> list[list[float]]:
    """Return the vectors of texts."""
    found: list[list[float]] = embedder().embed_documents(texts).tolist()
    return found


class Peer(Protocol):
    """A store of memories in a folder."""

    def add(self, items: Sequence[tuple[str, str]]) -> None: ...
    def recall(self, user: str, query: str) -> list[str]: ...
    def close(self) -> None: ...


class WorldDBPeer:
    """WorldDB: one call for each memory."""

    def __init__(self, folder: Path) -> None:
        self._memory = worlddb.Memory(folder / "m.db", embedder=embedder())

    def add(self, items: Sequence[tuple[str, str]]) -> None:
        """Write memories."""
        for user, text in items:
            self._memory.write(text, user_id=user)

    def recall(self, user: str, query: str) -> list[str]:
        """Return the texts of the best hits."""
        found = self._memory.recall(query, user_id=user, k=HITS).hits
        return [hit.node.content for hit in found]

    def close(self) -> None:
        """Close the store."""
        self._memory.close()


class LangGraphPeer:
    """langgraph's SqliteStore; durable by SQLite's own default."""

    def __init__(self, folder: Path) -> None:
        # Many Pythons come with a sqlite3 that loads no extensions; `pysqlite3-binary` does.
        sqlite3 = import_module("pysqlite3" if find_spec("pysqlite3") else "sqlite3")

        from langgraph.store.sqlite import SqliteStore

        con = sqlite3.connect(folder / "m.db", check_same_thread=False, isolation_level=None)
        index: Any = {"dims": DIM, "embed": vectors, "fields": ["text"]}
        self._con, self._store = con, SqliteStore(con, index=index)
        self._store.setup()

    def add(self, items: Sequence[tuple[str, str]]) -> None:
        """Put memories, all in one batch."""
        from langgraph.store.base import PutOp

        ops = [PutOp(("memories", user), text, {"text": text}) for user, text in items]
        self._store.batch(ops)

    def recall(self, user: str, query: str) -> list[str]:
        """Return the nearest texts."""
        found = self._store.search(("memories", user), query=query, limit=HITS)
        return [item.value["text"] for item in found]

    def close(self) -> None:
        """Close the connection."""
        self._con.close()


class ChromaPeer:
    """Chroma's persistent client."""

    def __init__(self, folder: Path) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder), settings=settings)
        space = {"hnsw:space": "cosine"}
        self._table = client.get_or_create_collection(
            "memories", metadata=space, embedding_function=None
        )

    def add(self, items: Sequence[tuple[str, str]]) -> None:
        """Add memories."""
        texts: Any = [text for _, text in items]
        users: Any = [{"user": user} for user, _ in items]
        made: Any = vectors(texts)
        self._table.add(texts, documents=texts, embeddings=made, metadatas=users)

    def recall(self, user: str, query: str) -> list[str]:
        """Return the nearest texts."""
        made: Any = vectors([query])
        found = self._table.query(made, n_results=HITS, where={"user": user})
        return list((found["documents"] or [[]])[0])

    def close(self) -> None:
        """Nothing is open that could be closed."""


class LancePeer:
    """LanceDB's table; every add is a version of it."""

    def __init__(self, folder: Path) -> None:
        import lancedb
        import pyarrow

        db = lancedb.connect(str(folder))
        fields = [("user", pyarrow.string()), ("text", pyarrow.string())]
        schema = pyarrow.schema([*fields, ("vector", pyarrow.list_(pyarrow.float32(), DIM))])
        self._table = db.create_table("memories", schema=schema, exist_ok=True)

    def add(self, items: Sequence[tuple[str, str]]) -> None:
        """Add memories."""
        made = vectors([text for _, text in items])
        rows = zip(items, made, strict=True)
        self._table.add([{"user": u, "text": t, "vector": v} for (u, t), v in rows])

    def recall(self, user: str, query: str) -> list[str]:
        """Return the nearest texts."""
        asked = self._table.search(vectors([query])[0]).distance_type("cosine")
        found = asked.where(f"user = '{user}'", prefilter=True).limit(HITS).to_list()
        return [row["text"] for row in found]

    def close(self) -> None:
        """Nothing is open that could be closed."""


class Mem0Peer:
    """mem0 with its own default store, Qdrant in a folder; texts are stored as they are."""

    def __init__(self, folder: Path) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
        os.environ.setdefault("OPENAI_API_KEY", "none: no model is asked")
        from mem0 import Memory

        store = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": DIM}
        config = {"vector_store": {"provider": "qdrant", "config": store}}
        self._memory = Memory.from_config({**config, "history_db_path": str(folder / "h.db")})
        self._memory.embedding_model.embed = lambda text, *_, **__: vectors([text])[0]
        self._memory.embedding_model.embed_batch = lambda texts, *_, **__: vectors(texts)

    def add(self, items: Sequence[tuple[str, str]]) -> None:
        """Add memories."""
        for user, text in items:
            self._memory.add(text, user_id=user, infer=False)

    def recall(self, user: str, query: str) -> list[str]:
        """Return the nearest texts."""
        found = self._memory.search(query, filters={"user_id": user}, top_k=HITS)
        return [hit["memory"] for hit in found["results"]]

    def close(self) -> None:
        """Close the store."""
        self._memory.vector_store.client.close()


PEERS: dict[str, Callable[[Path], Peer]] = {
    "worlddb": WorldDBPeer,
    "langgraph": LangGraphPeer,
    "chroma": ChromaPeer,
    "lancedb": LancePeer,
    "mem0": Mem0Peer,
}


def missing(peer: Peer, items: Sequence[tuple[str, str]]) -> int:
    """Return how many memories are not found by their own words."""
    return sum(text not in peer.recall(user, text) for user, text in items)


def child(name: str, folder: Path, items: list[tuple[str, str]]) -> None:
    """Write memories one by one; print each number when it is acknowledged."""
    peer = PEERS[name](folder)
    print("ready", flush=True)
    sys.stdin.readline()  # Both begin together.
    for number, item in enumerate(items):
        try:
            peer.add([item])
            print(number, flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}"[:200].replace("\n", " "), file=sys.stderr)
    peer.close()


def started(name: str, folder: Path, items: Sequence[tuple[str, str]]) -> subprocess.Popen[str]:
    """Start a process that writes memories, and wait until it has opened the store."""
    given = json.dumps({"name": name, "folder": str(folder), "items": items})
    command = [sys.executable, "-m", "bench.peers", "--child"]
    pipe = subprocess.PIPE
    made = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert made.stdin is not None
    assert made.stdout is not None
    made.stdin.write(given + "\n")
    made.stdin.flush()
    if made.stdout.readline() != "ready\n":
        reason = made.communicate()[1].strip().splitlines()[-1:]
        raise RuntimeError(f"a process cannot open it: {' '.join(reason)[:160]}")
    return made


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def killed(name: str, folder: Path, items: Sequence[tuple[str, str]]) -> str:
    """Kill a process that writes; return what is left of what it had acknowledged."""
    process = started(name, folder, items)
    assert process.stdout is not None
    go(process)
    acknowledged = 0
    while acknowledged < KILLED_AFTER and process.stdout.readline():
        acknowledged += 1
    process.send_signal(signal.SIGKILL)
    acknowledged += len(process.communicate()[0].splitlines())
    peer = PEERS[name](folder)
    lost = missing(peer, items[:acknowledged])
    peer.close()
    return f"{lost} of {acknowledged} acknowledged writes lost"


def two_writers(name: str, folder: Path, items: Sequence[tuple[str, str]]) -> str:
    """Let two processes write at once; return what became of their writes."""
    half = len(items) // 2
    writers: list[tuple[subprocess.Popen[str], Sequence[tuple[str, str]]]] = []
    done: list[tuple[str, str]] = []
    reasons: list[str] = []
    try:
        for part in (items[:half], items[half:]):
            process = started(name, folder, part)
            writers += [(process, part)]
        for process, _ in writers:
            go(process)
        for process, part in writers:
            out, err = process.communicate(timeout=CHILD_S_MAX)
            done += [part[int(number)] for number in out.split()]
            reasons += err.strip().splitlines()[:1]
    finally:
        for process, _ in writers:
            process.kill()
            process.communicate()
    peer = PEERS[name](folder)
    lost = missing(peer, done)
    peer.close()
    refused = f", {len(items) - len(done)} refused ({reasons[0][:90]})" if reasons else ""
    return f"{len(done)} of {len(items)} acknowledged, {lost} of them lost{refused}"


def measured(name: str, folder: Path, items: list[tuple[str, str]], singles: int) -> None:
    """Print the figures of one peer."""
    peer = PEERS[name](folder)
    load, single = items[: len(items) - singles], items[len(items) - singles :]
    before = time.perf_counter()
    for first in range(0, len(load), BATCH):
        peer.add(load[first : first + BATCH])
    took = time.perf_counter() - before
    print(
        f"  load    {len(load):,} memories in {took:.1f} s: {len(load) / took:,.0f}/s", flush=True
    )
    writes, recalls, found, others = [], [], 0, 0
    for item in single:
        before = time.perf_counter()
        peer.add([item])
        writes.append((time.perf_counter() - before) * 1000)
    owner = {text: user for user, text in items}
    for user, text in random.Random(2).sample(items, singles):
        before = time.perf_counter()
        hits = peer.recall(user, question(text))
        recalls.append((time.perf_counter() - before) * 1000)
        found += text in hits
        others += sum(owner.get(hit) != user for hit in hits)
    peer.close()
    for what, taken in (("write", writes), ("recall", recalls)):
        shown = " / ".join(f"{percentile(taken, share):.1f}" for share in (0.5, 0.95))
        more = "" if what == "write" else f", the answer among {HITS}: {found / singles:.0%}"
        more += f", of other users: {others}" if others else ""
        print(f"  {what:<7} P50/P95 {shown} ms{more}")
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    print(f"  disk    {size / 1e6:.1f} MB", flush=True)


def compared(name: str, items: list[tuple[str, str]], singles: int) -> None:
    """Print everything about one peer, also what breaks."""
    print(name, flush=True)

    def kill(folder: Path) -> None:
        print(f"  kill -9 {killed(name, folder, items[:2_000])}")

    def two(folder: Path) -> None:
        print(f"  two     {two_writers(name, folder, items[:singles])}", flush=True)

    for step in (lambda folder: measured(name, folder, items, singles), kill, two):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
            try:
                step(Path(made))
            except ImportError as error:
                print(f"  not installed: {error.name}")
                return
            except Exception as error:
                print(f"  broke: {type(error).__name__}: {str(error)[:200]}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--singles", type=int, default=200, help="single writes, and recalls")
    parser.add_argument("--only", nargs="*", choices=[*PEERS], default=[*PEERS])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        child(**{**(given := json.loads(sys.stdin.readline())), "folder": Path(given["folder"])})
        return 0
    print(
        f"{machine()}\n{args.size:,} memories of {USERS} users, {embedder().model_id}", flush=True
    )
    for name in args.only:
        compared(name, memories(args.size), args.singles)
    return 0


if __name__ == "__main__":
    sys.exit(main())

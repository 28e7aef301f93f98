"""What word-by-word reading costs: reading texts once, and recalls in a large store.

python -m bench.word_reading [--turns N] [--questions N] [--threads N …]

Needs arctic-embed-s (`worlddb models install arctic-embed-s`). Turns of 10 to 40 words are written
into one scope and read by the model, with one thread and with more. Then questions are recalled by
`wordllama+arctic-embed-s`, and by the default embedder in the same run.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import worlddb
from bench.passages import passages
from bench.percentiles import line, machine
from worlddb import NodeDraft, embedder_named
from worlddb.embed.onnx_embedder import LateEmbedder

TURNS, QUESTIONS = 10_000, 300
SAMPLE = 200  # texts read by each number of threads; half a minute
LATE, DEFAULT = "wordllama+arctic-embed-s", "wordllama"


def turns(count: int, seed: int = 11) -> Iterator[str]:
    """Yield one to three sentences of a passage at a time."""
    rng = random.Random(seed)
    for text in passages(count):
        sentences = text.split(". ")
        start = rng.randrange(len(sentences))
        yield ". ".join(sentences[start : start + rng.randint(1, 3)])


def read(texts: list[str], threads: list[int]) -> None:
    """Print how many texts a second are read by each number of threads."""
    words = sum(len(text.split()) for text in texts) / len(texts)
    print(f"reading {len(texts)} texts of {words:.0f} words")
    first = 0.0
    for number in threads:
        embedder = embedder_named(LATE, threads=number)
        assert isinstance(embedder, LateEmbedder)
        embedder.read_texts(texts[:2])
        started, used = time.perf_counter(), time.process_time()
        embedder.read_texts(texts)
        taken, cpu = time.perf_counter() - started, time.process_time() - used
        first = first or taken
        print(
            f"  {number} thread(s): {len(texts) / taken:,.0f} texts/s, {first / taken:.2f} x the "
            f"first, {1e3 * cpu / len(texts):.2f} ms of processor time a text"
        )


def recall(path: Path, count: int, asked: list[str]) -> None:
    """Print how long recalls take in a store of many turns."""
    with worlddb.Memory(path, recluster="off") as memory:
        memory.write("I live in Rome.", user_id="ada")
        scope = next(iter(memory.db.children(memory.db.root_id))).id
        with memory.db.transaction(actor="bench") as tx:
            tx.create_nodes(
                NodeDraft(type="Turn", name="ada", content=text, parent=scope)
                for text in turns(count)
            )
        for name in (DEFAULT, LATE):
            started = time.process_time()
            memory.db.reindex(name)
            print(f"{name}: indexed in {time.process_time() - started:.0f} s of processor time")
            memory.recall(asked[0], user_id="ada")
            taken, used = [], []
            for question in asked:
                begun, cpu = time.perf_counter_ns(), time.thread_time_ns()
                memory.recall(question, user_id="ada")
                used.append((time.thread_time_ns() - cpu) / 1e3)
                taken.append((time.perf_counter_ns() - begun) / 1e3)
            print(line(f"  recall among {count:,} turns", taken))
            print(line("    of that, on the processor", used))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    print(machine())
    texts = list(turns(args.turns))
    read(texts[:SAMPLE], args.threads)
    rng = random.Random(3)
    asked = [
        f"What do you know of {' '.join(rng.sample(text.split(), 4))}?"
        for text in texts
        if len(text.split()) > 4
    ][: args.questions]
    with tempfile.TemporaryDirectory() as folder:
        recall(Path(folder) / "turns.db", args.turns, asked)


if __name__ == "__main__":
    main()

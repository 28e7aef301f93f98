"""Closing: it waits a moment for the background, then leaves the rest, and says so."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import Id, Proposal
from worlddb.ingest import background_queue as later
from worlddb.ingest.background_queue import NEIGHBOURS_MAX, BackgroundQueue, Nodes, unless
from worlddb.ingest.background_queue import _Neighbourhoods as Neighbourhoods

PATIENCE_S = 60
ONE, TWO = ((Id(bytes([number]) * 32),) for number in (1, 2))
LEFT = "LeftError: the store was closed first; db.recluster(nodes) does it"


class Endless:
    """Work that ends only when it is over."""

    def __init__(self, queue: BackgroundQueue) -> None:
        self.queue = queue
        self.began = threading.Event()

    def __call__(self, puts: Sequence[Nodes]) -> list[Proposal]:
        self.began.set()
        for _ in unless(self.queue.is_over, iter(int, 1)):
            pass
        raise AssertionError("it never ends by itself")


@pytest.mark.parametrize("closing_s", [0.0, 0.2])
def test_closing_leaves_what_it_has_no_time_for_and_says_so(
    closing_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(later, "CLOSING_S_MAX", closing_s)
    queue = BackgroundQueue()
    work = Endless(queue)
    queue.put("one", ONE, work)
    queue.put("two", TWO, work)
    assert work.began.wait(PATIENCE_S)
    waited: list[bool] = []
    waits = threading.Thread(target=lambda: waited.append(queue.wait(PATIENCE_S)))
    waits.start()
    with queue._state:
        assert queue._state.wait_for(lambda: queue._hurried, PATIENCE_S)
    queue.close()
    waits.join(PATIENCE_S)
    assert [(seen.nodes, seen.error) for seen in queue.done] == [(ONE, LEFT), (TWO, LEFT)]
    assert waited == [False]
    queue.close()


def test_it_is_not_over_while_the_store_is_open() -> None:
    queue = BackgroundQueue()
    assert not queue.is_over()
    queue.close()


PROGRAM = """
import os, signal, sys, threading, time, worlddb
from worlddb.ingest import background_queue as later

later.CLOSING_S_MAX = float(sys.argv[2])
memory = worlddb.Memory(sys.argv[1], embedder="none", user_id="ada")
memory.write("Lunch with Jonathan Smyth.")
queue = memory.db.engine.background

def endless(puts):
    began.set()
    while True:
        if queue._closed and sys.argv[3] == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
            sys.argv[3] = "sent"
        for _ in later.unless(queue.is_over, range(1000)):
            pass

def quick(puts):
    print("done", flush=True)
    return []

def work_on():
    threading.main_thread().join()
    time.sleep(2 * later.CLOSING_S_MAX)
    queue.put("late", (), quick)
    queue.wait()

began = threading.Event()
if sys.argv[3] == "worker":
    threading.Thread(target=work_on).start()
else:
    for key in range(3):
        queue.put(key, (), endless)
    began.wait()
if sys.argv[3] == "interrupted":
    try:
        memory.close()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def program(path: Path, closing_s: float, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(path), str(closing_s), how]
    return subprocess.run(command, timeout=PATIENCE_S, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("closing_s", "how", "said"),
    [
        (0.1, "never closed", ""),
        (10 * PATIENCE_S, "interrupted", "interrupted\n"),
        (0.1, "worker", "done\n"),
    ],
)
def test_a_process_ends_soon_without_a_trace_and_the_store_is_sound(
    tmp_path: Path, closing_s: float, how: str, said: str
) -> None:
    path = tmp_path / "left.db"
    ended = program(path, closing_s, how)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")
    with worlddb.Memory(path, embedder="none", user_id="ada", recluster="off") as memory:
        assert memory.db.check() == []
        assert [one.text for one in memory.list()] == ["Lunch with Jonathan Smyth."]


# -- what looking again costs ----------------------------------------------------------------------


class Counting:
    """A reader that counts the ends of edges it gives."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.ends = 0

    @property
    def sweep(self) -> Any:
        return self

    def covers(self, *given: Any) -> Any:
        for item in self.reader.sweep.covers(*given):
            self.ends += 1
            yield item


def test_neighbourhoods_around_one_name_read_its_edges_once() -> None:
    texts = NEIGHBOURS_MAX + 50
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction() as tx:
            anna = tx.create_node(type="Entity", name="Anna").id
            said = [tx.create_node(type="Memory", content=f"Anna {n}").id for n in range(texts)]
            for ident in said:
                tx.write_edge("refers_to", ident, anna)
        with db.engine.store.read() as reader:
            rows = [reader.node_row(ident) for ident in (anna, *said)]
            counting: Any = Counting(reader)
            many = Neighbourhoods(counting)
            assert all(row is not None for row in rows)
            last: Any = rows[-1]
            for row in rows[-64:]:
                found = many.of({row})  # type: ignore[arg-type]
            # The nearest, then the oldest of those that are as far away.
            assert found == [last, *rows[:-1]][:NEIGHBOURS_MAX]
            assert texts <= counting.ends <= texts + 64

"""The vector index and its lock under threads: one writer, many readers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from patience import PATIENCE_S as WAIT_S
from patience import until
from worlddb.index.nearest import Nearest, cosines
from worlddb.index.vector_graph import Graph, ReadWriteLock

from .vector_sets import clustered, numbers

DIM = 12


@pytest.mark.parametrize("exact_below", [100, 5_000])
def test_readers_see_each_row_as_before_or_as_after_while_one_writer_puts(
    exact_below: int,
) -> None:
    count = 1_200
    versions = [clustered(count, DIM, seed) for seed in (1, 2)]
    index = Nearest(DIM, exact_below=exact_below)
    index.put(np.arange(count), versions[0])
    done = threading.Event()

    def read(seed: int) -> int:
        asked = 0
        while not done.is_set() or asked < 20:
            query = clustered(1, DIM, seed * 10_000 + asked)[0]
            allowed = np.arange(0, count, 2) if asked % 2 else None
            found = index.search(query, 10, allowed)
            assert len(found) == 10
            for row, score in found:
                assert allowed is None or row % 2 == 0
                assert score in [float(cosines(each[row][None], query)[0]) for each in versions]
            asked += 1
        return asked

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read, seed) for seed in (1, 2, 3)]
        try:
            for row in range(0, count, 3):
                index.put(np.arange(row, row + 3), versions[1][row : row + 3])
        finally:
            done.set()
        assert all(reader.result(WAIT_S) >= 20 for reader in readers)
    assert index.search(versions[1][7], 1)[0][0] == 7


def test_searches_go_on_while_an_index_is_built_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 3_000
    index, vectors = Nearest(DIM, exact_below=100), clustered(count, DIM, 1)
    index.put(np.arange(200), vectors[:200])
    begun, searched = threading.Event(), threading.Event()
    build = Graph.build

    def held(*given: Any) -> None:
        begun.set()
        build(*given)
        assert searched.wait(WAIT_S)

    monkeypatch.setattr(Graph, "build", held)
    writer = threading.Thread(target=index.build, args=(np.arange(count), vectors))
    writer.start()
    assert begun.wait(WAIT_S)
    for _ in range(20):
        assert index.search(vectors[150], 1)[0][0] == 150
    searched.set()
    writer.join()
    assert index.search(vectors[2_500], 1)[0][0] == 2_500


def test_several_writers_take_turns() -> None:
    index, vectors = Nearest(DIM, exact_below=50), clustered(800, DIM, 1)

    def write(start: int) -> None:
        for row in range(start, 800, 4):
            index.put(numbers(row), vectors[row : row + 1])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(index) == 800
    for row in range(0, 800, 37):
        assert index.search(vectors[row], 1)[0][0] == row


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_readers_share_and_a_writer_is_alone() -> None:
    turns = ReadWriteLock()
    inside = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:

        def read() -> None:
            with turns.reading():
                inside.wait(WAIT_S)  # Passes only when all three are in together.

        for reader in [pool.submit(read) for _ in range(3)]:
            reader.result(WAIT_S)
    writers = 0
    most = 0

    def write() -> None:
        nonlocal writers, most
        for _ in range(200):
            with turns.writing():
                writers += 1
                most = max(most, writers)
                writers -= 1

    with ThreadPoolExecutor(4) as pool:
        for writer in [pool.submit(write) for _ in range(4)]:
            writer.result(WAIT_S)
    assert most == 1


def test_a_writer_is_not_starved_by_readers_that_keep_coming() -> None:
    turns, order = ReadWriteLock(), []

    def write() -> None:
        with turns.writing():
            order.append("writer")

    def read() -> None:
        with turns.reading():
            order.append("late reader")

    with turns.reading():
        writer = started(write)
        until(lambda: turns._writers_waiting == 1)
        reader = started(read)
        until(lambda: turns._waiting == 1)
        assert order == []
    writer.join(WAIT_S)
    reader.join(WAIT_S)
    assert order == ["writer", "late reader"]


def test_readers_are_not_starved_by_writers_that_keep_coming() -> None:
    turns, order = ReadWriteLock(), []

    def write() -> None:
        with turns.writing():
            order.append("second writer")

    def read() -> None:
        with turns.reading():
            order.append("reader")

    with turns.writing():
        threads = [started(write)]
        until(lambda: turns._writers_waiting == 1)
        threads += [started(read), started(read)]
        until(lambda: turns._waiting == 2)
    for thread in threads:
        thread.join(WAIT_S)
    assert order == ["reader", "reader", "second writer"]


def test_the_lock_is_free_again_after_an_error_inside() -> None:
    turns = ReadWriteLock()

    def fail(how: str) -> None:
        with getattr(turns, how)():
            raise ValueError("inside")

    for how in ("reading", "writing"):
        with pytest.raises(ValueError, match="inside"):
            fail(how)
    with turns.writing():
        pass
    with turns.reading():
        pass

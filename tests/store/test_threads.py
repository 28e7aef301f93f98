"""Threads on one store: none loses a commit, none sees half of one, none waits to read."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

import worlddb
from patience import PATIENCE_S

from .processes import commit_one, picture


@contextmanager
def held_open(db: worlddb.WorldDB) -> Iterator[threading.Event]:
    """Hold a transaction open on another thread; the event lets it land."""
    began, release = threading.Event(), threading.Event()

    def hold() -> None:
        with db.transaction(actor="holder") as tx:
            tx.create_node(type="Fact", name="held")
            began.set()
            assert release.wait(PATIENCE_S)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        assert began.wait(PATIENCE_S)
        try:
            yield release
        finally:
            release.set()
        holding.result()


# -- writing -------------------------------------------------------------------------------------


def test_threads_that_write_at_once_lose_no_commit(any_db: worlddb.WorldDB) -> None:
    start = threading.Barrier(4)

    def write(name: str) -> list[worlddb.Commit]:
        landed = []
        start.wait()
        for number in range(25):
            with any_db.transaction(actor=name) as tx:
                node = tx.create_node(type="Fact", name=f"{name} {number}")
                other = tx.create_node(type="Fact", name=f"{name} {number} again")
                tx.write_edge("supersedes", other.id, node.id)
            assert tx.commit is not None
            landed.append(tx.commit)
        return landed

    with ThreadPoolExecutor(4) as pool:
        lists = list(pool.map(write, ["a", "b", "c", "d"]))
    log = any_db.log()
    assert sorted((c for landed in lists for c in landed), key=lambda c: c.seq) == log[1:]
    assert len(log) == 101
    for before, after in pairwise(log):
        assert after.previous == before.hash
        assert after.time > before.time
    assert len(any_db.children(include_superseded=True)) == 200
    assert any_db.check() == []


# -- reading while somebody writes ---------------------------------------------------------------


def reads(db: worlddb.WorldDB, world: worlddb.Id) -> dict[str, Callable[[], None]]:
    """Return readings that fail if they see half a pair or two moments at once."""

    def pairs(names: list[str]) -> None:
        lefts = {name.removeprefix("left ") for name in names if name.startswith("left")}
        rights = {name.removeprefix("right ") for name in names if name.startswith("right")}
        assert lefts == rights

    def children() -> None:
        pairs([node.name for node in db.children(world)])

    def query() -> None:
        pairs([node.name for node in db.query().in_world(world).execute().nodes])
        found = db.query().in_world(world).traverse("refers_to").execute()
        assert {edge.target for edge in found.edges} == found.ids

    def text() -> None:
        pairs([node.name for node in db.query().text("pair").limit(10_000).execute().nodes])

    def log() -> None:
        commits = db.log()
        assert [commit.seq for commit in commits] == list(range(len(commits)))

    def export() -> None:
        records = [json.loads(line) for line in db.export()]
        heads = [record for record in records if "commit" in record]
        assert sum(head["nodes"] for head in heads) == sum("node" in r for r in records)
        pairs([record["name"] for record in records if "node" in record])

    def diff() -> None:
        last = db.log(limit=1, newest_first=True)[0].seq
        pairs([node.name for node in db.diff(0, last).nodes])

    def prove() -> None:
        proof = db.prove(world)
        states = {commit.root_state for commit in db.log()}
        assert any(worlddb.verify_proof(proof, state) for state in states)

    return {
        "children": children,
        "query": query,
        "text": text,
        "log": log,
        "export": export,
        "diff": diff,
        "prove": prove,
    }


def test_readers_see_both_of_a_pair_or_neither(any_db: worlddb.WorldDB) -> None:
    with any_db.transaction() as tx:
        world = tx.create_node(type="Topic", name="world").id
    stop = threading.Event()
    rounds: dict[str, int] = {}

    def write() -> None:
        try:
            for number in range(120):
                with any_db.transaction(bulk=number % 40 == 39) as tx:
                    left, right = (
                        tx.create_node(
                            type="Fact", parent=world, content="pair", name=f"{side} {number}"
                        )
                        for side in ("left", "right")
                    )
                    tx.write_edge("refers_to", left.id, right.id)
        finally:
            stop.set()

    def read(name: str, call: Callable[[], None]) -> None:
        while not stop.is_set() or name not in rounds:
            call()
            rounds[name] = rounds.get(name, 0) + 1

    calls = reads(any_db, world)
    with ThreadPoolExecutor(len(calls) + 1) as pool:
        readers = [pool.submit(read, name, call) for name, call in calls.items()]
        pool.submit(write).result()
        for reader in readers:
            reader.result()
    assert rounds.keys() == calls.keys()
    for call in calls.values():
        call()
    assert len(any_db.children(world)) == 240
    assert any_db.check() == []


def test_an_answer_is_one_snapshot_even_if_a_commit_lands_in_the_middle_of_it(
    db: worlddb.WorldDB,
) -> None:
    commit_one(db, "before")
    lines = db.export()
    # The header, commit 0 and its node: from here on the snapshot is fixed.
    first = [next(lines) for _ in range(3)]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(commit_one, db, "in the middle").result()
    records = [json.loads(line) for line in [*first, *lines]]
    assert [record["name"] for record in records if "node" in record][1:] == ["before"]


def test_readers_finish_while_a_writer_holds_its_transaction_open(
    db: worlddb.WorldDB, tmp_path: Path
) -> None:
    node = commit_one(db, "landed")
    calls: list[Callable[[], object]] = [
        lambda: db.get(node.id),
        lambda: db.children(),
        lambda: db.edges(node.id),
        lambda: db.query().text("landed").execute(),
        lambda: db.prove(node.id),
        lambda: db.log(),
        lambda: db.diff(0, 1),
        lambda: db.check(),
        lambda: list(db.export()),
        lambda: db.backup(tmp_path / "copy.db"),
        lambda: db.root_state,
    ]
    with held_open(db), ThreadPoolExecutor(1) as pool:
        for call in calls:
            pool.submit(call).result(PATIENCE_S)
        assert pool.submit(lambda: [n.name for n in db.children()]).result() == ["landed"]
    assert [found.name for found in db.children()] == ["landed", "held"]


def test_in_memory_a_reader_waits_for_the_writer_and_then_sees_it_all() -> None:
    with worlddb.open(":memory:") as db, ThreadPoolExecutor(1) as pool:
        with held_open(db) as release:
            reading = pool.submit(lambda: [node.name for node in db.children()])
            release.set()
        assert reading.result(PATIENCE_S) == ["held"]


def test_a_reader_gets_its_turn_although_the_writer_never_pauses(path: Path) -> None:
    for place in (path, ":memory:"):
        with worlddb.open(place, busy_timeout_s=PATIENCE_S) as db, ThreadPoolExecutor(1) as pool:
            stop = threading.Event()

            def write(db: worlddb.WorldDB = db, stop: threading.Event = stop) -> None:
                while not stop.is_set():
                    commit_one(db)

            writing = pool.submit(write)
            try:
                for _ in range(30):
                    assert len(db.log(limit=3)) <= 3
            finally:
                stop.set()
            writing.result()


def test_a_thread_that_waits_too_long_for_the_lock_is_told_and_loses_nothing(path: Path) -> None:
    with worlddb.open(path, busy_timeout_s=0.05) as db:
        before = picture(db)
        with held_open(db):
            with pytest.raises(worlddb.ConflictError, match=r"0\.05 s.*try again"):
                commit_one(db, "too early")
            assert picture(db) == before
        commit_one(db, "now")
        assert [node.name for node in db.children()] == ["held", "now"]
        assert db.check() == []


def test_two_stores_open_on_one_file_in_one_process_exclude_each_other(path: Path) -> None:
    with worlddb.open(path) as one, worlddb.open(path, busy_timeout_s=0.05) as two:
        with one.transaction() as tx:
            tx.create_node(type="Fact", name="one")
            with pytest.raises(worlddb.ConflictError, match="busy_timeout_s"):
                commit_one(two, "too early")
        commit_one(two, "two")
        assert [node.name for node in one.children()] == ["one", "two"]
        assert one.log() == two.log()
        assert one.check() == two.check() == []


# -- answers that are read slowly ----------------------------------------------------------------


def test_a_commit_is_seen_by_its_own_thread_while_an_export_is_half_read(
    any_db: worlddb.WorldDB,
) -> None:
    commit_one(any_db)
    lines = any_db.export()
    for _ in range(3):
        next(lines)
    node = commit_one(any_db, "written meanwhile")
    assert any_db.get(node.id).name == "written meanwhile"
    assert [found.name for found in any_db.children()] == ["a node", "written meanwhile"]
    del lines


def test_other_reads_work_while_an_export_is_half_read(any_db: worlddb.WorldDB) -> None:
    node = commit_one(any_db)
    for _ in any_db.export():
        assert any_db.get(node.id) == node
        assert len(any_db.log()) == 2


def test_an_export_may_be_begun_on_one_thread_and_ended_on_another(
    any_db: worlddb.WorldDB,
) -> None:
    commit_one(any_db)
    whole = list(any_db.export())
    lines = any_db.export()
    first = [next(lines) for _ in range(3)]
    with ThreadPoolExecutor(1) as pool:
        assert [*first, *pool.submit(lambda: list(lines)).result()] == whole
    # The thread that began it reads on a snapshot of its own again, and a new one each time.
    node = commit_one(any_db, "later")
    with any_db.engine.store.read() as reader:
        seen = reader.head().seq
        with ThreadPoolExecutor(1) as pool:
            if any_db.engine.store.path != ":memory:":
                pool.submit(commit_one, any_db, "much later").result()
        assert reader.head().seq == seen
    assert any_db.get(node.id).name == "later"


def test_an_export_that_nobody_finishes_blocks_no_writer(path: Path) -> None:
    for place in (":memory:", path):
        with worlddb.open(place, busy_timeout_s=0.2) as db:
            commit_one(db)
            lines = db.export()
            for _ in range(3):
                next(lines)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(commit_one, db, "not blocked").result()
            del lines


# -- many threads, and the end -------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts files through /proc")
def test_threads_that_are_gone_leave_no_open_files(db: worlddb.WorldDB) -> None:
    commit_one(db)

    def read_on_threads(count: int) -> int:
        for _ in range(count):
            thread = threading.Thread(target=db.children)
            thread.start()
            thread.join()
        return len(os.listdir("/proc/self/fd"))

    few = read_on_threads(5)
    assert read_on_threads(60) <= few + 10


def test_closing_waits_for_readers_and_tells_later_ones(path: Path) -> None:
    for _ in range(5):
        db = worlddb.open(path)
        with db.transaction() as tx:
            tx.create_nodes([worlddb.NodeDraft(type="Fact", name=f"{i}") for i in range(100)])
        reading = [threading.Event() for _ in range(3)]

        def read(started: threading.Event, db: worlddb.WorldDB = db) -> worlddb.InvalidInputError:
            while True:
                try:
                    db.children()
                except worlddb.InvalidInputError as error:
                    return error
                started.set()

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read, started) for started in reading]
            assert all(started.wait(PATIENCE_S) for started in reading)
            db.close()
            for reader in readers:
                assert "is closed" in str(reader.result(PATIENCE_S))
    with worlddb.open(path) as db:
        assert db.check() == []


def test_closing_waits_for_a_writer_on_another_thread(path: Path) -> None:
    db = worlddb.open(path)
    with held_open(db) as release, ThreadPoolExecutor(1) as pool:
        closing = pool.submit(db.close)
        release.set()
        closing.result(PATIENCE_S)
    with worlddb.open(path) as db:
        assert [node.name for node in db.children()] == ["held"]


def test_closing_inside_the_own_transaction_is_refused_and_the_block_lands(
    any_db: worlddb.WorldDB,
) -> None:
    with any_db.transaction() as tx:
        tx.create_node(type="Fact", name="kept")
        with pytest.raises(worlddb.InvalidInputError, match="transaction"):
            any_db.close()
    assert [node.name for node in any_db.children()] == ["kept"]


def test_an_export_that_is_half_read_ends_quietly_when_the_store_closes(
    any_db: worlddb.WorldDB,
) -> None:
    commit_one(any_db)
    lines = any_db.export()
    for _ in range(3):
        next(lines)
    any_db.close()
    with pytest.raises(worlddb.InvalidInputError, match="closed"):
        list(lines)

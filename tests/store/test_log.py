"""The write-ahead log: it goes into the file beside the writers, and begins anew."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest

import worlddb
from patience import PATIENCE_S
from worlddb import WorldDB
from worlddb.store.sqlite import gate as checkpoint
from worlddb.store.sqlite.database_file import PAGE_BYTES

PAGES = 100
SECONDS_MAX = 4 * PATIENCE_S


@pytest.fixture(autouse=True)
def _short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LOG_BYTES_MIN", PAGES * PAGE_BYTES)


def times_begun(path: Path) -> int:
    """Return how often the log has begun anew: SQLite counts it in the log's header."""
    with Path(f"{path}-wal").open("rb") as log:
        return int.from_bytes(log.read(16)[12:], "big")


def write_until_begun(db: WorldDB, path: Path, times: int) -> None:
    """Write without a rest until the log has begun anew as often as asked."""
    # By time and not by commits: where other processes have the processor, many fit between.
    until = time.monotonic() + SECONDS_MAX
    for number in itertools.count():
        if times_begun(path) >= times:
            return
        assert time.monotonic() < until, f"after {number} commits the log still goes on"
        with db.transaction() as tx:
            tx.create_node(type="Fact", name=f"{number}")


def test_the_log_begins_anew_while_a_writer_never_rests(path: Path) -> None:
    with worlddb.open(path, durability="normal") as db:
        write_until_begun(db, path, 3)
        assert db.check() == []


def test_the_log_begins_anew_while_several_threads_write_and_read(path: Path) -> None:
    failed: list[BaseException] = []
    done = threading.Event()

    def use(db: WorldDB) -> None:
        try:
            while not done.is_set():
                with db.transaction() as tx:
                    node = tx.create_node(type="Fact", name="one of many")
                assert db.get(node.id).name == "one of many"
        except BaseException as error:
            failed.append(error)

    with worlddb.open(path, durability="normal") as db:
        threads = [threading.Thread(target=use, args=(db,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            write_until_begun(db, path, 2)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        assert failed == []
        assert db.check() == []


def test_a_long_read_keeps_the_log_only_as_long_as_it_lasts(path: Path) -> None:
    with worlddb.open(path, durability="normal") as db:
        with db.transaction() as tx:
            tx.create_nodes(worlddb.NodeDraft(type="Fact", name=f"{i}") for i in range(500))
        lines = db.export()
        seen = [next(iter(lines))]
        begun = times_begun(path)
        for number in range(100):
            with db.transaction() as tx:
                tx.create_node(type="Fact", name=f"later {number}")
        assert times_begun(path) == begun
        seen += lines
        assert not any("later" in line for line in seen)
        write_until_begun(db, path, begun + 1)


def test_closing_in_the_middle_of_it_waits_and_leaves_one_file(path: Path) -> None:
    for life in range(20):
        with worlddb.open(path, durability="normal") as db:
            for number in range(15):
                with db.transaction() as tx:
                    tx.create_node(type="Fact", name=f"{life} {number}")
        assert [file.name for file in path.parent.iterdir()] == ["store.db"]
    with worlddb.open(path) as db:
        assert len(db.log()) == 1 + 20 * 15
        assert db.check() == []


def test_a_writer_without_patience_never_fails_because_of_the_log(path: Path) -> None:
    with worlddb.open(path, durability="normal", busy_timeout_s=0) as db:
        write_until_begun(db, path, 8)


def test_the_log_shrinks_again_after_a_large_load(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LOG_BYTES_MAX", 1 << 20)
    with worlddb.open(path, durability="normal") as db:
        with db.transaction(bulk=True) as tx:
            tx.create_nodes(worlddb.NodeDraft(type="Fact", name=f"{i}") for i in range(20_000))
        assert Path(f"{path}-wal").stat().st_size > 2 << 20
        write_until_begun(db, path, times_begun(path) + 1)
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="after it")
        assert Path(f"{path}-wal").stat().st_size <= 1 << 20

"""The size of pages, and the memory for them: one budget for all connections of the process."""

from __future__ import annotations

import contextlib
import gc
import threading
from pathlib import Path

import apsw
import pytest

import worlddb
from worlddb.audit.store_files import restore
from worlddb.store.sqlite import database_file, file_copy
from worlddb.store.sqlite.database_file import PAGE_BUDGET, PageBudget

from .processes import commit_one

USUAL_BYTES = 4_096
TEXT = "word " * 60
ALL_PAGES = "SELECT count(*), sum(length(content)) FROM nodes"


def shares(store: object) -> list[int]:
    """Return the page caches of a store's idle connections and of its writer, in KiB."""
    cons = [reader.con for reader in store._idle] + [store._writer]  # type: ignore[attr-defined]
    return [-con.pragma("cache_size") for con in cons]


def test_many_readers_use_no_more_memory_for_pages_than_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PAGE_BUDGET, "_shares", type(PAGE_BUDGET._shares)())
    with worlddb.open(path) as db:
        store = db.engine.store
        commit_one(db)
        with store.read():
            pass
        alone = shares(store)
        meet = threading.Barrier(8)

        def read() -> None:
            with store.read():
                meet.wait(60)
            meet.wait(60)
            with store.read():
                meet.wait(60)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        commit_one(db)
        assert len(shares(store)) == 9
        assert sum(shares(store)) <= database_file.BUDGET_KIB
        assert sum(alone) >= database_file.BUDGET_KIB * 0.9


def test_the_memory_of_a_server_does_not_grow_with_connections_and_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PAGE_BUDGET, "_shares", type(PAGE_BUDGET._shares)())
    monkeypatch.setattr(PAGE_BUDGET, "_kib", 16_000)
    with worlddb.open(path, durability="normal") as db:
        with db.transaction(bulk=True) as tx:
            tx.create_nodes(
                worlddb.NodeDraft(type="Fact", name=f"{i}", content=TEXT) for i in range(20_000)
            )
        store, meet = db.engine.store, threading.Barrier(8)

        def read_all() -> None:
            for _ in range(2):
                with store.read() as reader:
                    meet.wait(60)
                    # Every page, without a value of Python for each row.
                    con = reader.con  # type: ignore[attr-defined]
                    assert con.execute(ALL_PAGES).get == (20_001, 20_000 * len(TEXT))
                meet.wait(60)

        gc.collect()
        before = apsw.memory_used()
        threads = [threading.Thread(target=read_all) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Nine caches of the whole file would be five times as much.
        assert apsw.memory_used() - before < 20_000 << 10
        assert store.size_bytes() > 8_000 << 10


def test_a_writer_has_a_small_cache_except_for_a_load(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PAGE_BUDGET, "_shares", type(PAGE_BUDGET._shares)())
    with worlddb.open(path) as db:
        writer = db.engine.store._writer  # type: ignore[attr-defined]
        commit_one(db)
        assert writer.pragma("cache_size") == -database_file.WRITER_KIB
        with db.transaction(bulk=True) as tx:
            tx.create_node(type="Fact", name="loaded")
            assert writer.pragma("cache_size") < -10 * database_file.WRITER_KIB
        commit_one(db)
        assert writer.pragma("cache_size") == -database_file.WRITER_KIB
        assert db.check() == []


def test_a_smaller_share_frees_memory_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_file, "SHARE_KIB_MIN", 100)
    with worlddb.open(path) as db, db.transaction() as tx:
        tx.create_nodes(
            worlddb.NodeDraft(type="Fact", name=f"{i}", content="word " * 200) for i in range(4_000)
        )
    budget = PageBudget(4_000)
    with contextlib.closing(apsw.Connection(str(path))) as con:
        budget.share(con)
        con.execute("SELECT sum(length(content)) FROM nodes").fetchall()
        before = con.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]
        others = [apsw.Connection(":memory:") for _ in range(40)]
        for other in others:
            budget.share(other)
        budget.share(con)
        after = con.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]
        assert after < before / 1.5
        for other in others:
            budget.leave(other)
        budget.share(con)
        assert con.pragma("cache_size") == -4_000


def test_a_backup_is_restored_over_a_store_with_pages_of_another_size(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = path.with_name("old.db"), path.with_name("new.db")
    for name, size in ((old, USUAL_BYTES), (new, database_file.PAGE_BYTES)):
        monkeypatch.setattr(file_copy, "PAGE_BYTES", size)
        with worlddb.open(name) as db:
            commit_one(db, name.stem)
            db.backup(f"{name}.copy")
            assert db.engine.store._writer.pragma("page_size") == size  # type: ignore[attr-defined]
    for source, target in ((new, old), (old, new)):
        restore(f"{source}.copy", target, replace=True)
        with worlddb.open(target) as db:
            assert [node.name for node in db.children()] == [source.stem]
            commit_one(db, "on")
            assert db.check() == []

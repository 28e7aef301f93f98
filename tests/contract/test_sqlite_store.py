"""The SQLite store passes the store contract, in a file and in memory."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest

from worlddb.store.backends import open_store
from worlddb.store.interface import Store
from worlddb.testing import StoreContract


def clock() -> int:
    """Return the time in microseconds."""
    return time.time_ns() // 1_000


class TestFileStore(StoreContract):
    """A store in a file."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._path = str(tmp_path / "store.db")

    def make_store(self) -> Store:
        """Return a new store in a file."""
        return open_store(self._path, clock=clock, durability="normal", busy_timeout_s=60)

    def reopen(self, store: Store) -> Store:
        """Close a store and return it opened again."""
        store.close()
        return self.make_store()

    def insert_raw_edge(self, store: Store) -> None:
        """Insert an edge by a connection that is not the store's."""
        con = apsw.Connection(self._path)
        try:
            con.execute(
                "INSERT INTO edges VALUES (1, 1, x'00', 'refers_to', 1, 1, 1, 0, NULL, '{}', 0, 0, "
                "NULL)"
            )
        finally:
            con.close()


class TestMemoryStore(StoreContract):
    """A store in memory: one connection, so sessions wait for each other."""

    readers_block_writers = True

    def make_store(self) -> Store:
        """Return a new store in memory."""
        return open_store(":memory:", clock=clock, busy_timeout_s=60)

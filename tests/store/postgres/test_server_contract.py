"""The PostgreSQL store passes the store contract."""

from __future__ import annotations

import time

import pytest

from worlddb.store.backends import open_store
from worlddb.store.interface import Store
from worlddb.testing import StoreContract


def clock() -> int:
    """Return the time in microseconds."""
    return time.time_ns() // 1_000


class TestServerStore(StoreContract):
    """A tenant of a server."""

    @pytest.fixture(autouse=True)
    def _tenant(self, address: str) -> None:
        self._address = address

    def make_store(self) -> Store:
        """Return the store of a new tenant."""
        return open_store(self._address, clock=clock, durability="normal", busy_timeout_s=60)

    def reopen(self, store: Store) -> Store:
        """Close a store and return it opened again."""
        store.close()
        return self.make_store()

    def insert_raw_edge(self, store: Store) -> None:
        """Insert an edge as the superuser, by a connection that is not the store's."""
        import psycopg

        with psycopg.connect(self._address.partition("&tenant")[0]) as con:
            number = con.execute("SELECT max(tenant) FROM worlddb.heads").fetchone()
            assert number is not None
            con.execute(f"SET worlddb.tenant = '{number[0]}'")
            con.execute(
                "INSERT INTO worlddb.edges VALUES (1, 1, '', 'refers_to', 1, 1, 1, 0, NULL, '{}', "
                "0, 0, NULL)"
            )

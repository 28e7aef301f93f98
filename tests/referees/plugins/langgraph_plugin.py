"""Puts our store in the place of LangGraph's SQLite store, for the tests of the latter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.store.sqlite
import langgraph.store.sqlite.aio

import worlddb
from worlddb.adapters.langgraph_store import WorldStore


class Store(WorldStore):
    @classmethod
    @contextmanager
    def from_conn_string(cls, path: str, **options: Any) -> Iterator[Any]:
        path = path if path == ":memory:" else f"{path}.world"
        made = cls(worlddb.open(path, embedder="none", durability="normal"), **options)
        try:
            yield made
        finally:
            WorldStore.stop_ttl_sweeper(made)

    def setup(self) -> Any:
        """Nothing has to be set up."""


class AsyncStore(Store):
    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, path: str, **options: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        with super().from_conn_string(path, **options) as made:
            yield made

    async def setup(self) -> None:
        """Nothing has to be set up."""

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        return Store.sweep_ttl(self)

    async def start_ttl_sweeper(self, *given: Any) -> Any:  # type: ignore[override]
        return Store.start_ttl_sweeper(self, *given)

    async def stop_ttl_sweeper(self, *given: Any) -> bool:  # type: ignore[override]
        return Store.stop_ttl_sweeper(self, *given)


langgraph.store.sqlite.SqliteStore = Store
langgraph.store.sqlite.AsyncSqliteStore = AsyncStore
langgraph.store.sqlite.aio.AsyncSqliteStore = AsyncStore

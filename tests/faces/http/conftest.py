"""Servers that several tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from worlddb.memory.memory import Memory

from .serving import Site, serving


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A store of one file's tests."""
    path = tmp_path_factory.mktemp("http") / "memory.db"
    with Memory(path, embedder="none", recluster="off") as made:
        yield made


@pytest.fixture(scope="module")
def site(memory: Memory) -> Iterator[Site]:
    """A server on loopback that asks for no token."""
    with serving(memory) as made:
        yield made

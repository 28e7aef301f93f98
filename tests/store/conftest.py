"""What the tests of the store share: a path, an open store, and other processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import worlddb

from .processes import Child, StartChild, starting


@pytest.fixture
def start() -> Iterator[StartChild]:
    """Return a function that starts another process; none of them outlives the test."""
    yield from starting(Child)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the store of this test is."""
    return tmp_path / "store.db"


@pytest.fixture
def db(path: Path) -> Iterator[worlddb.WorldDB]:
    """Return an open store in a file."""
    with worlddb.open(path) as opened:
        yield opened


@pytest.fixture(params=["file", "memory"])
def any_db(request: pytest.FixtureRequest, path: Path) -> Iterator[worlddb.WorldDB]:
    """Return an open store, in a file and in memory in turn."""
    place = ":memory:" if request.param == "memory" else path
    with worlddb.open(place, busy_timeout_s=60) as opened:
        yield opened

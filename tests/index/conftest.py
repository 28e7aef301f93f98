"""Other processes, as the tests of the store have them, with roles of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.processes import Child, StartChild, starting


class IndexChild(Child):
    """Another process; see `child.py` beside this file for the roles."""

    script = Path(__file__).with_name("child.py")


@pytest.fixture
def start() -> Iterator[StartChild]:
    """Return a function that starts another process; none of them outlives the test."""
    yield from starting(IndexChild)

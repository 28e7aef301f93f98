"""The sample store: made once, read by many."""

from __future__ import annotations

from pathlib import Path

import pytest

from .samples import Sample, make_sample


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A store that tests only read."""
    return make_sample(tmp_path_factory.mktemp("sample") / "memory.db")


@pytest.fixture
def own(tmp_path: Path) -> Sample:
    """A store of the test's own, to write to or to damage."""
    return make_sample(tmp_path / "own.db")

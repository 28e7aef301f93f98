"""The sample store: made once, read by many. And nothing of the machine's own settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .samples import Sample, make_sample


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process know no more than those in one of their own."""
    for name in [name for name in os.environ if name.startswith("WORLDDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WORLDDB_CONFIG", os.devnull)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A store that tests only read."""
    return make_sample(tmp_path_factory.mktemp("sample") / "memory.db")


@pytest.fixture
def own(tmp_path: Path) -> Sample:
    """A store of the test's own, to write to or to damage."""
    return make_sample(tmp_path / "own.db")

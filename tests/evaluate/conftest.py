"""What the tests of whole runs share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .samples import longmemeval, save

QUESTIONS = 4


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own settings and keys."""
    for name in [name for name in os.environ if name.startswith("WORLDDB_") or "API_KEY" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WORLDDB_CONFIG", os.devnull)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four questions that can be answered, and one about something never said."""
    items = longmemeval(QUESTIONS)
    items[-1] |= {"question": "Who is my fencing teacher?", "answer": "I don't know"}
    return save(tmp_path_factory.mktemp("data") / "small.json.gz", items)

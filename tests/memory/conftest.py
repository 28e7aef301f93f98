from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from worlddb import Memory


@pytest.fixture(params=["file", "memory"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    path = tmp_path / "memory.db" if request.param == "file" else ":memory:"
    with Memory(path, embedder="none", recluster="off") as made:
        yield made

"""Each trial of `make chaos`, in its short form."""

from __future__ import annotations

from pathlib import Path

import pytest

from .trials import TRIALS, run_trial


@pytest.mark.parametrize("name", TRIALS)
def test_nothing_breaks(tmp_path: Path, name: str) -> None:
    found = run_trial(name, tmp_path / "trial", is_short=True, seed=1)
    assert found.failures == []
    assert found.tried > 0

"""Each trial of `make chaos`, in its short form, and with patience: the suite is no benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from encryption.encrypting_build import MissingBuildError
from patience import PATIENCE_S

from . import trials

ON_A_SERVER = {"killed databases", "failovers", "cut lines", "servers side by side"}


@pytest.mark.parametrize("name", trials.TRIALS)
def test_nothing_breaks(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name in ON_A_SERVER:
        request.getfixturevalue("server")  # Where none can be had, the test is skipped.
    for limit in ("ANSWER_S_MAX", "STOP_S_MAX", "HOSTILE_S_MAX"):
        monkeypatch.setattr(trials, limit, PATIENCE_S)
    try:
        found = trials.run_trial(name, tmp_path / "trial", is_short=True, seed=1)
    except MissingBuildError as error:
        pytest.skip(str(error))
    assert found.failures == []
    assert found.tried > 0

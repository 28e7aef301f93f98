"""The official conformance suite against the real server, in both eras."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Referee

NOT_OFFERED = {
    "2025-11-25": {
        "logging-set-level": "the server logs to stderr, not to the client",
        "tools-call-with-logging": "the same",
        "resources-subscribe": "memories never change, and scopes have no subscribers",
        "resources-unsubscribe": "the same",
    },
    "2026-07-28": {},
}
"""What each revision's suite asks for and this server does not have, and why."""


@pytest.mark.parametrize("revision", NOT_OFFERED)
def test_every_required_scenario_passes_but_what_is_not_offered(
    referee: Referee, fitted: str, tmp_path: Path, revision: str
) -> None:
    expected = tmp_path / "expected.yml"
    # The suite fails on what is listed and passes, too: the list cannot grow stale.
    lines = [f"  - {name}" for name in NOT_OFFERED[revision]] or ["  []"]
    expected.write_text("\n".join(["server:", *lines]) + "\n")
    done = referee(
        *("conformance", "server", "--url", fitted),
        *("--requirements", revision, "--expected-failures", expected),
    )
    told = done.stdout[done.stdout.find("=== SUMMARY") :]
    print(told)
    assert done.returncode == 0, told + done.stderr
    assert len(re.findall("^✓ ", told, re.MULTILINE)) >= 25, told

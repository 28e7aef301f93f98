"""Schemathesis makes requests from the description of REST and compares the server's answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .install import FUZZER, missing
from .test_frameworks import DEADLINE_S

OPTIONS = (
    *("--max-examples", "5", "--seed", "1", "--no-shrink", "--no-color", "--continue-on-failure"),
    *("--phases", "coverage,fuzzing", "--request-timeout", "60", "--warnings", "off"),
    *("--max-time", "300"),  # Less than the deadline; a quiet machine needs a fraction of it.
    # Rules between parameters, such as "name one scope", are told in words and not in the schema.
    *("--exclude-checks", "positive_data_acceptance"),
)

# It knows most statuses that refuse. A wrong and very long URL is refused for its length: 431.
CONFIG = """
[checks.negative_data_rejection]
expected-statuses = ["4xx", "5xx"]
"""


@pytest.fixture
def description(tmp_path: Path) -> Iterator[str]:
    """The address of the description that `worlddb serve` gives."""
    if why := missing():
        pytest.skip(why)
    served = [sys.executable, "-m", "worlddb", "serve", "--port", "0", "--json"]
    with subprocess.Popen(
        [*served, "--db", str(tmp_path / "m.db")],
        env=os.environ | {"WORLDDB_CONFIG": os.devnull, "XDG_DATA_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            lines: list[str] = []
            while not lines or lines[-1] not in ("}\n", ""):
                lines.append(server.stdout.readline())
            yield json.loads("".join(lines))["openapi"]
        finally:
            server.terminate()


def test_every_answer_is_one_that_the_description_tells(description: str, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    done = subprocess.run(
        [str(FUZZER), "run", description, *OPTIONS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    print(done.stdout[done.stdout.find("= SUMMARY =") :])
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-1_000:]

"""Run the outside referees: node, a server to look at, and what they said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .install import PROGRAMS, missing

DEADLINE_S = 300
Referee = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    if why := missing():
        pytest.skip(why)


@pytest.fixture
def referee(tmp_path: Path) -> Referee:
    """Run `inspector` or `conformance` with arguments, in a home of its own."""

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        folder = PROGRAMS["node"].parent
        return subprocess.run(
            [str(PROGRAMS["node"]), str(PROGRAMS[name]), *map(str, arguments)],
            env={"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    return run


def serving(path: Path, *flags: str) -> Iterator[str]:
    """Serve over HTTP and yield the address."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "serve.py"), str(path), *flags],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the server did not start"
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server as it is."""
    yield from serving(tmp_path_factory.mktemp("plain") / "m.db")


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server with the conformance suite's fixtures added."""
    yield from serving(tmp_path_factory.mktemp("fitted") / "m.db", "--fixtures")

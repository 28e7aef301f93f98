"""Other processes, none of which outlives its test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHILD = Path(__file__).with_name("child.py")


class Child:
    """Another process; see `child.py` for the roles."""

    def __init__(self, *command: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD), *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> Any:
        """Return the next thing the process says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        return json.loads(line)

    def go(self) -> None:
        """Let a process that waits go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End the process at once, without a word to it."""
        self.process.kill()
        self.process.communicate()


StartChild = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[StartChild]:
    """Return a function that starts another process."""
    children: list[Child] = []

    def start_child(*command: str | Path) -> Child:
        children.append(Child(*command))
        return children[-1]

    yield start_child
    for child in children:
        child.kill()

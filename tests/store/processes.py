"""Other processes as the tests see them, and the one commit that most tests need."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import worlddb
from patience import PATIENCE_S
from started_program import StartedProgram

CHILD = Path(__file__).with_name("child.py")


class Child:
    """Another process; see `child.py` for the roles."""

    script = CHILD

    def __init__(self, *command: str | Path) -> None:
        self.process = StartedProgram(self.script, [str(part) for part in command], os.environ)

    def hear(self) -> Any:
        """Return the next thing the process says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors()
        return json.loads(line)

    def errors(self) -> str:
        """Return what the process complained about until its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def go(self) -> None:
        """Let a process that waits go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def tell(self, *values: Any) -> list[Any]:
        """Say all values, one line each, and return as many answers."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(json.dumps(value) + "\n" for value in values).encode())
        self.process.stdin.flush()
        return [self.hear() for _ in values]

    def rest(self) -> list[Any]:
        """Let the process end and return everything else it says."""
        said, complaints = self.process.communicate(timeout=PATIENCE_S)
        assert not complaints, complaints
        return [json.loads(line) for line in said.splitlines()]

    def end(self) -> None:
        """Make sure that the process is gone."""
        self.process.kill()
        self.process.communicate()


StartChild = Callable[..., Child]


def starting(kind: type[Child]) -> Iterator[StartChild]:
    """Yield a function that starts another process; none of them outlives the test."""
    children: list[Child] = []

    def start_child(*command: str | Path) -> Child:
        children.append(kind(*command))
        return children[-1]

    yield start_child
    for child in children:
        child.end()


def commit_one(db: worlddb.WorldDB, name: str = "a node") -> worlddb.Node:
    """Make one commit with one node."""
    with db.transaction(actor="test") as tx:
        return tx.create_node(type="Fact", name=name)


def picture(db: worlddb.WorldDB) -> tuple[Any, ...]:
    """Return what a failed write must not change."""
    return db.root_state, db.log(), list(db.export())

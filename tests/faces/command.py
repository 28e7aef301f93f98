"""Run the real command: in a process of its own, on a terminal, or in this process for speed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from worlddb.faces.cli import run

COMMAND = [sys.executable, "-m", "worlddb"]
KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")
DEADLINE_S = 60


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[str]:
        """The lines of a table below its headers."""
        return self.out.splitlines()[1:]


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment that knows nothing of the machine's own stores and colours."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {"HOME": "/nonexistent", "TERM": "xterm"} | dict(given or {})


def worlddb(
    *arguments: object,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """Run `worlddb arguments…` and wait for it."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(env),
        cwd=cwd,
        timeout=DEADLINE_S,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def in_process(
    *arguments: object,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """Run the same command without the cost of a process."""
    if env is not None:
        with patch.dict(os.environ, environment(env), clear=True):
            return in_process(*arguments, stdin=stdin, cwd=cwd)
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    place = contextlib.chdir(cwd) if cwd else contextlib.nullcontext()
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        with (
            open(file.fileno(), encoding="utf-8", closefd=False) as given,
            patch("sys.stdin", given),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            place,
        ):
            code = run([str(argument) for argument in arguments])
    return Result(code, out.buffer.getvalue().decode(), err.getvalue())


def on_terminal(*arguments: object, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run the command with a terminal as stdin, stdout and stderr; return its code and screen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(env),
    )
    os.close(theirs)
    screen = b""
    # Linux ends a terminal that nobody holds with an error, others with an empty read.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65_536):
            screen += chunk
    os.close(ours)
    return process.wait(DEADLINE_S), screen.decode()

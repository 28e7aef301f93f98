"""Forked commands: processes of the command whose imports were done once for all of them.

A server imports for more than a second before its first line of code runs. Here one process, made
by Python's own fork server, imports; each command begins as a copy of it, with an environment,
standard files, a process number and an exit code of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any, BinaryIO

from patience import PATIENCE_S

PRELOADED = ["worlddb.faces.http.http_server", "worlddb.faces.mcp.stdio_transport"]
FORKS = multiprocessing.get_context("forkserver")


class _Given:
    """A file that a process is given by its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _taken, (DupFd(self.number),)


def _taken(given: Any) -> int:
    return int(given.detach())


def _run(
    program: str | Path, arguments: Sequence[str], env: Mapping[str, str], *files: int
) -> None:
    """Be the command: what a fresh interpreter would have, and then its program."""
    import atexit
    import threading

    for number, given in enumerate(files):
        os.dup2(given, number)
        os.close(given)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    sys.argv = ["worlddb", *arguments]
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
    code: Any = 0
    try:
        text = program.read_text() if isinstance(program, Path) else program
        names = {"__name__": "__main__", "__file__": str(program)}
        exec(compile(text, "<command>", "exec"), names)
    except SystemExit as left:
        code = left.code
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    # What the end of an interpreter does, and the end of a copy does not.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        file.flush()
    os._exit(code or 0)


class ForkedCommand:
    """A process that runs a program, as text or file, with the names of `subprocess.Popen`."""

    def __init__(
        self,
        program: str | Path,
        arguments: Sequence[str],
        env: Mapping[str, str],
        *,
        stderr: BinaryIO | None = None,
    ) -> None:
        FORKS.set_forkserver_preload(PRELOADED)
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_err, theirs_err = os.pipe() if stderr is None else (None, os.dup(stderr.fileno()))
        theirs = theirs_in, theirs_out, theirs_err
        self.stdin: IO[bytes] | None = os.fdopen(ours_in, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(ours_out, "rb")
        self.stderr: IO[bytes] | None = None if ours_err is None else os.fdopen(ours_err, "rb")
        given = program, list(arguments), dict(env), *map(_Given, theirs)
        self._process = FORKS.Process(target=_run, args=given)
        self._process.start()
        for number in theirs:
            os.close(number)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Return the exit code, once it has left."""
        self._process.join(timeout)
        assert self._process.exitcode is not None, "it has not ended"
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = PATIENCE_S) -> tuple[bytes, bytes]:
        """Let it end, and return what it still says; what it says on stderr has to be short."""
        if self.stdin is not None and not self.stdin.closed:
            self.stdin.close()
        files = (self.stdout, self.stderr)
        said = [b"" if one is None or one.closed else one.read() for one in files]
        self.wait(timeout)
        self.close()
        return said[0], said[1]

    def close(self) -> None:
        """Close our ends."""
        for one in (self.stdin, self.stdout, self.stderr):
            if one is not None:
                one.close()

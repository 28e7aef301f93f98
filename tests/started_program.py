"""Started programs: another process that runs a program of a test, spoken to by pipes of bytes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO


class StartedProgram(subprocess.Popen[bytes]):
    """A process that runs a program, given as text or as a file."""

    def __init__(
        self,
        program: str | Path,
        arguments: Sequence[str],
        env: Mapping[str, str],
        *,
        stderr: BinaryIO | None = None,
    ) -> None:
        script = [str(program)] if isinstance(program, Path) else ["-c", program]
        super().__init__(
            [sys.executable, *script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stderr is None else stderr,
            env=dict(env),
        )

    def close(self) -> None:
        """Close our ends."""
        for one in (self.stdin, self.stdout, self.stderr):
            if one is not None:
                one.close()

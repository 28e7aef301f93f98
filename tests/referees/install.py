"""Install agent frameworks and their own tests into a cache: python tests/referees/install.py

The tests beside it run what is there and say what is not; they never download anything. Nothing of
the frameworks enters the repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "worlddb-tests"
HOME = CACHE / "frameworks"
PYTHON = HOME / "venv" / "bin" / "python"
# CrewAI and OpenAI Agents ask for different versions of one library.
APART = HOME / "venv-crewai" / "bin" / "python"
APART_PACKAGES = ["crewai==1.15.30", "pytest"]
FUZZER = HOME / "venv-openapi" / "bin" / "schemathesis"
FUZZER_PACKAGES = ["schemathesis==4.32.5"]
PACKAGES = [
    "langgraph==1.2.20",
    "langgraph-checkpoint==4.3.1",
    "langgraph-checkpoint-sqlite==3.1.2",
    "langgraph-checkpoint-conformance==0.0.2",
    "langchain-tests==1.1.9",
    "openai-agents==0.24.0",
    "anthropic==2.8.0",
    "claude-agent-sdk==0.2.182",
    "pydantic-ai-harness==0.62.0",
    "llama-index-core==0.14.25",
    "strands-agents==1.62.0",
    "google-adk==2.13.0",
    "agent-framework-core==1.23.0",
    "haystack-ai==3.4.0",
    "deepagents==0.7.32",
    "agent-memory-guard==0.3.3",
    *("pypdf==7.0.1", "python-docx==1.2.0"),  # What documents are read with.
    # What the tests of the frameworks need, and what builds the metadata of their sources.
    *("pytest-asyncio", "pytest-retry", "hatchling", "hatch-fancy-pypi-readme"),
]


class SourceTests(NamedTuple):
    """Tests in the source distribution of a package, and our plug-in that swaps the class."""

    package: str
    plugin: str
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()


SOURCES = {
    "langgraph-store": SourceTests(
        "langgraph_checkpoint_sqlite-3.1.2",
        "langgraph_plugin",
        ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py"),
    ),
    "openai-agents": SourceTests(
        "openai_agents-0.24.0",
        "openai_plugin",
        tuple(
            f"tests/memory/test_session{part}.py"
            for part in ("", "_limit", "_context_wrapper", "_persistence_sanitize")
        ),
    ),
    "anthropic": SourceTests(
        "anthropic-2.8.0",
        "anthropic_plugin",
        ("tests/lib/tools/memory_tools/test_filesystem.py",),
        ("--noconftest", "-o", "addopts=", "-o", "filterwarnings=", "-o", "asyncio_mode=auto"),
    ),
}


def missing() -> str | None:
    """Return why the referees cannot run, or None if they can."""
    wanted = [PYTHON, APART, FUZZER, *(HOME / source.package for source in SOURCES.values())]
    # The package that came last: an older cache does not have it.
    guard = HOME.glob("venv/lib/*/site-packages/agent_memory_guard")
    if all(path.exists() for path in wanted) and any(guard):
        return None
    return "the frameworks are not installed; 'make outside' installs them, once (1 GB)"


def install() -> int:
    """Install what is missing; return the exit code."""
    HOME.mkdir(parents=True, exist_ok=True)
    ours = ["--editable", str(REPOSITORY)]
    for python, packages in (
        (FUZZER.parent / "python", FUZZER_PACKAGES),
        (APART, [*ours, *APART_PACKAGES]),
        (PYTHON, [*ours, *PACKAGES]),
    ):
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "install", "--quiet", *packages], check=False)
        if done.returncode:
            return done.returncode
    for source in SOURCES.values():
        if done.returncode or (HOME / source.package).exists():
            continue
        name = "==".join(source.package.replace("_", "-").rsplit("-", 1))
        options = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(HOME))
        done = subprocess.run([*pip, "download", "--quiet", *options, name], check=False)
        if not done.returncode:
            with tarfile.open(HOME / f"{source.package}.tar.gz") as archive:
                archive.extractall(HOME, filter="data")
    return done.returncode


if __name__ == "__main__":
    sys.exit(install())

"""Run `worlddb eval` against a local endpoint, and read what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from faces.command import Result, in_process
from models.server import Endpoint

TIMES = ("write_s", "recall_s")


def options(server: Endpoint, out: Path, *, mode: str = "qa", judge: bool = True) -> list[Any]:
    """Return the options of a run whose models are all behind one endpoint."""
    roles: list[Any] = ["--answerer", f"openai:answers@{server.url}"]
    roles += ["--extractor", f"openai:reads@{server.url}"]
    roles += ["--judge", f"openai:judges@{server.url}" if judge else "none"]
    return ["--mode", mode, "--embedder", "hash", "--out", out, "--yes", *roles]


def asked(what: str, data: Path, server: Endpoint, out: Path, *more: Any, **kinds: Any) -> Result:
    """Run a benchmark in this process."""
    return in_process("eval", what, "--data", data, *options(server, out, **kinds), *more)


def records(out: Path) -> list[dict[str, Any]]:
    """Return the lines of a run."""
    return [json.loads(line) for line in (out / "questions.jsonl").read_text().splitlines()]


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines without what no two runs have in common."""
    kept = [{name: value for name, value in line.items() if name not in TIMES} for line in lines]
    for line in kept:
        if "qa" in line:
            line["qa"] = {name: value for name, value in line["qa"].items() if name != "times"}
    return kept

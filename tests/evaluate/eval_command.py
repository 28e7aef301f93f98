"""Run `worlddb eval` against a local endpoint, and read what it leaves behind."""

from __future__ import annotations

import json
from math import isclose
from pathlib import Path
from typing import Any

from faces.command import Result, in_process
from models.server import Endpoint

TIMES = ("write_s", "recall_s", "times")


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


class Near(float):
    """A number of a record; sums of another order of addition may round to the next digit."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and isclose(self, other, abs_tol=2e-4)

    def __ne__(self, other: object) -> bool:
        return not self == other


def timeless(value: Any) -> Any:
    """Return the lines of a run without what no two runs have in common."""
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name not in TIMES}
    if isinstance(value, list):
        return [timeless(item) for item in value]
    return Near(value) if isinstance(value, float) else value

"""The MCP Inspector's command line against the real server: over stdio and HTTP, in both eras."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Referee

SERVER = (sys.executable, "-m", "worlddb", "mcp", "--search-fetch", "--db")


def ok(referee: Referee, *arguments: object) -> Any:
    done = referee("inspector", "--cli", "--format", "json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_it_finds_no_fault_with_any_schema(referee: Referee, tmp_path: Path) -> None:
    done = referee(
        *("inspector", "--cli", "--method", "tools/list", "--strict"),
        *(*SERVER, tmp_path / "m.db"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(json.loads(done.stdout)["tools"]) == 11


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_writes_over_stdio_and_recalls_in_another_process(
    referee: Referee, tmp_path: Path, era: str
) -> None:
    def call(tool: str, **arguments: object) -> Any:
        return ok(
            referee,
            *("--method", "tools/call", "--protocol-era", era, "--tool-name", tool),
            *("--tool-args-json", json.dumps(arguments), *SERVER, tmp_path / "m.db"),
        )

    told = call("memory_write", text="The gate opens at nine", user_id="ada")
    found = call("memory_recall", query="When does the gate open?", user_id="ada")
    ident = (told.get("result") or told)["structuredContent"]["id"]
    assert (found.get("result") or found)["structuredContent"]["hits"][0]["id"] == ident


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list"])
def test_it_lists_everything_over_http(referee: Referee, plain: str, era: str, method: str) -> None:
    told = ok(referee, plain, "--protocol-era", era, "--method", method)
    kind = method.partition("/")[0]
    assert len((told.get("result") or told)[kind]) == {"tools": 9}.get(kind, 1)


def test_its_load_test_meets_no_error(referee: Referee, plain: str) -> None:
    done = referee(
        *("inspector", "--cli", plain, "--method", "tools/call", "--tool-name", "memory_recall"),
        *("--tool-arg", "query=anything", "--load", "--load-requests", 200),
        *("--load-concurrency", 4, "--format", "json"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)["result"]
    assert (told["ok"], told["toolErrors"], told["errors"]) == (200, 0, 0)

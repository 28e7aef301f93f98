"""`worlddb extract --pending`: the real command against a real endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import worlddb
from worlddb.errors import ProviderError
from worlddb.models.model_tasks import LlmExtractor

from .server import KEY, Endpoint, Fault, in_turn, serving

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
TOLD = json.dumps({"facts": [{"text": "It rained in Oslo.", "subject": "Oslo"}]})
KEPT = ("PATH", "PYTHONPATH", "LANG", "TMPDIR")


class Result(NamedTuple):
    code: int
    out: str
    err: str


def down(messages: list[dict[str, str]]) -> str:
    raise ProviderError("the model is down")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with worlddb.open(path, embedder="hash") as db:
        for number in range(2):
            db.ingest(f"It rained in Oslo, {number}.", extractor=LlmExtractor(down), at=NOON)
    return path


def extract(store: Path, *arguments: str, **environment: str) -> Result:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "worlddb", "extract", "--pending", *arguments],
        capture_output=True,
        text=True,
        env=kept | {"HOME": "/nonexistent", "WORLDDB_PATH": str(store)} | environment,
        timeout=60,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def model_at(server: Endpoint, **more: str) -> dict[str, str]:
    return {
        "WORLDDB_LLM_PROVIDER": "anthropic",
        "WORLDDB_LLM_BASE_URL": server.url,
        "WORLDDB_LLM_MODEL": "m",
        "WORLDDB_LLM_API_KEY": KEY,
        **more,
    }


def test_what_waits_is_listed_and_no_model_is_asked(store: Path) -> None:
    done = extract(store, "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("the model is down") == 2
    data: Any = json.loads(extract(store, "--dry-run", "--json", "--limit", "1").out)
    assert [item["attempts"] for item in data["pending"]] == [1]


def test_what_waits_is_extracted_and_the_tokens_are_told(store: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "mine.txt"
    prompt.write_text("Mine.")
    with serving(in_turn(TOLD)) as server:
        first = extract(store, "--limit", "1", "--prompt", str(prompt), **model_at(server))
        assert (first.code, first.err) == (0, "")
        assert first.out == f"{store}: 1 extracted, 0 failed, 1 left; 100 tokens read, 7 written\n"
        second = extract(store, "--json", **model_at(server))
    data = json.loads(second.out)
    assert (len(data["done"]), data["left"], data["usage"]["requests"]) == (1, 0, 1)
    assert server.seen[0].told == "Mine."
    assert {seen.headers["x-api-key"] for seen in server.seen} == {KEY}
    with worlddb.open(store) as db:
        assert {commit.actor for commit in db.log()} >= {"extract"}
        assert len(db.query().filter_type("Fact").execute()) == 1
        assert db.check() == []


def test_a_failing_model_is_told_with_its_own_exit_code_and_without_the_key(store: Path) -> None:
    with serving(in_turn(Fault(401, {"error": {"message": f"bad key {KEY}"}}))) as server:
        done = extract(store, **model_at(server))
    assert done.code == 9
    assert "0 extracted, 2 failed, 2 left" in done.out
    assert done.err.startswith("worlddb: 2 could not be extracted and still wait: ")
    assert "HTTP 401" in done.err
    assert KEY not in done.out + done.err


def test_without_a_model_the_variables_are_named(store: Path) -> None:
    done = extract(store)
    assert done.code == 2
    assert "WORLDDB_LLM_PROVIDER" in done.err
    done = extract(store, WORLDDB_LLM_PROVIDER="gemini", WORLDDB_LLM_MODEL="m")
    assert (done.code, "ollama" in done.err) == (2, True)

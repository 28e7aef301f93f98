"""`/v1/doctor`, and a check that says how far it is."""

from __future__ import annotations

import json
from pathlib import Path

from faces.http.serving import serving
from worlddb import Client, Memory
from worlddb.faces.http.access_tokens import AccessToken, make_access, token_digest

NDJSON = {"Accept": "application/x-ndjson"}


def test_the_doctor_tells_of_store_vectors_embedder_and_background(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none") as memory, serving(memory) as site:
        memory.write("Sarah Chen leads Project Falcon.", user_id="ada")
        with Client(site.url) as client:
            told = client.doctor()
    assert told.healthy
    parts = {one.part: one for one in told.findings}
    assert {"store", "write-ahead log", "vectors", "embedder", "background"} <= parts.keys()
    assert "commit 1" in parts["store"].seen
    assert "soundness" not in parts


def test_the_doctor_and_the_check_are_for_administrators() -> None:
    ada = AccessToken(name="ada", digest=token_digest(b"ada-token"), bounds={"user_id": ("ada",)})
    with (
        Memory(":memory:", embedder="none") as memory,
        serving(memory, make_access(host="127.0.0.1", tokens=(ada,))) as site,
    ):
        caller = site.as_("ada-token")
        assert caller.get("/v1/doctor").status == 403
        assert caller.send("GET", "/v1/check", headers=NDJSON).status == 403


def test_a_check_streams_its_stages_and_then_its_result() -> None:
    with Memory(":memory:", embedder="none") as memory, serving(memory) as site:
        memory.write("I live in Hamburg.", user_id="ada")
        answer = site.send("GET", "/v1/check", headers=NDJSON)
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        *stages, result = [json.loads(line) for line in answer.body.splitlines()]
        assert [one["done"] for one in stages] == list(range(len(stages)))
        assert {one["total"] for one in stages} == {len(stages)}
        assert [one["stage"] for one in stages][:2] == ["file", "schema"]
        assert result == site.get("/v1/check").data
        assert result["sound"]

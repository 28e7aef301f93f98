"""The graph over REST: what a caller reaches, and that a bound token stays inside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from worlddb import Client, Memory, verify_proof
from worlddb.faces.http.access_tokens import make_access

from .serving import Site, serving, token

JAN, FEB = "2026-01-01T10:00:00Z", "2026-02-01T10:00:00Z"
TOKENS = (
    token("root", admin=True),
    token("ada", bounds={"user_id": ("ada",)}),
    token("bob", bounds={"user_id": ("bob",)}),
    token("reader", bounds={"user_id": ("ada",)}, read_only=True),
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Memory(tmp_path / "memory.db", embedder="none", recluster="now") as memory:
        memory.write("Sarah Chen lives in Rome.", user_id="ada", at=JAN)
        memory.write("Sara Chen moved to Oslo.", user_id="ada", at=FEB)
        memory.write("Bob eats apples.", user_id="bob", at=JAN)
        with serving(memory, make_access(host="127.0.0.1", tokens=TOKENS)) as made:
            yield made
        assert memory.db.check() == []


def test_a_query_as_a_line_and_as_json(site: Site) -> None:
    ada = site.as_("ada")
    line = ada.post("/v1/query", query="text Oslo | filter_type Memory | limit 5")
    assert line.status == 200, line.body
    assert [node["content"] for node in line.data["nodes"]] == ["Sara Chen moved to Oslo."]
    steps = [{"op": "filter_type", "types": ["Memory"]}]
    assert ada.post("/v1/query", query={"text": "Oslo", "steps": steps}).data == line.data
    assert ada.post("/v1/query/explain", query="text Oslo").data["start"] == "the words 'Oslo'"
    assert site.as_("bob").post("/v1/query", query="text Oslo").data["nodes"] == []
    assert ada.post("/v1/query", query="fetch it").status == 400
    assert ada.post("/v1/query", query=5).status == 400
    assert ada.post("/v1/query").status == 400


def test_merges_are_decided_and_undone(site: Site) -> None:
    ada, bob = site.as_("ada"), site.as_("bob")
    [one] = ada.get("/v1/proposals").data["proposals"]
    assert bob.get("/v1/proposals").data["proposals"] == []
    edge = one["edge"]
    assert bob.post(f"/v1/proposals/{edge}", decision="accept").status == 404
    assert site.as_("reader").post(f"/v1/proposals/{edge}", decision="accept").status == 403
    assert ada.post(f"/v1/proposals/{edge}", decision="perhaps").status == 400
    assert ada.post(f"/v1/proposals/{edge}", decision="accept").data["status"] == "accepted"
    names = ada.get(f"/v1/identity/{one['left']}").data["names"]
    assert set(names) == {"Sarah Chen", "Sara Chen"}
    assert ada.post(f"/v1/proposals/{edge}", decision="undo").data["status"] == "pending"


def test_an_identity_by_a_name(site: Site) -> None:
    ada, bob = site.as_("ada"), site.as_("bob")
    ada.post("/v1/memories", text="The band.", names=["AC/DC"])
    for said, name in (("Sarah%20Chen", "Sarah Chen"), ("AC%2FDC", "AC/DC"), ("AC/DC", "AC/DC")):
        assert ada.get(f"/v1/identity/{said}").data["names"] == [name]
        assert bob.get(f"/v1/identity/{said}").status == 404
    assert ada.get("/v1/identity/").status == 400
    with Client(site.url, token="ada") as client:
        assert client.identity("AC/DC").names == ("AC/DC",)


def test_history_and_undo_stay_inside_a_token(site: Site) -> None:
    ada, bob = site.as_("ada"), site.as_("bob")
    commits = ada.get("/v1/log").data["commits"]
    last = max(commit["seq"] for commit in commits)
    moved = max(one["seq"] for one in commits if one["nodes"])
    assert all("Sar" not in str(commit) for commit in bob.get("/v1/log").data["commits"])
    assert bob.post("/v1/undo", commit=moved).status == 403
    assert bob.post("/v1/undo", commit=10_000).status == 403
    done = ada.post("/v1/undo", commit=moved, dry_run=True)
    assert (done.status, done.data["commit"]) == (200, None)
    done = ada.post("/v1/undo", commit=[moved])
    assert done.status == 200, done.body
    assert [one["text"] for one in ada.get("/v1/memories").data["memories"]] == [
        "Sarah Chen lives in Rome."
    ]
    again = ada.post("/v1/undo", commit=moved)
    assert again.status == 409
    found = ada.get(f"/v1/diff?first=0&last={last}").data
    assert all("apples" not in node["content"] for node in found["nodes"])
    ident = ada.get("/v1/memories").data["memories"][0]["id"]
    assert ada.get(f"/v1/prove/{ident}").status == ada.get("/v1/check").status == 403
    proven = site.as_("root").get(f"/v1/prove/{ident}").data
    assert verify_proof(proven["proof"], proven["root_state"])
    assert site.as_("root").get("/v1/check").data["sound"]


def test_edges_types_conflicts_and_upkeep(site: Site) -> None:
    ada = site.as_("ada")
    one, two = (
        ada.post("/v1/memories", text=text).data["id"]
        for text in ("The hall seats ten.", "Eight chairs stand there.")
    )
    edge = ada.post("/v1/edges", type="contradicts", source=one, target=two).data
    assert len(ada.get("/v1/conflicts").data["conflicts"]) >= 1
    assert site.as_("bob").get("/v1/conflicts").data["conflicts"] == []
    assert site.as_("bob").post(f"/v1/edges/{edge['id']}/unlink").status in (400, 404)
    assert ada.post(f"/v1/edges/{edge['id']}/unlink", user_id="ada").data["known_to"]
    declared = ada.post("/v1/ontology", type="leads", acyclic=True)
    assert declared.data["acyclic"] is True
    assert "leads" in {one["type"] for one in ada.get("/v1/ontology").data["types"]}
    assert "leads" not in {one["type"] for one in site.as_("bob").get("/v1/ontology").data["types"]}
    report = ada.post("/v1/consolidate", dry_run=True)
    assert (report.status, report.data["dry_run"]) == (200, True)
    [sarah] = [
        node
        for node in ada.post("/v1/query", query="text Sarah").data["nodes"]
        if node["name"] == "Sarah Chen"
    ]
    refused = ada.post("/v1/split", id=sarah["id"], memories=[one])
    assert (refused.status, "none of these memories" in refused.error) == (400, True)

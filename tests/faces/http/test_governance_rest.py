"""Receipts, proofs, reads, retention, export and erasure over REST, for whom they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from worlddb import Memory, verify_history
from worlddb.faces.http.access_tokens import make_access

from .serving import Site, serving, token

TOKENS = (
    token("root", admin=True),
    token("ada", bounds={"user_id": ("ada",)}),
    token("bob", bounds={"user_id": ("bob",)}),
    token("pen", bounds={"user_id": ("bob",)}, curates=False),
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    options = {"embedder": "none", "recluster": "off", "audit_reads": True}
    with Memory(tmp_path / "memory.db", **options) as memory:  # type: ignore[arg-type]
        memory.write("I live in Rome.", user_id="ada")
        memory.write("Bob eats apples.", user_id="bob")
        yield memory


@pytest.fixture
def site(memory: Memory) -> Iterator[Site]:
    with serving(memory, make_access(host="127.0.0.1", tokens=TOKENS)) as made:
        yield made


def test_a_recall_has_a_receipt_that_can_be_verified(site: Site, memory: Memory) -> None:
    ada = site.as_("ada")
    assert ada.post("/v1/recall", query="Where do I live?").data["receipt"] is None
    found = ada.post("/v1/recall", query="Where do I live?", receipt=True)
    assert found.status == 200, found.body
    assert memory.verify_receipt(found.data["receipt"])


def test_an_administrator_alone_has_proofs_reads_and_policies(site: Site) -> None:
    ada, root = site.as_("ada"), site.as_("root")
    ada.post("/v1/recall", query="Where do I live?")
    for path in ("/v1/prove_history", "/v1/reads", "/v1/retention"):
        assert ada.get(path).status == 403
    assert ada.post("/v1/retention", user_id="ada", hold="off").status == 403
    assert verify_history(root.get("/v1/prove_history").data)
    [read] = root.get("/v1/reads").data["reads"]
    assert (read["call"], read["scopes"]) == ("recall", ["user:ada"])
    made = root.post("/v1/retention", user_id="ada", keep_days=90, hold="on")
    assert (made.status, made.data["keep_days"]) == (200, 90), made.body
    assert root.get("/v1/retention").data["policies"] == [made.data]
    assert root.post("/v1/apply_retention", dry_run=True).data["due"][0]["ids"] == []


def test_a_person_takes_everything_along_and_is_erased(site: Site) -> None:
    ada, root = site.as_("ada"), site.as_("root")
    taken = ada.get("/v1/export?user_id=ada&receipt=true")
    assert taken.status == 200, taken.body
    assert [one["text"] for one in taken.data["memories"]] == ["I live in Rome."]
    assert taken.data["receipt"]["payload"]
    assert ada.get("/v1/export?user_id=bob").status == 403
    root.post("/v1/retention", user_id="ada", hold="on")
    assert root.post("/v1/erase", user_id="ada", confirm="ada").status == 403
    root.post("/v1/retention", user_id="ada", hold="off")
    assert root.post("/v1/erase", user_id="ada", confirm="ada").data["ids"]
    assert root.get("/v1/export?user_id=ada").data["memories"] == []


def test_a_token_opens_its_scope_to_another_and_closes_it_again(site: Site) -> None:
    ada, bob = site.as_("ada"), site.as_("bob")
    asked: dict[str, Any] = {"to": "user:ada", "right": "read"}
    assert site.as_("pen").post("/v1/grants", **asked).status == 403
    assert ada.post("/v1/recall", query="apples", user_id="bob").status == 403
    given = bob.post("/v1/grants", **asked)
    assert (given.status, given.data["to"]["value"]) == (200, "ada"), given.body
    found = ada.post("/v1/recall", query="apples", user_id="bob").data["hits"]
    assert [one["node"]["content"] for one in found] == ["Bob eats apples."]
    assert ada.get("/v1/grants").data == bob.get("/v1/grants").data
    assert ada.post(f"/v1/grants/{given.data['id']}/revoke").status == 404
    assert bob.post(f"/v1/grants/{given.data['id']}/revoke").data["ended"]
    assert ada.get("/v1/memories?user_id=bob").status == 403
    bob.post("/v1/grants", to="user:ada", right="write", until="2100-01-01")
    told = ada.post("/v1/memories", text="Buy milk.", user_id="bob")
    assert told.status == 200, told.body
    listed = bob.get("/v1/memories").data["memories"]
    assert [(one["actor"], one["shared"]) for one in listed if one["text"] == "Buy milk."] == [
        ("http ada", True)
    ]
    assert bob.post(f"/v1/memories/{told.data['id']}/refuse").status == 200
    assert ada.post("/v1/memories", text="Buy tea.", user_id="bob").status == 403


def test_an_administrator_alone_makes_merges_and_drops_branches(site: Site, memory: Memory) -> None:
    ada, root = site.as_("ada"), site.as_("root")
    made = root.post("/v1/branches", name="try")
    assert (made.status, made.data["name"]) == (200, "try"), made.body
    for path in ("/v1/branches", "/v1/branches/try/diff", "/v1/branches/none/diff"):
        assert ada.get(path).status == 403
    for path in ("/v1/branches/try/merge", "/v1/branches/try/drop"):
        assert ada.post(path).status == 403
    with memory.branch("try", create=False) as trial:
        trial.write("I moved to Paris.", user_id="ada")
    found = root.get("/v1/branches/try/diff").data
    assert "I moved to Paris." in [node["content"] for node in found["nodes"]]
    assert root.post("/v1/branches/try/merge", dry_run=True).data["commit"] is None
    merged = root.post("/v1/branches/try/merge").data
    assert (merged["conflicts"], merged["branch"]) == ([], "try")
    assert root.get("/v1/branches").data["branches"][0]["fork"] == made.data["fork"]
    assert root.post("/v1/branches/try/drop").data == {"branches": []}
    assert root.get("/v1/branches/try/diff").status == 404
    hits = ada.post("/v1/recall", query="Where do I live?").data["hits"]
    assert hits[0]["node"]["content"] == "I moved to Paris."

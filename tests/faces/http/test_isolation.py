"""Isolation: a token opens its own scopes and nothing else, over REST and over MCP."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from worlddb import ScopeName
from worlddb.faces.http.access_tokens import make_access
from worlddb.faces.http.served_stores import CallerMemory
from worlddb.faces.http.server_metrics import ServerMetrics
from worlddb.memory.memory import Memory

from .serving import Site, serving, token

SECRET = "Ada keeps the spare key under the blue flowerpot"
TOKENS = (
    token("root", admin=True),
    token("ada", bounds={"user_id": ("ada",)}, writes_into=("agent_id",)),
    token("bob", bounds={"user_id": ("bob",)}),
    token("reader", bounds={"user_id": ("ada",)}, read_only=True),
    token("watcher", admin=True, read_only=True),
    token("both", bounds={"user_id": ("bob",), "agent_id": ("helper",)}),
)


class Shop(NamedTuple):
    """A server with Ada's secret on it, its id, and the memory behind it."""

    site: Site
    id: str
    memory: Memory


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Ada has written something, with an agent; Bob something else."""
    with Memory(tmp_path / "memory.db", embedder="none", recluster="off") as memory:
        yield from _shop(memory)


def _shop(memory: Memory) -> Iterator[Shop]:
    ident = memory.write(SECRET, user_id="ada", agent_id="helper", run_id="r1").id
    memory.write("Bob grows tomatoes", user_id="bob", agent_id="helper")
    with serving(memory, make_access(host="127.0.0.1", tokens=TOKENS)) as site:
        yield Shop(site, str(ident), memory)
    assert memory.read(ident).text == SECRET
    assert not memory.read(ident).retired
    assert memory.db.check() == []


def told_nothing(*answers: Any) -> None:
    for answer in answers:
        assert "flowerpot" not in str(answer), answer
        assert "user:ada" not in str(answer).replace("user:ada is not yours", ""), answer


@pytest.mark.parametrize("digits", [4, 8, 63, 64])
def test_what_is_adas_is_not_there_for_bob_by_any_part_of_its_id(shop: Shop, digits: int) -> None:
    bob, ident = shop.site.as_("bob"), shop.id[:digits]
    for answer in (
        bob.get(f"/v1/memories/{ident}"),
        bob.get(f"/v1/memories/{ident}?agent_id=helper"),
        bob.post(f"/v1/memories/{ident}/amend", text="Bob was here"),
        bob.post(f"/v1/memories/{ident}/retire"),
    ):
        assert answer.error.startswith("404 not_found")
        told_nothing(answer.body)
    for name, more in (
        ("memory_read", {}),
        ("memory_amend", {"text": "Bob was here"}),
        ("memory_retire", {}),
    ):
        done, answered = bob.tool(name, id=ident, **more)
        assert not done
        told_nothing(answered)
    # The same words as for an id that nobody has.
    absent = bob.get(f"/v1/memories/{'0' * digits}").error
    assert absent.replace("0" * digits, "X") == bob.get(f"/v1/memories/{ident}").error.replace(
        ident, "X"
    )


def test_bob_cannot_name_ada_in_any_call(shop: Shop) -> None:
    bob = shop.site.as_("bob")
    for answer in (
        bob.post("/v1/memories", text="x", user_id="ada"),
        bob.post("/v1/memories", text="x", user_id=["bob", "ada"]),
        bob.get("/v1/memories?user_id=ada"),
        bob.get("/v1/memories?user_id=bob&user_id=ada"),
        bob.post("/v1/recall", query="key", user_id="ada"),
        bob.post("/v1/recall", query="key", user_id=["bob", "ada"]),
        bob.get(f"/v1/memories/{shop.id}?user_id=ada"),
        bob.post(f"/v1/memories/{shop.id}/amend", text="x", user_id="ada"),
        bob.post(f"/v1/memories/{shop.id}/retire", user_id="ada"),
        bob.post("/v1/retire_all", user_id="ada"),
        bob.get("/v1/files/list?user_id=ada"),
        bob.post("/v1/files/write", path="/a.md", text="x", user_id="ada"),
        bob.post("/v1/purge_scope", user_id="ada", confirm="ada"),
        bob.post("/v1/purge_scope", agent_id="helper", confirm="helper"),
        bob.post("/v1/purge_scope", run_id="r1", confirm=True),
    ):
        assert answer.error.startswith("403 rejected"), answer.body
        told_nothing(answer.body)
    for name, arguments in (
        ("memory_write", {"text": "x", "user_id": "ada"}),
        ("memory_list", {"user_id": "ada"}),
        ("memory_recall", {"query": "key", "user_id": "ada"}),
        ("memory_read", {"id": shop.id, "user_id": "ada"}),
        ("memory_amend", {"id": shop.id, "text": "x", "user_id": "ada"}),
        ("memory_retire", {"id": shop.id, "user_id": "ada"}),
        ("memory_retire_all", {"user_id": "ada", "confirm": "ada"}),
        ("memory_purge_scope", {"user_id": "ada", "confirm": "ada"}),
        ("memory_purge_scope", {"agent_id": "helper", "confirm": "helper"}),
    ):
        done, answered = bob.tool(name, **arguments)
        assert not done, (name, arguments)
        told_nothing(answered)


def test_bob_finds_his_own_where_he_names_nobody_or_what_both_use(shop: Shop) -> None:
    bob = shop.site.as_("bob")
    scopes: tuple[dict[str, Any], ...] = ({}, {"agent_id": "helper"}, {"user_id": "bob"})
    for scope in scopes:
        query = "&".join(f"{name}={value}" for name, value in scope.items())
        listed = bob.get(f"/v1/memories?include_retired=true&{query}")
        recalled = bob.post("/v1/recall", query="where is the key? who grows?", **scope)
        assert [one["text"] for one in listed.data["memories"]] == ["Bob grows tomatoes"]
        assert [one["node"]["content"] for one in recalled.data["hits"]] == ["Bob grows tomatoes"]
        done, tools = bob.tool("memory_recall", query="where is the key? who grows?", **scope)
        assert done
        assert [one["text"] for one in tools["hits"]] == ["Bob grows tomatoes"]
        told_nothing(listed.body, recalled.body, tools)
    for answer in (bob.get("/v1/memories?run_id=r1"), bob.get("/v1/memories?agent_id=other")):
        assert answer.data["memories"] == []
    page = bob.get("/v1/scopes?include_retired=true").data
    assert {one["name"] for one in page["scopes"]} == {"user:bob", "agent:helper"}
    done, listed = bob.tool("memory_list_scopes")
    assert done
    assert {one["name"] for one in listed["scopes"]} == {"user:bob", "agent:helper"}


def test_resources_open_no_other_scope(shop: Shop) -> None:
    for uri in (f"worlddb://memory/{shop.id}", "worlddb://scope/user/ada", "worlddb://scopes"):
        told_nothing(shop.site.as_("bob").rpc("resources/read", uri=uri).body)
        assert "result" in shop.site.as_("ada").rpc("resources/read", uri=uri).data


def test_who_writes_the_same_words_or_key_learns_nothing(shop: Shop) -> None:
    ada, bob = shop.site.as_("ada"), shop.site.as_("bob")
    first = ada.post("/v1/memories", text="Ada hides it", idempotency_key="k").data
    second = bob.post("/v1/memories", text="Bob hides it", idempotency_key="k").data
    assert second["created"]
    third = bob.post("/v1/memories", text="Ada hides it").data
    assert third["created"]
    assert third["id"] != first["id"]
    assert all(entity["created"] for entity in third["entities"] if entity["name"] == "Ada")


def test_a_token_of_two_kinds_of_scope_ends_only_what_is_in_both(shop: Shop) -> None:
    both = shop.site.as_("both")
    scopes: tuple[dict[str, Any], ...] = ({"agent_id": "helper"}, {"user_id": "bob"})
    for scope in scopes:
        answer = both.post("/v1/purge_scope", confirm=True, **scope)
        assert answer.error.startswith("403 rejected")
        done, _ = both.tool("memory_purge_scope", confirm="helper", **scope)
        assert not done
    elsewhere = shop.memory.write("Bob naps", user_id="bob", agent_id="other").id
    here = both.post("/v1/memories", text="Bob whistles").data["id"]
    ended = both.post("/v1/retire_all", agent_id="helper", confirm="helper").data["ids"]
    assert here in ended
    assert str(elsewhere) not in ended


def test_who_shares_a_memory_is_not_told_with_whom(shop: Shop) -> None:
    shared = shop.memory.write("Both sing", user_id=["ada", "bob"]).id
    bob = shop.site.as_("bob")
    for answer in (
        bob.get(f"/v1/memories/{shared}").data,
        bob.post(f"/v1/memories/{shared}/amend", text="Both dance").data,
    ):
        assert answer["scopes"] == [{"kind": "user", "value": "bob"}]


def test_who_shares_a_memory_is_not_told_where_it_lives_if_that_is_elsewhere(shop: Shop) -> None:
    shop.memory.write("Both sing", user_id=["ada", "bob"])
    worlds = {name: str(ScopeName("user", name).id()) for name in ("ada", "bob")}

    def parents(name: str, question: str, **scope: Any) -> set[str | None]:
        answer = shop.site.as_(name).post("/v1/recall", query=question, **scope)
        found = {hit["node"]["parent"] for hit in answer.data["hits"]}
        assert found
        assert name in ("root", "ada") or worlds["ada"] not in str(answer.body)
        return found

    assert parents("bob", "sing") == {None}
    assert parents("bob", "tomatoes") == {worlds["bob"]}
    assert parents("ada", "sing") == {worlds["ada"]}
    assert parents("root", "sing", user_id="bob") == {worlds["ada"]}
    shop.site.as_("bob").post("/v1/memories", messages=[{"content": "jam"}, {"content": "jelly"}])
    [session] = parents("bob", "jelly")
    assert session not in (None, worlds["bob"])
    done, told = shop.site.as_("bob").tool("memory_recall", query="sing")
    assert done
    assert worlds["ada"] not in str(told)


def test_a_token_writes_into_no_scope_of_another_kind_unless_it_says_so(shop: Shop) -> None:
    bob, ada = shop.site.as_("bob"), shop.site.as_("ada")
    scopes: list[dict[str, Any]] = [{"agent_id": "helper"}, {"agent_id": "x"}, {"run_id": "r1"}]
    for scope in scopes:
        answer = bob.post("/v1/memories", text="Send Eve the money", **scope)
        assert answer.error.startswith("403 rejected"), answer.body
        done, told = bob.tool("memory_write", text="Send Eve the money", **scope)
        assert not done
        assert "not yours" in told
    assert ada.post("/v1/memories", text="Ada hums", agent_id="helper").status == 200
    assert ada.post("/v1/memories", text="Ada hums", run_id="r1").error.startswith("403")


def test_a_bound_token_learns_its_own_number_and_a_memory_says_who_wrote_it(shop: Shop) -> None:
    bob = shop.site.as_("bob")
    before = bob.post("/v1/memories", text="Bob naps").data
    shop.memory.write("Ada counts", user_id="ada")
    after = bob.post("/v1/memories", text="Bob wakes").data
    done, told = bob.tool("memory_write", text="Bob walks")
    assert done
    numbers = [before["commit"]["seq"], after["commit"]["seq"], told["commit"]]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    roots = {before["root_state"], after["root_state"]}
    assert not roots & {str(one.root_state) for one in shop.memory.db.log()}
    read = bob.get(f"/v1/memories/{after['id']}").data
    assert read["actor"] == "http bob"
    hits = bob.tool("memory_recall", query="Who wakes?", explain=True)[1]["hits"]
    assert "http bob" in {hit["actor"] for hit in hits}


def test_every_token_signs_what_it_writes_by_its_name(shop: Shop) -> None:
    def signed() -> str:
        return shop.memory.db.log(limit=1, newest_first=True)[0].actor

    for name in ("root", "bob", "both"):
        site = shop.site.as_(name)
        ident = site.post("/v1/memories", text=f"said by {name}", user_id="bob").data["id"]
        assert signed() == f"http {name}"
        assert site.post(f"/v1/memories/{ident}/retire").status == 200
        assert signed() == f"http {name}"
        assert site.tool("memory_write", text=f"told by {name}", user_id="bob")[0]
        assert signed() == f"http {name}"


def test_ada_can_do_all_of_it_with_her_own_token(shop: Shop) -> None:
    ada = shop.site.as_("ada")
    assert ada.get(f"/v1/memories/{shop.id[:8]}").data["text"] == SECRET
    made = ada.post("/v1/memories", text="Ada hums", agent_id="helper").data
    amended = ada.post(f"/v1/memories/{made['id']}/amend", text="Ada sings").data
    assert amended["superseded"] == [made["id"]]
    assert ada.post(f"/v1/memories/{amended['id']}/retire").data["ids"] == [amended["id"]]
    done, _ = ada.tool("memory_read", id=shop.id[:8])
    assert done
    signed = shop.memory.db.log(limit=1, newest_first=True)[0].actor
    assert signed == "http ada"


def test_a_token_that_only_reads_writes_nothing(shop: Shop) -> None:
    before = shop.memory.db.root_state
    for name in ("reader", "watcher"):
        site = shop.site.as_(name)
        assert site.get(f"/v1/memories/{shop.id}").data["text"] == SECRET
        assert site.post("/v1/recall", query="key", user_id="ada").data["hits"]
        for path, given in (
            ("/v1/memories", {"text": "x", "user_id": "ada"}),
            (f"/v1/memories/{shop.id}/amend", {"text": "x"}),
            (f"/v1/memories/{shop.id}/retire", {}),
            ("/v1/retire_all", {"user_id": "ada"}),
            ("/v1/purge_scope", {"user_id": "ada", "confirm": True}),
        ):
            answer = site.post(path, **given)
            assert answer.error == (
                "403 rejected: this token may only read; use one that may write"
            )
        for tool, arguments in (
            ("memory_write", {"text": "x"}),
            ("memory_amend", {"id": shop.id, "text": "x"}),
            ("memory_retire", {"id": shop.id}),
            ("memory_retire_all", {"user_id": "ada", "confirm": "ada"}),
            ("memory_purge_scope", {"user_id": "ada", "confirm": "ada"}),
        ):
            done, told = site.tool(tool, **arguments)
            assert not done
            assert "may only read" in told
    assert shop.memory.db.root_state == before


def test_a_write_does_not_name_the_scopes_of_others(shop: Shop) -> None:
    shared = shop.memory.write("The shared shed is locked", user_id=["ada", "bob"]).id
    done = shop.site.as_("bob").post(f"/v1/memories/{shared}/amend", text="The shed is open").data
    assert done["scopes"] == [{"kind": "user", "value": "bob"}]
    assert {scope.value for scope in shop.memory.read(done["id"]).scopes} == {"ada", "bob"}
    key = {"text": "The shared gate is shut", "idempotency_key": "gate", "user_id": ["ada", "bob"]}
    whole = shop.site.as_("root").post("/v1/memories", **key).data  # type: ignore[arg-type]
    assert [one["value"] for one in whole["scopes"]] == ["ada", "bob"]


def test_every_token_signs_its_commits(shop: Shop) -> None:
    for name in ("root", "bob"):
        shop.site.as_(name).post("/v1/memories", text=f"by {name}", user_id="bob")
        [last] = shop.memory.db.log(limit=1, newest_first=True)
        assert last.actor == f"http {name}"


def test_a_caller_has_the_declared_calls_and_nothing_else(shop: Shop) -> None:
    caller = CallerMemory(shop.memory, None, ServerMetrics())
    assert callable(caller.recall)
    for name in ("db", "bound", "warm", "close"):
        with pytest.raises(AttributeError, match="declared calls"):
            getattr(caller, name)


def test_tokens_that_call_at_once_never_get_each_others_memory(shop: Shop) -> None:
    def call(number: int) -> set[str]:
        name = ("ada", "bob")[number % 2]
        site = shop.site.as_(name)
        if number % 4 < 2:
            done, answer = site.tool("memory_list")
            assert done
            told = [answer, *answer["memories"]]
            return {scope for one in told for scope in one.get("scopes", ())} | {name}
        page = site.get("/v1/memories").data
        held = {one["value"] for memory in page["memories"] for one in memory["scopes"]}
        return {f"user:{value}" for value in held & {"ada", "bob"}} | {name}

    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(call, range(160)))
    for number, names in enumerate(seen):
        mine, other = ("ada", "bob") if number % 2 == 0 else ("bob", "ada")
        assert {f"user:{mine}", mine} <= names
        assert f"user:{other}" not in names

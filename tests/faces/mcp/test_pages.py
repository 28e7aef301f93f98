"""Resources, the prompt, and the pair search and fetch."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference, TextContent

from .talking import Era, Talk

pytestmark = pytest.mark.anyio


async def test_resources_and_templates_are_listed(talk: Talk) -> None:
    listed = await talk.client.list_resources()
    assert [one.uri for one in listed.resources] == ["worlddb://scopes"]
    templates = await talk.client.list_resource_templates()
    assert {one.uri_template for one in templates.resource_templates} == {
        "worlddb://memory/{id}",
        "worlddb://scope/{kind}/{value}",
    }


async def test_scopes_and_memories_can_be_read_as_resources(talk: Talk, user: str) -> None:
    told = await talk.call("memory_write", text="A page of memory", user_id=user)
    names = [one["name"] for one in (await talk.page("worlddb://scopes"))["scopes"]]
    assert f"user:{user}" in names
    for ident in (told["id"], told["id"][:12]):
        memory = await talk.page(f"worlddb://memory/{ident}")
        assert (memory["id"], memory["text"]) == (told["id"], "A page of memory")
    page = await talk.page(f"worlddb://scope/user/{quote(user, safe='')}")
    assert [one["id"] for one in page["memories"]] == [told["id"]]


@pytest.mark.parametrize("value", ["../../etc/passwd", "/root", "a b%20c", "Ünï ☃", "a?b#c"])
async def test_a_scope_of_an_odd_name_has_its_page(talk: Talk, user: str, value: str) -> None:
    await talk.call("memory_write", text="odd", run_id=value, user_id=user)
    page = await talk.page(f"worlddb://scope/run/{quote(value, safe='')}")
    assert [one["text"] for one in page["memories"]] == ["odd"]


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("worlddb://memory/ffff", "no memory here has the id"),
        ("worlddb://memory/xyz!", "is not an id"),
        ("worlddb://memory/..%2F..%2Fetc%2Fpasswd", ""),
        ("worlddb://scope/planet/mars", "use one of user, agent, app, run"),
        ("worlddb://nothing", ""),
        ("file:///etc/passwd", ""),
    ],
)
async def test_what_is_no_resource_is_refused(talk: Talk, uri: str, told: str) -> None:
    with pytest.raises(MCPError) as refusal:
        await talk.client.read_resource(uri)
    assert told in str(refusal.value)
    assert "root:" not in str(refusal.value)


async def test_the_prompt_tells_how_to_use_the_memory(talk: Talk) -> None:
    listed = (await talk.client.list_prompts()).prompts
    assert [one.name for one in listed] == ["use_memory"]
    [message] = (await talk.client.get_prompt("use_memory")).messages
    assert isinstance(message.content, TextContent)
    tools = {one.name for one in (await talk.client.list_tools()).tools}
    for word in ("memory_recall", "memory_write", "memory_amend", "memory_retire", "as_of"):
        assert word in message.content.text
    assert {word.strip(".,:") for word in message.content.text.split() if "memory_" in word} - {
        "memory_…"
    } <= tools
    [named] = (await talk.client.get_prompt("use_memory", {"user_id": "ada"})).messages
    assert isinstance(named.content, TextContent)
    assert "give user_id='ada'" in named.content.text


async def test_the_server_tells_a_model_what_it_is(talk: Talk, era: Era) -> None:
    # Without a handshake the client has not asked; the wire tests do.
    if era == "legacy":
        assert talk.client.instructions is not None
        assert "memory_recall" in talk.client.instructions


async def test_names_of_scopes_are_completed(talk: Talk, user: str) -> None:
    for name in ("Ada Lovelace", "Ada Yonath"):
        await talk.call("memory_write", text="hello", user_id=name, run_id=f"{user} {name}")
    scope = ResourceTemplateReference(type="ref/resource", uri="worlddb://scope/{kind}/{value}")
    prompt = PromptReference(type="ref/prompt", name="use_memory")

    async def completed(
        ref: PromptReference | ResourceTemplateReference, name: str, value: str, **chosen: str
    ) -> list[str]:
        argument = {"name": name, "value": value}
        told = await talk.client.complete(ref, argument, context_arguments=chosen or None)
        return told.completion.values

    assert await completed(prompt, "user_id", "ada l") == ["Ada Lovelace"]
    assert await completed(prompt, "user_id", "ada") == ["Ada Lovelace", "Ada Yonath"]
    assert await completed(scope, "kind", "a") == ["agent", "app"]
    assert await completed(scope, "value", user, kind="run") == [
        f"{user} Ada Lovelace",
        f"{user} Ada Yonath",
    ]
    assert await completed(scope, "value", "", kind="planet") == []
    assert await completed(scope, "value", "") == []


async def test_an_unknown_prompt_is_refused(talk: Talk) -> None:
    with pytest.raises(MCPError, match="no prompt 'no_such_prompt'; known are use_memory"):
        await talk.client.get_prompt("no_such_prompt")


async def test_search_and_fetch_are_there_on_demand_only(talk: Talk, mute: Talk) -> None:
    names = {one.name for one in (await talk.client.list_tools()).tools}
    plain = {one.name for one in (await mute.client.list_tools()).tools}
    assert names - plain == {"search", "fetch"}


async def test_search_finds_and_fetch_reads_what_the_usual_user_has(talk: Talk) -> None:
    text = "The lighthouse keeper is called Ingrid\nand has a dog"
    await talk.call("memory_write", text=text, source="a postcard", metadata={"year": 1999})
    [best, *_] = (await talk.call("search", query="Who keeps the lighthouse?"))["results"]
    assert best["title"] == "The lighthouse keeper is called Ingrid"
    assert best["text"] == text
    assert best["url"] == f"worlddb://memory/{best['id']}"
    fetched = await talk.call("fetch", id=best["id"])
    assert (fetched["id"], fetched["title"], fetched["text"]) == (best["id"], best["title"], text)
    assert fetched["metadata"]["provenance"] == ["a postcard"]
    assert fetched["metadata"]["metadata"] == {"year": 1999}
    assert "no memory" in await talk.refused("fetch", id="0" * 64)

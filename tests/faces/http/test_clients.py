"""MCP over HTTP with the SDK's own client, in both eras, with tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import anyio
import pytest

from worlddb.faces.http.access_tokens import make_access
from worlddb.memory.memory import Memory

from .serving import Site, serving, token

Era = Literal["legacy", "2026-07-28"]


@pytest.fixture(scope="module")
def guarded(memory: Memory) -> Iterator[Site]:
    """A server that two users share."""
    tokens = [token(name, bounds={"user_id": (name,)}) for name in ("ada", "bob")]
    with serving(memory, make_access(host="127.0.0.1", tokens=tokens)) as made:
        yield made


async def calls(site: Site, era: Era, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """Connect, call tools one after the other, and return what they answered."""
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {site.token}"}
    async with create_mcp_http_client(headers) as http:
        transport = streamable_http_client(f"{site.url}/mcp", http_client=http)
        async with Client(transport, mode=era) as client:
            tools = await client.list_tools()
            assert len(tools.tools) == 9
            return [
                (await client.call_tool(name, given)).structured_content for name, given in asked
            ]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_client_writes_and_recalls_its_own(guarded: Site, era: Era) -> None:
    text = f"The {era} boat is moored in Lisbon"
    written, recalled = anyio.run(
        calls,
        guarded.as_("ada"),
        era,
        ("memory_write", {"text": text}),
        ("memory_recall", {"query": f"Where is the {era} boat?"}),
    )
    assert written["scopes"] == ["user:ada"]
    assert recalled["hits"][0]["text"] == text
    (listed,) = anyio.run(calls, guarded.as_("bob"), era, ("memory_list", {}))
    assert listed["memories"] == []


def test_a_client_without_a_token_is_told(guarded: Site) -> None:
    with pytest.raises(BaseExceptionGroup) as told:
        anyio.run(calls, guarded.as_("wrong"), "legacy")
    assert "Server returned an error response" in repr(told.value)


def test_clients_of_both_eras_and_both_users_at_once_see_only_their_own(guarded: Site) -> None:
    seen: list[tuple[str, Any]] = []

    async def one(name: str, era: Era) -> None:
        mine = {"text": f"{name} was here by {era}"}
        answers = await calls(
            guarded.as_(name), era, ("memory_write", mine), ("memory_list", {"limit": 100})
        )
        seen.append((name, answers[1]))

    async def everybody() -> None:
        async with anyio.create_task_group() as group:
            for name in ("ada", "bob") * 4:
                group.start_soon(one, name, "legacy")
                group.start_soon(one, name, "2026-07-28")

    anyio.run(everybody)
    assert len(seen) == 16
    for name, told in seen:
        assert told["scopes"] == [f"user:{name}"]  # Of all memories: none has scopes of its own.
        assert all("scopes" not in memory for memory in told["memories"])

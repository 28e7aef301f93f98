"""Sessions of MCP over HTTP: who can be asked gets one, of its own; all others need none."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestParams, ElicitResult, JSONRPCRequest

from worlddb.faces.http import http_app
from worlddb.faces.http.access_tokens import make_access
from worlddb.faces.mcp.mcp_server import MemoryServer
from worlddb.memory.memory import Memory

from .serving import DEADLINE_S, MCP, Process, Site, serving, token

pytestmark = pytest.mark.anyio
GREETING = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as made:
        yield made


def greet(site: Site, **capabilities: object) -> str | None:
    answer = site.rpc("initialize", capabilities=capabilities, **GREETING)
    assert answer.status == 200
    return answer.headers.get("mcp-session-id")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("agrees", [True, False])
async def test_a_person_is_asked_in_both_eras_and_the_answer_counts(
    memory: Memory, mode: str, agrees: bool
) -> None:
    asked: list[str] = []

    async def person(_: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        if agrees:
            return ElicitResult(action="accept", content={"agree": True})
        return ElicitResult(action="decline")

    memory.write("The gate opens at nine.", user_id="ada")
    with serving(memory) as site:
        transport = streamable_http_client(f"{site.url}/mcp")
        async with Client(transport, elicitation_callback=person, mode=mode) as client:  # type: ignore[arg-type]
            told = await client.call_tool("memory_retire_all", {"user_id": "ada", "confirm": True})
    assert len(asked) == 1
    assert told.is_error == (not agrees)
    assert len(memory.list(user_id="ada").memories) == (0 if agrees else 1)


def test_only_a_client_that_can_be_asked_gets_a_session(memory: Memory) -> None:
    with serving(memory) as site:
        assert greet(site) is None
        assert greet(site, roots={}) is None
        assert greet(site, elicitation={}) is not None
        # A call needs no greeting, as before.
        assert site.tool("memory_write", text="The gate opens at nine.")[0]
        refused = site.get("/mcp")
        assert (refused.status, refused.headers["allow"]) == (405, "POST")
        assert "use POST" in refused.error
        unknown = site.send("GET", "/mcp", headers=MCP | {"Mcp-Session-Id": "0" * 32})
        assert unknown.status == 404


def test_a_session_belongs_to_the_token_that_opened_it(memory: Memory) -> None:
    ada, bob = (
        token(f"{name}-token-0123456789", bounds={"user_id": name}) for name in ("ada", "bob")
    )
    with serving(memory, make_access(host="127.0.0.1", tokens=(ada, bob))) as site:
        session = greet(site.as_("ada-token-0123456789"), elicitation={})
        assert session is not None
        headers = MCP | {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
        body = b'{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}'
        theirs = site.as_("bob-token-0123456789").send("POST", "/mcp", body, headers)
        assert theirs.status == 404
        own = site.as_("ada-token-0123456789").send("POST", "/mcp", body, headers)
        assert own.status == 200
        assert b"memory_write" in own.body
        assert site.send("POST", "/mcp", body, headers).status == 401


def test_an_open_stream_of_a_session_does_not_delay_the_end(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db") as server:
        session = greet(server.site, elicitation={})
        with socket.create_connection(("127.0.0.1", server.site.port), DEADLINE_S) as stream:
            stream.sendall(
                "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                f"Mcp-Session-Id: {session}\r\n\r\n".encode()
            )
            assert stream.recv(65_536).startswith(b"HTTP/1.1 200")
            server.signal(15)
            assert server.wait() == 0
        assert "Traceback" not in server.log()
        assert "dropped" not in server.log()


CALLS: tuple[tuple[object, object], ...] = (
    (1, {"name": "memory_list", "arguments": {}}),
    ("one", {"name": "memory_list"}),
    (2, {"name": "memory_list", "arguments": {"limit": "many"}}),
    (3, {"name": "memory_list", "arguments": {"nonsense": 1}, "_meta": {"progressToken": 7}}),
    (4, {"name": "memory_read", "arguments": {"id": "abcd"}}),
    (5, {"name": "memory_retire_all", "arguments": {"user_id": "ada"}}),
    (6, {"name": "nonsense", "arguments": {}}),
    (7, {"arguments": {}}),
    (8, {"name": "memory_list", "arguments": []}),
    (9, []),
    (10, None),
    (None, {"name": "memory_list"}),
    ([], {"name": "memory_list"}),
    (11, {"name": "memory_write", "arguments": {"text": "x" * 2_000_000}}),
)


@pytest.mark.parametrize("version", [{}, {"Mcp-Protocol-Version": "2025-06-18"}])
def test_a_call_without_a_session_is_answered_as_the_sdk_answers_it(
    memory: Memory, version: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers() -> list[tuple[int, str, bytes]]:
        found = []
        for number, params in CALLS:
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            for headers in (MCP, MCP | {"Accept": "text/html"}, MCP | {"Content-Type": "text/csv"}):
                body = json.dumps(call).encode()
                answer = site.send("POST", "/mcp", body, headers | version)
                found.append((answer.status, answer.headers.get("content-type", ""), answer.body))
        return found

    served: list[str] = []

    async def noted(server: MemoryServer, request: JSONRPCRequest, *given: Any) -> Any:
        served.append(request.method)
        return await answered(server, request, *given)

    answered = MemoryServer.answer
    monkeypatch.setattr(MemoryServer, "answer", noted)
    memory.write("The gate opens at nine.", user_id="ada")
    with serving(memory) as site:
        ours = answers()
        assert len(served) > len(CALLS) / 2
        monkeypatch.setattr(http_app, "_call_in", lambda *given: None)
        assert answers() == ours

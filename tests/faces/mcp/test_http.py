"""The same server over streamable HTTP, on a real socket, in both eras."""

from __future__ import annotations

import contextvars
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import uvicorn
from mcp import Client
from mcp.types import ElicitResult
from starlette.types import ASGIApp, Receive, Scope, Send

import worlddb
from worlddb.faces.mcp.mcp_server import make_server

from .talking import Era, Person, Talk

pytestmark = pytest.mark.anyio


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve an app on a free port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    # Longer than a test takes: a client may be about to use a connection when it is closed.
    config = uvicorn.Config(app, log_level="warning", ws="none", timeout_keep_alive=600)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[worlddb.Memory]:
    with worlddb.Memory(tmp_path / "m.db") as one:
        yield one


@pytest.mark.parametrize("stateless", [False, True], ids=["sessions", "stateless"])
async def test_write_recall_and_read_over_http(
    memory: worlddb.Memory, era: Era, stateless: bool
) -> None:
    server = make_server(lambda: memory)
    app = server.streamable_http_app(stateless_http=stateless, json_response=stateless)
    with served(app) as url:
        async with Client(url, mode=era) as client:
            talk = Talk(client, None)
            told = await talk.call("memory_write", text="The kiln is hot", user_id="ada")
            [hit] = (await talk.call("memory_recall", query="kiln", user_id="ada"))["hits"]
            assert hit["id"] == told["id"]
            assert (await talk.page(f"worlddb://memory/{told['id'][:8]}"))["id"] == told["id"]
            assert "no such argument" in await talk.refused("memory_recall", query="a", top=1)


@pytest.mark.parametrize("stateless", [False, True], ids=["sessions", "stateless"])
async def test_ending_a_scope_over_http_asks_where_it_can(
    memory: worlddb.Memory, era: Era, stateless: bool
) -> None:
    memory.write("one", user_id="ada")
    server = make_server(lambda: memory)
    app = server.streamable_http_app(stateless_http=stateless)
    person = Person()
    person.answer = ElicitResult(action="decline")
    with served(app) as url:
        async with Client(url, mode=era, elicitation_callback=person) as client:
            talk = Talk(client, person)
            said = await talk.refused("memory_purge_scope", user_id="ada")
            # The older era needs a session to ask in; without one the model has to say it.
            asked = era != "legacy" or not stateless
            assert len(person.questions) == (1 if asked else 0)
            assert ("did not agree" if asked else "confirm='ada'") in said
            if asked:
                again = await talk.refused("memory_purge_scope", user_id="ada", confirm="ada")
                assert "did not agree" in again
                person.answer = ElicitResult(action="accept", content={"agree": True})
            told = await talk.call("memory_purge_scope", user_id="ada", confirm="ada")
            assert told["scopes"] == ["user:ada"]


CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("CALLER")


def naming_the_caller(app: ASGIApp) -> ASGIApp:
    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            CALLER.set(headers.get(b"x-caller", b"nobody").decode())
        await app(scope, receive, send)

    return named


@pytest.mark.parametrize("stateless", [False, True], ids=["sessions", "stateless"])
async def test_each_call_gets_the_memory_of_its_own_request(
    memory: worlddb.Memory, era: Era, stateless: bool
) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    server = make_server(lambda: memory.bound(user_id=CALLER.get()))
    app = naming_the_caller(server.streamable_http_app(stateless_http=stateless))

    @asynccontextmanager
    async def calling(url: str, caller: str) -> AsyncIterator[Talk]:
        async with (
            create_mcp_http_client(headers={"x-caller": caller}) as http,
            Client(streamable_http_client(url, http_client=http), mode=era) as client,
        ):
            yield Talk(client, None)

    with served(app) as url:
        async with calling(url, "ada") as ada:
            told = await ada.call("memory_write", text="hers")
        assert told["scopes"] == ["user:ada"]
        ident = told["id"]
        async with calling(url, "bob") as bob:
            for tool, arguments in (
                ("memory_read", {"id": ident}),
                ("memory_read", {"id": ident[:8]}),
                ("memory_retire", {"id": ident}),
                ("memory_list", {"user_id": "ada"}),
                ("memory_purge_scope", {"user_id": "ada", "confirm": "ada"}),
            ):
                assert "hers" not in await bob.refused(tool, **arguments)
            assert (await bob.page("worlddb://scopes"))["scopes"] == []
        async with calling(url, "ada") as ada:
            kept = (await ada.call("memory_list"))["memories"]
        assert [one["text"] for one in kept] == ["hers"]

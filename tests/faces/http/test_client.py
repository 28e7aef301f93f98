"""Client, AsyncClient, AsyncMemory: the calls of Memory on a real server and in coroutines."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import worlddb
from client_stub import STUB, stub
from faces.command import environment
from patience import PATIENCE_S
from worlddb import AsyncClient, AsyncMemory, Client, Memory, errors
from worlddb.faces.calls import CALLS
from worlddb.faces.http.http_problems import STATUS_BY_ERROR
from worlddb.faces.remote_caller import ERROR_BY_TYPE, value_of
from worlddb.faces.server_calls import SERVER_CALLS

from .serving import Process, Site

T = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
SECRET = "a-token-of-sufficient-length"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """The command itself, with a token."""
    store = tmp_path_factory.mktemp("client") / "m.db"
    with Process(store, env={"WORLDDB_TOKEN": SECRET}) as process:
        yield process


@pytest.fixture
def client(server: Process) -> Iterator[Client]:
    with Client(server.site.url, token=SECRET, retries=0) as made:
        yield made


@contextmanager
def scripted(*answers: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers in turn, None by hanging up; and what it was sent."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            for answer in answers:
                with listener.accept()[0] as made:
                    data = made.recv(65_536)
                    while b"\r\n\r\n" in data and len(data) < _length(data):
                        data += made.recv(65_536)
                    seen.append(data)
                    if answer is not None:
                        made.sendall(answer)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def _length(data: bytes) -> int:
    head, _, _ = data.partition(b"\r\n\r\n")
    found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(head) + 4 + int(found[0].partition(b":")[2] if found else 0)


def answer(status: int, data: Any, *, headers: str = "") -> bytes:
    body = json.dumps(data).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}"
    return head.encode() + b"\r\n" + body


BUSY = answer(503, {"error": {"type": "busy", "message": "later"}}, headers="Retry-After: 0\r\n")
GUESSED = answer(429, {"error": {"type": "too_many_guesses", "message": "later"}})
DONE = answer(200, {"memories": [], "next_cursor": None})


def test_the_types_are_what_memory_says() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "run: python tests/client_stub.py"


@pytest.mark.parametrize("kind", [Client, AsyncClient, AsyncMemory])
def test_every_declared_call_is_there_with_the_parameters_of_memory(kind: type) -> None:
    for call in CALLS:
        method = getattr(kind, call.name)
        declared = {one.name: one for one in call.parameters}
        held = dict(inspect.signature(method).parameters)
        assert next(iter(held)) == "self"
        assert set(held) - {"self"} == set(declared)
        assert asyncio.iscoroutinefunction(method) == (kind is not Client)
        assert method.__doc__
        assert "{" not in method.__doc__.replace('{"', "")
    for call in SERVER_CALLS:
        assert hasattr(kind, call.name) == (kind is not AsyncMemory)


def test_a_write_and_a_recall_come_back_as_the_values_memory_gives(client: Client) -> None:
    text = "Sarah Chen moved to Oslo."
    written = client.write(text, user_id="ada", at=T, names="Sarah Chen", metadata={"n": 1})
    assert isinstance(written, worlddb.Written)
    assert written.created
    assert written.commit is not None
    assert written.commit.time.tzinfo is not None
    found = client.recall("Where does Sarah Chen live?", user_id="ada", k=3)
    assert isinstance(found, worlddb.Recall)
    assert found.hits[0].node.content == text
    assert found.hits[0].valid_from == T
    read = client.read(written.id, user_id=["ada"])
    assert (read.text, read.valid_from, dict(read.metadata)) == (text, T, {"n": 1})
    assert [one.id for one in client.list(user_id="ada", types=["Memory"], limit=1)] == [written.id]
    amended = client.amend(str(written.id)[:12], "Sarah Chen moved to Bergen.", user_id="ada")
    assert client.read(written.id).superseded_by == (amended.id,)
    assert client.retire(amended.id).ids
    assert client.list_scopes(kind="user").scopes[0].value == "ada"


class SdkPart:
    """A part of a message as an SDK hands it out."""

    def model_dump(self) -> dict[str, Any]:
        return {"type": "text", "text": "Noted."}


def test_messages_and_queries_travel_as_they_are_given(client: Client) -> None:
    said = worlddb.Message(text="I like green tea.", speaker="bob", at=T)
    noted = {"role": "assistant", "content": [SdkPart()], "at": T}
    client.write(messages=[said, noted], user_id="bob")
    assert client.recall("Noted", user_id="bob").hits[0].node.content == "Noted."
    turns = client.query(worlddb.QuerySpec(text="tea"), user_id="bob")
    assert isinstance(turns, worlddb.Subgraph)
    assert any(node.content == "I like green tea." for node in turns)
    assert client.explain("text tea | limit 5", user_id="bob").limit == 5
    assert client.check()
    assert len(client.edge_types()) > 10


def test_every_result_class_is_read_back_as_it_was(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        a = memory.write("Ada lives in Oslo.", user_id="ada")
        b = memory.write("Ada lives in Paris.", user_id="ada", at=T)
        edge = memory.link("contradicts", a.id, b.id, user_id="ada")
        results = [a, b, edge, memory.recall("Ada", user_id="ada"), memory.conflicts(user_id="ada")]
        results += [memory.log(), memory.diff(0, 2), memory.prove(a.id), memory.check()]
        results += [memory.proposals(), memory.list(user_id="ada"), memory.consolidate()]
        results += [memory.undo(a.commit.seq if a.commit else 0, dry_run=True)]
        results += [memory.declare("likes", functional=True), memory.edge_types()]
        for one in results:
            assert value_of(type(one), json.loads(json.dumps(one.to_dict()))).to_dict() == (
                one.to_dict()
            )


def test_what_the_server_refuses_is_the_error_memory_raises(
    client: Client, server: Process
) -> None:
    with pytest.raises(errors.NotFoundError):
        client.read("00" * 32)
    with pytest.raises(errors.InvalidInputError, match="text"):
        client.write(" ", user_id="ada")
    with pytest.raises(errors.InvalidInputError, match="name the scope"):
        client.retire_all(confirm=True)
    with pytest.raises(TypeError, match="nonsense"):
        client.recall("tea", nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(errors.RejectedError, match="token"):
        Client(server.site.url, token="wrong", retries=0).list()
    expected = {name: kind for kind, (_, name) in STATUS_BY_ERROR.items() if name != "provider"}
    assert {name: ERROR_BY_TYPE[name] for name in expected} == expected


def test_bad_addresses_and_numbers_are_refused_at_once() -> None:
    for url in ("127.0.0.1:8765", "ftp://x", "http://", "http://u:p@host", ""):
        with pytest.raises(errors.InvalidInputError, match="url"):
            Client(url)
    with pytest.raises(errors.InvalidInputError, match="timeout_s"):
        Client("http://127.0.0.1:1", timeout_s=0)
    with pytest.raises(errors.InvalidInputError, match="token"):
        Client("http://127.0.0.1:1", token="a\nb")
    closed = Client("http://127.0.0.1:1")
    closed.close()
    with pytest.raises(errors.InvalidInputError, match="closed"):
        closed.list()


def test_busy_servers_and_lost_answers_are_asked_again() -> None:
    with scripted(BUSY, GUESSED, None, DONE) as (url, seen):
        assert Client(url, backoff_s=0).list(user_id=["ada", "bob"]).memories == ()
    assert len(seen) == 4
    assert seen[0].startswith(b"GET /v1/memories?user_id=ada&user_id=bob HTTP/1.1\r\n")


def test_a_client_does_not_wait_until_tomorrow() -> None:
    spent = {"error": {"type": "too_many_requests", "message": "2 memories a day"}}
    refused = answer(429, spent, headers="Retry-After: 3600\r\n")
    with scripted(refused) as (url, seen), pytest.raises(errors.ProviderError, match="a day"):
        Client(url, backoff_s=0).write("I like milk.")
    assert len(seen) == 1


def test_a_call_that_may_not_run_twice_is_not_sent_again_after_a_lost_answer() -> None:
    with scripted(BUSY, None) as (url, seen), pytest.raises(errors.ProviderError, match="may have"):
        Client(url, backoff_s=0).unlink("00" * 32)
    assert len(seen) == 2


def test_retries_end_and_the_error_says_where_and_how_often() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # Nobody else gets the port, and nobody listens.
        port = deaf.getsockname()[1]
        told = rf"{port}: cannot be reached.*tried 3 times"
        with pytest.raises(errors.ProviderError, match=told):
            Client(f"http://127.0.0.1:{port}", retries=2, backoff_s=0).list()
    with scripted(BUSY, BUSY) as (url, _), pytest.raises(errors.ProviderError, match="later"):
        Client(url, retries=1, backoff_s=0).list()
    page = answer(200, {"something": "else"})
    with scripted(page) as (url, _), pytest.raises(errors.ProviderError, match="not understood"):
        Client(url, retries=0).check()


@pytest.mark.parametrize("noticed", [True, False])
def test_a_connection_that_the_server_has_closed_costs_no_retry(
    noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not noticed:
        # The server closes in the instant after the client has looked.
        monkeypatch.setattr("select.select", lambda *_: ([], [], []))
    kept = DONE.replace(b"Connection: close\r\n", b"")
    with scripted(kept, kept) as (url, seen):
        client = Client(url, retries=0)
        client.list()
        client.list()
        client.close()
    assert len(seen) == 2


def test_threads_share_a_client_and_async_programs_have_the_same_calls(server: Process) -> None:
    site: Site = server.site

    async def run() -> list[str]:
        async with AsyncClient(site.url, token=SECRET) as client:
            writes = (client.write(f"Note {n} of Eve.", user_id="eve") for n in range(12))
            await asyncio.gather(*writes)
            page = await client.list(user_id="eve")
            with pytest.raises(errors.NotFoundError):
                await client.read("00" * 32)
            return sorted(one.text for one in page)

    assert asyncio.run(run()) == sorted(f"Note {n} of Eve." for n in range(12))


def test_async_memory_opens_a_store_and_gives_the_event_loop_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncMemory(tmp_path / "m.db", embedder="none", user_id="ada") as memory:
            written = await memory.write("Ada likes tea.")
            found = await memory.recall("What does Ada like?")
            assert found.hits[0].node.id == written.id
            bob = memory.bound(user_id="bob")
            assert (await bob.list()).memories == ()
            assert (await memory.erase(written.id)).commit
            with pytest.raises(errors.InvalidInputError):
                await memory.write("")
        with pytest.raises(RuntimeError, match="shutdown"):
            await memory.list()

    asyncio.run(run())


def test_the_classes_are_loaded_late_and_the_client_without_the_engine() -> None:
    program = (
        "import sys, worlddb; worlddb.Client; print(' '.join(sys.modules)); worlddb.AsyncMemory"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    heavy = {"apsw", "numpy", "mcp", "starlette", "pydantic", "worlddb.memory"}
    assert not heavy & set(done.stdout.split())


def test_a_client_reads_a_document_where_it_runs(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "owls.html"
    path.write_text("<h1>Owls</h1><p>The barn owl sleeps by day.</p>", encoding="utf-8")
    made = client.write(document=path, user_id="doc")
    assert client.write(document=str(path), user_id="doc").id == made.id
    assert client.recall("barn owl", user_id="doc")[0].node.name == "Owls"


def test_calls_by_get_take_filters_flags_and_numbers(client: Client) -> None:
    client.write("Apples are red.", user_id="filters", metadata={"n": 1}, tags=["fruit"])
    client.write("Limes are green.", user_id="filters", metadata={"n": 2}, tags=["fruit"])
    chosen = client.list(
        where={"n": {"$gte": 2}, "tags": {"$contains": "fruit"}}, user_id="filters"
    )
    assert [one.text for one in chosen.memories] == ["Limes are green."]
    page = client.list(limit=1, include_retired=True, types=["Memory"], user_id="filters")
    assert len(page.memories) == 1
    assert client.fading(below=0.5, limit=3, user_id="filters").to_dict()


@pytest.mark.parametrize("end", ["/v1", "/mcp", "/v1/"])
def test_the_address_of_a_part_of_the_server_is_refused(end: str) -> None:
    with pytest.raises(errors.InvalidInputError, match="without /v1 or /mcp"):
        Client(f"http://127.0.0.1:1{end}")


def test_what_programs_give_as_a_number_or_leave_empty_is_taken(client: Client) -> None:
    done = client.write("Coupon XY1.", user_id="ttl", ttl=3600, tags=[], names=[])
    held = client.read(done.id)
    assert held.valid_to is not None
    assert round((held.valid_to - held.valid_from).total_seconds()) == 3600
    assert held.metadata == {}
    assert client.recall("coupon", user_id="ttl", names=[]).hits

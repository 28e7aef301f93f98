"""`serve --workers`: several processes answer and read, one writes, and callers notice nothing."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestParams, ElicitResult

from faces.command import in_process
from patience import until
from worlddb import Memory
from worlddb.errors import InvalidInputError
from worlddb.faces.face_settings import Settings
from worlddb.faces.http.access_tokens import make_access, read_tokens
from worlddb.faces.http.served_stores import OneStore, tenant_stores
from worlddb.faces.http.token_file import TokenUses, uses_beside
from worlddb.faces.http.worker_pool import WorkerStores, WriteLink, WriteServer, check_workers
from worlddb.memory.writes import MemoryWriter

from .serving import Process, Site, serving, token

TOKENS = (
    token("root-key", admin=True),
    token("ada-key", bounds={"user_id": ("ada",)}),
    token("read-key", bounds={"user_id": ("ada",)}, read_only=True),
    token("slow-key", bounds={"user_id": ("ada",)}, per_minute=3),
    token("two-key", bounds={"user_id": ("two",)}, memories_per_day=2),
)
Sites = tuple[Site, Site]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    path = tmp_path_factory.mktemp("workers") / "m.db"
    with Memory(path, embedder="none", recluster="off", actor="http") as made:
        yield made


@pytest.fixture(scope="module")
def sites(writer: Memory) -> Iterator[Sites]:
    """Two workers, each with the store opened for itself, and a writer."""
    access = make_access(host="127.0.0.1", tokens=TOKENS)
    with ExitStack() as closing:
        server = WriteServer(OneStore(writer), TokenUses())
        closing.callback(server.close)
        made = []
        for number in (1, 2):
            link = WriteLink(server.address)
            closing.callback(link.close)
            own = closing.enter_context(Memory(writer.db.path, embedder="none", create=False))
            served = WorkerStores(OneStore(own), link, number)
            made.append(closing.enter_context(serving(served, access, state_key=b"k" * 32)))
        yield made[0].as_("root-key"), made[1].as_("root-key")


def recalled(site: Site, query: str, user: str = "ada") -> list[str]:
    answer = site.post("/v1/recall", query=query, user_id=user)
    assert answer.status == 200, answer.body
    return [hit["node"]["content"] for hit in answer.data["hits"]]


def test_what_one_worker_has_acknowledged_every_worker_reads(sites: Sites) -> None:
    for site in sites:
        assert recalled(site, "tea", "held") == []  # Now both hold the scope in memory.
    for number in range(6):
        one, other = sites[number % 2], sites[1 - number % 2]
        text = f"Ada drank tea number {number} in Lisbon"
        ident = one.post("/v1/memories", text=text, user_id="held").data["id"]
        assert text in recalled(other, f"tea number {number}", "held")
        listed = other.get("/v1/memories?user_id=held&types=Memory").data["memories"]
        assert len(listed) == number + 1
        assert other.get(f"/v1/memories/{ident}").data["text"] == text
    assert sites[0].post(f"/v1/memories/{ident}/retire").status == 200
    assert text not in recalled(sites[1], "tea number 5", "held")


def test_tools_write_through_the_writer_as_the_assistant(sites: Sites, writer: Memory) -> None:
    one, other = (site.as_("ada-key") for site in sites)
    done, told = one.tool("memory_write", text="Ada keeps bees")
    assert done
    assert "Ada keeps bees" in str(other.tool("memory_recall", query="bees")[1])
    written = writer.read(told["id"], user_id="ada")
    assert (written.origin, written.actor) == ("assistant", "http ada-key")
    done, told = one.tool("memory_retire_all", user_id="ada")
    assert not done
    assert "confirm" in told


def test_no_session_is_opened_where_the_next_request_may_come_to_another(sites: Sites) -> None:
    greeting = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "t", "version": "1"}}
    answer = sites[0].rpc("initialize", capabilities={"elicitation": {}}, **greeting)
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


class Turns(httpx2.AsyncBaseTransport):
    """Sends each request to the next of several servers."""

    def __init__(self, sites: Sites) -> None:
        self._ports = itertools.cycle(site.port for site in sites)
        self._plain = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(port=next(self._ports))
        request.headers["host"] = f"127.0.0.1:{request.url.port}"
        return await self._plain.handle_async_request(request)

    async def aclose(self) -> None:
        await self._plain.aclose()


@pytest.mark.anyio
async def test_an_answer_of_a_person_may_come_to_another_worker(
    sites: Sites, writer: Memory
) -> None:
    async def person(_: object, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"agree": True})

    writer.write("The gate opens at nine.", user_id="asked")
    headers = {"Authorization": "Bearer root-key"}
    async with httpx2.AsyncClient(transport=Turns(sites), headers=headers) as http:
        transport = streamable_http_client(f"{sites[0].url}/mcp", http_client=http)
        async with Client(transport, elicitation_callback=person, mode="2026-07-28") as client:  # type: ignore[arg-type]
            for _ in range(2):  # Both ways round.
                told = await client.call_tool("memory_retire_all", {"user_id": "asked"})
                assert not told.is_error, told
                await client.list_tools()
    assert writer.list(user_id="asked").memories == ()


def test_what_the_writer_refuses_is_answered_as_by_one_process(sites: Sites) -> None:
    one, other = sites
    assert one.post("/v1/memories", text=" ").error == other.post("/v1/memories", text=" ").error
    assert one.post("/v1/memories", text=" ").error.startswith("400 invalid_input: text: is empty")
    assert one.post("/v1/memories/abcd/retire").error.startswith("404 not_found: ")
    key = {"Idempotency-Key": "k"}
    assert one.post("/v1/memories", key, text="I like tea").status == 200
    assert other.post("/v1/memories", key, text="I like jam").error.startswith("409 conflict: ")
    ada = one.as_("ada-key")
    assert ada.post("/v1/memories", text="I like tea").status == 200
    assert ada.post("/v1/memories", text="x", user_id="bob").error.startswith("403 rejected: ")
    refused = one.as_("read-key").post("/v1/memories", text="x").error
    assert refused == "403 rejected: this token may only read; use one that may write"


def test_an_error_of_the_writer_is_logged_there_and_not_shown(
    sites: Sites,
    writer: Memory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ArithmeticError("a secret of the inside")

    monkeypatch.setattr(MemoryWriter, "stage", fail)
    refused = sites[0].post("/v1/memories", text="I like tea").error
    assert refused == "500 internal: internal error; the server's log has the details"
    assert "a secret of the inside" in caplog.text
    monkeypatch.undo()
    assert sites[0].post("/v1/memories", text="I like tea").status == 200


def test_the_rate_of_a_token_is_counted_over_all_workers(sites: Sites) -> None:
    answers = [sites[n % 2].as_("slow-key").get("/v1/memories").status for n in range(4)]
    assert answers == [200, 200, 200, 429]


def test_the_memories_of_a_day_are_counted_over_all_workers(sites: Sites) -> None:
    one, other = (site.as_("two-key") for site in sites)
    assert one.post("/v1/memories", text="The first").status == 200
    assert other.post("/v1/memories", text="The second").status == 200
    assert one.post("/v1/memories", text="A third").error.startswith("429 too_many_requests: ")
    assert one.tool("memory_write", text="A third")[1].startswith("this token may write 2 memories")
    entries = {entry["name"]: entry for entry in sites[1].get("/v1/tokens").data["tokens"]}
    assert entries["two-key"]["written_today"] == 2


def test_metrics_are_those_of_all_workers(sites: Sites) -> None:
    def counted(site: Site) -> tuple[int, ...]:
        told = site.get("/metrics").body.decode()
        lines = dict(line.rsplit(" ", 1) for line in told.splitlines())
        requests = 'worlddb_http_requests_total{route="/v1/context",method="POST",status="200"}'
        names = (requests, "worlddb_memories_written_total", "worlddb_store_commits")
        return tuple(int(lines.get(name, 0)) for name in names)

    before = counted(sites[0])
    for number, site in enumerate(sites):
        site.post("/v1/memories", text=f"I count {number}", user_id="counted")
        site.post("/v1/context", query="count", user_id="counted")
    counted(sites[0])  # So the first worker has told what it has counted.
    after = counted(sites[1])
    assert [new - old for old, new in zip(before, after, strict=True)] == [2, 2, 2]


def test_without_the_writer_reads_go_on_and_writes_are_refused(
    writer: Memory, tmp_path: Path
) -> None:
    writer.write("I like tea", user_id="eve")
    served = WorkerStores(OneStore(writer), WriteLink(str(tmp_path / "nobody")), 1)
    with serving(served) as site:
        assert recalled(site, "tea", "eve") == ["I like tea"]
        refused = site.post("/v1/memories", text="I like jam").error
        assert refused.startswith("503 storage: the process that writes has ended")
        assert site.get("/health").status == 503


def test_tenants_are_written_by_the_writer_and_read_by_the_workers(tmp_path: Path) -> None:
    folder = str(tmp_path / "stores")
    settings = Settings(path="unused.db", stores=folder, embedder="none", user_id="u")
    tokens = (token("a-key", tenant="acme", admin=True), token("root-key", admin=True))
    with ExitStack() as closing:
        stores = [tenant_stores(settings, folder) for _ in range(2)]
        for one in stores:
            closing.callback(one.close)
        server = WriteServer(stores[0], TokenUses())
        closing.callback(server.close)
        link = WriteLink(server.address)
        closing.callback(link.close)
        served = WorkerStores(stores[1], link, 1)
        access = make_access(host="127.0.0.1", tokens=tokens)
        site = closing.enter_context(serving(served, access))
        assert site.as_("a-key").post("/v1/memories", text="Acme likes tea").status == 200
        listed = site.as_("a-key").get("/v1/memories").data["memories"]
        assert [one["text"] for one in listed] == ["Acme likes tea"]
        blue = {"WorldDB-Tenant": "blue"}
        operator = site.as_("root-key")
        assert operator.post("/v1/memories", blue, text="Blue likes jam").status == 200
        answer = operator.send("GET", "/v1/memories", headers=blue).data["memories"]
        assert [one["text"] for one in answer] == ["Blue likes jam"]
        assert operator.post("/v1/memories", text="x").error.startswith("400 invalid_input: name")


def test_the_command_restarts_a_worker_reads_tokens_again_and_ends_well(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    entry = '[[token]]\nname = "{0}"\nvalue = "{0}-token-of-some-length"\nadmin = true\n'
    tokens.write_text(entry.format("first"))
    options = ["--workers", "2", "--tokens-file", str(tokens)]
    with Process(tmp_path / "m.db", *options) as process:
        site = process.site.as_("first-token-of-some-length")
        assert site.post("/v1/memories", text="I like tea").status == 200
        workers = process.children()
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        until(lambda: len(set(process.children()) - set(workers)) == 1)
        assert site.post("/v1/memories", text="I like jam").status == 200
        tokens.write_text(entry.format("first") + entry.format("second"))
        process.signal(signal.SIGHUP)
        every = {"INFO tokens", "worker 1: tokens", "worker 2: tokens"}
        until(lambda: all(f"{one} read again: 2" in process.log() for one in every))
        second = process.site.as_("second-token-of-some-length")
        assert len(second.get("/v1/memories").data["memories"]) == 2
        made = site.post("/v1/tokens", name="third", user_id="ada").data["token"]
        third = process.site.as_(made)
        assert {third.get("/v1/memories").status for _ in range(8)} == {200}  # At every worker.
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    log = process.log()
    assert re.search(r"worker \d has ended \(signal 9\); it is started again in 0.2 s", log)
    assert "Traceback" not in log
    assert not (tmp_path / "m.db-wal").exists()
    uses = {one.name: uses_beside(str(tokens))[one.digest] for one in read_tokens(str(tokens))}
    assert all(use.last_used for use in uses.values())


@pytest.mark.parametrize("given", ["-1", "many", "1.5"])
def test_a_number_of_workers_is_a_number(tmp_path: Path, given: str) -> None:
    result = in_process("serve", "--db", tmp_path / "m.db", "--workers", given)
    assert result.code == 2
    assert "--workers" in result.err


def test_a_store_in_memory_has_no_workers() -> None:
    check_workers(Settings(path=":memory:"))
    with pytest.raises(InvalidInputError, match="--workers: a store in memory"):
        check_workers(Settings(path=":memory:", workers=1))


def test_the_writer_comes_before_its_workers_and_ctrl_c_is_for_it_alone(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db", "--workers", "2") as process:
        writer, workers = process.pid, process.children()
        assert len(workers) == 2
        for worker in workers:
            assert os.getpriority(os.PRIO_PROCESS, worker) > os.getpriority(os.PRIO_PROCESS, writer)
            assert os.getpgid(worker) != os.getpgid(writer)
            assert os.getsid(worker) == os.getsid(writer)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0

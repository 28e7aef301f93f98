"""Callers share the server fairly: one who is slow, long or wrong does not stop the others."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from faces.command import worlddb
from patience import until
from worlddb import Memory
from worlddb import open as worlddb_open
from worlddb.faces.http import rest_routes
from worlddb.faces.http.access_tokens import make_access
from worlddb.faces.http.request_limits import ASKING_MAX, LONG_TEXT_BYTES, SHARES
from worlddb.files import file_tree
from worlddb.ingest.extractors import VerbatimExtractor
from worlddb.model.records import Draft, Message

from .serving import DEADLINE_S, MCP, Process, Site, serving, token

LONGER_S = 10 * DEADLINE_S  # Than any answer takes: who waited for it would get none.
CROWD = SHARES * ASKING_MAX + 1  # One more than all threads for writes: none would be left.
SLOW, OTHER = "a-token-that-is-slow", "a-token-of-another"
MANY = {f"k{number}": 1 for number in range(280_000)}
LONG = "I live in Rome. " * 20_000
STUCK = """
import sys, time
from worlddb.faces.http import http_server
from worlddb.ingest import extraction_queue
from worlddb.ingest.extractors import RulesExtractor
extraction_queue.LOOK_EVERY_S = 0.05
http_server.LAST_WORDS_S = 20.0
http_server.GRACE_S = http_server.CLOSING_S_MAX = 0.5
def extract(self, messages, at):
    print("reads", file=sys.stderr, flush=True)
    time.sleep(600)
RulesExtractor.extract = extract
from worlddb.faces.cli import run
sys.exit(run(sys.argv[1:]))
"""
"""The command, with a reader that does not come to an end."""
STUCK_GROUP = STUCK.replace(
    "RulesExtractor.extract = extract",
    "from worlddb.memory.writes import MemoryWriter\nMemoryWriter.stage = extract",
).replace("extract(self, messages, at)", "extract(*given)")
"""The command, with a write that does not come to an end on the thread that all writes share."""
IMPATIENT = STUCK.replace("RulesExtractor.extract = extract", "RulesExtractor.chars_max = 50")
"""The command, with a reader that leaves all but short texts for later."""


class SlowExtractor:
    """Reads a text that is slow only when it is told to."""

    name = "slow"

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.began = threading.Semaphore(0)

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        if "slow" in messages[0].text:
            self.began.release()
            assert self.go_on.wait(LONGER_S)
        return VerbatimExtractor().extract(messages, at)


@contextmanager
def slow_server() -> Iterator[tuple[Site, Site, SlowExtractor]]:
    """A server as a slow caller and as another one see it."""
    tokens = [token(SLOW, bounds={"user_id": ("slow",)}), token(OTHER, bounds={"user_id": ("o",)})]
    access = make_access(host="127.0.0.1", tokens=tokens)
    extractor = SlowExtractor()
    with (
        Memory(":memory:", embedder="none", recluster="off", extractor=extractor) as memory,
        serving(memory, access, patience_s=LONGER_S) as site,
    ):
        try:
            yield site.as_(SLOW), site.as_(OTHER), extractor
        finally:
            extractor.go_on.set()


def _write(site: Site, number: int) -> object:
    if number % 2:
        return site.tool("memory_write", text=f"slow {number}")[0]
    return site.post("/v1/memories", text=f"slow {number}").status


def test_slow_writes_of_one_caller_leave_the_server_to_the_others() -> None:
    with slow_server() as (slow, other, extractor), ThreadPoolExecutor(CROWD) as pool:
        waiting = [pool.submit(_write, slow, number) for number in range(CROWD)]
        assert extractor.began.acquire(timeout=DEADLINE_S)
        assert other.post("/v1/memories", text="quick").status == 200
        assert other.tool("memory_write", text="quick, too")[0]
        assert other.tool("memory_list")[0]
        assert other.post("/v1/recall", query="quick").data["hits"]
        # Answers that no tool makes: of routes, of checks, of nobody.
        assert other.get("/health").status == 200
        assert other.post("/v1/recall", question="?").status == 400
        assert other.get("/v1/memories/abcd").status == 404
        assert other.get("/nowhere").status == 404
        # The slow one can still read.
        assert slow.tool("memory_list")[0]
        extractor.go_on.set()
        assert {one.result() for one in waiting} == {200, True}


def test_short_texts_do_not_wait_behind_long_ones() -> None:
    long = f"slow {'x' * LONG_TEXT_BYTES}"
    with slow_server() as (slow, _, extractor), ThreadPoolExecutor(CROWD) as pool:
        waiting = [
            pool.submit(slow.post, "/v1/memories", text=f"{long} {number}")
            for number in range(CROWD)
        ]
        assert extractor.began.acquire(timeout=DEADLINE_S)
        assert slow.post("/v1/memories", text="quick").status == 200
        assert slow.tool("memory_write", text="quick, too")[0]
        extractor.go_on.set()
        assert {one.result().status for one in waiting} == {200}


def test_callers_take_turns(tmp_path: Path) -> None:
    order: list[str] = []

    def write(site: Site, name: str) -> None:
        assert site.post("/v1/memories", text=f"{name} {len(order)}").status == 200
        order.append(name)

    with slow_server() as (slow, other, extractor), ThreadPoolExecutor(CROWD + 1) as pool:
        jobs = [pool.submit(write, slow, "slow") for _ in range(CROWD)]
        assert extractor.began.acquire(timeout=DEADLINE_S)
        jobs.append(pool.submit(write, other, "quick"))
        jobs[-1].result(DEADLINE_S)
        extractor.go_on.set()
        for job in jobs:
            job.result()
    assert order[0] == "quick"


def test_a_text_that_is_too_long_to_be_read_is_written_and_waits(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db") as process, ThreadPoolExecutor(8) as pool:
        site = process.site
        site.post("/v1/memories", text="warm")
        long = [pool.submit(site.post, "/v1/memories", text=f"{n} {LONG}") for n in range(4)]
        tools = [pool.submit(site.tool, "memory_write", text=f"tool {n} {LONG}") for n in range(4)]
        for number in range(10):
            assert site.post("/v1/memories", text=f"note {number}").status == 200
            assert site.tool("memory_list", limit=1)[0]
        assert all(one.result().data["pending"] for one in long)
        assert all(one.result()[0] for one in tools)
    # The server reads them by itself, a tenth of the time, and leaves the rest where it was.
    listed = worlddb("extract", "--pending", "--dry-run", "--db", tmp_path / "m.db", "--json")
    left = len(listed.data["pending"])
    assert left <= 8
    if left:
        done = worlddb("extract", "--pending", "--limit", 1, "--db", tmp_path / "m.db", "--json")
        assert (len(done.data["done"]), done.data["left"]) == (1, left - 1)


def test_a_server_reads_what_waits_for_it(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db", program=IMPATIENT) as process:
        written = process.site.post("/v1/memories", text=f"My friend Sarah Chen. {LONG[:99]}").data
        assert written["pending"]
        with worlddb_open(tmp_path / "m.db", embedder="none") as db:
            until(lambda: not db.pending())
            names = {db.get(edge.target).name for edge in db.edges(written["id"])}
        assert "Sarah Chen" in names


@pytest.mark.parametrize("face", ["rest", "rest in a group", "mcp"])
def test_a_signal_ends_it_within_seconds_while_a_write_is_at_work(
    tmp_path: Path, face: str
) -> None:
    program = STUCK_GROUP if face == "rest in a group" else STUCK
    text = "I am" if face == "rest in a group" else "I am here. " * 100
    with Process(tmp_path / "m.db", program=program) as process, ThreadPoolExecutor(1) as pool:
        given = {"name": "memory_write", "arguments": {"text": text}}
        if face == "mcp":
            waits = pool.submit(lambda: process.site.rpc("tools/call", **given))
        else:
            waits = pool.submit(lambda: process.site.post("/v1/memories", text=text))
        until(lambda: "reads" in process.log())
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
        assert waits.result().error == "503 busy: the server stops; try again"
    assert "out of time: open requests are dropped" in process.log()
    assert "Traceback" not in process.log()
    with worlddb_open(tmp_path / "m.db", embedder="none") as db:
        assert db.check() == []


def test_an_open_subscription_does_not_delay_the_end(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    body = json.dumps(
        {"jsonrpc": "2.0", "id": "listen:0", "method": "subscriptions/listen", "params": params}
    ).encode()
    headers = MCP | {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with (
        Process(tmp_path / "m.db") as process,
        socket.create_connection(("127.0.0.1", process.site.port), DEADLINE_S) as made,
    ):
        made.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        heard = b""
        while b"acknowledged" not in heard:
            heard += made.recv(65_536)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
        while chunk := made.recv(65_536):
            heard += chunk
    assert b'"result"' in heard
    assert "dropped" not in process.log()
    assert "Traceback" not in process.log()


@pytest.mark.parametrize("face", ["rest", "mcp"])
def test_a_huge_number_of_unknown_keys_in_a_message_changes_nothing(site: Site, face: str) -> None:
    # The formats of others have keys that mean nothing here.
    given: dict[str, Any] = {"messages": [{"content": "x", **MANY}]}
    if face == "rest":
        answer = site.post("/v1/memories", **given)
        assert answer.status == 200
        assert len(answer.body) < 2_000
    else:
        done, told = site.tool("memory_write", **given)
        assert done
        assert len(str(told)) < 1_000


@pytest.mark.parametrize("face", ["rest", "mcp"])
def test_a_huge_number_of_unknown_arguments_gets_a_short_answer(site: Site, face: str) -> None:
    given: dict[str, Any] = {"text": "x", **MANY}
    with ThreadPoolExecutor(1) as pool:
        if face == "rest":
            told = pool.submit(lambda: site.post("/v1/memories", **given).error)
        else:
            told = pool.submit(lambda: str(site.tool("memory_write", **given)[1]))
        while not told.done():
            assert site.get("/health").status == 200
        assert "there are no such arguments: k0, k1, k2" in told.result()
        assert "and 279995 more" in told.result()
        assert len(told.result()) < 1_000


def test_a_long_body_is_read_in_the_turn_of_its_caller(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[str] = []
    read = rest_routes._arguments

    def watched(*given: Any) -> Any:
        readers.append(threading.current_thread().name)
        return read(*given)

    monkeypatch.setattr(rest_routes, "_arguments", watched)
    for size in (10, LONG_TEXT_BYTES):
        assert site.post("/v1/memories", text="x" * size, extra=1).status == 400
    assert readers[0] != "worlddb-call"
    assert readers[1:] == ["worlddb-call"]


def test_a_message_with_many_mistakes_tells_the_first(site: Site) -> None:
    done, told = site.tool("memory_write", messages=[{"text": 1}] * 10_000)
    assert not done
    assert "a message has a role and text as its content" in told
    assert len(told) < 1_000


def test_a_pattern_that_does_not_end_stops_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tree, "GREP_S_MAX", 2.0)
    assert site.post("/v1/files/write", path="/trap", text="a" * 60 + "!").status == 200
    path = "/v1/files/grep?" + urlencode({"pattern": "(a+)+$"})
    with ThreadPoolExecutor(2) as pool:
        told = [pool.submit(lambda: site.get(path).error) for _ in range(2)]
        answered = 0
        while not all(one.done() for one in told):
            assert site.get("/health").status == 200
            assert site.post("/v1/memories", text=f"note {answered}").status == 200
            answered += 1
        assert answered >= 5
        assert all("took more than 2 s" in one.result() for one in told)

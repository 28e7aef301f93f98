"""The command itself: how it starts, what it says, and how it ends."""

from __future__ import annotations

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from faces.command import COMMAND, in_process, worlddb
from patience import until
from worlddb import Memory
from worlddb.faces.http.access_tokens import token_digest

from .serving import DEADLINE_S, Process

SECRET = "a-token-of-sufficient-length"


def test_it_serves_and_tells_what_to_paste(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db", env={"WORLDDB_SCOPE": "ada"}, command=COMMAND) as process:
        url = process.told["url"]
        assert process.told["mcp"] == f"{url}/mcp"
        assert process.site.post("/v1/memories", text="I like tea").status == 200
        log = process.log()
    assert f"claude mcp add --transport http worlddb {url}/mcp\n" in log
    assert f"curl -H 'content-type: application/json' {url}/v1/memories" in log
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        assert [one.text for one in memory.list(user_id="ada")] == ["I like tea"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_was_begun_finish_and_then_ends_it_well(
    tmp_path: Path, number: int
) -> None:
    store = tmp_path / "m.db"
    body = b'{"text": "written while the server was leaving", "user_id": "ada"}'
    head = (
        "POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with Process(store) as process:
        with socket.create_connection(("127.0.0.1", process.site.port), DEADLINE_S) as made:
            made.sendall(head.encode())
            # So the server has the request and waits for the body.
            assert made.recv(100).startswith(b"HTTP/1.1 100")
            process.signal(number)
            until(lambda: not process.is_open())
            made.sendall(body)
            found = b""
            while chunk := made.recv(65_536):
                found += chunk
        assert found.startswith(b"HTTP/1.1 200")
        assert process.wait() == 0
    assert not (tmp_path / "m.db-wal").exists()
    with Memory(store, embedder="none") as memory:
        assert [one.text for one in memory.list(user_id="ada")] == [
            "written while the server was leaving"
        ]


def test_a_second_signal_drops_what_is_not_answered_and_says_so(tmp_path: Path) -> None:
    head = (
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"
    )
    with (
        Process(tmp_path / "m.db") as process,
        socket.create_connection(("127.0.0.1", process.site.port), DEADLINE_S) as made,
    ):
        made.sendall(head)
        assert made.recv(100).startswith(b"HTTP/1.1 100")
        process.signal(signal.SIGTERM)
        until(lambda: not process.is_open())
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert "second signal" in process.log()
    assert "Traceback" not in process.log()
    assert not (tmp_path / "m.db-wal").exists()


def test_every_write_that_was_answered_is_there_after_a_signal_in_the_middle(
    tmp_path: Path,
) -> None:
    store = tmp_path / "m.db"
    with Process(store) as process:
        process.site.post("/v1/memories", text="first")

        def write(number: int) -> str:
            if number == 20:
                process.signal(signal.SIGTERM)
            try:
                answer = process.site.post("/v1/memories", text=f"note {number}", user_id="many")
            except OSError:
                return ""
            return str(answer.data["id"]) if answer.status == 200 else ""

        with ThreadPoolExecutor(10) as pool:
            acknowledged = [ident for ident in pool.map(write, range(60)) if ident]
        assert process.wait() == 0
    assert len(acknowledged) >= 10
    with Memory(store, embedder="none") as memory:
        stored = {str(one.id) for one in memory.list(user_id="many", limit=1000)}
        assert set(acknowledged) <= stored
        assert memory.db.check() == []


def test_a_store_that_was_deleted_under_the_server_is_told_and_no_write_is_acknowledged(
    tmp_path: Path,
) -> None:
    with Process(tmp_path / "m.db") as process:
        assert process.site.post("/v1/memories", text="I like tea").status == 200
        assert process.site.get("/health").status == 200
        for file in tmp_path.glob("m.db*"):
            file.unlink()
        assert process.site.get("/health").error.startswith("503 storage: ")
        refused = process.site.post("/v1/memories", text="I like coffee").error
        assert refused.startswith("503 storage: the store: was deleted, moved or replaced while")
        assert "restore" in refused
        done, told = process.site.tool("memory_write", text="I like milk")
        assert not done
        assert "was deleted, moved or replaced" in told
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert "Traceback" not in process.log()
    assert list(tmp_path.glob("m.db*")) == []


def test_the_log_tells_neither_tokens_nor_texts(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    digest = token_digest(SECRET.encode()).hex()
    tokens.write_text(f'[[token]]\nname = "laptop"\nsha256 = "{digest}"\nuser_id = "ada"')
    env = {"WORLDDB_TOKEN": f"admin-{SECRET}", "WORLDDB_LOG_LEVEL": "debug"}
    with Process(tmp_path / "m.db", "--tokens-file", str(tokens), env=env) as process:
        site = process.site.as_(SECRET)
        made = site.post("/v1/memories", text="the flowerpot hides the key").data
        site.post("/v1/recall", query="flowerpot")
        site.get(f"/v1/memories/{made['id']}?user_id=ada")
        site.tool("memory_recall", query="flowerpot")
        site.post("/v1/memories", text=["flowerpot"])
        process.site.as_("flowerpot-guess").get("/v1/scopes")
        assert process.site.as_(f"admin-{SECRET}").get("/metrics").status == 200
    log = process.log()
    assert "POST /v1/memories 200" in log
    assert "GET /v1/memories/{id} 200" in log
    assert "laptop" in log
    assert SECRET not in log
    assert digest not in log
    assert "flowerpot" not in log
    assert made["id"] not in log
    assert "Bearer $WORLDDB_TOKEN" in log
    assert "Bearer ${env:WORLDDB_TOKEN}" in log
    assert 'bearer_token_env_var = "WORLDDB_TOKEN"' in log


def test_the_access_log_is_there_at_info_and_not_above(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db", env={"WORLDDB_LOG_LEVEL": "warning"}) as process:
        assert process.site.get("/health").status == 200
    assert "GET /health" not in process.log()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--host", "0.0.0.0"], "needs a token"),
        (["--host", "0.0.0.0", "--token", SECRET], "--allowed-host"),
        (["--host", "0.0.0.0", "--allowed-host", "memory.lan"], "needs a token"),
        (["--host", "::", "--token", SECRET], "--allowed-host"),
        (["--host", "nothing.invalid"], "cannot be resolved"),
        (["--allowed-host", "*"], "allowed host '*'"),
        (["--allowed-origin", "*"], "allowed origin '*'"),
        (["--port", "70000"], "--port"),
        (["--tokens-file", "/nonexistent/tokens.toml"], "no such file"),
    ],
)
def test_it_does_not_start_unguarded_or_misunderstood(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    store = tmp_path / "m.db"
    result = in_process("serve", "--db", store, "--port", "0", *arguments)
    assert result.code in (2, 8)
    assert told in result.err
    assert SECRET not in result.err
    assert not store.exists()


def test_others_are_let_in_by_a_token_and_a_name(tmp_path: Path) -> None:
    arguments = ["--host", "0.0.0.0", "--allowed-host", "memory.lan"]
    env = {"WORLDDB_TOKEN": SECRET}
    with Process(tmp_path / "m.db", *arguments, env=env) as process:
        assert process.told["url"].startswith("http://memory.lan:")
        site = process.site.as_(SECRET)
        assert site.send("GET", "/v1/scopes", headers={"Host": "memory.lan"}).status == 200
        assert site.send("GET", "/v1/scopes", headers={"Host": "0.0.0.0"}).status == 421
        assert process.site.get("/v1/scopes").status == 401
    assert "HTTP is not encrypted" in process.log()


def test_it_consolidates_in_the_background_if_told(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db", "--consolidate-every-s", "0.01") as process:
        assert process.site.post("/v1/memories", text="I like tea").status == 200
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert "failed" not in process.log()


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = worlddb("serve", "--db", tmp_path / "m.db", "--port", port)
    assert result.code == 8
    assert f"cannot listen on 127.0.0.1 port {port}: address already in use" in result.err

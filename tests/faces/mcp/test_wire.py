"""The wire itself: what is no message, how the server ends, and what reaches stdout."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import worlddb
from thinning import some

from .talking import DEADLINE_S, PATIENT, Lines, lines

BAD_LINES: list[tuple[bytes, int, int | str | None]] = [
    (b"{not json", -32700, None),
    (b"[]", -32600, None),
    (b"null", -32600, None),
    (b'"text"', -32600, None),
    (b'{"jsonrpc":"2.0"}', -32600, None),
    (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
    (b'{"jsonrpc":"2.0","id":"a","method":5}', -32600, "a"),
    (b"\xff\xfe\x00", -32700, None),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"x":"\xff"}}', -32700, 8),
    (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"\\ud800"}}', -32700, 9),
    (b"[" * 100_000, -32700, None),
    (b'{"jsonrpc":"2.0","id":10,"method":"no/such"}', -32601, 10),
    (b'{"jsonrpc":"2.0","id":11,"method":"tools/call"}', -32602, 11),
    (b'{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":5}}', -32602, 12),
]


def write(number: int, text: str) -> bytes:
    params = {"name": "memory_write", "arguments": {"text": text}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


def texts(path: Path) -> list[str]:
    with worlddb.Memory(path) as memory:
        assert memory.db.check() == []
        return [one.text for one in memory.list()]


def test_what_is_no_message_gets_an_error_and_the_server_goes_on(tmp_path: Path) -> None:
    with lines(tmp_path / "m.db") as server:
        server.greet()
        server.say(b"")
        server.say(b"   ")
        for line, code, ident in BAD_LINES:
            server.say(line)
            told = server.hear()
            assert (told["error"]["code"], told["id"]) == (code, ident), line[:80]
            assert len(told["error"]["message"]) > 5
        assert server.ask(20, "ping")["result"] == {}
        # Bytes that are not text are never remembered; what comes after them is.
        server.say(write(1, "caf?").replace(b"?", b"\xe9"))
        assert "byte" in server.hear()["error"]["message"]
        server.say(write(2, "café"))
        assert server.hear()["result"]["isError"] is False
        assert server.end()[0] == 0
    assert texts(tmp_path / "m.db") == ["café"]


def test_a_cancellation_of_nothing_is_no_fault(tmp_path: Path) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    wrong: list[dict[str, Any]] = [{}, {"requestId": []}, {"requestId": 99}]
    with lines(tmp_path / "m.db") as server:
        server.greet()
        for number, said in enumerate([message, *({**message, "params": one} for one in wrong)]):
            server.say(json.dumps(said).encode())
            assert server.ask(20 + number, "ping")["result"] == {}
        assert server.end()[0] == 0


def test_it_answers_what_was_asked_before_stdin_ended(tmp_path: Path) -> None:
    with lines(tmp_path / "m.db") as server:
        server.greet()
        for number in range(1, 6):
            server.say(write(number, f"note {number}"))
        code, rest, _ = server.end()
    assert code == 0
    answered = [json.loads(line) for line in rest.splitlines()]
    assert sorted(one["id"] for one in answered) == [1, 2, 3, 4, 5]
    assert sorted(texts(tmp_path / "m.db")) == [f"note {number}" for number in range(1, 6)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_the_store_closed(tmp_path: Path, number: int) -> None:
    path = tmp_path / "m.db"
    with lines(path) as server:
        server.greet()
        server.say(write(1, "before the signal"))
        server.hear()
        server.process.send_signal(number)
        assert server.process.wait(DEADLINE_S) == 0
        assert server.process.stderr is not None
        assert b"Traceback" not in server.process.stderr.read()
    # A store that was closed has nothing left to bring in.
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.db"]
    assert texts(path) == ["before the signal"]


def test_a_signal_before_any_message_ends_it_too(tmp_path: Path) -> None:
    with lines(tmp_path / "m.db") as server:
        server.greet()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(DEADLINE_S) == 0


def test_a_signal_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    heard: list[Any] = []
    with lines(tmp_path / "m.db") as server:
        server.greet()
        for number in range(1, 41):
            server.say(write(number, f"note {number}"))
            if number == 20:
                heard += [server.hear() for _ in range(10)]
                server.process.send_signal(signal.SIGTERM)
                break
        assert server.process.wait(DEADLINE_S) == 0
        assert server.process.stdout is not None
        heard += [json.loads(line) for line in server.process.stdout.read().splitlines()]
    acknowledged = {f"note {one['id']}" for one in heard}
    assert len(acknowledged) >= 10
    assert acknowledged <= set(texts(tmp_path / "m.db"))


SLOW = """
import sys
import worlddb
from worlddb.faces.mcp.stdio_transport import serve_stdio

write = worlddb.Memory.write

def slow(self, *given, **options):
    print("begun", file=sys.stderr, flush=True)
    open(f"{sys.argv[1]}.fifo").read()
    return write(self, *given, **options)

worlddb.Memory.write = slow
with worlddb.Memory(sys.argv[1]) as memory:
    serve_stdio(lambda: memory)
"""


@contextmanager
def at_work(path: Path, program: str = PATIENT + SLOW) -> Iterator[Lines]:
    """Yield a server that is at work on a write, until its pipe is written to."""
    os.mkfifo(f"{path}.fifo")
    with lines(path, program=program) as server:
        server.greet()
        server.say(write(1, "begun before the signal"))
        wait_for(server, b"begun")
        yield server


def wait_for(server: Lines, said: bytes) -> None:
    """Read what is told on stderr until something is."""
    assert server.process.stderr is not None
    while said not in (line := server.process.stderr.readline()):
        assert line, "the server is gone"


@pytest.mark.parametrize("number", some([signal.SIGTERM, signal.SIGINT], 2))
def test_a_call_that_was_begun_before_a_signal_is_finished_and_answered(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "m.db"
    with at_work(path) as server:
        server.process.send_signal(number)
        wait_for(server, b"stopping")
        server.say(write(2, "asked after the signal"))
        Path(f"{path}.fifo").write_text("go")
        told = server.hear()
        assert (told["id"], told["result"]["isError"]) == (1, False)
        assert server.process.wait(DEADLINE_S) == 0
        assert server.process.stdout is not None
        assert server.process.stderr is not None
        assert server.process.stdout.read() == b""
        assert server.process.stderr.read() == b""
    assert not Path(f"{path}-wal").exists()
    assert texts(path) == ["begun before the signal"]


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with at_work(path) as server:
        server.process.send_signal(signal.SIGTERM)
        wait_for(server, b"stopping")
        server.process.send_signal(signal.SIGTERM)
        wait_for(server, b"a second signal: open calls are dropped")
        assert server.process.wait(DEADLINE_S) == 128 + signal.SIGTERM
    assert texts(path) == []


def test_a_call_that_does_not_end_holds_the_end_up_for_a_moment_only(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with at_work(path, SLOW) as server:
        server.process.send_signal(signal.SIGTERM)
        wait_for(server, b"out of time: open calls are dropped")
        assert server.process.wait(DEADLINE_S) == 128 + signal.SIGTERM
    assert texts(path) == []


def test_a_client_that_goes_away_without_a_word_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with lines(path) as server:
        server.greet()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.say(write(1, "said into the void"))
        # Its stdin is still open: it ends by itself.
        assert server.process.wait(DEADLINE_S) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""
        server.process.stdout = None
    assert not Path(f"{path}-wal").exists()
    assert texts(path) == ["said into the void"]


def test_nothing_but_the_protocol_reaches_stdout(tmp_path: Path) -> None:
    with lines(tmp_path / "m.db") as server:
        told = server.greet()
        assert told["result"]["serverInfo"]["name"] == "worlddb"
        assert told["result"]["serverInfo"]["version"] == worlddb.__version__
        assert "memory_recall" in told["result"]["instructions"]
        arguments = {"name": "memory_read", "arguments": {"id": "ffff"}}
        assert server.ask(1, "tools/call", **arguments)["result"]["isError"] is True
        code, rest, errors = server.end()
    assert (code, rest) == (0, b"")
    assert b"memory_read" in errors


LOUD = """
import os, subprocess, sys
import worlddb
from worlddb.faces.mcp.stdio_transport import serve_stdio

listed = worlddb.Memory.list

def loud(self, **options):
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "said by a child"])
    assert sys.stdin.read() == ""
    return listed(self, **options)

worlddb.Memory.list = loud
with worlddb.Memory(sys.argv[1]) as memory:
    serve_stdio(lambda: memory)
"""


def test_what_is_printed_meanwhile_goes_to_stderr_and_stdin_is_ours_alone(tmp_path: Path) -> None:
    with lines(tmp_path / "m.db", program=PATIENT + LOUD) as server:
        server.greet()
        told = server.ask(1, "tools/call", name="memory_list", arguments={})
        assert told["result"]["structuredContent"] == {"memories": []}
        code, rest, errors = server.end()
    assert (code, rest) == (0, b"")
    for said in (b"printed", b"written", b"said by a child"):
        assert said in errors


WARM = """
import sys
import worlddb
from worlddb.faces.mcp.stdio_transport import serve_stdio

class Warm(worlddb.Memory):
    def warm(self):
        super().warm()
        print("warmed up", file=sys.stderr, flush=True)

with Warm(sys.argv[1]) as memory:
    serve_stdio(lambda: memory)
"""


def test_what_is_being_loaded_is_not_left_behind_when_it_ends(tmp_path: Path) -> None:
    with lines(tmp_path / "m.db", program=PATIENT + WARM) as server:
        server.greet()
        code, rest, errors = server.end()
    assert (code, rest, errors) == (0, b"", b"warmed up\n")


def test_discovery_without_a_handshake_says_what_the_server_is(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    with lines(tmp_path / "m.db") as server:
        told = server.ask(1, "server/discover", _meta=meta)["result"]
        assert "2026-07-28" in told["supportedVersions"]
        assert "memory_recall" in told["instructions"]


def test_a_store_that_cannot_be_opened_is_told_on_stderr(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(b"this is not a store, but long enough to be looked at. " * 100)
    with lines(path) as server:
        assert server.process.wait(DEADLINE_S) == 6
        assert server.process.stdout is not None
        assert server.process.stderr is not None
        assert server.process.stdout.read() == b""
        assert server.process.stderr.read().startswith(b"worlddb: ")


def test_a_store_that_turns_out_to_be_damaged_is_told_to_who_calls(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(b"SQLite format 3\0" + b"this is not a store. " * 1_000)
    with lines(path) as server:
        server.greet()
        told = server.ask(1, "tools/call", name="memory_list", arguments={})["result"]
        assert told["isError"]
        assert str(path) in told["content"][0]["text"]
        code, _, errors = server.end()
    assert code == 0
    assert b"recall is not ready yet" in errors


def test_the_usual_user_can_be_chosen(tmp_path: Path) -> None:
    with lines(tmp_path / "m.db", "--user-id", "ada") as server:
        server.greet()
        server.say(write(1, "hers"))
        assert server.hear()["result"]["structuredContent"]["scopes"] == ["user:ada"]


def test_an_open_subscription_is_ended_and_answered_at_the_end(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with lines(tmp_path / "m.db") as server:
        server.ask(1, "server/discover", _meta=meta)
        wanted = {"toolsListChanged": True}
        heard = server.ask(2, "subscriptions/listen", _meta=meta, notifications=wanted)
        assert heard["method"] == "notifications/subscriptions/acknowledged"
        # The server used to wait for it as for a call, and then to drop it without an answer.
        code, rest, _ = server.end()
    assert code == 0
    assert json.loads(rest)["id"] == 2
    assert "result" in json.loads(rest)

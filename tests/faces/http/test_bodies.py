"""Bodies: too large, too slow, too odd; and the server is there afterwards."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from worlddb.faces.http import request_limits
from worlddb.memory.memory import Memory

from .serving import DEADLINE_S, JSON, MCP, Site, serving

LIMIT = 10_000


@pytest.fixture(scope="module")
def tight(memory: Memory) -> Iterator[Site]:
    """A server with little room."""
    with serving(memory, body_bytes_max=LIMIT) as made:
        yield made


@pytest.mark.parametrize("path", ["/v1/memories", "/v1/recall", "/mcp", "/nowhere"])
def test_a_body_over_the_limit_is_refused_on_every_route(tight: Site, path: str) -> None:
    fits = b'{"text": "' + b"x" * (LIMIT - 12) + b'"}'
    assert len(fits) == LIMIT
    assert tight.send("POST", path, fits, MCP).status in (200, 400, 404)
    answer = tight.send("POST", path, fits + b" ", MCP)
    assert answer.error.startswith("413 too_large")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("path", ["/v1/memories", "/mcp"])
def test_a_body_that_does_not_tell_its_length_has_the_same_limit(tight: Site, path: str) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = f"{LIMIT // 2:x}\r\n".encode() + b"x" * (LIMIT // 2) + b"\r\n"
    answer = tight.raw(head.encode() + chunk * 3 + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert tight.get("/health").status == 200


def test_the_usual_limit_is_four_mebibytes(site: Site) -> None:
    head = "POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n"
    assert site.raw(head.format(4 * 2**20 + 1).encode()).startswith(b"HTTP/1.1 413")
    ten_megabytes = b'{"text": "' + b"x" * 10_000_000 + b'"}'
    with pytest.raises((ConnectionError, AssertionError)):
        # The server answers and closes without reading it all; which of the two is seen first
        # is up to the network.
        assert site.send("POST", "/v1/memories", ten_megabytes, JSON).status != 413
    assert site.get("/health").status == 200


def test_a_body_that_does_not_come_is_not_waited_for(memory: Memory) -> None:
    head = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with serving(memory, body_s_max=0.1) as site:
        answer = site.raw(head)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"type": "timeout"' in answer


@pytest.mark.parametrize("sent", [b"", b"GET /health HTT", b"GET /health HTTP/1.1\r\nHost: lo"])
def test_a_request_that_does_not_begin_is_not_waited_for(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(request_limits, "HEAD_S_MAX", 0.2)
    with serving(memory) as site:
        assert site.raw(sent) == b""
        monkeypatch.undo()
        assert site.get("/health").status == 200


def test_the_time_for_a_further_request_begins_with_its_first_byte(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(memory) as site, socket.create_connection(("127.0.0.1", site.port)) as made:
        made.settimeout(DEADLINE_S)
        made.sendall(whole)
        found = made.recv(65_536)
        monkeypatch.setattr(request_limits, "HEAD_S_MAX", 0.2)
        made.sendall(whole + b"GET /hea")
        while chunk := made.recv(65_536):
            found += chunk
        assert found.count(b"HTTP/1.1 200") == 2


def test_a_caller_that_goes_away_in_the_middle_leaves_no_trace(tight: Site) -> None:
    with socket.create_connection(("127.0.0.1", tight.port)) as made:
        made.sendall(b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    assert tight.get("/health").status == 200
    assert b'status="500"' not in tight.get("/metrics").body


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
        b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
        b"Content-Length: 2\r\n\r\nxx",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n bad: folded\r\nno colon\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_the_server_stays(site: Site, data: bytes) -> None:
    with suppress(ConnectionError):  # Closed while we were still sending.
        assert site.raw(data).startswith(b"HTTP/1.1 400")
    assert site.get("/health").status == 200


def test_an_address_or_headers_over_the_limit_are_refused(site: Site) -> None:
    for path, headers in (
        ("/health", {"X": "x" * 33_000}),
        ("/health", {f"X-{number}": "y" for number in range(101)}),
        ("/v1/memories?user_id=" + "x" * 33_000, {}),
    ):
        answer = site.send("GET", path, headers=headers)
        assert answer.error.startswith("431 too_large")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "nonsense"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nonsense"}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_mcp_is_refused_and_the_server_stays(site: Site, body: bytes) -> None:
    for version in ({}, {"Mcp-Protocol-Version": "2026-07-28"}, {"Mcp-Protocol-Version": "x"}):
        answer = site.send("POST", "/mcp", body, MCP | version)
        assert answer.status < 500
        if answer.status != 202:  # A notification of nothing known is taken and dropped.
            assert "error" in answer.data or answer.data["result"]["isError"], (version, answer)
    assert site.get("/health").status == 200

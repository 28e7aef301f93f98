"""Connections: who holds many, says nothing, never reads or guesses is in nobody's way."""

from __future__ import annotations

import asyncio
import http.client
import re
import resource
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from patience import until
from worlddb import Memory
from worlddb.faces.http import auth_middleware, request_limits
from worlddb.faces.http.access_tokens import Access, make_access
from worlddb.faces.http.auth_middleware import GUESSES_MAX, GuessLimit, network_of
from worlddb.faces.http.request_limits import GATHERED_BYTES_MAX, GatheredTransport

from .serving import DEADLINE_S, Process, Site, serving, token

SECRET = "a-token-of-sufficient-length"
ANOTHER = "another-token-of-that-length"


@pytest.fixture
def access() -> Access:
    return make_access(host="127.0.0.1", tokens=[token(SECRET, admin=True)])


def connect(site: Site) -> socket.socket:
    return socket.create_connection((site.host, site.port), DEADLINE_S)


def ask(made: socket.socket, path: str, secret: str = "") -> int:
    """Send a request on an open connection; return the status of its answer."""
    bearer = f"Authorization: Bearer {secret}\r\n" if secret else ""
    made.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n".encode())
    with http.client.HTTPResponse(made) as answer:
        answer.begin()
        answer.read()
        return answer.status


def is_closed(made: socket.socket, seconds: float = DEADLINE_S) -> bool:
    """Return whether the server closes a connection in time."""
    made.settimeout(seconds)
    try:
        while made.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def test_hundreds_of_connections_with_a_401_each_lock_nobody_out(
    memory: Memory, access: Access
) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with serving(memory, access) as site, ExitStack() as held:
        for number in range(min(999, most // 2 - 50)):
            made = held.enter_context(connect(site))
            if number % 2:
                assert ask(made, "/v1/scopes") == 401
        assert site.as_(SECRET).get("/v1/scopes").status == 200
        assert site.get("/health").status == 200


def test_a_connection_without_a_valid_token_is_not_kept(
    memory: Memory, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_limits, "STRANGER_KEEP_ALIVE_S", 0.3)
    with serving(memory, access) as site:
        with connect(site) as refused:
            assert ask(refused, "/v1/scopes") == 401
            assert is_closed(refused)
        with connect(site) as health, connect(site) as known:
            assert ask(health, "/health") == 200
            assert ask(known, "/v1/scopes", SECRET) == 200
            assert is_closed(health)
            assert not is_closed(known, 0.5)
            known.settimeout(DEADLINE_S)
            assert ask(known, "/health") == 200


def test_the_oldest_stranger_makes_room_and_known_callers_stay(
    memory: Memory, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_limits, "STRANGERS_MAX", 3)
    with serving(memory, access) as site, ExitStack() as held:
        known = held.enter_context(connect(site))
        assert ask(known, "/v1/scopes", SECRET) == 200
        strangers = [held.enter_context(connect(site)) for _ in range(5)]
        assert ask(strangers[-1], "/health") == 200
        assert all(is_closed(one) for one in strangers[:2])
        assert not any(is_closed(one, 0.1) for one in strangers[2:])
        known.settimeout(DEADLINE_S)
        assert ask(known, "/v1/scopes", SECRET) == 200


def test_a_full_server_drops_whoever_was_idle_longest(
    memory: Memory, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_limits, "CONNECTIONS_MAX", 4)
    with serving(memory, access) as site, ExitStack() as held:
        known = []
        for _ in range(6):
            known.append(held.enter_context(connect(site)))
            assert ask(known[-1], "/v1/scopes", SECRET) == 200
        assert is_closed(known[0])
        known[-1].settimeout(DEADLINE_S)
        assert ask(known[-1], "/v1/scopes", SECRET) == 200


@pytest.mark.parametrize("closing", [False, True])
def test_a_client_that_never_reads_is_dropped(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, closing: bool
) -> None:
    monkeypatch.setattr(request_limits, "STALLED_S_MAX", 1.0)
    for number in range(12):
        memory.write(f"{number} " + "long " * 100_000, user_id="long", extractor="verbatim")
    with serving(memory) as site, connect(site) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        more = "Connection: close\r\n" if closing else ""
        path = "/v1/memories?user_id=long&limit=12"
        made.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
        until(lambda: connections_of(site) == 0)
        # Who reads, however slowly, gets everything.
        monkeypatch.undo()
        assert len(site.get(path).data["memories"]) == 12


def connections_of(site: Site) -> int:
    """Return how many connections the server's port has, by the system's own account."""
    end = f":{site.port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = "01"
    return sum(row[1].endswith(end) and row[3] == established for row in rows)


def test_guessing_tokens_is_slow_and_does_not_disturb_those_who_have_one(
    memory: Memory, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that none is given back, however long the test takes.
    monkeypatch.setattr(auth_middleware, "GUESS_EVERY_S", 100.0 * DEADLINE_S)
    with serving(memory, access) as site:
        assert site.as_(SECRET).get("/v1/scopes").status == 200
        answers = [
            site.as_(f"guess-{number}").get("/v1/scopes") for number in range(2 * GUESSES_MAX)
        ]
        told = [one.status for one in answers]
        assert told == [401] * GUESSES_MAX + [429] * GUESSES_MAX
        refused = next(one for one in answers if one.status == 429)
        assert refused.error.startswith("429 too_many_guesses: too many wrong tokens")
        assert int(refused.headers["retry-after"]) >= 1
        assert site.as_(SECRET).get("/v1/scopes").status == 200
        # One that repeats its old token learns nothing and is not counted.
        assert site.as_("guess-0").get("/v1/scopes").status == 401


def test_an_ipv6_network_counts_as_one_and_time_gives_guesses_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db9::1")
    assert network_of("::ffff:10.0.0.1") == "10.0.0.1"
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    guesses = GuessLimit()
    last = [guesses.note("10.0.0.1", bytes([n]), right=False) for n in range(GUESSES_MAX)]
    assert last == [False] * (GUESSES_MAX - 1) + [True]
    assert guesses.wait_s("10.0.0.1", b"new") > 0
    assert guesses.wait_s("10.0.0.2", b"new") == 0
    now = 2.0
    assert guesses.wait_s("10.0.0.1", b"new") == 0


def tokens_file(path: Path, *values: str) -> Path:
    told = [
        f'[[token]]\nname = "{value[:7]}"\nvalue = "{value}"\nadmin = true\n' for value in values
    ]
    path.write_text("\n".join(told))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("hangup", [False, True], ids=["changed", "SIGHUP"])
def test_tokens_are_read_again_without_a_restart(tmp_path: Path, hangup: bool) -> None:
    file = tokens_file(tmp_path / "tokens.toml", SECRET)
    with Process(tmp_path / "m.db", "--tokens-file", str(file)) as process:
        old, new = process.site.as_(SECRET), process.site.as_(ANOTHER)
        assert old.get("/v1/scopes").status == 200
        assert new.get("/v1/scopes").status == 401
        tokens_file(file, ANOTHER)
        if hangup:
            process.signal(signal.SIGHUP)
        until(lambda: new.get("/v1/scopes").status == 200)
        assert old.get("/v1/scopes").status == 401
        file.write_text("nonsense")
        if hangup:
            process.signal(signal.SIGHUP)
        until(lambda: "the old ones hold" in process.log())
        assert new.get("/v1/scopes").status == 200
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert "tokens read again: 1" in process.log()
    assert "the old ones hold" in process.log()
    assert SECRET not in process.log()


REVOKED_MEANWHILE = """
import os, sys
from worlddb.faces.http import http_server
opened = http_server._opened
def slowly(settings, closing):
    os.replace(settings.tokens_file + ".next", settings.tokens_file)
    return opened(settings, closing)
http_server._opened = slowly
from worlddb.faces.cli import run
sys.exit(run(sys.argv[1:]))
"""


def test_a_token_that_is_revoked_while_the_server_starts_does_not_hold(tmp_path: Path) -> None:
    file = tokens_file(tmp_path / "tokens.toml", SECRET)
    tokens_file(tmp_path / "tokens.toml.next", ANOTHER)
    options = ("--tokens-file", str(file))
    with Process(tmp_path / "m.db", *options, program=REVOKED_MEANWHILE) as process:
        until(lambda: process.site.as_(ANOTHER).get("/v1/scopes").status == 200)
        assert process.site.as_(SECRET).get("/v1/scopes").status == 401


def test_a_hangup_without_a_tokens_file_changes_nothing(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db") as process:
        process.signal(signal.SIGHUP)
        assert process.site.get("/health").status == 200
        assert process.site.get("/v1/scopes").status == 200
        process.signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.mark.parametrize("trusted", [False, True])
def test_the_log_says_where_a_request_comes_from(tmp_path: Path, trusted: bool) -> None:
    more = ["--trusted-proxy", "127.0.0.1"] if trusted else []
    with Process(tmp_path / "m.db", *more, env={"WORLDDB_TOKEN": SECRET}) as process:
        forwarded = {"X-Forwarded-For": "203.0.113.9"}
        assert process.site.send("GET", "/v1/scopes", headers=forwarded).status == 401
        assert process.site.as_(SECRET).send("GET", "/health", headers=forwarded).status == 200
    address = "203.0.113.9" if trusted else "127.0.0.1"
    assert re.search(rf"GET \(none\) 401 [0-9.]+ ms {address} -\n", process.log())
    assert re.search(rf"GET /health 200 [0-9.]+ ms {address} -\n", process.log())


def test_head_and_body_of_an_answer_are_one_send() -> None:
    async def seen() -> list[bytes]:
        near, far = socket.socketpair()
        far.setblocking(False)
        loop, found = asyncio.get_running_loop(), []

        def arrived() -> bytes:
            try:
                return far.recv(1 << 20)
            except BlockingIOError:
                return b"(nothing)"

        made, _ = await loop.create_connection(asyncio.Protocol, sock=near)
        transport = GatheredTransport(made, loop)
        transport.write(b"head ")
        transport.write(b"body")
        found += [arrived(), str(transport.get_write_buffer_size()).encode()]
        await asyncio.sleep(0)
        found += [arrived(), str(transport.get_write_buffer_size()).encode()]
        transport.write(b"x" * (GATHERED_BYTES_MAX + 1))
        found.append(arrived()[:1])  # Much is not kept back.
        transport.write(b"the last")
        transport.close()
        rest = b""
        while more := await loop.sock_recv(far, 1 << 20):
            rest += more
        far.close()
        return [*found, rest[-8:]]

    assert asyncio.run(seen()) == [b"(nothing)", b"9", b"head body", b"0", b"x", b"the last"]

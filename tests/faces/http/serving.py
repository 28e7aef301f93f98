"""A real server for tests: in a thread of this process, or as the command in one of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faces.command import environment
from patience import PATIENCE_S
from started_program import StartedProgram
from worlddb.faces.http.access_tokens import Access, AccessToken, make_access, token_digest
from worlddb.faces.http.http_app import make_app
from worlddb.faces.http.http_server import HttpServer, listener_on
from worlddb.faces.http.worker_pool import WorkerStores
from worlddb.memory.memory import Memory

DEADLINE_S = PATIENCE_S
PATIENT = f"""
import sys
from worlddb.faces.http import http_server
http_server.GRACE_S = http_server.CLOSING_S_MAX = {DEADLINE_S / 2}
from worlddb.faces.cli import run
sys.exit(run(sys.argv[1:]))
"""
"""The command, with time to end as it should on a machine that is busy."""
JSON = {"Content-Type": "application/json"}
MCP = JSON | {"Accept": "application/json, text/event-stream"}
ROUTES = (
    ("POST", "/v1/memories"),
    ("GET", "/v1/memories"),
    ("POST", "/v1/recall"),
    ("GET", "/v1/memories/abcd"),
    ("POST", "/v1/memories/abcd/amend"),
    ("POST", "/v1/memories/abcd/retire"),
    ("POST", "/v1/retire_all"),
    ("POST", "/v1/purge_scope"),
    ("GET", "/v1/scopes"),
    ("GET", "/openapi.json"),
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("GET", "/nowhere"),
)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        told = self.data["error"]
        assert set(told) == {"type", "message"}
        return f"{self.status} {told['type']}: {told['message']}"


@dataclass(frozen=True)
class Site:
    """A server that listens, and how it is called."""

    host: str
    port: int
    token: str = ""

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def as_(self, token: str) -> Site:
        """Return the same server, called with a token."""
        return Site(self.host, self.port, token)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request as it is."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_S)
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            connection.request(method, path, body, bearer | dict(headers or {}))
            response = connection.getresponse()
            held = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, held, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def post(self, at: str, /, headers: Mapping[str, str] | None = None, **given: Any) -> Answer:
        return self.send("POST", at, json.dumps(given).encode(), JSON | dict(headers or {}))

    def raw(self, data: bytes) -> bytes:
        """Send bytes and return everything that comes back until the server closes."""
        with socket.create_connection((self.host, self.port), DEADLINE_S) as made:
            made.sendall(data)
            found = b""
            while chunk := made.recv(65_536):
                found += chunk
        return found

    def rpc(self, method: str, **params: Any) -> Answer:
        """Send one MCP request, as clients of the older protocols do."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.send("POST", "/mcp", json.dumps(call).encode(), MCP)

    def tool(self, name: str, **arguments: Any) -> tuple[bool, Any]:
        """Call an MCP tool; return whether it was done, and its answer or its complaint."""
        answer = self.rpc("tools/call", name=name, arguments=arguments)
        assert answer.status == 200, answer.body
        result = answer.data["result"]
        if result["isError"]:
            return False, result["content"][0]["text"]
        return True, result["structuredContent"]


def token(value: str, **options: Any) -> AccessToken:
    """Return a token of a test."""
    return AccessToken(name=value, digest=token_digest(value.encode()), **options)


@contextmanager
def serving(
    memory: Memory | WorkerStores, access: Access | None = None, **options: Any
) -> Iterator[Site]:
    """Serve a memory on a real socket, from a thread."""
    access = access or make_access(host="127.0.0.1", tokens=())
    listening = threading.Event()
    with listener_on("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        options = {"url": f"http://127.0.0.1:{port}"} | options
        server = HttpServer(make_app(memory, access=access, **options), listening.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert listening.wait(DEADLINE_S)
            yield Site("127.0.0.1", port)
        finally:
            server.should_exit = True
            thread.join(DEADLINE_S)
            assert not thread.is_alive()


class Process:
    """`worlddb serve` in a process of its own: a program that runs it, or a command."""

    def __init__(
        self,
        store: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        program: str = PATIENT,
        command: Sequence[str] = (),
    ) -> None:
        self.errors = store.with_suffix(".log")
        given = [*f"serve --port 0 --json --embedder none --db {store}".split(), *arguments]
        self._process: StartedProgram | subprocess.Popen[bytes]
        with self.errors.open("wb") as log:
            if command:
                self._process = subprocess.Popen(
                    [*command, *given], stdout=subprocess.PIPE, stderr=log, env=environment(env)
                )
            else:
                self._process = StartedProgram(program, given, environment(env), stderr=log)
        assert self._process.stdout is not None
        told = b""
        while line := self._process.stdout.readline():
            told += line
            if line.startswith(b"}"):
                break
        self.told = json.loads(told) if told else {}
        port = int(self.told["url"].rpartition(":")[2]) if told else 0
        self.site = Site("127.0.0.1", port)

    def memory_mb(self) -> int:
        """Return how much memory the process has in use."""
        about = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(about.partition("VmRSS:")[2].split()[0]) >> 10

    @property
    def pid(self) -> int:
        return self._process.pid

    def children(self) -> list[int]:
        """Return the processes that it has started."""
        pid = self._process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def is_open(self) -> bool:
        """Return whether new callers are still let in."""
        try:
            socket.create_connection(("127.0.0.1", self.site.port), DEADLINE_S).close()
        except ConnectionError:
            return False
        return True

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Return the exit code, once it has left."""
        assert self._process.stdout is not None
        try:
            return self._process.wait(DEADLINE_S)
        finally:
            self._close()

    def log(self) -> str:
        return self.errors.read_text()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGTERM)
            self.wait()
        self._close()

    def _close(self) -> None:
        for file in (self._process.stdin, self._process.stdout):
            if file is not None:
                file.close()

"""Where the processor time of a request goes: HTTP, our middleware, the thread hop, the engine.

python -m bench.request_costs [--requests 300]

The same requests are made at four depths, by one client that waits for each answer: calls of
Memory; the same calls on the server's threads; the application without a socket; a real server,
whose processor time the system tells. Each depth less the one before it is the cost of a part. At
each depth the requests of all kinds take turns, so that what is remembered grows alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import worlddb
from bench.http_load import Client, Tally, serve
from bench.percentiles import machine
from bench.serving import server_cpu_s
from worlddb.faces.http.access_tokens import make_access
from worlddb.faces.http.http_app import make_app
from worlddb.faces.http.http_server import warm_up
from worlddb.faces.http.request_limits import Threads, Work

KINDS = ("write", "recall", "list", "read", "mcp recall")
BLOCK = 20  # Requests of one kind in a row: the system tells processor time in steps of 10 ms.
FIRST = 10  # Memories that the user has before anything is measured.
DEPTHS = ("engine", "thread hop", "middleware", "HTTP")
Costs = dict[str, float]


class Caller(Client):
    """A client whose requests are answered without a socket."""

    cpu_s: Callable[[], float] = staticmethod(time.process_time)

    async def connect(self) -> None:
        """There is nothing to open."""

    async def costs(self, requests: int) -> Costs:
        """Return the processor time of a request of each kind in seconds."""
        await self.connect()
        for _ in range(FIRST):
            await self.one("write")
        await self.one("recall")
        spent: dict[str, float] = defaultdict(float)
        for _ in range(0, requests, BLOCK):
            for kind in KINDS:
                started = self.cpu_s()
                for _ in range(BLOCK):
                    status, answer = await self.one(kind)
                    assert status == 200, answer
                spent[kind] += self.cpu_s() - started
        made = -(-requests // BLOCK) * BLOCK
        return {kind: spent[kind] / made for kind in KINDS}


class ProgramCaller(Caller):
    """Calls Memory itself; with `threads`, on those of the server."""

    def __init__(self, memory: worlddb.Memory, threads: Threads | None) -> None:
        super().__init__("", 0, Tally())
        self._memory, self._threads = memory, threads

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Make the call that a request stands for."""
        work: Work
        call: Callable[[], Any]
        if path == "/mcp":
            path, body = "/v1/recall", body["params"]["arguments"]
        if path == "/v1/recall":
            work, call = "search", lambda: self._memory.recall(**body)
        elif method == "POST":
            work, call = "write", lambda: self._memory.write(**body)
        elif "?limit" in path:
            work, call = "read", lambda: self._memory.list(limit=20, user_id=self.user)
        else:
            ident = unquote(path.rpartition("/")[2].partition("?")[0])
            work, call = "read", lambda: self._memory.read(ident, user_id=self.user)
        found = call() if self._threads is None else await self._threads.run(call, work)
        return 200, found.to_dict()


class AppCaller(Caller):
    """Calls the application as an ASGI server does."""

    def __init__(self, app: Any) -> None:
        super().__init__("", 0, Tally())
        self._app = app

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the JSON of one request."""
        data = b"" if body is None else json.dumps(body).encode()
        raw, _, query = path.partition("?")
        headers = [
            (b"host", b"127.0.0.1:80"),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
            (b"content-length", str(len(data)).encode()),
        ]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "state": {},
        }
        got: list[Any] = []
        sent = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> Any:
            if sent:
                return sent.pop()
            return await asyncio.get_running_loop().create_future()  # The client stays.

        async def send(message: Any) -> None:
            got.append(message)

        await asyncio.create_task(self._app(scope, receive, send))
        answer = b"".join(one.get("body", b"") for one in got[1:])
        return got[0]["status"], json.loads(answer)


class SocketCaller(Caller):
    """Asks a real server; counts the processor time of the server alone."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(url, 0, Tally())
        self.cpu_s = lambda: server_cpu_s(pid)

    async def connect(self) -> None:
        """Open the connection."""
        await Client.connect(self)


def without_socket(folder: Path, depth: str, requests: int) -> Costs:
    """Return the costs at one of the first three depths."""
    with worlddb.Memory(folder / f"{depth}.db") as memory:

        async def costs() -> Costs:
            if depth != "middleware":
                threads = Threads(takes_turns=True) if depth == "thread hop" else None
                caller = ProgramCaller(memory, threads)
                return await caller.costs(requests)
            app = make_app(memory, access=make_access(host="127.0.0.1", tokens=()))
            async with app.router.lifespan_context(app):
                return await AppCaller(app).costs(requests)

        warm_up(memory)  # As a server: the garbage collector has a part in the costs.
        return asyncio.run(costs())


def with_socket(folder: Path, requests: int) -> Costs:
    """Return the costs of a real server."""
    process, url = serve(folder / "socket.db")
    try:
        return asyncio.run(SocketCaller(url, process.pid).costs(requests))
    finally:
        process.terminate()
        process.wait(60)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=300, help="of each kind, at each depth")
    args = parser.parse_args(argv)
    print(machine())
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        found = [without_socket(folder, depth, args.requests) for depth in DEPTHS[:3]]
        found.append(with_socket(folder, args.requests))
    print(f"processor time of a request, ms{'all':>12}" + "".join(f"{d:>12}" for d in DEPTHS))
    for kind in KINDS:
        whole = [costs[kind] * 1000 for costs in found]
        parts = [
            whole[0],
            *(after - before for before, after in pairwise(whole)),
        ]
        print(f"  {kind:<28}{whole[-1]:>12.2f}" + "".join(f"{part:>12.2f}" for part in parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())

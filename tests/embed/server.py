"""A real HTTP server on this machine that answers as a test says: well, badly, or never."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from patience import PATIENCE_S


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What to send; `cut` bytes of the body and then the end, if it is given."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    late: bool = False
    """Say nothing until the test is over."""


class Server(ThreadingHTTPServer):
    """Keeps what it saw."""

    daemon_threads = False

    def __init__(self, answer: Callable[[Seen], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.seen: list[Seen] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        seen = Seen(self.path, dict(self.headers.items()), self.rfile.read(length))
        self.server.seen.append(seen)
        answer = self.server.answer(seen)
        if answer.late:
            self.server.over.wait(10 * PATIENCE_S)
            self.close_connection = True
            return
        self.send_response(answer.status)
        headers = {"Content-Length": str(len(answer.body)), **answer.headers}
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut])
        self.close_connection = True

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(answer: Callable[[Seen], Answer]) -> Iterator[Server]:
    """Run a server for the length of a block."""
    server = Server(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def in_turn(*answers: Answer) -> Callable[[Seen], Answer]:
    """Give each answer once, and the last one from then on."""
    left = list(answers)

    def answer(_: Seen) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer

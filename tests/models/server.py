"""A real HTTP server on this machine that speaks both dialects, well or with faults."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from patience import PATIENCE_S
from worlddb.models.chat_client import Chat, ChatSettings

KEY = "sk-very-secret-0123"


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    data: Any

    @property
    def said(self) -> str:
        """The last message."""
        return str(self.data["messages"][-1]["content"])

    @property
    def told(self) -> str:
        """The instructions."""
        if "system" in self.data:
            return str(self.data["system"])
        return str(self.data["messages"][0]["content"])


@dataclass(frozen=True)
class Fault:
    """Something else than an answer."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    """Send so many bytes of the body, and then the end."""
    late: bool = False
    """Say nothing until the test is over."""
    reset: bool = False
    """Throw the connection away."""


@dataclass(frozen=True)
class Cut:
    """An answer that ran into the limit of tokens."""

    text: str


Answer = str | Cut | Fault
Model = Callable[[Seen], Answer]


class Endpoint(ThreadingHTTPServer):
    """Keeps what it saw."""

    daemon_threads = False

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model
        self.seen: list[Seen] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, *_: Any) -> None:
        """A client that has gone away is part of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        data = json.loads(self.rfile.read(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.path, headers, data)
        self.server.seen.append(seen)
        answer = self.server.model(seen)
        self.close_connection = True
        if isinstance(answer, Fault):
            self._fail(answer)
        else:
            self._send(200, {}, _spoken(seen, answer), None)

    def _fail(self, fault: Fault) -> None:
        if fault.late:
            self.server.over.wait(10 * PATIENCE_S)
        elif fault.reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
        else:
            body = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
            self._send(fault.status, fault.headers, body, fault.cut)

    def _send(self, status: int, headers: dict[str, str], body: bytes, cut: int | None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:cut])

    def log_message(self, *_: Any) -> None:
        pass


def _spoken(seen: Seen, answer: str | Cut) -> bytes:
    """Return an answer in the dialect it was asked for."""
    text, is_cut = (answer.text, True) if isinstance(answer, Cut) else (answer, False)
    if seen.path.endswith("/chat/completions"):
        data: Any = {
            "choices": [
                {
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "length" if is_cut else "stop",
                }
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 7},
        }
        return json.dumps(data).encode()
    assert seen.path.endswith("/messages"), seen.path
    block: Any = {"type": "text", "text": text}
    if "tools" in seen.data:
        block = {"type": "tool_use", "name": "answer", "id": "t1", "input": json.loads(text)}
    used = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 7}
    stop = "max_tokens" if is_cut else "end_turn"
    return json.dumps({"content": [block], "stop_reason": stop, "usage": used}).encode()


@contextmanager
def serving(model: Model) -> Iterator[Endpoint]:
    """Run an endpoint for the length of a block."""
    server = Endpoint(model)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def in_turn(*answers: Answer) -> Model:
    """Give each answer once, and the last one from then on."""
    left = list(answers)
    lock = threading.Lock()

    def model(_: Seen) -> Answer:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return model


def chat_at(server: Endpoint, **options: Any) -> Chat:
    """Return a client of the server, quick to try again."""
    usual: dict[str, Any] = {"provider": "openai", "model": "m", "backoff_s": 0.001}
    return Chat(ChatSettings(base_url=server.url, **(usual | {"timeout_s": PATIENCE_S} | options)))

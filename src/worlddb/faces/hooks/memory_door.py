"""The way from a hook to the memory: a running `worlddb serve`, else the store itself.

`serve` leaves its address beside the store (`memory.db-server`), so that a hook need not load the
engine. The client is a socket and a few lines of HTTP: `http.client` takes longer to import than
the server takes to answer.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from worlddb.faces.face_settings import Settings

SERVER_END = "-server"
DEFAULT_USER = "default"  # As Memory has it; its module would load the engine.
ANSWER_BYTES_MAX = 1 << 22  # Ten hits are some kilobytes; more is no answer to a hook.
ROUTES = {"context": "/v1/context", "recall": "/v1/recall", "write": "/v1/memories"}
INVALID, FORBIDDEN, CONFLICT = 400, 403, 409  # As HTTP says it.


class DoorError(Exception):
    """The memory did not answer; `status` is that of HTTP, or 0 if nothing came back."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class MemoryDoor(Protocol):
    """Calls of Memory by name, with plain data in and out."""

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a call."""

    def close(self) -> None:
        """Leave the memory."""


def leave_address(store: str, url: str, *, needs_token: bool) -> None:
    """Write a server's address beside its store, for its owner alone."""
    told = {"url": url, "pid": os.getpid(), "needs_token": needs_token}
    with suppress(OSError):
        handle = os.open(store + SERVER_END, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(handle, json.dumps(told).encode())
        os.close(handle)


def remove_address(store: str) -> None:
    """Remove the address, unless another server has written its own since."""
    with suppress(OSError, ValueError):
        with open(store + SERVER_END, "rb") as file:
            if json.load(file).get("pid") != os.getpid():
                return
        os.unlink(store + SERVER_END)


def server_address(store: str, *, with_token: bool) -> str | None:
    """Return the address of the server that runs on a store; None if none would let us in."""
    try:
        with open(store + SERVER_END, "rb") as file:
            told = json.load(file)
        os.kill(told["pid"], 0)  # Sends nothing: asks whether the process is there.
        return str(told["url"]) if with_token or not told["needs_token"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


class ServerDoor:
    """A running server, one connection per call."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        scheme, _, rest = url.partition("://")
        self._tls = scheme == "https"
        self._host = rest.split("/", 1)[0]
        self._token = token
        self._timeout_s = timeout_s

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a call.

        Raises:
            DoorError: the server does not answer, or refuses.
        """
        try:
            status, answer = self._exchange(ROUTES[name], json.dumps(arguments).encode())
            told = json.loads(answer) if answer else {}
        except (OSError, ValueError) as error:
            raise DoorError(f"{self._host}: {error}") from None
        if status != 200:
            reason = told.get("error", {}).get("message", "") if isinstance(told, dict) else ""
            raise DoorError(f"{self._host}: {status} {reason}", status)
        return told if isinstance(told, dict) else {}

    def close(self) -> None:
        """Nothing is open between calls."""

    def _exchange(self, path: str, body: bytes) -> tuple[int, bytes]:
        # In HTTP/1.0 an answer ends with the connection, so nothing has to be counted.
        head = [f"POST {path} HTTP/1.0", f"Host: {self._host}"]
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if self._token:
            head.append(f"Authorization: Bearer {self._token}")
        with self._connection() as connection:
            connection.sendall("\r\n".join([*head, "", ""]).encode("latin-1") + body)
            answer = b""
            while len(answer) < ANSWER_BYTES_MAX and (more := connection.recv(65_536)):
                answer += more
        first, _, rest = answer.partition(b"\r\n\r\n")
        return int(first.split(b" ", 2)[1]) if first.count(b" ") else 0, rest

    def _connection(self) -> socket.socket:
        name, _, port = self._host.rpartition(":")
        if not port.isdigit():
            name, port = self._host, "443" if self._tls else "80"
        plain = socket.create_connection((name.strip("[]"), int(port)), self._timeout_s)
        if not self._tls:
            return plain
        import ssl

        return ssl.create_default_context().wrap_socket(plain, server_hostname=name.strip("[]"))


class StoreDoor:
    """The store itself, opened by this process. Searches words and names, not vectors.

    The embedder takes a third of a cold start, and a prompt shares words with what it is about.
    """

    def __init__(self, settings: Settings) -> None:
        import gc
        from dataclasses import replace

        gc.disable()  # A hook ends before the collector would find anything worth its time.
        from worlddb.faces.face_settings import open_memory

        plain = replace(settings, embedder="none", extractor="rules")
        self._memory = open_memory(plain, create=True, actor="hook")

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a call.

        Raises:
            DoorError: the store refuses.
        """
        from worlddb.errors import ConflictError, InvalidInputError, RejectedError, WorldDBError

        statuses = {InvalidInputError: INVALID, RejectedError: FORBIDDEN, ConflictError: CONFLICT}
        try:
            answer: dict[str, Any] = getattr(self._memory, name)(**arguments).to_dict()
        except WorldDBError as error:
            raise DoorError(str(error), statuses.get(type(error), 0)) from None
        return answer

    def close(self) -> None:
        """Close the store."""
        self._memory.close()


def door_to(settings: Settings, timeout_s: float) -> MemoryDoor:
    """Return the way to the memory: the server that the settings name, one that runs, the store."""
    url = settings.url or server_address(settings.path, with_token=settings.token is not None)
    return ServerDoor(url, settings.token, timeout_s) if url else StoreDoor(settings)


def call_in(
    door: MemoryDoor, name: str, arguments: Mapping[str, Any], scopes: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Return the answer of a call in the first of several scopes that is open to the caller.

    Raises:
        DoorError: the memory does not answer, or none of the scopes is open.
    """
    for more in scopes[:-1]:
        try:
            return door.call(name, {**arguments, **more})
        except DoorError as error:
            if error.status != FORBIDDEN:
                raise
    return door.call(name, {**arguments, **scopes[-1]})


def scopes_of(settings: Settings, project: str | None) -> list[dict[str, str]]:
    """Return the scopes of a project: its user's, and the project's own as an app.

    Without a user a project would be a scope of its own, and everybody's. A token that is bound to
    a user has its own, so the second choice names none.
    """
    app = {"app_id": project} if project else {}
    return [{"user_id": settings.user_id or DEFAULT_USER, **app}, app]

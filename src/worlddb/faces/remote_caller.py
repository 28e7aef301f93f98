"""Remote caller: sends a declared call to a WorldDB server as one HTTP request.

    RemoteCaller(url).call(call, arguments) ─▶ request ─▶ tries, pauses ─▶ value of the call's class

H1  A request is sent again if it cannot have reached the server, or if a busy server refused it
    (429, 503). After a lost answer, only an idempotent call is sent again.
H2  An error of the server becomes the error that `Memory` would have raised.
H3  The token is sent in a header only, and never follows a redirect.

Uses `http.client` of the standard library. Threads share the open connections.
"""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode, urlsplit

import worlddb
from worlddb import errors
from worlddb.faces.call_parts import Call, Parameter
from worlddb.ingest.draft_builder import plain
from worlddb.model.address import Id
from worlddb.model.records import Message

PAUSE_S_MAX = 30.0  # The longest useful wait; after that the server is gone.
IDLE_MAX = 8  # Idle connections that are kept open.
REASON_CHARS_MAX = 300  # One line; a proxy may send a whole HTML page.

ERROR_BY_TYPE: Mapping[str, type[errors.WorldDBError]] = {
    "invalid_input": errors.InvalidInputError,
    "too_large": errors.InvalidInputError,
    "not_found": errors.NotFoundError,
    "conflict": errors.ConflictError,
    "rejected": errors.RejectedError,
    "unauthorized": errors.RejectedError,
    "format": errors.FormatError,
    "corruption": errors.CorruptionError,
    "storage": errors.StorageError,
}
"""The error of each type in an answer; every other type is a ProviderError."""


class HttpAnswer(NamedTuple):
    """The answer of a server: status, seconds to wait if given, and body."""

    status: int
    retry_after_s: float | None
    body: bytes


class RemoteCaller:
    """Sends declared calls to one server. Safe to share between threads.

    Raises:
        InvalidInputError: the address, the token or a number is wrong.
    """

    def __init__(
        self, url: str, *, token: str | None, timeout_s: float, retries: int, backoff_s: float
    ) -> None:
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except (ValueError, AttributeError):
            known = None
        if not known or parts.username or parts.query or parts.fragment:
            raise errors.InvalidInputError("url: give an address such as http://127.0.0.1:8765")
        if parts.path.rstrip("/").endswith(("/v1", "/mcp")):
            raise errors.InvalidInputError("url: give the server's address, without /v1 or /mcp")
        if token is not None and not (token.isascii() and token.isprintable() and token):
            raise errors.InvalidInputError("token: is empty or has characters that no token has")
        if not timeout_s > 0 or not backoff_s >= 0 or retries < 0:
            raise errors.InvalidInputError(
                "timeout_s, retries and backoff_s: give numbers of 0 or more; timeout_s above 0"
            )
        self.url = url.rstrip("/")
        self._parts = parts
        self._headers = {"Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s, self._retries, self._backoff_s = timeout_s, retries, backoff_s
        self._idle: list[HTTPConnection] = []
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Close the open connections. Calling it twice does nothing."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for connection in idle:
            connection.close()

    def call(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        """Send one call and return its result.

        Raises:
            ProviderError: the server cannot be reached, is busy, or is not a WorldDB server.
            WorldDBError: what the call itself raises on the server.
        """
        if self._closed:
            raise errors.InvalidInputError("this client is closed; make a new one")
        path, body = _request(call, arguments)
        answer = self._try(call, self._parts.path.rstrip("/") + path, body)
        if answer.status != 200:
            raise self._error(answer)
        try:
            return value_of(getattr(worlddb, call.result), json.loads(answer.body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise errors.ProviderError(
                f"{self.url}: the answer to {call.name} is not understood; is the server a WorldDB "
                f"of another version? ({error})"
            ) from None

    def _try(self, call: Call, path: str, body: bytes | None) -> HttpAnswer:
        """Return the answer to a request, with repeated tries where they may help."""
        number = 0
        while True:
            pause_s = min(self._backoff_s * 2**number, PAUSE_S_MAX)
            reused, connection = self._connection()
            sent = False
            try:
                if not reused:
                    connection.connect()
                sent = True
                answer = self._send(connection, call.method, path, body)
            except (OSError, HTTPException) as error:
                connection.close()
                reason = str(error) or type(error).__name__
                again = not sent or call.reads or call.idempotent
                if reused and again:
                    # The server closed an idle connection while the request was on its way.
                    continue
                if not again or number == self._retries:
                    tried = f"; tried {number + 1} times" if number else ""
                    said = "no answer, and the call may have run" if sent else "cannot be reached"
                    raise errors.ProviderError(f"{self.url}: {said}: {reason}{tried}") from None
            else:
                wait_s = answer.retry_after_s or 0.0
                if not _may_pass(call, answer) or number == self._retries or wait_s > PAUSE_S_MAX:
                    return answer
                pause_s = max(pause_s, wait_s)
            time.sleep(pause_s)
            number += 1

    def _send(
        self, connection: HTTPConnection, method: str, path: str, body: bytes | None
    ) -> HttpAnswer:
        more = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, body, self._headers | more)
        response = connection.getresponse()
        data = response.read()
        wait = response.headers.get("Retry-After", "")
        with self._lock:
            keeps = not response.will_close and not self._closed and len(self._idle) < IDLE_MAX
            if keeps:
                self._idle.append(connection)
        if not keeps:
            connection.close()
        return HttpAnswer(response.status, float(wait) if wait.isdecimal() else None, data)

    def _connection(self) -> tuple[bool, HTTPConnection]:
        """Return whether the connection is open already, and the connection."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                found = self._idle.pop()
            # A readable idle connection was closed by the server.
            if found.sock is not None and not select.select([found.sock], [], [], 0)[0]:
                return True, found
            found.close()
        host, port = self._parts.hostname or "", self._parts.port
        make = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return False, make(host, port, timeout=self._timeout_s)

    def _error(self, answer: HttpAnswer) -> errors.WorldDBError:
        try:
            told = json.loads(answer.body)["error"]
            kind, message = str(told["type"]), str(told["message"])
        except (ValueError, KeyError, TypeError):
            text = " ".join(answer.body.decode(errors="replace").split())[:REASON_CHARS_MAX]
            kind, message = "", f"{self.url}: HTTP {answer.status}: {text}"
        if kind == "unauthorized":
            message = f"{self.url}: {message}"
        return ERROR_BY_TYPE.get(kind, errors.ProviderError)(message)


def _may_pass(call: Call, answer: HttpAnswer) -> bool:
    """Return whether the server refused a request only temporarily."""
    if answer.status == 429:
        return True
    # A busy server refuses before it begins; a full disk may fail in the middle.
    busy = answer.status == 503 and b'"storage"' not in answer.body
    return busy or (answer.status == 503 and (call.reads or call.idempotent))


def _request(call: Call, arguments: Mapping[str, Any]) -> tuple[str, bytes | None]:
    """Return the path and the body of the request for a call."""
    told = {
        name: _json(call.parameter(name), value)
        for name, value in arguments.items()
        if value is not None
    }
    places = {name: quote(str(told.pop(name)), safe="") for name in call.path_parameters()}
    path = call.path.format(**places)
    if call.method == "POST":
        return path, json.dumps(told, ensure_ascii=False).encode()
    # Texts and lists of texts are sent as they are; other values as JSON.
    query = {n: v if isinstance(v, str | list) else json.dumps(v) for n, v in told.items()}
    return (f"{path}?{urlencode(query, doseq=True)}" if query else path), None


def _json(parameter: Parameter, value: Any) -> Any:
    if parameter.type == "names" and isinstance(value, str):
        return [value]
    if parameter.type in ("input", "messages") and not isinstance(value, str):
        value = [value] if isinstance(value, Message | Mapping) else value
        return [_message(one) for one in value]
    if parameter.type == "document":  # A file is read here, not on the server.
        from worlddb.ingest.document_text import document_of

        return document_of(value).as_given()
    return _plain(value)


def _message(given: Any) -> Any:
    if not isinstance(given, Message):
        return _plain(given)
    told = {"role": given.speaker, "content": given.text}
    return told if given.at is None else told | {"at": given.at.isoformat()}


def _plain(value: Any) -> Any:
    """Return an argument as JSON data."""
    value = plain(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value


def value_of(kind: Any, data: Any) -> Any:
    """Return the value of a class, or of a type hint, whose `to_dict` gave `data`."""
    return _reader_of(kind)(data)


@cache
def _reader_of(hint: Any) -> Callable[[Any], Any]:
    if hint is Id:
        return Id
    if hint is datetime:
        return datetime.fromisoformat
    if isinstance(hint, type) and is_dataclass(hint):
        return _class_reader(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        one = _reader_of(inner[0])
        return lambda data: tuple(map(one, data))
    if origin is Mapping:
        held = _reader_of(inner[1])
        return lambda data: {key: held(value) for key, value in data.items()}
    if origin in (Union, UnionType):
        others = [_reader_of(part) for part in inner if part is not NoneType]
        if len(others) == 1:
            return lambda data: None if data is None else others[0](data)
    return lambda data: data


def _class_reader(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    # An answer may omit fields that are None or have a default.
    optional = {name for name, hint in hints.items() if NoneType in get_args(hint)}
    needed = {
        one.name
        for one in fields(kind)
        if one.default is MISSING and one.default_factory is MISSING
    }

    def read(data: Mapping[str, Any]) -> Any:
        absent = dict.fromkeys(needed & optional - set(data))
        if missing := sorted(needed - optional - set(data)):
            raise KeyError(missing[0])
        return kind(
            **absent,
            **{one: _reader_of(hint)(data[one]) for one, hint in hints.items() if one in data},
        )

    return read

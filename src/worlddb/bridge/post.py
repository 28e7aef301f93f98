"""Post: JSON to a server and back, patiently. What the embedding and chat endpoints share.

    Post(server, headers).send("/embeddings", body) ──▶ the bytes of a good answer

What passes with time (busy, overloaded, a lost connection) is tried again with growing pauses, as
the server asks; the pauses are the same in every run. What does not pass (a wrong key, a wrong
model) is told at once. The key goes into headers and nowhere else: not into errors, and not after
a redirect.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from worlddb import __version__
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.inputs import check_whole

ANSWER_BYTES_MAX = 1 << 28
CHUNK_BYTES = 1 << 16
PAUSE_S_MAX = 60.0
"""A server that wants a longer pause than this is not waited for."""
PASSING = {408, 425, 429, 500, 502, 503, 504, 529}
REASON_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where to send, under which name to complain, and how patient to be."""

    base_url: str
    name: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    retries: int = 4
    backoff_s: float = 0.5


class RefusedError(ProviderError):
    """The server answered that it will not; `status` says how, `reason` what it said itself."""

    def __init__(self, message: str, *, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class UnavailableError(ProviderError):
    """The server was busy, broken or silent at every try."""


def check_server(
    base_url: str,
    model: str,
    api_key: str | None,
    *,
    timeout_s: float,
    retries: int,
    backoff_s: float,
    retries_name: str = "retries",
) -> None:
    """Refuse what cannot work before the first request.

    Raises:
        InvalidInputError: one of the values is wrong.
    """
    try:
        parts = urlsplit(base_url)
        is_url = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (ValueError, AttributeError):
        is_url = False
    if not is_url:
        raise InvalidInputError("base_url: give one like http://localhost:11434/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInputError(
            "base_url: leave out user, password, query and fragment; a key goes in api_key"
        )
    if not isinstance(model, str) or not model.strip():
        raise InvalidInputError("model: give the name under which the server knows it")
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key):
        raise InvalidInputError("api_key: is empty or has characters that no key has")
    check_whole(retries, retries_name, 0)
    if not timeout_s > 0 or not backoff_s >= 0:
        raise InvalidInputError("timeout_s and backoff_s: give positive numbers of seconds")


class Post:
    """One server, asked as often as it takes."""

    def __init__(self, server: Server, headers: Mapping[str, str]) -> None:
        self._server = server
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"worlddb/{__version__}",
            **headers,
        }
        self._opener = _opener(server.base_url)

    def send(self, path: str, body: bytes, *, tries: int | None = None) -> bytes:
        """Return the body of a good answer, trying again while trying again may help.

        `tries` is how often at most, if not as often as the server's settings say.

        Raises:
            RefusedError: the server said no, and asking again will not change that.
            UnavailableError: it was busy, broken or silent at every try.
        """
        tries = tries or self._server.retries + 1
        for number in range(tries):
            pause_s = min(self._server.backoff_s * 2**number, PAUSE_S_MAX)
            try:
                return self._send_once(path, body)
            except HTTPError as error:
                with error:
                    said = _reason(error)
                    asked_s = _retry_after(error.headers.get("Retry-After"))
                reason = f"HTTP {error.code}: {said}"
                if error.code not in PASSING or (asked_s or 0) > PAUSE_S_MAX:
                    raise RefusedError(
                        self._message(reason), status=error.code, reason=self._masked(said)
                    ) from None
                pause_s = pause_s if asked_s is None else asked_s
            except (URLError, OSError, http.client.HTTPException, UnicodeError) as error:
                cause = error.reason if isinstance(error, URLError) else error
                reason = f"no answer: {str(cause) or type(cause).__name__}"
            if number + 1 < tries:
                time.sleep(pause_s)
        often = "once" if tries == 1 else f"{tries} times"
        raise UnavailableError(self._message(f"{reason} (tried {often})"))

    def failure(self, reason: str) -> ProviderError:
        """Return the error that says `reason` of this server."""
        return ProviderError(self._message(reason))

    def _send_once(self, path: str, body: bytes) -> bytes:
        request = Request(f"{self._server.base_url.rstrip('/')}{path}", body, self._headers)
        ends = time.monotonic() + self._server.timeout_s
        with self._opener.open(request, timeout=self._server.timeout_s) as answer:
            return _read(answer, ends)

    def _message(self, reason: str) -> str:
        return f"{self._server.name}: {self._masked(reason)}"

    def _masked(self, text: str) -> str:
        # A server may quote the key it was given.
        return text.replace(self._server.api_key, "***") if self._server.api_key else text


def _read(answer: http.client.HTTPResponse, ends: float) -> bytes:
    """Return the whole body.

    Raises:
        OSError, HTTPException: it is not whole at `ends`, breaks off, or has no end.
    """
    promised = answer.headers.get("Content-Length")
    left = int(promised) if promised and promised.isdigit() else ANSWER_BYTES_MAX
    body = bytearray()
    # `read` would wait for as long as single bytes trickle in.
    while len(body) < left and (chunk := answer.read1(CHUNK_BYTES)):
        body += chunk
        if time.monotonic() > ends:
            raise TimeoutError("timed out")
        if len(body) > ANSWER_BYTES_MAX:
            raise OSError(f"the answer is longer than {ANSWER_BYTES_MAX:,} bytes")
    if promised and len(body) < left:
        raise http.client.IncompleteRead(bytes(body[:0]), left - len(body))
    return bytes(body)


def _reason(error: HTTPError) -> str:
    """Return what the server says is wrong, as short as it can be had."""
    try:
        text = error.read(CHUNK_BYTES).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return str(error.reason)
    if location := error.headers.get("Location"):
        return f"sent elsewhere; give that as base_url: {location}"
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        text = told_error(json.loads(text)["error"])
    return " ".join(str(text).split())[:REASON_CHARS_MAX] or str(error.reason)


def told_error(said: Any) -> str:
    """Return the words of an `error` in an answer.

    Raises:
        KeyError: it is an object without a message.
    """
    return str(said["message"] if isinstance(said, dict) else said)


def _retry_after(value: str | None) -> float | None:
    """Return the pause that a server asks for, in seconds or until a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would take the texts, and the key, to another server."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none; the answer itself becomes the error."""


def _opener(base_url: str) -> OpenerDirector:
    host = urlsplit(base_url).hostname or ""
    try:
        is_here = ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    # No proxy leads to this machine itself.
    return build_opener(_NoRedirect, *([ProxyHandler({})] if is_here else []))

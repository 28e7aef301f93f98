"""An HTTP client for JSON, for embedding, chat and other endpoints, and its circuit breaker.

    JsonClient(server, headers).send("/embeddings", body) ──▶ the bytes of a successful response

J1  Errors that may pass (busy, overloaded, connection lost) are retried with growing pauses, or
    with the pause that the server asks for. Pauses have no random part: runs are repeatable.
J2  Errors that will not pass (wrong key, unknown model) are raised at once.
J3  The key is sent in a header only. It is masked in errors and never follows a redirect.

The client is built on `urllib`, which every Python has: a model takes seconds per request, so the
pooled connections and async of a third-party client gain nothing here. What `urllib` lacks is in
this file: retries, a deadline for the whole response, no redirects, no proxy for this machine.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from worlddb import __version__
from worlddb.errors import InvalidInputError, ProviderError

RESPONSE_BYTES_MAX = 1 << 28  # A server that never stops sending must not fill the memory.
READ_BYTES = 1 << 16  # Small enough that the deadline is checked often.
PAUSE_S_MAX = 60.0  # A caller waits for a minute, not for a quota that resets tomorrow.
STATUSES_RETRIED = {408, 425, 429, 500, 502, 503, 504, 529}  # 529: Anthropic's "overloaded".
REASON_CHARS_MAX = 300  # An error message is a line, not the HTML page that a proxy sends.

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # A library logs nothing unless the program configures it.


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonServer:
    """A server: its address, its name in error messages, and how long to keep trying.

    Raises:
        InvalidInputError: one of the values is wrong.
    """

    base_url: str
    name: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    retries: int = 4
    backoff_s: float = 0.5
    answer_bytes_max: int = RESPONSE_BYTES_MAX

    def __post_init__(self) -> None:
        """Check the values before the first request."""
        try:
            parts = urlsplit(self.base_url)
            is_url = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except (ValueError, AttributeError):
            is_url = False
        if not is_url:
            raise InvalidInputError("base_url: give an address like http://localhost:11434/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidInputError(
                "base_url: leave out user, password, query and fragment; a key goes in api_key"
            )
        key = self.api_key
        if key is not None and not (key.isascii() and key.isprintable() and key):
            raise InvalidInputError("api_key: is empty or has characters that no key has")
        if not self.timeout_s > 0 or not self.backoff_s >= 0:
            raise InvalidInputError("timeout_s and backoff_s: give positive numbers of seconds")


def check_model(model: str) -> None:
    """Refuse the name of a model that is empty or not text."""
    if not isinstance(model, str) or not model.strip():
        raise InvalidInputError("model: give the name under which the server knows it")


class EndpointRefusedError(ProviderError):
    """The server refused the request: its HTTP `status`, and the `reason` in its own words."""

    def __init__(self, message: str, *, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class EndpointUnavailableError(ProviderError):
    """The server was busy, failing or unreachable at every attempt."""


class JsonClient:
    """Posts JSON to one server, or gets it. Safe to share between threads."""

    def __init__(self, server: JsonServer, headers: Mapping[str, str]) -> None:
        self._server = server
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"worlddb/{__version__}",
            **headers,
        }
        self._opener = _opener(server.base_url)

    def send(self, path: str, body: bytes | None, *, tries: int | None = None) -> bytes:
        """Return the body of a successful response, with retries after temporary errors.

        Without a body it is a GET. `tries` is the maximum number of attempts; the default is in the
        server's settings.
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
                if error.code not in STATUSES_RETRIED or (asked_s or 0) > PAUSE_S_MAX:
                    raise EndpointRefusedError(
                        self._message(reason), status=error.code, reason=self._masked(said)
                    ) from None
                pause_s = pause_s if asked_s is None else asked_s
            except (URLError, OSError, http.client.HTTPException, UnicodeError) as error:
                cause = error.reason if isinstance(error, URLError) else error
                reason = f"no answer: {str(cause) or type(cause).__name__}"
            if number + 1 < tries:
                time.sleep(pause_s)
        often = "once" if tries == 1 else f"{tries} times"
        raise EndpointUnavailableError(self._message(f"{reason} (tried {often})"))

    def failure(self, reason: str) -> ProviderError:
        """Return an error about this server, with its name before the reason."""
        return ProviderError(self._message(reason))

    def _send_once(self, path: str, body: bytes | None) -> bytes:
        request = Request(f"{self._server.base_url.rstrip('/')}{path}", body, self._headers)
        ends = time.monotonic() + self._server.timeout_s
        with self._opener.open(request, timeout=self._server.timeout_s) as answer:
            return _read(answer, ends, self._server.answer_bytes_max)

    def _message(self, reason: str) -> str:
        return f"{self._server.name}: {self._masked(reason)}"

    def _masked(self, text: str) -> str:
        # A server may quote the key it was given.
        return text.replace(self._server.api_key, "***") if self._server.api_key else text


def _read(answer: http.client.HTTPResponse, ends: float, most: int) -> bytes:
    """Return the whole body of a response."""
    promised = answer.headers.get("Content-Length")
    left = int(promised) if promised and promised.isdigit() else most + 1
    body = bytearray()
    # `read` would wait past the deadline for a server that sends byte by byte.
    while len(body) < left and (chunk := answer.read1(READ_BYTES)):
        body += chunk
        if time.monotonic() > ends:
            raise TimeoutError("timed out")
        if len(body) > most:
            raise OSError(f"the response is longer than {most:,} bytes")
    if promised and len(body) < left:
        raise http.client.IncompleteRead(bytes(body[:0]), left - len(body))
    return bytes(body)


def _reason(error: HTTPError) -> str:
    """Return the reason that the server gives, on one line."""
    try:
        text = error.read(READ_BYTES).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return str(error.reason)
    if location := error.headers.get("Location"):
        return f"redirects; give this address as base_url: {location}"
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        text = error_message(json.loads(text)["error"])
    return " ".join(str(text).split())[:REASON_CHARS_MAX] or str(error.reason)


def error_message(error: Any) -> str:
    """Return the message in the `error` member of a response; a KeyError if it has none."""
    return str(error["message"] if isinstance(error, dict) else error)


def _retry_after(value: str | None) -> float | None:
    """Return the seconds to wait that a `Retry-After` header asks for, as a number or a date."""
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
    """Refuses redirects: they would carry the texts and the key to another server."""

    def redirect_request(self, *_: Any) -> None:
        """Return no new request, so that the response is raised as an error."""


def _opener(base_url: str) -> OpenerDirector:
    host = urlsplit(base_url).hostname or ""
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    # A proxy cannot reach a server on this machine.
    return build_opener(_NoRedirect, *([ProxyHandler({})] if is_local else []))


class CircuitBreaker:
    """Stops requests to an endpoint that has failed at every attempt. Safe to share.

        failed() ──▶ open: `reason()` says why ──rest_s──▶ one caller probes ──▶ answered()

    While the circuit is open, callers that can wait do not ask: the text of a write stays in the
    extraction queue. After `rest_s` seconds one of them is let through as a probe, with a single
    attempt. Callers that cannot wait may ask at any time.
    """

    def __init__(
        self, name: str, rest_s: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._rest_s = rest_s
        self._clock = clock
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._probe_at = 0.0
        self._probe_thread: int | None = None

    @property
    def is_probe(self) -> bool:
        """Whether this thread is the one that probes the endpoint."""
        return self._probe_thread == threading.get_ident()

    def failed(self, reason: str) -> None:
        """Open the circuit. Logs a warning when the endpoint had worked before."""
        if not self._rest_s:
            return
        with self._lock:
            was_open, self._reason = self._reason is not None, reason
            self._probe_at = self._clock() + self._rest_s
            self._probe_thread = None
        if not was_open:
            log.warning(
                "%s does not answer: writes go on without it, and it is tried every %g s; "
                "'worlddb extract --pending' finishes what waits",
                self._name,
                self._rest_s,
            )

    def answered(self) -> None:
        """Close the circuit: the endpoint works."""
        with self._lock:
            was_open, self._reason = self._reason is not None, None
            self._probe_thread = None
        if was_open:
            log.warning("%s answers again", self._name)

    def reason(self) -> str | None:
        """Return why not to ask now; None if the circuit is closed or the caller is the probe."""
        with self._lock:
            if self._reason is None:
                return None
            now = self._clock()
            if now < self._probe_at:
                return f"not asked, because it failed shortly before: {self._reason}"
            self._probe_at = now + self._rest_s
            self._probe_thread = threading.get_ident()
            return None

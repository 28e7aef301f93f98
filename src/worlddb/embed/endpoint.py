"""Embeddings over HTTP: any server that speaks OpenAI's `/embeddings`, local or hosted.

    POST base_url/embeddings {"model", "input": [texts]} ──▶ {"data": [{"index", "embedding"}]}

What passes with time (busy, overloaded, a lost connection) is tried again with growing pauses, as
the server asks. What does not (a wrong key, a wrong model) is told at once. The key goes into one
header and nowhere else: not into errors, and not after a redirect.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

import numpy as np

from worlddb import __version__
from worlddb.embed.protocol import Vectors, unit
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.limits import check_whole

ANSWER_BYTES_MAX = 1 << 28
CHUNK_BYTES = 1 << 16
PAUSE_S_MAX = 60.0
"""A server that wants a longer pause than this is not waited for."""
PASSING = {408, 425, 429, 500, 502, 503, 504}
REASON_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Which server and model, and how patient to be.

    `dimensions` asks the model for shorter vectors, where it can. The prefixes stand before each
    text, for models that were trained to tell questions from documents by them.
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    timeout_s: float = 60.0
    retries: int = 4
    backoff_s: float = 0.5
    batch_size: int = 32

    def __post_init__(self) -> None:
        """Refuse what cannot work before the first request.

        Raises:
            InvalidInputError: one of the values is wrong.
        """
        try:
            parts = urlsplit(self.base_url)
            is_url = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url:
            raise InvalidInputError("base_url: give one like http://localhost:11434/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidInputError(
                "base_url: leave out user, password, query and fragment; a key goes in api_key"
            )
        if not self.model.strip():
            raise InvalidInputError("model: give the name under which the server knows it")
        if self.api_key is not None and not (
            self.api_key.isascii() and self.api_key.isprintable() and self.api_key
        ):
            raise InvalidInputError("api_key: is empty or has characters that no key has")
        if self.dimensions is not None:
            check_whole(self.dimensions, "dimensions", 1)
        check_whole(self.retries, "retries", 0)
        check_whole(self.batch_size, "batch_size", 1)
        if not self.timeout_s > 0 or not self.backoff_s >= 0:
            raise InvalidInputError("timeout_s and backoff_s: give positive numbers of seconds")

    @property
    def model_id(self) -> str:
        """The server, the model, and how it is asked: enough to make the same embedder again."""
        asked: dict[str, str] = {}
        if self.dimensions is not None:
            asked["dimensions"] = str(self.dimensions)
        if self.query_prefix:
            asked["query_prefix"] = self.query_prefix
        if self.document_prefix:
            asked["document_prefix"] = self.document_prefix
        more = f"?{urlencode(asked)}" if asked else ""
        return f"{self.base_url.rstrip('/')}#{self.model}{more}"


class EndpointEmbedder:
    """A model behind an endpoint. Connects at the first text; `dim` is learned from an answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._dim = endpoint.dimensions
        self._opener = _opener(endpoint.base_url)
        self.model_id = endpoint.model_id
        self.batch_size = endpoint.batch_size

    @property
    def dim(self) -> int:
        """As asked for, or as the server answers; asks it if nothing was embedded yet.

        Raises:
            ProviderError: the server cannot be asked.
        """
        if self._dim is None:
            self._embed(["dimension"])
        assert self._dim is not None
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per question.

        Raises:
            ProviderError: the server failed, or answered with something else.
        """
        return self._embed([self._endpoint.query_prefix + text for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text.

        Raises:
            ProviderError: the server failed, or answered with something else.
        """
        return self._embed([self._endpoint.document_prefix + text for text in texts])

    def _embed(self, texts: list[str]) -> Vectors:
        body: dict[str, Any] = {"model": self._endpoint.model, "input": texts}
        if self._endpoint.dimensions is not None:
            body["dimensions"] = self._endpoint.dimensions
        vectors = self._vectors(self._post(json.dumps(body).encode()), len(texts))
        if self._dim is None:
            self._dim = vectors.shape[1]
        if vectors.shape[1] != self._dim:
            raise self._failure(
                f"answered with vectors of {vectors.shape[1]} numbers, expected {self._dim}"
            )
        return unit(vectors)

    def _vectors(self, answer: bytes, count: int) -> Vectors:
        """Return the vectors in an answer, in the order of the texts."""
        try:
            rows = json.loads(answer)["data"]
            if all("index" in row for row in rows):
                rows = sorted(rows, key=lambda row: row["index"])
                places = [row["index"] for row in rows]
            else:
                places = list(range(len(rows)))
            vectors: Vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise self._failure(
                f"its answer is no list of embeddings ({type(error).__name__}: {error}): "
                f"{answer[:REASON_CHARS_MAX].decode(errors='replace')}"
            ) from None
        if len(places) != count:
            raise self._failure(f"answered with {len(places)} embeddings for {count} texts")
        if places != list(range(count)):
            raise self._failure(f"numbers its embeddings {places} instead of 0 to {count - 1}")
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise self._failure("its embeddings are not lists of numbers")
        return vectors

    def _post(self, body: bytes) -> bytes:
        """Return the body of a good answer, trying again while trying again may help."""
        tries = self._endpoint.retries + 1
        for number in range(tries):
            pause_s = min(self._endpoint.backoff_s * 2**number, PAUSE_S_MAX)
            try:
                return self._post_once(body)
            except HTTPError as error:
                with error:
                    reason = f"HTTP {error.code}: {_reason(error)}"
                    asked_s = _retry_after(error.headers.get("Retry-After"))
                if error.code not in PASSING or (asked_s or 0) > PAUSE_S_MAX:
                    raise self._failure(reason) from None
                pause_s = pause_s if asked_s is None else asked_s
            except (URLError, OSError, http.client.HTTPException, UnicodeError) as error:
                cause = error.reason if isinstance(error, URLError) else error
                reason = f"no answer: {str(cause) or type(cause).__name__}"
            if number + 1 < tries:
                time.sleep(pause_s)
        raise self._failure(f"{reason} (tried {tries} times)")

    def _post_once(self, body: bytes) -> bytes:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"worlddb/{__version__}",
        }
        if self._endpoint.api_key:
            headers["Authorization"] = f"Bearer {self._endpoint.api_key}"
        request = Request(f"{self._endpoint.base_url.rstrip('/')}/embeddings", body, headers)
        ends = time.monotonic() + self._endpoint.timeout_s
        with self._opener.open(request, timeout=self._endpoint.timeout_s) as answer:
            return _read(answer, ends)

    def _failure(self, reason: str) -> ProviderError:
        # A server may quote the key it was given.
        if self._endpoint.api_key:
            reason = reason.replace(self._endpoint.api_key, "***")
        return ProviderError(f"{self.model_id}: {reason}")


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
    try:
        said = json.loads(text)["error"]
        text = said["message"] if isinstance(said, dict) else str(said)
    except (ValueError, TypeError, KeyError):
        pass
    return " ".join(str(text).split())[:REASON_CHARS_MAX] or str(error.reason)


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

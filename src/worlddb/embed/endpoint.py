"""Embeddings over HTTP: any server that speaks OpenAI's `/embeddings`, local or hosted.

    POST base_url/embeddings {"model", "input": [texts]} ──▶ {"data": [{"index", "embedding"}]}

How it is asked, how often and how patiently, is in `worlddb.bridge.post`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np

from worlddb.bridge.post import REASON_CHARS_MAX, Post, Server, check_server
from worlddb.embed.protocol import Vectors, unit
from worlddb.model.inputs import check_whole


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
        check_server(
            self.base_url,
            self.model,
            self.api_key,
            timeout_s=self.timeout_s,
            retries=self.retries,
            backoff_s=self.backoff_s,
        )
        if self.dimensions is not None:
            check_whole(self.dimensions, "dimensions", 1)
        check_whole(self.batch_size, "batch_size", 1)

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
        self.model_id = endpoint.model_id
        server = Server(
            base_url=endpoint.base_url,
            name=endpoint.model_id,
            api_key=endpoint.api_key,
            timeout_s=endpoint.timeout_s,
            retries=endpoint.retries,
            backoff_s=endpoint.backoff_s,
        )
        key = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        self._post = Post(server, key)
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
        vectors = self._vectors(
            self._post.send("/embeddings", json.dumps(body).encode()), len(texts)
        )
        if self._dim is None:
            self._dim = vectors.shape[1]
        if vectors.shape[1] != self._dim:
            raise self._post.failure(
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
            raise self._post.failure(
                f"its answer is no list of embeddings ({type(error).__name__}: {error}): "
                f"{answer[:REASON_CHARS_MAX].decode(errors='replace')}"
            ) from None
        if len(places) != count:
            raise self._post.failure(f"answered with {len(places)} embeddings for {count} texts")
        if places != list(range(count)):
            raise self._post.failure(f"numbers its embeddings {places} instead of 0 to {count - 1}")
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise self._post.failure("its embeddings are not lists of numbers")
        return vectors

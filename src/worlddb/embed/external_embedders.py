"""External embedders: models behind HTTP endpoints, and models that other libraries load.

    POST base_url/embeddings {"model", "input": [texts]} ──▶ {"data": [{"index", "embedding"}]}

Requests, retries and errors are in `worlddb.embed.json_client`.

`sentence_transformers` and `fastembed` are large, optional libraries. They are imported by the
first text, which may also download the model; the model's name is not checked before.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from worlddb.embed.embedder import BATCH_SIZE, Vectors, unit
from worlddb.embed.json_client import REASON_CHARS_MAX, JsonClient, JsonServer, check_model
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.inputs import check_integer


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingEndpoint:
    """The address of an embedding endpoint: server, model, and retry settings.

    `dimensions` asks for shorter vectors, if the model can shorten them. The prefixes are put
    before each text, for models that distinguish questions and documents by a prefix.
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
        """Check the values before the first request."""
        check_model(self.model)
        check_integer(self.retries, "retries", 0)
        _ = self.server
        if self.dimensions is not None:
            check_integer(self.dimensions, "dimensions", 1)
        check_integer(self.batch_size, "batch_size", 1)

    @property
    def server(self) -> JsonServer:
        """The server as the HTTP client needs it."""
        return JsonServer(
            base_url=self.base_url,
            name=self.model_id,
            api_key=self.api_key,
            timeout_s=self.timeout_s,
            retries=self.retries,
            backoff_s=self.backoff_s,
        )

    @property
    def model_id(self) -> str:
        """The server, the model and its options: enough to make the same embedder again."""
        asked: dict[str, str] = {}
        if self.dimensions is not None:
            asked["dimensions"] = str(self.dimensions)
        if self.query_prefix:
            asked["query_prefix"] = self.query_prefix
        if self.document_prefix:
            asked["document_prefix"] = self.document_prefix
        more = f"?{urlencode(asked)}" if asked else ""
        return f"{str(self.base_url).rstrip('/')}#{self.model}{more}"


class EndpointEmbedder:
    """A model behind an endpoint. Connects at the first text."""

    def __init__(self, endpoint: EmbeddingEndpoint) -> None:
        self._endpoint = endpoint
        self._dim = endpoint.dimensions
        self.model_id = endpoint.model_id
        key = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        self._client = JsonClient(endpoint.server, key)
        self.batch_size = endpoint.batch_size

    @property
    def dim(self) -> int:
        """The requested dimension, or that of the first response; sends a request if needed."""
        if self._dim is None:
            self._embed(["dimension"])
        assert self._dim is not None
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self._endpoint.query_prefix + text for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self._endpoint.document_prefix + text for text in texts])

    def _embed(self, texts: list[str]) -> Vectors:
        body: dict[str, Any] = {"model": self._endpoint.model, "input": texts}
        if self._endpoint.dimensions is not None:
            body["dimensions"] = self._endpoint.dimensions
        vectors = self._vectors(
            self._client.send("/embeddings", json.dumps(body).encode()), len(texts)
        )
        if self._dim is None:
            self._dim = vectors.shape[1]
        if vectors.shape[1] != self._dim:
            raise self._client.failure(
                f"returned vectors of {vectors.shape[1]} numbers, expected {self._dim}"
            )
        return unit(vectors)

    def _vectors(self, response: bytes, count: int) -> Vectors:
        """Return the vectors in a response, in the order of the texts."""
        try:
            rows = json.loads(response)["data"]
            if all("index" in row for row in rows):
                rows = sorted(rows, key=lambda row: row["index"])
                places = [row["index"] for row in rows]
            else:
                places = list(range(len(rows)))
            vectors: Vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise self._client.failure(
                f"its response is not a list of embeddings ({type(error).__name__}: {error}): "
                f"{response[:REASON_CHARS_MAX].decode(errors='replace')}"
            ) from None
        if len(places) != count:
            raise self._client.failure(f"returned {len(places)} embeddings for {count} texts")
        if places != list(range(count)):
            raise self._client.failure(f"numbers its embeddings {places}, not 0 to {count - 1}")
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise self._client.failure("its embeddings are not lists of numbers")
        return vectors


class _Calls(NamedTuple):
    """The two functions of a loaded model."""

    queries: Callable[[list[str]], Any]
    documents: Callable[[list[str]], Any]


class LibraryEmbedder:
    """A model that another library runs; made by the two functions below."""

    batch_size = BATCH_SIZE

    def __init__(self, library: str, name: str, load: Callable[[], _Calls]) -> None:
        if not name.strip():
            raise InvalidInputError(f"{library}: give the name of a model after the colon")
        self.model_id = f"{library}:{name}"
        self._library = library
        self._load = load
        self._calls: _Calls | None = None
        self._loading = threading.Lock()
        self._dim: int | None = None

    @property
    def dim(self) -> int:
        """The dimension of the first vector; loads the model if needed."""
        if self._dim is None:
            self.embed_documents(["dimension"])
        assert self._dim is not None
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._array(self._ready().queries(list(texts)))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._array(self._ready().documents(list(texts)))

    def _ready(self) -> _Calls:
        with self._loading:
            if self._calls is not None:
                return self._calls
            try:
                self._calls = self._load()
            except ImportError as error:
                raise ProviderError(
                    f"{self.model_id}: needs {self._library} ({error}); "
                    f'run: pip install "worlddb[{self._library}]"'
                ) from None
            except Exception as error:
                # The libraries pass on the errors of their models, hubs and runtimes.
                raise ProviderError(
                    f"{self.model_id}: cannot be loaded: {type(error).__name__}: {error}"
                ) from error
            return self._calls

    def _array(self, answer: Any) -> Vectors:
        vectors: Vectors = np.asarray(answer, dtype=np.float32)
        if vectors.ndim != 2:
            raise ProviderError(
                f"{self.model_id}: answered with an array of shape {vectors.shape}, not of rows"
            )
        self._dim = vectors.shape[1]
        return unit(vectors)


def sentence_transformers(
    name: str, *, settings: Mapping[str, Any] | None = None
) -> LibraryEmbedder:
    """Return a model of sentence-transformers, by its name on the hub or its folder.

    `settings` go to `SentenceTransformer(...)`: `device`, `cache_folder`, `local_files_only`.
    Prompts for queries and documents are used where the model has them.
    """

    def load() -> _Calls:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(name, **(settings or {}))
        return _Calls(
            lambda texts: model.encode_query(texts, show_progress_bar=False),
            lambda texts: model.encode_document(texts, show_progress_bar=False),
        )

    return LibraryEmbedder("sentence-transformers", name, load)


def fastembed(name: str, *, settings: Mapping[str, Any] | None = None) -> LibraryEmbedder:
    """Return a model that fastembed supports, by its name there.

    `settings` go to `TextEmbedding(...)`: `cache_dir`, `threads`, `specific_model_path`.
    """

    def load() -> _Calls:
        from fastembed import TextEmbedding

        model = TextEmbedding(name, **(settings or {}))
        return _Calls(
            lambda texts: np.array(list(model.query_embed(texts))),
            lambda texts: np.array(list(model.passage_embed(texts))),
        )

    return LibraryEmbedder("fastembed", name, load)

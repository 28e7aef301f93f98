"""Models of other libraries: any that `sentence-transformers` or `fastembed` can load.

The libraries are large and optional. They are imported at the first text, and may download the
model then; until then the name is not checked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from worlddb.embed.embedder import BATCH_SIZE, Vectors, unit
from worlddb.errors import InvalidInputError, ProviderError


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
        """Return one unit vector per question."""
        return self._array(self._ready().queries(list(texts)))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text."""
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

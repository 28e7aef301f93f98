"""WordLlama: the embedder that works at once. 256 numbers, in the `wordllama` wheel, no download.

A static model: one vector per token, and a text is the mean of its tokens. The package is not
imported. Its import costs more than the whole model, sets up logging for the process, and its own
loader looks for the tokenizer in a folder where it is not and then tries to download it. The two
data files in its folder are all there is to the model.

    text ──tokenizer──▶ token ids ──rows of the table, summed──▶ unit vector

W1  Nothing here opens a connection.
W2  The vector of a text depends on the text alone, not on its batch.
W3  Vectors named `wordllama-256` come from the very files pinned below.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from worlddb.embed.protocol import BATCH_SIZE, Vectors, unit
from worlddb.errors import ProviderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL_ID = "wordllama-256"
DIM = 256
SIZE = 18_226_892
LICENCE = "MIT"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TENSOR = "embedding.weight"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
PINNED = {
    WEIGHTS: "b339f9710085af8eb72d393b6a3625983bca9a23ce19194ce1298eae2a4c021b",
    TOKENIZER: "3642b1549c23f1ce58322e77edadadb5b02e299ec286b1cbf57568451b19f89a",
}
"""File in the package → its blake3: other weights are another model."""
REMEDY = 'run: pip install --force-reinstall "wordllama==0.4.0.post1"'
TOKENS_AT_ONCE = 4_096
"""A very long text is summed in parts of this size, to keep the memory it takes small."""

_loading = threading.Lock()
_loaded: _Model | None = None


class _Model(NamedTuple):
    tokenizer: Tokenizer
    table: Vectors


class WordLlamaEmbedder:
    """The offline default; queries and documents are treated alike. Loads at the first text."""

    model_id = MODEL_ID
    dim = DIM
    batch_size = BATCH_SIZE

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text.

        Raises:
            ProviderError: the model's files are missing or not the pinned ones.
        """
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text.

        Raises:
            ProviderError: the model's files are missing or not the pinned ones.
        """
        model = _model()
        sums = np.zeros((len(texts), DIM), dtype=np.float32)
        for place, text in enumerate(texts):
            # One by one: the library's batch call starts threads, which a later fork trips over,
            # and is no faster on short texts.
            ids = model.tokenizer.encode(text, add_special_tokens=False).ids
            for at in range(0, len(ids), TOKENS_AT_ONCE):
                sums[place] += model.table.take(ids[at : at + TOKENS_AT_ONCE], axis=0).sum(axis=0)
        # The mean and the sum have the same direction.
        return unit(sums)

    def embed_weighed(self, words: Sequence[str], weights: Sequence[float]) -> Vectors:
        """Return one unit vector of words that count differently, or zero if none counts.

        Only a static model can do this; the engine asks for it where it is there.

        Raises:
            ProviderError: the model's files are missing or not the pinned ones.
        """
        model = _model()
        total = np.zeros((1, DIM), dtype=np.float32)
        for word, weight in zip(words, weights, strict=True):
            ids = model.tokenizer.encode(word, add_special_tokens=False).ids
            total[0] += weight * model.table.take(ids[:TOKENS_AT_ONCE], axis=0).sum(axis=0)
        vector: Vectors = unit(total)[0]
        return vector


def package_folder() -> Path | None:
    """Return where the `wordllama` package is installed, without importing it; None if nowhere."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _model() -> _Model:
    """Return the model, loaded once for the process."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> _Model:
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    folder = package_folder()
    if folder is None:
        raise ProviderError(f'{MODEL_ID}: not installed; run: pip install "wordllama>=0.4"')
    tokenizer = Tokenizer.from_buffer(_pinned(folder, TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return _Model(tokenizer, load(_pinned(folder, WEIGHTS))[TENSOR].astype(np.float32))


def _pinned(folder: Path, name: str) -> bytes:
    """Return the content of one of the model's files.

    Raises:
        ProviderError: it is missing or another file than the one pinned.
    """
    from blake3 import blake3

    path = folder / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ProviderError(f"{MODEL_ID}: {path}: {error.strerror}; {REMEDY}") from None
    if blake3(data).hexdigest() != PINNED[name]:
        raise ProviderError(
            f"{MODEL_ID}: {path} is not the file that this model id stands for; {REMEDY}"
        )
    return data

"""Embedders: their protocol, a checked call of any embedder, and an embedder without a model.

    texts ──checked(embedder, texts, kind)──▶ vectors: (n, dim), float32, unit length

An embedder may be a caller's own code. So everything that could damage an index is checked here:
texts that are not text, vectors of the wrong shape, NaN.

E1  An empty or blank text never reaches a model; its vector is zero.
E2  Every other vector has unit length, unless the model itself returned zero.
E3  Every failure of an embedder becomes a ProviderError that names its model. Built-in embedders
    raise it themselves if a library, a model or a server is missing or fails.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from worlddb.errors import InvalidInputError, ProviderError, WorldDBError
from worlddb.model.inputs import check_choice, check_integer

Vectors: TypeAlias = NDArray[np.float32]
Kind: TypeAlias = Literal["query", "document"]
Pooling = Literal["attention", "mean"]
Vector = NDArray[np.float32]

BATCH_SIZE = 256  # large enough for a model's batch, small enough for one request
LATIN_END = "\u0250"  # the first character after the Latin letters of Unicode
HASH_DIM = 64  # enough to separate the texts of a test
HASH_DIM_MAX = 4_096  # as many as large models have
HASH_WORD_WEIGHT = 2  # a whole word matters more than a trigram
HASH_WORD_CHARS_MAX = 64
HASH_WORDS_CACHED_MAX = 50_000  # 13 MB of vectors at 64 numbers each.
_HASH_WORD = re.compile(r"\w+")


class Embedder(Protocol):
    """Turns texts into vectors whose cosine is their similarity in meaning.

    `embed_queries` and `embed_documents` get valid texts that are not empty, at most `batch_size`
    of them (an optional attribute; the default is 256), possibly from several threads at once.
    They return one row per text, in order.
    """

    @property
    def model_id(self) -> str:
        """The identity of the vectors: model, revision, dimension. Stored with the vectors."""

    @property
    def dim(self) -> int:
        """The number of dimensions."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of questions."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of stored texts."""


def checked(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Vectors:
    """Return the vectors of `texts`, one row each, computed in the embedder's batch size.

    Raises:
        InvalidInputError: `texts` is not a list of texts, or `kind` is unknown.
        ProviderError: the embedder failed, or its result has a wrong shape, type or value.
    """
    check_choice(kind, "kind", ("query", "document"))
    given = _texts(texts)
    places = [place for place, text in enumerate(given) if text]
    size = max(1, int(getattr(embedder, "batch_size", BATCH_SIZE)))
    parts = [
        (batch, _batch(embedder, [given[place] for place in batch], kind))
        for batch in (places[at : at + size] for at in range(0, len(places), size))
    ]
    # After the first batch: some embedders learn their dimension from their first result.
    vectors = np.zeros((len(given), _dim(embedder)), dtype=np.float32)
    for batch, part in parts:
        vectors[batch] = part
    return vectors


def _texts(texts: Sequence[str]) -> list[str]:
    """Return the texts in valid Unicode; blank ones become empty."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise InvalidInputError(f"texts: give a list of texts, not {type(texts).__name__}")
    given = []
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(f"texts[{place}]: give text, not {type(text).__name__}")
        valid = _valid(text)
        given.append("" if valid.isspace() else valid)
    return given


def _valid(text: str) -> str:
    """Return `text` with U+FFFD for each lone surrogate and a space for each NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 joins the two halves of a pair again.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", " ")


def _batch(embedder: Embedder, texts: list[str], kind: Kind) -> Vectors:
    embed = embedder.embed_queries if kind == "query" else embedder.embed_documents
    try:
        answer: Any = np.asarray(embed(texts))
    except WorldDBError:
        raise
    except Exception as error:
        # An embedder may use any library and raise any error.
        raise ProviderError(
            f"{embedder.model_id}: failed to embed {len(texts)} texts: "
            f"{type(error).__name__}: {error}"
        ) from error
    return unit(_sound(embedder, answer, len(texts)))


def _sound(embedder: Embedder, answer: NDArray[Any], count: int) -> Vectors:
    """Return an embedder's result as float32."""
    name, dim = embedder.model_id, _dim(embedder)
    if answer.dtype.kind not in "fiu":
        raise ProviderError(f"{name}: answered with {answer.dtype} values instead of numbers")
    if answer.shape != (count, dim):
        raise ProviderError(
            f"{name}: answered with an array of shape {answer.shape} for {count} texts; "
            f"expected {(count, dim)}"
        )
    with np.errstate(over="ignore"):
        vectors: Vectors = answer.astype(np.float32)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise ProviderError(
            f"{name}: the vector of text {int(np.argmin(finite))} of a batch of {count} has "
            "NaN or infinite values"
        )
    return vectors


def reads_latin(text: str) -> bool:
    """Return whether at least half of the letters of a text are Latin."""
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(letter < LATIN_END for letter in letters) >= len(letters)


def unit(vectors: NDArray[np.floating[Any]]) -> Vectors:
    """Return the rows scaled to unit length; a zero row stays zero."""
    # Double precision, so that squares of large or small values neither overflow nor vanish.
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0] = 1
    with np.errstate(invalid="ignore"):
        scaled: Vectors = (wide / lengths[:, np.newaxis]).astype(np.float32)
    return scaled


def _dim(embedder: Embedder) -> int:
    dim = embedder.dim
    if not isinstance(dim, int) or dim < 1:
        raise ProviderError(f"{embedder.model_id}: its dim is {dim!r}, not a positive number")
    return dim


class HashEmbedder:
    """Vectors from spelling alone, without a model; equal on every machine and version.

    For tests, examples and stores that must not depend on a model: shared letters count, meaning
    does not. Each word, and each trigram in it, adds or subtracts one at an index given by its
    blake3 hash (signed feature hashing). Queries and documents are treated alike.
    """

    is_spelling = True

    def __init__(self, dim: int = HASH_DIM) -> None:
        self._dim = check_integer(dim, "dim", 1, HASH_DIM_MAX)
        self.batch_size = BATCH_SIZE
        self._known: dict[str, Vectors] = {}

    @property
    def model_id(self) -> str:
        """The name with the dimension: `hash-64`."""
        return f"hash-{self._dim}"

    @property
    def dim(self) -> int:
        """The dimension that was given."""
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        sums = np.zeros((len(texts), self._dim), dtype=np.float32)
        for place, text in enumerate(texts):
            if words := _hash_words(text):
                # Whole numbers: the sum is exact in any order.
                sums[place] = np.sum([self._of_word(word) for word in words], axis=0)
        return unit(sums)

    def _of_word(self, word: str) -> Vectors:
        vector = self._known.get(word)
        if vector is None:
            vector = np.zeros(self._dim, dtype=np.float32)
            self._add(vector, word, HASH_WORD_WEIGHT)
            # The marks tell the ends of a word from its middle, and a trigram from a word.
            marked = f"<{word}>"
            for at in range(len(marked) - 2):
                self._add(vector, "3" + marked[at : at + 3], 1)
            if len(self._known) >= HASH_WORDS_CACHED_MAX:
                self._known.clear()
            self._known[word] = vector
        return vector

    def _add(self, vector: Vectors, feature: str, weight: int) -> None:
        number = int.from_bytes(blake3(feature.encode()).digest(8), "little")
        vector[(number >> 1) % self._dim] += weight if number & 1 else -weight


def _hash_words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    # A text of symbols has no such words, but it still needs a vector.
    found = _HASH_WORD.findall(folded) or folded.split()
    return [word[:HASH_WORD_CHARS_MAX] for word in found]

"""What an embedder is, and the one function through which the engine calls any of them.

    texts ──checked(embedder, texts, kind)──▶ vectors: (n, dim), float32, unit length

An embedder may be somebody else's program. So everything that could spoil an index is stopped
here, for all of them: texts that are no text, vectors of the wrong shape, NaN.

E1  A text that is empty or white space never reaches a model; its vector is zero.
E2  Every other vector has unit length, unless the model itself answered with zero.
E3  What goes wrong in an embedder comes out as a ProviderError that names its model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from worlddb.errors import InvalidInputError, ProviderError, WorldDBError

Vectors: TypeAlias = NDArray[np.float32]
Kind: TypeAlias = Literal["query", "document"]

BATCH_SIZE = 256


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how close they are in meaning.

    `embed_queries` and `embed_documents` get texts that are valid and not empty, at most
    `batch_size` of them (an attribute that may be left out; the default is 256), possibly from
    several threads at once. They return one row per text, in order.
    """

    @property
    def model_id(self) -> str:
        """What stored vectors depend on: the model, its revision, its size. Kept beside each."""

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of what is asked."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of what is stored."""


def checked(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Vectors:
    """Return the vectors of `texts`, one row each, in batches as large as the embedder likes.

    Raises:
        InvalidInputError: `texts` is no list of texts, or `kind` is neither of the two.
        ProviderError: the embedder failed, or answered with something that is no such vectors.
    """
    if kind not in ("query", "document"):
        raise InvalidInputError(f"kind {kind!r}: use 'query' or 'document'")
    given = _texts(texts)
    places = [place for place, text in enumerate(given) if text]
    size = max(1, int(getattr(embedder, "batch_size", BATCH_SIZE)))
    parts = [
        (batch, _batch(embedder, [given[place] for place in batch], kind))
        for batch in (places[at : at + size] for at in range(0, len(places), size))
    ]
    # Asked for only now: some embedders learn it from their first answer.
    vectors = np.zeros((len(given), _dim(embedder)), dtype=np.float32)
    for batch, part in parts:
        vectors[batch] = part
    return vectors


def _texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a model can take them; what is blank becomes empty."""
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
    """Return `text` with a mark in place of each lone surrogate, and a space for each NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16 two halves of a pair find each other again.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", " ")


def _batch(embedder: Embedder, texts: list[str], kind: Kind) -> Vectors:
    embed = embedder.embed_queries if kind == "query" else embedder.embed_documents
    try:
        answer: Any = np.asarray(embed(texts))
    except WorldDBError:
        raise
    except Exception as error:
        # Any library may stand behind an embedder, with errors of any kind.
        raise ProviderError(
            f"{embedder.model_id}: failed to embed {len(texts)} texts: "
            f"{type(error).__name__}: {error}"
        ) from error
    return unit(_sound(embedder, answer, len(texts)))


def _sound(embedder: Embedder, answer: NDArray[Any], count: int) -> Vectors:
    """Return the answer as float32 of the right shape.

    Raises:
        ProviderError: it is not, and cannot be made so.
    """
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


def unit(vectors: NDArray[np.floating[Any]]) -> Vectors:
    """Return the rows scaled to unit length; a zero row stays zero."""
    # In double precision, so that neither very large nor very small values are lost by squaring.
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

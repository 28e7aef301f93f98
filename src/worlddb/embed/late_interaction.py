"""Late interaction: one model for the vector of a text, another for vectors of its words.

    text ──first──▶ one vector, for the search over everything
    text ──second──▶ a vector for each word in its context ──projected, 8-bit──▶ token vectors

A single vector says what a text is about; whether the text answers a question depends on its words.
So the best hits of a search are compared word by word: each word of the question with its nearest
word in the text. Function words and punctuation of a text are left out; those of a question stay.

T1  Token vectors are whole numbers from -127 to 127, DIM of them. Products of two are exact in
    single precision, so equal texts score equally on every machine.
T2  The projection is part of the model's name (`TOKENS`): another projection is another model. It
    was fitted by `bench.projection` to rank answers first, not to keep most of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.embedder import BATCH_SIZE, Embedder, Vectors, unit
from worlddb.embed.embedder_catalog import TOKENS
from worlddb.embed.onnx_embedder import OnnxEmbedder

DIM = 128  # A third of the model's 384, at the same quality of ranking.
LATIN_END = "\u0250"  # where the Latin letters of Unicode end that European languages use
SCALE = 127  # The largest int8 that has a negative.
Tokens = NDArray[np.int8]

_PROJECTION = Path(__file__).with_name("arctic-embed-s-tokens.npy")
_FUNCTION_WORDS = """
a an the this that these those there i me my mine myself we us our ours you your yours he him his
she her hers it its they them their theirs who whom whose what which when where why how be am is are
was were been do does did have has had can could would should shall and or but if so as than then of
to in on at for from with by about into s t m re ve ll d
"""
LEFT_OUT = frozenset(_FUNCTION_WORDS.split())


class LateEmbedder:
    """An embedder with the vectors of `first` and the token vectors of `second`."""

    def __init__(self, first: Embedder, second: OnnxEmbedder) -> None:
        self._first = first
        self._second = second
        self.model_id = f"{first.model_id}+{second.model_id}-{TOKENS}"
        self.dim = first.dim
        self.batch_size = int(getattr(first, "batch_size", BATCH_SIZE))
        if hasattr(first, "embed_weighed"):
            self.embed_weighed = first.embed_weighed
        if hasattr(first, "lacking"):
            self.lacking = first.lacking
        if hasattr(first, "usual_cosine"):
            self.usual_cosine = first.usual_cosine

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per question, by the first model."""
        return self._first.embed_queries(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, by the first model."""
        return self._first.embed_documents(texts)

    def reads(self, text: str) -> bool:
        """Return whether both models know the script of a text."""
        return self._second.reads(text)

    def read_question(self, text: str) -> Tokens:
        """Return the token vectors of a question, one row each; none in an unknown script."""
        if not is_readable(text):
            return np.zeros((0, DIM), dtype=np.int8)
        _, vectors = self._second.embed_tokens([text], "query")[0]
        return projected(vectors, projection())

    def read_texts(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token vectors of each text; none of an empty one or in an unknown script."""
        known = [place for place, text in enumerate(texts) if is_readable(text)]
        read = self._second.embed_tokens([texts[place] for place in known], "document")
        found = [np.zeros((0, DIM), dtype=np.int8) for _ in texts]
        for place, (pieces, vectors) in zip(known, read, strict=True):
            said = [number for number, piece in enumerate(pieces) if says(piece)]
            found[place] = projected(vectors[said], projection())
        return found


def is_readable(text: str) -> bool:
    """Return whether most letters of a text are of the script that the second model has learned.

    Of other scripts it knows single letters at most: compared by them, wrong texts come first.
    """
    letters = [char for char in text if char.isalpha()]
    return 2 * sum(char < LATIN_END for char in letters) >= len(letters)


def projected(vectors: Vectors, matrix: Vectors) -> Tokens:
    """Return vectors multiplied by a matrix, scaled to one length and rounded to 8 bits."""
    rounded: Tokens = np.rint(unit(vectors @ matrix) * SCALE).astype(np.int8)
    return rounded


def says(piece: str) -> bool:
    """Return whether a word piece is neither a function word nor punctuation."""
    return piece not in LEFT_OUT and any(map(str.isalnum, piece))


@cache
def projection() -> Vectors:
    """Return the projection matrix, fitted by `bench.projection`."""
    matrix: Vectors = np.load(_PROJECTION, allow_pickle=False).astype(np.float32)
    return matrix

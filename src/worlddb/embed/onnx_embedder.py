"""Installed models, run by onnxruntime on the CPU.

    text ──WordPiece──▶ ids ──model──▶ the first token's vector, unit length; or every token's

The weights are 8-bit, and the model scales its activations by the largest value of a run. In a
batch a text's vector would depend on the other texts, so each text runs alone: the same text has
the same vector in every batch, and a rebuilt index equals the old one. This costs some speed for
short texts; long ones are faster alone.

WordPiece is the tokenizer of the BERT family (uncased). This one is small and needs no library. It
gives the same ids as the libraries, except for some hundred rare characters that are newer than
their tables, and for "[SEP]" written in a text, which is text here and not a control token.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.embedder import BATCH_SIZE, Embedder, Kind, Vectors, reads_latin, unit
from worlddb.embed.embedder_catalog import TOKENS, InstallableModel, missing_files, model_folder
from worlddb.errors import ProviderError
from worlddb.model.inputs import check_integer

THREADS_DEFAULT_MAX = 4  # reading in the background leaves the cores of a larger machine to others
THREADS_MAX = 1_024  # A typing error beyond this would exhaust the machine.
CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
CONTINUED = "##"
WORD_CHARS_MAX = 100  # Longer words are unknown as a whole, as in the training of the models.
WORDS_CACHED_MAX = 50_000  # About 10 MB.

# Control and format characters, private use, and accents split off by decomposition.
_DROPPED = {"Cc", "Cf", "Co", "Cs", "Mn"}
# Blocks in which each character is a word.
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
_loading = threading.Lock()
_loaded: dict[str, _Loaded] = {}


class _Loaded(NamedTuple):
    tokenizer: WordPiece
    session: Any


class OnnxEmbedder:
    """An installed model. It is loaded at the first text, once per process.

    `threads` texts run at a time, by default one for each core of the machine, up to four. Their
    number does not change the vectors.
    """

    def __init__(
        self,
        model: InstallableModel,
        *,
        models_dir: str | os.PathLike[str],
        threads: int | None = None,
    ) -> None:
        self._model = model
        self._models_dir = os.path.abspath(models_dir)
        cores = min(os.cpu_count() or 1, THREADS_DEFAULT_MAX)
        self._threads = check_integer(
            cores if threads is None else threads, "threads", 1, THREADS_MAX
        )
        self.model_id = model.model_id
        self.dim = model.dim
        self.batch_size = BATCH_SIZE
        self.usual_cosine = model.usual_cosine

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per question, with the model's prefix for questions."""
        return self.embed_documents([self._model.query_prefix + text for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text; a text is cut at the model's token limit."""
        tokenizer, session = self._ready()
        ids = [tokenizer.encode(text) for text in texts]
        return unit(np.stack([states[0] for states in self._states(session, ids)]))

    def reads(self, text: str) -> bool:
        """Return whether most letters of a text are Latin: the installable models know English."""
        return reads_latin(text)

    def embed_tokens(self, texts: Sequence[str], kind: Kind) -> list[tuple[list[str], Vectors]]:
        """Return the word pieces of each text, with one contextual vector for each piece."""
        tokenizer, session = self._ready()
        prefix = self._model.query_prefix if kind == "query" else ""
        # Without the end token, which belongs neither to the prefix nor to the text.
        skipped = len(tokenizer.encode(prefix)) - 1 if prefix else 1
        ids = [tokenizer.encode(prefix + text) for text in texts]
        return [
            (tokenizer.pieces_of(numbers[skipped:-1]), unit(states[skipped:-1]))
            for numbers, states in zip(ids, self._states(session, ids), strict=True)
        ]

    def _states(self, session: Any, ids: list[list[int]]) -> list[Vectors]:
        """Return the last hidden states of each text: one row per token."""
        if self._threads == 1 or len(ids) == 1:
            return [_run(session, numbers) for numbers in ids]
        # Longest first, so that no thread is left with a long text at the end.
        places = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        states: dict[int, Vectors] = {}
        with ThreadPoolExecutor(self._threads) as pool:
            made = pool.map(lambda place: _run(session, ids[place]), places)
            states.update(zip(places, made, strict=True))
        return [states[place] for place in range(len(ids))]

    def _ready(self) -> _Loaded:
        home = str(model_folder(self._model, self._models_dir))
        loaded = _loaded.get(home)
        if loaded is None:
            with _loading:
                loaded = _loaded.get(home)
                if loaded is None:
                    loaded = _loaded[home] = _load(self._model, self._models_dir)
        return loaded


def _run(session: Any, ids: list[int]) -> Vectors:
    row = np.array([ids], dtype=np.int64)
    inputs = {
        "input_ids": row,
        "attention_mask": np.ones_like(row),
        "token_type_ids": np.zeros_like(row),
    }
    states: Vectors = session.run(None, inputs)[0][0]
    return states


def _load(model: InstallableModel, models_dir: str) -> _Loaded:
    """Return the tokenizer and the session of a model."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ProviderError(
            f'{model.name}: needs onnxruntime ({error}); run: pip install "worlddb[onnx]"'
        ) from None
    if missing := missing_files(model, models_dir):
        raise ProviderError(
            f"{model.name}: not installed in {models_dir} ({missing[0].name} is missing or cut "
            f"off); run: worlddb models install {model.name}"
        )
    home = model_folder(model, models_dir)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    try:
        vocabulary = (home / "vocab.txt").read_bytes().decode().removesuffix("\n").split("\n")
        session = onnxruntime.InferenceSession(
            str(home / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        return _Loaded(WordPiece(vocabulary, tokens_max=model.tokens_max), session)
    except Exception as error:
        # The exceptions of onnxruntime have no public base class.
        raise ProviderError(
            f"{model.name}: {home} cannot be loaded ({error}); "
            f"run: worlddb models install {model.name}"
        ) from error


class WordPiece:
    """A tokenizer over a vocabulary: a list of pieces, in which the index of a piece is its id.

    Raises:
        ValueError: the vocabulary lacks one of the control tokens.
    """

    def __init__(self, vocabulary: Sequence[str], *, tokens_max: int = 512) -> None:
        self._vocabulary = vocabulary
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        missing = [token for token in (CLS, SEP, UNKNOWN) if token not in self._ids]
        if missing:
            raise ValueError(f"the vocabulary has no {', '.join(missing)}")
        self._tokens_max = tokens_max
        self._folding = _Folding()
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text between [CLS] and [SEP], cut to the token limit."""
        ids = [self._ids[CLS]]
        plain = unicodedata.normalize("NFD", text).translate(self._folding)
        for word in plain.split(" "):
            ids += self._pieces(word)
            if len(ids) >= self._tokens_max:
                break
        return [*ids[: self._tokens_max - 1], self._ids[SEP]]

    def pieces_of(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces of some ids."""
        return [self._vocabulary[number] for number in ids]

    def _pieces(self, word: str) -> tuple[int, ...]:
        pieces = self._known.get(word)
        if pieces is None:
            try:
                pieces = tuple(self._longest_pieces(word))
            except KeyError:
                pieces = (self._ids[UNKNOWN],)
            if len(self._known) >= WORDS_CACHED_MAX:
                self._known.clear()
            self._known[word] = pieces
        return pieces

    def _longest_pieces(self, word: str) -> Iterator[int]:
        """Yield the ids of the longest known pieces, from the left."""
        if len(word) > WORD_CHARS_MAX:
            raise KeyError(word)
        start = 0
        while start < len(word):
            mark = CONTINUED if start else ""
            end = len(word)
            while mark + word[start:end] not in self._ids:
                end -= 1
                if end == start:
                    raise KeyError(word)
            yield self._ids[mark + word[start:end]]
            start = end


class _Folding(dict[int, str]):
    """A table for `str.translate`, filled when a character is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded(chr(code))
        return folded


def _folded(character: str) -> str:
    """Return a character in lower case, with spaces around it if it is a word by itself."""
    category = unicodedata.category(character)
    if character not in "\t\n\r" and (character in "\0\ufffd" or category in _DROPPED):
        return ""
    if character.isspace():
        return " "
    code = ord(character)
    is_sign = category.startswith("P") or ("!" <= character <= "~" and not character.isalnum())
    if is_sign or any(low <= code <= high for low, high in _IDEOGRAPHS):
        return f" {character} "
    return character.lower()


# Late interaction: one model for the vector of a text, another for vectors of its words.
#
#     text ──first──▶ one vector, for the search over everything
#     text ──second──▶ a vector for each word in its context ──projected, 8-bit──▶ token vectors
#
# A single vector says what a text is about; whether the text answers a question depends on its
# words. So the best hits of a search are compared word by word: each word of the question with its
# nearest word in the text. Function words and punctuation of a text are left out; those of a
# question stay.
#
# T1  Token vectors are whole numbers from -127 to 127, DIM of them. Products of two are exact in
#     single precision, so equal texts score equally on every machine.
# T2  The projection is part of the model's name (`TOKENS`): another projection is another model. It
#     was fitted by `bench.projection` to rank answers first, not to keep most of a vector.

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
        self.usual_cosine: float | None = getattr(first, "usual_cosine", None)

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
    """Return whether most letters of a text are of the script that the second model was trained on.

    It knows only single letters of other scripts, and would rank wrong texts first.
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

"""Embedders: their protocol, a checked call of any, the default one, and one without a model.

    texts ──checked(embedder, texts, kind)──▶ vectors: (n, dim), float32, unit length

An embedder may be a caller's own code. So everything that could damage an index is checked here:
texts that are not text, vectors of the wrong shape, NaN.

E1  An empty or blank text never reaches a model; its vector is zero.
E2  Every other vector has unit length, unless the model itself returned zero.
E3  Every failure of an embedder becomes a ProviderError that names its model. Built-in embedders
    raise it themselves if a library, a model or a server is missing or fails.

WordLlama, the default embedder, has 256 dimensions and comes with the package, without a download.

    text ──BytePairTokenizer──▶ token ids ──rows of the table, summed──▶ unit vector

It is a static model: one vector per token, and a text is the mean of its tokens. Its two data files
are put into the wheel of WorldDB when that is built; the package `wordllama` need not be installed.
In a checkout that was never built, the files of an installed `wordllama` are read.

Both files are read without a library: the weights are a JSON header and one array, and the
tokenizer gave the same ids as the `tokenizers` library for 400,000 texts in many languages. On
conversations it takes 0.7 to 1.2 of the library's time, since most words are in its cache; long
words that never recur take up to eight times as long. It loads in half the time.

W1  Nothing here opens a connection.
W2  The vector of a text depends on the text alone, not on its batch.
W3  Vectors named `wordllama-256` come from the exact files whose hashes are below.
"""

from __future__ import annotations

import heapq
import json
import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

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

WORDLLAMA_ID = "wordllama-256"
WORDLLAMA_DIM = 256  # The width of the table in the package.
WORDLLAMA_BYTES = 18_226_892  # The bytes of that table: a file of another size is another model.
WORDLLAMA_LICENCE = "MIT"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TENSOR = "embedding.weight"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
PINNED = {
    WEIGHTS: "b339f9710085af8eb72d393b6a3625983bca9a23ce19194ce1298eae2a4c021b",
    TOKENIZER: "3642b1549c23f1ce58322e77edadadb5b02e299ec286b1cbf57568451b19f89a",
}
"""File → its blake3. Other weights are another model."""
REMEDY = "run: pip install --force-reinstall --no-deps worlddb"
TOKENS_AT_ONCE = 4_096  # A long text is summed in parts of this size, to limit the memory.
WORD_CHARS_CACHED = 32  # Longer words hardly ever occur again.
WORDS_CACHED_MAX = 50_000  # About 10 MB; a conversation has some 5,000 different words.
VECTORS_KEPT = 8_192  # words whose vectors are kept: 12 MB
QUESTION_CHARS = TOKENS_AT_ONCE // 4  # a character is at most four tokens
TEXTS_KEPT = 4_096  # Short texts whose vectors are kept: 4 MB.

READ_CHARS = 2_000  # of a text, whose words are compared one by one: most turns are shorter
_PLAIN = re.compile(r"[^\W_]+")

SPACE = "▁"
# No piece of the vocabulary has a space after another character, and none has a line break. So
# words can be split off there before the merges, and looked up in a cache.
_WORD = re.compile(f"{SPACE}*[^{SPACE}\n]+|{SPACE}+|\n")
_CONTROL = re.compile("(<unk>|</?s>)")

LENGTH_VAGUE = 5.0  # vector length of a word that says little: "some" 1.9, "during" 4.8
LENGTH_TELLING = 14.0  # vector length of a word that says much: "format" 13.7, "rent" 17.5
TELLS_MIN = 0.05  # every word counts a little

_loading = threading.Lock()
_loaded: StaticModel | None = None


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
    if text.isascii():
        return True
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


class StaticModel(NamedTuple):
    """A tokenizer and one row of the table per token."""

    tokenizer: BytePairTokenizer
    table: NDArray[np.float16]

    def sum_of(self, ids: Sequence[int]) -> Vectors:
        """Return the sum of some rows, widened here: widening the whole table would take longer."""
        summed: Vectors = self.table.take(ids, axis=0).astype(np.float32).sum(axis=0)
        return summed


class WordLlamaEmbedder:
    """The default embedder. Its model is loaded by the first text; questions are plain texts."""

    model_id = WORDLLAMA_ID
    dim = WORDLLAMA_DIM
    batch_size = BATCH_SIZE
    usual_cosine = 0.0  # of unrelated texts; between -0.03 and 0.1 in the files of the evaluation

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        if len(texts) == 1 and len(texts[0]) <= QUESTION_CHARS:
            return _static_vector(texts[0])[None].copy()  # Its answers are compared with it, too.
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        model = loaded_model()
        sums = np.zeros((len(texts), WORDLLAMA_DIM), dtype=np.float32)
        for place, text in enumerate(texts):
            ids = model.tokenizer.encode(text)
            for at in range(0, len(ids), TOKENS_AT_ONCE):
                sums[place] += model.sum_of(ids[at : at + TOKENS_AT_ONCE])
        # The mean and the sum have the same direction.
        return unit(sums)

    def reads(self, text: str) -> bool:
        """Return whether most letters of a text are Latin: the model learned from English."""
        return reads_latin(text)

    def lacking(self, words: Sequence[str], texts: Sequence[str]) -> list[float]:
        """Return how far some texts fail to cover each word, 0 to 1.

        It is 0 if a word of the texts means the same, or if the word says nothing by itself. The
        longer the vector of a word, the more the word says, because the model was trained to weigh
        the words of a sentence by it. Only static models have this method.
        """
        said = list({word for text in texts for word in _PLAIN.findall(text[:READ_CHARS].lower())})
        if not words:
            return []
        own, units = _WORDS.of([it.lower() for it in words])
        lengths = np.linalg.norm(own, axis=1)
        tells = np.clip((lengths - LENGTH_VAGUE) / (LENGTH_TELLING - LENGTH_VAGUE), TELLS_MIN, 1)
        near = (units @ self.word_vectors(said).T).max(axis=1) if said else np.zeros(len(own))
        lost: list[float] = ((1.0 - np.clip(near, 0.0, 1.0)) * tells).tolist()
        return lost

    def word_vectors(self, words: Sequence[str]) -> Vectors:
        """Return one unit vector per word, at least one; only static models have this method."""
        return _WORDS.of(words)[1]

    def embed_weighed(self, words: Sequence[str], weights: Sequence[float]) -> Vectors:
        """Return one unit vector of weighted words, or zero if all weights are zero.

        Only static models have this method; the engine uses it where it exists.

        Raises:
            ProviderError: the files of the model are missing or not the pinned ones.
        """
        model = loaded_model()
        total = np.zeros((1, WORDLLAMA_DIM), dtype=np.float32)
        for word, weight in zip(words, weights, strict=True):
            ids = model.tokenizer.encode(word)
            total[0] += weight * model.sum_of(ids[:TOKENS_AT_ONCE])
        vector: Vectors = unit(total)[0]
        return vector


def word_sums(words: Sequence[str]) -> Vectors:
    """Return the sum of the token vectors of each word, at least one word."""
    return _WORDS.of(words)[0]


class _WordVectors:
    """The token sums and the unit vectors of the words met last: most words come up again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sums: Vectors = np.zeros((0, WORDLLAMA_DIM), dtype=np.float16)
        self._units: Vectors = np.zeros((0, WORDLLAMA_DIM), dtype=np.float32)

    def of(self, words: Sequence[str]) -> tuple[Vectors, Vectors]:
        """Return the sums and the unit vectors of some words, at least one word."""
        with self._lock:
            numbers = self._numbers
            every = dict.fromkeys(words)
            new = [word for word in every if word not in numbers]
            if any(len(word) > WORD_CHARS_CACHED for word in new) or len(every) > VECTORS_KEPT:
                sums = _token_sums(words)
                return sums, unit(sums)
            if len(numbers) + len(new) > VECTORS_KEPT:
                self._clear()
                numbers, new = self._numbers, list(every)
            if new:
                self._add(new)
            places = [numbers[word] for word in words]
            return self._sums.take(places, axis=0), self._units.take(places, axis=0)

    def _add(self, words: Sequence[str]) -> None:
        sums, first = _token_sums(words), len(self._numbers)
        last = first + len(words)
        if last > len(self._sums):
            more = ((0, min(max(2 * last, WORDLLAMA_DIM), VECTORS_KEPT) - len(self._sums)), (0, 0))
            self._sums, self._units = np.pad(self._sums, more), np.pad(self._units, more)
        self._sums[first:last], self._units[first:last] = sums, unit(sums)
        self._numbers.update(zip(words, range(first, last), strict=True))


_WORDS = _WordVectors()


def _token_sums(words: Sequence[str]) -> Vectors:
    model = loaded_model()
    ids = [model.tokenizer.encode(word) or [0] for word in words]
    starts = np.cumsum([0, *(len(them) for them in ids[:-1])])
    flat = [number for them in ids for number in them]
    sums: Vectors = np.add.reduceat(model.table.take(flat, axis=0), starts, axis=0)
    return sums


def static_vectors(texts: Sequence[str]) -> Vectors | None:
    """Return one unit vector per text, whatever the embedder; None if the files cannot be read."""
    try:
        return np.stack([_static_vector(text) for text in texts])
    except ProviderError:
        return None


@lru_cache(TEXTS_KEPT)
def _static_vector(text: str) -> Vectors:
    vector: Vectors = unit(loaded_model().sum_of(loaded_model().tokenizer.encode(text))[None])[0]
    return vector


def model_folder() -> Path | None:
    """Return the folder of the model's files; None if there are none."""
    own = Path(__file__).parent / "wordllama"
    if (own / WEIGHTS).is_file():
        return own
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def loaded_model() -> StaticModel:
    """Return the model, loaded once per process."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> StaticModel:
    folder = model_folder()
    if folder is None:
        raise ProviderError(f"{WORDLLAMA_ID}: its files are missing; {REMEDY}")
    model = json.loads(_pinned(folder, TOKENIZER)[:])["model"]
    tokenizer = BytePairTokenizer(model["vocab"], model["merges"])
    return StaticModel(tokenizer, _tensor(_pinned(folder, WEIGHTS), TENSOR))


def _tensor(data: mmap, name: str) -> NDArray[np.float16]:
    """Return an array of a safetensors file: header size, JSON header, raw little-endian values."""
    start = 8 + int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:start])[name]
    first, last = entry["data_offsets"]
    assert entry["dtype"] == "F16"  # The hash of the file has been checked.
    values = np.frombuffer(data, dtype="<f2", count=(last - first) // 2, offset=start + first)
    return values.reshape(entry["shape"])


def _pinned(folder: Path, name: str) -> mmap:
    """Return a file of the model, mapped: processes share its pages, and none copies them."""
    path = folder / name
    try:
        with path.open("rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped.
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ProviderError(f"{WORDLLAMA_ID}: {path}: {why}; {REMEDY}") from None
    if blake3(data).hexdigest() != PINNED[name]:
        raise ProviderError(f"{WORDLLAMA_ID}: {path} is not the file of this model id; {REMEDY}")
    return data


class BytePairTokenizer:
    """Byte-pair encoding as Llama 2 does it: spaces are `▁`, unknown characters become bytes.

    `merges` are pairs of pieces, "a b", in the order in which they are applied.
    """

    def __init__(self, vocabulary: dict[str, int], merges: Sequence[str]) -> None:
        self._ids = vocabulary
        self._ranks = dict(zip(merges, range(len(merges)), strict=True))
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; control tokens written in it are control tokens."""
        ids: list[int] = []
        for number, part in enumerate(_CONTROL.split(text) if "<" in text else (text,)):
            if number % 2:
                ids.append(self._ids[part])
            elif part:
                self._append(ids, SPACE + part.replace(" ", SPACE))
        return ids

    def _append(self, ids: list[int], text: str) -> None:
        cache = self._cache
        for word in _WORD.findall(text):
            found = cache.get(word)
            if found is None:
                found = self._word_ids(word)
                if len(word) <= WORD_CHARS_CACHED:
                    if len(cache) >= WORDS_CACHED_MAX:
                        cache.clear()
                    cache[word] = found
            ids += found

    def _word_ids(self, word: str) -> list[int]:
        ids: list[int] = []
        for piece in self._merged(word):
            if piece in self._ids:
                ids.append(self._ids[piece])
            else:
                ids += [self._ids[f"<0x{byte:02X}>"] for byte in piece.encode()]
        return ids

    def _merged(self, word: str) -> list[str]:
        """Return the pieces of a word: always the pair of lowest rank is merged, from the left.

        Pieces are a linked list, pairs wait in a heap: n log n for a word of n characters.
        """
        pieces, count, rank_of = list(word), len(word), self._ranks.get
        after, before = list(range(1, count + 1)), list(range(-1, count - 1))
        heap = [
            (rank, at, pair)
            for at in range(count - 1)
            if (rank := rank_of(pair := f"{pieces[at]} {pieces[at + 1]}")) is not None
        ]
        heapq.heapify(heap)
        while heap:
            _, at, pair = heapq.heappop(heap)
            right = after[at]
            if right >= count or f"{pieces[at]} {pieces[right]}" != pair:
                continue  # One of the two has been merged with another since.
            pieces[at] += pieces[right]
            pieces[right] = ""
            after[at] = right = after[right]
            if right < count:
                before[right] = at
            for left, other in ((at, right), (before[at], at)):
                if left >= 0 and other < count:
                    pair = f"{pieces[left]} {pieces[other]}"
                    if (rank := rank_of(pair)) is not None:
                        heapq.heappush(heap, (rank, left, pair))
        return [piece for piece in pieces if piece]


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

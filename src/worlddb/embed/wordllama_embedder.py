"""The default embedder: WordLlama, 256 dimensions, from files in the wheel, without a download.

    text ──BytePairTokenizer──▶ token ids ──rows of the table, summed──▶ unit vector

WordLlama is a static model: one vector per token, and a text is the mean of its tokens. Its two
data files are put into the wheel of WorldDB when that is built; the package `wordllama` need not be
installed. In a checkout that was never built, the files of an installed `wordllama` are read.

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
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.embedder import BATCH_SIZE, Vectors, reads_latin, unit
from worlddb.errors import ProviderError

MODEL_ID = "wordllama-256"
DIM = 256  # The width of the table in the package.
SIZE = 18_226_892  # The bytes of that table: a file of another size is another model.
LICENCE = "MIT"
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

    model_id = MODEL_ID
    dim = DIM
    batch_size = BATCH_SIZE
    usual_cosine = 0.0  # of unrelated texts; between -0.03 and 0.1 in the files of the evaluation

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        model = loaded_model()
        sums = np.zeros((len(texts), DIM), dtype=np.float32)
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
        own = word_sums([it.lower() for it in words])
        lengths = np.linalg.norm(own, axis=1)
        tells = np.clip((lengths - LENGTH_VAGUE) / (LENGTH_TELLING - LENGTH_VAGUE), TELLS_MIN, 1)
        near = (unit(own) @ self.word_vectors(said).T).max(axis=1) if said else np.zeros(len(own))
        lost: list[float] = ((1.0 - np.clip(near, 0.0, 1.0)) * tells).tolist()
        return lost

    def word_vectors(self, words: Sequence[str]) -> Vectors:
        """Return one unit vector per word, at least one; only static models have this method."""
        return unit(word_sums(words))

    def embed_weighed(self, words: Sequence[str], weights: Sequence[float]) -> Vectors:
        """Return one unit vector of weighted words, or zero if all weights are zero.

        Only static models have this method; the engine uses it where it exists.

        Raises:
            ProviderError: the files of the model are missing or not the pinned ones.
        """
        model = loaded_model()
        total = np.zeros((1, DIM), dtype=np.float32)
        for word, weight in zip(words, weights, strict=True):
            ids = model.tokenizer.encode(word)
            total[0] += weight * model.sum_of(ids[:TOKENS_AT_ONCE])
        vector: Vectors = unit(total)[0]
        return vector


def word_sums(words: Sequence[str]) -> Vectors:
    """Return the sum of the token vectors of each word, at least one word."""
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
        raise ProviderError(f"{MODEL_ID}: its files are missing; {REMEDY}")
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
    from blake3 import blake3

    path = folder / name
    try:
        with path.open("rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped.
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ProviderError(f"{MODEL_ID}: {path}: {why}; {REMEDY}") from None
    if blake3(data).hexdigest() != PINNED[name]:
        raise ProviderError(f"{MODEL_ID}: {path} is not the file of this model id; {REMEDY}")
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

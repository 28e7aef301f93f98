"""Models of the catalogue, run by onnxruntime on the CPU.

    text ──WordPiece──▶ ids ──model──▶ the first token's vector, unit length; or every token's

The weights are 8-bit, and the model scales its activations by the largest value it sees in a run.
In a batch that would make a text's vector depend on its neighbours, so each text runs alone: the
same text has the same vector in every batch, and a rebuilt index equals the old one. On short
texts that costs some speed; long ones are faster alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from worlddb.embed.catalog import Model, missing_files, model_folder
from worlddb.embed.protocol import BATCH_SIZE, Kind, Vectors, unit
from worlddb.embed.wordpiece import WordPiece
from worlddb.errors import ProviderError
from worlddb.model.inputs import check_whole

THREADS_MAX = 1_024
_loading = threading.Lock()
_loaded: dict[str, _Loaded] = {}


class _Loaded(NamedTuple):
    tokenizer: WordPiece
    session: Any


class OnnxEmbedder:
    """An installed model of the catalogue. Loads at the first text, once for the process.

    `threads` texts run at a time; how many makes no difference to the vectors.
    """

    def __init__(
        self, model: Model, *, models_dir: str | os.PathLike[str], threads: int = 1
    ) -> None:
        self._model = model
        self._models_dir = os.path.abspath(models_dir)
        self._threads = check_whole(threads, "threads", 1, THREADS_MAX)
        self.model_id = model.model_id
        self.dim = model.dim
        self.batch_size = BATCH_SIZE

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per question, asked as the model was trained to be asked.

        Raises:
            ProviderError: onnxruntime or the model is not installed, or fails.
        """
        return self.embed_documents([self._model.query_prefix + text for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text; what is beyond the model's reach is cut off.

        Raises:
            ProviderError: onnxruntime or the model is not installed, or fails.
        """
        tokenizer, session = self._ready()
        ids = [tokenizer.encode(text) for text in texts]
        return unit(np.stack([states[0] for states in self._states(session, ids)]))

    def embed_tokens(self, texts: Sequence[str], kind: Kind) -> list[tuple[list[str], Vectors]]:
        """Return the word pieces of each text, and a vector for each of them in its context.

        Raises:
            ProviderError: onnxruntime or the model is not installed, or fails.
        """
        tokenizer, session = self._ready()
        prefix = self._model.query_prefix if kind == "query" else ""
        # Its mark at the end is the prefix's as little as the text's.
        skipped = len(tokenizer.encode(prefix)) - 1 if prefix else 1
        ids = [tokenizer.encode(prefix + text) for text in texts]
        return [
            (tokenizer.pieces_of(numbers[skipped:-1]), unit(states[skipped:-1]))
            for numbers, states in zip(ids, self._states(session, ids), strict=True)
        ]

    def _states(self, session: Any, ids: list[list[int]]) -> list[Vectors]:
        """Return what the model makes of each text: a row for each token."""
        if self._threads == 1 or len(ids) == 1:
            return [_run(session, numbers) for numbers in ids]
        # The longest first, so that no thread is left alone with one at the end.
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


def _load(model: Model, models_dir: str) -> _Loaded:
    """Return the model, ready to run.

    Raises:
        ProviderError: it is not installed or cannot be loaded.
    """
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
        # onnxruntime has exceptions of its own, without a common ancestor that it would name.
        raise ProviderError(
            f"{model.name}: {home} cannot be loaded ({error}); "
            f"run: worlddb models install {model.name}"
        ) from error

"""The offline default: the real model, from the installed package, without a connection."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from patience import PATIENCE_S
from thinning import examples
from worlddb.embed import embedder as wordllama
from worlddb.embed.embedder import WordLlamaEmbedder, checked
from worlddb.errors import ProviderError

TEXTS = [
    "Ada moved to Zurich in May 2021.",
    "  leading  and   double  spaces ",
    "日本語のテキスト",
    "emoji 😀👍🏽 and ﬁ ligature",
    "مرحبا بالعالم",
    "1,234.56 € on 2024-02-29",
    "<s></s><unk>",
    "x" * 3_000,
    "word " * 2_000,
    "a",
    "\n\ttabs\r\n",
    "\u200b",
]

REFEREE = """
import pathlib, sys
import numpy as np
import wordllama
folder = pathlib.Path(wordllama.__file__).parent
model = wordllama.WordLlama.load(dim=256, cache_dir=folder, disable_download=True)
texts = sys.stdin.buffer.read().decode().split("\\x1e")
sys.stdout.buffer.write(model.embed(texts, norm=True).astype(np.float32).tobytes())
"""

NO_NETWORK = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("a connection")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from worlddb.embed.embedder import WordLlamaEmbedder
vectors = WordLlamaEmbedder().embed_queries(["hello"])
print(vectors.shape, sorted({"wordllama", "tokenizers", "safetensors"} & {*sys.modules}))
"""


def test_it_says_what_it_is_before_anything_is_loaded() -> None:
    program = (
        "import sys; from worlddb.embed.embedder import WordLlamaEmbedder as W; "
        "print(W().model_id, W().dim, 'tokenizers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"wordllama-256 256 False\n"


def test_the_vectors_are_the_packages_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REFEREE],
        input="\x1e".join(TEXTS).encode(),
        capture_output=True,
        check=True,
    )
    expected = np.frombuffer(done.stdout, dtype=np.float32).reshape(len(TEXTS), 256)
    np.testing.assert_allclose(checked(WordLlamaEmbedder(), TEXTS, "document"), expected, atol=2e-6)


PIECES = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    [
        "<s>",
        "</s>",
        "<unk>",
        "<0x41>",
        "<s",
        " ",
        "  ",
        "▁",
        "\n",
        "\n\n ",
        " the",
        "ing",
        "我",
        "é",
    ]
)


@settings(derandomize=True, deadline=None, database=None, max_examples=examples(500, 200))
@given(st.lists(PIECES, max_size=40).map("".join))
def test_token_ids_are_those_of_the_tokenizers_library(text: str) -> None:
    assert wordllama.loaded_model().tokenizer.encode(text) == library_ids(text)


@pytest.mark.parametrize(
    "text", [*TEXTS, "", "我昨天搬到了巴黎。" * 50, "abc" * 5_000, " " * 3_000]
)
def test_token_ids_of_long_and_foreign_texts_are_the_librarys(text: str) -> None:
    assert wordllama.loaded_model().tokenizer.encode(text) == library_ids(text)


def library_ids(text: str) -> list[int]:
    ids: list[int] = library().encode(text, add_special_tokens=False).ids
    return ids


@cache
def library() -> Tokenizer:
    folder = wordllama.model_folder()
    assert folder is not None
    return Tokenizer.from_file(str(folder / wordllama.TOKENIZER))


def test_nothing_connects_and_the_package_is_not_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK],
        env={"HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("(1, 256) []\n", "")


def test_a_paraphrase_is_closer_than_something_else() -> None:
    question, answer, other = checked(
        WordLlamaEmbedder(),
        ["Where does Ada live?", "Ada's home is in Zurich", "The invoice is due on Friday"],
        "query",
    )
    assert question @ answer > question @ other + 0.2


def test_a_text_has_the_same_vector_in_every_batch_and_of_either_kind() -> None:
    embedder = WordLlamaEmbedder()
    together = checked(embedder, TEXTS, "document")
    alone = np.concatenate([checked(embedder, [text], "query") for text in TEXTS])
    assert np.array_equal(together, alone)


def test_empty_and_broken_texts_do_no_harm() -> None:
    vectors = checked(WordLlamaEmbedder(), ["", " \n", "\ud800", "\0", "a\0b\udfff"], "document")
    assert np.isfinite(vectors).all()
    assert [bool(row.any()) for row in vectors] == [False, False, True, False, True]


def test_threads_share_one_model_that_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    load = wordllama._load
    begun = threading.Barrier(8)

    def counted() -> wordllama.StaticModel:
        loads.append(1)
        return load()

    def embed(number: int) -> np.ndarray:
        begun.wait(PATIENCE_S)
        return WordLlamaEmbedder().embed_documents([f"text {number % 2}"])

    monkeypatch.setattr(wordllama, "_loaded", None)
    monkeypatch.setattr(wordllama, "_load", counted)
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(embed, range(8)))
    assert loads == [1]
    assert all(np.array_equal(vectors[number], vectors[number % 2]) for number in range(8))


def test_a_process_that_forks_after_use_goes_on_embedding() -> None:
    program = """
import os, sys
from worlddb.embed.embedder import WordLlamaEmbedder
before = WordLlamaEmbedder().embed_documents(["one", "two"] * 50)
child = os.fork()
after = WordLlamaEmbedder().embed_documents(["one", "two"] * 50)
assert (before == after).all()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_other_weights_under_the_same_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = wordllama.model_folder()
    assert real is not None
    for name in (wordllama.WEIGHTS, wordllama.TOKENIZER):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes((real / name).read_bytes())
    monkeypatch.setattr(wordllama, "_loaded", None)
    monkeypatch.setattr(wordllama, "model_folder", lambda: tmp_path)
    assert WordLlamaEmbedder().embed_queries(["as it should be"]).any()
    monkeypatch.setattr(wordllama, "_loaded", None)
    weights = tmp_path / wordllama.WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(ProviderError, match="not the file of this model id"):
        WordLlamaEmbedder().embed_queries(["text"])
    weights.write_bytes(b"")
    with pytest.raises(ProviderError, match="cannot mmap an empty file; run: pip install"):
        WordLlamaEmbedder().embed_queries(["text"])
    weights.unlink()
    with pytest.raises(ProviderError, match=r"No such file or directory; run: pip install"):
        WordLlamaEmbedder().embed_queries(["text"])
    monkeypatch.setattr(wordllama, "model_folder", lambda: None)
    with pytest.raises(ProviderError, match="its files are missing; run: pip install"):
        WordLlamaEmbedder().embed_queries(["text"])


def test_a_very_long_text_takes_little_memory() -> None:
    embedder = WordLlamaEmbedder()
    embedder.embed_documents(["loaded before we measure"])
    tracemalloc.start()
    try:
        embedder.embed_documents(["word " * 100_000])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The vectors of all its words at once would be 100 MB.
    assert peak < 30e6


def test_vectors_of_words_do_not_depend_on_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama, "VECTORS_KEPT", 300)
    words = [f"{one}{number}" for one in ("tea", "Rome", "été", "x" * 40) for number in range(150)]
    kept = wordllama._WordVectors()
    for start in range(0, len(words), 7):
        some = words[start : start + 60] + words[:3] + words[:2]
        sums, units = kept.of(some)
        expected = wordllama._token_sums(some)
        assert np.array_equal(sums, expected)
        assert np.array_equal(units, wordllama.unit(expected))
        assert len(kept._numbers) <= 300
    assert kept._numbers


def test_a_question_and_a_text_have_one_vector() -> None:
    embedder = WordLlamaEmbedder()
    for text in TEXTS:
        document = embedder.embed_documents([text])
        for _ in range(2):
            query = embedder.embed_queries([text])
            assert np.allclose(query, document, atol=1e-6)
            query += 1.0  # The caller may do with it what it likes.


def test_more_words_than_are_kept_have_vectors_though_some_are_known() -> None:
    words = [f"w{number}" for number in range(9_000)]
    few = wordllama.word_sums(words[:1_000])
    assert np.array_equal(wordllama.word_sums(words)[:1_000], few)

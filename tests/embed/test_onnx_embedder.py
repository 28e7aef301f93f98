"""arctic-embed-s: the real model's behaviour, and what is said when it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from worlddb.embed.embedder import checked
from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S, embedder_named, model_folder
from worlddb.embed.onnx_embedder import OnnxEmbedder
from worlddb.errors import InvalidInputError, ProviderError

QUESTION = "Where does Ada live now?"
ANSWER = "Ada: I moved into a flat in Zurich last spring."
OTHER = "Ben: the invoice for the printer is due on Friday."


def test_the_answer_is_closer_to_the_question_than_something_else(arctic: OnnxEmbedder) -> None:
    question = checked(arctic, [QUESTION], "query")[0]
    answer, other = checked(arctic, [ANSWER, OTHER], "document")
    assert question @ answer > question @ other + 0.1
    assert question.shape == (384,)
    assert np.linalg.norm(question) == pytest.approx(1, abs=1e-5)


def test_a_paraphrase_is_closer_than_something_else(arctic: OnnxEmbedder) -> None:
    texts = ["He could not sleep at all.", "He lay awake the whole night.", "Prices fell by 3%."]
    one, same, other = checked(arctic, texts, "document")
    assert one @ same > one @ other + 0.1


def test_a_question_is_asked_with_the_models_prefix_and_a_document_is_not(
    arctic: OnnxEmbedder,
) -> None:
    asked = checked(arctic, [QUESTION], "query")
    prefix = "Represent this sentence for searching relevant passages: "
    assert np.array_equal(asked, checked(arctic, [prefix + QUESTION], "document"))
    assert not np.allclose(asked, checked(arctic, [QUESTION], "document"), atol=0.01)


def test_the_vectors_are_those_of_the_model_and_not_of_another_pooling(
    arctic: OnnxEmbedder, arctic_models: Path
) -> None:
    """The referee is the library's tokenizer and the bare model, first token, no batch."""
    import onnxruntime
    from tokenizers import BertWordPieceTokenizer

    home = model_folder(ARCTIC_EMBED_S, arctic_models)
    tokenizer = BertWordPieceTokenizer(str(home / "vocab.txt"), lowercase=True)
    session = onnxruntime.InferenceSession(str(home / "model.onnx"))
    for text in (ANSWER, OTHER, "日本語 and é"):
        ids = np.array([tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
        vector = session.run(["last_hidden_state"], inputs)[0][0, 0]
        vector /= np.linalg.norm(vector)
        assert checked(arctic, [text], "document")[0] @ vector > 0.9999


def test_a_text_has_the_same_vector_in_every_batch_and_with_any_number_of_threads(
    arctic: OnnxEmbedder, arctic_models: Path
) -> None:
    texts = [ANSWER, OTHER, "short", "a much longer text about the weather " * 5]
    together = checked(arctic, texts, "document")
    alone = np.concatenate([checked(arctic, [text], "document") for text in reversed(texts)])
    assert np.array_equal(together, alone[::-1])
    threaded = OnnxEmbedder(ARCTIC_EMBED_S, models_dir=arctic_models, threads=3)
    assert np.array_equal(together, checked(threaded, texts, "document"))


def test_another_process_gives_the_same_vectors(arctic: OnnxEmbedder, arctic_models: Path) -> None:
    program = (
        "import sys; from worlddb.embed.embedder_catalog import embedder_named; "
        f"e = embedder_named('arctic-embed-s', models_dir={str(arctic_models)!r}); "
        f"sys.stdout.buffer.write(e.embed_documents([{ANSWER!r}]).tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == arctic.embed_documents([ANSWER]).tobytes()


def test_a_long_text_is_cut_where_the_model_ends(arctic: OnnxEmbedder) -> None:
    long = "word " * 600
    same = checked(arctic, [long, long + "and something else entirely"], "document")
    assert np.array_equal(same[0], same[1])
    assert not np.array_equal(same[0], checked(arctic, ["word " * 300], "document")[0])


def test_empty_and_broken_texts_do_no_harm(arctic: OnnxEmbedder) -> None:
    vectors = checked(arctic, ["", "\ud800", "\0", "\u200b", "a\0b"], "query")
    assert [bool(row.any()) for row in vectors] == [False, True, False, True, True]


def test_it_says_what_it_is_before_anything_is_loaded(tmp_path: Path) -> None:
    embedder = embedder_named("arctic-embed-s", models_dir=tmp_path)
    assert (embedder.model_id, embedder.dim) == ("arctic-embed-s-int8-384", 384)


def test_a_model_that_is_not_installed_names_the_command(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    embedder = embedder_named("arctic-embed-s", models_dir=tmp_path)
    with pytest.raises(ProviderError, match="run: worlddb models install arctic-embed-s") as caught:
        checked(embedder, ["text"], "query")
    assert str(tmp_path) in str(caught.value)


def test_a_damaged_model_names_the_command(arctic_models: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    home = model_folder(ARCTIC_EMBED_S, tmp_path)
    home.mkdir()
    for file in ARCTIC_EMBED_S.files:
        (home / file.name).write_bytes(
            (model_folder(ARCTIC_EMBED_S, arctic_models) / file.name).read_bytes()
        )
    with (home / "model.onnx").open("r+b") as model:
        model.write(b"\xff" * 4_096)
    embedder = OnnxEmbedder(ARCTIC_EMBED_S, models_dir=tmp_path)
    with pytest.raises(ProviderError, match="cannot be loaded"):
        checked(embedder, ["text"], "query")


def test_without_onnxruntime_the_error_names_the_extra(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["onnxruntime"] = None
from worlddb.embed.embedder_catalog import embedder_named
try:
    embedder_named("arctic-embed-s", models_dir={str(tmp_path)!r}).embed_queries(["text"])
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.startswith(b"ProviderError arctic-embed-s: needs onnxruntime")
    assert b'pip install "worlddb[onnx]"' in done.stdout


def test_a_number_of_threads_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="threads"):
        embedder_named("arctic-embed-s", models_dir=tmp_path, threads=0)

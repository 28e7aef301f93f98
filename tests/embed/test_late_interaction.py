"""Late interaction: two models as one embedder, and what its token vectors are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import worlddb
from worlddb.embed.embedder_catalog import embedder_named
from worlddb.embed.onnx_embedder import DIM, LateEmbedder, is_readable, projection
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.index.vectors import late_interaction_scores

NAME = "wordllama+arctic-embed-s"
QUESTION = "What kind of food can't I eat?"
ANSWER = "user: I have to stay away from gluten since my diagnosis."
OTHERS = (
    "user: I bought a sofa for the living room.",
    "user: We spent two weeks camping on the coast of Croatia.",
    "",
)


def test_a_stored_model_id_names_the_same_embedder(tmp_path: Path) -> None:
    made = embedder_named(NAME, models_dir=tmp_path)
    again = embedder_named(made.model_id, models_dir=tmp_path)
    assert isinstance(again, LateEmbedder)
    assert again.model_id == made.model_id
    assert made.dim == embedder_named("wordllama").dim


@pytest.mark.parametrize("name", ["+arctic-embed-s", "nothing+arctic-embed-s", "wordllama+hash"])
def test_a_pair_of_which_one_is_no_embedder_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="no such embedder"):
        embedder_named(name)


def test_vectors_are_those_of_the_first_model(tmp_path: Path) -> None:
    pair, alone = embedder_named(NAME, models_dir=tmp_path), embedder_named("wordllama")
    assert np.array_equal(pair.embed_documents([ANSWER]), alone.embed_documents([ANSWER]))
    assert np.array_equal(pair.embed_queries([QUESTION]), alone.embed_queries([QUESTION]))


def test_without_the_second_model_a_search_says_how_to_install_it(tmp_path: Path) -> None:
    with worlddb.open(":memory:", embedder=NAME, models_dir=tmp_path) as db:
        with db.transaction(actor="test") as tx:
            tx.create_node(type="Memory", content=ANSWER)
        with pytest.raises(ProviderError, match="models install arctic-embed-s"):
            db.recall(QUESTION)


def test_the_projection_loses_no_dimension() -> None:
    assert projection().shape == (384, DIM)
    assert np.linalg.svd(projection(), compute_uv=False).min() > 0.3


def test_the_answer_is_read_as_nearer_than_what_is_none(arctic_models: Path) -> None:
    pair = embedder_named(NAME, models_dir=arctic_models)
    assert isinstance(pair, LateEmbedder)
    scores = late_interaction_scores(
        pair.read_question(QUESTION), pair.read_texts([*OTHERS, ANSWER])
    )
    assert scores.argmax() == len(OTHERS)


def test_function_words_and_punctuation_of_a_text_have_no_token_vector(arctic_models: Path) -> None:
    pair = embedder_named(NAME, models_dir=arctic_models)
    assert isinstance(pair, LateEmbedder)
    text, nothing = pair.read_texts(["The bike, it is in the shed!", "to be or of"])
    assert text.shape == (2, DIM)
    assert nothing.shape == (0, DIM)
    assert text.dtype == np.int8
    assert pair.read_question("The bike?").shape == (3, DIM)


def test_recall_finds_by_words_what_a_mean_of_them_blurs(arctic_models: Path) -> None:
    found = []
    for name in ("wordllama", NAME):
        with worlddb.open(":memory:", embedder=name, models_dir=arctic_models) as db:
            with db.transaction(actor="test") as tx:
                for text in (*OTHERS[:2], ANSWER):
                    tx.create_node(type="Memory", content=text)
            found.append(db.recall(QUESTION, k=1)[0].node.content)
    assert found[0] != ANSWER
    assert found[1] == ANSWER


@pytest.mark.parametrize(
    "text", ["妹妹在哪家医院上班？", "妹が働く病院は？", "Где я живу?", "어디에 살아?"]
)
def test_a_script_that_the_model_cannot_read_is_never_compared(text: str, tmp_path: Path) -> None:
    """No model is installed there: reading anything would fail."""
    late = embedder_named("wordllama+arctic-embed-s", models_dir=tmp_path)
    assert isinstance(late, LateEmbedder)
    assert late.read_question(text).shape == (0, DIM)
    assert not is_readable(text)


@pytest.mark.parametrize("text", ["Where do I live?", "Ça va, Zoë?", "", "42 + 1", "Tokyo (東京)"])
def test_latin_script_is_read(text: str) -> None:
    assert is_readable(text)
